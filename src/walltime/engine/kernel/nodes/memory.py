"""Prepare the data of the loop for Slurm's scheduling (records.py)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from walltime.engine.kernel.bits import WORD
from walltime.engine.kernel.memory import ITEM, NEVER, record, records
from walltime.engine.kernel.nodes.records import (
    BLOCK,
    BOUND,
    BOUNDS,
    CAPACITY,
    COUNTED,
    EARLIEST_START,
    LEAF,
    LOST,
    MEMBERS,
    OUT,
    PARTITION,
    POOL,
    PREEMPTION_CLASS,
    RANGE,
    RELEASED,
    RUN,
    RUNNING,
    SECOND,
    SLURM_STATE,
    STRETCH,
    Array,
    BackfillPlan,
    Choice,
    NodeMachine,
    Records,
    SlurmMemory,
    Timeline,
    Traffic,
    Tree,
    Use,
    Victims,
)
from walltime.engine.kernel.pools.memory import CHANGE, Lists, as_lists
from walltime.engine.machines import Nodes, Preemption, Shares
from walltime.engine.problem import Ragged


def new_slurm_memory(
    rules: Records, jobs: Records, machine: Nodes, limits: Records, limits_of: Lists, followers: Lists, shares: Shares, users: int
) -> SlurmMemory:
    """Return memory before the first event."""
    count, parts = len(jobs), len(machine.partitions)
    tested = min(count, int(rules.most_tested)) if rules.backfill else 0
    site, changes, kinds = _new_site(machine, tested)
    words, amounts = site.sets.shape[1], [machine.procs, *(each for each in (machine.second, machine.memory) if each.any())]
    amounts += [machine.procs > 0] * bool(machine.procs.max(initial=0) > 1)
    columns = len(kinds) * len(amounts)
    state = record(SLURM_STATE, until=NEVER, next_sum=rules.period, steps=1, timeline_blocks=-1, spare_sets=tested + 1, kinds=len(kinds))
    rows = machine.rows_of_second
    state.procs_planes, state.second_bits = _bits(machine.procs), _bits(rows.ravel())
    state.second_end = state.procs_planes + len(rows) * state.second_bits
    state.planes = state.second_end + _bits(machine.memory)
    state.of_memory = len(kinds) * (1 + bool(machine.second.any())) if machine.memory.any() else 0
    state.most_of_node = machine.procs.max(initial=1)
    state.of_nodes = columns - len(kinds) if state.procs_planes > 1 else 0
    state.most_ranges = min(int(machine.procs.sum() + machine.second.sum()), int((jobs.asked + jobs.nodes + jobs.second).sum()))
    use = Use(
        running=records(RUNNING, 0),
        free=np.zeros((1, int(state.planes), words), np.int64),
        totals=np.zeros((1, columns), np.int64),
        gives=np.zeros((1, columns + RELEASED), np.int64),
        spare=np.zeros(0, np.int64),
        ranges=np.empty(0, RANGE).view(np.recarray),
        lost=records(LOST, 0),
        victims=Victims(records(ITEM, count if rules.preempts else 0), np.zeros(count if rules.preempts else 0, np.int64)),
    )
    use.free[0] = site.sets[CAPACITY : CAPACITY + int(state.planes)]
    for k, own in enumerate(kinds):
        use.totals[0, k :: len(kinds)] = [each[own].sum() for each in amounts]
    steps = count + 2 * tested + 8
    timeline = Timeline(np.zeros(steps, np.int64), np.zeros((columns, steps), np.int64))
    timeline.times[:1], timeline.sums[:, 0] = np.iinfo(np.int64).min, use.totals[0]
    nodes = len(machine.procs)
    plan = BackfillPlan(
        earliest_starts=records(
            EARLIEST_START, count if len(limits) and tested else tested
        ),  # passing over a job over a limit does not count as a test
        blocks=records(BLOCK, tested + 1),
        spare_sets=np.arange(len(site.sets) - tested - 1, len(site.sets)),
        amounts=np.zeros((len(site.sets), columns), np.int64),
        bounds=records(BOUND, BOUNDS),
        timeline=timeline,
        choice=Choice(records(RANGE, nodes), records(RUN, nodes), records(ITEM, nodes)),
    )
    traffic = Traffic(
        at_first=np.zeros(count, np.int64),
        arrivals=records(ITEM, count),
        ends=records(ITEM, count),
        queue=np.zeros(count, np.int64),
        needs=np.zeros(count, np.int64),
        followers=followers,
        limits=limits,
        limits_of=limits_of,
        tree=_new_tree(shares),
        counted=records(COUNTED, (users + 1) * (parts + 1)).reshape(users + 1, parts + 1),
        changes=changes,
    )
    return SlurmMemory(state, rules, jobs, site, use, plan, traffic)


def with_room(memory: SlurmMemory, rows: int, ranges: int) -> SlurmMemory:
    """Return the memory with room for at least this many more running jobs, and for this many more ranges."""
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
    if memory.rules.preempts and len(use.lost) - state.lost < rows + state.running:
        runs = records(LOST, 2 * len(use.lost) + rows + int(state.running))
        runs[: state.lost] = use.lost[: state.lost]
        use = use._replace(lost=runs)
    return memory._replace(use=use)


def _new_site(machine: Nodes, tested: int) -> tuple[NodeMachine, Records, list[Array]]:
    """Return the machine before any outage, the changes of outages, and the nodes of the partitions of each kind."""
    words = -(-len(machine.procs) // WORD)
    stretches: list[tuple[Any, ...]] = []
    partitions, levels = records(PARTITION, len(machine.partitions)), np.union1d(machine.weight, machine.weight + 1)
    weight, heavier = (np.searchsorted(levels, machine.weight + more) for more in (0, 1))
    partitions.least_loaded = machine.least_loaded
    partitions.reservation = machine.reservations or 0
    kinds: list[Array] = []
    of_kind: list[int] = []  # the user reservation of each kind
    for part, own in zip(partitions, machine.partitions, strict=True):
        nodes = np.sort(np.asarray(own, np.int64))
        same = [k for k, other in enumerate(kinds) if part.reservation == of_kind[k] and np.array_equal(other, nodes)]
        part.kind = same[0] if same else len(kinds)
        if not same:
            kinds.append(nodes)
            of_kind.append(part.reservation)
    members = records(MEMBERS, len(machine.members))
    members.every[: len(partitions)] = 1
    for one, mine, partition in zip(members, machine.members, machine.partition_of_members, strict=True):
        own = np.asarray(machine.partitions[partition], np.int64)
        places = np.flatnonzero(np.isin(own, mine))
        nodes = own[places]
        is_edge = (np.diff(nodes) != 1) | (np.diff(places) != 1) | (np.diff(weight[nodes]) != 0)
        edges = np.concatenate([[0], np.flatnonzero(is_edge) + 1, [len(nodes)]]).tolist()
        one.first_stretch = len(stretches)
        stretches += [
            (places[a], nodes[a], nodes[a] + b - a, weight[nodes[a]], heavier[nodes[a]]) for a, b in itertools.pairwise(edges) if a < b
        ]
        one.last_stretch = len(stretches)
        sizes = np.unique(machine.procs[nodes])
        one.node_procs = sizes[0] if len(sizes) == 1 else 0
    rows = machine.rows_of_second
    sets = [np.zeros((CAPACITY, words), np.int64), _planes(machine.procs, words)]
    sets[0][SECOND] = as_set(np.flatnonzero(machine.second), words)
    sets += [*(_planes(row, words, _bits(rows.ravel())) for row in rows), _planes(machine.memory, words)]
    planes = sum(map(len, sets[1:]))
    first = CAPACITY + planes
    members.row = first + len(kinds) + np.arange(len(members))
    row = first + len(kinds) + len(members)
    losses = machine.losses or [0] * len(machine.outages)
    taken = zip(machine.outages, losses, strict=True)
    outages, changes = records(OUT, [(one[1], one[2], 0, row + k, one[4], loss) for k, (one, loss) in enumerate(taken)]), []
    for k, (_, begin, end, known, _) in enumerate(machine.outages):
        changes += [(time, k, phase) for time, phase in ((min(known, begin), 1), (begin, 1), (end, 0)) if time < NEVER]
    sets += [
        as_set(np.array(nodes, np.int64), words)[None] for nodes in (*kinds, *machine.members, *(away for away, *_ in machine.outages))
    ]
    every = np.concatenate([*sets, np.zeros((tested + 1, words), np.int64)])
    shaped = np.zeros((2 * planes + len(sets[1]), words), np.int64)
    edges = [0, *(np.flatnonzero(np.diff(machine.pool)) + 1).tolist(), len(machine.pool)]
    pools = records(POOL, list(itertools.pairwise(edges)))
    site = NodeMachine(partitions, members, records(STRETCH, stretches), pools, outages, every, shaped, *_preemption(machine.preemption))
    return site, records(CHANGE, sorted(changes)), kinds


def _preemption(preemption: Preemption | None) -> tuple[Records, Array]:
    """Return the classes of preemption, and a matrix of those that may preempt each other."""
    if preemption is None:
        return records(PREEMPTION_CLASS, 0), np.zeros((0, 0), np.int64)
    may, *columns = preemption
    classes = records(PREEMPTION_CLASS, len(may))
    classes.preempts, classes.preempted = may.any(axis=1), may.any(axis=0)
    classes.rank, classes.requeue, classes.grace, classes.exempt = columns
    return classes, may


def as_set(nodes: Array, words: int) -> Array:
    """Return the set of these nodes, int64 words."""
    bits = np.zeros(words * WORD, np.uint8)
    bits[nodes] = 1
    return np.packbits(bits, bitorder="little").view(np.int64)


def _bits(numbers: Array) -> int:
    return int(max(numbers, default=0)).bit_length()


def _planes(numbers: Array, words: int, bits: int | None = None) -> Array:
    """Return numbers by node as planes, int64, shape (bits, words); by default as many bits as the largest number has."""
    planes = [as_set(np.flatnonzero((numbers >> k) & 1), words) for k in range(_bits(numbers) if bits is None else bits)]
    return np.array(planes, np.int64).reshape(len(planes), words)


def _new_tree(shares: Shares) -> Tree:
    tree = records(LEAF, len(shares.parent))
    tree.parent, tree.shares, tree.leaf = shares.parent, shares.shares, shares.leaf
    below = as_lists(Ragged.of_pairs(len(tree), shares.parent[1:], np.arange(1, len(tree))))
    return Tree(tree, below, below.items.copy(), np.zeros((len(tree) + 1, 2), np.int64), np.zeros(len(tree)))
