"""A simulation whose queue order changes at given times, and that can be taken back to an earlier state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from walltime.declared import Key
from walltime.engine.interface.number import NumberEngine
from walltime.errors import PolicyError
from walltime.policy import FCFS, SJF, Order, ScoredOrder, UserOrder, Wfp
from walltime.simulation.run import run_of
from walltime.simulation.specification import Scheduler
from walltime.workload import Workload

__all__ = ["Switching", "can_switch"]

Array = np.ndarray
State = tuple[NumberEngine, Array]
"""A simulation that goes on from there, and the numbers of its order."""


@dataclass(frozen=True, eq=False)
class Switch(UserOrder):
    """One of several orders: the one at place `numbers[0]` before the time `numbers[2]` (s), that at `numbers[1]` from then on."""

    orders: Annotated[tuple[Order, ...], Key(inside=True)] = ()
    numbers: Annotated[Any, Key(inside=True)] = ()

    @property
    def parameters(self) -> Any:
        """The numbers, which may be changed during a simulation: the engine reads them where they are."""
        return self.numbers

    def asks(self) -> tuple[str, ...]:
        """What any of the orders asks for: the function's parameters but for the numbers."""
        return tuple(inspect.signature(self.function).parameters)[: -len(self.numbers)]

    @property
    def changes(self) -> bool:
        """Scores change where the order does."""
        return True

    def score(self, wait: int, believed: int, procs: int, submit: int, **others: int) -> float:
        """The score by the order in force."""
        before, after, moment = self.numbers
        return self.orders[int(before if wait + submit < moment else after)].score(wait, believed, procs, submit, **others)


def switch(orders: Sequence[Order]) -> Switch:
    """An order that can be any of these; raises PolicyError for one that is no formula."""
    import numba

    names: dict[str, Any] = {}
    asked = dict.fromkeys(("wait", "believed", "procs", "submit"))
    lines = []
    for place, one in enumerate(orders):
        function, arguments, values = _formula(one)
        names[f"f{place}"] = numba.njit(nogil=True, error_model="numpy")(function)
        asked |= dict.fromkeys(arguments)
        lines.append(f"    if which == {place}:\n        return float(f{place}({', '.join([*arguments, *map(repr, values)])}))\n")
    head = f"def choose({', '.join([*asked, 'before', 'after', 'moment'])}):\n    which = before if wait + submit < moment else after\n"
    exec(head + "".join(lines) + "    return 0.0\n", names)
    return Switch("switch", names["choose"], orders=tuple(orders), numbers=np.zeros(3))


def can_switch(one: Order) -> bool:
    """Whether `switch` takes this order."""
    if one in (FCFS, SJF):
        return True
    if one.bounds != (None, None) or one.history_of or one.reads_longest:
        return False
    return isinstance(one, ScoredOrder) and not isinstance(one, Switch) and not (isinstance(one, Wfp) and one.threshold)


def _formula(one: Order) -> tuple[Callable[..., float], tuple[str, ...], tuple[float, ...]]:
    """The order's function, and its arguments: of the job, and numbers after them."""
    if not can_switch(one):
        raise PolicyError(f"the order {one.label} cannot be chosen in a running simulation")
    if one == FCFS:
        return lambda submit: -float(submit), ("submit",), ()
    if one == SJF:
        return lambda believed: -float(believed), ("believed",), ()
    if isinstance(one, Wfp):
        return _wfp, ("wait", "believed", "procs"), (one.exponent,)
    assert isinstance(one, ScoredOrder)
    return one.scoring, one.asks(), tuple(one.parameters)


def _wfp(wait, believed, procs, exponent):
    power = 1.0
    for _ in range(exponent):
        power *= wait / believed
    return power * procs


class Switching:
    """A simulation under a scheduler whose queue order is one of `orders` at a time; for FCFS and EASY without predictions."""

    def __init__(self, workload: Workload, scheduler: Scheduler, orders: Sequence[Order], overrun: str):
        passes = scheduler.policy.passes
        if passes.kind != "head" or not passes.compiled or scheduler.prediction is not None:
            raise PolicyError(f"{scheduler.label} cannot change its order while it runs; take fcfs or easy, without predictions")
        self._order = switch(orders)
        own = replace(scheduler, policy=replace(scheduler.policy, order=self._order))
        self._simulation = NumberEngine(run_of(workload, own, overrun=overrun).problem)
        self._simulation.compile()

    def choose(self, which: int, moment: int) -> None:
        """The order at this place is in force from this time (s) on."""
        numbers = self._order.numbers
        numbers[0], numbers[1], numbers[2] = numbers[1], which, moment

    def run_until(self, moment: int) -> None:
        """Handle all events before this time (s)."""
        self._simulation.run_until(moment - 1)

    def finish(self) -> None:
        """Run to the end."""
        self._simulation.run()

    @property
    def start(self) -> Array:
        """Start of each job, int64 s; -1 while it waits."""
        return self._simulation.start

    def state(self) -> State:
        """A copy of where the simulation is."""
        return self._simulation.copy(), self._order.numbers.copy()

    def restore(self, state: State) -> None:
        """Go back to where it was then."""
        self._simulation, self._order.numbers[:] = state[0].copy(), state[1]
