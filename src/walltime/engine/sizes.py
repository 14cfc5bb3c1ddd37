"""Size classes: jobs whose sizes lie between the same two powers of two."""

from __future__ import annotations

from walltime.engine.jit import kernel


@kernel
def size_class(procs):
    """0 for 1 processor, 1 for 2 and 3, 2 for 4 to 7, ...: so that a power of two is the smallest size of its class."""
    found = 0
    while procs > 1:
        procs >>= 1
        found += 1
    return found
