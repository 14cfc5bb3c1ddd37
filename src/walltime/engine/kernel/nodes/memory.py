"""The data of the loop for Slurm's scheduling (loop.py): a machine's nodes, what is free of them over time, the plan, and who has used how much.

Everything is a record array with named fields, as in kernel/memory.py; sets of nodes and numbers by node are bits, as bits.py says.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from walltime.engine.inputs import Nodes, Shares
from walltime.engine.kernel.memory import ITEM, NEVER, _dtype, record, records
from walltime.engine.kernel.nodes.bits import WORD
from walltime.engine.kernel.pools.memory import CHANGE, Lists, as_lists

Array = np.ndarray
Records = Any

SLURM_JOB = _dtype(
    "submit runtime believed procs second nodes whole each partition tier time_min user association start kind reserved_start arrival "
    "pending follows think limit first count priority merit",
    {"merit": np.float64},
)
"""A job; the fields of memory.JOB and of `Wants`, and `pending`, how many jobs must end before it can wait, the one that it follows
included; `limit`, that under which it runs; `first`, `count`: its nodes in `Use.ranges`. `submit` becomes the time from which it waits,
`runtime` that for which it runs."""

SLURM_RULES = _dtype(
    "depth partition_depth interval defer backfill cycle window resolution most_tested most_of_user most_of_partition "
    "most_of_user_in_partition most_started least_age least_priority most_reserved soft half kill starts_only multifactor fair_tree period "
    "weight_age weight_share longest_age decay",
    dict.fromkeys(("weight_age", "weight_share", "longest_age", "decay"), np.float64),
)
"""The parameters of policy/slurm.py, in s. `soft`: whether time_min is a soft limit; `half`: whether running jobs too are planned by it;
`starts_only`: whether nobody asks for `reserved_start`; `decay`: what use counts after a `period`."""

SLURM_STATE = _dtype(
    "now arrivals arriving started running overdue events waiting next_change news news_for_all next_sum came gone between at_first begun "
    "no_room ranges most_ranges spare_rows procs_planes size closed users_counted tested planned blocks spare_sets ahead bounds slack steps in_line "
    "gain gain_of_whole changed_until chosen"
)
"""`arrivals`, `started`: jobs so far. `arriving`, `running`, `events`, `waiting`, `ranges`, `spare_rows`, `planned`, `blocks`,
`spare_sets`, `bounds`, `steps`, `chosen`: entries in use. `overdue`: how many running jobs are planned to end later than they were at first.

`news`, `news_for_all`: whether something has happened since the last backfill cycle, the last full pass; `next_sum`: when use is summed
up next; `came`, `gone`: whether a job came, or ended, at this event; `between`: whether the passes of this event are still to be made.
`at_first`, `begun`, `no_room`: jobs that run at the beginning, whether they have been placed, and the number of one that has no room.

`procs_planes`: of the planes of what is free, so many are processors and the others the second resource;
`most_ranges`: that the jobs that run at the same time can have; `size`: the processors of each
node if all have the same, else 0; `closed`: whether the main scheduler has closed nodes; `users_counted`: the number of the cycle;
`tested`: jobs that it has tried.

The plan (plan.py): `ahead`, blocks of the jobs before the one that is considered; `slack`: what the last search has found out, as in
PROSPECT; `in_line`: how many blocks the time line has; `gain`, `gain_of_whole`, `changed_until`: what has become of the machine since the
last cycle."""

PARTITION = _dtype("kind size first_stretch last_stretch closed tried tested reserved")
"""A partition: the `kind` of its set of nodes, the processors of each of them if all have the same, else 0, and where its stretches are;
whether it is closed, and the jobs tried, in this pass of the
main scheduler; jobs tried and reservations made in this cycle of backfill."""

STRETCH = _dtype("place node end")
"""Nodes [node, end) that are consecutive in a partition, of which the first is at this place of the partition's list."""

RANGE = np.dtype([("node", np.int32), ("count", np.int32), ("procs", np.int32), ("second", np.int32)])
"""Consecutive nodes, and what a job has of each of them."""

RUNNING = _dtype("release expected job row")
"""A running job: when the plan has its nodes back, which is later than it was `expected` to end if that has passed; `row`: of `Use.free`."""

