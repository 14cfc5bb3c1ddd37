"""Run suites, and write and check their results, which are verifiable files with a line for each window."""

import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from walltime.benchmark.suite import Suite, read_suite
from walltime.errors import OutputError, PolicyError
from walltime.files import json_lines, whole_file
from walltime.metrics import stratified_interval
from walltime.permission import check_data, only
from walltime.policy import named_files
from walltime.provenance import version
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.simulation.windows import LogWindow, log_cost
from walltime.wording import printable
from walltime.workload import MAX_TIME

Result = dict[str, Any]
NumberedWindow = tuple[str, int, LogWindow]
"""The name of a subject, the number of its window, and the window."""
SCHEMA = 1
TOLERANCE = 1e-9
"""Largest relative difference of equal means, because machines add numbers in different orders; schedules must be identical."""


def run_suite(
    suite: Suite | str, policy: str, out: str | Path, *, workers: int | None = None, progress: Callable[[int], None] | None = None
) -> Path:
    """Run a suite under a scheduler and write the result to `out`, a file that ends in .json or a folder; returns the file.

    `policy`: the specification of a scheduler, or `FILE.py:NAME` for a user-defined one. Finished windows are stored next to the file, so
    that the same call resumes after an interruption. `workers`: threads, by default one per core. `progress` is called with the number of
    finished windows.

    Raises PolicyError for an unknown suite or scheduler, WorkloadError and LogError for jobs that differ from the suite's or are missing,
    OutputError for a folder that cannot be written.
    """
    suite = read_suite(suite) if isinstance(suite, str) else suite
    scheduler = Scheduler.of(policy)
    header = _header(suite, policy, scheduler)
    windows = _windows(suite)
    path = Path(out)
    if path.suffix != ".json" or path.is_dir():
        path /= file_name(suite, policy)
    part = path.with_suffix(".part")
    done = _read_part(part, header)
    missing = [one for one in windows if one[:2] not in done]
    writing = threading.Lock()

    def run(number: int, check: Callable[[int], None]) -> None:
        subject, place, window = missing[number]
        row = measure(window, scheduler, suite, check) | {"subject": subject, "window": place}
        with writing, part.open("a") as file:
            file.write(json.dumps(row) + "\n")
        done[subject, place] = row

    before = len(done)
    in_threads(run, len(missing), workers, None if progress is None else lambda count: progress(before + count))
    rows = [done[subject, place] for subject, place, _ in windows]
    content = header | {"totals": totals(rows, suite.metrics), "windows": rows}
    with whole_file(path) as sink:
        sink.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
    part.unlink(missing_ok=True)
    return path


def measure(window: LogWindow, scheduler: Scheduler, suite: Suite, check: Callable[[int], None] | None = None) -> dict[str, Any]:
    """Return the row of a window: checksums of its jobs and of the schedule (all start times), and the metrics."""
    schedule = simulate(window.jobs, scheduler, overrun=suite.overrun, progress=check)
    summary = window.summary(schedule)
    starts = hashlib.sha256(np.ascontiguousarray(schedule.start, "<i8").tobytes()).hexdigest()
    values = {name: float(getattr(summary, name)) for name in suite.metrics}
    return {"jobs": window.checksum, "measured": summary.measured_jobs, "schedule": starts, **values}


def totals(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, Any]:
    """Return the geometric mean over windows of each metric with its 90 % interval; 1 s is added to times.

    The subjects are fixed, so the interval covers only differences between windows of a subject.
    """
    by_metric = {}
    for name in metrics:
        subjects = [row["subject"] for row in rows]
        interval = stratified_interval(log_cost(np.array([row[name] for row in rows]), name), subjects)
        back = 0.0 if "slowdown" in name else 1.0
        by_metric[name] = {key: math.exp(getattr(interval, key)) - back for key in ("mean", "low", "high")}
    return by_metric


def file_name(suite: Suite, policy: str) -> str:
    """Return the file name of a result, from the suite and the scheduler, in portable characters."""
    plain = re.sub(r"[^A-Za-z0-9.=-]+", "-", policy).strip("-")[:60]
    return f"{suite.name}-{suite.version}-{plain}-{hashlib.sha256(policy.encode()).hexdigest()[:6]}.json"


def read_result(path: str | Path) -> Result:
    """Read a result; raises OutputError for any other file."""
    try:
        content: Any = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(
            f"{path}: not a benchmark result ({getattr(error, 'strerror', 'not valid JSON')}); give a file written by benchmark run",
            "not_a_result",
        ) from None
    rows = content.get("windows") if isinstance(content, dict) and content.get("schema") == SCHEMA else None
    is_valid = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    if not is_valid or not all(isinstance(content.get(name), str) for name in ("suite", "policy")):
        raise OutputError(f"{path}: not a benchmark result; give a file written by benchmark run", "not_a_result")
    return content


