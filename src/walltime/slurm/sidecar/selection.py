"""Which waiting jobs get a TimeMin next: their users take turns, so that nobody's jobs fill what may be adjusted."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping

from walltime.slurm.sidecar.ledger import Entry
from walltime.slurm.sidecar.overruns import Overruns
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.rules import time_min_of
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob, array_of

Predict = Callable[[QueueJob, float], float | None]
"""The runtime, s, of a waiting job at a Unix time; None if too little is known of jobs like it."""
Choice = tuple[QueueJob, int, float | None]


def choose(
    waiting: Mapping[str, QueueJob],
    entries: Mapping[str, Entry],
    predict: Predict,
    overdue: Overruns,
    settings: SidecarSettings,
    now: float,
    report: Report,
) -> Iterator[Choice]:
    """The jobs that are to be adjusted, each with its TimeMin, minutes, and its prediction, s, as long as there is room for them.

    All that would be adjusted are noted in the report as wanted, the others with their reason as left.
    """
    wanted: list[Choice] = []
    tasks = Counter(array_of(key) for key, job in waiting.items() if job.time_min)
    factors: dict[str, int] = {}
    for key, job in waiting.items():
        if key in report.left or job.time_min or job.limit is None:
            continue
        entry = entries.get(key)
        seconds = None if entry is not None else predict(job, now)
        if job.user not in factors:
            factors[job.user] = overdue.factor(job.user, settings)
        longer = None if seconds is None else seconds * factors[job.user]
        minutes = entry.time_min if entry is not None else time_min_of(longer, job.limit, settings)
        if minutes is None:
            report.left[key] = "nothing to gain, or too little known"
            continue
        array = array_of(key)
        if array and tasks[array] >= settings.tasks:
            report.left[key] = "enough tasks of its array have one"
            continue
        tasks[array] += 1
        report.wanted[key] = minutes
        wanted.append((job, minutes, seconds))
    room = int(settings.share * len(waiting)) - report.adjusted
    of_user = Counter(job.user for job in waiting.values() if job.time_min and job.key not in report.left)
    users = {job.user for job in waiting.values()}
    most = int(settings.share * len(waiting)) // 2 if len(users) > 1 and settings.share < 1 else len(waiting)
    for choice in in_turn(wanted):
        user = choice[0].user
        if report.set_now < room and of_user[user] < max(most, 1):
            before = report.set_now
            yield choice
            of_user[user] += report.set_now - before


def in_turn(choices: list[Choice]) -> Iterator[Choice]:
    """One job of each user, then another one of each, in the order of the queue."""
    queues: dict[str, deque[Choice]] = {}
    for choice in choices:
        queues.setdefault(choice[0].user, deque()).append(choice)
    while queues:
        for user in list(queues):
            yield queues[user].popleft()
            if not queues[user]:
                del queues[user]
