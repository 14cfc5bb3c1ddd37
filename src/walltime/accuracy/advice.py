"""Advice for users: for each kind of a user's jobs, the smallest request that keeps the risk of a kill at a chosen level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.accuracy.adjusted import Bars, has_column, no_bars
from walltime.errors import PolicyError
from walltime.estimates.suggestion import LEAST, SURE, allowed_kills, exceeded_by, killed_in_hindsight, outran, share_at_most
from walltime.wording import shown
from walltime.workload import Array, Workload

MOST_USERS = 10
"""Number of users that are advised."""
RISK = 5.0
"""Percent of jobs that may be killed."""
COLUMNS = ("executable", "procs", "queue")
"""Columns in which a user's jobs of one kind agree, as far as recorded; without names of jobs also the request."""
OWN = ("procs", "requested")
"""Columns of every workload, whose values are not names."""
OPTIONS = {"executable": "--job-name", "procs": "--job-procs", "requested": "--requested"}
"""The options of `walltime suggest` for these columns."""
FINER = (1.0, 0.5, 0.2, 0.0)
"""Fractions of the risk that are tried until earlier jobs, each advised by the jobs before it, would have kept the risk."""
WORTH = 0.05
"""Share of the requested hours that an advice must save."""
STEPS = ((2 * 3600, 300), (12 * 3600, 900), (2 * 86_400, 3600))
"""Largest request, s, and the step that such requests are rounded to."""
COARSEST = 6 * 3600
LISTED = 5
"""Number of a user's kinds of jobs with advice, the ones that save most. Letters list them, and simulations follow only these."""
ENOUGH = 2 * LEAST
"""Smallest number of jobs of a kind: in hindsight, the second half is advised by the first."""
NEEDED, LITTLE = "these jobs need their requests", "little to gain"
"""Reasons for no advice."""


@dataclass(frozen=True)
class KindAdvice:
    """Similar jobs of a user, and the request that is advised; times in s, hours are processor-hours."""

    kind: dict[str, str]
    """their common values, by column"""
    values: dict[str, int]
    """the same values as numbers of the log"""
    jobs: int
    median_runtime: float
    median_request: float
    walltime: int | None
    """the advised request, for jobs that request more; None: keep the request"""
    killed: float
    """percent of the earlier jobs that ran longer, or, where the request is kept, that were killed at their own request"""
    risk_at_most: float
    """upper 95 % bound of this share for a similar job, percent; it accounts for the choice among several requests, from these jobs"""
    hindsight: float
    """percent that would have been killed with advice from the jobs before each one; nan where the request is kept"""
    asked_hours: float
    unused_hours: float
    less_hours: float
    """reduction of the requested hours"""
    why: str
    """reason for no advice; empty with an advice"""

    def as_dict(self) -> dict[str, Any]:
        """Return the advice ready for JSON."""
        row = {name: getattr(self, name) for name in ("jobs", "median_runtime", "median_request", "walltime", "killed", "risk_at_most")}
        row |= {"killed_in_hindsight": None if math.isnan(self.hindsight) else self.hindsight, "kind": dict(self.kind)}
        return row | {name: getattr(self, name) for name in ("asked_hours", "unused_hours", "less_hours", "why")}


@dataclass(frozen=True)
class UserAdvice:
    """A user, and the advice by kind of job: the kinds that save most come first."""

    user: str
    """number, or name where the log has names"""
    number: int
    jobs: int
    asked_hours: float
    """requested processor-hours of all jobs of the user"""
    unused_hours: float
    """the part of them that is not used"""
    kinds: Sequence[KindAdvice]
    """kinds of enough jobs"""
    options: Sequence[str] | None
    """options of `walltime suggest` for the first kind; None if a name contains characters that cannot be typed"""
    risk: float = RISK
    """percent"""

    @property
    def advised(self) -> list[KindAdvice]:
        """Return the kinds with a better request than now: the five that save most."""
        return [kind for kind in self.kinds if kind.walltime is not None][:LISTED]

    @property
    def less_hours(self) -> float:
        """Return the reduction of the user's requested processor-hours, had these kinds been advised."""
        return sum(kind.less_hours for kind in self.advised)

    def as_dict(self) -> dict[str, Any]:
        """Return the advice ready for JSON; the first kind's numbers are next to the user's."""
        first = self.kinds[0].as_dict() if self.kinds else dict.fromkeys(("kind", "jobs", "walltime", "why"))
        first |= {"kind_unused_hours": first.pop("unused_hours", None)}
        first.pop("asked_hours", None)
        head = {"user": self.user, "asked_hours": self.asked_hours, "unused_hours": self.unused_hours, "risk": self.risk, **first}
        options = None if self.options is None else list(self.options)
        return head | {"less_hours": self.less_hours, "options": options, "kinds": [kind.as_dict() for kind in self.kinds]}


