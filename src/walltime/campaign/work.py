"""Run the cells of a task one after another, and write their rows into the store."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from walltime.campaign.cell import Cell, dialect_of, engine_version, scheduler_of
from walltime.campaign.store import MEASURES, SCHEMA, Store
from walltime.errors import LogError, OutputError, WalltimeError
from walltime.estimates import parse_estimates
from walltime.logs import read
from walltime.machine.machine import parse_machine
from walltime.permission import NotRunError
from walltime.plugins.dependencies import undeclared
from walltime.provenance import version
from walltime.schedule import Schedule
from walltime.schedule.groups import breakdown, group_jobs
from walltime.simulation.batch import Case
from walltime.simulation.specification import Variation
from walltime.workload import Workload
from walltime.workload.drops import jobs_only, shares_of
from walltime.workload.models import parse_model

MODEL_PROCS = 128
"""Default number of processors of the machine for a workload model."""
_reading = threading.Lock()
_thread = threading.local()


class ChangedLogError(LogError):
    """A log has changed since the campaign was started, which invalidates all of its cells."""


@dataclass(frozen=True)
class Task:
    """Adjacent cells of the plan, with the logs and machines that a worker needs."""

    store: str
    cells: Sequence[Cell]
    logs: Mapping[str, tuple[str, str]]
    """file and SHA-256 of each log of the cells"""
    machines: Mapping[str, str] = field(default_factory=dict)
    """the text of each machine file"""
    keep: bool = False
    """whether to keep the schedules"""


@dataclass(frozen=True)
class Report:
    """The report on a completed task."""

    cells: int
    jobs: int
    """number of simulated jobs, over all cells"""
    seconds: float
    """processor time, s"""
    failed: int = 0
    """cells that ended with an error"""
    warned: tuple[str, ...] = ()
    """warnings of the worker, if it runs in another process"""


def run_task(task: Task, check: Callable[[int], None] | None = None) -> Report:
    """Run the cells and write their rows, and the cause of each failure; `check` is called repeatedly and may raise to stop it.

    Raises LogError if a log has changed since the campaign was started, NotRunError if a Python file may not run, and OutputError.
    """
    begin = time.thread_time()
    cells, groups, failures, unkept = [], [], [], []
    jobs = 0
    for cell in task.cells:
        try:
            row, group = _run_cell(cell, task, check or (lambda _started: None))
        except (NotRunError, OutputError, ChangedLogError) as error:
            raise type(error)(f"{describe(cell)}: {error}") from error
        except WalltimeError as error:
            failures.append({"cell": key_of(cell, task.logs, task.machines), "cause": next(iter(str(error).splitlines()), "")})
            continue
        if causes := [cause for file in cell.python_files for cause in undeclared(file)]:
            unkept.append({"cell": row["cell"], "cause": causes[0]})
        cells.append(row)
        groups.extend(group)
        jobs += row["jobs"]
    Store(task.store).write(cells, groups, failures, unkept)
    return Report(len(cells), jobs, time.thread_time() - begin, len(failures))


def key_of(cell: Cell, logs: Mapping[str, tuple[str, str]], machines: Mapping[str, str]) -> str:
    """Return the key of a cell, given the checksums of the logs and the texts of the machine files."""
    trace, machine = cell.settings["trace"], cell.settings["machine"]
    return cell.key(logs[trace][1] if trace is not None else None, SCHEMA, machines[machine] if machine is not None else None)


def describe(cell: Cell, spelled: Mapping[str, str] | None = None) -> str:
    """Return a short description of the cell: log or model, policy, estimates, load, order, predictor and seed.

    `spelled`: the plan's spelling of user files.
    """
    s = {name: (spelled or {}).get(value, value) for name, value in cell.settings.items()}
    source = s["trace"] or s["model"]
    words = [
        f"{name}={value}"
        for name, value in s.items()
        if name in ("policy", "estimates", "load", "order", "predictor") and value is not None
    ]
    return f"{source} ({', '.join(words)}{f', seed {cell.seed}' if cell.seed is not None else ''})"


def _run_cell(cell: Cell, task: Task, check: Callable[[int], None]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    s = cell.settings
    machine = None if s["machine"] is None else task.machines[s["machine"]]
    parsed = None if machine is None else parse_machine(machine, s["machine"], checked=False)
    rules: dict[str, Any] = {"dialect": dialect_of(s), "overrun": s["overrun"], "dynamics": cell.dynamics, "machine": parsed}
    case = Case(scheduler_of(s), parse_estimates(s["estimates"]), cell.seed or 0)
    schedule = case.run(_workload(cell, task.logs), check, **rules)
    key = key_of(cell, task.logs, task.machines)
    if task.keep:
        Store(task.store).keep(key, schedule.columns())
    row = {
        "cell": key,
        **s,
        "seed": cell.seed,
        "trim": cell.trim,
        "sha256": task.logs[s["trace"]][1] if s["trace"] is not None else None,
        **schedule.summary(cell.trim).as_dict(),
    }
    row |= schedule.dynamics_summary(cell.trim).as_dict() if cell.dynamics else {}
    predictions = None if schedule.predictions is None else schedule.prediction_summary(cell.trim)
    row |= {name: value for name, value in predictions.as_dict().items() if name != "jobs"} if predictions is not None else {}
    drops = jobs_only(schedule.workload.origin.drops)
    row |= dict(zip(("left_out_jobs", "left_out_work"), shares_of(drops), strict=True))
    row["left_out_rules"] = json.dumps(list(map(asdict, drops)))
    row |= {"procs": schedule.workload.machine_procs, "schema": SCHEMA}
    row |= {"walltime": version(), "engine": engine_version(machine is not None)}
    return row, [{"cell": key, **group} for by in cell.groups for group in group_rows(schedule, by, cell.trim)]


def group_rows(schedule: Schedule, by: str, trim: str) -> list[dict[str, Any]]:
    """Return averages of the measured jobs of each group, sorted by name."""
    workload, submit, end, runtime = schedule.workload, schedule.submit, schedule.end, schedule.runtime
    groups = group_jobs(workload, by, submit, end, runtime=runtime)
    chosen = schedule.measured(trim)
    rows = sorted(breakdown(groups, schedule.wait, runtime, workload.procs, chosen), key=lambda row: row["group"])
    return [{"by": by, "group": row["group"], **{name: row[name] for name in MEASURES}} for row in rows]


def workload_of(cell: Cell, logs: Mapping[str, tuple[str, str]]) -> Workload:
    """Return the workload that the cell simulates, with its estimates."""
    return _workload(cell, logs).with_estimates(parse_estimates(cell.settings["estimates"]), cell.seed or 0)


def _workload(cell: Cell, logs: Mapping[str, tuple[str, str]]) -> Workload:
    """Return the workload of a cell; consecutive cells of a thread with the same workload share the object."""
    trace = cell.settings["trace"]
    file, sha256 = logs[trace] if trace is not None else (None, None)
    files = cell.workload_files()
    key = (cell.workload, sha256, files)
    if getattr(_thread, "key", None) != key:
        _thread.key = _thread.workload = None  # releases the memory before the next workload is made
        _thread.workload, _thread.key = _new_workload(cell, file, sha256, files), key
    workload: Workload = _thread.workload
    return workload


def _new_workload(cell: Cell, file: str | None, sha256: str | None, files: tuple[str, ...]) -> Workload:
    s = cell.settings
    seed = cell.seed or 0
    load = s["load"]
    if file is not None:
        with _reading:
            workload = _read(file, sha256 or "", files, s["mapping"], s["procs"], s["too_wide"], s["partial"])
    else:
        at_once, load = (load, None) if s["scale_by"] == "interarrival" else (None, load)
        workload = parse_model(s["model"]).generate(s["jobs"], s["procs"] or MODEL_PROCS, at_once, seed)
    remove = tuple(part.strip() for part in s["remove"].split(";") if part.strip()) if s["remove"] else ()
    scale_by = s["scale_by"] if load is not None else "interarrival"
    variation = Variation(load, scale_by, remove, s["head"], s["tail"], s["window"], s["shake"], s["feedback"])
    return variation.shaken(variation.apply(workload, seed), seed)


@lru_cache(maxsize=4)
def _read(file: str, sha256: str, _files: tuple[str, ...], mapping: str | None, procs: int | None, too_wide: Any, partial: Any) -> Workload:
    workload = read(Path(file), mapping=mapping, procs=procs, too_wide=too_wide, partial=partial)
    if workload.origin.sha256 != sha256:
        raise ChangedLogError(f"{file}: its checksum has changed since the campaign was started; restore the original log")
    return workload
