"""A study provides the items of a paper with their subjects and number of seeds, and stores each run so that none is repeated."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walltime.campaign import DIMENSIONS, Plan, Progress, Store, Threads, plan_keys, run_campaign, status as read_status
from walltime.campaign.cell import engine_version
from walltime.errors import EngineError
from walltime.files import whole_file
from walltime.papers.printed import Printed
from walltime.papers.subjects import PAPER, Subject
from walltime.simulation.threads import in_threads
from walltime.syntax import syntax_hash

if TYPE_CHECKING:
    import polars as pl

Compute = Callable[[Mapping[str, Any], Callable[[int], None]], Mapping[str, Any]]


@dataclass(eq=False)
class Study:
    """A paper, its subjects, and the folder into which results are written."""

    printed: Printed
    subjects: Sequence[Subject]
    folder: Path
    quick: bool = False
    workers: int | None = None
    progress: Callable[[str, int, int], None] | None = None
    """called with a description, the number of runs done, and the total"""
    memory: dict[Any, Any] = field(default_factory=dict, init=False)
    """shared between the items of one run"""
    _tables: dict[tuple[object, ...], pl.DataFrame] = field(default_factory=dict, init=False)

    @property
    def store(self) -> Store:
        """Return the store of the simulations; simulations in it are not repeated."""
        return Store(self.folder / "runs")

    @property
    def with_estimates(self) -> list[Subject]:
        """Return the subjects that have users' estimates."""
        return [subject for subject in self.subjects if subject.has_estimates]

    @property
    def with_users(self) -> list[Subject]:
        """Return the subjects that have users, and their estimates."""
        return [subject for subject in self.with_estimates if subject.has_column("user")]

    def printed_value(self, subject: Subject, table: str, column: str, **where: Any) -> float | None:
        """Return the printed number with which ours on this subject is compared; None unless the subject is the paper's log."""
        return self.printed.tables[table].value(column, **where) if subject.kind == PAPER else None

    def cells(
        self,
        label: str,
        subject: Subject,
        *axes: Sequence[Mapping[str, Any]],
        seeds: int = 1,
        trim: str = "none",
        dynamics: bool = False,
        by: str | None = None,
    ) -> pl.DataFrame:
        """Run a campaign on a subject and return its table: one row per cell, or, `by` a grouping of jobs, per cell and group.

        Each of the `axes` is a list of choices; a choice maps the keys that it sets to values (see `walltime.campaign`). The cells are
        all combinations, for every seed from 0. `label` names the campaign in messages.
        """
        fixed: dict[str, Any] = {"trace": str(subject.file.resolve())}
        if subject.procs is not None:
            fixed["procs"] = subject.procs
        plan = Plan(
            path=self.folder / "plan.toml",
            name=f"{self.printed.paper} {label}",
            store=self.store.folder,
            seeds=range(seeds),
            trim=trim,
            dynamics=dynamics,
            groups=() if by is None else (by,),
            axes=[[fixed], *axes],
        )
        known = (plan.name, seeds, trim, dynamics, by, json.dumps(plan.axes))
        if known in self._tables:
            return self._tables[known]

        def show(state: Progress) -> None:
            self.report(label, state.done, state.cells)

        done = run_campaign(plan, self.store, Threads(self.workers), show, retry_failed=True)
        if done.failed:
            first = read_status(plan, self.store).failures[0]
            raise EngineError(f"{plan.name}: {first}")
        keys = plan_keys(plan)
        table = self.store.table(keys)
        if by is not None:
            settings = table.select("cell", *(name for name in DIMENSIONS if name in table.columns), "seed")
            table = self.store.group_table(keys).join(settings, on="cell")
        self._tables[known] = table
        return table

    def report(self, label: str, done: int, total: int) -> None:
        """Report to `progress` how many runs are done."""
        if self.progress is not None:
            self.progress(label, done, total)

    def kept(self, label: str, tasks: Sequence[Mapping[str, Any]], compute: Compute) -> list[Any]:
        """Return the results of tasks that are not cells of a campaign, each a JSON object, stored by the content of the task.

        `compute` is called on several threads, with a task and a function to call regularly. A task contains everything that its
        result depends on; the version of the engine and the code of `compute`'s file are added. Stored results are not
        recomputed.
        """
        folder = self.folder / "runs" / "others"
        folder.mkdir(parents=True, exist_ok=True)
        code = Path(inspect.getfile(compute))
        version = [engine_version(), syntax_hash([code], code.parent)]
        keys = [hashlib.sha256(json.dumps([label, task, *version], sort_keys=True).encode()).hexdigest()[:32] for task in tasks]
        files = [folder / f"{key}.json" for key in keys]
        missing = [number for number, file in enumerate(files) if _read(file) is None]

        def run(place: int, check: Callable[[int], None]) -> None:
            number = missing[place]
            content = json.dumps(compute(tasks[number], check), sort_keys=True)
            with whole_file(files[number]) as sink:
                sink.write(content.encode())

        def show(done: int) -> None:
            self.report(label, len(tasks) - len(missing) + done, len(tasks))

        show(0)
        in_threads(run, len(missing), self.workers, show)
        return [_read(file) for file in files]


def _read(file: Path) -> Any:
    """Return the content of a file; None if it is missing or damaged, so that it is computed again."""
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
