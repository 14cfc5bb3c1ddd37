"""Queue orders: the job with the highest score comes first; ties are broken by arrival."""

import functools
import importlib
import inspect
import math
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np

from walltime.declared import FORMER_NAMES, DeclaredField, Field
from walltime.errors import PolicyError
from walltime.plugins.files import load_object, location_of
from walltime.policy.log_view import COLUMNS, LATER, NO_START, RANDOM
from walltime.specification import Specification, spell

CALENDAR = ("hour", "weekday")
"""The site's local time when the queue is ordered: 0 to 23, and 0 (Monday) to 6."""
SYSTEM_STATE = ("waiting", "queued", "free", "machine")
"""State of queue and machine: waiting jobs, their estimated work (processor-seconds), free processors, and all processors. Ends and
arrivals of the same instant are included, starts are not."""
Array = np.ndarray
ARGUMENTS = ("wait", "planned", "procs", "submit", "elapsed", *COLUMNS, *CALENDAR, "longest", *SYSTEM_STATE, RANDOM)
"""Parameters of an order's function: wait so far, planned runtime, processors, submit time, time since the first submission, log columns,
the calendar, the longest wait of earlier jobs, the system state, and a random number; times in s."""
HISTORY = {f"{key}_{measure}": key for key in ("user", "group", "queue", "partition") for measure in ("waited", "used", "started")}
"""Further parameters, with the log column of each: past usage by the job's user, group, queue or partition, over the order's `last` seconds
or with its half-life. `waited`: waits of started jobs, s; `used`: processor-seconds of ended jobs; `started`: number of started jobs."""
OWN_SETTINGS = ("last", "half_life", "starvation", "max_wait_share")
"""Settings of a user-defined order besides the parameters of its function: the period of past usage, and the bounds on the wait."""
LARGEST_SCORE = sys.float_info.max
"""The highest score of a job that does not starve, if other jobs may."""

Name = Annotated[str, Field(inside=True)]
Starvation = Annotated[int | None, Field(least=0, meaning="jobs that have waited longer than this, s, come first")]
WaitShare = Annotated[
    float | None,
    Field(
        least=0,
        former=("limit",),
        meaning="like `starvation`, as a share of the longest wait so far; with both options, a wait must exceed both bounds",
    ),
]


@dataclass(frozen=True)
class Order(Specification):
    """A queue order, by name; `walltime.order` makes one from a Python function.

    With the option `starvation` (s), jobs that have waited longer come before all others, the earliest arrival first. With
    `max-wait-share`, a job must also have waited longer than this share of the longest wait so far, a bound that does not depend on the
    machine and its load.
    """

    name: Name

    @property
    def bounds(self) -> tuple[int | None, float | None]:
        """Return its `starvation` and `max_wait_share`; None if it has no such option."""
        return getattr(self, "starvation", None), getattr(self, "max_wait_share", None)

    @property
    def reads_longest(self) -> bool:
        """Return whether it depends on the longest wait so far."""
        return self.bounds[1] is not None or "longest" in self.arguments

    @property
    def reads_system_state(self) -> bool:
        """Return whether it depends on the state of queue and machine."""
        return any(name in SYSTEM_STATE for name in self.arguments)

    @property
    def unlisted(self) -> str:
        """Return the order's own name."""
        return self.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the `ARGUMENTS` on which scores may depend."""
        return ARGUMENTS[:5]

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the log columns that it reads."""
        return tuple(
            name for name in self.arguments if name not in HISTORY and (name in COLUMNS or name not in ARGUMENTS or name == RANDOM)
        )

    @property
    def reads(self) -> dict[str, str]:
        """Return the log columns that the order reads, directly or for past usage; for each, its name in error messages."""
        name = f"{location_of(getattr(self, 'scoring', None))}the order {self.name!r}"
        return dict.fromkeys((*self.columns, *self.history_of), name)

    @property
    def history_of(self) -> tuple[str, ...]:
        """Return the log columns for which the order reads past usage."""
        return tuple(dict.fromkeys(HISTORY[name] for name in self.arguments if name in HISTORY))

    @property
    def reads_calendar(self) -> bool:
        """Return whether it reads the hour or the weekday."""
        return any(name in CALENDAR for name in self.arguments)

    def score(self, wait: int, planned: int, procs: int, submit: int, **others: int) -> float:
        """Return the score of one job, ignoring starvation; the highest comes first.

        `others`: additional arguments of the order; `elapsed` is the submit time if left out.
        """
        raise NotImplementedError

    def sort_key(self, score: float, wait: int, longest: int = 0) -> float:
        """Return the score, minus infinity for NaN, or infinity for a starving job.

        `wait`: the job's wait, s; `longest`: the longest wait of the jobs that started earlier, s.
        """
        score = -math.inf if math.isnan(score) else score
        starvation, share = self.bounds
        if starvation is None and share is None:
            return score
        return math.inf if wait > (starvation or 0) and wait > (share or 0.0) * longest else min(score, LARGEST_SCORE)

    def without_calendar(self) -> PolicyError:
        """Return the error for an order that reads the calendar of a log that has none."""
        names = " and ".join(name for name in self.arguments if name in CALENDAR)
        return PolicyError(f"the order {self.name!r} needs the {names}, but {NO_START}", "unknown_start_time")


