"""Features of a waiting job at a moment of a record: properties of the job, its queue, its user, and similar jobs started recently."""

from __future__ import annotations

import numpy as np

from walltime.slurm.starts.replay import Record
from walltime.slurm_priorities import tree_of_shares
from walltime.workload import Array

HOUR, DAY = 3600, 86400
HALF_LIFE = 7 * DAY
"""Time, s, after which usage counts half, as with Slurm's default PriorityDecayHalfLife."""
LATEST = 400
"""Number of most recent starts from which features are computed."""
NEVER = 3e7
"""The value, s, in place of an infinite time."""
ALIKE, OWN = 20, 10
"""The numbers of most recent starts that are averaged: of similar jobs, and of the user's own jobs."""


class QueueFeatures:
    """Computes features of waiting jobs from the submissions and starts of a record before a moment."""

    def __init__(self, record: Record):
        jobs = record.workload
        self.submit, self.start, self.end = record.submit, record.start, record.end
        self.whole = float(record.machine.procs)
        self.procs, self.requested = jobs.procs / self.whole, jobs.requested.astype(float)
        self.partition = record.partition
        unknown = np.full(len(jobs), -1, np.int64)
        self.user, self.queue = jobs.columns.get("user", unknown), jobs.columns.get("queue", unknown)
        self.account = jobs.columns.get("group", unknown)
        self.zero = jobs.origin.unix_start_time or 0
        self.share, self.near = _shares_of_partitions(record)
        self.assigned = _assigned_shares(record)
        self.work = self.share * self.requested
        self._by_start = np.argsort(self.start, kind="stable")
        self._starts = self.start[self._by_start]

    def at(self, time: int, jobs: Array, simulated: Array, by_limits: Array) -> Array:
        """Return the features of waiting jobs (indices) at a time, s from the start of the log; float64, shape (jobs, features).

        `simulated`: quantiles of their starts over simulations, shape (3, jobs); `by_limits`: starts if all jobs run to their limits; both
        are s after `time`.
        """
        waiting = np.flatnonzero((self.submit <= time) & (self.start > time))
        waiting = waiting[np.argsort(self.submit[waiting], kind="stable")]
        runs = np.flatnonzero((self.start <= time) & (self.end > time))
        started = int(np.searchsorted(self._starts, time, side="right"))
        last = self._by_start[max(0, started - LATEST) : started]
        likely = np.minimum(simulated, NEVER)
        columns = [
            *self._job_features(time, jobs),
            *self._queue_features(time, jobs, waiting, runs),
            *self._user_features(jobs, waiting, runs),
            *self._partition_features(time, jobs, waiting, runs),
            *self._recent_start_features(time, jobs, last),
            *np.log1p(likely),
            np.log1p(np.minimum(by_limits, NEVER)),
            likely[1] - likely[1].min(),
        ]
        return np.stack([np.broadcast_to(np.asarray(column, float), len(jobs)) for column in columns], axis=1)

    def _job_features(self, time: int, jobs: Array) -> list[Array]:
        clock = time + self.zero
        return [
            np.log1p(time - self.submit[jobs]),
            self.procs[jobs],
            np.log1p(self.requested[jobs]),
            self.requested[jobs] * self.procs[jobs],
            self.queue[jobs],
            self.partition[jobs],
            np.asarray(clock % DAY / HOUR),
            np.asarray(clock // DAY % 7),
        ]

    def _queue_features(self, time: int, jobs: Array, waiting: Array, runs: Array) -> list[Array]:
        before = np.searchsorted(self.submit[waiting], self.submit[jobs], side="left")
        ahead = np.concatenate([[0], np.cumsum(self.procs[waiting])])
        work = np.concatenate([[0], np.cumsum(self.procs[waiting] * self.requested[waiting])])
        left = np.maximum(self.start[runs] + self.requested[runs] - time, 60)
        return [
            before,
            ahead[before],
            np.log1p(work[before]),
            np.log1p(work[-1:]),
            np.asarray(len(waiting)),
            np.asarray(1 - self.procs[runs].sum()),
            np.asarray(np.log1p((left * self.procs[runs]).sum())),
            np.asarray(np.log1p(np.median(left) if len(left) else 0)),
            np.asarray(np.log1p(time - self.submit[waiting].min(initial=time))),
        ]

    def _user_features(self, jobs: Array, waiting: Array, runs: Array) -> list[Array]:
        waits = self.user[jobs][:, None] == self.user[waiting]
        running = self.user[jobs][:, None] == self.user[runs]
        earlier = self.submit[waiting] < self.submit[jobs][:, None]
        return [waits.sum(1), (waits & earlier).sum(1), running.sum(1), running @ self.procs[runs]]

    def _partition_features(self, time: int, jobs: Array, waiting: Array, runs: Array) -> list[Array]:
        """Describe the jobs that compete for the same pools, in shares of these, and the recent use of user and account.

        Under fair share, the jobs of users with less recent use go first.
        """
        near = self.near[self.partition[jobs]]
        rivals, running = near[:, self.partition[waiting]], near[:, self.partition[runs]]
        earlier = self.submit[waiting] < self.submit[jobs][:, None]
        own = rivals & (self.user[waiting] == self.user[jobs][:, None])
        ran = np.clip(np.minimum(self.end, time) - self.start, 0, None) * 0.5 ** (np.maximum(time - self.end, 0) / HALF_LIFE)
        used = ran * self.procs
        by_user, by_account = (np.bincount(one + 1, used) / max(used.sum(), 1e-9) for one in (self.user, self.account))
        use = by_user[self.user + 1] / self.assigned
        first = rivals & (use[waiting] < use[jobs][:, None])
        left = np.maximum(self.start[runs] + self.requested[runs] - time, 60) * self.share[runs]
        return [
            self.share[jobs],
            (rivals & earlier).sum(1),
            np.log1p((rivals & earlier) @ self.work[waiting]),
            np.log1p(first @ self.work[waiting]),
            np.log1p((own & earlier) @ self.work[waiting]),
            np.log1p(own @ self.work[waiting]),
            running @ self.share[runs],
            np.log1p(running @ left),
            use[jobs],
            by_account[self.account[jobs] + 1],
        ]

    def _recent_start_features(self, time: int, jobs: Array, last: Array) -> list[Array]:
        """Describe recently started jobs: their waits, and whether they overtook the job."""
        waits = np.log1p(self.start[last] - self.submit[last])
        own = self.user[last] == self.user[jobs][:, None]
        as_wide = self.procs[last] >= self.procs[jobs][:, None]
        as_long = self.requested[last] >= self.requested[jobs][:, None]
        overtook = as_wide & (self.submit[last] > self.submit[jobs][:, None])
        alike = (self.queue[last] == self.queue[jobs][:, None]) & (self.partition[last] == self.partition[jobs][:, None])
        for size in (self.procs, self.requested):
            alike &= np.abs(np.log2(size[last]) - np.log2(size[jobs])[:, None]) <= 1
        room = np.where(as_wide, self.start[last], time - 30 * DAY).max(axis=1, initial=time - 30 * DAY)
        return [
            overtook.sum(1),
            (overtook & own & as_long).sum(1),
            _mean_of_last(own, waits, OWN),
            _mean_of_last(alike, waits, ALIKE),
            np.asarray(waits[-50:].mean() if len(waits) else -1),
            np.log1p(time - room),
            np.asarray((self.start[last] > time - 6 * HOUR).sum()),
            np.asarray((self.start[last] > time - DAY).sum()),
        ]


def _assigned_shares(record: Record) -> Array:
    """Return the share of the machine that is assigned to each job's user: the product of the shares among siblings, from the root."""
    if not record.machine.shares:
        return np.ones(len(record.workload))
    association, tree, *_ = tree_of_shares(record.workload, record.machine)
    siblings = np.bincount(tree.parent[1:], tree.shares[1:], len(tree.parent))
    share = np.ones(len(tree.parent))
    for k in range(1, len(share)):
        share[k] = share[tree.parent[k]] * tree.shares[k] / max(siblings[tree.parent[k]], 1)
    return np.maximum(share[association], 1e-9)


def _shares_of_partitions(record: Record) -> tuple[Array, Array]:
    """Return each job's largest share of a resource of its partition's pools, and which pairs of partitions share pools.

    The second array is bool, with a row and a column for each partition.
    """
    machine, jobs = record.machine, record.workload
    own = np.array([[pool.name in one.pools for pool in machine.pools] for one in machine.partitions])
    sizes = np.array([[pool.nodes * amount for amount in (pool.procs, pool.second, pool.memory)] for pool in machine.pools], float)
    none = np.zeros(len(jobs))
    amounts = np.stack([jobs.procs, *(np.maximum(jobs.columns.get(name, none), 0) for name in (machine.second, "mem_mb"))], axis=1)
    whole = (own @ sizes)[record.partition]
    shares = np.where(whole > 0, amounts / np.maximum(whole, 1), 0).max(axis=1)
    return np.minimum(shares, 1), (own.astype(int) @ own.T.astype(int)) > 0


def _mean_of_last(mine: Array, values: Array, count: int) -> Array:
    """Return the mean of the last `count` values that `mine` marks, by row; -1 for rows without marks."""
    from_the_end = np.cumsum(mine[:, ::-1], axis=1)[:, ::-1]
    counted = mine & (from_the_end <= count)
    return np.where(counted.any(axis=1), counted @ values / np.maximum(counted.sum(axis=1), 1), -1.0)
