"""What is drawn from the jobs of the past: how long jobs will run, from how long jobs like them ran, and which jobs will come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from walltime.workload import Workload

Array = np.ndarray

WEEK, DAY = 7 * 86400, 86400
WEEKS = 8
"""So many of the last weeks are drawn from."""
LEVELS = (("executable", "user", "requested"), ("user", "requested", "procs"), ("user", "requested"), ("user",), ("requested",), ())
"""Which jobs are alike: those that agree in these columns; the first of these groups that has enough jobs is taken."""
LEAST = 8
"""The fewest jobs of a group, of a running job those that ran longer than it has run by now."""
MOST_RATIOS = 2000
"""So many earlier predictions count, where a user has too few, those of the jobs that ended last."""
LATEST = 50
"""So many of a group count, those that ended last: what users run changes. On SDSC-SP2 and LANL-CM5, which the guide's table does not show,
intervals are narrower than with 500, as many starts are within, and the median error up to 1 h ahead is a sixth and a third less."""
GROUP_CORRELATION = 0.9
"""How much the runtimes of jobs of one group go together: the correlation of the normal variables behind them. Users submit the same thing
many times over. It stands for what goes together between groups as well: with 0.5, intervals of 90 % held 1 % fewer starts on KTH-SP2, and
4 % fewer on CTC-SP2 (of the last 500 jobs alike)."""


class Arrivals:
    """Draws jobs to come from the history's submissions before `now`.

    `submit`: of the history's jobs, s, ascending; `horizon`: until when jobs are to come, s after `now`. Each day to come is a day of one
    of the last weeks, chosen at random, from the same weekday and hour on; where the history is shorter than a week, any day; where it is
    shorter than a day, no jobs come (`period` is 0).
    """

    def __init__(self, submit: Array, now: int, horizon: int):
        self.submit, self.now, self.horizon = submit, now, horizon
        known = now - int(submit[0]) if len(submit) else 0
        self.period = WEEK if known >= WEEK else DAY if known >= DAY else 0
        self.reach = known

    def draw(self, random: np.random.Generator) -> tuple[Array, Array]:
        """The jobs to come: their places in the history, and the s after `now` at which each is submitted, ascending."""
        places, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for begin in range(0, self.horizon if self.period else 0, DAY):
            length = min(DAY, self.horizon - begin)
            fewest = -(-(begin + length) // self.period)  # so many periods back, the day is over
            most = max(fewest, min(fewest + WEEKS * WEEK // self.period - 1, (self.reach + begin) // self.period))
            back = self.now + begin - self.period * int(random.integers(fewest, most + 1))
            first, last = np.searchsorted(self.submit, [back, back + length])
            places.append(np.arange(first, last))
            times.append(self.submit[first:last] - back + begin)
        return np.concatenate(places), np.concatenate(times)


@dataclass(frozen=True, eq=False)
class JobsToDraw:
    """What is known of jobs whose runtimes are drawn, one entry per job.

    `columns`: those of LEVELS (int64, -1 unknown). `requested`, `elapsed`: s; the latter is 0 for those that have not started.
    """

    columns: dict[str, Array]
    requested: Array
    elapsed: Array


@dataclass(frozen=True, eq=False)
class RuntimePredictions:
    """Predictions of runtimes, int64 s, -1 for none: of the `jobs` whose runtimes are drawn, and of those of the history, `past`."""

    jobs: Array
    past: Array


class Runtimes:
    """Draws runtimes of jobs from the history's. What is drawn is the part of the request that jobs alike used.

    `level`: for each job the group of LEVELS that it is drawn from, len(LEVELS) where there is none: those run to their limit. A job that
    has run for some time is drawn from those jobs that ran longer.
    """

    def __init__(self, history: Workload, ended: Array, jobs: JobsToDraw, told: RuntimePredictions | None = None):
        """`ended`: when each job of the history ended, s, for their order; `told`: predictions of their runtimes, and of the jobs'."""
        self.told = np.zeros(len(jobs.requested), bool)
        self._around = None if told is None else _Around(history, ended, jobs, told)
        if self._around is not None:
            self.told = self._around.known
        order = np.argsort(-ended, kind="stable")  # the last to end first
        ratio = np.minimum(history.runtime / history.requested, 1.0)[order]
        own = {name: _column(history, name)[order] for level in LEVELS for name in level}
        count = len(jobs.requested)
        least = jobs.elapsed / jobs.requested
        self.requested, self.elapsed = jobs.requested, jobs.elapsed
        self.level = np.full(count, len(LEVELS))
        self._first, self._size, self._group = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
        parts: list[Array] = [np.zeros(0)]
        used, groups = 0, 0
        for k, level in enumerate(LEVELS):
            todo = np.flatnonzero(self.level == len(LEVELS))
            if not len(todo) or not len(ratio):
                break
            keys = np.stack([own[name] for name in level], axis=1) if level else np.zeros((len(ratio), 0), np.int64)
            wanted = np.stack([jobs.columns[name][todo] for name in level], axis=1) if level else np.zeros((len(todo), 0), np.int64)
            alike_by_key = dict(_by_key(keys, np.arange(len(ratio))))
            for key, mine in _by_key(wanted, todo):
                alike = alike_by_key.get(key, todo[:0])[:LATEST]
                if any(value < 0 for value in key) or len(alike) < LEAST:
                    continue
                values = np.sort(ratio[alike])
                first = np.searchsorted(values, least[mine], side="right")
                first[jobs.elapsed[mine] == 0] = 0
                good = len(values) - first >= LEAST
                chosen = mine[good]
                if not len(chosen):
                    continue
                parts.append(values)
                self.level[chosen], self._group[chosen] = k, groups
                self._first[chosen], self._size[chosen] = used + first[good], len(values) - first[good]
                used, groups = used + len(values), groups + 1
        self._ratios, self._groups = np.concatenate(parts), groups

    def draw(self, random: np.random.Generator) -> Array:
        """One runtime for each job, int64 s: the whole runtime, also of those that run already."""
        count = len(self.requested)
        shared = random.standard_normal(max(self._groups, 1))[self._group]
        normal = np.sqrt(GROUP_CORRELATION) * shared + np.sqrt(1 - GROUP_CORRELATION) * random.standard_normal(count)
        return self._at(_below(normal))

    def typical(self) -> Array:
        """The median runtime of each job, int64 s."""
        return self._at(np.full(len(self.requested), 0.5))

    def _at(self, part: Array) -> Array:
        """The runtimes of which this part of the jobs alike, from 0 to 1, ran shorter.

        The runtimes of n jobs leave n + 1 gaps, the outer ones down to what the job has run and up to its limit; one more job like them
        ends in any of these as likely. Drawn from the n alone, no job would run longer than all before it.
        """
        known = self.level < len(LEVELS)
        first, size = self._first[known], self._size[known]
        place = part[known] * (size + 1)
        gap = np.minimum(place.astype(np.int64), size)
        low = np.where(gap > 0, self._ratios[first + np.maximum(gap, 1) - 1], np.minimum(self.elapsed / self.requested, 1.0)[known])
        high = np.where(gap < size, self._ratios[first + np.minimum(gap, size - 1)], 1.0)
        ratio = np.ones(len(part))
        ratio[known] = low + (place - gap) * (high - low)
        runtime = np.maximum(np.rint(ratio * self.requested).astype(np.int64), 0)
        if self._around is not None:
            runtime = np.where(self.told, self._around.at(part), runtime)
        begun = self.elapsed > 0
        # a job that still runs ends after this moment, also where it is beyond its limit
        return np.where(begun, np.maximum(runtime, self.elapsed + 1), runtime)


