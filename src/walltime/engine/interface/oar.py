"""The compiled engine for OAR's scheduling on nodes: makes the arrays of the loop, and says who had which node."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from walltime.engine.interface.nodes import PlannedNodes
from walltime.engine.interface.pools import fill
from walltime.engine.kernel.memory import NEVER, record, records
from walltime.engine.kernel.nodes.memory import as_set
from walltime.engine.kernel.nodes.oar import OAR_JOB, OAR_RULES, OarMemory, new_oar_memory
from walltime.engine.kernel.pools.memory import followers_of
from walltime.engine.problem import NodeDemands, Nodes, OarSettings, Outcome, Problem, running_at_first

Array = np.ndarray


class OarEngine(PlannedNodes):
    """A simulation of OAR's scheduling on a machine of nodes, run as a whole or in pieces.

    Raises WorkloadError while it runs if the jobs that run at first do not fit.
    """

    def __init__(self, problem: Problem):
        super().__init__(None)
        machine, demands, settings = problem.machine, problem.demands, problem.settings
        assert isinstance(machine, Nodes)
        assert isinstance(demands, NodeDemands)
        assert isinstance(settings, OarSettings)
        self.problem, count, takes = problem, len(problem), settings.latencies
        self._nodes = machine
        jobs = records(OAR_JOB, count)
        for name in ("submit", "runtime", "believed"):
            jobs[name] = getattr(problem, name)
        jobs.nodes, jobs.partition = demands.nodes, demands.partition
        jobs.noticed, jobs.phase = settings.noticed, settings.phase
        jobs.after = -1 if problem.after is None else problem.after
        jobs.think = 0 if problem.think is None else problem.think
        jobs.start = jobs.reserved_start = -1
        times = {name: getattr(takes, name) for name in OAR_RULES.names or () if hasattr(takes, name)}
        rules = record(OAR_RULES, security=settings.security_time, bug=settings.bug, **times)
        every = [np.zeros(0, np.int64), np.arange(len(machine.procs)), *machine.partitions]
        words = max(1, -(-len(machine.procs) // 64))
        sets = np.stack([as_set(np.asarray(own, np.int64), words) for own in every])
        followers = followers_of(demands.after, jobs.after, jobs.pending)
        self._memory: OarMemory = new_oar_memory(rules, jobs, sets, followers)
        state, traffic = self._memory.state, self._memory.traffic
        at_first = running_at_first(demands.since)
        jobs.start[at_first] = demands.since[at_first]
        state.at_first = len(at_first)
        traffic.at_first[: len(at_first)] = at_first
        to_come = np.flatnonzero((demands.since == NEVER) & (jobs.pending == 0))
        state.events = len(to_come)
        fill(traffic.events, 1000 * jobs.submit[to_come] + jobs.noticed[to_come], np.zeros(len(to_come), np.int64), to_come)

    def hold(self, nodes: Mapping[int, Array]) -> None:
        """Before the first event: jobs that run at first, by index, have these nodes (int64) instead of the first that are free."""
        self.advance(0)
        for job, own in nodes.items():
            self._memory.had[job] = as_set(own, self._memory.had.shape[1])

    def _loop_name(self) -> str:
        return "oar"

    def _waiting(self) -> Array:
        return self._memory.traffic.queue[: int(self._memory.state["waiting"])].copy()

    def _running(self) -> tuple[Array, Array]:
        running, jobs = self._memory.traffic.running[: int(self._memory.state["running"])].copy(), self._memory.jobs
        return running, jobs["start"][running] + jobs["believed"][running]

    def outcome(self) -> Outcome:
        """What has become of the jobs, once the simulation is done."""
        more = {"slots": self.slots, "given": self._nodes.given(self.slots, len(self.problem))}
        return self._outcome(self.problem.runtime, **more, seconds={"simulate": self.seconds})

    @property
    def slots(self) -> tuple[Array, Array, Array, Array]:
        """What jobs had of nodes, int64: the job, the node, processors and units of the second resource; in order of job and node."""
        bits = np.unpackbits(np.ascontiguousarray(self._memory.had).view(np.uint8), axis=1, bitorder="little")
        job, node = (values.astype(np.int64) for values in np.nonzero(bits))
        return job, node, self._nodes.procs[node], np.zeros(len(job), np.int64)
