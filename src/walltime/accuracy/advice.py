"""Suggest requests to users: for each kind of a user's jobs, the smallest request that keeps the risk of a kill below a chosen level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from walltime.accuracy.adjusted import Bars, has_column, no_bars
from walltime.accuracy.requests import RequestAdvice, suggest_requests
from walltime.distinct import distinct_rows
from walltime.errors import PolicyError
from walltime.estimates.suggestion import LEAST, SURE, allowed_kills, exceeded_by, killed_in_hindsight, outran, share_at_most
from walltime.metrics.right_size import STEPS as AMOUNTS, needs, with_requests
from walltime.wording import shown
from walltime.workload import Array, Workload

MOST_USERS = 10
"""Default number of users to advise."""
RISK = 5.0
"""Default risk that a job is killed, percent."""
COLUMNS = ("executable", "procs", "queue")
"""Columns in which the jobs of a kind have equal values, as far as recorded; if jobs have no names, their requests are equal, too."""
OWN = ("procs", "requested")
"""Columns that every workload has, and that contain numbers instead of names."""
OPTIONS = {"executable": "--job-name", "procs": "--job-procs", "requested": "--requested"}
"""The options of `walltime suggest` that select jobs by these columns."""
FINER = (1.0, 0.5, 0.2, 0.0)
"""Fractions of the risk, tried in this order until a backtest, in which only earlier jobs determine the advice, keeps the risk."""
WORTH = 0.05
"""Smallest share of the requested hours that advice must save."""
STEPS = ((2 * 3600, 300), (12 * 3600, 900), (2 * 86_400, 3600))
"""Requests up to the first number, s, are rounded to multiples of the second; larger ones to multiples of COARSEST."""
COARSEST = 6 * 3600
LISTED = 5
"""Largest number of a user's kinds of jobs with advice, those that save the most; letters and simulations include only these."""
ENOUGH = 2 * LEAST
"""Smallest number of jobs of a kind with advice: the backtest needs LEAST jobs to start with, and as many to test."""
Needs = Mapping[str, tuple[Array, Array, Array]]
"""The result of `walltime.metrics.right_size.needs`."""
NEEDED, LITTLE = "these jobs need their requests", "little to gain"
"""Reasons for no advice."""


@dataclass(frozen=True)
class KindAdvice:
    """Similar jobs of a user, and the advised requests; times in s, hours are processor-hours."""

    kind: dict[str, str]
    """their common values, by column"""
    values: dict[str, int]
    """the same values as numbers in the log"""
    jobs: int
    median_runtime: float
    median_request: float
    walltime: int | None
    """the advised request, for jobs that request more; None to keep the request"""
    killed: float
    """percentage of the earlier jobs that ran longer than advised or, if the request is kept, that were killed at their request"""
    risk_at_most: float
    """upper 95 % confidence bound on this risk, percent, corrected for the choice among several requests"""
    hindsight: float
    """percentage of jobs killed in a backtest, with advice from the jobs before each one; nan if the request is kept"""
    asked_hours: float
    unused_hours: float
    less_hours: float
    """reduction of the requested hours"""
    why: str
    """reason to keep the walltime; empty if another walltime is advised"""
    requests: Sequence[RequestAdvice] = ()
    """advised memory, processors and GPUs that are smaller than the median request"""
    more: Mapping[str, Array] = field(default_factory=dict, repr=False, compare=False)
    """by advised resource, which of the earlier jobs needed more than the advice, bool, shape (jobs,)"""

    @property
    def resources(self) -> list[str]:
        """Return the resources (`walltime.metrics.right_size.STEPS`) whose requests are advised."""
        return [*([] if self.walltime is None else ["time"]), *(one.resource for one in self.requests)]

    @property
    def worth(self) -> float:
        """Return the processor-hours saved by the walltime, plus the saved share of each other resource times the requested hours."""
        return self.less_hours + sum(one.saved / 100 for one in self.requests) * self.asked_hours

    @property
    def failing(self) -> int:
        """Return the number of earlier jobs that needed more than any of the advised requests."""
        return int(np.logical_or.reduce([self.more[name] for name in self.resources]).sum()) if self.resources else 0

    @property
    def bound(self) -> float:
        """Return an upper bound on the risk that a job needs more than any of the advised requests, percent: a sum over resources."""
        return min((0.0 if self.walltime is None else self.risk_at_most) + sum(one.upper for one in self.requests), 100.0)

    def only(self, resources: Sequence[str]) -> KindAdvice:
        """Return the advice on these resources only."""
        kept = replace(self, requests=[one for one in self.requests if one.resource in resources])
        return kept if "time" in resources or self.walltime is None else replace(kept, walltime=None, less_hours=0.0, why=LITTLE)

    def as_dict(self) -> dict[str, Any]:
        """Return the advice as a dictionary for JSON."""
        row = {name: getattr(self, name) for name in ("jobs", "median_runtime", "median_request", "walltime", "killed", "risk_at_most")}
        row |= {"killed_in_hindsight": None if math.isnan(self.hindsight) else self.hindsight, "kind": dict(self.kind)}
        row |= {name: getattr(self, name) for name in ("asked_hours", "unused_hours", "less_hours", "why")}
        return row | {"requests": [asdict(one) for one in self.requests]}


