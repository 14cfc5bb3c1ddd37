"""Which jobs may be adjusted, and to what: pure functions."""

from __future__ import annotations

import math

from walltime.slurm.configuration import Configuration, Limits
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob


def exclusion_reason(job: QueueJob, cluster: Configuration, limits: Limits, settings: SidecarSettings, now: float) -> str | None:
    """Why this waiting job must not have a TimeMin of the side-car's, None if it may; `now`: Unix time."""
    if job.limit is None:
        return "it has no time limit"
    if job.held:
        return "it is held"
    for wrong, why in (
        (job.het, "heterogeneous"),
        (job.deadline, "Deadline"),
        (job.licences, "licences"),
        (job.reservation, "reservation"),
    ):
        if wrong:
            return why
    if settings.account and job.account not in settings.account:
        return "account not chosen"
    if settings.partition and not set(settings.partition).issuperset(job.partitions):
        return "partition not chosen"
    if not all(name in cluster.partitions for name in job.partitions):
        return "its partition is unknown"
    if cluster.enforces_limits:
        if not limits.known:
            return "the limits on minutes could not be read"
        if limits.apply_to(job, cluster):
            return "limits on minutes"
    if any(word in job.reason.lower() for word in ("runmin", "minutes", "grpwall")):
        return "limits on minutes"
    if job.begin > now or job.begin == 0 or job.reason.startswith(("Dependency", "BeginTime")):
        return "it cannot start yet"
    reservation = cluster.next_reservation(job.partitions, now)
    # it may start at any time before the next round but one, and would then have its whole limit
    if reservation is not None and now + job.limit * 60 + 4 * settings.every + 120 > reservation.start:
        return "a reservation within its limit"
    return None


def time_min_of(seconds: float | None, limit: int, settings: SidecarSettings) -> int | None:
    """The TimeMin, minutes, of a job with this limit (minutes) and prediction (s); None if none is worth setting.

    >>> [time_min_of(seconds, 60, SidecarSettings()) for seconds in (1201, 5, 3540, None)]
    [21, 10, None, None]
    """
    if seconds is None or not math.isfinite(seconds):
        return None
    minutes = max(math.ceil(seconds / 60), settings.floor)
    return minutes if minutes < limit and minutes <= settings.gain * limit else None
