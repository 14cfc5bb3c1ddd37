"""Shapes of Slurm's records that sites have met, each with the right values."""

import json

import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from tests.slurm_forms import BEGIN, objects, records
from tests.slurm_text import job
from walltime.logs import read_log

HEADING = "JobIDRaw|User|Partition|State|Submit|Start|End|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS"


def row(number, state="COMPLETED", submit=0, start=10, run=600, **more):
    values = {
        **{"JobIDRaw": number, "User": "ann", "Partition": "main", "State": state, "Submit": BEGIN + submit, "Start": BEGIN + start},
        **{"End": BEGIN + start + run, "ElapsedRaw": run, "Timelimit": "01:00:00", "ReqCPUS": 4, "AllocCPUS": 4},
    }
    return "|".join(str(value) for value in (values | more).values())


@pytest.fixture
def read(tmp_path):
    def read(*lines, name="log.txt", **options):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        return read_log(tmp_path / name, **options)

    return read


def archived(number, tres="cpu=12,mem=31000M,node=1", allocated="billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1", name="x|y"):
    """A line of an archive of OpenXDMoD."""
    times = "2026-03-02T08:00:00|2026-03-02T08:00:00|2026-03-02T08:01:00|2026-03-02T09:01:00|01:00:00"
    middle = f"castor|main|normal|bio|grp|45|ann|1001|{times}|0:0|COMPLETED|1|12|12|31000Mn"
    return "|".join([f"{number}|{number}|{middle}", *([tres, allocated] if allocated else []), "2-00:00:00", f"n[{number}]", name])


def test_archive_without_titles__is_recognised(read):
    log = read(archived(1), archived(2, name="plain"))
    found = job(log, 1)
    assert (log.format, log.records, dict(log.noticed)["delimiter_in_text"]) == ("slurm", 2, 1)
    assert {name: found[name] for name in ("wait", "runtime", "requested", "allocated_procs", "gpus", "requested_mem_mb", "node_list")} == {
        "wait": 60, "runtime": 3600, "requested": 172_800, "allocated_procs": 12, "gpus": 2, "requested_mem_mb": 31_000,
        "node_list": "n[1]",
    }  # fmt: skip
    assert (found["executable"], found["cluster"], found["queue"], found["group"]) == ("x|y", "castor", "normal", "bio")


def test_archive_of_an_earlier_version__has_no_resources(read):
    log = read(archived(1, allocated=""), archived(2, allocated=""))
    assert (job(log, 2)["requested_mem_mb"], "gpus" in log.columns) == (31_000, False)


def test_rows_without_titles__are_slurms_by_their_values(read):
    lines = [
        f"{400 + k}|ann|main|2026-03-02T10:0{k}:00|2026-03-02T10:0{k}:30|2026-03-02T11:00:00|{59 - k:02}:30|02:00:00|{k % 3 + 1}|COMPLETED|"
        f"billing={k},cpu={k % 3 + 1},gres/gpu:a100=2,mem=16G,node=1"
        for k in range(1, 9)
    ]
    never = "409|ann|main|2026-03-02T10:09:00|Unknown|2026-03-02T11:00:00|00:00:00|02:00:00|8|NODE_FAIL|"
    log = read(*lines, never)
    assert (log.format, log.records, dict(log.dropped)) == ("slurm", 8, {"never_started": 1})
    assert (log.column("gpus").tolist(), log.names["gpu_type"]) == ([2] * 8, ("a100",))


def test_rows_without_titles__that_cannot_be_told_are_refused_with_the_remedy(read):
    with raises(wt.LogError, "missing_titles", "log.txt"):
        read("   7  COMPLETED 2026-03-02T10:00:00 2026-03-02T10:01:00     ", "   8     FAILED 2026-03-02T10:00:00 2026-03-02T10:01:00     ")


def test_noise_before_the_titles__is_counted(read):
    log = read(
        "sacct: error: slurmdbd: Too wide of a date range in query",
        "[ann@login ~]$ sacct -P",
        f"\x1b[1m{HEADING}",
        row(1),
        f"{row(2)}\x1b[0m",
    )
    assert (log.records, dict(log.noticed)) == (2, {"other_line": 2})


