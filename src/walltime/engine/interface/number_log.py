"""The jobs and the memory of a simulation on a number of processors, for a `Branch`."""

from __future__ import annotations

from typing import Any

import numpy as np

from walltime.engine.interface.branch import Layout, Log, fill_from, sorted_heap, take_state
from walltime.engine.interface.load import loop_name
from walltime.engine.interface.orders import LoweredOrder
from walltime.engine.kernel.memory import BY_USER, HOLE, JOB, NEVER, Memory, new_memory, records
from walltime.engine.kernel.number.conservative import KeptPlan
from walltime.engine.kernel.number.slack import Slack
from walltime.engine.kernel.plan import CHUNK, SLOTS, Plan

Array = np.ndarray
NOBODY = np.zeros(0, np.int64)


class NumberLog(Log):
    """`columns`: submit, runtime, believed and procs of all jobs; `rules`: of the policy.

    `new_reservations`: makes what the passes keep, for so many jobs. `predicted`: whether runtimes are.
    """

    machine = "number"

    def __init__(self, columns: tuple[Array, ...], rules: Any, orders: tuple[LoweredOrder, ...], new_reservations: Any, predicted: bool):
        super().__init__()
        self.predicted = predicted
        self.submit, self.runtime, self.believed, self.procs = columns
        self.rules, self.orders, self.new_reservations, self.machine_procs = rules, orders, new_reservations, int(rules.procs)

    @property
    def takes_jobs(self) -> bool:  # type: ignore[override]
        """Whether jobs can be put in: no order has data of its own about all of them."""
        return not self.predicted and all(order.kind != BY_USER for order in self.orders)

    def continues(self, memory: Any, _first: int) -> bool:
        """Any simulation on a number of processors, without predictions: other jobs have other numbers of keys."""
        return isinstance(memory, Memory) and not self.predicted

    def with_job(self, place: int, submit: int, runtime: int, believed: int, procs: int) -> NumberLog:
        """The same with a further job that is the one with this number."""
        before, own = (self.submit, self.runtime, self.believed, self.procs), (submit, runtime, believed, procs)
        columns = tuple(np.insert(values, place, value) for values, value in zip(before, own, strict=True))
        other = NumberLog(columns, self.rules, self.orders, self.new_reservations, False)
        other.layouts = self.layouts
        return other

    @staticmethod
    def live(memory: Memory) -> tuple[int, tuple[Array, ...]]:
        """The next job that comes, and those in the queue, that run, and whose ends are still to come."""
        state, queue = memory.state, memory.queue[int(memory.state["queue_first"]) : int(memory.state["queue_last"])]
        running, events = memory.machine.running["job"], memory.machine.events["job"]
        return int(state["next_job"]), (
            queue["job"][queue["procs"] != HOLE],
            running[: int(state["running"])],
            events[: int(state["events"])],
        )

    def layout(self, memory: Memory, jobs: int) -> Layout:
        """Of the memory for so many jobs."""
        if jobs not in self.layouts:
            memory_of = new_memory(records(JOB, jobs), self.rules, NOBODY, NOBODY, self.new_reservations(jobs))
            self.layouts[jobs] = Layout(memory_of)
        return self.layouts[jobs]

    def completed(self, memory: Memory, first: int, jobs: int) -> Memory:
        """The memory for so many jobs."""
        return memory._replace(jobs=memory.jobs[:jobs])

    def enter(self, memory: Memory, arrived: int, first: int, last: int) -> None:
        """Make the records of the jobs that are still to come."""
        state, coming = memory.state, memory.jobs[arrived:]
        coming["submit"], coming["runtime"], coming["procs"] = self.submit[first:last], self.runtime[first:last], self.procs[first:last]
        for name in ("believed", "order_length", "own_length", "run_length"):
            coming[name] = self.believed[first:last]
        coming["start"] = coming["reserved_start"] = -1
        state["next_job"] = arrived
        state["next_arrival"] = self.submit[first] if first < last else NEVER

    def steps(self, memory: Memory) -> int:
        """Those of kept reservations."""
        own = memory.reservations
        return int(own.plan.slots["used"]) if isinstance(own, KeptPlan) else 0

    @staticmethod
    def loop(memory: Memory) -> str:
        """Name of the loop in load.py."""
        return loop_name(memory)

    @staticmethod
    def why_stuck(memory: Memory) -> str:
        """No rule allows it."""
        return f"{len(memory.jobs) - int(memory.state.started)} jobs wait for processors that nobody will free"

    @staticmethod
    def waiting(memory: Memory) -> Array:
        """The waiting jobs in order of arrival."""
        waiting = memory.queue["job"][int(memory.state["queue_first"]) : int(memory.state["queue_last"])].astype(np.int64)
        waiting = waiting[memory.jobs["start"][waiting] < 0]
        return np.asarray(waiting[np.argsort(memory.jobs["arrival"][waiting])])

    @staticmethod
    def running(memory: Memory) -> tuple[Array, Array]:
        """The running jobs and their expected ends."""
        running = memory.machine.running[: int(memory.state["running"])]
        return running["job"], running["expected"]

    def take_over(self, memory: Any, source: Any, gone: int, arrived: int) -> None:
        """Take over what another memory knows, without so many jobs at its beginning; `arrived` have, or are gone."""
        state, old, jobs = memory.state, source.state, source.jobs
        take_state(memory, source, gone, arrived)
        machine, reservations = memory.machine, memory.reservations
        for name in ("head", "blocked", "earliest_of"):
            state[name] = max(int(old[name]) - gone, -1)
        fill_from(machine.events, source.machine.events[: int(old["events"])], gone, "job", "tie")  # ties are numbers of starts
        fill_from(machine.running, source.machine.running[: int(old["running"])], gone, "job")
        _take_queue(memory, source, gone)
        if memory.ordered is not None:
            heads = source.ordered.heads[: int(old["heads"])]
            waiting = heads[jobs["start"][heads["job"]] < 0]
            state["heads"] = fill_from(memory.ordered.heads, sorted_heap(waiting), gone, "job")
        if isinstance(reservations, KeptPlan):
            line = source.ordered.sorted[: int(old["sorted"])]
            state["sorted"] = fill_from(memory.ordered.sorted, line[jobs["start"][line] < 0], gone)
            _take_plan(reservations.plan, source.reservations.plan, int(old["queue_last"]))
        if isinstance(reservations, Slack):
            slack, former = reservations, source.reservations
            fill_from(slack.line, former.line[: int(old["sorted"])], gone)
            slack.reserved[: arrived - gone] = former.reserved[gone:arrived]
            slack.latest[: arrived - gone] = former.latest[gone:arrived]
            slack.wait[:] = np.roll(former.wait, -gone)  # its places are numbers of starts, too