@dataclass(frozen=True)
class UserAdvice:
    """The advice for a user or account, by kind of job, in descending order of savings."""

    user: str
    """name of the user or account, or its number if the log has no names"""
    number: int
    jobs: int
    asked_hours: float
    """requested processor-hours of all jobs of the user"""
    unused_hours: float
    """the unused part of these hours"""
    kinds: Sequence[KindAdvice]
    """kinds with at least `ENOUGH` jobs"""
    options: Sequence[str] | None
    """options of `walltime suggest` for the first kind; None if a name contains characters that cannot be typed"""
    risk: float = RISK
    """accepted risk that a job needs more, percent"""
    by: str = "user"
    """`user`, or `group` for an account"""
    used: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """for each resource, the hours requested by running jobs with recorded use (MB-hours, processor-hours or GPU-hours) and the used share;
    for GPUs, the share that was not idle"""

    @property
    def advised(self) -> list[KindAdvice]:
        """Return the kinds with advice, at most the `LISTED` that save the most."""
        return [kind for kind in self.kinds if kind.resources][:LISTED]

    @property
    def resources(self) -> list[str]:
        """Return the resources that are advised for any kind, in the order of `walltime.metrics.right_size.STEPS`."""
        return [name for name in AMOUNTS if any(name in kind.resources for kind in self.advised)]

    def only(self, resources: Sequence[str]) -> UserAdvice:
        """Return the advice on these resources only, for the kinds in `advised`."""
        return replace(self, kinds=[kind.only(resources) for kind in self.advised])

    @property
    def less_hours(self) -> float:
        """Return the requested processor-hours that the advised walltimes save."""
        return sum(kind.less_hours for kind in self.advised)

    def as_dict(self) -> dict[str, Any]:
        """Return the advice as a dictionary for JSON; the first kind's values are at the top level as well."""
        first = self.kinds[0].as_dict() if self.kinds else dict.fromkeys(("kind", "jobs", "walltime", "why"))
        first |= {"kind_unused_hours": first.pop("unused_hours", None)}
        first.pop("asked_hours", None)
        head = {"user": self.user, "asked_hours": self.asked_hours, "unused_hours": self.unused_hours, "risk": self.risk, **first}
        options = None if self.options is None else list(self.options)
        head |= {"by": self.by, "used": {name: {"hours": hours, "share": share} for name, (hours, share) in self.used.items()}}
        return head | {"less_hours": self.less_hours, "options": options, "kinds": [kind.as_dict() for kind in self.kinds]}


def advise_users(
    workload: Workload,
    limited: Array | None = None,
    most: int = MOST_USERS,
    progress: Bars = no_bars,
    risk: float = RISK,
    *,
    by: Literal["user", "group"] = "user",
    others: Sequence[str] = (),
) -> list[UserAdvice]:
    """Return advised requests, by kind of job, for the users with the most unused processor-hours.

    Jobs of a kind have the same name, processors and queue, as far as recorded; without names, also the same request. A kind of
    at least 20 jobs gets the smallest request that at most `risk` percent of these jobs would have exceeded. The same holds in a backtest,
    where the advice for each job depends only on earlier jobs. A job that used its whole request counts as exceeding it. Advice
    never raises a request, and saves at least 5 % of the kind's hours. `limited`: which jobs have a limit, by default all. `by`: "group"
    for advice to accounts, whose kinds of jobs also have the same user. `others`: other resources to advise on (memory, cores, gpus), if
    their use is recorded. The risk then applies to all requests of a kind together, and the users with the largest unused share of any of
    these resources come first. The list is empty for a log without users or accounts.

    Raises PolicyError for a risk outside 0 to 50.
    """
    if isinstance(risk, bool) or not isinstance(risk, int | float) or not 0 <= risk <= 50:
        raise PolicyError(f"the risk of being killed must be a percentage from 0 to 50, not {shown(risk)}", "number_out_of_range")
    if not has_column(workload, by):
        return []
    users = workload.columns[by]
    counted = np.ones(len(workload), bool) if limited is None else limited
    unused = np.where(counted, np.maximum(workload.requested - workload.runtime, 0) * (workload.procs / 3600), 0.0)
    known, place = np.unique(users, return_inverse=True)
    needed = {name: one for name, one in needs(workload).items() if name in others and not np.isnan(one[0]).all()}
    waste = [unused, *(np.nan_to_num(np.maximum(asked - used, 0)) * workload.runtime for used, _, asked in needed.values())]
    shares = [np.bincount(place, weights=one) / max(float(one.sum()), 1e-9) for one in waste]
    total = np.where(known < 0, -1.0, np.maximum.reduce(shares))
    chosen = [int(known[k]) for k in np.argsort(-total, kind="stable")[:most].tolist() if total[k] > 0]
    advice = []
    with progress(len(chosen), "suggestions") as show:
        for number in chosen:
            advice.append(_advise(workload, number, np.flatnonzero((users == number) & counted), risk, by, needed))
            if show is not None:
                show(len(advice))
    return advice


