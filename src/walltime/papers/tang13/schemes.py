"""tang13's schemes: which jobs are alike, predictions on a log, and the months that are simulated."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

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
    "A job's history is the jobs that had ended in the log when it was submitted; a reconstruction has no ends, so the ends under EASY "
    "with the users' estimates are used. On logs without projects the triple key is user and requested time, and there is no project key."
)


def keys_of(subject: Subject) -> dict[str, str]:
    """Return the keys of tang13 that the log supports, with their columns; without groups, `request` for the triple key."""
    return {key: key for key in KEYS} if subject.has_column("group") else {"user": "user", "triple": "request"}


def replays(study: Study, subject: Subject, schemes: Sequence[Tang13]) -> dict[Tang13, Replay]:
    """Return the predictions of each scheme on the log; none is replayed twice."""
    known: dict[Tang13, Replay] = study.memory.setdefault(("replays", subject.name), {})
    missing = [scheme for scheme in dict.fromkeys(schemes) if scheme not in known]

    def show(done: int) -> None:
        study.report(f"{subject.name}: predictions", done, len(missing))

    if missing:
        replayed = predict(subject.workload, missing, workers=study.workers, progress=show)
        known.update(zip(missing, replayed, strict=True))
    return {scheme: known[scheme] for scheme in schemes}


def scheme_of(key: str, statistic: str, window: int | None = None, threshold: float = 0.0) -> Tang13:
    """Return a scheme by its three dimensions; all history by default, as in tang13, Figs. 4 to 7."""
    return Tang13(key=key, statistic=statistic, window=window, threshold=threshold)


def mean_accuracy(replay: Replay) -> float:
    """Return the mean accuracy of a replay, killed jobs counted at their requests."""
    return replay.summary().mean_accuracy


def accuracy_of(workload: Workload, predicted: Array | None = None) -> Array:
    """Return the accuracy of predictions, or of the users' requests; killed jobs are counted at their requests."""
    return accuracy(np.minimum(workload.runtime, workload.requested), workload.requested if predicted is None else predicted)


def months_of(subject: Subject) -> list[tuple[str, int, int]]:
    """Return name, begin and end (s of the log) of each month: calendar months, or 30 days each where the log has no dates."""
    w = subject.workload
    begin, first, last = subject.unix_start_time, int(w.submit[0]), int(w.submit[-1])
    if begin is None:
        month = 30 * 86_400
        return [(f"month {k + 1}", first + k * month, first + (k + 1) * month) for k in range((last - first) // month + 1)]
    calendar = month_starts(begin + first, begin + last, w.origin.tzinfo())
    return [(f"{year}-{month:02d}", moment - begin, end - begin) for (year, month, moment), (*_, end) in itertools.pairwise(calendar)]


SCHEMES = ("p95", "p85", "p70")


def simulated_scheme(subject: Subject, statistic: str) -> Tang13:
    """Return a scheme of tang13's simulations: triple key, one month of history."""
    return scheme_of(keys_of(subject)["triple"], statistic, window=1)


def class_shares(replay: Replay) -> dict[str, float]:
    """Return the percentage of the jobs in each class."""
    w = replay.workload
    kinds = adjustment_classes(w.runtime, w.requested, replay.predicted, replay.basis)
    return {name: 100 * float((kinds == k).mean()) for k, name in enumerate(CLASSES)}


def statistic_axis(axes: Axes) -> Array:
    """Put the statistics on the horizontal axis; return their places."""
    places = np.arange(len(STATISTICS))
    axes.set_xticks(places, STATISTICS, fontsize=7)
    return places
