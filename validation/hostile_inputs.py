"""The inputs that the hostile trial damages, whole and small: one of each kind, and the commands that read it."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

import walltime as wt
from tests import slurm_forms
from tests.accounting_records import FORMS as RECORDS, fifty_jobs
from tests.batch_text import COBALT, LSF, MAPPING, PBS, TABLE
from tests.cli import HEADER, record
from tests.layouts import batsim, bjobs, completed, condor, flux, grid_engine, lassen_files, markdown, oar, qstat, sacct, shown, text
from tests.slurm_text import TEXT
from walltime.benchmark.suite import Suite, parse_suite

Command = tuple[str, ...]
Counter = Callable[[bytes], int | None]
SWF = HEADER + "".join(record(k, 10 * k, 5 + k, 1 + k % 4, 30 + k, user=k % 3) for k in range(1, 13))
CLUSTER = """name = "site"
second = "gpus"
policy = "easy"
[[pool]]
name = "cpu"
nodes = 4
procs = 8
[[pool]]
name = "gpu"
nodes = 2
procs = 8
gpus = 2
[[partition]]
name = "main"
pools = ["cpu", "gpu"]
max_time = "1-00:00:00"
[[partition]]
name = "whole"
pools = ["cpu"]
exclusive = true
tier = 2
[[outage]]
pool = "cpu"
begin = 40
end = 90
nodes = 2
announced = 10
[[limit]]
by = ["user"]
jobs = 3
[[share]]
account = "a"
shares = 3
[[qos]]
name = "high"
priority = 10
"""
PLAN = """[campaign]
name = "small"
seeds = 2
trim = "tsafrir06"
groups = ["class"]
[fixed]
trace = "log.swf"
procs = 4
shake = 5
[grid]
policy = ["easy", "conservative", "hybrid:2"]
estimates = ["exact", "f:2"]
[[zip]]
order = ["fcfs", "sjf"]
backfill_order = ["default", "default"]
"""
SUITE = """name = "classic"
version = 1
title = "a small one"
metrics = ["mean_bounded_slowdown", "mean_wait"]
overrun = "kill"
baselines = ["fcfs"]
[[subject]]
name = "small"
windows = [{}]
model = "lublin99"
jobs = 40
procs = 32
load = 0.8
first_seed = 1
seeds = 2
warm_jobs = 5
users = 5
estimates = "f:4"
"""


@dataclass(frozen=True)
class Input:
    """Files by their names, those of them that are damaged, and the commands that read them; `{folder}` stands for where they are.

    `is_log`: the first command describes a log, and what it counts is checked. `records`: how many records a file has, by a rule that is
    independent of the program; None where no simple one is.
    """

    kind: str
    files: Mapping[str, bytes]
    damaged: tuple[str, ...]
    commands: tuple[Command, ...]
    is_log: bool = False
    records: Counter | None = None


def _log(
    kind: str, name: str, content: bytes, *options: str, records: Callable[[bytes], int | None] | None = None, **files: bytes
) -> Input:
    of_log = (f"{{folder}}/{name}", "--procs", "64", *options)
    commands = (
        ("info", *of_log, "--json"),
        ("info", *of_log, "--json", "--skip-bad-lines"),
        ("simulate", *of_log, "--policy", "fcfs", "--json", "--skip-bad-lines"),
    )
    return Input(kind, {name: content} | {f"{key}.toml": text for key, text in files.items()}, (name,), commands, True, records)


def _swf_records(content: bytes) -> int | None:
    """Lines that are neither empty nor comments."""
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    lines = [line.strip() for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    return sum(1 for line in lines if line and not line.startswith(b";"))


def _slurm_json() -> bytes:
    def job(number: int, state: str, start: int, end: int) -> dict[str, object]:
        limit = {"set": True, "infinite": False, "number": 30}
        tres = {"requested": [], "allocated": [{"type": "cpu", "name": "", "id": 1, "count": 4}]}
        times = {"submission": 1772445600 + number, "eligible": 1772445600 + number, "start": start, "end": end, "elapsed": end - start}
        code = {"status": ["SUCCESS"], "return_code": {"set": True, "infinite": False, "number": 0}, "signal": {"id": {"set": False}}}
        known = {"job_id": number, "user": "anna", "account": "a", "partition": "main", "qos": "normal", "name": "run"}
        return known | {"state": {"current": [state]}, "time": times | {"limit": limit}, "tres": tres, "exit_code": code, "nodes": "n1"}

    jobs = [job(k, "COMPLETED" if k % 3 else "TIMEOUT", 1772445700 + 10 * k, 1772446300 + 20 * k) for k in range(1, 8)]
    return json.dumps({"meta": {"plugin": {}, "slurm": {"version": {"major": "24", "minor": "11"}}}, "jobs": jobs}, indent=1).encode()


def _parquet() -> bytes:
    from walltime.logs import read_log
    from walltime.logs.convert import write_log

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "log.swf").write_text(SWF)
        write_log(Path(folder) / "log.parquet", read_log(Path(folder) / "log.swf"))
        return (Path(folder) / "log.parquet").read_bytes()


def _csv() -> bytes:
    from walltime.logs import read_log
    from walltime.logs.convert import write_log

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "log.swf").write_text(SWF)
        write_log(Path(folder) / "log.csv", read_log(Path(folder) / "log.swf"))
        return (Path(folder) / "log.csv").read_bytes()


def _schedule(ending: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.swf"
        log.write_text(SWF)
        return wt.simulate(wt.read(log), "easy").write(Path(folder) / f"s.{ending}").read_bytes()


def _audited(kind: str, ending: str) -> Input:
    of_both = ("{folder}/log.swf", f"{{folder}}/s.{ending}")
    commands = (("audit", *of_both, "--policy", "easy", "--json"), ("audit", *of_both))
    return Input(kind, {"log.swf": SWF.encode(), f"s.{ending}": _schedule(ending)}, (f"s.{ending}",), commands)


def _snapshot() -> Input:
    from walltime.logs import write_swf
    from walltime.slurm import snapshot_at

    random = np.random.default_rng(5)
    count = 60
    requested = 3600 * 2 ** random.integers(0, 3, count)
    jobs = wt.Workload.from_arrays(
        submit=np.sort(random.integers(0, 40_000, count)),
        runtime=requested // 2,
        procs=random.integers(1, 9, count),
        requested=requested,
        machine_procs=16,
        columns={"user": random.integers(1, 5, count)},
    )
    with tempfile.TemporaryDirectory() as folder:
        snapshot_at(wt.simulate(jobs, "easy"), 30_000).write(Path(folder) / "now.json")
        write_swf(Path(folder) / "log.swf", jobs)
        files = {name: (Path(folder) / name).read_bytes() for name in ("now.json", "log.swf")}
    command = ("slurm", "start-times", "{folder}/now.json", "--history", "{folder}/log.swf", "--samples", "2", "--no-arrivals", "--json")
    return Input("snapshot", files, ("now.json",), (command,))


def _agent() -> Input:
    from walltime import learn
    from walltime.logs import write_swf

    jobs = wt.workloads.Lublin99().generate(jobs=640, machine_procs=32, load=0.8, seed=3)
    tiny = learn.TrainingSettings(episodes=24, together=8, group=4, decisions=500, batch=128, hidden=(4,), hidden_value=(4,))
    with tempfile.TemporaryDirectory() as folder:
        write_swf(Path(folder) / "log.swf", jobs)
        learn.train(wt.read(Path(folder) / "log.swf"), Path(folder) / "agent", seed=1, task=learn.Task(window=32), settings=tiny)
        files = {f"agent/{file.name}": file.read_bytes() for file in (Path(folder) / "agent").iterdir()}
        files["log.swf"] = (Path(folder) / "log.swf").read_bytes()
    names = tuple(name for name in files if name != "log.swf")
    commands = (("learn", "evaluate", "{folder}/agent", "--log", "{folder}/log.swf", "--json"),)
    return Input("agent", files, names, commands)


def _small_suite() -> Suite:
    loose = parse_suite(SUITE.format("").encode())
    sums = ", ".join(f'"{one.checksum}"' for one in loose.subjects[0].windows(check=False))
    return parse_suite(SUITE.format(sums).encode())


@contextlib.contextmanager
def _result() -> Iterator[Input]:
    """A result of a small suite, which is in the place of all others meanwhile."""
    from walltime.benchmark import run_suite

    suite = _small_suite()
    places = ("benchmark.result", "benchmark.standings", "benchmark.tables")
    with contextlib.ExitStack() as stack:
        for place in places:
            stack.enter_context(mock.patch(f"walltime.{place}.read_suite", return_value=suite))
        with tempfile.TemporaryDirectory() as folder:
            content = run_suite(suite, "easy", Path(folder) / "r.json", workers=1).read_bytes()
        commands = (
            ("benchmark", "verify", "{folder}/r.json", "--sample", "1", "--workers", "1"),
            ("benchmark", "leaderboard", "{folder}/r.json", "--json"),
        )
        yield Input("result", {"r.json": content}, ("r.json",), commands)


def _mapping() -> Input:
    commands = (("info", "{folder}/log.csv", "--mapping", "{folder}/m.toml", "--procs", "64", "--json"),)
    return Input("mapping", {"log.csv": TABLE.encode(), "m.toml": MAPPING.encode()}, ("m.toml",), commands, is_log=True)


def _predictions(ending: str) -> Input:
    """A file of predictions next to a log."""
    rows = "".join(f"{k},{5 + k},{20 + k},{10 * k}\n" for k in range(1, 13))
    content = f"job_id,predicted,p90,known_at\n{rows}".encode()
    if ending == "parquet":
        import polars as pl

        sink = io.BytesIO()
        pl.read_csv(content).write_parquet(sink)
        content = sink.getvalue()
    of_log = ("{folder}/log.swf", "--json")
    file = f"file:{{folder}}/p.{ending}"
    commands: tuple[Command, ...] = (
        ("simulate", *of_log, "--policy", "easy", "--predictor", file),
        ("predict", *of_log, "--predictor", f"{file},column=p90"),
        ("benchmark", "predictions", *of_log, "--only", "--copies", "0", "--workers", "1", "--predictor", file),
    )
    return Input(f"predictions-{ending}", {"log.swf": SWF.encode(), f"p.{ending}": content}, (f"p.{ending}",), commands)


def _unknown_table() -> bytes:
    """A table with columns of unknown meaning."""
    rows = [f"{n};u{n % 3};60;{n % 4 + 1};{1_700_000_000_000 + n * 1000};{1_700_000_060_000 + n * 1000};900;done" for n in range(1, 31)]
    return ("Job;Owner;Time Limit;Cores;Submitted;Started;Elapsed;Status\n" + "\n".join(rows) + "\n").encode()


def _json_lines() -> bytes:
    """The same kind of table as JSON lines."""
    rows = [{"job_id": n, "user": f"u{n % 3}", "submit_time": 1_700_000_000 + n, "runtime": 60 * n, "cores": 2} for n in range(1, 31)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _first(made: Iterable[str], lines: int, since: int = 0) -> bytes:
    """Some lines of a log in a layout."""
    return text(list(made)[since : since + lines])


def _joined() -> Input:
    """The three tables of a data set that are joined; all may be damaged."""
    import gzip

    files = {}
    for name, content in lassen_files().items():
        lines = (gzip.decompress(content) if name.endswith(".gz") else content).split(b"\n")
        files[f"log/{name.removesuffix('.gz')}"] = b"\n".join(lines[:25]) + b"\n"
    of_log = ("{folder}/log", "--procs", "64")
    commands: tuple[Command, ...] = (
        ("info", *of_log, "--json"),
        ("info", *of_log, "--json", "--skip-bad-lines"),
        ("simulate", *of_log, "--policy", "fcfs", "--json", "--skip-bad-lines"),
    )
    return Input("joined", files, tuple(files), commands, is_log=True)


def _machine() -> Input:
    commands = (("simulate", "{folder}/log.swf", "--machine", "{folder}/c.toml", "--policy", "easy", "--json"),)
    return Input("machine", {"log.swf": SWF.encode(), "c.toml": CLUSTER.encode()}, ("c.toml",), commands)


GPU_TABLE = "job_id,user,cluster,partition,cpus,gpus,limit,submit_time,start_time,end_time,state\n" + "".join(
    f"{n},u{n % 4},c{n // 25},{'ab'[n % 2]},{1 + n % 5},{n % 3},{60 * (n % 7 + 1)},{10**9 + 50 * n},{10**9 + 70 * n},{10**9 + 90 * n},"
    f"{'FAILED' if n % 9 == 0 else 'COMPLETED'}\n"
    for n in range(1, 41)
)
SMALL_MACHINE = """policy = "easy"
[[pool]]
name = "a"
nodes = 4
procs = 1
[[partition]]
name = "a"
pools = ["a"]
[[partition]]
name = "c"
pools = ["a"]
"""


def _gpu_table() -> Input:
    """A table with GPUs, two clusters and partitions, on machines that lack some of them."""
    of_log = ("{folder}/log.csv", "--procs", "8", "--json", "--skip-bad-lines")
    commands: tuple[Command, ...] = (
        ("info", *of_log),
        ("simulate", *of_log, "--machine", "{folder}/c.toml"),
        ("what-if", *of_log, "--change", "nodes+=10%", "--replications", "0", "--trim", "none"),
        ("calibrate", *of_log, "--trim", "none"),
        ("report", *of_log),
    )
    files = {"log.csv": GPU_TABLE.encode(), "c.toml": SMALL_MACHINE.encode()}
    return Input("gpu-table", files, ("log.csv",), commands, is_log=True)


def _squeue() -> Input:
    """The output of squeue --json with jobs that wait for many reasons, and of scontrol."""

    def job(number: int, **more: object) -> dict[str, object]:
        times = {"submit_time": 1772440000 + number, "eligible_time": 1772440000 + number, "start_time": 0}
        known = {"job_id": number, "user_name": "anna", "account": "a", "partition": "main", "qos": "normal", "name": "run"}
        size = {"cpus": 2, "node_count": 1, "time_limit": {"set": True, "infinite": False, "number": 60}, "priority": 10 + number}
        return known | times | size | {"job_state": ["PENDING"], "state_reason": "Priority", "tres_req_str": "cpu=2,mem=4G,node=1"} | more

    jobs = [
        job(1, job_state=["RUNNING"], start_time=1772444000, state_reason="None"),
        job(2),
        job(3, state_reason="PartitionTimeLimit", time_limit={"set": True, "infinite": False, "number": 99_999}),
        job(4, tres_req_str="cpu=2,mem=4G,node=1,gres/gpu=9", tres_per_node="gres/gpu:9"),
        job(5, memory_per_node={"set": True, "infinite": False, "number": 900_000}, tres_req_str="cpu=2,mem=900000M,node=1"),
        job(6, array_job_id=6, array_task_id={"set": False}, array_task_string="1-4%2"),
        job(7, partition="main,other"),
        job(8, state_reason="Dependency", dependency="afterok:2"),
    ]
    nodes = "".join(
        f"NodeName=n{k} CPUTot=4 Gres={'gpu:a100:2(S:0,1)' * (k > 2)} RealMemory=16000 State=IDLE Partitions=main\n" for k in range(1, 5)
    )
    cluster = (
        "ClusterName = tiny\nSchedulerType = sched/backfill\nPartitionName=main Default=YES MaxTime=1-00:00:00 Nodes=n[1-4] State=UP\n"
    )
    files = {
        "in/cluster.txt": (cluster + nodes).encode(),
        "in/squeue.json": json.dumps({"jobs": jobs}, indent=1).encode(),
        "log.swf": SWF.encode(),
    }
    commands: tuple[Command, ...] = (
        ("slurm", "cluster", "{folder}/in/cluster.txt", "--out", "{folder}/machine.toml"),
        ("slurm", "snapshot", "--from", "{folder}/in", "--time", "1772445600", "--out", "{folder}/now.json"),
        (
            *("slurm", "start-times", "{folder}/now.json", "--history", "{folder}/log.swf", "--samples", "2", "--replayed", "0"),
            *("--no-arrivals", "--json"),
        ),
    )
    return Input("squeue", files, ("in/cluster.txt", "in/squeue.json"), commands)


def _rows_as_csv(quote: str) -> bytes:
    """The rows of Slurm's text as CSV."""
    rows = (line.split("|") for line in TEXT.splitlines())
    return "".join(",".join(f"{quote}{cell.replace(',', ' ')}{quote}" for cell in row) + "\n" for row in rows).encode()


