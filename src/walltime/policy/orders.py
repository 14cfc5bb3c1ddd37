"""Queue orders: the job with the highest score comes first; ties are broken by arrival."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from walltime.declared import DeclaredKey, Key
from walltime.errors import PolicyError
from walltime.policy.files import place_of
from walltime.policy.log_view import COLUMNS, NO_START
from walltime.specification import Specification, spell

CALENDAR = ("hour", "weekday")
"""The local time at the site when the queue is ordered: 0 to 23, and 0 (Monday) to 6."""
STANDING = ("waiting", "queued", "free", "machine")
"""How queue and machine stand at an instant: waiting jobs, their work by their estimates (processor seconds), free processors, and all
processors. What has ended or arrived by then counts, what starts at it does not yet."""
Array = np.ndarray
ARGUMENTS = ("wait", "believed", "procs", "submit", "elapsed", *COLUMNS, *CALENDAR, "longest", *STANDING)
"""Possible parameters of an order's function: seconds waited so far, the runtime that the scheduler plans with (s), processors,
submit time (s), the same since the first job of the workload was submitted (s), columns of the log, the calendar, the longest wait
of the jobs that have started before the queue is ordered (s), and `STANDING`."""
HISTORY = {f"{key}_{measure}": key for key in ("user", "group", "queue", "partition") for measure in ("waited", "used", "started")}
"""Further parameters: what the job's user, group, queue or partition has had, over the last so many seconds or with the half-life of the
order, each with the column that it is of. `waited`: waits of jobs that started, s; `used`: processor seconds of jobs that ended; `started`:
how many jobs."""
MOST = sys.float_info.max
"""The highest score of a job that does not starve, where others may."""


Name = Annotated[str, Key(inside=True)]
Starvation = Annotated[int | None, Key(least=0)]
"""After how many seconds of waiting a job comes before all that have waited for less."""
Limit = Annotated[float | None, Key(least=0)]
"""The same as a share of the longest wait that there has been; with both, a job must have waited for longer than either."""


@dataclass(frozen=True)
class Order(Specification):
    """A queue order, by name; `walltime.order` makes one from a Python function.

    If `starvation` (s) is one of its options and given, a job that has waited for longer comes before all that have not, and among such
    jobs the earliest arrival comes first. With `limit` a job must also have waited for longer than this share of the longest wait so far,
    of the jobs that started before the queue is ordered: a bound that needs no knowledge of the machine and its load.
    """

    name: Name

    @property
    def bounds(self) -> tuple[int | None, float | None]:
        """Its `starvation` and `limit`, None for those that it does not have."""
        return getattr(self, "starvation", None), getattr(self, "limit", None)

    @property
    def reads_longest(self) -> bool:
        """Whether it depends on the longest wait so far."""
        return self.bounds[1] is not None or "longest" in self.asks()

    @property
    def reads_standing(self) -> bool:
        """Whether it depends on how queue and machine stand."""
        return any(name in STANDING for name in self.asks())

    @property
    def unlisted(self) -> str:
        """Its own name."""
        return self.name

    def asks(self) -> tuple[str, ...]:
        """Those of `ARGUMENTS` on which scores may depend."""
        return ARGUMENTS[:5]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the log that it reads."""
        return tuple(name for name in self.asks() if name in COLUMNS)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it reads, or of whose jobs it asks the history."""
        return (*self.columns, *self.history_of)

    @property
    def history_of(self) -> tuple[str, ...]:
        """The columns of whose jobs it asks the history."""
        return tuple(dict.fromkeys(HISTORY[name] for name in self.asks() if name in HISTORY))

    @property
    def reads_calendar(self) -> bool:
        """Whether it reads the hour or the weekday."""
        return any(name in CALENDAR for name in self.asks())

    def score(self, wait: int, believed: int, procs: int, submit: int, **others: int) -> float:
        """Score of one job, the highest comes first, whether or not it starves.

        `others`: the columns and calendar values that it asks for, and `elapsed`, which is the submit time if left out.
        """
        raise NotImplementedError

    def standing(self, score: float, wait: int, longest: int = 0) -> float:
        """What the queue is sorted by: the score, minus infinity for one that is no number, and infinity for a job that starves.

        `wait`: of the job; `longest`: of all that have started before the queue is ordered, s.
        """
        score = -math.inf if math.isnan(score) else score
        starvation, limit = self.bounds
        if starvation is None and limit is None:
            return score
        return math.inf if wait > (starvation or 0) and wait > (limit or 0.0) * longest else min(score, MOST)

    def without_calendar(self) -> PolicyError:
        """The error to raise if it reads the calendar and there is none."""
        asked = " and ".join(name for name in self.asks() if name in CALENDAR)
        return PolicyError(f"the order {self.name!r} asks for the {asked}, but {NO_START}", "unknown_start_time")


@dataclass(frozen=True)
class FirstCome(Order):
    """First come, first served."""

    name: Name = "fcfs"

    def score(self, wait: int, believed: int, procs: int, submit: int, **others: int) -> float:
        """Earlier arrivals score higher."""
        return float(-submit)


@dataclass(frozen=True)
class ScoredOrder(Order):
    """An order whose score is a small Python function of some of `ARGUMENTS`, which is compiled for the kernel."""

    @property
    def scoring(self) -> Callable[..., float]:
        """The function; the same object for equal orders, so that it is compiled once."""
        raise NotImplementedError

    @property
    def is_monotone(self) -> bool:
        """Whether a job's score never falls while it waits, so that scores to come can be bounded."""
        return False

    def asks(self) -> tuple[str, ...]:
        """Names of the function's parameters; raises PolicyError for any not in `ARGUMENTS`."""
        return self._arguments

    @functools.cached_property
    def _arguments(self) -> tuple[str, ...]:  # the reference engine asks for every score, and inspecting a signature is slow
        try:
            parameters = inspect.signature(self.scoring).parameters
            names = tuple(name for name, one in parameters.items() if one.default is one.empty)
        except (ValueError, TypeError):
            raise PolicyError(f"the order {self.name!r} is no Python function with parameters of its own", "opaque_order") from None
        unknown = [n for n in names if n not in ARGUMENTS and n not in HISTORY]
        if unknown or not names:
            what = f"asks for {', '.join(unknown)}" if unknown else "takes no parameter"
            known = f"{', '.join(ARGUMENTS)}, and user_waited, user_used, user_started, likewise of group, queue and partition"
            raise PolicyError(
                f"{place_of(self.scoring)}the order {self.name!r} {what}; an order's function may ask for {known}", "unknown_parameter"
            )
        return names

    @property
    def parameters(self) -> Sequence[float]:
        """Numbers that the function takes after its other arguments, and that do not compile it again when they change."""
        return ()

    @property
    def changes(self) -> bool:
        """Whether scores change while jobs wait, other than by starving."""
        return any(name in ("wait", "longest", *STANDING) for name in self.asks()) or self.reads_calendar or bool(self.history_of)

    @property
    def reads_time(self) -> bool:
        """Whether scores change while jobs wait, or there is a limit that does."""
        return self.changes or self.reads_longest

    def score(self, wait: int, believed: int, procs: int, submit: int, **others: int) -> float:
        """The function's result, with rounding and division by zero as in compiled code.

        Columns not given count as unknown, -1, and the request as the believed runtime. Raises PolicyError if the calendar is
        needed but not given.
        """
        values: dict[str, Any] = dict.fromkeys(COLUMNS, -1)
        values |= {"wait": wait, "believed": believed, "requested": believed, "procs": procs, "submit": submit}
        values |= {"elapsed": submit, "longest": 0} | dict.fromkeys(STANDING, 0) | {"machine": procs} | dict.fromkeys(HISTORY, 0.0) | others
        names = self.asks()
        if any(name not in values for name in names):
            raise self.without_calendar()
        given = [np.float64(values[name]) if name in HISTORY else np.int64(values[name]) for name in names]
        with np.errstate(all="ignore"):
            return self._called(self.scoring, *given, *self.parameters)

    def scores(self, columns: Mapping[str, Array]) -> Array:
        """The scores of many jobs, float64: as `score` gives them one after the other, in a fraction of the time.

        `columns`: a value of each job (int64) for each name that the function asks for.
        """
        rows = zip(*(columns[name] for name in self.asks()), strict=True)
        function, parameters = self.scoring, self.parameters
        with np.errstate(all="ignore"):
            return np.array([self._called(function, *row, *parameters) for row in rows], np.float64)

    def _called(self, function: Callable[..., float], *given: Any) -> float:
        """The function's result, with division by zero and overflow as in compiled code."""
        try:
            return float(function(*given))
        except (ValueError, ZeroDivisionError):
            return -math.inf  # as in the kernel, where these are minus infinity or NaN, and NaN counts as the lowest
        except OverflowError:
            return math.inf
        except TypeError as error:
            raise PolicyError(f"the order {self.name!r} does not give a number: {error}", "own_code_failure") from error


