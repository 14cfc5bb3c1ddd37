"""Workloads: the jobs of a simulation, as flat arrays in order of arrival."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.tables import Facts, number
from walltime.wording import counted, seed_fault, shown
from walltime.workload.columns import numbered
from walltime.workload.drops import drop_jobs, warning_of
from walltime.workload.origin import Origin

if TYPE_CHECKING:
    import polars as pl

Array = np.ndarray


class EstimateModel(Protocol):
    """A model that draws estimates for a workload; see `walltime.estimates`."""

    @property
    def limit(self) -> str:
        """Return the source of the kill limit: the model's estimates ("model") or the users' requests ("user")."""

    def draw(self, workload: Workload, seed: int = 0) -> Array:
        """Return estimates, int64 s, one per job."""


MAX_TIME = 2**60
"""Upper bound on a workload's times, so that the sum of two times fits in an int64."""
LAST_TIME = 2.0**62
"""Upper bound on the time at which the last job would end if all jobs ran one after the other."""
MOST_WORK = 2.0**62
"""Upper bound on the processor-seconds that all jobs use or request, so that their sum fits in an int64."""


_ARRAYS = ("job_id", "submit", "runtime", "requested", "procs", "planned")


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs in order of arrival (submit, then job id) and the size of the machine.

    All arrays have one entry per job. Times are whole seconds, `submit` counted from the start of the log.

    `job_id, submit, runtime, requested, procs`: int64. `requested` is the user's estimate and the kill limit, at least 1.
    `planned`: int64, the runtime the scheduler plans with; equals `requested` unless estimates were replaced. `columns`: the
    other columns of the log that have at least one known value (`user`, `status`, ...). `order`: int64, the index of each job
    in the original arrays (or records), from 0; None if they were already in order of arrival. `in_given_order` restores that
    order. `feedback`: whether a job with a `preceding_job` among these jobs is submitted only after the end of that job and a
    `think_time` (s, 0 if unknown); `submit` then is its value if no job ever waits.

    Raises WorkloadError if the arrays differ in length, contain impossible values or are not in order of arrival.

    >>> jobs = Workload.from_arrays(submit=[0, 5], runtime=[10, 10], procs=[4, 2], machine_procs=4)
    >>> len(jobs), jobs.job_id.tolist(), jobs.requested.tolist()
    (2, [1, 2], [10, 10])
    """

    job_id: Array
    submit: Array
    runtime: Array
    requested: Array
    procs: Array
    machine_procs: int
    planned: Array
    columns: Mapping[str, Array] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    feedback: bool = False
    order: Array | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.order is not None:
            object.__setattr__(self, "order", _frozen(self.order))
        object.__setattr__(self, "columns", {name: _frozen(array) for name, array in self.columns.items()})
        same = self.planned is self.requested
        for name in _ARRAYS:
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        if same:
            object.__setattr__(self, "planned", self.requested)

    @classmethod
    def from_arrays(
        cls,
        *,
        submit,
        runtime,
        procs,
        machine_procs: int,
        requested=None,
        planned=None,
        job_id=None,
        columns: Mapping[str, Array] | None = None,
        origin: Origin | None = None,
        feedback: bool = False,
    ) -> Workload:
        """Build a workload from sequences in any order of submission.

        The jobs are sorted by arrival, and so are all results. Jobs that come after one with a later submission are counted as
        `reordered` in `origin.changed`, and `in_given_order` restores the original order:

        >>> from walltime import Easy, simulate
        >>> jobs = Workload.from_arrays(submit=[5, 0], runtime=[10, 20], procs=[1, 2], machine_procs=2)
        >>> jobs.submit.tolist(), jobs.order.tolist(), dict(jobs.origin.changed)
        ([0, 5], [1, 0], {'reordered': 1})
        >>> jobs.in_given_order(simulate(jobs, Easy()).start).tolist()
        [20, 0]

        `requested` defaults to the runtime and is at least 1 s; `planned` defaults to `requested`; `job_id`
        to 1, 2, ... in order of arrival. Texts of a column, such as user names, are numbered from 1 by first occurrence, and kept in
        `origin.names`. Raises WorkloadError under the same conditions as the class.
        """
        fields = {"submit": _int64("submit", submit), "runtime": _int64("runtime", runtime), "procs": _int64("procs", procs)}
        fields["requested"] = np.maximum(fields["runtime"], 1) if requested is None else _int64("requested", requested)
        fields["planned"] = fields["requested"] if planned is None else _int64("planned", planned)
        lengths = {len(values) for values in fields.values()}
        if len(lengths) > 1:
            raise WorkloadError(
                f"submit, runtime, procs, requested and planned must have the same length, not {sorted(lengths)}", "different_lengths"
            )
        submit = fields["submit"]
        if job_id is None:
            order = np.argsort(submit, kind="stable")
            job_id = np.empty(len(submit), np.int64)
            job_id[order] = np.arange(1, len(submit) + 1)
        else:
            job_id = _of_length("job_id", _int64("job_id", job_id), len(submit))
            order = np.lexsort((job_id, submit))
        same = fields["planned"] is fields["requested"]
        fields = {name: values[order] for name, values in fields.items()}
        if same:
            fields["planned"] = fields["requested"]
        origin = origin or Origin(records=len(submit))
        if behind := int((submit[1:] < np.maximum.accumulate(submit)[:-1]).sum()):
            origin = replace(origin, changed={**origin.changed, "reordered": origin.changed.get("reordered", 0) + behind})
        given = {name: numbered(name, _of_length(name, values, len(submit))[order]) for name, values in (columns or {}).items()}
        if named := {name: texts for name, (_, texts) in given.items() if texts}:
            origin = replace(origin, names={**origin.names, **named})
        return cls(
            job_id=job_id[order],
            **fields,
            machine_procs=_whole("machine_procs", machine_procs),
            columns={name: numbers for name, (numbers, _) in given.items()},
            origin=origin,
            feedback=feedback,
            order=order if (np.diff(order) != 1).any() else None,
        )

    def __len__(self) -> int:
        return len(self.submit)

    def table(self) -> pl.DataFrame:
        """Return the jobs as a polars table, one row per job: the arrays, then the other columns of the log."""
        import polars as pl

        return pl.DataFrame({name: getattr(self, name) for name in _ARRAYS} | dict(self.columns))

    def name_at(self, job: int, column: str) -> str:
        """Return the name in a column for the job with this index; empty if it is unknown."""
        number = int(self.columns[column][job]) if column in self.columns else -1
        return self.origin.name_of(column, number) if number >= 0 else ""

    def to_pandas(self) -> Any:
        """Return the jobs as a pandas table; needs pandas (`pip install walltime[pandas]`)."""
        import pandas as pd

        return pd.DataFrame({column.name: column.to_numpy() for column in self.table()})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table for libraries that read Arrow."""
        return self.table().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        span = int(self.submit[-1] - self.submit[0]) if len(self) else 0
        users = self.columns.get("user")
        known = 0 if users is None else len(np.unique(users[users >= 0]))
        rows = [
            ("jobs", f"{len(self):,}"),
            ("processors", f"{self.machine_procs:,}"),
            ("days of submissions", f"{span / 86_400:,.1f}"),
            ("offered load", number(self.offered_load)),
            ("users", f"{known:,}" if known else "unknown"),
            ("records dropped", f"{sum(self.origin.dropped.values()):,}"),
        ]
        return Facts(self.origin.name, rows, "; ".join(self.origin.steps))._repr_html_()

    def __repr__(self) -> str:
        return f"<Workload {self.origin.name}: {counted(len(self), 'job')} on {counted(self.machine_procs, 'processor')}>"

    @property
    def recorded_wait(self) -> Array | None:
        """Return the wait of each job in the real schedule, int64 s, -1 where unknown; None if the log has none, or only zeros."""
        wait = self.columns.get("wait")
        return wait if wait is not None and (wait > 0).any() else None

    def with_planned(self, planned) -> Workload:
        """Return the jobs with other planned runtimes (int64 seconds, one per job, at least 1)."""
        return replace(self, planned=_int64("planned", planned))

    @property
    def believed(self) -> Array:
        """Return `planned` by its former name."""
        return self.planned

    with_believed = with_planned

    def with_estimates(self, model: EstimateModel | Array, seed: int = 0) -> Workload:
        """Return the jobs with estimates that a model of `walltime.estimates` draws for this seed, or with these (int64 s).

        The scheduler plans with them; if the model sets the limit, they also replace the users' requests, and are the kill limit.
        """
        if isinstance(model, np.ndarray | list):
            return self.with_planned(np.asarray(model))
        if fault := seed_fault(seed):
            raise WorkloadError(fault, "wrong_type")
        if not hasattr(model, "draw"):
            remedy = "walltime.estimates.parse_estimates makes one of a text, walltime.estimates.OwnEstimates.of one of a function"
            raise WorkloadError(f"estimates must be a model or an array of seconds, not {shown(model)}; {remedy}", "wrong_type")
        drawn = self.with_planned(model.draw(self, seed))
        return replace(drawn, requested=drawn.planned) if model.limit == "model" else drawn

    def with_machine(self, machine_procs: int) -> Workload:
        """Return the jobs on a machine of another size; raises WorkloadError if a job is wider than it."""
        return replace(self, machine_procs=_whole("machine_procs", machine_procs))

    def with_feedback(self, feedback: bool = True) -> Workload:
        """Return the jobs, submitted after the ends of their preceding jobs, or (False) at fixed times."""
        return replace(self, feedback=feedback)

    def dependencies(self) -> tuple[Array, Array]:
        """Return the index of each job's preceding job (-1 for none), and its think time in s; both int64."""
        missing = np.full(len(self), -1, np.int64)
        think_time = np.maximum(self.columns.get("think_time", missing), 0)
        preceding = self.columns.get("preceding_job", missing)
        return np.where(preceding >= 0, self.places_of(preceding), -1), think_time

    def places_of(self, numbers: Array) -> Array:
        """Return the index of the job with each of these numbers, int64; -1 for a number that no job has."""
        if not len(self):
            return np.full(len(numbers), -1)
        by_id = np.argsort(self.job_id)
        place = by_id[np.searchsorted(self.job_id[by_id], numbers).clip(max=len(self) - 1)]
        return np.where(self.job_id[place] == numbers, place, -1)

    def job_number(self, text: str) -> int:
        """Return the number of a job from a text such as `517498`, or `517498_1` for a task of an array.

        Raises PolicyError for other texts, WorkloadError for an unknown task.
        """
        match = re.fullmatch(r"(-?[0-9]{1,18})(?:_([0-9]{1,18}))?", text, re.ASCII)
        if match is None:
            raise PolicyError(f"the number of a job must be like 4034, or 27_3 for a task of an array, not {shown(text)}", "wrong_job")
        if match[2] is None:
            return int(match[1])
        unknown = np.full(len(self), -1)
        array, task = (self.columns.get(name, unknown) for name in ("array_job", "array_task"))
        mine = (array == int(match[1])) & (task == int(match[2]))
        if not mine.any():
            raise WorkloadError(
                f"{self.origin.name} has no task {shown(text)} of an array among its {counted(len(self), 'job')}", "unknown_job"
            )
        return int(self.job_id[np.argmax(mine)])

    def picked(self, chosen: Array) -> dict[str, Any]:
        """Return the arrays and columns of the jobs at these indices (bool or int64), by the field's name."""
        fields = {name: getattr(self, name)[chosen] for name in _ARRAYS}
        if self.planned is self.requested:
            fields["planned"] = fields["requested"]
        return fields | {"columns": {name: values[chosen] for name, values in self.columns.items()}}

    def take(self, chosen: Array, step: str) -> Workload:
        """Return the jobs at these indices (bool or int64, in order of arrival), with a description for `origin.steps`."""
        order = None if self.order is None else self.order[chosen]
        return replace(self, **self.picked(chosen), origin=self.origin.after(step), order=order)

    @property
    def warnings(self) -> list[str]:
        """Return the sentences that begin every result, if much work is left out or jobs are from several clusters."""
        clusters = self.columns.get("cluster", np.zeros(0, np.int64))
        numbers, counts = np.unique(clusters[clusters >= 0], return_counts=True)
        told = [f"{self.origin.name_of('cluster', k)} {count:,}" for k, count in zip(numbers.tolist(), counts.tolist(), strict=True)]
        remedy = "keep one with --remove \"cluster != 'NAME'\""
        several = f"The log has jobs of {len(told)} clusters ({', '.join(told)}), which are simulated as one machine; {remedy}."
        return warning_of(self.origin.drops) + [several] * (len(told) > 1)

    @property
    def work(self) -> Array:
        """Return the processor-seconds of each job, float64."""
        return self.procs * self.runtime.astype(np.float64)

    def without(self, masks: Mapping[str, Array], reasons: Mapping[str, str], step: str = "") -> Workload:
        """Return the jobs outside the masks (bool, by rule), and add the others to `origin.drops`; `reasons`: a sentence by rule."""
        kept, drops = drop_jobs(masks, reasons, self.work)
        origin = self.origin.after(step) if step else self.origin
        left = self.take(kept, step) if drops else self
        return replace(left, origin=replace(origin, drops=(*origin.drops, *drops))) if drops or step else self

    def in_given_order(self, values: Array) -> Array:
        """Return values, one per job in order of arrival, in the order in which the jobs were given.

        For a subset of the jobs, it takes one value per job of the subset. Raises WorkloadError for another number of values.
        """
        values = _of_length("the array", np.asarray(values), len(self))
        return values if self.order is None else values[np.argsort(self.order, kind="stable")]

    @property
    def offered_load(self) -> float:
        """Return the processor-seconds demanded, divided by those available from first to last submission (mualem01, section 3.1)."""
        span = int(self.submit[-1] - self.submit[0]) if len(self) else 0
        if span == 0:
            return float("nan")
        return float(np.dot(self.procs.astype(np.float64), self.runtime)) / (self.machine_procs * span)


