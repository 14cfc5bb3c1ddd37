"""One job of every kind on a real Slurm: both readers of its job log agree, and its own description becomes a machine."""

from __future__ import annotations

from datetime import datetime, timedelta
from getpass import getuser

import numpy as np
import pytest

import walltime as wt
from tests.slurm.conftest import started
from tests.slurm.lab import Lab, wait_until
from tests.slurm.replay import printed
from walltime.machine import Limit, Partition, Pool, read_machine
from walltime.slurm import read_cluster

PARTITIONS = (
    "PartitionName=debug Nodes=n[1-3] MaxTime=UNLIMITED PriorityTier=5 PriorityJobFactor=3 QoS=few State=UP",
    "PartitionName=main Nodes=ALL Default=YES MaxTime=7-00:00:00 DefaultTime=60 State=UP",
    "PartitionName=whole Nodes=n[1-2] MaxTime=30 OverSubscribe=EXCLUSIVE State=UP",
)
FORMS = {
    "config.txt": "scontrol show config",
    "partition.txt": "scontrol show partition",
    "node.txt": "scontrol show node",
    "reservation.txt": "scontrol show reservation",
    "sinfo.json": "sinfo --json",
}
"""What the command of `walltime slurm cluster-command` prints in another form."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a cluster printed that ran one job of every kind: jobs.txt.gz, jobs.json, cluster.txt, and FORMS."""
    folder = tmp_path_factory.mktemp("kinds")
    settings = {"GresTypes": "gpu", "AccountingStorageTRES": "gres/gpu", "AccountingStorageEnforce": "associations,limits,qos"}
    with started(
        settings=settings,
        partitions=PARTITIONS,
        node="Gres=gpu:2",
        gres="Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n",
        before=accounts,
    ) as lab:
        submit_all(lab)
        lab.wait_for_jobs(180)
        begin = datetime.now() + timedelta(days=3)
        maintenance = ("StartTime=" + begin.strftime("%Y-%m-%dT08:00:00"), "Duration=600", "Nodes=n[2-3]", f"Users={getuser()}")
        lab.run("scontrol", "create", "reservation", "ReservationName=upgrade", "Flags=MAINT", *maintenance)
        lab.run("scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=broken CPUTot=99")
        lab.shell(printed("sacct-command", "--since=now-1day", f"--out={folder / 'jobs.txt.gz'}"))
        (folder / "jobs.json").write_text(lab.run("sacct", "--allusers", "--duplicates", "--json"))
        lab.shell(printed("cluster-command", f"--out={folder / 'cluster.txt'}"))
        for name, command in FORMS.items():
            (folder / name).write_text(lab.shell(command))
    return folder


def accounts(lab: Lab) -> None:
    """An account and a quality of service, which must be there before slurmctld."""
    lab.run("sacctmgr", "-iQ", "add", "qos", "few", "MaxJobsPerUser=3", "GrpTRES=cpu=12", "Priority=10")
    lab.run("sacctmgr", "-iQ", "add", "account", "physics", "fairshare=3")
    lab.run("sacctmgr", "-iQ", "add", "user", getuser(), "account=physics", "fairshare=2")
    lab.run("sacctmgr", "-iQ", "modify", "user", getuser(), "set", "defaultaccount=physics")