@dataclass(frozen=True)
class ShortestFirst(ScoredOrder):
    """Shortest job first, by the runtime that the scheduler plans with.

    As a backfill order this is the SJBF of EASY++ (tsafrir07).
    """

    name: Name = "sjf"
    starvation: Starvation = None
    """after so many seconds of waiting a job comes first"""
    limit: Limit = None
    """the same as a share of the longest wait so far; with both, it must have waited for longer than either"""

    @property
    def scoring(self) -> Callable[..., float]:
        """The score, for a kernel that does not know it."""
        return _shortest

    @property
    def is_monotone(self) -> bool:
        """It stays as it is."""
        return True

    def score(self, wait: int, believed: int, procs: int, submit: int, **others: int) -> float:
        """Shorter jobs score higher."""
        return float(-believed)


@dataclass(frozen=True)
class Wfp(ScoredOrder):
    """`(wait / believed) ** exponent * procs`: favours long waits, wide jobs and short jobs.

    `believed` is the runtime that the scheduler plans with: the user's request, unless estimates or predictions replace it.

    Source: tang13, eq. 5; the threshold is that of an example in Cobalt's README, 0.75 with an exponent of 2.
    """

    name: Name = "wfp"
    exponent: Annotated[int, Key(least=1)] = 3
    """how strongly the wait counts"""
    threshold: Annotated[float, Key(least=0, most=1)] = 0.0
    """a job may start in place of a blocked head only if its score is at least this fraction of the head's; for FCFS, EASY and hybrids up
    to depth 1; 0 for none"""
    starvation: Starvation = None
    """after so many seconds of waiting a job comes first"""
    limit: Limit = None
    """the same as a share of the longest wait so far; with both, it must have waited for longer than either"""

    @property
    def scoring(self) -> Callable[..., float]:
        """The score, for a kernel that does not know it."""
        return _wfp(self.exponent)

    @property
    def is_monotone(self) -> bool:
        """It grows with the wait."""
        return True

    def score(self, wait: int, believed: int, procs: int, submit: int, **others: int) -> float:
        """The formula above, as repeated products, so that the compiled kernel rounds in the same way."""
        ratio = wait / believed
        power = 1.0
        for _ in range(self.exponent):
            power *= ratio
        return power * procs