def check_workload(value: object) -> None:
    """Raise WorkloadError if this is not a workload; for the name of a log, explain how to read it."""
    if isinstance(value, str | PathLike):
        raise WorkloadError(f"{shown(fspath(value))} is the name of a log; read its jobs with walltime.read first", "wrong_type")
    if not isinstance(value, Workload):
        raise WorkloadError(
            f"{shown(value)} is not a workload; read a log with walltime.read, or make one with Workload.from_arrays", "wrong_type"
        )


def _int64(name: str, values) -> Array:
    array = np.asarray(values)
    if array.ndim != 1:
        raise WorkloadError(f"{name} must have 1 dimension, not {array.ndim}", "wrong_type")
    if array.dtype == np.int64:
        return array
    if array.size == 0:
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iufb":
        raise WorkloadError(f"{name} must contain numbers, not {array.dtype}", "wrong_type")
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array == np.floor(array)).all()):
        raise WorkloadError(f"{name} must contain whole numbers (seconds or processors); round them first", "wrong_type")
    if array.dtype.kind in "fu" and (array >= 2.0**62).any():
        raise WorkloadError(f"{name} must be below 2^62, not {array.max():g}", "number_out_of_range")
    return array.astype(np.int64)


def _whole(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not abs(int(value)) < 2**62:
        raise WorkloadError(f"{name} must be a whole number, not {value!r}", "wrong_type")
    return int(value)


def _of_length(name: str, values: Array, length: int) -> Array:
    array = np.asarray(values)
    if array.shape != (length,):
        raise WorkloadError(f"{name} must have as many entries as submit ({length}), not {array.size}", "wrong_length")
    return array


def _frozen(array: Array) -> Array:
    """Return a read-only view; the array's owner can still write to it."""
    view = array.view()
    view.flags.writeable = False
    return view


def _check_sums(w: Workload, thinking: float) -> None:
    longest = np.maximum(np.maximum(w.runtime, w.requested), w.planned)
    if float(w.submit[-1]) + float(longest.sum(dtype=np.float64)) + thinking >= LAST_TIME:
        raise WorkloadError("the times of all jobs add up to more seconds than a schedule can represent; leave out the longest jobs")
    work = longest.astype(np.float64) * w.procs
    if float(work.sum()) >= MOST_WORK:
        i = int(np.argmax(work))
        raise WorkloadError(
            f"the jobs add up to {float(work.sum()):.1e} processor-seconds, more than can be counted ({MOST_WORK:.1e}); the largest is "
            f"job {w.job_id[i]}, with {counted(w.procs[i], 'processor')} for {longest[i]} s: leave it out, or correct it"
        )


def _check(w: Workload) -> None:
    n = len(w.submit)
    if w.machine_procs < 1:
        raise WorkloadError(f"the machine must have at least 1 processor, not {w.machine_procs}", "number_out_of_range")
    arrays = {name: getattr(w, name) for name in _ARRAYS}
    for name, array in (arrays | dict(w.columns)).items():
        if len(array) != n:
            raise WorkloadError(f"{name} must have as many entries as submit ({n}), not {len(array)}", "wrong_length")
    for name, least in (("submit", 0), ("runtime", 0), ("requested", 1), ("planned", 1), ("procs", 1)):
        odd = (arrays[name] < least) | ((arrays[name] >= MAX_TIME) & (name != "procs"))
        if odd.any():
            i = int(np.argmax(odd))
            allowed = f"at least {least}" if arrays[name][i] < least else "below 2^60 s"
            raise WorkloadError(f"{name} of job {w.job_id[i]} must be {allowed}, not {arrays[name][i]}", "number_out_of_range")
    most = max(int(arrays[name].max(initial=0)) for name in ("runtime", "requested", "planned"))
    widest = int(w.procs.max(initial=0))
    thinking = float(np.maximum(w.columns.get("think_time", w.submit[:0]), 0).sum(dtype=np.float64)) if w.feedback else 0.0
    if n and (float(w.submit[-1]) + float(n) * most + thinking >= LAST_TIME or float(n) * most * widest >= MOST_WORK):  # quick bounds
        _check_sums(w, thinking)
    wide = w.procs > w.machine_procs if widest > w.machine_procs else np.zeros(0, bool)
    if wide.any():
        i = int(np.argmax(wide))
        raise WorkloadError(f"job {w.job_id[i]} needs {w.procs[i]} processors, but the machine has {w.machine_procs}", "job_too_wide")
    if n > 1:
        rising = bool((w.job_id[1:] > w.job_id[:-1]).all())
        bad = w.submit[1:] < w.submit[:-1]
        if not rising:
            bad |= (w.submit[1:] == w.submit[:-1]) & (w.job_id[1:] <= w.job_id[:-1])
        if bad.any():
            i = int(np.argmax(bad))
            raise WorkloadError(
                f"jobs {w.job_id[i]} and {w.job_id[i + 1]} (rows {i + 1} and {i + 2}) must be sorted by submit, then job id", "wrong_order"
            )
        ids = w.job_id if rising else np.sort(w.job_id)  # much faster than np.unique for numbers that are nearly in order
        if not rising and (ids[1:] == ids[:-1]).any():
            raise WorkloadError("two jobs have the same job id; give each job its own number", "repeated_job")
    if w.feedback:
        after, _ = w.dependencies()
        late = after >= np.arange(n)
        if late.any():
            i = int(np.argmax(late))
            raise WorkloadError(
                f"job {w.job_id[i]} names the preceding job {w.job_id[after[i]]}, which is not submitted earlier; check fields 17 and 18"
                " of the log",
                "wrong_dependency",
            )