@dataclass(frozen=True)
class FirstCome(Order):
    """First come, first served."""

    name: Name = "fcfs"

    def score(self, wait: int, planned: int, procs: int, submit: int, **others: int) -> float:
        """Score earlier arrivals higher."""
        return float(-submit)


@dataclass(frozen=True)
class ScoredOrder(Order):
    """An order whose score is a small Python function of some `ARGUMENTS`, which is compiled for the kernel."""

    @property
    def scoring(self) -> Callable[..., float]:
        """Return the function; the same object for equal orders, so that it is compiled once."""
        raise NotImplementedError

    @property
    def is_monotone(self) -> bool:
        """Return whether a job's score never falls while it waits, so that future scores are bounded."""
        return False

    @functools.cached_property  # inspecting a signature is slow
    def arguments(self) -> tuple[str, ...]:
        """Return the names of the function's parameters; raises PolicyError for names outside `ARGUMENTS` and `HISTORY`."""
        try:
            parameters = inspect.signature(self.scoring).parameters
            names = tuple(FORMER_NAMES.get(name, name) for name, one in parameters.items() if one.default is one.empty)
        except (ValueError, TypeError):
            raise PolicyError(
                f"the order {self.name!r} is not a Python function whose parameters can be inspected; define it with def", "opaque_order"
            ) from None
        unknown = [n for n in names if n in LATER and n not in ARGUMENTS]
        if unknown or not names:
            fault = f"has unknown parameters: {', '.join(unknown)}" if unknown else "has no parameters"
            valid = f"{', '.join(ARGUMENTS)}, user_waited, user_used, user_started, or the same of group, queue and "
            valid += "partition, and other columns of the log that are known at submission"
            raise PolicyError(f"{location_of(self.scoring)}the order {self.name!r} {fault}. Valid parameters: {valid}", "unknown_parameter")
        return names

    @property
    def parameters(self) -> Sequence[float]:
        """Return the numbers that the function takes after its other arguments; new values need no compilation."""
        return ()

    @property
    def changes(self) -> bool:
        """Return whether scores change while jobs wait, other than by starving."""
        return any(name in ("wait", "longest", *SYSTEM_STATE) for name in self.arguments) or self.reads_calendar or bool(self.history_of)

    @property
    def reads_time(self) -> bool:
        """Return whether sort keys change while jobs wait."""
        return self.changes or self.reads_longest

    def score(self, wait: int, planned: int, procs: int, submit: int, **others: int) -> float:
        """Return the function's result, with rounding and division by zero as in compiled code.

        A missing column counts as unknown, -1, and a missing request as the planned runtime. Raises PolicyError for a missing calendar.
        """
        values: dict[str, Any] = dict.fromkeys(COLUMNS, -1)
        values |= {"wait": wait, "planned": planned, "requested": planned, "procs": procs, "submit": submit}
        values |= (
            {"elapsed": submit, "longest": 0} | dict.fromkeys(SYSTEM_STATE, 0) | {"machine": procs} | dict.fromkeys(HISTORY, 0.0) | others
        )
        names = self.arguments
        if lacking := [name for name in names if name not in values]:
            if lacking[0] in CALENDAR:
                raise self.without_calendar()
            raise PolicyError(f"the order {self.name!r} needs the {lacking[0]} of the job", "missing_column")
        given = [np.float64(values[n]) if n in HISTORY or isinstance(values[n], float) else np.int64(values[n]) for n in names]
        with np.errstate(all="ignore"):
            return self._called(self.scoring, *given, *self.parameters)

    def scores(self, columns: Mapping[str, Array]) -> Array:
        """Return the scores of many jobs, float64, faster than `score`; `columns`: for each argument, int64 values, one per job."""
        rows = zip(*(columns[name] for name in self.arguments), strict=True)
        function, parameters = self.scoring, self.parameters
        with np.errstate(all="ignore"):
            return np.array([self._called(function, *row, *parameters) for row in rows], np.float64)

    def _called(self, function: Callable[..., float], *given: Any) -> float:
        """Call a function; division by zero and overflow have the same result as in compiled code."""
        try:
            return float(function(*given))
        except (ValueError, ZeroDivisionError):
            return -math.inf  # the kernel gets minus infinity or NaN here, and sorts NaN last
        except OverflowError:
            return math.inf
        except TypeError as error:
            raise PolicyError(f"the order {self.name!r} does not return a number: {error}", "own_code_failure") from error