def metric_of(row: Mapping[str, Any], name: str) -> float:
    """Return a metric of a window, a time (s) or a slowdown; nan for a missing or invalid number."""
    value: Any = row.get(name)
    return float(value) if type(value) in (int, float) and 0 <= value < MAX_TIME else math.nan


def verify_result(
    path: str | Path,
    *,
    own: Sequence[str | Path] = (),
    sample: int | None = 3,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[str]:
    """Return the faults of a result as sentences; an empty list if it is correct.

    The suite's version and definition, every window's jobs, the totals, and a user-defined policy's files must be the same; a random
    `sample` of windows (None for all) is simulated again, and the schedules must be equal, job for job. `own`: the Python files that the
    result's policy may run. Raises PolicyError if the result names other ones, and the errors of `run_suite`.
    """
    content = read_result(path)
    suite, policy = read_suite(content["suite"]), content["policy"]
    checksums = {Path(file).name: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in own if Path(file).is_file()}
    stored = content.get("files")
    if own and isinstance(stored, dict) and any(checksums.get(name, text) != text for name, text in stored.items()):
        return ["the policy's files differ from those on this machine"]  # without running them
    with only(*own):
        check_data(policy, printable(path))
        scheduler = Scheduler.of(policy)
    header = _header(suite, policy, scheduler)
    parts = {"version": "the suite's version differs", "definition": "the suite's definition differs", "files": "the policy's files differ"}
    faults = [f"{text} from this program or machine" for name, text in parts.items() if content.get(name) != header[name]]
    rows, windows = content["windows"], _windows(suite)
    names = [(row.get("subject"), row.get("window"), row.get("jobs")) for row in rows]
    if names != [(subject, place, window.checksum) for subject, place, window in windows]:
        return [*faults, "the windows differ from the suite's"]
    if any(not math.isfinite(metric_of(row, name)) for row in rows for name in suite.metrics):
        return [*faults, "a metric of a window is missing"]
    if not is_equal(content.get("totals"), totals(rows, suite.metrics)):
        faults.append("the totals differ from the windows'")
    count = len(windows) if sample is None else min(sample, len(windows))
    chosen = sorted(np.random.Generator(np.random.Philox(seed)).permutation(len(windows))[:count].tolist())

    def run(number: int, check: Callable[[int], None]) -> list[str]:
        subject, place, window = windows[chosen[number]]
        row, again = rows[chosen[number]], measure(window, scheduler, suite, check)
        differing = [name for name in again if not is_equal(row.get(name), again[name])]
        return [f"{subject}, window {place}: {' and '.join(differing)} differ"] if differing else []

    return faults + [fault for some in in_threads(run, count, workers, progress) for fault in some]


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two values of a result are equal, numbers up to `TOLERANCE`."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE)
    return bool(one == other)


def _header(suite: Suite, policy: str, scheduler: Scheduler) -> Result:
    """Return the header of a result, which identifies the suite and the scheduler."""
    checksums = {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in named_files(policy)}
    return {
        "schema": SCHEMA,
        "suite": suite.name,
        "version": suite.version,
        "definition": suite.definition,
        "policy": policy,
        "scheduler": scheduler.label,
        "files": {Path(name).name: checksum for name, checksum in checksums.items()},
        "program": version(),
    }


def _windows(suite: Suite) -> list[NumberedWindow]:
    return [(subject.name, place, window) for subject in suite.subjects for place, window in enumerate(subject.windows())]


def _read_part(part: Path, header: Result) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the finished windows; start a new file if there is none, or if it belongs to another version or suite."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        first, _, rest = part.read_bytes().partition(b"\n") if part.exists() else (b"", b"", b"")
        if first != json.dumps(header).encode():
            part.write_text(json.dumps(header) + "\n")
            return {}
        if not rest.endswith(b"\n"):  # a run was interrupted while writing
            with part.open("ab") as file:
                file.write(b"\n")
    except OSError as error:
        raise OutputError(
            f"{part.parent}: cannot be written ({(error.strerror or str(error)).lower()}); use another folder", "unwritable_file"
        ) from error
    rows = [row for row in json_lines(rest) if {"subject", "window", "jobs", "schedule", "measured"} <= row.keys()]
    return {(row["subject"], row["window"]): row for row in rows if isinstance(row["subject"], str) and type(row["window"]) is int}


def result_files(*paths: str | Path) -> list[Path]:
    """Return these files, and the results in these folders by name; raises PolicyError for a folder without results."""
    results = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise PolicyError(f"{path} contains no results; write some with walltime benchmark run", "no_results")
        results += inside
    return list(dict.fromkeys(results))
