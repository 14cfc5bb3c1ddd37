"""Find the causes of recorded waits (resources, limits, jobs ahead) from the recorded schedule and the machine file."""

from collections.abc import Iterator
from typing import Self

import numpy as np

from walltime.distinct import distinct_rows
from walltime.machine import Machine, Partition, Placement, Pool, place
from walltime.machine.tables import numbers_of
from walltime.node_demands import pool_needs
from walltime.workload import Array, Workload

CAUSES = ("window", "limit", "second", "memory", "processors", "reservation", "behind", "priority", "unknown")
"""Causes of a wait; the first that applies counts. `window`: closed hours. `limit`: a limit on running jobs. `second`, `memory`,
`processors`: too little of the second resource, of memory or of processors was free. `reservation`: enough was free, but kept for a
reservation or an announced outage that begins before the job would end. `behind`: an earlier job lacked resources. `priority`: a later job
with a higher recorded priority lacked resources. `unknown`: none of these."""
WINDOW, LIMIT, SECOND, MEMORY, PROCS, RESERVATION, BEHIND, PRIORITY, UNKNOWN = range(len(CAUSES))
LACKS = (SECOND, MEMORY, PROCS, RESERVATION)
"""The causes by which a job lacks resources."""
_NEVER = np.iinfo(np.int64).max


def cause_names(second: str) -> dict[str, str]:
    """Return the names of the causes as table heads; `second`: the name of the second resource."""
    names = {"second": second, "limit": "a limit", "behind": "jobs ahead", "unknown": "not known", "window": "closed hours"}
    names |= {"reservation": "a reservation or outage"}
    return {cause: names.get(cause, cause) for cause in CAUSES}


def wait_causes(jobs: Workload, machine: Machine | None, begin: int, end: int) -> tuple[Array, Array]:
    """Return the time (s, shape (jobs, causes)) that each job waited for each cause between two times, and its partition, -1 if unknown.

    `jobs`: a workload with recorded waits. `machine`: None for one pool of the log's processors. Logs do not record pools: the use of
    a job that may run in several is divided in proportion to their sizes. For jobs that do not fit the machine, the cause is unknown.
    """
    span = RecordedSpan.of(jobs, machine or one_pool(jobs), begin, end)
    placed, placement = span.jobs, span.placement
    rows = np.flatnonzero(np.isin(jobs.job_id, placed.job_id)) if len(placed) < len(jobs) else np.arange(len(jobs))
    seconds, partition = np.zeros((len(jobs), len(CAUSES))), np.full(len(jobs), -1)
    seconds[rows], partition[rows] = span.seconds(), placement.partition
    waited = np.maximum(np.minimum(jobs.submit + jobs.columns["wait"], end) - np.maximum(jobs.submit, begin), 0)
    seconds[:, UNKNOWN] += waited - seconds.sum(axis=1)
    return seconds, partition


def one_pool(jobs: Workload) -> Machine:
    """Return a machine with a single pool of the log's processors."""
    return Machine((Pool("all", 1, max(jobs.machine_procs, int(jobs.procs.max()))),), (Partition("all", ("all",)),))


