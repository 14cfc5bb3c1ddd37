"""Run a campaign: find the missing cells, split them into tasks, run them, and report progress."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from walltime.campaign.cell import Cell, dialect_of, scheduler_of
from walltime.campaign.executors import Executor, Threads
from walltime.campaign.plan import Plan
from walltime.campaign.store import Store
from walltime.campaign.work import Report, Task, describe, key_of
from walltime.errors import LogError, PolicyError
from walltime.files import note_input
from walltime.logs.catalogue import find_log
from walltime.machine import read_machine, write_machine
from walltime.permission import NotRunError
from walltime.simulation.run import check_support
from walltime.simulation.specification import PREDICTION_OPTIONS
from walltime.wording import counted, printable

CELLS_PER_TASK = 200
"""Maximum number of cells in one task."""
JOBS_PER_TASK = 5_000_000
"""Approximate maximum number of jobs simulated in one task: under a second with EASY, and the most that is lost when a run is killed."""
TASKS = 64
"""Approximate minimum number of tasks, so that all workers are busy even with few cells."""
SLOW = 10
"""Approximate run time of conservative and hybrid backfilling relative to EASY."""
SCHEDULING_SETTINGS = ("policy", "order", "backfill_order", *PREDICTION_OPTIONS, "machine", "coincident", "dialect")
"""The parameters that decide whether a cell's machine is supported."""
BYTES_PER_JOB, BYTES_OF_TEXT, COMPRESSED = 15, 60, (".gz", ".xz", ".bz2", ".zst")
"""Bytes per job, compressed or not, to estimate the number of jobs in a log from the size of its file."""


@dataclass
class Progress:
    """The progress of a campaign run."""

    cells: int
    """cells of the plan"""
    done: int
    """cells in the store"""
    run: int = 0
    """cells added by this run"""
    jobs: int = 0
    """jobs simulated by this run"""
    seconds: float = 0.0
    """processor time of this run's tasks, s"""
    failed: int = 0
    """cells of the plan that ended with an error, in this run or an earlier one"""
    begun: float = field(default_factory=time.monotonic)

    @property
    def jobs_per_second(self) -> float:
        """Return jobs simulated per second since the run began."""
        return self.jobs / max(time.monotonic() - self.begun, 1e-9)


@dataclass(frozen=True)
class Status:
    """Numbers of a plan's cells in a store."""

    cells: int
    """cells of the plan"""
    done: int
    """cells of the plan in the store"""
    others: int
    """number of cells in the store that are not in the plan: from another plan, or from an earlier version of the program"""
    files: int
    failures: Sequence[Failures] = ()
    """the failed cells of the plan, by cause"""
    unkept: Sequence[str] = ()
    """reasons why cells of the plan run again in every run, one line each"""


@dataclass(frozen=True)
class Failures:
    """Cells of a plan that ended with the same error."""

    cause: str
    """the error message, on one line"""
    cells: int
    first: str
    """settings of the first of these cells"""

    def __str__(self) -> str:
        return f"{counted(self.cells, 'cell')} failed: {self.cause} [{'first: ' if self.cells > 1 else ''}{self.first}]"


def run_campaign(
    plan: Plan,
    store: Store | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    retry_failed: bool = False,
) -> Progress:
    """Run the cells of the plan that are not in the store yet.

    `store`: by default the plan's folder. `executor`: by default `Threads()`. `progress` is called after each task. Finished tasks are
    kept in any case, and another call resumes from there. A cell that fails does not stop the others: the store keeps the cause,
    and it runs again only with `retry_failed`.

    Raises LogError for a log that is missing or has changed since the store was made, OutputError if the store cannot be
    written, and PolicyError if a Python file may not run.
    """
    store = store or Store(plan.store)
    logs, machines = find_logs(plan), find_machines(plan)
    store.open(plan.name, {trace: sha256 for trace, (_, sha256) in logs.items()})
    with store.locked():
        stored = store.done()
        keys = (stored & store.kept() if plan.keep else stored) - store.causes(store.unkept).keys()
        missing = {key: cell for cell in plan.cells if (key := key_of(cell, logs, machines)) not in keys}
        failed = missing.keys() & store.causes()
        again = failed if retry_failed else set[str]()
        store.forget(again | (missing.keys() & stored))
        failed -= again
        state = Progress(cells=len(plan.cells), done=len(plan.cells) - len(missing), failed=len(failed))
        cells = [cell for key, cell in missing.items() if key not in failed]
        del keys, stored, missing
        if progress is not None:
            progress(state)

        def done(report: Report) -> None:
            state.done += report.cells
            state.run += report.cells
            state.jobs += report.jobs
            state.seconds += report.seconds
            state.failed += report.failed
            if progress is not None:
                progress(state)

        if cells:
            (executor or Threads()).run(list(_tasks(cells, store, logs, machines, plan.keep is not None)), done)
    return state


