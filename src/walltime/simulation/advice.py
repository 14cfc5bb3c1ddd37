"""Walltimes for the users who ask for the most hours that they do not use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.errors import WorkloadError
from walltime.estimates.suggestion import LEAST, Advice, suggest
from walltime.simulation.adjusted import Bars, no_bars
from walltime.workload import Workload

__all__ = ["RISK", "UserAdvice", "advise_users"]

Array = np.ndarray

MOST = 10
"""Users that are advised."""
RISK = 5.0
"""Percent of jobs that may be killed."""
KINDS = (("group", "executable", "procs"), ("executable", "procs"), ("group", "procs"), ("procs",))
"""Columns in which a user's jobs of one kind agree, the first that the log has."""
OPTIONS = {"group": "--group", "executable": "--job-name", "procs": "--job-procs"}
"""How `walltime suggest` takes them."""


@dataclass(frozen=True)
class UserAdvice:
    """A user with hours to give back, the kind of job that wastes most of them, and what to ask for."""

    user: str
    """number, or name where the log has names"""
    asked_hours: float
    """processor-hours that all jobs of the user ask for"""
    unused_hours: float
    """of these not used"""
    kind: dict[str, str]
    """what the jobs of this kind have in common, by column"""
    kind_unused_hours: float
    """processor-hours asked for and not used by jobs of this kind"""
    less_hours: float
    """processor-hours that they would not have asked for with the suggested walltime"""
    advice: Advice | None
    """None if there are too few jobs"""
    options: Sequence[str] | None
    """of `walltime suggest` for it; None if a name holds what cannot be typed"""

    def as_dict(self) -> dict[str, Any]:
        """The same in one level, ready for JSON; None where there is no suggestion."""
        found = self.advice
        one = None if found is None else found.suggestions[0]
        return {
            "user": self.user,
            "asked_hours": self.asked_hours,
            "unused_hours": self.unused_hours,
            "kind": dict(self.kind),
            "jobs": 0 if found is None else found.jobs,
            "median_runtime": None if found is None else found.median_runtime,
            "median_request": None if found is None else found.median_request,
            "walltime": None if one is None else one.walltime,
            "risk": RISK,
            "risk_at_most": None if one is None else one.upper,
            "killed_in_hindsight": None if one is None or np.isnan(one.backtest) else one.backtest,
            "kind_unused_hours": self.kind_unused_hours,
            "less_hours": self.less_hours,
            "options": None if self.options is None else list(self.options),
        }


def advise_users(workload: Workload, limited: Array | None = None, most: int = MOST, progress: Bars = no_bars) -> list[UserAdvice]:
    """For the users with the most processor-hours asked for and not used: the kind of job with most of them, and a walltime for the next.

    Jobs of a kind are alike in account, job name and processors, as far as the log says. The suggestion is that of `suggest` at a risk
    of 5 %. `limited`: which jobs have a limit, by default all; hours are counted of these only. Empty for a log without users.
    """
    users = workload.columns.get("user")
    if users is None or not (users >= 0).any():
        return []
    width = workload.procs / 3600
    counted = np.ones(len(workload), bool) if limited is None else limited
    unused = np.where(counted, np.maximum(workload.requested - workload.runtime, 0) * width, 0.0)
    known, place = np.unique(users, return_inverse=True)
    total = np.where(known < 0, -1.0, np.bincount(place, weights=unused))
    chosen = [int(known[k]) for k in np.argsort(-total, kind="stable")[:most].tolist() if total[k] > 0]
    found = []
    with progress(len(chosen), "suggestions") as show:
        for number in chosen:
            mine = np.flatnonzero((users == number) & counted)
            found.append(_advise(workload, number, mine, unused))
            if show is not None:
                show(len(found))
    return found


def _advise(workload: Workload, user: int, mine: Array, unused: Array) -> UserAdvice:
    """The advice for a user with these jobs."""
    columns = _columns(workload)
    values = np.column_stack([workload.procs[mine] if name == "procs" else workload.columns[name][mine] for name in columns])
    kinds, place = np.unique(values, axis=0, return_inverse=True)
    place = place.reshape(-1)
    enough = np.bincount(place) >= LEAST
    wasted = np.bincount(place, weights=unused[mine])
    worst = int(np.argmax(np.where(enough, wasted, -1.0)))
    kind = {name: int(value) for name, value in zip(columns, kinds[worst].tolist(), strict=True) if value >= 0} if enough[worst] else {}
    inside = mine[place == worst] if enough[worst] else mine
    try:
        advice = suggest(workload, user=user, risks=[RISK], **kind)
    except WorkloadError:
        advice = None
    width = workload.procs[inside] / 3600
    requested, less = workload.requested[inside], 0.0
    if advice is not None:
        less = float((np.maximum(requested - np.maximum(advice.suggestions[0].walltime, workload.runtime[inside]), 0) * width).sum())
    origin = workload.origin
    texts = {name: str(value) if name == "procs" else origin.name_of(name, value) for name, value in kind.items()}
    return UserAdvice(
        user=origin.name_of("user", user),
        asked_hours=float((workload.requested[mine] * (workload.procs[mine] / 3600)).sum()),
        unused_hours=float(unused[mine].sum()),
        kind=texts,
        kind_unused_hours=float(unused[inside].sum()),
        less_hours=less,
        advice=advice,
        options=_options(workload, user, kind),
    )


def _columns(workload: Workload) -> Sequence[str]:
    return next(names for names in KINDS if all(name == "procs" or name in workload.columns for name in names))


def _options(workload: Workload, user: int, kind: dict[str, int]) -> list[str] | None:
    """The options that ask for this suggestion; None if a name is not what it would be typed as."""
    words = []
    for column, number in {"user": user, **kind}.items():
        option = OPTIONS.get(column, "--user")
        word = str(number) if column == "procs" else workload.origin.name_of(column, number)
        if column != "procs" and workload.origin.number_of(column, word) != number:
            return None
        words += [f"{option}={word}"] if word.startswith("-") else [option, word]
    return [*words, "--risk", f"{RISK:g}"]