@pytest.mark.slow
def test_info__counts_lines_that_it_cannot_read(read, tmp_path, capsys):
    lines = [HEADING, row(1), row(2, run=-1359980917), row(3), "[ann@login ~]$ exit"]
    with raises(wt.LogError, "bad_line", 5):
        read(*lines)
    status, out, err = call(capsys, "info", tmp_path / "log.txt", "--procs", "8", "--json")
    assert (status, json.loads(out)["records"], [bad["line"] for bad in json.loads(out)["bad_lines"]]) == (0, 4, [3, 5])
    assert "2 of 4 lines skipped" in err


def test_repeated_records__are_one_job(read):
    log = read(HEADING, row(1), row(2), row(1), HEADING, row(2), row(2, submit=5))
    assert (log.column("job_id").tolist(), dict(log.dropped)) == ([1, 2, 2], {"repeated_record": 2})


def test_tasks_of_an_array__are_not_repeated_records(read):
    heading = HEADING.replace("JobIDRaw", "JobID")
    log = read(heading, row("7_1"), row("7_2"), row("8+0"), row("8+1"), row("7_1"))
    assert (log.records, dict(log.dropped)) == (4, {"repeated_record": 1})


RUNS = (
    row(1, "REQUEUED", 0, 10, 100),
    row(1, "NODE_FAIL", 110, 200, 50),
    row(1, "COMPLETED", 250, 400, 600),
    row(2, "PREEMPTED", 0, 10, 70),
    row(2, "RUNNING", 80, 90, 0),
    row(3, "FAILED", 0, 10, 30),
    row(3, "COMPLETED", 500, 510, 30),
)


def test_runs_of_a_job__can_be_joined(read):
    log = read(HEADING, *RUNS, join_runs=True)
    assert (dict(log.dropped), dict(log.changed)) == ({"earlier_run": 3, "still_running": 1}, {"joined_runs": 1})
    found = {name: log.column(name)[0] for name in ("submit", "wait", "runtime", "earlier_runtime", "status")}
    assert found == {"submit": 0, "wait": 400, "runtime": 600, "earlier_runtime": 150, "status": 1}
    assert log.column("job_id").tolist() == [1, 3, 3]  # a failed job that was submitted again is not joined


def test_runs_of_a_job__are_jobs_by_default(read, tmp_path, capsys):
    assert read(HEADING, *RUNS).column("job_id").tolist() == [1, 1, 1, 2, 3, 3]
    facts = json.loads(call(capsys, "info", tmp_path / "log.txt", "--procs", "8", "--json", "--join-runs")[1])
    assert (facts["dropped"], facts["changed"]["joined_runs"]) == ({"earlier_run": 3, "still_running": 1}, 1)
    lost = next(rule for rule in facts["left_out"]["rules"] if rule["rule"] == "earlier_run")
    runs = [line.split("|") for line in RUNS]
    procs = [int(one[HEADING.split("|").index("AllocCPUS")]) for one in runs]
    seconds = [100, 50, 600, 70, 0, 30, 30]
    work = [one * two for one, two in zip(procs, seconds, strict=True)]
    assert lost["core_seconds"] == work[0] + work[1] + work[3]
    assert lost["share_of_work"] == pytest.approx(lost["core_seconds"] / sum(work))


@pytest.mark.slow
def test_clusters__are_named(read, tmp_path, capsys):
    lines = [f"{HEADING}|Cluster", *(f"{row(k)}|{name}" for k, name in ((1, "sun"), (2, "moon"), (1, "moon")))]
    log = read(*lines)
    assert (log.records, dict(log.noticed)) == (3, {"several_clusters": 1})
    status, out, _ = call(capsys, "simulate", tmp_path / "log.txt", "--procs", "8", "--policy", "easy")
    assert (status, "sun 1, moon 2" in out) == (0, True)
    status, out, _ = call(capsys, "simulate", tmp_path / "log.txt", "--procs", "8", "--policy", "easy", "--by", "cluster")
    assert "cluster moon" in out


