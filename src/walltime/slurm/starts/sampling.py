"""Draw runtimes of jobs from the runtimes of similar past jobs, and arrivals from past submissions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.workload import Array, Workload

WEEK, DAY = 7 * 86400, 86400
WEEKS = 8
"""Number of weeks before the snapshot from which arrivals are drawn."""
LEVELS = (("executable", "user", "requested"), ("user", "requested", "procs"), ("user", "requested"), ("user",), ("requested",), ())
"""Columns in which similar jobs agree, the most specific set first; for each job, the first set with enough jobs is used."""
LEAST = 8
"""Smallest number of jobs in a group; for a running job, only jobs that ran longer than it has run so far count."""
MOST_RATIOS = 2000
"""Maximum number of earlier predictions, of the jobs that ended last, that stand in for users with too few of their own."""
LATEST = 50
"""Maximum number of jobs in a group, those that ended last, because users' jobs change. On SDSC-SP2 and LANL-CM5, which are not in the
guide's table, 50 instead of 500 gives narrower intervals that hold as many starts, and lowers the median error up to 1 h ahead by a sixth
and a third.
"""
GROUP_CORRELATION = 0.9
"""Correlation of the normal variables from which the runtimes of one group are drawn: users submit the same job many times, and its
runtimes change together. The value also stands for correlation between groups: with 0.5, the 90 % intervals held 1 % fewer starts on
KTH-SP2, and 4 % fewer on CTC-SP2 (with the last 500 similar jobs).
"""


class Arrivals:
    """Draws arriving jobs from the history's submissions before `now`.

    `submit`: the submissions of the history's jobs, s, ascending; `horizon`: the end of arrivals, s after `now`. Each future day is a
    random day of one of the last weeks, from the same weekday and hour on; any day if the history is shorter than a week. No jobs arrive if
    it is shorter than a day (`period` is 0). `reach`: the length of the history, s.
    """

    def __init__(self, submit: Array, now: int, horizon: int):
        self.submit, self.now, self.horizon = submit, now, horizon
        self.reach = now - int(submit[0]) if len(submit) else 0
        self.period = WEEK if self.reach >= WEEK else DAY if self.reach >= DAY else 0

    def draw(self, random: np.random.Generator) -> tuple[Array, Array]:
        """Draw arrivals, and return their indices in the history and their submit times (s after `now`, ascending)."""
        places, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for begin in range(0, self.horizon if self.period else 0, DAY):
            length = min(DAY, self.horizon - begin)
            fewest = -(-(begin + length) // self.period)  # number of periods to go back so that the whole day is in the past
            most = max(fewest, min(fewest + WEEKS * WEEK // self.period - 1, (self.reach + begin) // self.period))
            back = self.now + begin - self.period * int(random.integers(fewest, most + 1))
            first, last = np.searchsorted(self.submit, [back, back + length])
            places.append(np.arange(first, last))
            times.append(self.submit[first:last] - back + begin)
        return np.concatenate(places), np.concatenate(times)


@dataclass(frozen=True, eq=False)
class JobsToDraw:
    """Jobs whose runtimes are drawn, one entry per job.

    `columns`: the columns of LEVELS (int64, -1 unknown). `requested`, `elapsed`: s; `elapsed` is 0 for waiting jobs.
    """

    columns: dict[str, Array]
    requested: Array
    elapsed: Array

    @classmethod
    def of(cls, workload: Workload, elapsed: Array) -> JobsToDraw:
        """Return the first `len(elapsed)` jobs of a workload."""
        columns = {name: _column(workload, name)[: len(elapsed)] for level in LEVELS for name in level}
        return cls(columns, columns["requested"], elapsed)


class Runtimes:
    """Draws runtimes of jobs: the share of the request that similar jobs of the history used, times the job's request.

    `level`: for each job its index in LEVELS, or len(LEVELS) if there are too few similar jobs, so that it runs to its limit. The runtime
    of a running job is drawn from jobs that ran longer. `predicted`: whether a job's runtime is drawn around its prediction.
    """

    def __init__(self, history: Workload, ended: Array, jobs: JobsToDraw, predictions: tuple[Array, Array] | None = None):
        """Group the jobs; `ended`: when each job of the history ended, s, for their order.

        `predictions`: predicted runtimes of the jobs and of the history's jobs, int64 s, -1 for none.
        """
        self._around = None if predictions is None else _AroundPredictions(history, ended, jobs, *predictions)
        self.predicted = np.zeros(len(jobs.requested), bool) if self._around is None else self._around.known
        order = np.argsort(-ended, kind="stable")  # the last to end first
        ratio = np.minimum(history.runtime / history.requested, 1.0)[order]
        own = {name: _column(history, name)[order] for level in LEVELS for name in level}
        least = jobs.elapsed / jobs.requested
        self.requested, self.elapsed = jobs.requested, jobs.elapsed
        self._ratios, self._groups = _Ratios(jobs), 0
        self.level, self._group = np.full(len(least), len(LEVELS)), np.zeros(len(least), np.int64)
        for k, level in enumerate(LEVELS):
            todo = np.flatnonzero(self.level == len(LEVELS))
            if not len(todo) or not len(ratio):
                break
            alike_by_key = dict(_by_key([own[name] for name in level], np.arange(len(ratio))))
            for key, mine in _by_key([jobs.columns[name][todo] for name in level], todo):
                alike = alike_by_key.get(key, todo[:0])[:LATEST]
                if any(value < 0 for value in key) or len(alike) < LEAST:
                    continue
                chosen = self._ratios.assign(np.sort(ratio[alike]), mine, least)
                if len(chosen):
                    self.level[chosen], self._group[chosen] = k, self._groups
                    self._groups += 1

    def draw(self, random: np.random.Generator) -> Array:
        """Draw one runtime for each job, int64 s; for running jobs it includes the time that has passed."""
        count = len(self.requested)
        shared = random.standard_normal(max(self._groups, 1))[self._group]
        normal = np.sqrt(GROUP_CORRELATION) * shared + np.sqrt(1 - GROUP_CORRELATION) * random.standard_normal(count)
        return self._quantile(_normal_cdf(normal))

    def typical(self) -> Array:
        """Return the median runtime of each job, int64 s."""
        return self._quantile(np.full(len(self.requested), 0.5))

    def _quantile(self, part: Array) -> Array:
        """Return the runtimes at these quantiles (0 to 1) of similar jobs, int64 s."""
        ratio = self._ratios.interpolate(part, np.minimum(self.elapsed / self.requested, 1.0), np.ones(len(part)))
        runtime = np.maximum(np.rint(ratio * self.requested).astype(np.int64), 0)
        if self._around is not None:
            runtime = np.where(self.predicted, self._around.quantile(part), runtime)
        # a running job ends after this moment, even if it is beyond its limit
        return np.where(self.elapsed > 0, np.maximum(runtime, self.elapsed + 1), runtime)


class _AroundPredictions:
    """Draws runtimes around predictions, by the ratios of runtimes to earlier predictions: the user's own if there are enough.

    Other users' ratios are used otherwise. `known`: whether a job's runtime can be drawn in this way.
    """

    def __init__(self, history: Workload, ended: Array, jobs: JobsToDraw, predicted: Array, of_past: Array):
        self.jobs, self.predicted = jobs, predicted
        self.known = predicted > 0
        past = np.flatnonzero(of_past > 0)
        past = past[np.argsort(-ended[past], kind="stable")]
        ratio = (np.minimum(history.runtime, history.requested)[past] / of_past[past]).astype(np.float64)
        past_user, user = _column(history, "user")[past], jobs.columns["user"]
        least = jobs.elapsed / np.maximum(predicted, 1)
        self._ratios = _Ratios(jobs)
        all_ratios = np.sort(ratio[:MOST_RATIOS])
        for one in np.unique(user[self.known]).tolist():
            own = np.sort(ratio[past_user == one][:LATEST]) if one >= 0 else all_ratios[:0]
            for values in (own, all_ratios):
                self._ratios.assign(values, np.flatnonzero(self.known & (user == one) & (self._ratios.size == 0)), least)
        self.known &= (self._ratios.size > 0) | (jobs.elapsed < predicted)

    def quantile(self, part: Array) -> Array:
        """Return the runtimes at these quantiles, int64 s; the prediction itself where too few earlier ones are known."""
        predicted = np.maximum(self.predicted, 1)
        ratio = self._ratios.interpolate(part, self.jobs.elapsed / predicted, self.jobs.requested / predicted)
        runtime = np.where(self._ratios.size > 0, ratio * predicted, self.predicted)
        whole: Array = np.clip(np.rint(runtime), 0, np.maximum(self.jobs.requested, self.jobs.elapsed + 1)).astype(np.int64)
        return whole


class _Ratios:
    """Ascending ratios of the runtimes of similar jobs; each job uses `size` consecutive ones."""

    def __init__(self, jobs: JobsToDraw):
        self._elapsed, self._ratios = jobs.elapsed, np.zeros(0)
        self._first, self.size = np.zeros((2, len(jobs.elapsed)), np.int64)

    def assign(self, values: Array, jobs: Array, least: Array) -> Array:
        """Let jobs (indices) use the values above their `least`, if there are LEAST or more; return the jobs that do so.

        Waiting jobs use all values.
        """
        first = np.searchsorted(values, least[jobs], side="right")
        first[self._elapsed[jobs] == 0] = 0
        good = len(values) - first >= LEAST
        self._first[jobs[good]], self.size[jobs[good]] = len(self._ratios) + first[good], len(values) - first[good]
        self._ratios = np.concatenate([self._ratios, values])
        return jobs[good]

    def interpolate(self, part: Array, lowest: Array, highest: Array) -> Array:
        """Return the ratio at a quantile of each job's ratios; 1 for jobs without ratios.

        The n ratios leave n + 1 gaps, the outer ones down to `lowest` and up to `highest`; the ratio of another similar job is equally
        likely to be in any of them. If only the n ratios were drawn, no job would run longer than all earlier ones.
        """
        place = part * (self.size + 1)
        gap = np.minimum(place.astype(np.int64), self.size)
        ratios = np.append(self._ratios, 1.0)
        low = np.where(gap > 0, ratios[self._first + np.maximum(gap, 1) - 1], lowest)
        high = np.where(gap < self.size, ratios[self._first + np.minimum(gap, self.size - 1)], np.maximum(highest, low))
        return np.where(self.size > 0, low + (place - gap) * (high - low), 1.0)


def _column(workload: Workload, name: str) -> Array:
    if name in ("requested", "procs"):
        return np.asarray(getattr(workload, name))
    return workload.columns.get(name, np.full(len(workload), -1, np.int64))


def _by_key(columns: Sequence[Array], jobs: Array) -> Sequence[tuple[tuple[int, ...], Array]]:
    """Return the distinct keys (combinations of the columns' values), each with its jobs in their order."""
    if not columns:
        return [((), jobs)]
    order = np.lexsort(columns[::-1])
    keys = np.stack(columns, axis=1)[order]
    begins = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]) if len(keys) else np.zeros(0, np.int64)
    return list(zip(map(tuple, keys[begins].tolist()), np.split(jobs[order], begins[1:]), strict=False))


def _normal_cdf(normal: Array) -> Array:
    """Return the normal distribution function, by approximation 7.1.26 of Abramowitz and Stegun; the error is below 1e-7."""
    x = np.abs(normal) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * x)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * np.exp(-x * x)
    return np.where(normal < 0, tail / 2, 1 - tail / 2)
