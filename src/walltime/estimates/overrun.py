"""Jobs that run longer than requested: their effective runtimes, and the estimates that the scheduler uses."""

from __future__ import annotations

import numpy as np

from walltime.errors import PolicyError
from walltime.workload import Workload

Array = np.ndarray
OVERRUN = ("kill", "extend", "overrun")


def effective_times(workload: Workload, overrun: str) -> tuple[Array, Array]:
    """Effective runtime and the scheduler's estimate of each job, int64 seconds, under an overrun rule.

    `kill`, as in mualem01 and tsafrir06, section I, ends jobs at their request; the papers leave the other rules open.
    """
    return effective(workload.runtime, workload.requested, workload.believed, overrun)


def effective(runtime: Array, requested: Array, believed: Array, overrun: str) -> tuple[Array, Array]:
    """The same for given columns; raises PolicyError for an unknown rule."""
    match overrun:
        case "kill":
            return np.minimum(runtime, requested), believed
        case "extend":
            return runtime, np.maximum(believed, runtime)
        case "overrun":
            return runtime, believed
    raise PolicyError(f"unknown overrun rule {overrun!r}; known are {', '.join(OVERRUN)}")