class RecordedSpan:
    """The recorded schedule between two times, divided into intervals at submissions, starts, ends, outages and windows.

    `amounts`: each job's second resource, memory and processors. `sets`: the sets of pools that jobs may use, bool, shape (sets, pools).
    `members`: the set of each job.
    """

    def __init__(self, jobs: Workload, placement: Placement, begin: int, end: int):
        self.jobs, self.placement, self.submit = jobs, placement, jobs.submit
        self.needs = pool_needs(jobs, placement)
        self.amounts, self.members, self.sets = self.needs.amounts, self.needs.members, self.needs.sets
        start = jobs.submit + jobs.columns["wait"]
        stop = start + jobs.runtime
        changes = [time for outage in placement.outages for time in outage[3:5]]
        changes += [time for _, *times in placement.reservations for time in times]
        for hours in (window.until(end) for window in placement.windows):
            changes += [*hours.begin.tolist(), *hours.end.tolist()]
        inside = [one[(one > begin) & (one < end)] for one in (start, stop, jobs.submit, np.array(changes, np.int64))]
        self.edges = np.unique(np.concatenate([[begin, end], *inside]))
        self.lengths = np.diff(self.edges)
        self.ran = np.flatnonzero((start < end) & (stop > begin) & (stop > start))
        self.span = self._places(start[self.ran]), self._places(stop[self.ran])
        self.waiting = np.flatnonzero((jobs.submit < end) & (start > begin) & (start > jobs.submit))
        self.waits = self._places(jobs.submit), self._places(start)
        self.announced = [self._announced(*one) for one in placement.outages if one[5] < min(one[3], end) and one[3] > begin]

    @classmethod
    def of(cls, jobs: Workload, machine: Machine, begin: int, end: int) -> Self:
        """Return the span of the jobs that fit the machine."""
        return cls(*place(jobs, machine), begin, end)

    def _places(self, times: Array) -> Array:
        """Return the indices of the intervals that contain these times."""
        return np.clip(np.searchsorted(self.edges, times, "right") - 1, 0, len(self.lengths))

    def _levels(self, amounts: Array, chosen: Array | slice = slice(None)) -> Array:
        """Return the total amount of the running jobs in each interval; `amounts`: one for each of the `chosen` jobs of `ran`."""
        count = len(self.lengths) + 1
        first, last = self.span
        change = np.bincount(first[chosen], amounts, count) - np.bincount(last[chosen], amounts, count)
        return np.cumsum(change)[:-1]

    def free(self) -> Array:
        """Return the free amounts in each set of pools, shape (sets, resources, intervals); inf for memory that is not limited."""
        machine, size = self.placement.machine, self.needs.sizes
        lost = np.zeros((len(machine.pools), 3, len(self.lengths)))
        for pool, procs, _, begin, end, _ in self.placement.outages:
            first, last = self._places(np.array([begin, end]))
            lost[pool, :, first:last] += (size[pool] * procs / size[pool, 2])[:, None]
        free = np.empty((len(self.sets), 3, len(self.lengths)))
        shares = [self.needs.shares(r)[self.members[self.ran]] for r in range(3)]
        for k, own in enumerate(self.sets):
            for r in range(3):
                used = self._levels(self.amounts[self.ran, r] * (shares[r] @ own))
                free[k, r] = size[own, r].sum() - lost[own, r].sum(axis=0) - used
        endless = np.array([any(not machine.pools[p].memory for p in np.flatnonzero(own)) for own in self.sets])
        free[endless, 1] = np.inf
        if not size[:, 0].any():
            free[:, 0] = np.inf  # the machine does not describe the resource
        return free

    def _announced(self, pool: int, procs: int, second: int, begin: int, end: int, known: int) -> tuple[int, int, int, Array]:
        """Return an outage's pool, start and announcement, and the amounts withheld in each interval, shape (resources, intervals).

        Logs do not record nodes. Running jobs whose limits are before the outage are assumed to use its nodes, which minimizes these
        amounts.
        """
        early = np.flatnonzero((self.jobs.submit + self.jobs.columns["wait"] + self.jobs.planned)[self.ran] <= begin)
        lost, of = self.needs.sizes[pool] * procs / self.needs.sizes[pool, 2], self.members[self.ran[early]]
        used = [self._levels(self.amounts[self.ran[early], r] * self.needs.shares(r)[of, pool], early) for r in range(3)]
        return pool, begin, known, np.maximum(lost[:, None] - np.stack(used), 0)

    def _kept(self, job: int) -> Array:
        """Return the amounts that reservations and outages withhold from a job starting in each interval, shape (resources, intervals)."""
        machine, reservations = self.placement.machine, self.placement.reservations
        names, now = list(dict.fromkeys(one.name for one in machine.reservations)), self.edges[:-1]
        kept = np.zeros((len(names), 3, len(now)))
        for table, begin, end, known in reservations:
            one, number = machine.reservations[table], names.index(machine.reservations[table].name)
            pool = machine.place_of(one.pool)
            active = (known <= now) & (now < end) & (begin < now + int(self.jobs.planned[job])) & self.sets[self.members[job], pool]
            share = len(numbers_of(one.nodes, machine.pools[pool])) / machine.pools[pool].nodes
            kept[number] += np.outer(share * self.needs.sizes[pool], active)
        for number in range(len(names)):
            own = np.flatnonzero(self.placement.reservation[self.ran] == number + 1)
            kept[number] -= np.stack([self._levels(self.amounts[self.ran[own], r], own) for r in range(3)])
        total = np.asarray(np.maximum(kept, 0).sum(axis=0))
        for pool, begin, known, lost in self.announced:
            active = (known <= now) & (now < begin) & (begin < now + int(self.jobs.planned[job])) & self.sets[self.members[job], pool]
            total += lost * active
        return total

    def _shapes(self) -> Iterator[tuple[Array, Array]]:
        """Yield groups of waiting jobs with equal needs, and their cause in each interval; UNKNOWN if the jobs lack nothing."""
        free, placement = self.free(), self.placement
        several = [(placement.limits_of[job], placement.windows_of[job]) for job in self.waiting.tolist()]
        rules = [
            (tuple(limits), tuple(windows), int(placement.reservation[k]))
            for (limits, windows), k in zip(several, self.waiting, strict=True)
        ]
        numbers = {one: k for k, one in enumerate(dict.fromkeys(rules))}
        of_rules = np.array([numbers[one] for one in rules], np.int64)
        planned = self.jobs.planned[self.waiting] * bool(placement.reservations or placement.windows or self.announced)
        _, kind = distinct_rows([self.members[self.waiting], *self.amounts[self.waiting].T, of_rules, planned])
        order = np.argsort(kind, kind="stable")
        used = {limit: self._used(limit) for limits, _, _ in numbers for limit in limits}
        for mine in np.split(self.waiting[order], np.cumsum(np.bincount(kind))[:-1]):
            job = int(mine[0])
            needs, cause = self.amounts[job], np.full(len(self.lengths), UNKNOWN)
            left = free[self.members[job]]
            if (placement.reservations or self.announced) and not placement.reservation[job]:
                cause[((needs[:, None] > 0) & (left - self._kept(job) < needs[:, None] - 1e-6)).any(axis=0)] = RESERVATION
            for resource, name in ((2, PROCS), (1, MEMORY), (0, SECOND)):
                cause[(needs[resource] > 0) & (left[resource] < needs[resource] - 1e-6)] = name
            for limit in placement.limits_of[job]:
                most = placement.limits[limit]
                for level, own, bound in zip(used[limit], (1, needs[2], needs[0]), most, strict=True):
                    cause[(level + own > bound) & (own > 0)] = LIMIT
            if placement.windows:
                cause[placement.shut(job, int(self.jobs.planned[job]), self.edges[:-1])] = WINDOW
            yield mine, cause

    def _used(self, limit: int) -> list[Array]:
        """Return the jobs, processors and second resource that count towards a limit in each interval."""
        own = np.flatnonzero([limit in self.placement.limits_of[job] for job in self.ran.tolist()])
        amounts = self.amounts[self.ran[own]]
        return [self._levels(values, own) for values in (np.ones(len(own)), amounts[:, 2], amounts[:, 0])]

    def seconds(self) -> Array:
        """Return the time (s, shape (jobs, causes)) that each job waited for each cause."""
        first, last = self.waits
        shape = len(self.sets), len(self.lengths)
        earliest, highest = np.full(shape, _NEVER), np.full(shape, -1)  # submission and priority of jobs that lack resources
        priority = self.jobs.columns.get("priority", np.full(len(self.submit), -1))
        for jobs, cause in self._shapes():
            short, of = np.isin(cause, LACKS), self.members[jobs[0]]
            for job in jobs.tolist():
                inside = slice(first[job], last[job])
                earliest[of, inside] = np.where(short[inside], np.minimum(earliest[of, inside], self.submit[job]), earliest[of, inside])
                highest[of, inside] = np.where(short[inside], np.maximum(highest[of, inside], priority[job]), highest[of, inside])
        overlap = (self.sets.astype(np.int64) @ self.sets.T.astype(np.int64)) > 0
        earliest = np.array([earliest[own].min(axis=0) for own in overlap])
        highest = np.array([highest[own].max(axis=0) for own in overlap])
        seconds = np.zeros((len(self.submit), len(CAUSES)))
        for jobs, cause in self._shapes():
            of = self.members[jobs[0]]
            for job in jobs.tolist():
                inside = slice(first[job], last[job])
                ahead = np.where(highest[of, inside] > priority[job], PRIORITY, UNKNOWN) if priority[job] >= 0 else UNKNOWN
                ahead = np.where(earliest[of, inside] < self.submit[job], BEHIND, ahead)
                why = np.where(cause[inside] == UNKNOWN, ahead, cause[inside])
                seconds[job] = np.bincount(why, self.lengths[inside], len(CAUSES))
        return seconds