@dataclass(frozen=True)
class ShortestFirst(ScoredOrder):
    """Shortest job first, by the planned runtime; as a backfill order, the SJBF of EASY++ (tsafrir07)."""

    is_monotone = True  # the score is constant
    scoring = staticmethod(lambda planned: -planned)  # for kernels without this order built in
    name: Name = "sjf"
    starvation: Starvation = None
    max_wait_share: WaitShare = None

    def score(self, wait: int, planned: int, procs: int, submit: int, **others: int) -> float:
        """Score shorter jobs higher."""
        return float(-planned)


@dataclass(frozen=True)
class Wfp(ScoredOrder):
    """`(wait / planned runtime) ** exponent * processors`: favours long waits, wide jobs and short jobs.

    The planned runtime is the user's request, unless estimates or predictions replace it.

    Source: tang13, eq. 5; the threshold is from an example in Cobalt's README, 0.75 with an exponent of 2.
    """

    is_monotone = True  # the score grows with the wait
    name: Name = "wfp"
    exponent: Annotated[int, Field(least=1)] = 3
    """weight of the wait"""
    threshold: Annotated[float, Field(least=0, most=1)] = 0.0
    """a job may overtake a blocked head only if its score is at least this fraction of the head's score; for FCFS, EASY and hybrids up
    to depth 1; 0 for no threshold"""
    starvation: Starvation = None
    max_wait_share: WaitShare = None

    @property
    def scoring(self) -> Callable[..., float]:
        """Return the function for kernels without a built-in one."""
        return _wfp(self.exponent)

    def score(self, wait: int, planned: int, procs: int, submit: int, **others: int) -> float:
        """Return the score above."""
        return self.scoring(wait, planned, procs)  # also for arrays


@functools.cache
def _wfp(exponent: int) -> Callable[..., float]:
    """Return the function of `Wfp` as repeated products, which the compiled kernel rounds in the same way."""

    def wfp(wait, planned, procs):
        ratio = wait / planned
        power = 1.0
        for _ in range(exponent):
            power *= ratio
        return power * procs

    return wfp