def advised_jobs(workload: Workload, advice: UserAdvice) -> Workload:
    """Return the workload as if this user followed the advice: each request becomes the advised one if this is smaller.

    A job that needed more than the advice, or whose use is unknown, keeps its requests, so that no user gains by jobs that fail.
    """
    needed = needs(workload)
    requested, amounts = workload.requested.copy(), {name: np.full(len(workload), np.nan) for name in needed}
    for kind in advice.advised:
        fits = jobs_of_kind(workload, advice, kind)
        if kind.walltime is not None:
            fits &= workload.runtime <= kind.walltime
        for one in kind.requests:
            used, cut, _ = needed[one.resource]
            fits &= np.ceil(used) + cut <= one.amount
        for one in kind.requests:
            amounts[one.resource][fits] = one.amount
        if kind.walltime is not None:
            requested[fits] = np.minimum(requested[fits], kind.walltime)
    sized = replace(workload, requested=requested, planned=requested)
    for name, new in amounts.items():
        sized = sized if np.isnan(new).all() else with_requests(sized, name, new, "advised")
    return sized


def jobs_of_kind(workload: Workload, advice: UserAdvice, kind: KindAdvice) -> Array:
    """Return a mask (bool, shape (jobs,)) of the user's jobs of this kind."""
    alike: Array = workload.columns[advice.by] == advice.number
    for name, value in kind.values.items():
        alike = alike & (_column(workload, name) == value)
    return alike


