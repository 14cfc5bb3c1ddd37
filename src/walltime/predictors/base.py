"""The interface of all predictors, the data on a job that they may read, the keys of similar jobs, and the memory of compiled forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError, WorkloadError
from walltime.plugins.files import location_of, make_object, user_code
from walltime.policy.randomness import generator, takes_generator
from walltime.specification import Specification
from walltime.workload import Array, Workload

if TYPE_CHECKING:
    from walltime.compiled.prediction_memory import CompiledPredictor, PredictorMemory


KEYS = {
    "all": (),
    "user": ("user",),
    "project": ("group",),
    "double": ("user", "group"),
    "triple": ("user", "group", "requested"),
    "request": ("user", "requested"),
    "program": ("executable", "user", "procs"),
    "size": ("user", "procs"),
    "shape": ("user", "procs", "requested"),
}
"""Jobs are similar if they have equal values in all of these columns. `user` to `triple` are the keys of tang13 (section 4.2); `request` is
the triple key for logs without groups. `program` is the key of mualem01 (section 4.4), `size` the same for logs without programs, and
`shape` contains the properties that a user can choose. A job with an unknown value in one of the columns is similar to no other job."""


class Basis(IntEnum):
    """The basis of a prediction."""

    NOTHING = 0
    """nothing is known: the prediction is the user's request"""
    OWN = 1
    """similar jobs"""
    GENERAL = 2
    """all jobs, because there are too few similar jobs"""
    BELOW = 3
    """the predicted value is negative, so the prediction is the user's request"""


class Guess(NamedTuple):
    """A predicted runtime, s, and its basis."""

    seconds: float
    basis: Basis = Basis.OWN


class SubmittedJob:
    """The data on a job that are known before it ends; `now` is the current time, s.

    `job_id, submit, requested, procs` and, -1 if unknown, `user, group, executable, queue, partition` are whole numbers, with times in
    seconds; other columns of the log that are known at submission are attributes, too. Reading `start`, `end` or `runtime` raises
    AttributeError, because they are not known yet.
    """

    __slots__ = ("_known", "index", "now", "submit")
    COLUMNS = ("job_id", "requested", "procs", "user", "group", "executable", "queue", "partition")
    FUTURE = ("start", "end", "runtime")

    def __init__(self, known: dict[str, list[Any]], index: int, submit: int, now: int):
        self._known = known
        self.index = index
        self.submit = submit
        self.now = now

    def __getattr__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name][self.index]
        if name in SubmittedJob.FUTURE:
            raise AttributeError(f"job {self.job_id} has not ended: its {name} is not known yet")
        raise AttributeError(f"jobs have no {name!r}. Valid names: {', '.join(('submit', *self._known))}")


class StartedJob(SubmittedJob):
    """A job that has just started, with `start`, s; its end and runtime are not known yet."""

    __slots__ = ("start",)

    def __init__(self, known: dict[str, list[int]], index: int, submit: int, start: int):
        super().__init__(known, index, submit, now=start)
        self.start = start


class FinishedJob(SubmittedJob):
    """A job that has ended or was killed, with `start`, `end` and `runtime`, s."""

    __slots__ = ("end", "start")

    def __init__(self, known: dict[str, list[int]], index: int, submit: int, start: int, end: int):
        super().__init__(known, index, submit, now=end)
        self.start = start
        self.end = end

    @property
    def runtime(self) -> int:
        """Return the runtime, s."""
        return self.end - self.start


class Learner(Protocol):
    """A predictor's state in one run.

    A method `started(job)`, if there is one, is called with a `StartedJob` whenever a job starts.
    """

    def predict(self, job: SubmittedJob) -> float | Guess | None:
        """Return the predicted runtime of this job, s; None if nothing is known. The request replaces None and negative values."""

    def observe(self, job: FinishedJob) -> None:
        """Learn from a job that has ended."""


Alike = Annotated[str, Field(known=tuple(KEYS))]
"""The name of a key in `KEYS`, which defines similar jobs."""