OUT = _dtype("begin end phase")
"""An outage; `phase`: 0 unknown, 1 known or begun; its nodes are the row of `Site.out_sets`."""

PROSPECT = _dtype("considered begin slack gained whole unsettled promised")
"""What a job that waits was found to have ahead of it, the last time that it was tried.

`considered`: 0 if it was passed over, and the rest says nothing. `begin`: it could start no earlier, whatever the jobs behind it do; if it
is `promised` nodes, they are kept for it from then. `slack`: as long as fewer processors than that have become free for it (`gained`, which
counts whole nodes if it needs such, `whole`), it still could not start earlier. `unsettled`: before this time something has changed
since, so that a reservation that begins earlier must be looked at again."""

BLOCK = _dtype("begin keeps_from end first_word last_word row")
"""Nodes that are kept free in [keeps_from, end) for a job that is to start at `begin`: row of `Plan.sets`, and the words in which any are."""

BOUND = _dtype("kind procs nodes second each whole length time blocks slack gained")
"""What a job has asked for, and a time before which it cannot have it, after so many blocks of jobs before it; `slack` and `gained` as in
PROSPECT. A job behind that asks for more cannot have it sooner, since blocks only take."""
BOUNDS = 64

RUN = _dtype("place end nodes procs second")
"""Consecutive usable nodes of a partition, by their places in it, and what they have together."""

COUNTED = np.dtype([("stamp", np.int64), ("count", np.int64)])

LEAF = _dtype("parent leaf shares used rank new", {"used": np.float64, "rank": np.float64})
"""An account or user: processor-seconds `used`, decayed, and `new` since the last sum; `rank`: the fair-share factor."""


class Site(NamedTuple):
    """The machine.

    `capacity`: planes of the processors and of the second resource of each node. `members`: the set of nodes of each partition, shape
    (partitions, words); `kinds`: those of them that differ; `nodes_of`: the nodes of each partition in order, and `stretches` the same in
    pieces. `outages`, their `out_sets`, and the `changes` of their phases. `closed`: the set of nodes that the main scheduler has closed.
    """

    partitions: Records
    capacity: Array
    members: Array
    kinds: Array
    nodes_of: Lists
    stretches: Records
    outages: Records
    out_sets: Array
    changes: Records
    closed: Array


class Use(NamedTuple):
    """Who has which nodes, and what is free of them over time if nobody starts.

    `running`: in order of release. `free`: planes as `Site.capacity`, shape (rows, planes, words): row 0 now, the row of a running job from
    its release on. `totals`: what is free then, shape (rows, columns): processors by kind of partition, then units of the second resource by
    kind, if there are any. `gives`: what the job of a row gives back, by the same columns; `spare`: rows not in use. `ranges`: what each
    job has had.
    """

    running: Records
    free: Array
    totals: Array
    gives: Array
    spare: Array
    ranges: Records


class Plan(NamedTuple):
    """The plan of backfill (plan.py), and what passes work with.

    `prospects`: of the first jobs of the queue, in its order; `blocks`: in that order, too; `sets`: sets of nodes, of which those in
    `spare_sets` are not in use; `amounts`: what was free of the block of a set, by the columns of `Use.totals`. `bounds`: found by these jobs.

    `times`, `sums`: a time line of what is free at most, by those columns. `usable`: the set of nodes that a job can use; `chosen`: ranges of
    those that it gets; `runs`, `heap`: scratch.
    """

    prospects: Records
    blocks: Records
    sets: Array
    spare_sets: Array
    amounts: Array
    bounds: Records
    times: Array
    sums: Array
    usable: Array
    chosen: Records
    runs: Records
    heap: Records


class Tree(NamedTuple):
    """The tree of shares; `children`: of each, `order`: the same, the best served last; `stack`: scratch."""

    leaves: Records
    children: Lists
    order: Array
    stack: Array
    sums: Array


class Traffic(NamedTuple):
    """Jobs on their way: those that run `at_first`, heaps of `arrivals` and of `ends`, the `queue`; who follows whom, what limits them, and
    what counts for their priorities."""

    at_first: Array
    arrivals: Records
    ends: Records
    queue: Array
    followers: Lists
    limits: Records
    limits_of: Lists
    tree: Tree
    of_user: Records
    of_user_in_partition: Records


