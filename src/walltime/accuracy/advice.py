"""What users could ask for: for each kind of a user's jobs the smallest request that keeps the risk of being killed at a chosen level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.accuracy.adjusted import Bars, no_bars
from walltime.errors import PolicyError
from walltime.estimates.suggestion import LEAST, SURE, allowed_kills, exceeded_by, killed_in_hindsight, outran, share_at_most
from walltime.wording import shown
from walltime.workload import Workload

Array = np.ndarray

MOST_USERS = 10
"""Users that are advised."""
RISK = 5.0
"""Percent of jobs that may be killed."""
COLUMNS = ("executable", "procs", "queue")
"""Columns in which a user's jobs of one kind agree, as far as the log has them; without names of jobs also the request."""
OWN = ("procs", "requested")
"""Those that every workload has; their values are no names."""
OPTIONS = {"executable": "--job-name", "procs": "--job-procs", "requested": "--requested"}
"""How `walltime suggest` takes them."""
FINER = (1.0, 0.5, 0.2, 0.0)
"""Parts of the risk that are tried until earlier jobs, advised in turn by those before them, would have kept it."""
WORTH = 0.05
"""Share of the hours asked for that an advice must give back."""
STEPS = ((2 * 3600, 300), (12 * 3600, 900), (2 * 86_400, 3600))
"""Requests up to so many seconds are rounded up to multiples of this."""
COARSEST = 6 * 3600
LISTED = 5
"""Kinds of a user's jobs that are advised on: those that give back most. A letter lists them, and what is simulated follows just these."""
ENOUGH = 2 * LEAST
"""Least number of alike jobs: the second half of them is advised by the first, in hindsight."""
NEEDED, LITTLE = "they need what they ask for", "there is little to gain"
"""Why there is nothing to advise."""


@dataclass(frozen=True)
class KindAdvice:
    """Jobs of a user that are alike, and what to ask for; times in s, hours are processor-hours."""

    kind: dict[str, str]
    """what they have in common, by column"""
    values: dict[str, int]
    """the same as numbers of the log"""
    jobs: int
    median_runtime: float
    median_request: float
    walltime: int | None
    """the request that is advised to those who ask for more; None: keep it"""
    killed: float
    """percent of the earlier jobs that outran it, or, where it is kept, that were killed at their own request"""
    risk_at_most: float
    """upper 95 % bound of that share for a job like these, percent; it takes into account that the request was chosen from these jobs, and
    from several"""
    hindsight: float
    """percent that would have been killed, had each been advised by those before it; nan where it is kept"""
    asked_hours: float
    unused_hours: float
    less_hours: float
    """that they would not have asked for"""
    why: str
    """why there is nothing to advise; empty if there is"""

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        row = {name: getattr(self, name) for name in ("jobs", "median_runtime", "median_request", "walltime", "killed", "risk_at_most")}
        row |= {"killed_in_hindsight": None if np.isnan(self.hindsight) else self.hindsight, "kind": dict(self.kind)}
        return row | {name: getattr(self, name) for name in ("asked_hours", "unused_hours", "less_hours", "why")}


@dataclass(frozen=True)
class UserAdvice:
    """A user, and what to ask for by kind of job: the kinds that give back most come first."""

    user: str
    """number, or name where the log has names"""
    number: int
    jobs: int
    asked_hours: float
    """processor-hours that all jobs of the user ask for"""
    unused_hours: float
    """of these not used"""
    kinds: Sequence[KindAdvice]
    """those of enough jobs"""
    options: Sequence[str] | None
    """of `walltime suggest` for the first of them; None if a name holds what cannot be typed"""
    risk: float = RISK
    """percent"""

    @property
    def advised(self) -> list[KindAdvice]:
        """The kinds for which there is something better than what they ask for: the five that give back most."""
        return [kind for kind in self.kinds if kind.walltime is not None][:LISTED]

    @property
    def less_hours(self) -> float:
        """Processor-hours that the user would not have asked for, had these kinds been advised."""
        return sum(kind.less_hours for kind in self.advised)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON; what stands beside the user's numbers is of the first kind."""
        first = self.kinds[0].as_dict() if self.kinds else dict.fromkeys(("kind", "jobs", "walltime", "why"))
        first |= {"kind_unused_hours": first.pop("unused_hours", None)}
        first.pop("asked_hours", None)
        head = {"user": self.user, "asked_hours": self.asked_hours, "unused_hours": self.unused_hours, "risk": self.risk, **first}
        options = None if self.options is None else list(self.options)
        return head | {"less_hours": self.less_hours, "options": options, "kinds": [kind.as_dict() for kind in self.kinds]}