FORMS = {
    "sacct-parsable": "sacct -P",
    "sacct-offsets": "sacct -P with offsets",
    "sacct-delimiters": "sacct -P with odd delimiters",
    "sacct-semicolons": "CSV with semicolons",
    "sacct-numbered": "CSV with numbered rows",
    "sacct-parquet": "Parquet",
    "sacct-dates": "Parquet of dates with a zone, and durations",
    "sacct-lines": "JSON lines",
    "sacct-columns": "JSON of columns",
    "sacct-meta-last": "sacct --json, meta last",
    "sacct-jq": "jq -c .jobs[]",
    "slurmrestd-accounting": "slurmrestd's accounting 0.0.40",
    "slurmrestd-jobs": "slurmrestd's controller 0.0.44",
}
"""The forms of Slurm's records in `tests.slurm_forms` by kind of input."""


def _form(kind: str) -> Input:
    with tempfile.TemporaryDirectory() as folder:
        slurm_forms.FORMS[FORMS[kind]](Path(folder) / "log", slurm_forms.records(30))
        return _log(kind, "log", (Path(folder) / "log").read_bytes())


def _other_titles() -> bytes:
    """A table of Slurm's records with limits in hours and minutes, and with titles that sacct does not have."""
    rows = [slurm_forms.clock(row, " ") | {"Reqd": f"{k % 9:02d}:30", "GPUs": str(k % 3)} for k, row in enumerate(slurm_forms.records(30))]
    kept = [{"RunLimit" if name == "Reqd" else name: text for name, text in row.items() if "TRES" not in name} for row in rows]
    return "\n".join(";".join(line) for line in (kept[0], *(row.values() for row in kept))).encode()