class SlurmMemory(NamedTuple):
    """All data of one simulation."""

    state: Records
    rules: Records
    jobs: Records
    site: Site
    use: Use
    plan: Plan
    traffic: Traffic


def new_slurm_memory(
    rules: Records, jobs: Records, machine: Nodes, limits: Records, limits_of: Lists, followers: Lists, shares: Shares, users: int
) -> SlurmMemory:
    """Memory before the first event."""
    count, parts = len(jobs), len(machine.partitions)
    site = _new_site(machine)
    tested = min(count, int(rules.most_tested)) if rules.backfill else 0
    columns = len(site.kinds) * (1 + bool(machine.second.any()))
    planes, words = site.capacity.shape
    procs_planes = _bits(machine.procs)
    alike = len(np.unique(machine.procs)) == 1
    use = Use(
        running=records(RUNNING, 0),
        free=np.zeros((1, planes, words), np.int64),
        totals=np.zeros((1, columns), np.int64),
        gives=np.zeros((1, columns), np.int64),
        spare=np.zeros(0, np.int64),
        ranges=np.empty(0, RANGE).view(np.recarray),
    )
    use.free[0] = site.capacity
    for k, members in enumerate(site.kinds):
        own = _members_of(members, len(machine.procs))
        use.totals[0, k] = machine.procs[own].sum()
        if columns > len(site.kinds):
            use.totals[0, len(site.kinds) + k] = machine.second[own].sum()
    steps = count + 2 * tested + 8
    plan = Plan(
        prospects=records(PROSPECT, tested_places(count, tested, len(limits))),
        blocks=records(BLOCK, tested + 1),
        sets=np.empty((tested + 1, words), np.int64),
        spare_sets=np.arange(tested, -1, -1),
        amounts=np.zeros((tested + 1, columns), np.int64),
        bounds=records(BOUND, BOUNDS),
        times=np.zeros(steps, np.int64),
        sums=np.zeros((steps, columns), np.int64),
        usable=np.zeros(words, np.int64),
        chosen=np.zeros(len(machine.procs), RANGE).view(np.recarray),
        runs=records(RUN, len(machine.procs)),
        heap=records(ITEM, len(machine.procs)),
    )
    plan.times[:1], plan.sums[:1] = np.iinfo(np.int64).min, use.totals[0]
    traffic = Traffic(
        at_first=np.zeros(count, np.int64),
        arrivals=records(ITEM, count),
        ends=records(ITEM, count),
        queue=np.zeros(count, np.int64),
        followers=followers,
        limits=limits,
        limits_of=limits_of,
        tree=_new_tree(shares),
        of_user=np.zeros(users, COUNTED).view(np.recarray),
        of_user_in_partition=np.zeros(users * parts, COUNTED).view(np.recarray),
    )
    size = int(machine.procs[0]) if alike else 0
    most_ranges = min(int(machine.procs.sum() + machine.second.sum()), int((jobs.procs + jobs.second).sum()))
    state = record(SLURM_STATE, most_ranges=most_ranges, next_sum=rules.period, procs_planes=procs_planes, size=size, steps=1, spare_sets=tested + 1)
    return SlurmMemory(state, rules, jobs, site, use, plan, traffic)


def tested_places(count: int, tested: int, limits: int) -> int:
    """Places of the queue that a cycle looks at: jobs over a limit are passed over, and do not count as tested."""
    return count if limits and tested else tested


def with_room(memory: SlurmMemory, rows: int, ranges: int) -> SlurmMemory:
    """The same memory with room for at least so many more running jobs, and so many more ranges."""
    state, use = memory.state, memory.use
    if state.spare_rows < rows:
        before, after = len(use.running), len(use.running) + max(len(use.running), rows)
        running, spare = records(RUNNING, after), np.zeros(after, np.int64)
        running[:before] = use.running
        new = np.arange(after, before, -1)  # the lowest rows are used first
        spare[: len(new)], spare[len(new) : len(new) + state.spare_rows] = new, use.spare[: state.spare_rows]
        tables = [np.empty((after + 1, *table.shape[1:]), np.int64) for table in (use.free, use.totals, use.gives)]
        for table, old in zip(tables, (use.free, use.totals, use.gives), strict=True):
            table[: before + 1] = old
        state.spare_rows += len(new)
        use = use._replace(running=running, spare=spare, free=tables[0], totals=tables[1], gives=tables[2])
    if len(use.ranges) - state.ranges < ranges:
        more = np.empty(len(use.ranges) + max(len(use.ranges), ranges), RANGE).view(np.recarray)
        more[: state.ranges] = use.ranges[: state.ranges]
        use = use._replace(ranges=more)
    return memory._replace(use=use)