def test_machine_with_gpus__is_named_where_the_log_has_none(read, tmp_path, capsys):
    read(HEADING, row(1), row(2))
    (tmp_path / "m.toml").write_text(
        'second="gpus"\n[[pool]]\nname="g"\nnodes=1\nprocs=16\ngpus=4\n[[partition]]\nname="main"\npools=["g"]\n'
    )
    command = ("simulate", tmp_path / "log.txt", "--machine", tmp_path / "m.toml", "--policy", "easy")
    assert "AccountingStorageTRES" in call(capsys, *command)[2]


def test_steps__give_the_use_of_memory_and_gpus(read):
    more = "TotalCPU|UserCPU|MaxRSS|AveRSS|TRESUsageInTot|TRESUsageInAve|AllocTRES|ConsumedEnergyRaw|ReqMem"
    log = read(
        f"{HEADING}|{more}",
        f"{row(1)}|01:00:00|50:00|||||cpu=4,gres/gpu=2|9000|4Gn",
        f"{row('1.batch', End='')}|01:00:00|50:00|2048K|1024K|mem=4M,gres/gpuutil=120,gres/gpumem=1G|mem=1M,gres/gpuutil=60||0|",
        f"{row('1.0', End='')}|00:10:00|10:00|4096K|3M|mem=8M,gres/gpuutil=20|mem=3M||0|",
        f"{row(2)}|||||||||1000Mc",
        f"{row('2.batch', 'REQUEUED', start=0)}|||9G||||||",  # before the job's start: of an earlier run
        f"{row(3)}|00:00:00|?||||||0|?",
    )
    found = {name: job(log, 1)[name] for name in ("used_mem_mb", "max_rss_mb", "ave_rss_mb", "gpu_mem_mb", "gpu_use", "energy")}
    assert found == {"used_mem_mb": 8, "max_rss_mb": 4, "ave_rss_mb": 3, "gpu_mem_mb": 1024, "gpu_use": 60, "energy": 9000}
    assert (job(log, 1)["cpu_time"], job(log, 1)["user_cpu_time"], job(log, 1)["requested_memory"]) == (900, 3000, -1)
    assert [job(log, 2)[name] for name in ("used_mem_mb", "requested_mem_mb", "requested_memory")] == [-1, 4000, 1024_000]
    assert [job(log, 3)[name] for name in ("cpu_time", "user_cpu_time", "requested_mem_mb", "energy")] == [-1] * 4
    assert dict(log.noticed) == {"unreadable_value": 1}


def test_abbreviated_counts__are_those_of_the_resources(read):
    log = read(f"{HEADING}|NNodes|AllocTRES", f"{row(1, AllocCPUS='70K')}|1.25K|cpu=71690,node=1283", f"{row(2, AllocCPUS='70K')}|1.25K|")
    assert (log.column("allocated_procs").tolist(), log.column("nodes").tolist()) == ([71_690, 71_680], [1283, 1280])


def test_old_resources__are_of_a_node_where_requested(read):
    log = read(f"{HEADING}|NNodes|ReqGRES|AllocGRES", f"{row(1)}|2|gpu:a100:2|gpu:4", f"{row(2)}|3|gpu:2|")
    assert (log.column("gpus").tolist(), log.column("requested_gpus").tolist()) == ([4, 6], [4, 6])