def _shortest(believed):
    return -believed


@functools.cache
def _wfp(exponent: int) -> Callable[..., float]:
    def wfp(wait, believed, procs):
        ratio = wait / believed
        power = 1.0
        for _ in range(exponent):
            power *= ratio
        return power * procs

    return wfp


@dataclass(frozen=True)
class UserOrder(ScoredOrder):
    """An order of a user's own, made by `walltime.order`.

    `settings`: the values of the function's parameters that have a default, in their order. `last`, `half_life` (s): over which time it is
    told what users, groups and queues have had; one of them is None.
    """

    function: Annotated[Callable[..., float], Key(inside=True)]
    settings: Annotated[tuple[float, ...] | None, Key(inside=True)] = None
    last: Annotated[int | None, Key(inside=True)] = None
    half_life: Annotated[int | None, Key(inside=True)] = None
    starvation: Annotated[int | None, Key(inside=True)] = None
    limit: Annotated[float | None, Key(inside=True)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = [name for name in self.asks() if name in HISTORY]
        if asked and (self.last is None) == (self.half_life is None):
            cure = "say over which time: @walltime.order(last=7 * 86400) for the last week, or half_life=SECONDS"
            raise PolicyError(f"{place_of(self.function)}the order {self.name!r} asks for {asked[0]}; {cure}", "missing_period")
        for name in ("last", "half_life"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise PolicyError(f"the {name} of the order {self.name!r} must be a whole number of seconds, not {value!r}", "wrong_period")
        if self.settings is None:
            object.__setattr__(self, "settings", tuple(self._defaults.values()))

    @functools.cached_property
    def _defaults(self) -> dict[str, float]:
        """The parameters with a default, and these."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (ValueError, TypeError):
            return {}
        defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        for name, value in defaults.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise PolicyError(f"the default of {name} of the order {self.name!r} must be a number, not {value!r}", "wrong_default")
        return {name: float(value) for name, value in defaults.items()}

    def options(self) -> dict[str, DeclaredKey]:
        """The options that `but` takes: the parameters with a default, and over which time the order looks back."""
        times = [DeclaredKey(name, int | None, Key(least=1), None) for name in ("last", "half_life")] if self.history_of else []
        times += [DeclaredKey("starvation", int | None, Key(least=0), None), DeclaredKey("limit", float | None, Key(least=0), None)]
        known = [*(DeclaredKey(name, float, Key(), default) for name, default in self._defaults.items()), *times]
        return {one.field.replace("_", "-"): one for one in known}

    def but(self, **settings: Any) -> UserOrder:
        """The order with other values of its parameters that have a default, or of `last` and `half_life`."""
        mine = dict(zip(self._defaults, self.settings or (), strict=True))
        times = {name: settings.pop(name) for name in ("last", "half_life") if name in settings}
        bounds = {name: settings.pop(name) for name in ("starvation", "limit") if name in settings and name not in mine}
        unknown = [name for name in settings if name not in mine]
        if unknown:
            known = ", ".join((*mine, "last", "half_life", "starvation", "limit"))
            raise PolicyError(f"{unknown[0]!r} is no option of the order {self.name!r}; its options are {known}")
        for name, value in settings.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise PolicyError(f"{name} of the order {self.name!r} must be a number, not {value!r}")
            mine[name] = float(value)
        last, half_life = (times.get("last"), times.get("half_life")) if times else (self.last, self.half_life)
        return replace(self, settings=tuple(mine.values()), last=last, half_life=half_life, **bounds)

    def __call__(self, *args: Any, **kwargs: Any) -> float:
        """Call the function itself."""
        return self.function(*args, **kwargs)

    @property
    def scoring(self) -> Callable[..., float]:
        """The function."""
        return self.function

    @property
    def parameters(self) -> Sequence[float]:
        """The values of the parameters that have a default."""
        return self.settings or ()

    @property
    def label(self) -> str:
        """Its name, with the settings that differ from the default."""
        changed = [
            f"{name}={repr(value).removesuffix('.0')}"
            for (name, default), value in zip(self._defaults.items(), self.settings or (), strict=True)
            if value != default
        ]
        changed += [f"{name}={spell(value)}" for name, value in zip(("starvation", "limit"), self.bounds, strict=True) if value is not None]
        return self.name + (":" + ",".join(changed) if changed else "")


FCFS = FirstCome()
SJF = ShortestFirst()
WFP = Wfp()


def has_history(policy: Any) -> bool:
    """Whether an order of this policy asks for what users, groups or queues have had, the longest wait so far, or `STANDING`."""
    orders = (policy.order, getattr(policy, "backfill_order", None))
    return any(order is not None and (order.history_of or order.reads_longest or order.reads_standing) for order in orders)


def order(function: Callable[..., float] | None = None, *, last: int | None = None, half_life: int | None = None) -> Any:
    """Make a queue order from a function; the job with the highest value comes first.

    The function's parameters may be `wait` and `believed` (the runtime that the scheduler plans with), both s, `procs`, `submit` (s) and
    `elapsed` (s from the first submission of the workload to the job's); the columns `requested` (the
    user's request, s), `user, group, executable, queue, partition` and `job_id`, -1 if unknown; and `hour` (0 to 23) and
    `weekday` (0 is Monday), the local time at the site when the queue is ordered; `longest`, the longest wait so far, s; and how queue and
    machine stand: `waiting` jobs, the work `queued` (processor seconds), `free` processors, and those of the `machine`; whole numbers.
    The function is compiled, so it may use only numbers and the `math` module. Parameters with a default are options: numbers, spelled
    `FILE.py:NAME,hours=12`, that compile nothing when they change.

    `user_waited`, `user_used` and `user_started`, and the same of `group`, `queue` and `partition`, are what the jobs of the same user have
    had strictly before the queue is ordered: the waits of those that started, s, the processor seconds of those that ended, and how many
    started; over the `last` so many seconds, or each weighted by 0.5 for every `half_life` (s) that has passed since.

    >>> @order
    ... def widest(procs):
    ...     return procs
    >>> widest.score(wait=0, believed=60, procs=8, submit=0)
    8.0
    >>> @order(last=7 * 86_400)
    ... def patient(user_waited, hours=24):
    ...     return user_waited > hours * 3600
    >>> patient.score(wait=0, believed=60, procs=8, submit=0, user_waited=100_000), patient.but(hours=48).label
    (1.0, 'patient:hours=48')
    """

    def make(function: Callable[..., float]) -> UserOrder:
        return UserOrder(getattr(function, "__name__", repr(function)), function, None, last, half_life)

    return make if function is None else make(function)
