"""tang13's schemes: which jobs are alike, what is predicted on a log, and the months that are simulated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from walltime.metrics import adjustment_classes
from walltime.metrics.jobs import accuracy
from walltime.metrics.months import month_starts
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.predictors import Tang13
from walltime.simulation.replay import Replay, predict
from walltime.workload import Workload

Array = np.ndarray

STATISTICS = ("max", "p95", "p90", "p85", "p80", "p70", "median")
WINDOWS = (1, 2, 3, 6, 12, None)
THRESHOLD = 0.5
KEYS = ("user", "project", "double", "triple")
CLASSES = ("NA", "OE", "UE", "BE")
QUARTER = 91 * 86_400
METHOD = (
    "History is what had ended, in the log, when a job is submitted; a reconstruction has no ends, so those of EASY with the users' "
    "estimates stand for them. On logs without projects the triple key is user and requested time, and there is no project key."
)


def keys_of(workload: Workload) -> dict[str, str]:
    """The keys of tang13 that the log supports, and their columns: without groups, `request` for the triple key."""
    group = workload.columns.get("group")
    if group is None or not (group >= 0).any():
        return {"user": "user", "triple": "request"}
    return {key: key for key in KEYS}


def learnable(study: Study) -> list[Subject]:
    """The subjects that have users and their estimates."""
    subjects = []
    for subject in study.subjects:
        users = subject.workload.columns.get("user")
        if users is not None and (users >= 0).any() and subject.has_estimates:
            subjects.append(subject)
    return subjects


def replays(study: Study, subject: Subject, schemes: Sequence[Tang13]) -> dict[Tang13, Replay]:
    """The predictions of each scheme on the log; none is replayed twice."""
    known: dict[Tang13, Replay] = study.memory.setdefault(("replays", subject.name), {})
    missing = [scheme for scheme in dict.fromkeys(schemes) if scheme not in known]

    def show(done: int) -> None:
        if study.progress is not None:
            study.progress(f"{subject.name}: predictions", done, len(missing))

    if missing:
        replayed = predict(subject.workload, missing, workers=study.workers, progress=show)
        known.update(zip(missing, replayed, strict=True))
    return {scheme: known[scheme] for scheme in schemes}


def scheme_of(key: str, statistic: str, window: int | None = None, threshold: float = 0.0) -> Tang13:
    """A scheme by its three dimensions; all history by default, as in tang13, Figs. 4 to 7."""
    return Tang13(key=key, statistic=statistic, window=window, threshold=threshold)


def mean_accuracy(replay: Replay) -> float:
    """Mean accuracy of a replay, killed jobs counted at their requests."""
    return replay.summary().mean_accuracy


def own_accuracy(workload: Workload) -> Array:
    """Accuracy of the users' requests."""
    return accuracy(np.minimum(workload.runtime, workload.requested), workload.requested)


def months_of(subject: Subject) -> list[tuple[str, int, int]]:
    """Name, begin and end (s of the log) of each month: calendar months, or stretches of 30 days where the log has no dates."""
    w = subject.workload
    begin, first, last = subject.unix_start_time, int(w.submit[0]), int(w.submit[-1])
    if begin is None:
        month = 30 * 86_400
        return [(f"month {k + 1}", first + k * month, first + (k + 1) * month) for k in range((last - first) // month + 1)]
    calendar = month_starts(begin + first, begin + last, w.origin.tzinfo())
    ends = [moment - begin for _, _, moment in calendar[1:]]
    return [(f"{year}-{month:02d}", moment - begin, end) for (year, month, moment), end in zip(calendar[:-1], ends, strict=True)]


SCHEMES = ("p95", "p85", "p70")


def simulated_scheme(workload: Workload, statistic: str) -> Tang13:
    """A scheme of tang13's simulations: triple key, one month of history."""
    return Tang13(key=keys_of(workload)["triple"], statistic=statistic, window=1)


def class_shares(replay: Replay) -> dict[str, float]:
    """Percent of the jobs in each class."""
    w = replay.workload
    kinds = adjustment_classes(w.runtime, w.requested, replay.predicted, replay.basis)
    return {name: 100 * float((kinds == k).mean()) for k, name in enumerate(CLASSES)}
