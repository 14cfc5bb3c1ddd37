"""A result of a suite: one file with a line for each window, that others can check."""

from __future__ import annotations

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
from walltime.policy import files_in
from walltime.provenance import version
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.simulation.windows import Window, log_cost
from walltime.wording import printable
from walltime.workload import MAX_TIME

Result = dict[str, Any]
Numbered = tuple[str, int, Window]
"""A subject's name, the number of its window, and the window."""
SCHEMA = 1
CLOSE = 1e-9
"""Relative difference up to which means are the same: processors add up in different orders. Schedules must be equal."""


def run_suite(
    suite: Suite | str,
    policy: str,
    out: str | Path,
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Run a suite under a scheduler and write the result to `out`, a file that ends in .json or a folder; returns the file.

    `policy`: the specification of a scheduler, or `FILE.py:NAME` for one of your own. What is done is kept beside the file, so that the
    same call goes on after Ctrl-C. `workers`: threads, by default one per core. `progress` is called with the number of windows done.

    Raises PolicyError for an unknown suite or scheduler, WorkloadError and LogError for jobs that are not those of the suite or not on this
    machine, OutputError for a folder that cannot be written.
    """
    suite = read_suite(suite) if isinstance(suite, str) else suite
    scheduler = Scheduler.of(policy)
    header = _header(suite, policy, scheduler)
    everything = _windows(suite)
    path = Path(out)
    if path.suffix != ".json" or path.is_dir():
        path /= file_name(suite, policy)
    kept = path.with_suffix(".part")
    done = _kept(kept, header)
    missing = [one for one in everything if one[:2] not in done]
    writing = threading.Lock()

    def make_worker() -> Callable[[int, Callable[[int], None]], None]:
        def run(number: int, check: Callable[[int], None]) -> None:
            subject, place, window = missing[number]
            row = measure(window, scheduler, suite, check) | {"subject": subject, "window": place}
            with writing, kept.open("a") as file:
                file.write(json.dumps(row) + "\n")
            done[subject, place] = row

        return run

    before = len(done)
    in_threads(make_worker, len(missing), workers, None if progress is None else lambda count: progress(before + count))
    rows = [done[subject, place] for subject, place, _ in everything]
    content = header | {"totals": totals(rows, suite.metrics), "windows": rows}
    with whole_file(path) as sink:
        sink.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
    kept.unlink(missing_ok=True)
    return path


def measure(window: Window, scheduler: Scheduler, suite: Suite, check: Callable[[int], None] | None = None) -> dict[str, Any]:
    """What a result says of a window: the checksums of its jobs and of the schedule (all starts), and the metrics."""
    schedule = simulate(window.jobs, scheduler, overrun=suite.overrun, progress=check)
    summary = window.summary(schedule)
    starts = hashlib.sha256(np.ascontiguousarray(schedule.start, "<i8").tobytes()).hexdigest()
    values = {name: float(getattr(summary, name)) for name in suite.metrics}
    return {"jobs": window.checksum, "measured": summary.measured_jobs, "schedule": starts, **values}


def totals(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, Any]:
    """Of each metric the geometric mean over windows with its 90 % interval; to times 1 s is added.

    Only how windows of one subject differ is chance: a suite's subjects are these, not drawn from others.
    """
    by_metric = {}
    for name in metrics:
        subjects = [row["subject"] for row in rows]
        interval = stratified_interval(log_cost(np.array([row[name] for row in rows]), name), subjects)
        back = 0.0 if "slowdown" in name else 1.0
        by_metric[name] = {key: math.exp(getattr(interval, key)) - back for key in ("mean", "low", "high")}
    return by_metric


def file_name(suite: Suite, policy: str) -> str:
    """The file of a result: the suite and the scheduler, in letters that every file system takes."""
    plain = re.sub(r"[^A-Za-z0-9.=-]+", "-", policy).strip("-")[:60]
    return f"{suite.name}-{suite.version}-{plain}-{hashlib.sha256(policy.encode()).hexdigest()[:6]}.json"


def read_result(path: str | Path) -> Result:
    """A result's file; raises OutputError for one that is not."""
    try:
        content: Any = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(
            f"{path}: is no result of a benchmark ({type(error).__name__}); name a file that benchmark run wrote", "not_a_result"
        ) from None
    texts = isinstance(content, dict) and all(isinstance(content.get(name), str) for name in ("suite", "policy"))
    if not texts or content.get("schema") != SCHEMA or not _are_rows(content.get("windows")):
        raise OutputError(f"{path}: is no result of a benchmark; name a file that benchmark run wrote", "not_a_result")
    return content


def _are_rows(windows: Any) -> bool:
    return isinstance(windows, list) and all(isinstance(row, dict) for row in windows)


def metric_of(row: Mapping[str, Any], name: str) -> float:
    """A metric of a window, a time (s) or a slowdown; nan where the row has none, or a number that it cannot be."""
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
    """What is wrong with a result, as sentences; none if it holds.

    The suite's version and definition, every window's jobs, the totals, and the files of a policy of your own must be the same; a random
    `sample` of windows (None for all) is simulated again, and the schedules must be equal, job for job. `own`: the Python files that a
    result's policy may run; no other file that a result names is run. Raises PolicyError where it names one, else as `run_suite` does.
    """
    content = read_result(path)
    suite, policy = read_suite(content["suite"]), content["policy"]
    theirs = {Path(file).name: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in own if Path(file).is_file()}
    said_files = content.get("files")
    if own and isinstance(said_files, dict) and any(theirs.get(name, text) != text for name, text in said_files.items()):
        return ["the files of the policy are not that of this program or machine"]  # so they are not run
    with only(*own):
        check_data(policy, printable(path))
        scheduler = Scheduler.of(policy)
    header = _header(suite, policy, scheduler)
    said = {"version": "the suite's version is", "definition": "the definition of the suite is", "files": "the files of the policy are"}
    wrong = [f"{what} not that of this program or machine" for name, what in said.items() if content.get(name) != header[name]]
    rows, everything = content["windows"], _windows(suite)
    names = [(row.get("subject"), row.get("window"), row.get("jobs")) for row in rows]
    if names != [(subject, place, window.checksum) for subject, place, window in everything]:
        return [*wrong, "the windows are not those of the suite"]
    if any(not math.isfinite(metric_of(row, name)) for row in rows for name in suite.metrics):
        return [*wrong, "a metric of a window is missing"]
    if not _same(content.get("totals"), totals(rows, suite.metrics)):
        wrong.append("the totals are not those of the windows")
    count = len(everything) if sample is None else min(sample, len(everything))
    chosen = sorted(np.random.Generator(np.random.Philox(seed)).permutation(len(everything))[:count].tolist())

    def make_worker() -> Callable[[int, Callable[[int], None]], list[str]]:
        def run(number: int, check: Callable[[int], None]) -> list[str]:
            subject, place, window = everything[chosen[number]]
            row, again = rows[chosen[number]], measure(window, scheduler, suite, check)
            differ = [name for name in again if not _same(row.get(name), again[name])]
            return [f"{subject}, window {place}: another {' and '.join(differ)}"] if differ else []

        return run

    return wrong + [fault for some in in_threads(make_worker, count, workers, progress) for fault in some]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE)
    return bool(one == other)


