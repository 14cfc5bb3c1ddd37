"""The jobs and the memory of a simulation of OAR's scheduling, for a `Branch`."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.engine.interface.branch import Layout, are_the_same, fill_from, sorted_heap, take_state, without
from walltime.engine.interface.pools_log import NO_LISTS, NodesLog, part_of
from walltime.engine.kernel.memory import ITEM, records
from walltime.engine.kernel.nodes.oar import OAR_JOB, SUBMISSION, OarMemory, new_oar_memory
from walltime.engine.problem import Nodes, Problem

Array = np.ndarray


class OarLog(NodesLog):
    """`memory`: of all jobs, of which those that have not arrived are as they were given."""

    loop_name = "oar"

    def __init__(self, problem: Problem, memory: OarMemory):
        super().__init__(problem)
        self.jobs, self.rules, self.sets, self.followers = memory.jobs.copy(), memory.rules, memory.sets, memory.traffic.followers

    def continues(self, memory: Any, first: int) -> bool:
        """Whether the jobs that have arrived are the same here."""
        if not isinstance(memory, OarMemory) or not memory.state["begun"]:
            return False
        arrived = self.span(memory)[1]
        return are_the_same(self.jobs[first : first + arrived], memory.jobs[:arrived], ("submit", "nodes", "partition", "noticed", "phase"))

    @staticmethod
    def live(memory: OarMemory) -> tuple[int, tuple[Array, ...]]:
        """The job behind the last whose submission has been noticed, and those that wait, run, and whose events are still to come."""
        state, traffic = memory.state, memory.traffic
        events = traffic.events[: int(state["events"])]
        noticed = np.ones(len(memory.jobs), bool)
        noticed[events["job"][events["tie"] == SUBMISSION]] = False
        arrived = int(np.flatnonzero(noticed)[-1]) + 1 if noticed.any() else 0
        return arrived, (traffic.queue[: int(state["waiting"])], traffic.running[: int(state["running"])], events["job"])

    def layout(self, _memory: OarMemory, jobs: int) -> Layout:
        """Of the memory for so many jobs."""
        if jobs not in self.layouts:
            new = new_oar_memory(self.rules, records(OAR_JOB, jobs), self.sets, NO_LISTS)
            new = new._replace(traffic=without(new.traffic, "at_first", "followers"))
            self.layouts[jobs] = Layout(new, tuple(new.plan))
        return self.layouts[jobs]

    def completed(self, memory: OarMemory, first: int, jobs: int) -> OarMemory:
        """The memory for so many jobs from the first one on."""
        traffic = memory.traffic._replace(at_first=NO_LISTS.items, followers=part_of(self.followers, first, jobs))
        return memory._replace(jobs=memory.jobs[:jobs], traffic=traffic)

    def take_over(self, memory: OarMemory, source: OarMemory, gone: int, arrived: int) -> None:
        """Take over what another memory knows; a pass needs nothing of the plan of the one before."""
        state, old, traffic, former = memory.state, source.state, memory.traffic, source.traffic
        take_state(memory, source, gone, arrived)
        memory.had[: arrived - gone] = source.had[gone:arrived]
        fill_from(traffic.queue, former.queue[: int(old["waiting"])], gone)
        fill_from(traffic.running, former.running[: int(old["running"])], gone)
        events = former.events[: int(old["events"])]
        state["events"] = fill_from(traffic.events, events[events["job"] < arrived], gone, "job")

    def enter(self, memory: OarMemory, arrived: int, first: int, last: int) -> None:
        """Make the records of the jobs that are still to come, and their submissions."""
        state, traffic = memory.state, memory.traffic
        memory.jobs[arrived:] = own = self.jobs[first:last]
        coming = np.zeros(last - first, ITEM)
        coming["rank"], coming["job"] = 1000 * own["submit"] + own["noticed"], np.arange(arrived, arrived + last - first)
        both = np.concatenate([traffic.events[: int(state["events"])], coming])
        state["events"] = fill_from(traffic.events, sorted_heap(both), 0, "job")

    def more(self, parts: list[Any], memory: OarMemory) -> dict[str, Any]:
        """What the jobs had of nodes."""
        nodes: Any = self.problem.machine
        slots = slots_of(np.concatenate([*(had for _, had in parts), memory.had[: len(memory.jobs)]]), nodes)
        return {"slots": slots, "given": nodes.given(slots, len(self.submit))}

    @staticmethod
    def ended(memory: OarMemory, gone: int) -> tuple[Any, Array]:
        """The records of the first jobs, and the nodes that they had."""
        return memory.jobs[:gone].copy(), memory.had[:gone].copy()

    @staticmethod
    def waiting(memory: OarMemory) -> Array:
        """The waiting jobs in order of arrival."""
        return memory.traffic.queue[: int(memory.state["waiting"])].copy()

    @staticmethod
    def running(memory: OarMemory) -> tuple[Array, Array]:
        """The running jobs and when they end at what they asked for."""
        running = memory.traffic.running[: int(memory.state["running"])].copy()
        return running, memory.jobs["start"][running] + memory.jobs["believed"][running]


def slots_of(had: Array, nodes: Nodes) -> tuple[Array, Array, Array, Array]:
    """What jobs had of nodes, as `Outcome.slots`, by the set of nodes of each."""
    bits = np.unpackbits(np.ascontiguousarray(had).view(np.uint8), axis=1, bitorder="little")
    job, node = (values.astype(np.int64) for values in np.nonzero(bits))
    return job, node, nodes.procs[node], np.zeros(len(job), np.int64)