def round_request(seconds: int) -> int:
    """Round a request up as users do: to 5 min up to 2 h, 15 min up to 12 h, 1 h up to two days, else 6 h.

    >>> [round_request(s) for s in (1, 7000, 7300, 50_000, 200_000)]
    [300, 7200, 8100, 50400, 216000]
    """
    step = next((step for most, step in STEPS if seconds <= most), COARSEST)
    return max(-(-seconds // step) * step, STEPS[0][1])


def _advise(workload: Workload, user: int, mine: Array, risk: float, by: str, needed: Needs) -> UserAdvice:
    first = ("user",) if by == "group" else ()
    names = [name for name in (*first, *COLUMNS) if name == "procs" or has_column(workload, name)]
    names += [] if "executable" in names else ["requested"]
    alike, place = distinct_rows([_column(workload, name)[mine] for name in names])
    kinds = [
        _kind(workload, mine[place == k], dict(zip(names, alike[k].tolist(), strict=True)), risk, needed)
        for k in np.flatnonzero(np.bincount(place) >= ENOUGH)
    ]
    kinds.sort(key=lambda kind: (-kind.worth, -kind.unused_hours))
    width = workload.procs[mine] / 3600
    return UserAdvice(
        user=workload.origin.name_of(by, user),
        number=user,
        jobs=len(mine),
        asked_hours=float((workload.requested[mine] * width).sum()),
        unused_hours=float((np.maximum(workload.requested[mine] - workload.runtime[mine], 0) * width).sum()),
        kinds=kinds,
        options=_options(workload, ({"user": user} if by == "user" else {}) | (kinds[0].values if kinds else {}), risk),
        risk=float(risk),
        by=by,
        used={name: _used(workload, mine, *one) for name, one in needed.items()},
    )


def _used(workload: Workload, mine: Array, used: Array, _: Array, asked: Array) -> tuple[float, float]:
    """Return the requested hours of a resource while jobs ran, and the used share, over the jobs with recorded use."""
    known = mine[~np.isnan(used[mine]) & (asked[mine] > 0)]
    hours, total = (one[known] * workload.runtime[known] / 3600 for one in (used, asked))
    return float(total.sum()), float(hours.sum() / total.sum()) if total.any() else math.nan


def _column(workload: Workload, name: str) -> Array:
    return getattr(workload, name) if name in OWN else workload.columns[name]


def _kind(workload: Workload, inside: Array, values: dict[str, int], risk: float, needed: Needs) -> KindAdvice:
    """Return the advice for jobs of one kind; `inside`: their indices, in order of submission."""
    ran, asked, width = workload.runtime[inside], workload.requested[inside], workload.procs[inside] / 3600
    cut = ran >= asked
    length = np.minimum(ran, asked)
    ordered = np.sort(np.where(cut, length + 1, length)).tolist()
    asked_hours, unused = float((asked * width).sum()), float((np.maximum(asked - ran, 0) * width).sum())
    best, why, hindsight, less, allowed = None, NEEDED, math.nan, 0.0, 0
    for part in FINER:
        walltime = round_request(exceeded_by(risk * part, ordered))
        if walltime >= np.median(asked):
            break
        kills = 100 * killed_in_hindsight(risk * part, length, cut, LEAST) / (len(length) - LEAST)
        if kills > risk:
            continue
        helped = (asked > walltime) & (ran <= walltime)
        less = float(((asked - walltime) * width)[helped].sum())
        best, hindsight, allowed = walltime, kills, allowed_kills(risk * part, len(inside))
        break
    if best is not None and less < WORTH * asked_hours:
        best, why, less = None, LITTLE, 0.0
    longer = np.zeros(len(inside), bool) if best is None else outran(length, cut, best)
    killed = int(longer.sum()) if best is not None else int(cut.sum())
    one_node = (_column_or(workload, "nodes", 1)[inside] <= 1) & (_column_or(workload, "exclusive", 0)[inside] != 1)
    known = {name: one for name, one in needed.items() if (name == "memory" or one_node.all()) and _known(one, inside) >= ENOUGH}
    one_of_many = 1 - (1 - SURE) / len(FINER) / (1 + len(known))  # Bonferroni correction for the choice among requests and resources
    requests, more = _requests(workload, inside, risk, longer, known, one_of_many)
    at_most = share_at_most(killed, len(inside)) if best is None else share_at_most(allowed, len(inside), one_of_many)
    origin = workload.origin
    return KindAdvice(
        kind={name: str(v) if name in OWN else origin.name_of(name, v) for name, v in values.items() if v >= 0},
        values=values,
        jobs=len(inside),
        median_runtime=float(np.median(length)),
        median_request=float(np.median(asked)),
        walltime=best,
        killed=100 * killed / len(inside),
        risk_at_most=100 * at_most,
        hindsight=hindsight if best is not None else math.nan,
        asked_hours=asked_hours,
        unused_hours=unused,
        less_hours=less,
        why="" if best is not None else why,
        requests=requests,
        more=more | {"time": longer},
    )


def _known(one: tuple[Array, Array, Array], inside: Array) -> int:
    used, _, asked = one
    return int((~np.isnan(used[inside]) & (asked[inside] > 0)).sum())


def _column_or(workload: Workload, name: str, missing: int) -> Array:
    return workload.columns.get(name, np.full(len(workload), missing))


def _requests(
    workload: Workload, inside: Array, risk: float, longer: Array, known: Needs, sure: float
) -> tuple[list[RequestAdvice], dict[str, Array]]:
    """Return the advice on other resources and, for each, a mask (bool) of the jobs that needed more than advised.

    The advice uses the largest fraction of the risk at which all requests together keep the risk; `longer`: the jobs that exceed the
    advised walltime, bool. `sure`: the confidence level of the bounds.
    """
    if not known:
        return [], {}
    found = [{one.resource: one for one in suggest_requests(workload, inside, risk * part, known) if _helps(one, risk)} for part in FINER]
    chosen, more = list[RequestAdvice](), dict[str, Array]()
    for k in range(len(FINER)):
        best = {name: next((one[name] for one in found[k:] if name in one), None) for name in known}
        chosen = [one for one in best.values() if one is not None]
        more = {one.resource: (np.ceil(known[one.resource][0]) + known[one.resource][1])[inside] > one.amount for one in chosen}
        if 100 * np.logical_or.reduce([longer, *more.values()]).mean() <= risk:
            break
    return [replace(one, upper=100 * share_at_most(allowed_kills(one.risk, one.jobs), one.jobs, sure)) for one in chosen], more


def _helps(one: RequestAdvice, risk: float) -> bool:
    """Return whether a suggestion is smaller than the requests, saves enough, and kept the risk on earlier jobs."""
    return one.helps and one.amount < one.median_request and one.saved >= 100 * WORTH and not one.short > risk


def _options(workload: Workload, kind: dict[str, int], risk: float) -> list[str] | None:
    """Return the options of `walltime suggest` that select this kind; None if a name cannot be typed."""
    words = []
    for column, number in kind.items():
        if number < 0 or column == "queue":
            continue
        option = OPTIONS.get(column, "--user")
        word = str(number) if column in OWN else workload.origin.name_of(column, number)
        if column not in OWN and workload.origin.number_of(column, word) != number:
            return None
        words += [f"{option}={word}"] if word.startswith("-") else [option, word]
    return [*words, "--risk", f"{risk:g}"]