def status(plan: Plan, store: Store | None = None) -> Status:
    """Return how many cells of the plan are in the store; raises the errors of `run_campaign` that occur before any simulation."""
    store = store or Store(plan.store)
    store.manifest()
    stored, keys = store.done() & store.kept() if plan.keep else store.done(), plan_keys(plan)
    done, files = len(stored.intersection(keys)), len(list(store.cells.glob("*.parquet")))
    causes = store.causes(store.unkept)
    counts = Counter(causes[key] for key in keys if key in causes)
    unkept = [f"{counted(count, 'cell')} will run again in every run: {cause}" for cause, count in counts.items()]
    return Status(len(keys), done, len(stored) - done, files, failures_of(plan, store, keys, stored), unkept)


def failures_of(plan: Plan, store: Store, keys: Sequence[str], done: Collection[str]) -> list[Failures]:
    """Return the failed cells of the plan by cause, the most frequent first; `keys`: keys of its cells, `done`: keys in the store."""
    causes = store.causes()
    found: dict[str, list[Cell]] = {}
    for key, cell in zip(keys, plan.cells, strict=True) if causes else ():
        if key in causes and key not in done:
            found.setdefault(causes[key], []).append(cell)
    groups = [Failures(cause, len(cells), describe(cells[0], plan.spelled)) for cause, cells in found.items()]
    return sorted(groups, key=lambda group: -group.cells)


def plan_keys(plan: Plan) -> list[str]:
    """Return the keys of the cells of the plan, in order."""
    logs, machines = find_logs(plan), find_machines(plan)
    return [key_of(cell, logs, machines) for cell in plan.cells]


def find_logs(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return file and SHA-256 of each log in the plan; raises LogError for a missing one."""
    logs = {}
    for trace in dict.fromkeys(cell.settings["trace"] for cell in plan.cells):
        if trace is None:
            continue
        local = plan.folder / trace
        file = local if local.is_file() else find_log(trace)
        try:
            with Path(file).open("rb") as content:
                note_input(content.fileno(), file)
                logs[trace] = (str(Path(file).resolve()), hashlib.file_digest(content, "sha256").hexdigest())
        except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise LogError(f"{printable(local)}: cannot be read ({reason}); correct the trace in {printable(plan.path)}") from error
    return logs


def find_machines(plan: Plan) -> dict[str, str]:
    """Return the text of each machine file in the plan.

    Raises LogError for a missing or invalid file, PolicyError for cells with settings that their machine does not support.
    """
    names = dict.fromkeys(cell.settings["machine"] for cell in plan.cells)
    machines = {name: read_machine(plan.folder / name) for name in names if name is not None}
    distinct = {tuple(s[name] for name in SCHEDULING_SETTINGS): s for s in (cell.settings for cell in plan.cells)}
    for settings in distinct.values():
        if settings["machine"] is None:
            continue
        dialect = dialect_of(settings)
        try:
            scheduler = scheduler_of(settings)
            scheduler = replace(scheduler, policy=dialect.apply(scheduler.policy))
            check_support(scheduler, dialect, machines[settings["machine"]], plan.dynamics)
        except NotRunError:
            continue
        except PolicyError as error:
            raise PolicyError(f"{printable(plan.path)}, cells on {settings['machine']}: {error}") from error
    return {name: write_machine(machine) for name, machine in machines.items()}


def jobs_of(logs: Mapping[str, tuple[str, str]]) -> Callable[[Cell], int]:
    """Return a function that estimates the number of jobs of a cell."""
    sizes = {
        trace: Path(file).stat().st_size // (BYTES_PER_JOB if file.endswith(COMPRESSED) else BYTES_OF_TEXT)
        for trace, (file, _) in logs.items()
    }

    def jobs(cell: Cell) -> int:
        s = cell.settings
        return int(min(sizes.get(s["trace"], s["jobs"]), s["head"] or math.inf))

    return jobs


def _tasks(cells: Sequence[Cell], store: Store, logs: dict[str, tuple[str, str]], machines: dict[str, str], keep: bool) -> Iterable[Task]:
    """Split the cells, ordered by workload, into tasks of bounded work."""
    of_cell = jobs_of(logs)
    part: list[Cell] = []
    jobs = 0

    def work(cell: Cell) -> int:
        s = cell.settings
        slow = SLOW if s["policy"].startswith(("conservative", "hybrid")) or s["machine"] is not None else 1
        return slow * of_cell(cell)

    def task() -> Task:
        named = {cell.settings["trace"] for cell in part}
        own = {trace: log for trace, log in logs.items() if trace in named}
        return Task(str(store.folder.resolve()), tuple(part), own, machines, keep)

    most = min(JOBS_PER_TASK, sum(map(work, cells)) // TASKS)
    for cell in cells:
        part.append(cell)
        jobs += work(cell)
        if len(part) == CELLS_PER_TASK or jobs >= most:
            yield task()
            part, jobs = [], 0
    if part:
        yield task()