def _archive() -> bytes:
    """An archive of OpenXDMoD, without titles."""
    times = "2026-03-02T08:00:00|2026-03-02T08:00:00|2026-03-02T08:0{0}:00|2026-03-02T09:01:00|01:0{0}:00"
    middle = f"castor|main|normal|bio|grp|45|ann|1001|{times}|0:0|COMPLETED|1|12|12|31000Mn|cpu=12,mem=31000M,node=1"
    line = f"{{0}}|{{0}}|{middle}|billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1|2-00:00:00|n[{{0}}]|x|y"
    return "\n".join(line.format(k) for k in range(1, 10)).encode()


def _fixed() -> bytes:
    """`sacct` without options, which cuts values."""
    widths = {"JobID": 12, "State": 10, "Submit": 19, "Start": 19, "End": 19, "AllocCPUS": 10, "Timelimit": 10}

    def line(row: Mapping[str, str]) -> str:
        cut = (row[name] if len(row[name]) <= width else f"{row[name][: width - 1]}+" for name, width in widths.items())
        return " ".join(text.rjust(width) for text, width in zip(cut, widths.values(), strict=True))

    rows = [slurm_forms.clock(row) for row in slurm_forms.records(30)]
    return "\n".join([line({name: name for name in widths}), line({n: "-" * w for n, w in widths.items()}), *map(line, rows)]).encode()


