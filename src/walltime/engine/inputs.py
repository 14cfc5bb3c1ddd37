"""What either engine is given for Slurm's scheduling: the nodes, what jobs want of them, and the tree of shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Nodes(NamedTuple):
    """A machine of nodes.

    `pool`, `procs`, `second`: of each node, int64; `partitions`: the nodes of each partition, in the order in which they are taken;
    `tiers`: of each partition, the higher comes first; `outages`: the nodes, begin, end and the time from which it is known, s;
    `limits`: the most jobs, processors and second resource that run.
    """

    pool: Array
    procs: Array
    second: Array
    partitions: Sequence[Array]
    tiers: Sequence[int]
    outages: Sequence[tuple[Sequence[int], int, int, int]] = ()
    limits: Sequence[tuple[int, int, int]] = ()


class Wants(NamedTuple):
    """What jobs need besides processors, and what holds them back; one entry per job, in order of arrival.

    int64: `second`, units of the second resource; `nodes`, the fewest nodes; `whole`, 1 where it gets whole nodes, as many as `nodes`
    says; `each`, what of the second resource each of its nodes must have; `partition`, its number; `since`, the start of a job that runs
    at the beginning, NEVER for others; `time_min`, the least runtime (s) for which it may be started, 0 for none; `user`, a number from 0
    on; `association`, its leaf of the tree of shares. float64: `merit`, the part of its priority that does not change. `after`: the
    jobs that must have ended; `limits`: the limits that it counts towards; both by index. With feedback, a job is submitted `think` s
    after the end of the job `follows` (an index, -1 for none).
    """

    second: Array
    nodes: Array
    whole: Array
    each: Array
    partition: Array
    since: Array
    time_min: Array
    user: Array
    association: Array
    merit: Array
    after: Sequence[Sequence[int]]
    limits: Sequence[Sequence[int]]
    follows: Array
    think: Array


class Shares(NamedTuple):
    """The tree of accounts and users; a parent has a lower number than its children, and the root is number 0, its own parent.

    int64: `parent`, `shares`, and `leaf`: 1 for a user.
    """

    parent: Array
    shares: Array
    leaf: Array
