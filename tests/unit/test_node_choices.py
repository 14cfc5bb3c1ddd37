"""The check of single decisions on a log of four jobs; `validation/node_choices.py` applies it to recorded runs of a real Slurm."""

import gzip

from validation.node_choices import decisions_of, main

CLUSTER = "\n".join(
    [
        "SchedulerType = sched/backfill\nSelectType = select/cons_tres\nPriorityType = priority/basic",
        *(f"NodeName=n{k} Arch=x86_64 CPUTot=8 RealMemory=100 State=IDLE Weight=1 Partitions=main" for k in (1, 2)),
        "PartitionName=main Default=YES MaxTime=UNLIMITED Nodes=n[1-2] State=UP",
    ]
)
FIELDS = (
    "JobIDRaw JobID Cluster User Account Partition QOS State ExitCode Submit Eligible Start End ElapsedRaw TimelimitRaw ReqCPUS AllocCPUS "
    "NNodes ReqTRES Flags NodeList"
)


def job(number, submit, start, end, procs, nodes, flags="SchedMain"):
    times = (*(1_700_000_000 + time for time in (submit, submit, start, end)), end - start, 2)
    tres = f"billing={procs},cpu={procs},node=1"
    return "|".join(
        map(
            str,
            (number, number, "lab", "ann", "physics", "main", "normal", "COMPLETED", "0:0", *times, procs, procs, 1, tres, flags, nodes),
        )
    )


def test_decisions_of(tmp_path, capsys):
    """Job 3 should have the tighter node 2; so should job 4, if job 2, which ends in that second, still had its processors."""
    rows = [
        job(1, 1000, 1000, 1100, 3, "n1"),
        job(2, 1001, 1001, 1030, 6, "n2"),
        job(3, 1002, 1002, 1090, 2, "n1"),
        job(4, 1003, 1030, 1050, 1, "n2", "SchedBackfill"),
    ]
    table = "\n".join([FIELDS.replace(" ", "|"), *rows])
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1" / "cluster.txt").write_text(CLUSTER)
    (tmp_path / "run1" / "jobs.txt.gz").write_bytes(gzip.compress(table.encode()))
    (tmp_path / "run1" / "sacct-full.txt").write_text(table)
    found = {one.job: one for one in decisions_of(tmp_path / "run1")}
    assert {number: (one.same, one.possible) for number, one in found.items()} == {
        1: (True, True),
        2: (True, True),
        3: (False, False),
        4: (False, True),
    }
    assert found[3].chosen[0] == ("n2",)
    main([str(tmp_path), "--show", "1"])
    assert "4 starts, same nodes 50 %, in one reading 75 %, without room 0 %" in capsys.readouterr().out


def test_starts_of_the_same_second(tmp_path):
    """Job 2 has the higher priority, so it comes first and gets node 1; job 1 then finds room on node 2 only."""
    rows = [job(1, 1000, 1002, 1100, 4, "n2") + "|1", job(2, 1001, 1002, 1100, 6, "n1") + "|2"]
    (tmp_path / "cluster.txt").write_text(CLUSTER)
    table = "\n".join([FIELDS.replace(" ", "|") + "|Priority", *rows])
    (tmp_path / "jobs.txt.gz").write_bytes(gzip.compress(table.encode()))
    found = decisions_of(tmp_path)
    assert [(one.job, one.chosen[0]) for one in found] == [(2, ("n1",)), (1, ("n2",))]