def submit_all(lab: Lab) -> None:
    """Jobs of every kind; those that would never end are cancelled."""
    lab.submit("-J", "timeout", "-t", "1", "-n", "1", wrap="sleep 600")
    lab.submit("-J", "ok", "-t", "5", "-n", "2", wrap="sleep 2")
    lab.submit("-J", "steps", "-t", "0-1", "-n", "2", "-N", "2", wrap="srun -n1 sleep 1; srun -n1 false; true")
    lab.submit("-J", "fail", "-t", "10", wrap="exit 3")
    lab.submit("-J", "odd|name, ä", "-t", "1-00:00:00", "-n", "4", "--comment=c|d", wrap="sleep 1")
    lab.submit("-J", "the separator\x1f itself", "-t", "2", wrap="sleep 1")
    lab.submit("-J", "array", "-t", "2", "-a", "0-4%2", wrap="sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]")
    lab.submit("-J", "unlimited", "-p", "debug", "-t", "UNLIMITED", wrap="sleep 1")
    lab.submit("-J", "default", wrap="sleep 1")
    lab.submit("-J", "partition", "-p", "debug", wrap="sleep 1")
    lab.submit("-J", "gpus", "-t", "2", "--gres=gpu:1", wrap="sleep 1")
    lab.submit("-J", "whole", "-p", "whole", "-t", "2", "-n", "5", wrap="sleep 1")
    lab.submit("-J", "exclusive", "-t", "2", "-N", "2", "--exclusive", wrap="sleep 1")
    lab.submit("-J", "shrunk", "-t", "20", "--time-min=3", wrap="sleep 1")
    first = lab.submit("-J", "first", "-t", "4", wrap="exit 1")
    never = lab.submit("-J", "never", "-t", "4", "-d", f"afterok:{first}", wrap="true")
    held = lab.submit("-J", "held", "-H", "-t", "4", wrap="true")
    later = lab.submit("-J", "later", "-t", "4", "--begin=now+1hour", wrap="true")
    cancelled = lab.submit("-J", "cancelled", "-t", "3", wrap="sleep 600")
    again = lab.submit("-J", "again", "-t", "4", "--requeue", wrap='[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 600')
    for job in (cancelled, again):
        wait_until(f"job {job}", lambda job=job: lab.run("squeue", "-h", "-j", str(job), "-o", "%T").strip() == "RUNNING", 60)
    lab.run("scancel", str(cancelled), str(never), str(held), str(later))
    lab.run("scontrol", "requeue", str(again))
    # a job that was put back waits for two minutes; it need not here
    waits = ("squeue", "-h", "-j", str(again), "-o", "%T")
    wait_until("the requeue", lambda: lab.run(*waits).strip() == "PENDING", 60)
    lab.run("scontrol", "update", f"JobId={again}", "StartTime=now")


def test_both_forms_of_the_job_log_agree(folder):
    text = wt.logs.read_log(folder / "jobs.txt.gz", time_zone="UTC")
    other = wt.logs.read_log(folder / "jobs.json", time_zone="UTC")
    assert text.records == other.records >= 22
    # a separator in texts is a matter of sacct -P
    assert dict(text.noticed) == {**other.noticed, "delimiter_in_text": 1}
    assert {rule: count for rule, count in text.dropped.items() if rule != "step"} == dict(other.dropped)
    assert dict(text.changed) == {**other.changed, "shrunk_limit": 1}
    compared = sorted(set(text.columns) & set(other.columns))
    assert len(compared) > 20
    apart = {}
    for name in compared:
        rows = zip(values_of(text, name), values_of(other, name), values_of(other, "executable"), strict=True)
        apart |= {name: found} if (found := [job for mine, others, job in rows if mine != others]) else {}
    # 22.05's JSON has neither exit codes nor command lines, which have the limit of a shrunk job
    newer = '"submit_line"' in (folder / "jobs.json").read_text()
    old = {} if newer else {"exit_code": ["fail", "array", "first"], "requested": ["shrunk"]}
    if not newer:  # how the first run of a requeued job ended depends on when it was stopped
        apart["exit_code"] = [job for job in apart["exit_code"] if job != "again"]
    assert {name: sorted(jobs) for name, jobs in apart.items()} == {name: sorted(jobs) for name, jobs in old.items()} | {
        "executable": ["the separator\x1f itself"]
    }


def values_of(log, name):
    """A column in order of jobs and their runs, with names in place of their numbers; each form has orders of its own."""
    values = log.column(name)[np.lexsort((log.column("submit"), log.column("job_id")))].tolist()
    return [log.names[name][k - 1] if k > 0 else None for k in values] if name in log.names else values


