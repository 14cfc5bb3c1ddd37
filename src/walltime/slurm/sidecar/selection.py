"""Choose the waiting jobs to adjust, and their TimeMin. Users take turns, so that no user's jobs take all the room."""

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from walltime.slurm.configuration import Configuration, Limits
from walltime.slurm.sidecar.bounds import Overruns
from walltime.slurm.sidecar.ledger import Entry
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob, array_of

Predict = Callable[[QueueJob, float], float | None]
"""Returns the predicted runtime, s, of a waiting job at a Unix time; None if the log has too few similar jobs."""
Choice = tuple[QueueJob, int, float | None]
"""A job, its TimeMin (minutes), and its predicted runtime (s)."""

NOTHING_TO_GAIN, TOO_LITTLE_KNOWN = "nothing to gain: similar jobs use most of their limits", "too little known: too few similar jobs"


def exclusion_reason(job: QueueJob, cluster: Configuration, limits: Limits, settings: SidecarSettings, now: float) -> str | None:
    """Return why this waiting job must not get a TimeMin; None if it may get one. `now`: Unix time."""
    if job.limit is None:
        return "it has no time limit"
    tests = (
        (job.held, "it is held"),
        (job.het, "heterogeneous"),
        (job.deadline, "Deadline"),
        (job.licences, "licences"),
        (job.reservation, "reservation"),
        (settings.account and job.account not in settings.account, "account not chosen"),
        (settings.partition and not set(settings.partition).issuperset(job.partitions), "partition not chosen"),
        (not all(name in cluster.partitions for name in job.partitions), "its partition is unknown"),
        (cluster.enforces_limits and not limits.known, "the limits on minutes could not be read"),
        (cluster.enforces_limits and limits.apply_to(job, cluster), "limits on minutes"),
        (any(word in job.reason.lower() for word in ("runmin", "minutes", "grpwall")), "limits on minutes"),
        (job.begin > now or job.begin == 0 or job.reason.startswith(("Dependency", "BeginTime")), "it cannot start yet"),
    )
    if reason := next((reason for excluded, reason in tests if excluded), None):
        return reason
    reservation = cluster.next_reservation(job.partitions, now)
    # the job may start as late as the second next round, and then has its full limit
    latest_end = now + job.limit * 60 + 4 * settings.every + 120
    return "a reservation within its limit" if reservation is not None and latest_end > reservation.start else None


def time_min_of(seconds: float | None, limit: int, settings: SidecarSettings) -> int | None:
    """Return TimeMin, minutes, for a job with this limit (minutes) and prediction (s); None if no TimeMin is worth setting.

    >>> [time_min_of(seconds, 60, SidecarSettings()) for seconds in (1201, 5, 3540, None)]
    [21, 10, None, None]
    """
    if seconds is None or not math.isfinite(seconds):
        return None
    minutes = max(math.ceil(seconds / 60), settings.floor)
    return minutes if minutes < limit and minutes <= settings.gain * limit else None


def choose(
    waiting: Mapping[str, QueueJob],
    entries: Mapping[str, Entry],
    predict: Predict,
    overruns: Overruns,
    settings: SidecarSettings,
    now: float,
    report: Report,
) -> Iterator[Choice]:
    """Yield the jobs to adjust, while there is room for them; `now`: Unix time.

    The report lists all jobs that would be adjusted as wanted, and the others, with their reasons, as left.
    """
    wanted: list[Choice] = []
    tasks = Counter(array_of(key) for key, job in waiting.items() if job.time_min)
    factor = cache(lambda user: overruns.factor(user, settings))
    for key, job in waiting.items():
        if key in report.left or job.time_min or job.limit is None:
            continue
        entry = entries.get(key)
        seconds = None if entry is not None else predict(job, now)
        longer = None if seconds is None else seconds * factor(job.user)
        minutes = entry.time_min if entry is not None else time_min_of(longer, job.limit, settings)
        array = array_of(key)
        if minutes is None:
            report.unadjusted[key] = None if longer is None else longer / (60 * job.limit)
            report.left[key] = TOO_LITTLE_KNOWN if longer is None else NOTHING_TO_GAIN
        elif array and tasks[array] >= settings.tasks:
            report.left[key] = "enough tasks of its array are adjusted"
        else:
            tasks[array] += 1
            report.wanted[key] = minutes
            wanted.append((job, minutes, seconds))
    room = int(settings.share * len(waiting)) - report.adjusted
    adjusted = Counter(job.user for job in waiting.values() if job.time_min and job.key not in report.left)
    users = {job.user for job in waiting.values()}
    most = int(settings.share * len(waiting)) // 2 if len(users) > 1 and settings.share < 1 else len(waiting)
    for choice in in_turn(wanted):
        user = choice[0].user
        if report.set_now < room and adjusted[user] < max(most, 1):
            before = report.set_now
            yield choice
            adjusted[user] += report.set_now - before


def in_turn(choices: list[Choice]) -> Iterator[Choice]:
    """Yield the jobs round-robin by user: the first of each user, then the second of each, in queue order."""
    queues: dict[str, deque[Choice]] = {}
    for choice in choices:
        queues.setdefault(choice[0].user, deque()).append(choice)
    while queues:
        for user in list(queues):
            yield queues[user].popleft()
            if not queues[user]:
                del queues[user]