class _Around:
    """Runtimes around predictions: a prediction times what runtimes were of earlier predictions, of the user if enough are known.

    `known`: the jobs that have a prediction that they have not outlived by more than nearly all others; bool.
    """

    def __init__(self, history: Workload, ended: Array, jobs: JobsToDraw, told: RuntimePredictions):
        self.jobs, self.predicted = jobs, told.jobs
        self.known = told.jobs > 0
        of_past = np.flatnonzero(told.past > 0)
        of_past = of_past[np.argsort(-ended[of_past], kind="stable")]
        ratio = (np.minimum(history.runtime, history.requested)[of_past] / told.past[of_past]).astype(np.float64)
        user, mine = _column(history, "user")[of_past], jobs.columns["user"]
        least = jobs.elapsed / np.maximum(told.jobs, 1)
        parts, used = [np.zeros(0)], 0
        self._first, self._size = np.zeros(len(mine), np.int64), np.zeros(len(mine), np.int64)
        everybody = np.sort(ratio[:MOST_RATIOS])
        for one in np.unique(mine[self.known]).tolist():
            own = np.sort(ratio[user == one][:LATEST]) if one >= 0 else everybody[:0]
            for values in (own, everybody):
                of_user = np.flatnonzero(self.known & (mine == one) & (self._size == 0))
                first = np.searchsorted(values, least[of_user], side="right")
                first[jobs.elapsed[of_user] == 0] = 0
                good = len(values) - first >= LEAST
                self._first[of_user[good]], self._size[of_user[good]] = used + first[good], len(values) - first[good]
                parts.append(values)
                used += len(values)
        self._ratios = np.concatenate(parts)
        self.known &= (self._size > 0) | (jobs.elapsed < told.jobs)

    def at(self, part: Array) -> Array:
        """The runtimes of which this part lies below, int64 s; where too little is known of earlier predictions, the prediction."""
        some = self._size > 0
        runtime = self.predicted.astype(np.float64)
        size, first, predicted = self._size[some], self._first[some], np.maximum(self.predicted[some], 1)
        place = part[some] * (size + 1)
        gap = np.minimum(place.astype(np.int64), size)
        low = np.where(gap > 0, self._ratios[first + np.maximum(gap, 1) - 1], self.jobs.elapsed[some] / predicted)
        high = np.where(gap < size, self._ratios[first + np.minimum(gap, size - 1)], np.maximum(self.jobs.requested[some] / predicted, low))
        runtime[some] = (low + (place - gap) * (high - low)) * predicted
        whole: Array = np.clip(np.rint(runtime), 0, np.maximum(self.jobs.requested, self.jobs.elapsed + 1)).astype(np.int64)
        return whole


def _column(workload: Workload, name: str) -> Array:
    if name in ("requested", "procs"):
        return np.asarray(getattr(workload, name))
    return workload.columns.get(name, np.full(len(workload), -1, np.int64))


def _by_key(wanted: Array, todo: Array) -> Sequence[tuple[tuple[int, ...], Array]]:
    """The keys, each with the jobs that have it, in their order."""
    if not wanted.shape[1]:
        return [((), todo)]
    order = np.lexsort(wanted.T[::-1])
    keys = wanted[order]
    begins = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]).any(axis=1)]) if len(keys) else np.zeros(0, np.int64)
    return list(zip(map(tuple, keys[begins].tolist()), np.split(todo[order], begins[1:]), strict=False))


def _below(normal: Array) -> Array:
    """The distribution function of the normal distribution, by the approximation 7.1.26 of Abramowitz and Stegun; error below 1e-7."""
    x = np.abs(normal) / np.sqrt(2)
    t = 1 / (1 + 0.3275911 * x)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * np.exp(-x * x)
    return np.where(normal < 0, tail / 2, 1 - tail / 2)