def advise_users(
    workload: Workload, limited: Array | None = None, most: int = MOST_USERS, progress: Bars = no_bars, risk: float = RISK
) -> list[UserAdvice]:
    """What to ask for, by kind of job, for the users with the most processor-hours asked for and not used.

    Jobs of a kind are alike in name, processors and queue, as far as the log says; without names in the request, too. For each kind of at
    least 20 jobs: the smallest request that at most `risk` percent of them outran, and that would have killed no more had each been advised
    by those before it. A job that used all of its request counts as longer. Nobody is advised to ask for more, nor
    for so little less that it gives back under 5 % of the kind's hours. `limited`: which jobs have a limit, by default all.
    Empty for a log without users.

    Raises PolicyError for a risk outside 0 to 50.
    """
    if isinstance(risk, bool) or not isinstance(risk, int | float) or not 0 <= risk <= 50:
        raise PolicyError(f"the risk of being killed is a percentage from 0 to 50, not {shown(risk)}", "number_out_of_range")
    users = workload.columns.get("user")
    if users is None or not (users >= 0).any():
        return []
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
    """The requests of all jobs if this user follows the advice, int64 s: the smaller of the advised one and their own.

    A job that ran longer than the advice keeps its own request, so that nobody gains by jobs that are killed early.
    """
    requested = workload.requested.copy()
    for kind in advice.advised:
        alike = jobs_of_kind(workload, advice, kind) & (requested > kind.walltime) & (workload.runtime <= kind.walltime)
        requested[alike] = kind.walltime
    return requested


def jobs_of_kind(workload: Workload, advice: UserAdvice, kind: KindAdvice) -> Array:
    """Which jobs are of this user and kind, bool."""
    alike: Array = workload.columns["user"] == advice.number
    for name, value in kind.values.items():
        alike = alike & (_column(workload, name) == value)
    return alike


def round_request(seconds: int) -> int:
    """A request rounded up to what people ask for: to 5 min up to 2 h, 15 min up to 12 h, 1 h up to two days, else 6 h.

    >>> [round_request(s) for s in (1, 7000, 7300, 50_000, 200_000)]
    [300, 7200, 8100, 50400, 216000]
    """
    step = next((step for most, step in STEPS if seconds <= most), COARSEST)
    return max(-(-seconds // step) * step, STEPS[0][1])


def _advise(workload: Workload, user: int, mine: Array, risk: float) -> UserAdvice:
    """The advice for a user with these jobs."""
    names = [name for name in COLUMNS if name == "procs" or (workload.columns.get(name, np.array([-1])) >= 0).any()]
    names += [] if "executable" in names else ["requested"]
    values = np.column_stack([_column(workload, name)[mine] for name in names])
    alike, place = np.unique(values, axis=0, return_inverse=True)
    place = place.reshape(-1)
    kinds = [
        _kind(workload, mine[place == k], dict(zip(names, alike[k].tolist(), strict=True)), risk)
        for k in np.flatnonzero(np.bincount(place) >= ENOUGH).tolist()
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
    """The advice for these jobs, in order of submission."""
    ran, asked, width = workload.runtime[inside], workload.requested[inside], workload.procs[inside] / 3600
    cut = ran >= asked
    length = np.minimum(ran, asked)
    ordered = np.sort(np.where(cut, length + 1, length)).tolist()
    asked_hours, unused = float((asked * width).sum()), float((np.maximum(asked - ran, 0) * width).sum())
    best, why, hindsight, less, allowed = None, NEEDED, float("nan"), 0.0, 0
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
        hindsight=hindsight if best is not None else float("nan"),
        asked_hours=asked_hours,
        unused_hours=unused,
        less_hours=less,
        why="" if best is not None else why,
    )


def _options(workload: Workload, user: int, kind: dict[str, int], risk: float) -> list[str] | None:
    """The options that ask `walltime suggest` about this kind; None if a name is not what it would be typed as."""
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