def advise_users(
    workload: Workload, limited: Array | None = None, most: int = MOST_USERS, progress: Bars = no_bars, risk: float = RISK
) -> list[UserAdvice]:
    """Return advised requests, by kind of job, for the users with the most processor-hours requested and not used.

    Jobs of a kind have the same name, processors and queue, as far as recorded; without names also the same request. The advice for a
    kind of at least 20 jobs is the smallest request that at most `risk` percent of them exceeded, and that would have killed no more, had
    each job been advised by the jobs before it. A job that used all of its request counts as longer. Advice never raises a request, and
    it saves at least 5 % of the kind's hours. `limited`: which jobs have a limit, by default all. Empty for a log without users.

    Raises PolicyError for a risk outside 0 to 50.
    """
    if isinstance(risk, bool) or not isinstance(risk, int | float) or not 0 <= risk <= 50:
        raise PolicyError(f"the risk of being killed must be a percentage from 0 to 50, not {shown(risk)}", "number_out_of_range")
    if not has_column(workload, "user"):
        return []
    users = workload.columns["user"]
    counted = np.ones(len(workload), bool) if limited is None else limited
    unused = np.where(counted, np.maximum(workload.requested - workload.runtime, 0) * (workload.procs / 3600), 0.0)
    known, place = np.unique(users, return_inverse=True)
    total = np.where(known < 0, -1.0, np.bincount(place, weights=unused))
    chosen = [int(known[k]) for k in np.argsort(-total, kind="stable")[:most].tolist() if total[k] > 0]
    advice = []
    with progress(len(chosen), "suggestions") as show:
        for number in chosen:
            advice.append(_advise(workload, number, np.flatnonzero((users == number) & counted), risk))
            if show is not None:
                show(len(advice))
    return advice


def advised_requests(workload: Workload, advice: UserAdvice) -> Array:
    """Return the requests of all jobs if this user follows the advice, int64 s: the smaller of the advised and the own request.

    A job that ran longer than the advice keeps its own request, so that no user gains by jobs that are killed early.
    """
    requested = workload.requested.copy()
    for kind in advice.advised:
        alike = jobs_of_kind(workload, advice, kind) & (requested > kind.walltime) & (workload.runtime <= kind.walltime)
        requested[alike] = kind.walltime
    return requested


def jobs_of_kind(workload: Workload, advice: UserAdvice, kind: KindAdvice) -> Array:
    """Return which jobs are of this user and kind, bool."""
    alike: Array = workload.columns["user"] == advice.number
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


def _advise(workload: Workload, user: int, mine: Array, risk: float) -> UserAdvice:
    names = [name for name in COLUMNS if name == "procs" or has_column(workload, name)]
    names += [] if "executable" in names else ["requested"]
    values = np.column_stack([_column(workload, name)[mine] for name in names])
    alike, place = np.unique(values, axis=0, return_inverse=True)
    place = place.reshape(-1)
    kinds = [
        _kind(workload, mine[place == k], dict(zip(names, alike[k].tolist(), strict=True)), risk)
        for k in np.flatnonzero(np.bincount(place) >= ENOUGH)
    ]
    kinds.sort(key=lambda kind: (-kind.less_hours, -kind.unused_hours))
    width = workload.procs[mine] / 3600
    return UserAdvice(
        user=workload.origin.name_of("user", user),
        number=user,
        jobs=len(mine),
        asked_hours=float((workload.requested[mine] * width).sum()),
        unused_hours=float((np.maximum(workload.requested[mine] - workload.runtime[mine], 0) * width).sum()),
        kinds=kinds,
        options=_options(workload, user, kinds[0].values if kinds else {}, risk),
        risk=float(risk),
    )


def _column(workload: Workload, name: str) -> Array:
    return getattr(workload, name) if name in OWN else workload.columns[name]


def _kind(workload: Workload, inside: Array, values: dict[str, int], risk: float) -> KindAdvice:
    """Return the advice for these jobs, in order of submission."""
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
    killed = int(outran(length, cut, best).sum()) if best is not None else int(cut.sum())
    one_of_many = 1 - (1 - SURE) / len(FINER)  # the bounds of all requests that might be chosen hold together
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
    )


def _options(workload: Workload, user: int, kind: dict[str, int], risk: float) -> list[str] | None:
    """Return the options of `walltime suggest` for this kind; None if a name cannot be typed."""
    words = []
    for column, number in {"user": user, **kind}.items():
        if number < 0 or column == "queue":
            continue
        option = OPTIONS.get(column, "--user")
        word = str(number) if column in OWN else workload.origin.name_of(column, number)
        if column not in OWN and workload.origin.number_of(column, word) != number:
            return None
        words += [f"{option}={word}"] if word.startswith("-") else [option, word]
    return [*words, "--risk", f"{risk:g}"]