def _new_site(machine: Nodes) -> Site:
    """The machine, with all nodes as they are and no outage begun."""
    size, parts = len(machine.procs), len(machine.partitions)
    words = -(-size // WORD)
    members = np.zeros((parts, words), np.int64)
    stretches: list[tuple[int, int, int]] = []
    partitions = records(PARTITION, parts)
    for p, own in enumerate(machine.partitions):
        nodes = np.asarray(own, np.int64)
        members[p] = _as_set(nodes, words)
        sizes = np.unique(machine.procs[nodes])
        partitions[p].size = sizes[0] if len(sizes) == 1 else 0
        edges = np.concatenate([[0], np.flatnonzero(np.diff(nodes) != 1) + 1, [len(nodes)]])
        partitions[p].first_stretch = len(stretches)
        stretches += [(int(a), int(nodes[a]), int(nodes[a] + b - a)) for a, b in zip(edges[:-1], edges[1:], strict=True) if a < b]
        partitions[p].last_stretch = len(stretches)
    kinds, kind = np.unique(members, axis=0, return_inverse=True) if parts else (np.zeros((0, words), np.int64), [])
    partitions.kind = np.reshape(kind, -1)
    outages, changes = records(OUT, len(machine.outages)), []
    out_sets = np.zeros((len(machine.outages), words), np.int64)
    for k, (away, begin, end, known) in enumerate(machine.outages):
        outages[k].begin, outages[k].end = begin, end
        out_sets[k] = _as_set(np.array(away, np.int64), words)
        changes += [(time, k, phase) for time, phase in ((min(known, begin), 1), (begin, 1), (end, 0)) if time < NEVER]
    change = records(CHANGE, len(changes))
    for k, (time, out, phase) in enumerate(sorted(changes)):
        change[k].time, change[k].outage, change[k].phase = time, out, phase
    table = records(STRETCH, len(stretches))
    for k, (place, node, end) in enumerate(stretches):
        table[k].place, table[k].node, table[k].end = place, node, end
    return Site(
        partitions=partitions,
        capacity=np.concatenate([_planes(machine.procs, words), _planes(machine.second, words)]),
        members=members,
        kinds=np.ascontiguousarray(kinds),
        nodes_of=as_lists([list(own) for own in machine.partitions]),
        stretches=table,
        outages=outages,
        out_sets=out_sets,
        changes=change,
        closed=np.zeros(words, np.int64),
    )


def _as_set(nodes: Array, words: int) -> Array:
    """The set of these nodes, int64 words."""
    bits = np.zeros(words * WORD, np.uint8)
    bits[nodes] = 1
    return np.packbits(bits, bitorder="little").view(np.int64)


def _members_of(members: Array, size: int) -> Array:
    """Whether each node is in a set."""
    return np.unpackbits(members.view(np.uint8), bitorder="little")[:size].astype(bool)


def _bits(numbers: Array) -> int:
    """How many bits the largest of these numbers has."""
    return int(max(numbers, default=0)).bit_length()


def _planes(numbers: Array, words: int) -> Array:
    """Numbers by node as planes, int64, shape (bits of the largest, words)."""
    planes = [_as_set(np.flatnonzero((numbers >> k) & 1), words) for k in range(_bits(numbers))]
    return np.array(planes, np.int64).reshape(len(planes), words)


def _new_tree(shares: Shares) -> Tree:
    """The tree before anything has been used."""
    tree = records(LEAF, len(shares.parent))
    tree.parent, tree.shares, tree.leaf = shares.parent, shares.shares, shares.leaf
    children: list[list[int]] = [[] for _ in tree]
    for k in range(1, len(tree)):
        children[shares.parent[k]].append(k)
    below = as_lists(children)
    return Tree(tree, below, below.items.copy(), np.zeros((len(tree) + 1, 2), np.int64), np.zeros(len(tree)))