@dataclass(frozen=True)
class Predictor(Specification):
    """The parameters of a predictor; `begin` returns a new, untrained learner for each run.

    Predictions are rounded to whole seconds, half up; they are at least 1 s and, unless `uncapped`, at most the user's request. Jobs are
    killed at the user's request in any case. A predictor has a plain form, `begin`, which defines it, and may have a compiled form,
    `compiled`, for the compiled engine; otherwise it runs on the reference engine, and in `predict`.
    """

    def begin(self) -> Learner:
        """Return a learner that has seen no job."""
        raise NotImplementedError

    def predict_all(self, workload: Workload, requested: Array, runtime: Array) -> Array | None:
        """Return the predictions, int64 s, one per job, if they do not depend on finished jobs; otherwise None."""
        return None

    def made_in_advance(self, workload: Workload, requested: Array, runtime: Array, limit: Array) -> tuple[Array, Array] | None:
        """Return the predictions and their basis, uint8, if they do not depend on finished jobs; otherwise None.

        Predictions are at least 1 s and, unless `uncapped`, at most the limit (int64 s, one per job), which also replaces negative values.
        """
        given = self.predict_all(workload, requested, runtime)
        if given is None:
            return None
        known = given >= 0
        seconds = np.maximum(given if self.uncapped else np.minimum(given, limit), 1)
        basis = np.where(known, Basis.OWN, np.where(given < -1, Basis.BELOW, Basis.NOTHING))
        return np.where(known, seconds, limit), basis.astype(np.uint8)

    def remarks(self, workload: Workload, requested: Array, runtime: Array) -> list[str]:
        """Return caveats on predictions that were made elsewhere, as sentences."""
        return []

    def compiled(self, jobs: Jobs) -> CompiledPredictor | None:
        """Return an untrained compiled form for these jobs; None if there is none."""
        return None

    @property
    def is_compiled(self) -> bool:
        """Return whether the compiled engine can run it."""
        return type(self).compiled is not Predictor.compiled or type(self).predict_all is not Predictor.predict_all

    @property
    def uncapped(self) -> bool:
        """Return whether predictions may exceed the user's request; learned predictions never do."""
        return False

    @property
    def again(self) -> bool:
        """Return whether waiting jobs are predicted again in every scheduling pass, not only at submission (option `recompute`)."""
        return bool(getattr(self, "recompute", False))

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the names of the keys by which it finds similar jobs, in descending order of similarity."""
        return (getattr(self, "key", "all"),)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the log that it requires."""
        names = dict.fromkeys(name for key in self.keys for name in KEYS.get(key, ()))
        return tuple(name for name in names if name not in ("requested", "procs"))


@dataclass(frozen=True)
class PlainPredictor(Predictor):
    """A custom predictor; `make()` returns a new object with methods `predict(job)` and `observe(job)`.

    A method `started(job)`, if there is one, is called for each job that starts; and `begin(rng)` at the start of a run, with a
    `numpy.random.Generator` that depends on the run's seed only.

    >>> class Longest:
    ...     def __init__(self):
    ...         self.longest = {}
    ...     def predict(self, job):
    ...         return self.longest.get(job.user)
    ...     def observe(self, job):
    ...         self.longest[job.user] = max(job.runtime, self.longest.get(job.user, 0))
    >>> PlainPredictor(Longest).label
    'Longest'
    """

    make: Annotated[Callable[..., Any], Field(inside=True)]
    spelling: Annotated[str, Field(inside=True)] = ""
    """its label, such as `FILE.py:NAME,option=value`; empty for the name of the class"""
    options: Annotated[tuple[tuple[str, Any], ...], Field(inside=True)] = ()
    """arguments of `make`"""

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise PolicyError(f"a custom predictor must be a class or function that returns a new one, not {self.make!r}")

    def begin(self) -> Learner:
        """Return a new object of the custom class."""
        with user_code(f"the making of {self.label}"):
            learner: Learner = make_object(self.make, self.options, getattr(self.make, "__name__", repr(self.make)))
        for method in ("predict", "observe"):
            if not callable(getattr(learner, method, None)):
                raise PolicyError(f"{location_of(learner)}the predictor {self.label} needs a method {method}(self, job)", "missing_method")
        begin = getattr(learner, "begin", None)
        if callable(begin) and takes_generator(learner):
            with user_code(f"begin of {self.label}", begin, "begin(self, rng)"):
                begin(rng=generator("predictor"))
        return learner

    @property
    def code(self) -> Any:
        """Return the custom class or function."""
        return getattr(self.make, "kind", self.make)

    @property
    def unlisted(self) -> str:
        """Return its label: the specification, or the name of the class."""
        return self.spelling or getattr(self.make, "__name__", repr(self.make))


def predictor(make: Callable[[], Any]) -> PlainPredictor:
    """Make a predictor from a class with methods `predict(job)` and `observe(job)`; each run starts with a new object.

    >>> @predictor
    ... class TenMinutes:
    ...     def predict(self, job):
    ...         return 600
    ...     def observe(self, job):
    ...         pass
    >>> TenMinutes.label
    'TenMinutes'
    """
    return PlainPredictor(make)


