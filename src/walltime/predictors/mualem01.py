"""Estimates from the history of the same program: mean and standard deviations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from walltime.compiled.jit import kernel
from walltime.compiled.prediction_memory import GENERAL, OWN, CompiledPredictor
from walltime.declared import Field
from walltime.errors import WorkloadError
from walltime.predictors.base import Alike, FinishedJob, Jobs, SubmittedJob
from walltime.predictors.key_history import KeyPredictor, append

WEEK = 7 * 86400
FORGET = ("key", "sliding", "global", "none")


@dataclass(frozen=True)
class Mualem01History(KeyPredictor):
    """Mean runtime plus a number of standard deviations, over earlier similar jobs, otherwise over all earlier jobs.

    The whole workload, used as the fallback, is a key like any other. The standard deviation of a single record is 0.

    Source: mualem01, section 4.4.
    """

    key: Alike = "program"
    """columns that define similar jobs; the paper's key is `program`: executable, user and processors"""
    deviations: Annotated[float, Field(least=0, most=100)] = 1.5
    """number of added standard deviations: 1.5 or, more conservatively, 3"""
    week: Literal["key", "sliding", "global", "none"] = "key"
    """records that are discarded after 7 days. With `key`: all records of a key if its last job ended more than 7 days before a submission.
    With `sliding`: each record older than this. With `global`: all records at each multiple of a week from the start of the log"""
    min_jobs: Annotated[int, Field(least=1)] = 1
    """a key with fewer records is not used"""
    sample: bool = False
    """whether to use the sample standard deviation instead of the population standard deviation"""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the key, and the whole workload."""
        return (self.key, "all")

    def record(self, job: FinishedJob) -> tuple[int, int]:
        """Return end and runtime."""
        return job.end, job.runtime

    def estimate(self, job: SubmittedJob, ended: list[tuple[int, int]]) -> float | None:
        """Return mean plus standard deviations, if there are enough records; discard old ones."""
        now = job.now
        if self.week == "key" and ended and now - ended[-1][0] > WEEK:
            ended.clear()
        elif self.week == "sliding":
            ended[:] = [record for record in ended if now - record[0] <= WEEK]
        elif self.week == "global":
            ended[:] = [record for record in ended if record[0] // WEEK == now // WEEK]
        count = len(ended)
        if count < self.min_jobs:
            return None
        mean = sum(runtime for _, runtime in ended) / count
        variance = max(float(sum(runtime * runtime for _, runtime in ended)) / count - mean * mean, 0.0)
        if self.sample:
            variance = variance * count / (count - 1) if count > 1 else 0.0
        return mean + self.deviations * math.sqrt(variance)

    def compiled(self, jobs: Jobs) -> CompiledPredictor:
        """Return the compiled form; raises WorkloadError if the sum of the squared runtimes could overflow."""
        if len(jobs.runtime) and float(jobs.runtime.max()) ** 2 * len(jobs.runtime) >= 2.0**62:
            raise WorkloadError("the sum of the squared runtimes is too large for mualem01-history; use another predictor")
        options = (self.min_jobs, FORGET.index(self.week), int(self.sample))
        memory = jobs.memory([self.key], options=options, factors=(self.deviations,))
        return CompiledPredictor(predict_by_mualem01, observe_by_mualem01, None, memory)


# ------------------------------------------------------------------------------------------------------------ compiled form

LEAST, WEEK_RULE, SAMPLE = 0, 1, 2
DEVIATIONS = 0
STALE_KEY, STALE_RECORDS, ALL_AT_ONCE, NEVER = (FORGET.index(rule) for rule in ("key", "sliding", "global", "none"))


def predict_by_mualem01(learning, job, now):
    """Return mean plus standard deviations of the key's runtimes, or else of all; -1 if there are too few."""
    key = learning.key[job, 0]
    if key >= 0:
        seconds = _mean_and_deviations(learning, learning.keys[key], now)
        if seconds >= 0:
            learning.jobs[job].basis = OWN
            return seconds
    learning.jobs[job].basis = GENERAL
    return _mean_and_deviations(learning, learning.keys[learning.keys.size - 1], now)


def observe_by_mualem01(learning, job, now):
    """Append a job that has ended to the history of its key, and to the history of all jobs."""
    key = learning.key[job, 0]
    if key >= 0:
        _remember(learning, key, job, now)
    _remember(learning, learning.keys.size - 1, job, now)
    return 0


@kernel
def _remember(learning, key, job, now):
    """Append a job to a history."""
    history = learning.keys[key]
    _forget_old(learning, history, now, False)
    ran = learning.jobs[job].ran
    history.total += ran
    history.squares += ran * ran
    append(learning, key, job)


@kernel
def _mean_and_deviations(learning, history, now):
    """Return mean plus standard deviations of a history's runtimes, s; -1 if there are too few."""
    _forget_old(learning, history, now, True)
    count = history.ended - history.expired
    if count < learning.options[LEAST]:
        return -1.0
    mean = history.total / count
    variance = max(history.squares / count - mean * mean, 0.0)
    if learning.options[SAMPLE]:
        variance = variance * count / (count - 1) if count > 1 else 0.0
    return mean + learning.factors[DEVIATIONS] * math.sqrt(variance)


@kernel
def _forget_old(learning, history, now, predicting):
    """Discard records that are old by the rule; a stale key is detected only at a prediction."""
    rule = learning.options[WEEK_RULE]
    while history.expired < history.ended:
        last = history.ended - 1 if rule == STALE_KEY else history.expired
        ended_at = learning.jobs[learning.fifo[history.first + last]].ended_at
        if rule == STALE_KEY:
            old = predicting and now - ended_at > WEEK
        elif rule == STALE_RECORDS:
            old = now - ended_at > WEEK
        else:
            old = rule == ALL_AT_ONCE and ended_at // WEEK < now // WEEK
        if not old:
            return
        ran = learning.jobs[learning.fifo[history.first + history.expired]].ran
        history.total -= ran
        history.squares -= ran * ran
        history.expired += 1