def test_the_job_log_says_what_was_done(folder):
    log = wt.logs.read_log(folder / "jobs.txt.gz", time_zone="UTC")
    names = np.array([log.names["executable"][k - 1] if k > 0 else "" for k in log.column("executable")])

    def of(name: str, column: str) -> list[int]:
        return log.column(column)[names == name].tolist()

    assert of("ok", "status") == [1]
    assert of("fail", "exit_code") == [3]
    assert sorted(of("array", "status")) == [0, 1, 1, 1, 1]
    assert of("timeout", "runtime")[0] > 60 == of("timeout", "requested")[0]
    assert of("unlimited", "requested") == [365 * 86_400]
    assert of("default", "requested") == [3600]
    assert of("gpus", "gpus") == [1]
    assert of("whole", "allocated_procs") == of("exclusive", "allocated_procs") == [8]
    assert of("shrunk", "requested") == [1200]
    assert of("cancelled", "status") == [5]
    assert len(of("again", "status")) == 2
    assert of("odd|name, ä", "requested") == [86_400]
    assert of("", "status") == [1]  # where SubmitLine ends cannot be told
    assert log.noticed["delimiter_in_text"] == 1
    assert {"never", "held", "later"}.isdisjoint(names)


def test_the_description_of_the_cluster_is_a_machine(folder, tmp_path):
    found = read_cluster(folder / "cluster.txt")
    assert found == read_cluster(folder / "cluster.txt", folder / "sinfo.json")
    machine = found.machine
    assert machine.pools == (Pool("n", 2, 4, 2), Pool("n-2", 1, 4, 2), Pool("n-3", 1, 4, 2))
    assert machine.partitions == (
        Partition("main", ("n", "n-2", "n-3"), tier=1, max_time=604_800),
        Partition("debug", ("n", "n-2"), tier=5, job_factor=3),
        Partition("whole", ("n",), exclusive=True, tier=1, max_time=1800),
    )
    *upgrade, drained = machine.outages
    assert drained.pool == "n-3"
    assert timedelta(0) < drained.end - drained.begin < timedelta(minutes=10)  # from the time of Slurm's reason until the export
    assert [(one.pool, one.nodes, one.announced) for one in upgrade] == [("n", 1, 0), ("n-2", 1, 0)]
    assert all(one.end - one.begin == timedelta(hours=10) for one in upgrade)
    assert machine.limits == (Limit(("user",), "debug", jobs=3), Limit((), "debug", procs=12))
    assert [(one.account, one.user, one.shares) for one in machine.shares if one.account == "physics"] == [
        ("physics", None, 3),
        ("physics", getuser(), 2),
    ]
    assert {one.name: one.priority for one in machine.qos} == {"normal": 0, "few": 10}
    assert (machine.name, machine.policy, machine.second) == ("lab", "slurm", "gpus")
    assert machine.slurm["SchedulerParameters"].startswith("bf_interval=2,")
    (tmp_path / "machine.toml").write_text(found.text())
    assert read_machine(tmp_path / "machine.toml") == machine


def test_every_form_of_the_description_says_the_same(folder):
    forms = read_cluster(*(folder / name for name in FORMS if name.endswith(".txt"))).machine
    machine = read_cluster(folder / "cluster.txt").machine

    def begins(machine):  # each form was exported at a time of its own, which is when outages end
        return [(one.pool, one.nodes, one.begin) for one in machine.outages]

    assert (forms.pools, forms.partitions, forms.slurm) == (machine.pools, machine.partitions, machine.slurm)
    assert begins(forms) == begins(machine)
    by_json = read_cluster(folder / "sinfo.json").machine
    assert (by_json.pools, begins(by_json)) == (machine.pools, begins(machine)[-1:])
    assert {one.name for one in by_json.partitions} == {"main", "debug", "whole"}


def test_the_log_can_be_simulated_on_the_machine(folder):
    jobs = wt.read(folder / "jobs.txt.gz", time_zone="UTC", procs=16)
    schedule = wt.simulate(jobs, "easy", machine=read_cluster(folder / "cluster.txt").machine)
    assert len(schedule) >= 20
