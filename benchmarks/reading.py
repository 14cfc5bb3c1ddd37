"""The time and memory to read a log: as SWF, as `sacct -P` prints it, as PBS writes it, and as a table; and ten million generated jobs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.common import Options, Result, child, show, spread
from walltime.logs.convert import write_workload
from walltime.workload.models import parse_model

SUBMITTED = 1_735_689_600
"""2025-01-01, from which on the jobs are submitted."""
HEADING = (
    "JobIDRaw|JobID|User|Account|Partition|QOS|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|NNodes|"
    "ReqTRES|AllocTRES|Reason|Flags|Priority|Reservation|SubmitLine|JobName"
)
Job = tuple[int, int, int, int, int, int]
"""Number, submission, start, runtime and request (s), processors."""


def reading(options: Options) -> Result:
    """Seconds and peak memory to read a log and make a workload of it, in a process of its own."""
    count = options.size(1_000_000, 20_000)
    result: Result = {"jobs": count, "formats": {}}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, line in FORMATS.items():
            path = Path(folder, "log.txt")
            with path.open("w") as file:
                file.writelines([f"{HEADINGS[name]}\n"] if name in HEADINGS else [])
                file.writelines(f"{line(job)}\n" for job in jobs(count))
            result["formats"][name] = measured(path, options)
        many = options.size(10_000_000, 20_000)
        for path in written(Path(folder), many):
            result["formats"][f"{''.join(path.suffixes)} of {many:,} jobs"] = measured(path, options)
    for name, one in result["formats"].items():
        rows.append((name, f"{one['bytes'] / 1e6:,.0f}", f"{one['seconds']['median']:.1f}", f"{one['peak_bytes'] / 1e9:.2f}"))
    show(f"reading {count:,} jobs", ("format", "MB", "s", "peak, GB"), rows)
    return result


def written(folder: Path, count: int) -> list[Path]:
    """Write files with this many generated jobs."""
    generated = parse_model("lublin99").generate(count, 4096, 0.8, 1)
    paths = [folder / f"log{ending}" for ending in (".swf.gz", ".parquet")]
    for path in paths:
        write_workload(path, generated)
    return paths


def measured(path: Path, options: Options) -> Result:
    """Seconds and peak memory to read a log, and its size."""
    runs = [child("read_a_log", path) for _ in range(options.long_runs)]
    peak = max(one["peak_bytes"] for one in runs)
    return {"seconds": spread([one["seconds"] for one in runs]), "peak_bytes": peak, "bytes": path.stat().st_size}


def jobs(count: int) -> Iterator[Job]:
    """Jobs that all have ended."""
    rng = np.random.default_rng(1)
    submit = SUBMITTED + np.cumsum(rng.integers(0, 30, count))
    start = submit + rng.integers(0, 3600, count)
    runtime, procs = rng.integers(1, 20_000, count), 2 ** rng.integers(0, 8, count)
    requested = 60 * rng.choice([30, 120, 360, 1440], count)
    columns = (column.tolist() for column in (np.arange(1, count + 1), submit, start, runtime, requested, procs))
    return zip(*columns, strict=True)


def swf_line(job: Job) -> str:
    """A record of the Standard Workload Format."""
    number, submit, start, runtime, requested, procs = job
    return f"{number} {submit - SUBMITTED} {start - submit} {runtime} {procs} -1 -1 {procs} {requested} -1 1 {number % 900} -1 -1 1 1 -1 -1"


def sacct_line(job: Job) -> str:
    """A line of `sacct -P`, with local times."""
    number, submit, start, runtime, requested, procs = job
    times = "|".join(str(np.datetime64(second, "s")) for second in (submit, submit, start, start + runtime))
    asked = f"billing={procs},cpu={procs},mem={4 * procs}G,node=1"
    return (
        f"{number}|{number}|user{number % 900}|account{number % 80}|main|normal|COMPLETED|0:0|{times}|{runtime}|{requested // 60}|{procs}|"
        f"{procs}|1|{asked}|{asked}|None|SchedBackfill,StartReceived|{number}||sbatch -J job{number % 5000} -n {procs} job.sh|"
        f"job{number % 5000}"
    )


def pbs_line(job: Job) -> str:
    """The end of a job in PBS accounting."""
    number, submit, start, runtime, requested, procs = job
    hours, rest = divmod(requested, 3600)
    return (
        f"01/01/2025 00:00:00;E;{number}.server;user=user{number % 900} group=account{number % 80} jobname=job{number % 5000} queue=main "
        f"ctime={submit} qtime={submit} etime={submit} start={start} exec_host=n1/0*{procs} exec_vnode=(n1:ncpus={procs}) "
        f"Resource_List.ncpus={procs} Resource_List.nodect=1 Resource_List.select=1:ncpus={procs} "
        f"Resource_List.walltime={hours:02d}:{rest // 60:02d}:00 session=1 end={start + runtime} Exit_status=0 run_count=1"
    )


def table_line(job: Job) -> str:
    """A row of a table whose columns are recognised, with a comma in some of the names."""
    number, submit, start, runtime, requested, procs = job
    times = ",".join(str(np.datetime64(second, "s")).replace("T", " ") for second in (submit, start, start + runtime))
    name = '"a, b"' if number % 500 == 0 else f"job{number % 5000}"
    return f"{number},user{number % 900},account{number % 80},main,{max(requested, runtime)},1,{procs},{times},{runtime},{name},COMPLETED"


FORMATS: dict[str, Callable[[Job], str]] = {"SWF": swf_line, "sacct -P": sacct_line, "PBS": pbs_line, "table (CSV)": table_line}
HEADINGS = {
    "SWF": "; MaxProcs: 4096",
    "sacct -P": HEADING,
    "table (CSV)": "job_id,user,account,partition,timelimit,nodes,cores,submit_time,start_time,end_time,run_time,name,state",
}
