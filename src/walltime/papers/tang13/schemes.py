"""tang13's schemes: define similar jobs by keys, predict on a log, and list the simulated months."""

import itertools
from collections.abc import Sequence

from walltime.metrics.months import month_starts
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
from walltime.predictors import Tang13
from walltime.simulation.replay import Replay, predict

SCHEMES = ("p95", "p85", "p70")
"""The statistics in tang13's simulations."""
KEYS = ("user", "project", "double", "triple")
METHOD = (
    "A job's history is the jobs that had ended in the log when it was submitted; a reconstruction has no ends, so the ends under EASY "
    "with the users' estimates are used. On logs without projects the triple key is user and requested time, and there is no project key."
)


def keys_of(subject: Subject) -> dict[str, str]:
    """Return the keys of tang13 that the log supports, with their columns; without groups, `request` for the triple key."""
    return {key: key for key in KEYS} if subject.has_column("group") else {"user": "user", "triple": "request"}


def replays(
    study: Study, subject: Subject, key: str, statistics: Sequence[str], *, window: int | None = None, threshold: float = 0.0
) -> list[Replay]:
    """Return the predictions of a scheme for each statistic, computed once; by default from all history, as in tang13, Figs. 4 to 7."""
    schemes = [Tang13(key=key, statistic=statistic, window=window, threshold=threshold) for statistic in statistics]
    known: dict[Tang13, Replay] = study.memory.setdefault(("replays", subject.name), {})
    missing = [scheme for scheme in schemes if scheme not in known]

    def show(done: int) -> None:
        study.report(f"{subject.name}: predictions", done, len(missing))

    if missing:
        replayed = predict(subject.workload, missing, workers=study.workers, progress=show)
        known.update(zip(missing, replayed, strict=True))
    return [known[scheme] for scheme in schemes]


def simulated_replays(study: Study, subject: Subject) -> dict[str, Replay]:
    """Return the predictions of tang13's simulations by statistic, with the triple key and one month of history."""
    return dict(zip(SCHEMES, replays(study, subject, keys_of(subject)["triple"], SCHEMES, window=1), strict=True))


def months_of(subject: Subject) -> list[tuple[str, int, int]]:
    """Return name, begin and end (s of the log) of each month: calendar months, or 30 days each where the log has no dates."""
    w = subject.workload
    begin, first, last = subject.unix_start_time, int(w.submit[0]), int(w.submit[-1])
    if begin is None:
        month = 30 * 86_400
        return [(f"month {k + 1}", first + k * month, first + (k + 1) * month) for k in range((last - first) // month + 1)]
    calendar = month_starts(begin + first, begin + last, w.origin.tzinfo())
    return [(f"{year}-{month:02d}", moment - begin, end - begin) for (year, month, moment), (*_, end) in itertools.pairwise(calendar)]
