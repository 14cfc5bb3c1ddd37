"""Limits on what runs at once, in compiled code of the auditor: on machines of pools and of nodes alike.

`place`: the machine of either kind of passes. `limits` has the limits of each job, in a piece that begins at `first`; `most` and `used`
have jobs, processors and second resource of each limit.
"""

from __future__ import annotations

from typing import Any

from walltime.compiled.jit import kernel


@kernel
def within_limits(jobs: Any, place: Any, job: Any) -> Any:
    """Return whether a job may run beside those that run and count towards the same limits."""
    for k in range(place.first[job], place.first[job + 1]):
        one = place.limits[k]
        if place.used[one, 0] + 1 > place.most[one, 0] or place.used[one, 1] + jobs[job].procs > place.most[one, 1]:
            return False
        if place.used[one, 2] + jobs[job].second > place.most[one, 2]:
            return False
    return True


@kernel
def count_start(jobs: Any, place: Any, job: Any) -> None:
    """Count a job that starts towards its limits."""
    for k in range(place.first[job], place.first[job + 1]):
        one = place.limits[k]
        place.used[one, 0] += 1
        place.used[one, 1] += jobs[job].procs
        place.used[one, 2] += jobs[job].second
