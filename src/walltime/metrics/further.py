"""Metrics beyond the usual averages, by name: percentiles, fairness, classes of jobs, and functions of users.

The functions take a schedule, with arrays of one entry per job, and which jobs are measured (bool, shape (jobs,)).
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from walltime.declared import nearest
from walltime.errors import PolicyError
from walltime.metrics.jobs import bounded_slowdown
from walltime.metrics.summary import Summary
from walltime.plugins.files import location_of, user_code
from walltime.plugins.parts import OWN_SPELLING, function_options, own_part
from walltime.wording import shown

Array = np.ndarray
FORM = "def NAME(schedule, measured)"
SHORT, NARROW = 3600, 8
"""The maximum runtime (s) of short jobs, and the maximum processors of narrow ones, as in the grouping `class`."""
_PERCENTILE = re.compile(r"p([0-9]{1,2}(?:\.[0-9]{1,3})?)_(wait|response|bounded_slowdown)")


class Further(NamedTuple):
    """A metric: its function, its unit (`s`, or empty), and its meaning in a sentence."""

    function: Callable[[Any, Array], float]
    unit: str
    meaning: str


def area_weighted_response(schedule: Any, measured: Array) -> float:
    """Return the mean response weighted by processor seconds, s; nan without work.

    Source: Schwiegelshohn and Yahyapour, "Analysis of first-come-first-serve parallel job scheduling", SODA 1998.
    """
    area = (schedule.runtime * schedule.workload.procs)[measured].astype(np.float64)
    response = (schedule.end - schedule.submit)[measured]
    return float(area @ response / area.sum()) if area.sum() > 0 else math.nan


def jain(values: Array) -> float:
    """Return Jain's index of non-negative values: 1 if all n values are equal, 1 / n if only one is not 0; nan without values.

    Source: Jain, Chiu, Hawe, "A quantitative measure of fairness and discrimination", DEC-TR-301, 1984.

    >>> jain(np.array([1.0, 1.0])), jain(np.array([1.0, 0.0]))
    (1.0, 0.5)
    """
    squares = len(values) * float(values @ values)
    return float(values.sum()) ** 2 / squares if squares > 0 else math.nan


def gini(values: Array) -> float:
    """Return the Gini coefficient of non-negative values: 0 if all are equal, near 1 if only one is not 0; nan without values.

    Source: Gini 1912, by the form with ranks.

    >>> gini(np.array([2.0, 2.0])), gini(np.array([0.0, 4.0]))
    (0.0, 0.5)
    """
    total, n = float(values.sum()), len(values)
    ranks = np.arange(1, n + 1)
    return float(2 * (ranks @ np.sort(values)) / (n * total) - (n + 1) / n) if total > 0 else math.nan


def _slowdowns(schedule: Any, measured: Array) -> Array:
    slowdowns: Array = bounded_slowdown(schedule.wait, schedule.runtime)[measured]
    return slowdowns


def _of_users(index: Callable[[Array], float], values: Callable[[Any, Array], Array], schedule: Any, measured: Array) -> float:
    """Return an index, such as Jain's, of the users' means; raises PolicyError if the log has no users."""
    user = schedule.workload.columns.get("user")
    if user is None:
        raise PolicyError(
            "jain_users and gini_users need the users of jobs, which the log does not record; use another metric", "missing_column"
        )
    place = np.unique(user[measured], return_inverse=True)[1].reshape(-1)
    return index(np.bincount(place, weights=values(schedule, measured)) / np.bincount(place))


def _class_slowdown(short: bool, narrow: bool, schedule: Any, measured: Array) -> float:
    chosen = measured & ((schedule.runtime <= SHORT) == short) & ((schedule.workload.procs <= NARROW) == narrow)
    return float(np.mean(_slowdowns(schedule, chosen))) if chosen.any() else math.nan


def _percentile(share: float, of: str, schedule: Any, measured: Array) -> float:
    columns = {"wait": schedule.wait, "response": schedule.end - schedule.submit}
    values = columns[of][measured] if of in columns else _slowdowns(schedule, measured)
    return float(np.percentile(values, share)) if len(values) else math.nan


def _waits(schedule: Any, measured: Array) -> Array:
    return np.asarray(schedule.wait[measured], np.float64)


FURTHER: Mapping[str, Further] = {
    "p95_wait": Further(partial(_percentile, 95.0, "wait"), "s", "95th percentile of waits; other percentiles have names such as p75_wait"),
    "p95_response": Further(partial(_percentile, 95.0, "response"), "s", "95th percentile of response times"),
    "p95_bounded_slowdown": Further(partial(_percentile, 95.0, "bounded_slowdown"), "", "95th percentile of bounded slowdowns"),
    "area_weighted_response": Further(area_weighted_response, "s", "mean response weighted by the processor seconds of jobs"),
    "jain_slowdown": Further(lambda s, m: jain(_slowdowns(s, m)), "", "Jain's index of the jobs' bounded slowdowns; 1 is equal"),
    "jain_users": Further(partial(_of_users, jain, _slowdowns), "", "Jain's index of the users' mean bounded slowdowns"),
    "gini_wait": Further(lambda s, m: gini(_waits(s, m)), "", "Gini coefficient of the jobs' waits; 0 is equal"),
    "gini_users": Further(partial(_of_users, gini, _waits), "", "Gini coefficient of the users' mean waits"),
    **{
        f"slowdown_{'short' if short else 'long'}_{'narrow' if narrow else 'wide'}": Further(
            partial(_class_slowdown, short, narrow),
            "",
            f"mean bounded slowdown of jobs {'up to' if short else 'over'} 1 h with {'up to' if narrow else 'over'} 8 processors",
        )
        for short in (True, False)
        for narrow in (True, False)
    },
}
"""The additional metrics, by name."""


def unit_of(name: str) -> str:
    """Return the unit of a metric in `FURTHER` or of a percentile: `s`, or empty."""
    match = _PERCENTILE.fullmatch(name)
    return FURTHER[name].unit if name in FURTHER else "s" if match and match[2] != "bounded_slowdown" else ""


def metric(name: str | Callable[..., Any]) -> Further:
    """Return a metric: a user's function, or one by name: in `FURTHER`, a percentile, a field of `Summary`, or `FILE.py:NAME`.

    Raises PolicyError for an unknown one.

    >>> metric("p99.9_wait").unit, metric("mean_wait").unit
    ('s', 's')
    """
    if callable(name):
        return _own_metric(name, getattr(name, "__name__", repr(name)))
    if name in FURTHER:
        return FURTHER[name]
    if (match := _PERCENTILE.fullmatch(name)) is not None:
        of = match[2]
        return Further(partial(_percentile, float(match[1]), of), "" if of == "bounded_slowdown" else "s", f"{match[1]}th percentile")
    for one in fields(Summary):
        if one.name == name:
            return Further(
                lambda schedule, measured: float(getattr(schedule.summary(jobs=measured), name)), "s" if "wait" in name else "", name
            )
    found = own_part("metrics", name, "metric")
    if found is None:
        close = nearest(name, [*FURTHER, *(one.name for one in fields(Summary))])
        raise PolicyError(
            f"unknown metric {shown(name)}{close or '.'} Valid options: {', '.join(FURTHER)}, the fields of summaries, {OWN_SPELLING}",
            "unknown_name",
        )
    return _own_metric(found[0], name)


def _own_metric(function: Any, name: str) -> Further:
    function_options(function, ("schedule", "measured"), "a metric", FORM)
    return Further(partial(_own, function, name), "", name)


def _own(function: Callable[..., Any], name: str, schedule: Any, measured: Array) -> float:
    with user_code(f"the metric {name}", function, FORM):
        value = function(schedule, measured)
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise PolicyError(f"{location_of(function)}the metric {name} returns {shown(value)}, which is not a number", "wrong_value")
    return float(value)