def below_remark(label: str, basis: Array) -> list[str]:
    """Return a sentence, in a list, on the number of negative predictions, if there are any; `basis`: a `Basis` for each job."""
    below = int(np.count_nonzero(np.asarray(basis) == Basis.BELOW))
    sentence = f"{below:,} of {len(basis):,} predictions of {label} are below 0 s and not used; the user's request is used instead."
    return [sentence] if below else []


def check_columns(predictor: Predictor, workload: Workload) -> None:
    """Raise WorkloadError if the log lacks a column that the predictor requires."""
    missing = [name for name in predictor.columns if name not in workload.columns]
    if missing:
        raise WorkloadError(
            f"{predictor.label} needs the {' and the '.join(missing)} of jobs, which the log does not record",
            "missing_column",
        )


def key_of(job: Any, key: str) -> tuple[int, ...] | None:
    """Return the values of a key for a job with its columns as attributes; None if one of them is unknown."""
    values = tuple(int(getattr(job, name)) for name in KEYS[key])
    return None if any(value < 0 for value in values) else values


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs whose runtimes are predicted; arrays are int64 s with one entry per job.

    `requested`: the user requests. `limit`: upper bounds on the predictions. `runtime`: the actual runtimes, for `PredictorMemory.values`
    only; a compiled predictor reads a value only after the job has ended.
    """

    workload: Workload
    requested: Array
    limit: Array
    runtime: Array

    def memory(
        self,
        keys: Sequence[str],
        *,
        options: Sequence[int] = (),
        factors: Sequence[float] = (),
        counts: int = 0,
        ranked: Array | None = None,
        features: int = 0,
        model: tuple[int, int] = (0, 0),
    ) -> PredictorMemory:
        """Return an empty memory with a history for each value of the keys named in `keys`, and one for all jobs.

        `counts`: number of counters per history. `ranked` (float64, one per job): values with percentiles that are needed, for the first
        key. `features`: number of stored values per job. `model`: shape of the array of coefficients.
        """
        from walltime.compiled.prediction_memory import HISTORY, KNOWN, NOTHING, PredictorMemory

        jobs = len(self.workload)
        kinds = [alike(self.workload, self.requested, key) for key in keys]
        sizes = [np.bincount(kind[kind >= 0]) for kind in kinds]
        offsets = np.cumsum([0, *(len(size) for size in sizes)])
        size = np.concatenate([*sizes, [jobs]]).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(size)])
        known = np.zeros(jobs, KNOWN).view(np.recarray)
        known.requested, known.limit, known.procs = self.requested, self.limit, self.workload.procs
        known.started_at = known.ran = -1
        known.basis = NOTHING
        histories = np.zeros(len(size), HISTORY).view(np.recarray)
        histories.first, histories.room = first[:-1], size
        values = np.zeros(0)
        if ranked is not None:
            with_key = np.flatnonzero(kinds[0] >= 0)
            in_order = with_key[np.lexsort((ranked[with_key], kinds[0][with_key]))]
            values = ranked[in_order]
            known.place[in_order] = np.arange(1, len(in_order) + 1) - first[kinds[0][in_order]]
        key = [np.where(kind >= 0, kind + offset, -1) for kind, offset in zip(kinds, offsets, strict=False)]
        return PredictorMemory(
            options=np.array(options, np.int64),
            factors=np.array(factors, np.float64),
            jobs=known,
            key=np.ascontiguousarray(np.array(key, np.int64).T.reshape(jobs, len(keys))),
            keys=histories,
            counts=np.zeros((len(size), counts), np.int64),
            fifo=np.zeros(int(first[-1]), np.int64),
            marks=np.zeros(len(values), np.int64),
            values=values,
            features=np.zeros((jobs, features)),
            model=np.zeros(model),
        )


def alike(workload: Workload, requested: Array, key: str) -> Array:
    """Return a number for each job, int64, from 0, equal for jobs with equal keys; -1 if one of the columns is unknown."""
    number = np.zeros(len(workload), np.int64)
    known = np.ones(len(workload), bool)
    own = {"requested": requested, "procs": workload.procs}
    for name in KEYS[key]:
        column = own[name] if name in own else workload.columns[name]
        known &= column >= 0
        values, place = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + place, return_inverse=True)[1]
    number[known] = np.unique(number[known], return_inverse=True)[1]
    return np.where(known, number, -1).astype(np.int64)
