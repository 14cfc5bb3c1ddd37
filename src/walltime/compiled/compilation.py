"""Messages for a waiting user: that parts of the engine are being compiled, or why the compiled engine is not used.

This module is independent of the compiler.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

QUICK = 3.0
"""Compilations that take fewer seconds than this are not reported."""


@dataclass(frozen=True)
class Compilation:
    """The progress in compiling one entry, a function that Python calls, with the functions that it calls."""

    entry: str
    """name of the entry, as in `walltime.engine.interface.load.ENTRIES`"""
    what: str
    """a short description of its purpose"""
    functions: int
    """number of functions in it; fewer are compiled if another entry has compiled some of them"""
    seconds: float
    """approximate duration on an ordinary machine, s"""
    done: int = 0
    """functions compiled so far"""
    finished: bool = False

    def __str__(self) -> str:
        """Return the message for a waiting user."""
        return f"compiling the engine for {self.what}: {self.functions} functions, about {self.seconds:.0f} s, once on this machine"


Listener = Callable[[Compilation], None]


def print_compilation(state: Compilation) -> None:
    """Print one line if compilation takes seconds, in a terminal or a notebook, but not in workers and pipes."""
    begins = state.done == 0 and not state.finished
    if begins and state.seconds >= QUICK and _is_watched():
        print(f"walltime: {state}", file=sys.stderr, flush=True)


def _is_watched() -> bool:
    import multiprocessing

    if threading.current_thread() is not threading.main_thread() or multiprocessing.parent_process() is not None:
        return False
    return sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)


_listener: Listener | None = print_compilation
_noticed: set[str] = set()
_noticing = threading.Lock()


def listen(listener: Listener | None) -> Listener | None:
    """Call this function when a compilation starts, after each function, and at the end; return the previous listener.

    None removes the listener. It is called in the thread that compiles.
    """
    global _listener
    before, _listener = _listener, listener
    _noticed.clear()
    return before


def notify(state: Compilation) -> None:
    """Call the listener, if there is one."""
    if _listener is not None:
        _listener(state)


def notice(line: str, topic: str = "") -> None:
    """Print a line to a waiting user, once per topic (by default the line itself), if there is a listener, a terminal or a notebook."""
    if _listener is None or (_listener is print_compilation and not _is_watched()):
        return
    with _noticing:
        if (topic or line) in _noticed:
            return
        _noticed.add(topic or line)
    print(f"walltime: {line}", file=sys.stderr, flush=True)
