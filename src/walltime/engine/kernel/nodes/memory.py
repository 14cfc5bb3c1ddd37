"""The data of the loop for Slurm's scheduling (loop.py): nodes one by one, what is planned on them, and who has used how much.

Everything is a record array with named fields, as in kernel/memory.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.engine.inputs import Nodes, Shares
from walltime.engine.kernel.memory import ITEM, NEVER, RUN, _dtype, record, records
from walltime.engine.kernel.pools.memory import CHANGE, Lists, as_lists

Array = np.ndarray
Records = Any

SLURM_JOB = _dtype(
    "submit runtime believed procs second nodes whole each partition tier time_min user association start kind reserved_start arrival "
    "pending follows think limit first count priority merit",
    {"merit": np.float64},
)
"""A job; the fields of memory.JOB and of `Wants`, and `pending`, how many jobs must end before it can wait,
the one that it follows included; `limit`, that under which it
runs; `first`, `count`: its nodes in `Slots`. `submit` becomes the time from which it waits, `runtime` that for which it runs."""

SLURM_RULES = _dtype(
    "depth partition_depth interval defer backfill cycle window resolution most_tested most_of_user most_of_partition "
    "most_of_user_in_partition most_started least_age least_priority most_reserved soft half kill starts_only multifactor fair_tree period "
    "weight_age weight_share longest_age decay",
    dict.fromkeys(("weight_age", "weight_share", "longest_age", "decay"), np.float64),
)
"""The parameters of policy/slurm.py, in s. `soft`: whether time_min is a soft limit; `half`: whether running jobs too are planned by it;
`starts_only`: whether nobody asks for `reserved_start`; `decay`: what use counts after a `period`."""

SLURM_STATE = _dtype(
    "now arrivals arriving started running events waiting next_change news news_for_all next_sum slots blocks planned releases "
    "chosen stamp at_first begun no_room users_counted holds tested seen_to bounds free free_procs steps"
)
"""`news`, `news_for_all`: whether something has happened since the last backfill cycle, the last full pass; `next_sum`: when use is summed
up next; `slots`, `blocks`, `planned`, `releases`, `chosen`, `free`, `steps`: entries in use; `stamp`: the number of the cycle; `at_first`,
`begun`, `no_room`: jobs that run at the beginning, whether they have been placed, and the number of one that has no room. `holds`: whether
the plan of the last cycle still holds for the jobs that it tried: `tested` of the first `seen_to` of the queue; `bounds`: how many of
`Plan.bounds` are in use; `free_procs`: processors of the machine that are free now."""

PARTITION = _dtype("closed tried tested reserved")
"""A partition: whether it is closed, and the jobs tried, in this pass of the main scheduler; jobs tried and reservations made in this
cycle of backfill."""

SLOT = np.dtype([("node", np.int32), ("procs", np.int32), ("second", np.int32)])
"""What a job has of a node."""

BLOCK = _dtype("begin end first count")
"""Nodes that are kept free in [begin, end): for a waiting job, or in an outage; their numbers are in `Plan.nodes`."""

OUT = _dtype("begin end phase first count")
"""An outage; `phase`: 0 unknown, 1 known or begun; its nodes are in `SlurmMemory.out_nodes`."""

RELEASE = _dtype("time job")
STRETCH = _dtype("first last nodes procs second")
"""Consecutive usable nodes of a partition, by their places in it, and what they have together."""

BOUND = _dtype("partition procs nodes second each whole length time")
"""What a job of this cycle has asked for, and the earliest time at which it could have it; a job that asks for more cannot have it
sooner, since within a cycle nothing becomes free."""
BOUNDS = 64

STEP = _dtype("time sum")
"""How many more processors than now are free on the whole machine from a time on; of steps at the same time the last one says."""

COUNTED = np.dtype([("stamp", np.int64), ("count", np.int64)])

LEAF = _dtype("parent leaf shares used rank new", {"used": np.float64, "rank": np.float64})
"""An account or user: processor-seconds `used`, decayed, and `new` since the last sum; `rank`: the fair-share factor."""


class NodeStates(NamedTuple):
    """Nodes: what each has, what is free, and whether a blocked job has closed it."""

    procs: Array
    second: Array
    free_procs: Array
    free_second: Array
    closed: Array


class Seen(NamedTuple):
    """Nodes as a job sees them at some time: what is free then, and by how many blocks they are kept for others."""

    procs: Array
    second: Array
    blocked: Array


class Plan(NamedTuple):
    """What a pass works with: blocks and their order by begin and by end; when running jobs give their nodes back; scratch.

    `free`: the nodes of which something was free when the cycle began; `kept_from`: for each node, when its first block begins;
    `steps`: what running jobs give back and blocks keep, added up in order of time.
    """

    blocks: Records
    by_begin: Array
    by_end: Array
    nodes: Array
    releases: Records
    seen: Seen
    usable: Array
    chosen: Records
    runs: Records
    heap: Records
    mine: Array
    bounds: Records
    steps: Records
    free: Array
    kept_from: Array


class Tree(NamedTuple):
    """The tree of shares; `children`: of each, `order`: the same, the best served last; `stack`: scratch."""

    leaves: Records
    children: Lists
    order: Array
    stack: Array
    sums: Array


class SlurmMemory(NamedTuple):
    """All data of one simulation; `member`: whether a partition has a node, uint8, shape (partitions, nodes)."""

    state: Records
    rules: Records
    jobs: Records
    nodes: NodeStates
    partitions: Records
    nodes_of: Lists
    member: Array
    outs: Records
    out_nodes: Array
    changes: Records
    limits: Records
    limits_of: Lists
    followers: Lists
    first: Array
    arrivals: Records
    events: Records
    running: Records
    queue: Array
    slots: Records
    plan: Plan
    tree: Tree
    of_user: Records
    of_user_in_partition: Records


def new_slurm_memory(
    rules: Records, jobs: Records, machine: Nodes, limits: Records, limits_of: Lists, followers: Lists, shares: Shares, users: int
) -> SlurmMemory:
    """Memory before the first event."""
    count, size, parts = len(jobs), len(machine.procs), len(machine.partitions)
    procs, second = (np.array(own, np.int64) for own in (machine.procs, machine.second))
    member = np.zeros((parts, size), np.uint8)
    for p, own in enumerate(machine.partitions):
        member[p, own] = 1
    outs, changes = records(OUT, len(machine.outages)), []
    out_nodes: list[int] = []
    for k, (away, begin, end, known) in enumerate(machine.outages):
        outs[k].begin, outs[k].end, outs[k].first, outs[k].count = begin, end, len(out_nodes), len(away)
        out_nodes += list(away)
        changes += [(time, k, phase) for time, phase in ((min(known, begin), 1), (begin, 1), (end, 0)) if time < NEVER]
    changes.sort()
    change = records(CHANGE, len(changes))
    for k, (time, out, phase) in enumerate(changes):
        change[k].time, change[k].outage, change[k].phase = time, out, phase
    widest = np.array([len(own) for own in machine.partitions] or [0])[jobs["partition"]] if count else np.zeros(0, np.int64)
    tested = min(count, int(rules.most_tested)) if rules.backfill else 0
    planned = tested * size + len(out_nodes)
    blocks = tested + len(outs)
    tree = records(LEAF, len(shares.parent))
    tree.parent, tree.shares, tree.leaf = shares.parent, shares.shares, shares.leaf
    children: list[list[int]] = [[] for _ in tree]
    for k in range(1, len(tree)):
        children[shares.parent[k]].append(k)
    below = as_lists(children)
    return SlurmMemory(
        state=record(SLURM_STATE, next_sum=rules.period),
        rules=rules,
        jobs=jobs,
        nodes=NodeStates(procs, second, procs.copy(), second.copy(), np.zeros(size, np.int64)),
        partitions=records(PARTITION, parts),
        nodes_of=as_lists([list(own) for own in machine.partitions]),
        member=member,
        outs=outs,
        out_nodes=np.array(out_nodes, np.int32),
        changes=change,
        limits=limits,
        limits_of=limits_of,
        followers=followers,
        first=np.zeros(count, np.int64),
        arrivals=records(ITEM, count),
        events=records(ITEM, count),
        running=records(RUN, count),
        queue=np.zeros(count, np.int64),
        slots=np.empty(int(np.minimum(jobs.procs + jobs.second, widest).sum()), SLOT).view(np.recarray),
        plan=Plan(
            blocks=records(BLOCK, blocks),
            by_begin=np.zeros(blocks, np.int64),
            by_end=np.zeros(blocks, np.int64),
            nodes=np.empty(planned, np.int32),
            releases=records(RELEASE, count),
            seen=Seen(*(np.zeros(size, np.int64) for _ in Seen._fields)),
            usable=np.zeros(size, np.uint8),
            chosen=np.zeros(size, SLOT).view(np.recarray),
            runs=records(STRETCH, size),
            heap=records(ITEM, size),
            mine=np.zeros(size, np.int64),
            bounds=records(BOUND, BOUNDS),
            steps=records(STEP, count + 2 * tested),
            free=np.zeros(size, np.int64),
            kept_from=np.zeros(size, np.int64),
        ),
        tree=Tree(tree, below, below.items.copy(), np.zeros((len(tree) + 1, 2), np.int64), np.zeros(len(tree))),
        of_user=np.zeros(users, COUNTED).view(np.recarray),
        of_user_in_partition=np.zeros(users * parts, COUNTED).view(np.recarray),
    )
