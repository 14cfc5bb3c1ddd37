"""Predict runtimes by online regression on features of a job and its user's history, updated after each job that ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np

from walltime.compiled.jit import kernel
from walltime.compiled.prediction_memory import GENERAL, OWN, CompiledPredictor
from walltime.declared import Field
from walltime.predictors.base import Basis, FinishedJob, Guess, Jobs, Predictor, StartedJob, SubmittedJob

BASE = 19
"""Number of base features."""
FACTORS = np.array([*((i, 0) for i in range(BASE)), *combinations(range(1, 17), 2), *((i, i) for i in range(1, 19))])
"""Indices of the two base features whose product is each feature: base features (0 is the constant 1), products of 1 to 16, squares."""
FEATURES = len(FACTORS)
"""Number of features of the regression: 19 + 120 + 18 = 157."""
DAY, WEEK = 86400, 7 * 86400
LARGEST_EXPONENT = 709.0
"""Largest exponent for which exp is finite."""
START = 1e-9
"""Initial value of the sums and maxima of the normalised gradient."""

CURVES = ("abs", "square", "exp")
ADDED = {"one": 1.0, "log_r_over_n": 5.0, "log_n_over_r": 5.0, "log_one_over_rn": 11.0, "log_rn": 1.0}
"""The constant that each weight adds to its logarithm."""
WEIGHTS = tuple(ADDED)
READINGS = {"features": ("program", "meant"), "untaught": ("one", "request"), "negative_weights": ("kept", "zero")}


@dataclass(frozen=True)
class Gaussier15(Predictor):
    """An online regression on features of the job, its user, and the time of day and week, and on products of two of them.

    When a job with n processors ends after r seconds, one gradient step reduces `weight(r, n) loss(p - r - threshold) + l2 |w|^2 / 2`,
    where p is the model's current value for the features that the job had at submission. The loss of an error e is c |e| (`abs`), c e^2
    (`square`) or exp(c |e|) (`exp`). The defaults are the paper's best loss, the E-Loss. The prediction is |w.x|, rounded down.

    The defaults follow the authors' program; `features`, `untaught` and `negative_weights` select what the authors may have intended.

    If exp overflows, their program aborts; here learning stops, and the request is predicted from then on.

    Source: gaussier15 (SC'15) and its program: under the dialect `predictsim`, both schedules that were published with their predictions,
    on KTH-SP2 and SDSC-SP2, are equal job for job.

    >>> Gaussier15(under="square", threshold=60.0).label
    'gaussier15:under=square,threshold=60'
    """

    key: ClassVar[str] = "user"
    over: Literal["abs", "square", "exp"] = "square"
    """loss of a prediction that was too long (e > 0)"""
    under: Literal["abs", "square", "exp"] = "abs"
    """loss of a prediction that was too short"""
    over_coefficient: Annotated[float, Field(least=0)] = 1.0
    """c of `over`"""
    under_coefficient: Annotated[float, Field(least=0)] = 1.0
    """c of `under`"""
    threshold: Annotated[float, Field(least=0)] = 0.0
    """the error with the lowest loss, s"""
    weight: Literal["one", "log_r_over_n", "log_n_over_r", "log_one_over_rn", "log_rn"] = "log_rn"
    """weight of a job: `one` is 1, `log_rn` 1 + log(r n), `log_r_over_n` 5 + log(r / n), `log_n_over_r` 5 + log(n / r), `log_one_over_rn`
    11 + log(1 / (r n)), with r at least 1 s"""
    eta: Annotated[float, Field(least=0)] = 5000.0
    """the learning rate"""
    l2: Annotated[float, Field(least=0)] = 4e9
    """the L2 regularisation of the coefficients w"""
    features: Literal["program", "meant"] = "program"
    """`meant` uses the runtimes of the user's last jobs; `program` uses the time since their submission"""
    untaught: Literal["one", "request"] = "one"
    """the prediction until a job has ended: 1 s, or the request"""
    negative_weights: Literal["kept", "zero"] = "kept"
    """learning from jobs with a negative weight: a step in the opposite direction, as in the program, or none"""

    def begin(self) -> Regression:
        """Return a learner that has seen no job."""
        return Regression(self)

    def compiled(self, jobs: Jobs) -> CompiledPredictor:
        """Return the compiled form."""
        readings = (READINGS[name].index(getattr(self, name)) for name in READINGS)
        memory = jobs.memory(
            [self.key],
            options=(CURVES.index(self.over), CURVES.index(self.under), WEIGHTS.index(self.weight), *readings),
            factors=(self.over_coefficient, self.under_coefficient, self.threshold, self.eta, self.l2),
            counts=COUNTS,
            features=BASE,
            model=(MODEL_ROWS, FEATURES),
        )
        memory.model[[LARGEST, GRADIENTS]] = START
        memory.model[SUMS, [NORM, STEPS]] = START, 1.0
        return CompiledPredictor(predict_by_gaussier15, observe_by_gaussier15, note_start_by_gaussier15, memory)


@dataclass
class Run:
    """A job that has started; times in s; `runtime` is -1 while it runs."""

    submit: int
    start: int
    procs: int
    runtime: int = -1


@dataclass
class User:
    """The history of a user, times in s; `last_started`, `last_ended`: the last three jobs to start or to end, the latest first."""

    last_started: list[Run] = field(default_factory=list)
    last_ended: list[Run] = field(default_factory=list)
    running: dict[int, Run] = field(default_factory=dict)
    ended: int = 0
    total_runtime: int = 0
    total_procs: int = 0
    last_end: int = 0


def last_runs(job: SubmittedJob, user: User, meant: bool) -> list[int]:
    """Return up to three times, s, that stand for the runtimes of the user's last jobs, the latest first.

    The program takes the last jobs to end, and for each the time since its submission, unless it was submitted less than its
    runtime ago, which is hardly possible. The authors intended the last jobs to start, and their runtimes or elapsed times.
    """
    now = job.now
    if meant:
        return [run.runtime if run.runtime >= 0 else now - run.start for run in user.last_started]
    return [run.runtime if run.submit + run.runtime > now else now - run.submit for run in user.last_ended]


def features(job: SubmittedJob, user: User, meant: bool = False) -> list[float]:
    """Return the 19 base features of a job at its submission, `job.now`; times in seconds.

    - 0: the constant 1
    - 1 to 3: the user's `last_runs`, each at most the job's request; the request where there is no run
    - 4: the request
    - 5: mean of 1 and 2 (with one run, 1; with none, the request)
    - 6: mean of 1 to 3, in the authors' program 0.33 times their sum (with fewer than three runs, 5)
    - 7: mean runtime of the user's jobs that have ended (0 if none has, as for 8 and 9)
    - 8: time since the last of these jobs ended
    - 9: the job's processors divided by the mean of these jobs' processors
    - 10: processors of the user's running jobs, except those that start at this instant
    - 11 to 13: sum of these jobs' elapsed times, their number, the longest elapsed time
    - 14 to 17: cosine and sine of the time of day, then of the time of week, both counted from the start of the log
    - 18: the job's processors
    """
    now, ask = job.now, float(job.requested)
    lasts = [min(float(seconds), ask) for seconds in last_runs(job, user, meant)]
    first, second, third = lasts + [ask] * (3 - len(lasts))
    of_two = (first + second) / 2.0 if len(lasts) >= 2 else first
    of_three = of_two
    if len(lasts) == 3:
        of_three = (first + second + third) / 3.0 if meant else 0.33 * (first + second + third)
    mean = since = share = 0.0
    if user.ended:
        mean = user.total_runtime / user.ended
        since = float(now - user.last_end)
        share = job.procs / (user.total_procs / user.ended)
    running_jobs = [run for run in user.running.values() if run.start < now]
    elapsed = [now - run.start for run in running_jobs]
    busy = float(sum(run.procs for run in running_jobs))
    day, week = 2.0 * math.pi * (now % DAY) / DAY, 2.0 * math.pi * (now % WEEK) / WEEK
    lately = [first, second, third, ask, of_two, of_three]
    running = [busy, float(sum(elapsed)), float(len(elapsed)), float(max(elapsed, default=0))]
    times = [math.cos(day), math.sin(day), math.cos(week), math.sin(week)]
    return [1.0, *lately, mean, since, share, *running, *times, float(job.procs)]


def all_features(base: Sequence[float]) -> list[float]:
    """Return all features, computed from the base features: 157 numbers."""
    return [base[i] * base[j] for i, j in FACTORS.tolist()]


def loss_slope(scheme: Gaussier15, error: float) -> float:
    """Return the derivative of the loss with respect to a prediction that is `error` seconds too long; infinite if exp overflows.

    It is 0 at the threshold itself.
    """
    beyond = error - scheme.threshold
    if beyond == 0:
        return 0.0
    curve, c = (scheme.over, scheme.over_coefficient) if beyond > 0 else (scheme.under, scheme.under_coefficient)
    size, rise = abs(beyond), c
    if curve == "square":
        rise = c * 2.0 * size
    elif curve == "exp":
        rise = c * math.exp(c * size) if c * size < LARGEST_EXPONENT else math.inf
    return rise if beyond > 0 else -rise


def weight(kind: str, runtime: int, procs: int) -> float:
    """Return the weight of a job with this runtime (s) and number of processors; it may be negative."""
    r, n = float(max(runtime, 1)), float(procs)
    ratio = {"one": 1.0, "log_rn": r * n, "log_r_over_n": r / n, "log_n_over_r": n / r, "log_one_over_rn": 1.0 / (r * n)}
    return ADDED[kind] + math.log(ratio[kind])


class NormalizedGradient:
    """A linear model w.x, updated after each example, whose results do not depend on the units of the features.

    Source: Ross, Mineiro, Langford, UAI 2013, with the start values of the authors' program, which also counts each step twice.
    Sums are taken in the order of the features, as in the kernel, so that both agree to the last bit.
    """

    def __init__(self, scheme: Gaussier15, size: int):
        self.scheme = scheme
        self.w = [0.0] * size
        self.largest = [START] * size  # s: the largest |x| so far
        self.squares = [START] * size  # G: the sum of the squared gradients
        self.norm = START  # N
        self.steps = 1.0  # n

    @property
    def is_untaught(self) -> bool:
        """Return whether no step has been taken."""
        return self.steps == 1.0

    def value(self, x: Sequence[float]) -> float:
        """Return w.x."""
        total = 0.0
        for w, value in zip(self.w, x, strict=True):
            total += w * value
        return total

    def step(self, x: Sequence[float], truth: float, weight: float) -> None:
        """Take one gradient step for the loss of this example."""
        w, largest, squares = self.w, self.largest, self.squares
        total = 0.0
        for i, value in enumerate(x):
            if abs(value) > largest[i]:
                w[i] *= largest[i] / abs(value)
                largest[i] = abs(value)
            total += (value * value) / (largest[i] * largest[i])
        self.norm += total
        by_prediction = weight * loss_slope(self.scheme, self.value(x) - truth)
        for i, value in enumerate(x):
            gradient = by_prediction * value + self.scheme.l2 * w[i]
            squares[i] += gradient * gradient
            w[i] -= self.scheme.eta * gradient / (math.sqrt(self.norm * squares[i] / self.steps) * largest[i])
        self.steps += 2.0


class Regression:
    """The learner: the history of each user, and the features of each job until it ends; jobs of unknown users have no history."""

    def __init__(self, scheme: Gaussier15):
        self.scheme = scheme
        self.model = NormalizedGradient(scheme, FEATURES)
        self.users: dict[int, User] = {}
        self.base: dict[int, list[float]] = {}
        self.predicted_at: dict[int, int] = {}  # the first time at which a job could start

    def _user(self, job: SubmittedJob) -> User:
        return User() if job.user < 0 else self.users.setdefault(job.user, User())

    def predict(self, job: SubmittedJob) -> Guess | None:
        """Return |w.x|, rounded down."""
        user = self._user(job)
        self.predicted_at[job.index] = job.now
        base = self.base[job.index] = features(job, user, meant=self.scheme.features == "meant")
        seconds = abs(self.model.value(all_features(base)))
        if not math.isfinite(seconds) or (self.model.is_untaught and self.scheme.untaught == "request"):
            return None
        return Guess(float(math.floor(seconds)), Basis.OWN if user.ended else Basis.GENERAL)

    def started(self, job: StartedJob) -> None:
        """Add a job to the user's running jobs."""
        user = self._user(job)
        run = user.running[job.index] = Run(self.predicted_at.get(job.index, job.submit), job.start, job.procs)
        user.last_started = [run, *user.last_started[:2]]

    def observe(self, job: FinishedJob) -> None:
        """Learn from the job's features at submission."""
        user = self._user(job)
        run = user.running.pop(job.index, None) or Run(self.predicted_at.get(job.index, job.submit), job.start, job.procs)
        self.predicted_at.pop(job.index, None)
        run.runtime = job.runtime
        user.last_ended = [run, *user.last_ended[:2]]
        user.ended += 1
        user.total_runtime += job.runtime
        user.total_procs += job.procs
        user.last_end = job.end
        if (base := self.base.pop(job.index, None)) is not None:
            mine = weight(self.scheme.weight, job.runtime, job.procs)
            self.model.step(all_features(base), float(job.runtime), mine if self.scheme.negative_weights == "kept" else max(mine, 0.0))


# ------------------------------------------------------------------------------------------------------------ compiled form
#
# Each sum is taken in the same order as above, so that both forms agree to the last bit; work on single features is in separate
# loops, which the compiler turns into vector instructions. `fifo` has the started jobs of a user. `counts` has, for each
# user: the number of started jobs; the first of them that may still run; the number of running jobs, their processors, and the sum
# of their starts; the processors of the jobs that have ended, and the last end; the last three jobs to end, the latest first.
# `place` of a job is the time of its prediction: at its submission, or when it could start first.

STARTED, FIRST_RUNNING, RUNNING, RUNNING_PROCS, RUNNING_SINCE, ENDED_PROCS, LAST_END, LAST, LAST_BUT_ONE, LAST_BUT_TWO = range(10)
COUNTS = 10
OVER, UNDER, LEARNING_WEIGHT, AS_MEANT, REQUEST_FIRST, NONE_NEGATIVE = range(6)
OVER_COEFFICIENT, UNDER_COEFFICIENT, SURPLUS, ETA, L2 = range(5)
W, LARGEST, GRADIENTS, X, TERMS, SUMS = range(6)
MODEL_ROWS = 6
"""Number of rows of `model`: coefficients; largest value of each feature; sum of its squared gradients; features; terms; N and steps."""
NORM, STEPS = 0, 1
_, BY_SQUARE, BY_EXP = range(len(CURVES))
EVENLY, BY_LOG_R_OVER_N, BY_LOG_N_OVER_R, _, BY_LOG_RN = range(len(WEIGHTS))


def note_start_by_gaussier15(learning, job, now):
    """Record that a job starts now."""
    known, key = learning.jobs[job], learning.key[job, 0]
    known.started_at = now
    if key >= 0:
        counts = learning.counts[key]
        learning.fifo[learning.keys[key].first + counts[STARTED]] = job
        counts[STARTED] += 1
        counts[RUNNING] += 1
        counts[RUNNING_PROCS] += known.procs
        counts[RUNNING_SINCE] += now
    return 0


def predict_by_gaussier15(learning, job, now):
    """Return the absolute value of w.x at the submission of a job, rounded down; -1 if nothing is known, or the sums overflowed."""
    known, key = learning.jobs[job], learning.key[job, 0]
    known.place = now
    base, w, x = learning.features[job], learning.model[W], learning.model[X]
    _find_features(learning, known, key, now, base)
    _make_features(base, x)
    total = 0.0
    for i in range(FEATURES):
        total += w[i] * x[i]
    seconds = abs(total)
    if not math.isfinite(seconds) or (learning.options[REQUEST_FIRST] and learning.model[SUMS, STEPS] == 1.0):
        return -1.0
    known.basis = OWN if key >= 0 and learning.keys[key].ended > 0 else GENERAL
    return np.floor(seconds)


@kernel
def _make_features(base, x):
    """Compute all features from the base features."""
    for i in range(FEATURES):
        x[i] = base[FACTORS[i, 0]] * base[FACTORS[i, 1]]


@kernel
def _find_features(learning, known, key, now, base):
    """Compute the base features of a job and its user now, in the order of `features`."""
    ask, procs = float(known.requested), known.procs
    for i in range(BASE):
        base[i] = 1.0 if i == 0 else ask if i < 7 else 0.0
    if key >= 0:
        user, counts = learning.keys[key], learning.counts[key]
        meant = learning.options[AS_MEANT]
        runs = min(counts[STARTED] if meant else user.ended, 3)
        for i in range(runs):
            if meant:
                last = learning.jobs[learning.fifo[user.first + counts[STARTED] - 1 - i]]
                seconds = last.ran if last.ran >= 0 else now - last.started_at
            else:
                last = learning.jobs[counts[LAST + i]]
                seconds = last.ran if last.place + last.ran > now else now - last.place
            base[1 + i] = min(float(seconds), ask)
        base[5] = (base[1] + base[2]) / 2.0 if runs >= 2 else base[1]
        base[6] = base[5]
        if runs >= 3:
            total = base[1] + base[2] + base[3]
            base[6] = total / 3.0 if meant else 0.33 * total
        if user.ended > 0:
            base[7] = user.total / user.ended
            base[8] = float(now - counts[LAST_END])
            base[9] = procs / (counts[ENDED_PROCS] / user.ended)
        number, busy = counts[RUNNING], counts[RUNNING_PROCS]
        place = user.first + counts[STARTED]
        while place > user.first and learning.jobs[learning.fifo[place - 1]].started_at == now:
            place -= 1
            if learning.jobs[learning.fifo[place]].ran < 0:
                number -= 1
                busy -= learning.jobs[learning.fifo[place]].procs
        if number > 0:
            while learning.jobs[learning.fifo[user.first + counts[FIRST_RUNNING]]].ran >= 0:
                counts[FIRST_RUNNING] += 1
            longest = learning.jobs[learning.fifo[user.first + counts[FIRST_RUNNING]]]
            base[10] = float(busy)
            base[11] = float(counts[RUNNING] * now - counts[RUNNING_SINCE])
            base[12] = float(number)
            base[13] = float(now - longest.started_at)
    day, week = 2.0 * math.pi * (now % DAY) / DAY, 2.0 * math.pi * (now % WEEK) / WEEK
    base[14], base[15] = math.cos(day), math.sin(day)
    base[16], base[17] = math.cos(week), math.sin(week)
    base[18] = float(procs)


def observe_by_gaussier15(learning, job, now):
    """Learn from a job that ends now, whose runtime is recorded, with its features at submission."""
    known, key = learning.jobs[job], learning.key[job, 0]
    if key >= 0:
        user, counts = learning.keys[key], learning.counts[key]
        if known.started_at >= 0:
            counts[RUNNING] -= 1
            counts[RUNNING_PROCS] -= known.procs
            counts[RUNNING_SINCE] -= known.started_at
        user.ended += 1
        user.total += known.ran
        counts[ENDED_PROCS] += known.procs
        counts[LAST_END] = now
        counts[LAST_BUT_TWO], counts[LAST_BUT_ONE], counts[LAST] = counts[LAST_BUT_ONE], counts[LAST], job
    if learning.features[job, 0] > 0:
        _step(learning, known, learning.features[job])
    return 0


@kernel
def _step(learning, known, base):
    """Take one step of the normalised gradient."""
    options, factors, model = learning.options, learning.factors, learning.model
    w, largest, gradients, x, terms, sums = model[W], model[LARGEST], model[GRADIENTS], model[X], model[TERMS], model[SUMS]
    _make_features(base, x)
    for i in range(FEATURES):
        size = abs(x[i])
        most = size if size > largest[i] else largest[i]
        w[i] *= largest[i] / most
        largest[i] = most
        terms[i] = (x[i] * x[i]) / (most * most)
    total, predicted = 0.0, 0.0
    for i in range(FEATURES):
        total += terms[i]
        predicted += w[i] * x[i]
    sums[NORM] += total
    weight = _weight(options[LEARNING_WEIGHT], known.ran, known.procs)
    weight = max(weight, 0.0) if options[NONE_NEGATIVE] else weight
    by_prediction = weight * _loss_slope(options, factors, predicted - float(known.ran))
    norm, steps, eta, l2 = sums[NORM], sums[STEPS], factors[ETA], factors[L2]
    for i in range(FEATURES):
        gradient = by_prediction * x[i] + l2 * w[i]
        gradients[i] += gradient * gradient
        w[i] -= eta * gradient / (math.sqrt(norm * gradients[i] / steps) * largest[i])
    sums[STEPS] += 2.0


@kernel
def _weight(kind, runtime, procs):
    """Return the weight of a job."""
    r, n = float(max(runtime, 1)), float(procs)
    if kind == EVENLY:
        return 1.0
    if kind == BY_LOG_RN:
        return 1.0 + math.log(r * n)
    if kind == BY_LOG_R_OVER_N:
        return 5.0 + math.log(r / n)
    if kind == BY_LOG_N_OVER_R:
        return 5.0 + math.log(n / r)
    return 11.0 + math.log(1.0 / (r * n))


@kernel
def _loss_slope(options, factors, error):
    """Return the derivative of the loss with respect to the prediction."""
    beyond = error - factors[SURPLUS]
    if beyond == 0.0:
        return 0.0
    size, side = abs(beyond), 0 if beyond > 0 else 1
    curve, coefficient = options[OVER + side], factors[OVER_COEFFICIENT + side]
    rise = coefficient  # the curve abs
    if curve == BY_SQUARE:
        rise = coefficient * 2.0 * size
    elif curve == BY_EXP:
        exponent = coefficient * size
        rise = coefficient * math.exp(exponent) if exponent < LARGEST_EXPONENT else math.inf
    return rise if beyond > 0 else -rise