def test_states__are_kept_as_they_are(read):
    states = ("OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "TIMEOUT", "DEADLINE", "CANCELLED by 7", "BOOT_FAIL")
    log = read(HEADING, *(row(k, state) for k, state in enumerate(states, 1)))
    assert log.names["state"] == tuple(state.split()[0] for state in states)
    assert log.column("status").tolist() == [0, 0, 0, 0, 0, 5, 0]


def test_fixed_width__uses_cut_values_as_far_as_they_go(read):
    log = read(
        "               JobID      State              Submit               Start                 End    NCPUS  Timelimit",
        "-------------------- ---------- ------------------- ------------------- ------------------- -------- ----------",
        "              551021 CANCELLED+ 2026-03-02T20:51:10 2026-03-02T21:41:40 2026-03-02T22:01:16       16 Partition+",
        "       551022_[1-10+    PENDING 2026-03-02T20:51:10             Unknown             Unknown       16 1-00:00:00",
        "          551023_97+  COMPLETED 2026-03-02T20:51:10 2026-03-02T21:41:40 2026-03-02T22:01:16       16  UNLIMITED",
        "          551023_97+  COMPLETED 2026-03-02T20:51:10 2026-03-02T21:41:40 2026-03-02T22:01:16       16  UNLIMITED",
    )
    assert (log.records, dict(log.dropped)) == (3, {"still_pending": 1})
    assert log.column("array_job").tolist() == [-1, 551_023, 551_023]  # two tasks whose numbers are cut alike
    assert log.column("requested").tolist()[0] == -1


def test_fixed_width__says_which_title_is_not_above_its_dashes(read):
    with raises(wt.LogError, "unaligned_titles", 1, "'State'"):
        read("JobID    State     Submit", "------ ----- ------------------- --------", "1234567 COMPLETED 2026-03-02T20:51:10 00:10:00")


@pytest.mark.slow
def test_json__is_recognised_at_any_length(read, tmp_path):
    long = [one | {"submit_line": "x" * 2000} for one in objects(records()) for _ in range(8)]
    log = read(json.dumps({"jobs": long, "meta": {"slurm": {}}}), name="log")
    assert log.records == 44
    assert dict(log.dropped)["repeated_record"] == 350


@pytest.mark.slow
@pytest.mark.parametrize("indent", [None, 1])
def test_json__with_a_byte_order_mark(indent, read):
    plain, marked = (read(mark + json.dumps({"jobs": objects(records())}, indent=indent), name="log") for mark in ("", "\ufeff"))
    assert (marked.records, dict(marked.dropped)) == (plain.records, dict(plain.dropped))


def test_json_lines__of_an_old_squeue_have_plain_numbers(read):
    one = {"job_id": 7, "job_state": "COMPLETED", "submit_time": BEGIN, "start_time": BEGIN + 5, "end_time": BEGIN + 65, "time_limit": 4}
    log = read(json.dumps(one | {"cpus": 2, "nodes": "n1", "exit_code": 256, "array_job_id": None}), name="log")
    assert [job(log, 7)[name] for name in ("wait", "runtime", "requested", "allocated_procs", "exit_code")] == [5, 60, 240, 2, 1]


def test_scontrol__is_read_by_the_same_rules(read):
    log = read(
        "JobId=7 JobName=a b UserId=ann(1001) Account=bio QOS=normal JobState=NODE_FAIL RunTime=00:00:00 TimeLimit=1-00:00:00 "
        "SubmitTime=2026-03-02T10:00:00 StartTime=Unknown EndTime=2026-03-02T10:10:00 NumNodes=1 NumCPUs=4 TRES=cpu=4,node=1",
        "JobId=9 ArrayJobId=8 ArrayTaskId=3 JobName=c UserId=bob(1002) JobState=COMPLETED RunTime=00:10:00 TimeLimit=1-00:00:00 "
        "SubmitTime=2026-03-02T10:00:00 StartTime=2026-03-02T10:01:00 EndTime=2026-03-02T10:11:00 NumNodes=1 NumCPUs=4 "
        "TRES=cpu=4,node=1,gres/gpu:a100=2",
    )
    assert (log.format, dict(log.dropped)) == ("slurm", {"never_started": 1})
    assert [job(log, 9)[name] for name in ("user", "gpus", "array_job", "array_task", "runtime")] == ["bob", 2, 8, 3, 600]


@pytest.mark.parametrize("huge", ["1e999", "1e300", "-1e20"])
def test_json_lines__number_beyond_all_times_is_a_bad_line(huge, read):
    heading = HEADING.replace("Submit", "Submit|Eligible").split("|")
    rows = [dict(zip(heading, row(number, Submit=f"{BEGIN}|{BEGIN}").split("|"), strict=True)) for number in (1, 2, 3)]
    lines = [json.dumps(one | {"Submit": BEGIN, "Eligible": 77 if one["JobIDRaw"] == "2" else BEGIN}) for one in rows]
    log = read(*lines, name="log.jsonl").records
    damaged = read(*(line.replace(": 77", f": {huge}") for line in lines), name="log.jsonl", skip_bad_lines=True)
    assert (log, damaged.records, len(damaged.bad_lines)) == (3, 2, 1)
