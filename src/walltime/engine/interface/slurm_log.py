"""The jobs and the memory of a simulation of Slurm's scheduling, for a `Branch`."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.engine.interface.branch import Layout, are_the_same, fill_from, take_state, without
from walltime.engine.interface.pools_log import NO_LISTS, NodesLog, have_the_same, part_of
from walltime.engine.kernel.memory import records
from walltime.engine.kernel.nodes.memory import RANGE, SLURM_JOB, SlurmMemory, new_slurm_memory, with_room
from walltime.engine.kernel.nodes.plan import NOT_MADE
from walltime.engine.problem import NodeRanges, Nodes, Problem

Array = np.ndarray
FEWEST_ROWS = 64
"""Running jobs for which there is room at first."""


FIXED = ("submit", "procs", "second", "nodes", "whole", "each", "partition", "tier", "time_min", "user", "association", "merit")
"""What of a job does not change."""


class SlurmLog(NodesLog):
    """`memory`: of all jobs, of which those that have not arrived are as they were given.

    `nodes`: with processors in units of so many, `unit`.
    """

    loop_name = "slurm"

    def __init__(self, problem: Problem, memory: SlurmMemory, nodes: Nodes, unit: int):
        super().__init__(problem)
        self.jobs, self.rules, self.nodes, self.unit = memory.jobs.copy(), memory.rules, nodes, unit
        traffic = memory.traffic
        self.limits, self.limits_of, self.followers, self.changes = traffic.limits, traffic.limits_of, traffic.followers, traffic.changes
        self.stretches, self.children, self.leaves = memory.site.stretches, traffic.tree.children, traffic.tree.leaves
        self.users, self.planes = len(traffic.of_user), int(memory.state.procs_planes)
        self.most_ranges = int(memory.state.most_ranges)  # of all jobs, also of those that another simulation did not know

    def continues(self, memory: Any, first: int) -> bool:
        """Whether the jobs that have arrived are the same here, in the same unit, under the same limits, and in the same tree of shares."""
        if not isinstance(memory, SlurmMemory) or not memory.state["begun"]:
            return False
        if memory.state["procs_planes"] != self.planes:  # another job has changed the unit in which processors are counted
            return False
        arrived, traffic, leaves = self.span(memory)[1], memory.traffic, self.leaves
        same = len(traffic.of_user) == self.users and have_the_same(self.limits_of, self.limits, traffic, first, arrived)
        same = same and are_the_same(leaves, traffic.tree.leaves, ("parent", "shares", "leaf"))
        return same and are_the_same(self.jobs[first : first + arrived], memory.jobs[:arrived], FIXED)

    @staticmethod
    def live(memory: SlurmMemory) -> tuple[int, tuple[Array, ...]]:
        """The next job that comes, and those that wait, run, and whose ends are still to come."""
        state, traffic = memory.state, memory.traffic
        coming = traffic.arrivals["job"][: int(state["arriving"])]
        running, ends = memory.use.running["job"][: int(state["running"])], traffic.ends["job"][: int(state["events"])]
        return int(coming.min(initial=len(memory.jobs))), (traffic.queue[: int(state["waiting"])], running, ends)

    def layout(self, memory: SlurmMemory, jobs: int) -> Layout:
        """Of a memory for so many jobs, with room for those that run and could start."""
        state = memory.state
        rows = 1 << (max(int(state["running"]) + 2 * int(state["waiting"]), FEWEST_ROWS) - 1).bit_length()
        ranges = 1 << (int(state["ranges"]) + 2 * self.most_ranges).bit_length()
        if (jobs, rows, ranges) not in self.layouts:
            none, shares = NO_LISTS, self.problem.shares
            assert shares is not None
            new = new_slurm_memory(self.rules, records(SLURM_JOB, jobs), self.nodes, self.limits.copy(), none, none, shares, self.users)
            new = with_room(new, rows, ranges)
            tree = new.traffic.tree
            traffic = without(new.traffic._replace(tree=without(tree, "children")), "followers", "limits_of", "changes", "at_first")
            new = new._replace(site=without(new.site, "stretches"), traffic=traffic)
            scratch = (*new.plan.choice, tree.stack, tree.sums)
            self.layouts[jobs, rows, ranges] = Layout(new, scratch, new.use.ranges)
        return self.layouts[jobs, rows, ranges]

    def completed(self, memory: SlurmMemory, first: int, jobs: int) -> SlurmMemory:
        """The memory for so many jobs from the first one on."""
        traffic = memory.traffic._replace(
            followers=part_of(self.followers, first, jobs),
            limits_of=part_of(self.limits_of, first, jobs),
            changes=self.changes,
            at_first=NO_LISTS.items,
            tree=memory.traffic.tree._replace(children=self.children),
        )
        return memory._replace(jobs=memory.jobs[:jobs], site=memory.site._replace(stretches=self.stretches), traffic=traffic)

    def take_over(self, memory: SlurmMemory, source: SlurmMemory, gone: int, arrived: int) -> None:
        """Take over what another memory knows; rows of tables and sets are numbered anew."""
        state, old, traffic, former = memory.state, source.state, memory.traffic, source.traffic
        own = {name: int(state[name]) for name in ("spare_sets", "spare_rows")}
        take_state(memory, source, gone, arrived)
        state["most_ranges"] = self.most_ranges
        fill_from(traffic.queue, former.queue[: int(old["waiting"])], gone)
        traffic.needs[: int(old["waiting"])] = former.needs[: int(old["waiting"])]
        fill_from(traffic.ends, former.ends[: int(old["events"])], gone, "job", "tie")  # ties are numbers of starts
        traffic.limits[:], traffic.of_user[:] = former.limits, former.of_user
        traffic.of_user_in_partition[:] = former.of_user_in_partition
        traffic.tree.leaves[:], traffic.tree.order[:] = former.tree.leaves, former.tree.order
        _take_plan(memory, source, own["spare_sets"])
        _take_use(memory, source, gone, own["spare_rows"])
        taken = ranges_of(source, gone, arrived)
        memory.use.ranges[: len(taken)] = taken
        counts = memory.jobs["count"][: arrived - gone]
        memory.jobs["first"][: arrived - gone] = np.cumsum(counts) - counts
        state["ranges"] = len(taken)

    def enter(self, memory: SlurmMemory, arrived: int, first: int, last: int) -> None:
        """Make the records of the jobs that are still to come."""
        memory.jobs[arrived:] = self.jobs[first:last]
        coming, heap = np.arange(arrived, arrived + last - first), memory.traffic.arrivals
        heap["rank"][: len(coming)] = self.submit[first:last]
        heap["tie"][: len(coming)] = heap["job"][: len(coming)] = coming
        memory.state["arriving"] = len(coming)

    def lacks_room(self, memory: SlurmMemory) -> bool:
        """Whether there may not be room for all that could start."""
        state, use = memory.state, memory.use
        return bool(state["spare_rows"] < state["waiting"] or len(use.ranges) - state["ranges"] < state["most_ranges"])

    def tail(self, memory: SlurmMemory) -> int:
        """Ranges of nodes that jobs have or have had."""
        return int(memory.state["ranges"])

    def more(self, parts: list[Any], memory: SlurmMemory) -> dict[str, Any]:
        """What the jobs had of nodes, and their limits."""
        own = ranges_of(memory, 0, len(memory.jobs))
        counts = np.concatenate([*(jobs["count"] for jobs, _ in parts), memory.jobs["count"]])
        slots = slots_of(counts, np.concatenate([*(ranges for _, ranges in parts), own]), self.unit)
        limit = np.concatenate([*(jobs["limit"] for jobs, _ in parts), memory.jobs["limit"]])
        nodes: Any = self.problem.machine
        return {"slots": slots, "given": nodes.given(slots, len(counts)), "limit": limit}

    @staticmethod
    def ended(memory: SlurmMemory, gone: int) -> tuple[Any, Array]:
        """The records of the first jobs, and the ranges of nodes that they had."""
        return memory.jobs[:gone].copy(), ranges_of(memory, 0, gone)

    @staticmethod
    def waiting(memory: SlurmMemory) -> Array:
        """The waiting jobs in order of arrival."""
        waiting = memory.traffic.queue[: int(memory.state["waiting"])]
        return np.asarray(waiting[np.argsort(memory.jobs["arrival"][waiting])])

    @staticmethod
    def running(memory: SlurmMemory) -> tuple[Array, Array]:
        """The running jobs and when they were planned to end as they started."""
        running = memory.use.running[: int(memory.state["running"])]
        return running["job"], running["expected"]

    @staticmethod
    def is_between(memory: SlurmMemory) -> bool:
        """Whether the passes of an event are still to be made, for want of room."""
        return bool(memory.state["between"])


def _take_plan(memory: SlurmMemory, source: SlurmMemory, spare: int) -> None:
    """The plan, with sets of nodes in the first rows for blocks, of which so many are `spare` in all; and the machine."""
    state, old, plan, former = memory.state, source.state, memory.plan, source.plan
    blocks, prospects = int(old["blocks"]), min(len(plan.prospects), len(former.prospects))
    first, before = len(memory.site.sets) - spare, len(source.site.sets) - len(former.spare_sets)
    memory.site.sets[:first] = source.site.sets[:before]
    memory.site.partitions[:], memory.site.outages[:] = source.site.partitions, source.site.outages
    rows, used = np.arange(first, first + blocks), former.blocks["row"][:blocks]
    memory.site.sets[rows], plan.amounts[rows] = source.site.sets[used], former.amounts[used]
    plan.blocks[:blocks] = former.blocks[:blocks]
    plan.blocks["row"][:blocks] = rows
    plan.spare_sets[: spare - blocks] = np.arange(first + blocks, first + spare)
    state["spare_sets"] = spare - blocks
    plan.prospects[:prospects] = former.prospects[:prospects]
    plan.bounds[:] = former.bounds
    state["in_line"] = NOT_MADE


def _take_use(memory: SlurmMemory, source: SlurmMemory, gone: int, spare: int) -> None:
    """The running jobs, with the first rows of tables, of which so many are `spare` in all."""
    state, use, former, count = memory.state, memory.use, source.use, int(source.state["running"])
    rows = np.concatenate([[0], former.running["row"][:count]])
    for table, old in ((use.free, former.free), (use.totals, former.totals), (use.gives, former.gives)):
        table[: count + 1] = old[rows]
    fill_from(use.running, former.running[:count], gone, "job")
    use.running["row"][:count] = np.arange(1, count + 1)
    use.spare[: spare - count] = np.arange(spare, count, -1)  # the lowest rows are used first
    state["spare_rows"] = spare - count


def ranges_of(memory: SlurmMemory, first: int, last: int) -> Any:
    """The ranges of nodes of the jobs [first, last), one after the other."""
    jobs = memory.jobs[first:last]
    counts = jobs["count"]
    places = np.repeat(jobs["first"] - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
    return memory.use.ranges[places] if len(places) else np.zeros(0, RANGE)


def slots_of(counts: Array, ranges: Any, unit: int) -> NodeRanges:
    """What jobs had of nodes, as `Outcome.slots`, by how many ranges each has, one after the other; processors in units of so many."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return NodeRanges(owner, ranges["node"], ranges["count"], ranges["procs"].astype(np.int64) * unit, ranges["second"])