@dataclass(frozen=True)
class UserOrder(ScoredOrder):
    """A user-defined order, made by `walltime.order`.

    `settings`: values of the function's parameters with defaults, in their order. `last` or `half_life` (s): the period of past usage.
    """

    function: Annotated[Callable[..., float], Field(inside=True)]
    settings: Annotated[tuple[float, ...] | None, Field(inside=True)] = None
    last: Annotated[int | None, Field(inside=True)] = None
    half_life: Annotated[int | None, Field(inside=True)] = None
    starvation: Annotated[int | None, Field(inside=True)] = None
    max_wait_share: Annotated[float | None, Field(inside=True)] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.history_of and (self.last is None) == (self.half_life is None):
            name = next(name for name in self.arguments if name in HISTORY)
            remedy = "set the period: @walltime.order(last=7 * 86400) for the last week, or half_life=SECONDS"
            raise PolicyError(f"{location_of(self.function)}the order {self.name!r} reads {name}; {remedy}", "missing_period")
        for name in ("last", "half_life"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise PolicyError(f"the {name} of the order {self.name!r} must be a whole number of seconds, not {value!r}", "wrong_period")
        if self.settings is None:
            object.__setattr__(self, "settings", tuple(self._defaults.values()))

    @functools.cached_property
    def _defaults(self) -> dict[str, float]:
        """Return the defaults of parameters that have one, by name."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (ValueError, TypeError):
            return {}
        defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        return {name: self._number(f"the default of {name}", value, "wrong_default") for name, value in defaults.items()}

    def _number(self, what: str, value: Any, code: str = "wrong_value") -> float:
        """Return a parameter's value; raises PolicyError, which begins with `what`, if it is not a number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PolicyError(f"{what} of the order {self.name!r} must be a number, not {value!r}", code)
        return float(value)

    def options(self) -> dict[str, DeclaredField]:
        """Return the options of `but`: parameters with a default, the period of past usage, and bounds on the wait."""
        period = [DeclaredField(name, int | None, Field(least=1), None) for name in ("last", "half_life")] if self.history_of else []
        bounds = [
            DeclaredField("starvation", int | None, Field(least=0), None),
            DeclaredField("max_wait_share", float | None, Field(least=0, former=("limit",)), None),
        ]
        parameters = [DeclaredField(name, float, Field(), default) for name, default in self._defaults.items()]
        return {one.field.replace("_", "-"): one for one in (*parameters, *period, *bounds)}

    def but(self, **settings: Any) -> Self:
        """Return the order with other values of `options`."""
        mine = dict(zip(self._defaults, self.settings or (), strict=True))
        own = {name: settings.pop(name) for name in OWN_SETTINGS if name in settings and name not in mine}
        unknown = [name for name in settings if name not in mine]
        if unknown:
            valid = ", ".join((*mine, *OWN_SETTINGS))
            raise PolicyError(f"{unknown[0]!r} is not an option of the order {self.name!r}. Valid options: {valid}")
        mine |= {name: self._number(name, value) for name, value in settings.items()}
        if "last" in own or "half_life" in own:  # one replaces the other
            own = {"last": None, "half_life": None, **own}
        return replace(self, settings=tuple(mine.values()), **own)

    @functools.cached_property
    def may_be_infinite(self) -> bool:
        """Return whether the function names `inf`; otherwise an infinite score comes from a division by zero or an overflow."""
        return "inf" in getattr(getattr(self.function, "__code__", None), "co_names", ())

    def bad_score(self, score: float, job: int) -> PolicyError:
        """Return the error for a score that cannot be ordered; `job`: the job's index in the workload."""
        found, remedy = ("NaN", "return a number") if math.isnan(score) else ("infinity", "return a finite number, or name math.inf in it")
        text = f"the order {self.name!r} gives {found} for job number {job + 1}, as by a division by zero; {remedy}"
        return PolicyError(f"{location_of(self.function)}{text}", "bad_score")

    def checked(self, score: float, job: int) -> float:
        """Return the score; raises PolicyError if it is NaN, or infinite and the function does not name `inf`."""
        if math.isnan(score) or (math.isinf(score) and not self.may_be_infinite):
            raise self.bad_score(score, job)
        return score

    def __reduce__(self) -> Any:
        """Return how to make the order again from the location of its function: a module, or a file that was loaded as `FILE.py:NAME`."""
        values = {name: getattr(self, name) for name in ("name", "settings", "last", "half_life", "starvation", "max_wait_share")}
        return _unpickled, (*_place_of(self.function), values)

    def __copy__(self) -> Self:
        """Return the order itself, which does not change."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        """Return the order itself, which does not change."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> float:
        """Call the function."""
        return self.function(*args, **kwargs)

    @property
    def scoring(self) -> Callable[..., float]:
        """Return the function."""
        return self.function

    @property
    def parameters(self) -> Sequence[float]:
        """Return the values of the parameters with defaults."""
        return self.settings or ()

    @property
    def label(self) -> str:
        """Return the name, with the settings that differ from the defaults."""
        mine = zip(self._defaults.items(), self.settings or (), strict=True)
        changed = {name: value for (name, default), value in mine if value != default}
        changed |= {name: value for name, value in zip(("starvation", "max-wait-share"), self.bounds, strict=True) if value is not None}
        return self.name + ":" * bool(changed) + ",".join(f"{name}={spell(value)}" for name, value in changed.items())


def _place_of(function: Any) -> tuple[str, str]:
    """Return the module or file of a function, and its name there; raises PicklingError for a function inside another."""
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", "")
    found = getattr(sys.modules.get(module), name, None)
    if found is function or getattr(found, "function", None) is function:
        return module, name
    file = getattr(getattr(function, "__code__", None), "co_filename", "")
    if name.isidentifier() and file.endswith(".py") and module not in sys.modules:
        return file, name
    where = location_of(function)
    raise pickle.PicklingError(f"{where}the order {name!r} cannot be pickled; define its function at the top of a module")


def _unpickled(place: str, name: str, values: dict[str, Any]) -> UserOrder:
    module = None if place.endswith(".py") else importlib.import_module(place)
    found = load_object(Path(place), name, "order") if module is None else getattr(module, name)
    return UserOrder(function=getattr(found, "function", found), **values)


FCFS = FirstCome()
SJF = ShortestFirst()
WFP = Wfp()


def has_history(policy: Any) -> bool:
    """Return whether an order of this policy reads past usage, the longest wait so far, or `SYSTEM_STATE`."""
    orders = (policy.order, getattr(policy, "backfill_order", None))
    return any(order is not None and (order.history_of or order.reads_longest or order.reads_system_state) for order in orders)


def order(function: Callable[..., float] | None = None, *, last: int | None = None, half_life: int | None = None) -> Any:
    """Make a queue order from a function; the job with the highest value comes first.

    The function's parameters may be the following; all but `random` and additional columns with fractions are integers:

    * `wait` and `planned` (the planned runtime), s; `procs`; `submit` (s) and `elapsed` (s since the workload's first submission);
    * the columns `requested` (the user's request, s), `user, group, executable, queue, partition` and `job_id`, -1 if unknown;
    * other columns that are known at submission, such as `requested_memory`, or a `deadline` given to `Workload.from_arrays`;
    * `random`, a number from 0 to 1 that depends on the run's seed and the job;
    * the local time at the site when the queue is ordered: `hour` (0 to 23) and `weekday` (0 is Monday);
    * `longest`, the longest wait so far, s; and the state of queue and machine: `waiting` jobs, the work `queued` (processor seconds),
      `free` processors, and all processors of the `machine`;
    * `user_waited`, `user_used` and `user_started`, or the same with `group`, `queue` and `partition`: past use by jobs of the same user,
      before the queue is ordered. These are the waits of started jobs (s), the processor seconds of ended jobs, and the number of started
      jobs, over the `last` seconds, or weighted by 0.5 for every `half_life` (s) since.

    The function is compiled, so it may use only numbers and the `math` module. Parameters with a default are numeric options, spelled
    `FILE.py:NAME,hours=12`; new values compile nothing.

    >>> @order
    ... def widest(procs):
    ...     return procs
    >>> widest.score(wait=0, planned=60, procs=8, submit=0)
    8.0
    >>> @order(last=7 * 86_400)
    ... def patient(user_waited, hours=24):
    ...     return user_waited > hours * 3600
    >>> patient.score(wait=0, planned=60, procs=8, submit=0, user_waited=100_000), patient.but(hours=48).label
    (1.0, 'patient:hours=48')
    """

    def make(function: Callable[..., float]) -> UserOrder:
        return UserOrder(getattr(function, "__name__", repr(function)), function, None, last, half_life)

    return make if function is None else make(function)
