"""A simulation that goes on from some moment, with memory for no more jobs than matter from there on, so that a copy costs microseconds.

What has ended never changes again, and no policy looks at what is still to come. So a branch has records of an excerpt of the jobs: from
the first one that has not ended up to some that arrive later. The loop knows no others, and numbers them from 0. Where the excerpt ends,
a new one is made, of twice as many jobs. Everything is in one buffer (`Layout`), and a copy is a copy of that. What is particular to a kind
of machine is in its `Log`: what the memory is, and how one takes over what another one knows.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from walltime.engine.interface.agenda import Agenda
from walltime.engine.interface.compiled import PIECE, CompiledEngine, state_from
from walltime.engine.interface.learned import Guesses
from walltime.engine.interface.orders import LoweredOrder
from walltime.engine.kernel.memory import BY_USER, NEVER
from walltime.engine.kernel.plan import LINE, aligned
from walltime.engine.problem import Outcome, State

Array = np.ndarray
ROOM, MOST_ROOM = 256, 8192
"""Jobs to come in the first excerpt, at least; and in later ones, at most, so that little memory is needed."""


class Log(ABC):
    """All jobs of a simulation, in order of arrival, and its rules; nothing of it is written to but `layouts`.

    `submit`, `procs`: int64, one entry per job (s, processors); `machine_procs`: those of the machine. `orders`: those of the queue and of
    backfilling. `layouts`: of the memories made so far. A *memory* is what the loop of the machine works on.
    """

    machine: str
    submit: Array
    procs: Array
    machine_procs: int
    orders: tuple[LoweredOrder, ...] = ()
    agenda: Agenda | None = None

    def __init__(self) -> None:
        self.layouts: dict[Any, Layout] = {}

    takes_jobs = False
    """Whether jobs can be put in, by `with_job`."""

    def branch(self, source: Any) -> Branch:
        """A simulation of these jobs that goes on where another one is."""
        return Branch(self, source)

    def continues(self, _memory: Any, _first: int) -> bool:
        """Whether a simulation with this memory, whose first job has this number, is one of these jobs up to where it is."""
        return False

    @abstractmethod
    def live(self, memory: Any) -> tuple[int, tuple[Array, ...]]:
        """Up to which job some have arrived, and the numbers of those that wait, run or have not ended."""

    def span(self, memory: Any) -> tuple[int, int]:
        """How many of the first jobs have ended and are not looked at again; and up to which one some have arrived."""
        arrived, live = self.live(memory)
        return min([arrived, *(int(jobs.min(initial=arrived)) for jobs in live)]), arrived

    @abstractmethod
    def layout(self, memory: Any, jobs: int) -> Layout:
        """Of a memory that has room for so many jobs, and goes on from this one."""

    @abstractmethod
    def completed(self, memory: Any, first: int, jobs: int) -> Any:
        """The memory for so many jobs from the first one on, with what all memories share."""

    @abstractmethod
    def take_over(self, memory: Any, source: Any, gone: int, arrived: int) -> None:
        """Take over what another memory knows, without so many jobs at its beginning; up to `arrived`, some have arrived there."""

    @abstractmethod
    def enter(self, memory: Any, arrived: int, first: int, last: int) -> None:
        """Make the records of the jobs that are still to come: the log's jobs [first, last), which are those from `arrived` on here."""

    @abstractmethod
    def waiting(self, memory: Any) -> Array:
        """The waiting jobs in order of arrival."""

    @abstractmethod
    def running(self, memory: Any) -> tuple[Array, Array]:
        """The running jobs and their expected ends, s."""

    @abstractmethod
    def loop(self, memory: Any) -> str:
        """Name of the loop in load.py."""

    @abstractmethod
    def why_stuck(self, memory: Any) -> str:
        """Who waits, and why nothing will start them."""

    def ended(self, memory: Any, gone: int) -> Any:
        """What is to be kept of the first jobs, which have ended: their records."""
        return memory.jobs[:gone]

    @staticmethod
    def has_begun(_memory: Any) -> bool:
        """Whether the jobs that run at first have their places."""
        return True

    @staticmethod
    def is_between(_memory: Any) -> bool:
        """Whether the passes of an event are still to be made."""
        return False

    def steps(self, _memory: Any) -> int:
        """How many steps a plan has for which there must be room."""
        return 0

    def lacks_room(self, _memory: Any) -> bool:
        """Whether the loop would not go on for want of room."""
        return False

    def tail(self, _memory: Any) -> int:
        """How many entries of the layout's tail are in use."""
        return 0

    def more(self, _parts: list[Any], _memory: Any) -> dict[str, Any]:
        """What the outcome has of this kind of machine alone, from what was kept of jobs that ended before, and the memory."""
        return {}


