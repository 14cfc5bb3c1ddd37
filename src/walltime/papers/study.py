"""What the items of a paper share: their input, the resolution, and the stored runs, so that none is repeated."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walltime.campaign import DIMENSIONS, Plan, Progress, Store, Threads, plan_keys, run_campaign
from walltime.campaign.cell import engine_version
from walltime.files import whole_file
from walltime.papers.printed import Printed
from walltime.papers.subjects import Subject
from walltime.simulation.threads import in_threads
from walltime.syntax import syntax_hash

if TYPE_CHECKING:
    import polars as pl

Compute = Callable[[Mapping[str, Any], Callable[[int], None]], Mapping[str, Any]]


@dataclass(eq=False)
class Study:
    """A paper, its subjects, and the folder that results go to."""

    printed: Printed
    subjects: Sequence[Subject]
    folder: Path
    quick: bool = False
    workers: int | None = None
    progress: Callable[[str, int, int], None] | None = None
    """called with a description, the number of runs done, and the total"""
    jobs_simulated: int = field(default=0, init=False)
    memory: dict[Any, Any] = field(default_factory=dict, init=False)
    """shared between the items of one run"""
    _tables: dict[tuple[object, ...], pl.DataFrame] = field(default_factory=dict, init=False)

    @property
    def store(self) -> Store:
        """The store of the simulations; those in it are not repeated."""
        return Store(self.folder / "runs")

    def cells(
        self,
        what: str,
        subject: Subject,
        *axes: Sequence[Mapping[str, Any]],
        seeds: int = 1,
        trim: str = "none",
        dynamics: bool = False,
        by: str | None = None,
    ) -> pl.DataFrame:
        """Run a campaign on a subject and return its table: one row per cell, or, `by` a grouping of jobs, per cell and group.

        Each of the `axes` is a list of choices, a choice being the keys that it sets (see `walltime.campaign`); the cells are
        all combinations, for every seed from 0.
        """
        fixed: dict[str, Any] = {"trace": str(subject.file.resolve())}
        if subject.procs is not None:
            fixed["procs"] = subject.procs
        plan = Plan(
            path=self.folder / "plan.toml",
            name=f"{self.printed.paper} {what}",
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
        done = run_campaign(plan, self.store, Threads(self.workers), self._show(what))
        self.jobs_simulated += done.jobs
        keys = plan_keys(plan)
        table = self.store.table(keys)
        if by is not None:
            settings = table.select("cell", *(name for name in DIMENSIONS if name in table.columns), "seed")
            table = self.store.group_table(keys).join(settings, on="cell")
        self._tables[known] = table
        return self._tables[known]

    def _show(self, what: str) -> Callable[[Progress], None] | None:
        progress = self.progress
        return None if progress is None else lambda state: progress(what, state.done, state.cells)

    def kept(self, what: str, tasks: Sequence[Mapping[str, Any]], compute: Compute) -> list[Any]:
        """The results of tasks that are not cells of a campaign, each a JSON object, stored by the content of the task.

        `compute` is called with a task and a function to call regularly, on several threads. A task contains everything its
        result depends on; the version of the engine and the code of `compute`'s file are added. Stored results are not
        recomputed.
        """
        folder = self.folder / "runs" / "others"
        folder.mkdir(parents=True, exist_ok=True)
        version = [engine_version(), syntax_hash([Path(inspect.getfile(compute))], Path(inspect.getfile(compute)).parent)]
        files = [folder / f"{_key(what, task, version)}.json" for task in tasks]
        missing = [number for number, file in enumerate(files) if _read(file) is None]
        progress = self.progress

        def make_worker() -> Callable[[int, Callable[[int], None]], None]:
            def run(place: int, check: Callable[[int], None]) -> None:
                number = missing[place]
                content = json.dumps(compute(tasks[number], check), sort_keys=True)
                with whole_file(files[number]) as sink:
                    sink.write(content.encode())

            return run

        def show(done: int) -> None:
            if progress is not None:
                progress(what, len(tasks) - len(missing) + done, len(tasks))

        show(0)
        in_threads(make_worker, len(missing), self.workers, show)
        return [_read(file) for file in files]


def _read(file: Path) -> Any:
    """What is kept in a file; None if it is not there, or damaged, so that it is computed again."""
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _key(what: str, task: Mapping[str, Any], version: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([what, task, *version], sort_keys=True).encode()).hexdigest()[:32]
