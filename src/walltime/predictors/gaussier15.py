"""Runtimes predicted by online regression on a job and its user's history, updated after every job that ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from walltime.engine.jit import kernel
from walltime.engine.learning import GENERAL, OWN, Compiled
from walltime.errors import PolicyError
from walltime.predictors.base import Basis, FinishedJob, Guess, Predictor, StartedJob, SubmittedJob
from walltime.predictors.known import Jobs

BASE = 19
"""Number of base features."""
PRODUCTS = BASE * (BASE + 1) // 2
"""Features of the regression: the 190 products of two base features, squares included; the first is 1, so these include the base."""
DAY, WEEK = 86400, 7 * 86400
LARGEST_EXPONENT = 50.0
"""Beyond this exponent the exponential loss continues with constant slope, to avoid overflow."""

CURVES = ("abs", "square", "exp")
WEIGHTS = ("one", "log_r_over_n", "log_n_over_r", "log_one_over_rn", "log_rn")


@dataclass(frozen=True)
class Gaussier15(Predictor):
    """An online regression on products of features of the job, its user, and the time of day and week.

    When a job with n processors ends after r seconds, one gradient step reduces weight(r, n) loss(p - r - threshold) + l2 |w|^2 / 2,
    where p is the model's current value for the features that the job had at submission. The loss of an error e is c |e| (`abs`),
    c e^2 (`square`) or exp(c |e|) (`exp`): `over` and `over_coefficient` c apply if the prediction was too long (e > 0), `under`
    and `under_coefficient` if it was too short. `threshold`: the best error, s. `weight`: `one` is 1, `log_rn` 1 + log(r n),
    `log_r_over_n` 5 + log(r / n), `log_n_over_r` 5 + log(n / r), `log_one_over_rn` 11 + log(1 / (r n)), with r at least 1 s;
    negative weights count as 0. `eta`: the learning rate. `l2`: the regularization of the coefficients w. The defaults are the
    paper's best loss, the E-Loss. The prediction is |w.x|; until a job has ended, the request.

    Source: gaussier15 (SC'15). The loss curves, weights and constants are those of the authors' program. Different from it are some
    features and the products (see `features`); the start values and the count of steps in `NormalizedGradient`; the request, not
    1 s, until a job has ended; and the bounds on r, weights and exponents. So these are not the published predictions: on real logs
    they are far too short (mean accuracy about 0.1).

    >>> Gaussier15(under="square", threshold=60.0).label
    'gaussier15:under=square,threshold=60.0'
    """

    name: ClassVar[str] = "gaussier15"
    key: ClassVar[str] = "user"
    over: Literal["abs", "square", "exp"] = "square"
    under: Literal["abs", "square", "exp"] = "abs"
    over_coefficient: float = 1.0
    under_coefficient: float = 1.0
    threshold: float = 0.0
    weight: Literal["one", "log_r_over_n", "log_n_over_r", "log_one_over_rn", "log_rn"] = "log_rn"
    eta: float = 5000.0
    l2: float = 4e9

    def __post_init__(self) -> None:
        for name, known in (("over", CURVES), ("under", CURVES), ("weight", WEIGHTS)):
            if getattr(self, name) not in known:
                raise PolicyError(f"unknown {name} {getattr(self, name)!r} of gaussier15; known are {', '.join(known)}")
        for name in ("over_coefficient", "under_coefficient", "threshold", "eta", "l2"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise PolicyError(f"the {name} of gaussier15 must be a number of at least 0, not {value!r}")

    def begin(self) -> Regression:
        """A learner that has seen no job."""
        return Regression(self)

    def compiled(self, jobs: Jobs) -> Compiled:
        """The compiled form."""
        memory = jobs.memory(
            [self.key],
            options=(CURVES.index(self.over), CURVES.index(self.under), WEIGHTS.index(self.weight)),
            factors=(self.over_coefficient, self.under_coefficient, self.threshold, self.eta, self.l2),
            counts=COUNTS,
            features=BASE,
            model=(4, PRODUCTS),
        )
        return Compiled(predict_by_gaussier15, observe_by_gaussier15, note_start_by_gaussier15, memory)


@dataclass
class Run:
    """A job that has started; times in s; `runtime` is -1 while it runs."""

    start: int
    procs: int
    runtime: int = -1


@dataclass
class User:
    """The history of a user; times in seconds."""

    last: list[Run] = field(default_factory=list)
    """The last three jobs to start, the latest first."""
    running: dict[int, Run] = field(default_factory=dict)
    ended: int = 0
    total_runtime: int = 0
    total_procs: int = 0
    last_end: int = 0


def features(job: SubmittedJob, user: User) -> list[float]:
    """The 19 base features of a job at its submission, `job.now`, in this order.

    0 the constant 1. 1 to 3: runtimes of the user's last three jobs to start, the latest first; the elapsed time of one that
    is still running; at most the job's request, which also replaces missing ones. 4 the request. 5, 6 the mean of the first two
    and of all three of 1 to 3, or of as many as there are, else the request. 7 the mean runtime of the user's jobs that have
    ended. 8 the time since the last of them ended. 9 the job's processors over the mean of those jobs. 7 to 9 are 0 if no job
    has ended. 10 the processors of the user's running jobs; 11, 12 the sum and maximum of their elapsed times, and 13 their
    number. 14 to 17 cosine and sine of the time of day, then of the time of week, both from the start of the log. 18 the job's
    processors. Times in seconds.

    The authors' program differs: 1 to 3 refer to the last three jobs that have ended; 6 is 0.33 times the sum of 1 to 3; 12 and 13
    are exchanged; and its regression has 157 features: these, the products of two different ones of 1 to 16, and the squares of 1 to 18.
    """
    now, ask = job.now, float(job.requested)
    lasts = [min(float(run.runtime if run.runtime >= 0 else now - run.start), ask) for run in user.last]
    first, second, third = lasts + [ask] * (3 - len(lasts))
    of_two = (first + second) / 2.0 if len(lasts) >= 2 else first
    of_three = (first + second + third) / 3.0 if len(lasts) == 3 else of_two
    mean, since, share = 0.0, 0.0, 0.0
    if user.ended:
        mean = user.total_runtime / user.ended
        since = float(now - user.last_end)
        share = job.procs / (user.total_procs / user.ended)
    elapsed = [now - run.start for run in user.running.values()]
    busy = float(sum(run.procs for run in user.running.values()))
    day, week = 2.0 * math.pi * (now % DAY) / DAY, 2.0 * math.pi * (now % WEEK) / WEEK
    lately = [first, second, third, ask, of_two, of_three]
    running = [busy, float(sum(elapsed)), float(max(elapsed, default=0)), float(len(elapsed))]
    times = [math.cos(day), math.sin(day), math.cos(week), math.sin(week)]
    return [1.0, *lately, mean, since, share, *running, *times, float(job.procs)]


def products(base: Sequence[float]) -> list[float]:
    """All products of two features, squares included, ordered by the first and then by the second."""
    return [base[i] * base[j] for i in range(len(base)) for j in range(i, len(base))]


def slope(curve: str, coefficient: float, error: float) -> float:
    """The derivative of a loss curve at an error of at least 0, s."""
    if curve == "abs":
        return coefficient
    if curve == "square":
        return coefficient * 2.0 * error
    return coefficient * math.exp(min(coefficient * error, LARGEST_EXPONENT))


def loss_slope(scheme: Gaussier15, error: float) -> float:
    """The derivative of the loss with respect to a prediction that is `error` seconds too long; 0 at the threshold itself."""
    beyond = error - scheme.threshold
    if beyond > 0:
        return slope(scheme.over, scheme.over_coefficient, beyond)
    if beyond < 0:
        return -slope(scheme.under, scheme.under_coefficient, -beyond)
    return 0.0


def weight(kind: str, runtime: int, procs: int) -> float:
    """The weight of a job with this runtime (s) and number of processors."""
    r, n = float(max(runtime, 1)), float(procs)
    if kind == "one":
        return 1.0
    if kind == "log_rn":
        return max(1.0 + math.log(r * n), 0.0)
    if kind == "log_r_over_n":
        return max(5.0 + math.log(r / n), 0.0)
    if kind == "log_n_over_r":
        return max(5.0 + math.log(n / r), 0.0)
    return max(11.0 + math.log(1.0 / (r * n)), 0.0)


class NormalizedGradient:
    """A linear model w.x, updated example by example, independent of the units of the features.

    Source: Ross, Mineiro, Langford, UAI 2013, as in the authors' program, whose sums start at 1e-9, not 0, and whose count of steps
    starts at 1 and grows by 2. Sums are taken in the order of the features, as in the kernel, so that both agree to the last bit.
    """

    def __init__(self, scheme: Gaussier15, size: int):
        self.scheme = scheme
        self.w = [0.0] * size
        self.largest = [0.0] * size  # s: the largest |x| so far
        self.squares = [0.0] * size  # G: the sum of the squared gradients
        self.norm = 0.0  # N
        self.steps = 0  # t

    def value(self, x: Sequence[float]) -> float:
        """w.x."""
        total = 0.0
        for w, value in zip(self.w, x, strict=True):
            total += w * value
        return total

    def step(self, x: Sequence[float], truth: float, weight: float) -> None:
        """One step down the gradient of the loss of this example."""
        w, largest, squares = self.w, self.largest, self.squares
        for i, value in enumerate(x):
            if abs(value) > largest[i]:
                w[i] *= largest[i] / abs(value)
                largest[i] = abs(value)
        for i, value in enumerate(x):
            if largest[i] > 0:
                self.norm += (value / largest[i]) * (value / largest[i])
        self.steps += 1
        by_prediction = weight * loss_slope(self.scheme, self.value(x) - truth)
        for i, value in enumerate(x):
            gradient = by_prediction * value + self.scheme.l2 * w[i]
            squares[i] += gradient * gradient
            scale = math.sqrt(self.norm * squares[i] / self.steps) * largest[i]
            if scale > 0:
                w[i] -= self.scheme.eta * gradient / scale


class Regression:
    """Keeps the history of each user, and each job's features until it ends; a job of an unknown user has no history."""

    def __init__(self, scheme: Gaussier15):
        self.scheme = scheme
        self.model = NormalizedGradient(scheme, PRODUCTS)
        self.users: dict[int, User] = {}
        self.base: dict[int, list[float]] = {}

    def _user(self, job: SubmittedJob) -> User:
        return User() if job.user < 0 else self.users.setdefault(job.user, User())

    def predict(self, job: SubmittedJob) -> Guess | None:
        """|w.x|, once a job has ended."""
        user = self._user(job)
        base = self.base[job.index] = features(job, user)
        seconds = abs(self.model.value(products(base)))
        if self.model.steps == 0 or not math.isfinite(seconds):
            return None
        return Guess(seconds, Basis.OWN if user.ended else Basis.GENERAL)

    def started(self, job: StartedJob) -> None:
        """Add a job to the user's running jobs."""
        user = self._user(job)
        run = user.running[job.index] = Run(job.start, job.procs)
        user.last = [run, *user.last[:2]]

    def observe(self, job: FinishedJob) -> None:
        """Learn from the features that the job had at submission."""
        user = self._user(job)
        run = user.running.pop(job.index, None)
        if run is not None:
            run.runtime = job.runtime
        user.ended += 1
        user.total_runtime += job.runtime
        user.total_procs += job.procs
        user.last_end = job.end
        base = self.base.pop(job.index, None)
        if base is not None:
            self.model.step(products(base), float(job.runtime), weight(self.scheme.weight, job.runtime, job.procs))


# ------------------------------------------------------------------------------------------------------------ compiled form
#
# Each sum is taken in the same order as above, so that both forms agree to the last bit. `fifo` holds the started jobs of a user.
# `counts` holds, per user: the number of started jobs; the first of these that may still run; the number of running jobs, their
# processors, and the sum of their starts; the processors of the jobs that have ended, and the last end.

STARTED, FIRST_RUNNING, RUNNING, RUNNING_PROCS, RUNNING_SINCE, ENDED_PROCS, LAST_END = range(7)
COUNTS = 7
OVER, UNDER, LEARNING_WEIGHT = 0, 1, 2
OVER_COEFFICIENT, UNDER_COEFFICIENT, SURPLUS, ETA, L2 = 0, 1, 2, 3, 4
W, LARGEST, GRADIENTS, SUMS = 0, 1, 2, 3
"""Rows of `model`: coefficients, the largest value of each feature so far, the sum of its squared gradients; N and the number of steps."""
NORM, STEPS = 0, 1
BY_ABS, BY_SQUARE = CURVES.index("abs"), CURVES.index("square")
EVENLY, BY_LOG_R_OVER_N, BY_LOG_N_OVER_R = WEIGHTS.index("one"), WEIGHTS.index("log_r_over_n"), WEIGHTS.index("log_n_over_r")
BY_LOG_RN = WEIGHTS.index("log_rn")


def note_start_by_gaussier15(learning, job, now):
    """Record that a job starts now."""
    known = learning.jobs[job]
    known.started_at = now
    key = learning.key[job, 0]
    if key >= 0:
        counts = learning.counts[key]
        learning.fifo[learning.keys[key].first + counts[STARTED]] = job
        counts[STARTED] += 1
        counts[RUNNING] += 1
        counts[RUNNING_PROCS] += known.procs
        counts[RUNNING_SINCE] += now
    return 0


def predict_by_gaussier15(learning, job, now):
    """The absolute value of w.x at the submission of a job; -1 until a job has ended."""
    base, w = learning.features[job], learning.model[W]
    _find_features(learning, learning.jobs[job], learning.key[job, 0], now, base)
    total = 0.0
    place = 0
    for i in range(BASE):
        for j in range(i, BASE):
            total += w[place] * (base[i] * base[j])
            place += 1
    seconds = abs(total)
    if learning.model[SUMS, STEPS] == 0.0 or not math.isfinite(seconds):
        return -1.0
    key = learning.key[job, 0]
    learning.jobs[job].basis = OWN if key >= 0 and learning.keys[key].ended > 0 else GENERAL
    return seconds


@kernel
def _find_features(learning, known, key, now, base):
    """Compute the features of a job and its user now, in the order of `features`."""
    for i in range(BASE):
        base[i] = 0.0
    base[0] = 1.0
    ask = float(known.requested)
    procs = known.procs
    for i in range(1, 7):
        base[i] = ask
    if key >= 0:
        user, counts = learning.keys[key], learning.counts[key]
        for i in range(min(counts[STARTED], 3)):
            last = learning.jobs[learning.fifo[user.first + counts[STARTED] - 1 - i]]
            ran = last.ran if last.ran >= 0 else now - last.started_at
            base[1 + i] = min(float(ran), ask)
        base[5] = (base[1] + base[2]) / 2.0 if counts[STARTED] >= 2 else base[1]
        base[6] = (base[1] + base[2] + base[3]) / 3.0 if counts[STARTED] >= 3 else base[5]
        if user.ended > 0:
            base[7] = user.total / user.ended
            base[8] = float(now - counts[LAST_END])
            base[9] = procs / (counts[ENDED_PROCS] / user.ended)
        if counts[RUNNING] > 0:
            while learning.jobs[learning.fifo[user.first + counts[FIRST_RUNNING]]].ran >= 0:
                counts[FIRST_RUNNING] += 1
            longest = learning.jobs[learning.fifo[user.first + counts[FIRST_RUNNING]]]
            base[10] = float(counts[RUNNING_PROCS])
            base[11] = float(counts[RUNNING] * now - counts[RUNNING_SINCE])
            base[12] = float(now - longest.started_at)
            base[13] = float(counts[RUNNING])
    day, week = 2.0 * math.pi * (now % DAY) / DAY, 2.0 * math.pi * (now % WEEK) / WEEK
    base[14] = math.cos(day)
    base[15] = math.sin(day)
    base[16] = math.cos(week)
    base[17] = math.sin(week)
    base[18] = float(procs)


def observe_by_gaussier15(learning, job, now):
    """Learn from a job that ends now, whose runtime is recorded, with the features that it had at submission."""
    known = learning.jobs[job]
    key = learning.key[job, 0]
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
    if learning.features[job, 0] > 0:
        _step(learning, known, learning.features[job])
    return 0


@kernel
def _step(learning, known, base):
    """One step of the normalized gradient."""
    options, factors, sums = learning.options, learning.factors, learning.model[SUMS]
    w, largest, gradients = learning.model[W], learning.model[LARGEST], learning.model[GRADIENTS]
    norm = sums[NORM]
    predicted = 0.0
    place = 0
    for i in range(BASE):
        for j in range(i, BASE):
            value = base[i] * base[j]
            if abs(value) > largest[place]:
                w[place] *= largest[place] / abs(value)
                largest[place] = abs(value)
            if largest[place] > 0:
                norm += (value / largest[place]) * (value / largest[place])
            predicted += w[place] * value
            place += 1
    sums[NORM] = norm
    sums[STEPS] += 1.0
    weight = _weight(options[LEARNING_WEIGHT], known.ran, known.procs)
    by_prediction = weight * _loss_slope(options, factors, predicted - float(known.ran))
    place = 0
    for i in range(BASE):
        for j in range(i, BASE):
            gradient = by_prediction * (base[i] * base[j]) + factors[L2] * w[place]
            gradients[place] += gradient * gradient
            scale = math.sqrt(norm * gradients[place] / sums[STEPS]) * largest[place]
            if scale > 0:
                w[place] -= factors[ETA] * gradient / scale
            place += 1


@kernel
def _weight(kind, runtime, procs):
    """The weight of a job."""
    r, n = float(max(runtime, 1)), float(procs)
    if kind == EVENLY:
        return 1.0
    if kind == BY_LOG_RN:
        return max(1.0 + math.log(r * n), 0.0)
    if kind == BY_LOG_R_OVER_N:
        return max(5.0 + math.log(r / n), 0.0)
    if kind == BY_LOG_N_OVER_R:
        return max(5.0 + math.log(n / r), 0.0)
    return max(11.0 + math.log(1.0 / (r * n)), 0.0)


@kernel
def _loss_slope(options, factors, error):
    """The derivative of the loss with respect to the prediction."""
    beyond = error - factors[SURPLUS]
    if beyond > 0:
        return _slope(options[OVER], factors[OVER_COEFFICIENT], beyond)
    if beyond < 0:
        return -_slope(options[UNDER], factors[UNDER_COEFFICIENT], -beyond)
    return 0.0


@kernel
def _slope(curve, coefficient, error):
    if curve == BY_ABS:
        return coefficient
    if curve == BY_SQUARE:
        return coefficient * 2.0 * error
    return coefficient * math.exp(min(coefficient * error, LARGEST_EXPONENT))
