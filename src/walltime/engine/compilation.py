"""Tells whoever listens that a part of the engine is being compiled, and how far it is. Does not know the compiler."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

QUICK = 3.0
"""Seconds; nobody need be told of what is compiled in less."""


@dataclass(frozen=True)
class Compilation:
    """How far the compilation of an entry is."""

    entry: str
    """name of the entry, as in `walltime.engine.load.ENTRIES`"""
    what: str
    """what it is for, in a few words"""
    functions: int
    """that it consists of; fewer are compiled where another entry shares them"""
    seconds: float
    """that it takes on an ordinary machine, about"""
    done: int = 0
    """functions compiled so far"""
    finished: bool = False

    def __str__(self) -> str:
        """What to tell a person who has to wait."""
        return f"compiling the engine for {self.what}: {self.functions} functions, about {self.seconds:.0f} s, once on this machine"


Listener = Callable[[Compilation], None]


def tell_who_watches(state: Compilation) -> None:
    """Say in one line that something takes seconds, if somebody watches: in a terminal or a notebook, not in workers and pipes."""
    begins = state.done == 0 and not state.finished
    if begins and state.seconds >= QUICK and _somebody_watches():
        print(f"walltime: {state}", file=sys.stderr, flush=True)


def _somebody_watches() -> bool:
    import multiprocessing

    if threading.current_thread() is not threading.main_thread() or multiprocessing.parent_process() is not None:
        return False
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


_listener: Listener | None = tell_who_watches


def listen(listener: Listener | None) -> Listener | None:
    """Call this function when a compilation begins, after each function, and when it has ended; returns the one before.

    None for nobody. It is called in the thread that compiles.
    """
    global _listener
    before, _listener = _listener, listener
    return before


def tell(state: Compilation) -> None:
    """Tell whoever listens."""
    if _listener is not None:
        _listener(state)