def _plan() -> Input:
    commands = (("campaign", "status", "{folder}/plan.toml"),)
    return Input("plan", {"log.swf": SWF.encode(), "plan.toml": PLAN.encode()}, ("plan.toml",), commands)


def _still(make: Callable[[], Input]) -> Callable[[], AbstractContextManager[Input]]:
    return lambda: contextlib.nullcontext(make())


INPUTS: dict[str, Callable[[], AbstractContextManager[Input]]] = {
    "swf": _still(lambda: _log("swf", "log.swf", SWF.encode(), records=_swf_records)),
    "sacct": _still(lambda: _log("sacct", "log.txt", TEXT.encode())),
    "slurm-json": _still(lambda: _log("slurm-json", "log.json", _slurm_json())),
    "pbs": _still(lambda: _log("pbs", "log.pbs", PBS.encode())),
    "lsf": _still(lambda: _log("lsf", "log.lsf", LSF.encode())),
    "alcf": _still(lambda: _log("alcf", "log.csv", COBALT.encode())),
    "torque": _still(lambda: _log("torque", "log.acct", RECORDS["Torque"](fifty_jobs()).encode())),
    "qstat": _still(lambda: _log("qstat", "qstat.txt", RECORDS["Torque, `qstat -f`"](fifty_jobs()).encode())),
    "qacct": _still(lambda: _log("qacct", "qacct.txt", RECORDS["Grid Engine, `qacct -j`"](fifty_jobs()).encode())),
    "slurm-events": _still(lambda: _log("slurm-events", "jobs.events", RECORDS["Slurm Simulator, events"](fifty_jobs()).encode())),
    "grid-engine-table": _still(lambda: _log("grid-engine-table", "sge.csv", RECORDS["Grid Engine, tables"](fifty_jobs()).encode())),
    "pbs-table": _still(lambda: _log("pbs-table", "pbs.csv", RECORDS["PBS, tables"](fifty_jobs()).encode())),
    "htcondor-table": _still(lambda: _log("htcondor-table", "ads.csv", RECORDS["HTCondor, tables"](fifty_jobs()).encode())),
    "table": _still(lambda: _log("table", "log.csv", TABLE.encode(), "--mapping", "{folder}/m.toml", m=MAPPING.encode())),
    "unknown-table": _still(lambda: _log("unknown-table", "log.csv", _unknown_table())),
    "json-lines": _still(lambda: _log("json-lines", "log.jsonl", _json_lines())),
    "parquet": _still(lambda: _log("parquet", "log.parquet", _parquet())),
    "csv": _still(lambda: _log("csv", "log.csv", _csv())),
    "untitled": _still(lambda: _log("untitled", "log.txt", _first(sacct(), 40, since=1))),
    "grid-engine": _still(lambda: _log("grid-engine", "accounting", _first(grid_engine(), 30))),
    "class-ads": _still(lambda: _log("class-ads", "history", _first(condor(), 40))),
    "oar-json": _still(lambda: _log("oar-json", "oarstat.json", oar().encode())),
    "qstat-json": _still(lambda: _log("qstat-json", "qstat.json", qstat().encode())),
    "flux": _still(lambda: _log("flux", "flux.json", flux().encode())),
    "scontrol": _still(lambda: _log("scontrol", "jobs.txt", shown().encode())),
    "jobcomp": _still(lambda: _log("jobcomp", "jobcomp.log", completed().encode())),
    "batsim": _still(lambda: _log("batsim", "batsim.json", batsim().encode())),
    "bjobs-json": _still(lambda: _log("bjobs-json", "bjobs.json", bjobs().encode())),
    "markdown": _still(lambda: _log("markdown", "table.md", markdown().encode())),
    "sacct-csv": _still(lambda: _log("sacct-csv", "log.csv", _rows_as_csv(""))),
    "sacct-quoted": _still(lambda: _log("sacct-quoted", "log.csv", _rows_as_csv('"'))),
    **{kind: _still(functools.partial(_form, kind)) for kind in FORMS},
    "sacct-other-titles": _still(lambda: _log("sacct-other-titles", "log.csv", _other_titles())),
    "sacct-archive": _still(lambda: _log("sacct-archive", "log.txt", _archive())),
    "sacct-fixed": _still(lambda: _log("sacct-fixed", "log.txt", _fixed())),
    "gpu-table": _still(_gpu_table),
    "squeue": _still(_squeue),
    "joined": _still(_joined),
    "mapping": _still(_mapping),
    "predictions-csv": _still(lambda: _predictions("csv")),
    "predictions-parquet": _still(lambda: _predictions("parquet")),
    "machine": _still(_machine),
    "plan": _still(_plan),
    "snapshot": _still(_snapshot),
    "agent": _still(_agent),
    "result": _result,
    "schedule-csv": _still(lambda: _audited("schedule-csv", "csv")),
    "schedule-swf": _still(lambda: _audited("schedule-swf", "swf")),
    "schedule-parquet": _still(lambda: _audited("schedule-parquet", "parquet")),
}
"""Contexts that create the input of each kind for its commands."""