class Layout:
    """Where the arrays and records of a memory lie in one buffer; `new`: such a buffer with the memory as it was given.

    `scratch`: arrays whose content need not be copied. `tail`: an array of which only the first entries are in use.
    """

    def __init__(self, memory: Any, scratch: tuple[Any, ...] = (), tail: Any = None):
        leaves = list(_leaves(memory))
        last = [leaf for leaf in leaves if leaf is tail] + [leaf for leaf in leaves if any(leaf is one for one in scratch)]
        rest = [leaf for leaf in leaves if not any(leaf is one for one in last)]
        places, self._size = {}, 0
        for leaf in (*rest, *last):
            if last and leaf is last[0]:
                self._kept = self._size
            places[id(leaf)] = self._size
            self._size += -(-leaf.nbytes // LINE) * LINE
        self._kept = self._kept if last else self._size
        self._entry = 0 if tail is None else tail.itemsize
        self._places = [((1,) if leaf.ndim == 0 else leaf.shape, leaf.dtype, places[id(leaf)]) for leaf in leaves]
        self._tree = _tree_of(memory)
        self.new = aligned(self._size, np.uint8)
        for mine, given in zip(self._arrays(self.new), leaves, strict=True):
            if places[id(given)] < self._kept:
                mine[...] = given

    def memory(self, buffer: Array) -> Any:
        """The memory in a buffer."""
        return _tuple_of(self._tree, self._arrays(buffer))

    def copy(self, buffer: Array, tail: int = 0) -> Array:
        """Another buffer with the same content; of the tail, so many entries."""
        other, used = aligned(self._size, np.uint8), self._kept + tail * self._entry
        other[:used] = buffer[:used]
        return other

    def _arrays(self, buffer: Array) -> Iterator[Array]:
        for shape, dtype, offset in self._places:
            yield np.ndarray(shape, dtype, buffer, offset)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    elif value is not None:
        yield value


def _tree_of(value: Any) -> Any:
    """The structure of a tuple: its type and those of its parts; for an array or a record, whether it is a record."""
    if value is None:
        return None
    return (type(value), tuple(map(_tree_of, value))) if isinstance(value, tuple) else value.ndim == 0


def _tuple_of(tree: Any, arrays: Iterator[Array]) -> Any:
    if tree is None:
        return None
    if isinstance(tree, tuple):
        kind, parts = tree
        return kind(*[_tuple_of(part, arrays) for part in parts])
    return next(arrays)[0] if tree else next(arrays)


class Branch(CompiledEngine):
    """A simulation that goes on where another one is; that one may go on, too.

    `log`: the jobs, of which those that have arrived are those of the `source`, a compiled engine or another branch. `first`: the number of
    the first job that the loop knows, `past`: what is kept of those before it, which have ended.
    """

    def __init__(self, log: Log, source: Any):
        super().__init__(None)
        self.log, self._until, self.machine, self._kind = log, NEVER, log.machine, log
        self.seconds, self._guesses, self.agenda = source.seconds, source.guesses(), log.agenda
        self._prediction = None if self._guesses is None else self._guesses.prediction
        self._begin(source.memory, source.first, source.past, ROOM)

    def _begin(self, memory: Any, first: int, past: tuple[Any, ...], room: int) -> None:
        """Go on from this memory, whose first job has this number, with `room` for so many jobs to come."""
        log = self.log
        gone, arrived = log.span(memory)
        self.first = first + gone
        ended = log.ended(memory, gone)
        self.past = (*past, ended.copy() if past and isinstance(ended, np.ndarray) else ended)  # those of an engine need not be copied
        size, last = 1 << max(arrived - gone + room, log.steps(memory) // 2).bit_length(), 0
        while (last := self._end(self.first + size)) <= first + arrived < len(log.submit):
            size *= 2  # so many arrive at once
        self._layout = log.layout(memory, size)
        self._buffer = self._layout.copy(self._layout.new)
        self._jobs, self._room = last - self.first, room
        if self._guesses is not None:
            self._guesses, predicting = self._guesses.ahead(memory.machine.predicting, first, gone, arrived, last)
            self._predicted_in = Layout(predicting)
            self._predicting_buffer = self._predicted_in.copy(self._predicted_in.new)
        self._look()
        log.take_over(self._memory, memory, gone, arrived)
        log.enter(self._memory, arrived - gone, first + arrived, last)
        self._own_orders()

    def _end(self, last: int) -> int:
        """Where an excerpt ends that is to end before this job: jobs that arrive at once stay together."""
        submit = self.log.submit
        return len(submit) if last >= len(submit) else int(np.searchsorted(submit, submit[last]))

    def _look(self) -> None:
        """Look at the buffer."""
        memory = self.log.completed(self._layout.memory(self._buffer), self.first, self._jobs)
        if self._guesses is not None:
            predicting = self._predicted_in.memory(self._predicting_buffer)
            memory = memory._replace(machine=memory.machine._replace(predicting=predicting))
        self._memory = memory

    def _own_orders(self) -> None:
        """Let orders that read columns of the log read those of the jobs from the first one on."""
        self._kept = {id(order): order.of_jobs_from(self.first) for order in self.log.orders if order.kind == BY_USER}
        for order, parameter in zip(self.log.orders, ("order_parameter", "backfill_parameter"), strict=bool(self.log.orders)):
            if order.kind == BY_USER:
                self._memory.rules[parameter] = self._kept[id(order)].ctypes.data  # the kernel has no more than the address

    def copy(self) -> Branch:
        """Another simulation that goes on from here, independent of this one."""
        if self._room > ROOM:  # it has gone on for long, and has more room than a copy needs
            self._begin(self._memory, self.first, self.past, ROOM)
        other = copy.copy(self)
        other._buffer = self._layout.copy(self._buffer, self.log.tail(self._memory))
        if self._guesses is not None:
            other._predicting_buffer = self._predicted_in.copy(self._predicting_buffer)
        other._look()
        return other

    def branch(self) -> Branch:
        """This simulation itself."""
        return self

    def advance(self, budget: int = PIECE) -> bool:
        """Run one piece; returns whether the simulation is done, of which `reached` tells whether the next event is too late."""
        while True:
            if self.log.lacks_room(self._memory):
                self._begin(self._memory, self.first, self.past, self._room)
            last = self.first + self._jobs
            complete = last == len(self.log.submit)
            until = self._until if complete else min(self._until, int(self.log.submit[last]) - 1)
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

        Only where the `log` takes jobs.
        """
        log: Any = self.log
        return Branch(log.with_job(place, submit, runtime, believed, procs), self)

    @property
    def machine_procs(self) -> int:
        """Processors that the engine knows of."""
        return self.log.machine_procs

    def state(self) -> State:
        """What the scheduler knows now."""
        log = self.log
        return state_from(self._memory, log.waiting(self._memory), log.running(self._memory), log.procs, log.machine_procs, self.first)

    def outcome(self) -> Outcome:
        """What has become of the jobs, once the simulation is done."""
        more = self.log.more(list(self.past), self._memory)
        return self._outcome(self._column("runtime"), **more, seconds={"simulate": self.seconds})

    def guesses(self) -> Guesses | None:
        """How jobs are predicted."""
        return self._guesses

    def _said(self, which: int) -> Array:
        """What was predicted of all jobs, on what basis, or how often it was corrected."""
        assert self._guesses is not None
        last = self._guesses.of(self._predicting, self.first, self._jobs)
        return np.concatenate([said[which] for said in (*self._guesses.said, last)])

    @property
    def predicted(self) -> Array:
        """Predicted runtime of each job."""
        return self._said(0)

    @property
    def basis(self) -> Array:
        """Basis of each prediction."""
        return self._said(1)

    @property
    def corrections(self) -> Array:
        """How often the prediction of each job was corrected."""
        return self._said(2)

    def _column(self, name: str) -> Array:
        """Of all jobs, once the simulation is done."""
        parts = [past[0] if isinstance(past, tuple) else past for past in self.past]
        return np.concatenate([jobs[name] for jobs in (*parts, self._memory.jobs)])


def take_state(memory: Any, source: Any, gone: int, arrived: int) -> None:
    """Take over the numbers that change at every event, and the records of the jobs that have arrived."""
    for name in memory.state.dtype.names:
        memory.state[name] = source.state[name]
    memory.state["started"] = int(source.state["started"]) - gone
    memory.jobs[: arrived - gone] = source.jobs[gone:arrived]


def without(parts: Any, *names: str) -> Any:
    """A tuple of arrays without some that all memories share."""
    return parts._replace(**dict.fromkeys(names))


def are_the_same(jobs: Any, others: Any, names: tuple[str, ...]) -> bool:
    """Whether these records agree in these fields."""
    return len(jobs) == len(others) and all(np.array_equal(jobs[name], others[name]) for name in names)


def fill_from(array: Array, values: Array, gone: int, *fields: str) -> int:
    """Fill the beginning of an array with values that count jobs from another first one; returns how many there are."""
    count = len(values)
    array[:count] = values
    for numbers in [array[field] for field in fields] or [array]:
        numbers[:count] -= gone
    return count


def sorted_heap(items: Array) -> Array:
    """These items in the order in which they would be taken, in which they are a heap."""
    return np.asarray(items[np.lexsort((items["tie"], items["rank"]))])
