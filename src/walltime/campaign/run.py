"""Run a campaign: find the missing cells, split them into tasks, run them, and report progress."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from walltime.campaign.cell import Cell, dialect_of, scheduler_of
from walltime.campaign.executors import Executor, Threads
from walltime.campaign.plan import Plan
from walltime.campaign.store import SCHEMA, Store
from walltime.campaign.work import Report, Task
from walltime.errors import LogError, PolicyError
from walltime.files import note_input
from walltime.logs.catalogue import find_log
from walltime.machine import read_machine, write_machine
from walltime.permission import NotRunError
from walltime.simulation.run import check_asked_for
from walltime.simulation.specification import PREDICTION_WORDS
from walltime.wording import printable

CELLS_PER_TASK = 200
"""Maximum number of cells in one task."""
JOBS_PER_TASK = 5_000_000
"""Approximate maximum of jobs simulated in one task: under a second with EASY, and the most work lost when a run is killed."""
TASKS = 64
"""Few cells are split into about this many tasks, so that all workers are busy."""
SLOW = 10
"""Approximate run time of conservative and hybrid backfilling relative to EASY."""
MOST_JOBS = 2**40
OF_SCHEDULING = ("policy", "order", "backfill_order", *PREDICTION_WORDS, "machine", "coincident", "dialect")
"""The parameters by which it is decided whether a cell runs on its machine."""
BYTES_PER_JOB = 15
"""The number of jobs in a log is estimated from the size of its gzipped file."""


@dataclass
class Progress:
    """The progress of a run."""

    cells: int
    """in the plan"""
    done: int
    """cells in the store"""
    run: int = 0
    """cells added by this run"""
    jobs: int = 0
    """jobs simulated by this run"""
    kernel_seconds: float = 0.0
    """processor time of this run in compiled code, s"""
    seconds: float = 0.0
    """processor time of this run's tasks, s"""
    begun: float = field(default_factory=time.monotonic)

    def add(self, report: Report) -> None:
        """Add a finished task."""
        self.done += report.cells
        self.run += report.cells
        self.jobs += report.jobs
        self.kernel_seconds += report.kernel_seconds
        self.seconds += report.seconds

    @property
    def jobs_per_second(self) -> float:
        """Jobs simulated per second since the run began."""
        return self.jobs / max(time.monotonic() - self.begun, 1e-9)


@dataclass(frozen=True)
class Status:
    """Which cells of a plan are in a store."""

    cells: int
    done: int
    others: int
    """cells in the store that are not in the plan: from another plan, or from an earlier version of the program"""
    files: int


def run_campaign(
    plan: Plan,
    store: Store | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Run the cells of the plan that are not in the store yet.

    `store`: by default the folder that the plan names. `executor`: by default `Threads()`. `progress` is called after each
    task. Finished tasks are kept, however this ends; another call resumes from there.

    Raises LogError for a trace that is missing or has changed since the store was made, OutputError if the store cannot be
    written, and the errors of cells.
    """
    store = store or Store(plan.store)
    logs, machines = find_logs(plan), find_machines(plan)
    store.open(plan.name, {trace: sha256 for trace, (_, sha256) in logs.items()})
    with store.locked():
        there = store.done()
        missing = [cell for cell in plan.cells if _key(cell, logs, machines) not in there]
        state = Progress(cells=len(plan.cells), done=len(plan.cells) - len(missing))
        del there
        if progress is not None:
            progress(state)

        def done(report: Report) -> None:
            state.add(report)
            if progress is not None:
                progress(state)

        if missing:
            (executor or Threads()).run(list(_tasks(missing, store, logs, machines)), done)
    return state


def status(plan: Plan, store: Store | None = None) -> Status:
    """Which cells of the plan are in the store; raises the errors of `run_campaign` before it runs anything."""
    store = store or Store(plan.store)
    store.manifest()
    there = store.done()
    keys = plan_keys(plan)
    done = sum(key in there for key in keys)
    return Status(cells=len(keys), done=done, others=len(there) - done, files=len(list(store.cells.glob("*.parquet"))))


def plan_keys(plan: Plan) -> list[str]:
    """The keys of the plan's cells, in their order."""
    logs, machines = find_logs(plan), find_machines(plan)
    return [_key(cell, logs, machines) for cell in plan.cells]


def find_logs(plan: Plan) -> dict[str, tuple[str, str]]:
    """File and SHA-256 of each trace that the plan names; raises LogError for one that is missing."""
    logs = {}
    for trace in dict.fromkeys(cell.settings["trace"] for cell in plan.cells):
        if trace is None:
            continue
        beside = plan.folder / trace
        file = beside if beside.is_file() else find_log(trace)
        try:
            with Path(file).open("rb") as content:
                note_input(content.fileno(), file)
                logs[trace] = (str(Path(file).resolve()), hashlib.file_digest(content, "sha256").hexdigest())
        except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise LogError(f"{printable(beside)}: cannot be read ({reason}); the plan {printable(plan.path)} names it") from error
    return logs


def find_machines(plan: Plan) -> dict[str, str]:
    """The text of each file of a machine that the plan names.

    Raises LogError for one that is missing or cannot be used, PolicyError for what the cells on it ask for and it does not know.
    """
    names = dict.fromkeys(cell.settings["machine"] for cell in plan.cells)
    machines = {name: read_machine(plan.folder / name) for name in names if name is not None}
    checked = set()
    for settings in (cell.settings for cell in plan.cells):
        if settings["machine"] is None or (asked := tuple(settings[name] for name in OF_SCHEDULING)) in checked:
            continue
        checked.add(asked)
        dialect = dialect_of(settings)
        try:
            scheduler = scheduler_of(settings)
            scheduler = replace(scheduler, policy=dialect.apply(scheduler.policy))
            check_asked_for(scheduler, dialect, machines[settings["machine"]], plan.dynamics)
        except NotRunError:
            continue
        except PolicyError as error:
            raise PolicyError(f"{error}; the plan {printable(plan.path)} asks for it on {settings['machine']}") from error
    return {name: write_machine(machine) for name, machine in machines.items()}


def _key(cell: Cell, logs: dict[str, tuple[str, str]], machines: dict[str, str]) -> str:
    trace, machine = cell.settings["trace"], cell.settings["machine"]
    return cell.key(logs[trace][1] if trace is not None else None, SCHEMA, machines[machine] if machine is not None else None)


def _tasks(cells: Sequence[Cell], store: Store, logs: dict[str, tuple[str, str]], machines: dict[str, str]) -> Iterable[Task]:
    """Split the cells, ordered by workload, into tasks of bounded work."""
    guesses = {trace: Path(file).stat().st_size // BYTES_PER_JOB for trace, (file, _) in logs.items()}
    part: list[Cell] = []
    jobs = 0

    def work(cell: Cell) -> int:
        s = cell.settings
        slow = SLOW if s["policy"].startswith(("conservative", "hybrid")) or s["machine"] is not None else 1
        return slow * int(min(guesses.get(s["trace"], s["jobs"]), s["head"] or MOST_JOBS))

    def task() -> Task:
        named = {cell.settings["trace"] for cell in part}
        return Task(str(store.folder.resolve()), tuple(part), {trace: log for trace, log in logs.items() if trace in named}, machines)

    most = min(JOBS_PER_TASK, sum(map(work, cells)) // TASKS)
    for cell in cells:
        part.append(cell)
        jobs += work(cell)
        if len(part) == CELLS_PER_TASK or jobs >= most:
            yield task()
            part, jobs = [], 0
    if part:
        yield task()