def _header(suite: Suite, policy: str, scheduler: Scheduler) -> Result:
    """What a result says of the suite and the scheduler."""
    mine = {name: hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in files_in(policy)}
    return {
        "schema": SCHEMA,
        "suite": suite.name,
        "version": suite.version,
        "definition": suite.definition,
        "policy": policy,
        "scheduler": scheduler.label,
        "files": {Path(name).name: checksum for name, checksum in mine.items()},
        "program": version(),
    }


def _windows(suite: Suite) -> list[Numbered]:
    return [(subject.name, place, window) for subject in suite.subjects for place, window in enumerate(subject.windows())]


def _kept(part: Path, header: Result) -> dict[tuple[str, int], dict[str, Any]]:
    """The windows done so far; begins the file if there is none, or one of another program or suite."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        first, _, rest = part.read_bytes().partition(b"\n") if part.exists() else (b"", b"", b"")
        if first != json.dumps(header).encode():
            part.write_text(json.dumps(header) + "\n")
            return {}
        if not rest.endswith(b"\n"):  # a run was interrupted within its last line
            with part.open("ab") as file:
                file.write(b"\n")
    except OSError as error:
        raise OutputError(
            f"{part.parent}: cannot be written ({(error.strerror or str(error)).lower()}); name another one", "unwritable_file"
        ) from error
    rows = [row for row in json_lines(rest) if {"subject", "window", "jobs", "schedule", "measured"} <= row.keys()]
    return {(row["subject"], row["window"]): row for row in rows if isinstance(row["subject"], str) and type(row["window"]) is int}


def result_files(*paths: str | Path) -> list[Path]:
    """The files of results among these files and in these folders, by name; raises PolicyError for a folder that has none."""
    results = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not inside:
            raise PolicyError(f"{path} has no results; write some with walltime benchmark run", "no_results")
        results += inside
    return list(dict.fromkeys(results))
