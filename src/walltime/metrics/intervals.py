"""Every kind of interval that the program prints, with its scope, level and method.

An interval has one scope: an interval over shaken copies does not cover other logs. Each kind is therefore declared here, so that pages,
terminal and JSON use the same words, and `validation/coverage.py` measures how often each kind contains the truth.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from walltime.errors import PolicyError
from walltime.wording import shown

LEVEL = 0.90
"""The level of all intervals for which no other level is printed."""
SHOWN_LEVEL = f"{100 * LEVEL:.0f} %"


def shown_level(level: float = LEVEL) -> str:
    """Return a level in percent, without trailing zeros.

    >>> shown_level(), shown_level(0.995)
    ('90 %', '99.5 %')
    """
    return f"{100 * level:.6g} %"


def check_level(level: object) -> float:
    """Return a level of intervals; raise PolicyError unless it is a number from 0.5 to below 1."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.5 <= level < 1:
        raise PolicyError(f"the level of intervals must be from 0.5 to below 1, such as 0.95, not {shown(level)}", "number_out_of_range")
    return float(level)


SCOPES: Mapping[str, str] = {
    "shaken copies of this log": "the same jobs with each submission shifted by up to 30 s; nothing about other weeks, users or logs",
    "other seeds": "more runs made in the same way with other seeds, from one shaken log or one model",
    "these runs": "the runs that were made; nothing about other runs",
    "sampling of weeks": "the mean over many more weeks like the log's, with the same machine and users, who submit as they did",
    "resampled weeks": "other logs made of whole weeks of this one; they lack weeks that the log does not have",
    "sampling of users": "the mean over many more users like the log's, in the same schedule",
    "the long run": "the mean of an infinite run, provided that it has one",
    "sampling of windows": "the mean over many more windows of the same log or subjects, with the same users and load",
    "other training runs": "one more agent, trained in the same way with another seed",
    "this job": "one job, as far as it resembles earlier jobs of its kind",
}
"""The scopes of intervals, by the names used in all outputs, and their meanings."""


@dataclass(frozen=True)
class IntervalKind:
    """A kind of interval; `of`: one of `SCOPES`; `level`: nominal coverage, None if it depends on the number of runs and is printed."""

    of: str
    method: str
    level: float | None = LEVEL
    commands: tuple[str, ...] = ()
    """commands that print it; empty if only Python or items of papers do"""


KINDS: Mapping[str, IntervalKind] = {
    "replications.mean": IntervalKind("other seeds", "mean over runs, Student's t", commands=("simulate", "compare", "campaign report")),
    "replications.difference": IntervalKind(
        "other seeds", "mean over pairs of runs with the same seed, Student's t", commands=("compare", "campaign report", "paper run")
    ),
    "replications.band": IntervalKind(
        "other seeds",
        "one more run: smallest to largest of under 20 runs, 5th to 95th percentile of more",
        level=None,
        commands=("simulate", "compare", "campaign report"),
    ),
    "shaken.range": IntervalKind(
        "shaken copies of this log",
        "one more copy: smallest to largest of under 20 copies, 5th to 95th percentile of more",
        level=None,
        commands=("dialects",),
    ),
    "runs.percentiles": IntervalKind("these runs", "5th to 95th percentile, as in tsafrir06", level=None, commands=("paper run",)),
    "shaken.copy": IntervalKind(
        "shaken copies of this log",
        "one more copy, or the difference in it, Student's t",
        commands=("compare", "what-if", "estimates", "benchmark predictions"),
    ),
    "weeks": IntervalKind(
        "sampling of weeks",
        "mean over the jobs, Student's t over five parts of the log, wider toward outliers; withheld if the queue hardly ever empties",
        commands=("what-if", "calibrate", "benchmark predictions"),
    ),
    "weeks.logs": IntervalKind(
        "resampled weeks", "one more such log: smallest to largest of those simulated", level=None, commands=("what-if",)
    ),
    "start-times": IntervalKind(
        "this job",
        "its start: from the 5 % to the 95 % quantile of similar earlier cases, adjusted by how often earlier intervals failed",
        commands=("slurm start-times", "slurm score", "calibrate"),
    ),
    "suggestion.risk": IntervalKind(
        "this job",
        "upper bound on a share, Clopper and Pearson's, for as many kills as the risk allows",
        level=0.95,
        commands=("suggest", "estimates"),
    ),
    "bootstrap": IntervalKind("sampling of users", "mean over the jobs, whole users resampled"),
    "batch-means": IntervalKind(
        "the long run",
        "Student's t over five blocks of batches, merged until they hardly correlate; withheld if fewer than ten would be left",
        commands=("simulate",),
    ),
    "batch-means.published": IntervalKind("the long run", "as in mualem01: batches assumed independent", commands=("paper run",)),
    "benchmark.total": IntervalKind(
        "sampling of windows",
        "geometric mean over windows, Student's t within subjects",
        commands=("benchmark run", "benchmark leaderboard", "search"),
    ),
    "benchmark.behind": IntervalKind(
        "sampling of windows", "paired over windows, for all pairs of schedulers at once", commands=("benchmark leaderboard",)
    ),
    "tuning.change": IntervalKind("sampling of windows", "paired, Student's t over five blocks of windows", commands=("tune",)),
    "learn.windows": IntervalKind("sampling of windows", "paired, Student's t over five blocks of windows", commands=("learn evaluate",)),
    "learn.seeds": IntervalKind("other training runs", "the change by one more agent, paired, Student's t", commands=("learn evaluate",)),
}
"""The kinds by name. A new interval is declared here, has an experiment in `validation/`, and is shown with the name of its scope."""
