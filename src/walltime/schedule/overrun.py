"""Jobs that run longer than they requested: what they really run, and what the scheduler believes (SPEC Q-05)."""

from __future__ import annotations

import numpy as np

from walltime.errors import PolicyError
from walltime.workload import Workload

Array = np.ndarray
OVERRUN = ("kill", "extend", "overrun")


def effective_times(workload: Workload, overrun: str) -> tuple[Array, Array]:
    """What each job really runs and what the scheduler believes, int64 seconds, under an overrun rule (SPEC Q-05)."""
    return effective(workload.runtime, workload.requested, workload.believed, overrun)


def effective(runtime: Array, requested: Array, believed: Array, overrun: str) -> tuple[Array, Array]:
    """The same for columns by themselves; raises PolicyError for an unknown rule."""
    match overrun:
        case "kill":
            return np.minimum(runtime, requested), believed
        case "extend":
            return runtime, np.maximum(believed, runtime)
        case "overrun":
            return runtime, believed
    raise PolicyError(f"unknown overrun rule {overrun!r}; known are {', '.join(OVERRUN)}")
