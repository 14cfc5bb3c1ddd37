"""A simulation that goes on from some moment, with memory for no more jobs than matter from there on, so that a copy costs microseconds.

What has ended never changes again, and no policy looks at what is still to come. So a branch has records of an excerpt of the jobs: from
the first one that has not ended up to some that arrive later. The loop knows no others, and numbers them from 0. Where the excerpt ends,
a new one is made, of twice as many jobs. Everything is in one buffer (`Layout`), and a copy is a copy of that.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from walltime.engine.interface.compiled import PIECE, CompiledEngine, LoweredOrder
from walltime.engine.interface.load import loop_name
from walltime.engine.kernel.memory import BY_USER, HOLE, JOB, NEVER, Memory, new_memory, records
from walltime.engine.kernel.plan import CHUNK, LINE, SLOTS, Plan, aligned
from walltime.engine.problem import Outcome, State

__all__ = ["Branch", "Log", "state_of"]

Array = np.ndarray
ROOM, MOST_ROOM = 256, 8192
"""Jobs to come in the first excerpt, at least; and in later ones, at most, so that little memory is needed."""
NOBODY = np.zeros(0, np.int64)


class Log(NamedTuple):
    """All jobs of a simulation, in order of arrival (int64; times s), and its rules.

    `rules`: for the jobs as numbered here; `orders`: those of the queue and of backfilling. `bounds`, `recent`: as for `new_memory`.
    `layouts`: those made so far, by the number of jobs; none of the rest is written to.
    """

    submit: Array
    runtime: Array
    believed: Array
    procs: Array
    rules: Any
    orders: tuple[LoweredOrder, LoweredOrder]
    bounds: tuple[int, ...]
    recent: int
    layouts: dict[int, Layout]

    @property
    def reads_columns(self) -> bool:
        """Whether an order has data of its own about all jobs."""
        return any(order.kind == BY_USER for order in self.orders)

    def layout(self, jobs: int) -> Layout:
        """Of the memory for so many jobs."""
        if jobs not in self.layouts:
            self.layouts[jobs] = Layout(new_memory(records(JOB, jobs), self.rules, NOBODY, NOBODY, bounds=self.bounds, recent=self.recent))
        return self.layouts[jobs]


class Layout:
    """Where the arrays and records of a memory lie in one buffer; `new`: such a buffer with the memory as it was given."""

    def __init__(self, memory: Memory):
        self._leaves: list[tuple[Any, ...]] = []
        self._size = 0
        self._tree = self._entered(memory)
        self.new = aligned(self._size, np.uint8)
        for mine, given in zip(self._arrays(self.new), _leaves(memory), strict=True):
            mine[...] = given

    def memory(self, buffer: Array) -> Memory:
        """The memory in a buffer."""
        memory: Memory = _tuple_of(self._tree, self._arrays(buffer))
        return memory

    def copy(self, buffer: Array) -> Array:
        """Another buffer with the same content."""
        other = aligned(self._size, np.uint8)
        other[:] = buffer
        return other

    def _entered(self, value: Any) -> Any:
        """The structure of a tuple: its type and those of its parts; for an array or a record, whether it is a record."""
        if value is None:
            return None
        if isinstance(value, tuple):
            return type(value), tuple(self._entered(part) for part in value)
        single = value.ndim == 0
        self._leaves.append(((1,) if single else value.shape, value.dtype, self._size))
        self._size += -(-value.nbytes // LINE) * LINE
        return single

    def _arrays(self, buffer: Array) -> Iterator[Array]:
        for shape, dtype, offset in self._leaves:
            yield np.ndarray(shape, dtype, buffer, offset)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    elif value is not None:
        yield value


def _tuple_of(tree: Any, arrays: Iterator[Array]) -> Any:
    if tree is None:
        return None
    if isinstance(tree, tuple):
        kind, parts = tree
        return kind(*[_tuple_of(part, arrays) for part in parts])
    return next(arrays)[0] if tree else next(arrays)


class Branch(CompiledEngine):
    """A simulation that goes on where another one is; that one may go on, too.

    `log`: the jobs, of which those that have arrived are those of the `source`, a `NumberEngine` or another branch. `first`: the number of
    the first job that the loop knows, `past`: records of those before it, which have ended.
    """

    machine = "number"

    def __init__(self, log: Log, source: Any):
        super().__init__(None)
        self._log, self._until = log, NEVER
        self.seconds = source.seconds
        self._begin(source.memory, source.first, source.past, ROOM)

    def _begin(self, memory: Memory, first: int, past: tuple[Array, ...], room: int) -> None:
        """Go on from this memory, whose first job has this number, with `room` for so many jobs to come."""
        state = memory.state
        gone, arrived = _gone(memory), int(state["next_job"])
        self.first = first + gone
        self.past = (*past, memory.jobs[:gone].copy()) if past else (memory.jobs[:gone],)
        kept = memory.reservations.kept
        used = 0 if kept is None else int(kept.plan.slots["used"]) // 2
        size, last = 1 << max(arrived - gone + room, used).bit_length(), 0
        while (last := self._end(self.first + size)) <= first + arrived < len(self._log.submit):
            size *= 2  # so many arrive at once
        self._layout = self._log.layout(size)
        self._buffer = self._layout.copy(self._layout.new)
        self._jobs, self._room = last - self.first, room
        self._look()
        _take_over(self._memory, memory, gone, arrived)
        self._enter(first + arrived, last)
        self._own_orders()

    def _end(self, last: int) -> int:
        """Where an excerpt ends that is to end before this job: jobs that arrive at once stay together."""
        submit = self._log.submit
        return len(submit) if last >= len(submit) else int(np.searchsorted(submit, submit[last]))

    def _look(self) -> None:
        """Look at the buffer."""
        memory = self._layout.memory(self._buffer)
        self._memory: Memory = memory._replace(jobs=memory.jobs[: self._jobs])

    def _enter(self, arrived: int, last: int) -> None:
        """Make the records of the jobs that are still to come."""
        log, state, coming = self._log, self._memory.state, self._memory.jobs[arrived - self.first :]
        coming["submit"], coming["runtime"], coming["procs"] = log.submit[arrived:last], log.runtime[arrived:last], log.procs[arrived:last]
        for name in ("believed", "order_length", "own_length", "run_length"):
            coming[name] = log.believed[arrived:last]
        coming["start"] = coming["reserved_start"] = -1
        state["next_job"] = arrived - self.first
        state["next_arrival"] = log.submit[arrived] if arrived < last else NEVER

    def _own_orders(self) -> None:
        """Let orders that read columns of the log read those of the jobs from the first one on."""
        self._kept = []
        for order, parameter in zip(self._log.orders, ("order_parameter", "backfill_parameter"), strict=True):
            if order.kind == BY_USER:
                facts = order.of_jobs_from(self.first)
                self._kept.append(facts)  # the kernel has no more than its address
                self._memory.rules[parameter] = facts.ctypes.data

    def copy(self) -> Branch:
        """Another simulation that goes on from here, independent of this one."""
        if self._room > ROOM:  # it has gone on for long, and has more room than a copy needs
            self._begin(self._memory, self.first, self.past, ROOM)
        other = copy.copy(self)
        other._buffer = self._layout.copy(self._buffer)
        other._look()
        return other

    def advance(self, budget: int = PIECE) -> bool:
        """Run one piece; returns whether the simulation is done, of which `reached` tells whether the next event is too late."""
        while True:
            last = self.first + self._jobs
            complete = last == len(self._log.submit)
            until = self._until if complete else min(self._until, int(self._log.submit[last]) - 1)
            self._memory.state["until"] = until
            done = super().advance(budget)
            if complete or not (done or (self.reached and until < self._until)):
                return done
            self._begin(self._memory, self.first, self.past, min(2 * self._room, MOST_ROOM))

    def run_until(self, time: int) -> bool:
        """Handle all events up to this time, s; returns whether the simulation is done."""
        self._until = time
        try:
            while not (done := self.advance()):
                if self.reached:
                    break
        finally:
            self._until = NEVER
        return done

    def with_job(self, place: int, submit: int, runtime: int, believed: int, procs: int) -> Branch:
        """Another simulation that goes on from here, with a further job that is the one with this number and arrives later than now.

        Not for orders that read columns of the log.
        """
        log = self._log
        own = log._replace(
            submit=np.insert(log.submit, place, submit),
            runtime=np.insert(log.runtime, place, runtime),
            believed=np.insert(log.believed, place, believed),
            procs=np.insert(log.procs, place, procs),
        )
        return Branch(own, self)

    @property
    def log(self) -> Log:
        """The jobs and the rules."""
        return self._log

    @property
    def memory(self) -> Memory:
        """What the loop works on, to be looked at between two pieces."""
        return self._memory

    def state(self) -> State:
        """What the scheduler knows now."""
        return state_of(self._memory, self.first)

    def outcome(self) -> Outcome:
        """What has become of the jobs, once the simulation is done."""
        return self._outcome(self._log.runtime, seconds={"simulate": self.seconds})

    def _name(self) -> str:
        return loop_name(self._memory)

    def _why_stuck(self) -> str:
        return f"{self._jobs - self.started} jobs wait for processors that nobody will free"

    def _column(self, name: str) -> Array:
        """Of all jobs, once the simulation is done."""
        return np.concatenate([jobs[name] for jobs in (*self.past, self._memory.jobs)])


def state_of(memory: Memory, first: int = 0) -> State:
    """What a scheduler knows whose loop has this memory, and numbers the jobs from this one on."""
    state, jobs = memory.state, memory.jobs
    waiting = memory.queue["job"][int(state["queue_first"]) : int(state["queue_last"])].astype(np.int64)
    waiting = waiting[jobs["start"][waiting] < 0]
    waiting = waiting[np.argsort(jobs["arrival"][waiting])]
    running = memory.machine.running[: int(state["running"])]
    queue = waiting + first, jobs["own_length"][waiting], jobs["reserved_start"][waiting]
    return State(int(state["now"]), int(state["free"]), *queue, running["job"] + first, running["expected"].copy())


def _gone(memory: Memory) -> int:
    """How many of the first jobs have ended and been forgotten."""
    state, queue = memory.state, memory.queue[int(memory.state["queue_first"]) : int(memory.state["queue_last"])]
    first = int(state["next_job"])
    for live in (
        queue["job"][queue["procs"] != HOLE],
        memory.machine.running["job"][: int(state["running"])],
        memory.machine.events["job"][: int(state["events"])],
    ):
        first = min(first, int(live.min(initial=first)))
    return first


def _take_over(memory: Any, source: Any, gone: int, arrived: int) -> None:
    """Take over what another memory knows, without so many jobs at its beginning; `arrived` have, or are gone."""
    state, old, jobs = memory.state, source.state, source.jobs
    for name in state.dtype.names:
        state[name] = old[name]
    machine, reservations = memory.machine, memory.reservations
    memory.jobs[: arrived - gone] = jobs[gone:arrived]
    for name in ("head", "blocked", "earliest_of"):
        state[name] = max(int(old[name]) - gone, -1)
    state["started"] = int(old["started"]) - gone
    _fill(machine.events, source.machine.events[: int(old["events"])], gone, "job", "tie")  # ties are numbers of starts
    _fill(machine.running, source.machine.running[: int(old["running"])], gone, "job")
    _take_queue(memory, source, gone)
    if memory.ordered is not None:
        heads = source.ordered.heads[: int(old["heads"])]
        waiting = heads[jobs["start"][heads["job"]] < 0]
        waiting = waiting[np.lexsort((waiting["tie"], waiting["rank"]))]  # sorted items are a heap
        state["heads"] = _fill(memory.ordered.heads, waiting, gone, "job")
    if reservations.kept is not None:
        line = source.ordered.sorted[: int(old["sorted"])]
        state["sorted"] = _fill(memory.ordered.sorted, line[jobs["start"][line] < 0], gone)
        _take_plan(reservations.kept.plan, source.reservations.kept.plan, int(old["queue_last"]))
    if reservations.slack is not None:
        slack, former = reservations.slack, source.reservations.slack
        _fill(slack.line, former.line[: int(old["sorted"])], gone)
        slack.reserved[: arrived - gone] = former.reserved[gone:arrived]
        slack.latest[: arrived - gone] = former.latest[gone:arrived]
        slack.wait[:] = np.roll(former.wait, -gone)  # its places are numbers of starts, too


def _fill(array: Array, values: Array, gone: int, *fields: str) -> int:
    """Fill the beginning of an array with values that count jobs from another first one; returns how many there are."""
    count = len(values)
    array[:count] = values
    for numbers in [array[field] for field in fields] or [array]:
        numbers[:count] -= gone
    return count


def _take_queue(memory: Any, source: Any, gone: int) -> None:
    """The queue from place 0 on, without the gaps that started jobs have left; an index of it is made anew when needed."""
    state, first = memory.state, int(source.state["queue_first"])
    places = source.queue[first : int(source.state["queue_last"])]
    waiting = places["procs"] != HOLE
    state["looked_at"] = np.count_nonzero(waiting[: max(int(source.state["looked_at"]) - first, 0)])
    state["queue_first"] = 0
    state["queue_last"] = _fill(memory.queue, places[waiting], gone, "job")
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