def _take_queue(memory: Any, source: Any, gone: int) -> None:
    """The queue from place 0 on, without the gaps that started jobs have left; an index of it is made anew when needed."""
    state, first = memory.state, int(source.state["queue_first"])
    places = source.queue[first : int(source.state["queue_last"])]
    waiting = places["procs"] != HOLE
    state["looked_at"] = np.count_nonzero(waiting[: max(int(source.state["looked_at"]) - first, 0)])
    state["queue_first"] = 0
    state["queue_last"] = fill_from(memory.queue, places[waiting], gone, "job")
    for name in ("holes", "indexed", "ranked", "horizon"):
        state[name] = 0


def _take_plan(plan: Plan, source: Plan, waiting: int) -> None:
    """The plan of kept reservations, for so many waiting jobs."""
    for name in SLOTS.names or ():
        plan.slots[name] = source.slots[name]
    used = int(source.slots["used"])
    plan.steps[:used] = source.steps[:used]
    plan.waiting[:waiting] = source.waiting[:waiting]
    for name in ("procs", "length", "latest"):
        getattr(plan.traits, name)[:waiting] = getattr(source.traits, name)[:waiting]
    chunks = -(-waiting // CHUNK)
    plan.traits.chunk_latest[:chunks] = source.traits.chunk_latest[:chunks]
    plan.traits.shelves[:] = source.traits.shelves
