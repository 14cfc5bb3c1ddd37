"""A runtime learned on line: a regression on what is known of the user, updated after every job that ends."""

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
"""Features before the products are taken."""
PRODUCTS = BASE * (BASE + 1) // 2
"""Features of the regression: 190 products of two of the 19, squares included; since the first of these is 1, they are among them."""
DAY, WEEK = 86400, 7 * 86400
LARGEST_EXPONENT = 50.0
"""The exponential loss goes on with the slope that it has here, so that no number overflows."""

CURVES = ("abs", "square", "exp")
WEIGHTS = ("one", "log_r_over_n", "log_n_over_r", "log_one_over_rn", "log_rn")


@dataclass(frozen=True)
class Gaussier15(Predictor):
    """A regression, learned on line, on the products of what is known of the job, its user, and the hour.

    When a job of n processors ends after r seconds, the regression, which had said p when the job was submitted, or would say p
    now, is changed a little so as to lower weight(r, n) loss(p - r - threshold) + l2 |w|^2 / 2. Of an error e the loss is c |e|
    (`abs`), c e^2 (`square`), or exp(c |e|) (`exp`): `over` says which and `over_coefficient` is c where the prediction was too
    long (e > 0); `under` and `under_coefficient` where it was too short. `threshold`: s; so many seconds too long is best.
    `weight` is `one`: 1; `log_rn`: 1 + log(r n); `log_r_over_n`: 5 + log(r / n); `log_n_over_r`: 5 + log(n / r);
    `log_one_over_rn`: 11 + log(1 / (r n)), with r at least 1 s; a negative weight counts as 0. `eta`: the rate of learning. `l2`:
    what holds the coefficients w small. The defaults are the authors' best, the E-Loss. The prediction is |w.x|; until a job
    has ended the request stands.

    Source: Gaussier, Glesser, Reis, Trystram, SC'15. Features, curves, weights and constants are those of the
    authors' program. Unverified, since the paper was not at hand: that the E-Loss has the weight 1 + log(r n) and not log(r n).
    With these constants predictions come out far too short on real logs (mean accuracy about 0.1), so `l2` or the units that it
    is meant for want checking too. Ours: see `features`; that the request stands at first; the bounds on r, on weights and on exponents.

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
        """The same, compiled."""
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
    """A job that has started: s, and processors; `runtime` is -1 while it runs."""

    start: int
    procs: int
    runtime: int = -1


@dataclass
class User:
    """What is known of a user; times in seconds."""

    last: list[Run] = field(default_factory=list)
    """The last three jobs to start, the latest first."""
    running: dict[int, Run] = field(default_factory=dict)
    ended: int = 0
    total_runtime: int = 0
    total_procs: int = 0
    last_end: int = 0


def features(job: SubmittedJob, user: User) -> list[float]:
    """The 19 features of a job at its submission, `job.now`, in this order.

    0 the constant 1. 1 to 3: how long the last three jobs of the user to start ran, the latest first; of one that runs still, how
    long it has run; never more than the job's request, which also stands for those that there are not. 4 the request. 5, 6 the
    mean of the last two and three of 1 to 3, or of as many as there are, else the request. 7 the mean runtime of the user's jobs
    that have ended. 8 the time since the last of them ended. 9 the processors of the job over their mean of those jobs. 7 to 9
    are 0 where no job has ended. 10 the processors that the user's running jobs have; 11, 12 the sum and the largest of the times
    that these have run, and 13 how many there are. 14 to 17 cosine and sine of the time of day, then of the time of week, both
    counted from the beginning of the log's time. 18 the processors of the job. Times in seconds.

    Ours where the authors' description leaves it open: the last three jobs are the last to start, since those that run count;
    times of running jobs are counted from their starts; which second of the day the log begins with does not matter much, since
    both the cosine and the sine are taken.
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
    """All products of two features, squares included, in the order of the first and then of the second."""
    return [base[i] * base[j] for i in range(len(base)) for j in range(i, len(base))]


def slope(curve: str, coefficient: float, error: float) -> float:
    """The derivative of a loss curve at an error of at least 0, s."""
    if curve == "abs":
        return coefficient
    if curve == "square":
        return coefficient * 2.0 * error
    return coefficient * math.exp(min(coefficient * error, LARGEST_EXPONENT))


def loss_slope(scheme: Gaussier15, error: float) -> float:
    """The derivative of the loss by the prediction, where the prediction is `error` seconds too long; 0 at the threshold itself."""
    beyond = error - scheme.threshold
    if beyond > 0:
        return slope(scheme.over, scheme.over_coefficient, beyond)
    if beyond < 0:
        return -slope(scheme.under, scheme.under_coefficient, -beyond)
    return 0.0


def weight(kind: str, runtime: int, procs: int) -> float:
    """How much a job counts that ran for so many seconds on so many processors."""
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
    """A linear model w.x, updated example by example; it does not matter in which units the features are.

    Source: Ross, Mineiro, Langford, UAI 2013, as in the authors' program. The sums are taken in the order of the
    features, as in the kernel, so that both give the same numbers to the last bit.
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
    """Remembers what the features are made of, and each job's features until it ends; a job of an unknown user has no past."""

    def __init__(self, scheme: Gaussier15):
        self.scheme = scheme
        self.model = NormalizedGradient(scheme, PRODUCTS)
        self.users: dict[int, User] = {}
        self.base: dict[int, list[float]] = {}

    def _user(self, job: SubmittedJob) -> User:
        return User() if job.user < 0 else self.users.setdefault(job.user, User())

    def predict(self, job: SubmittedJob) -> Guess | None:
        """|w.x|, once there is something to predict from."""
        user = self._user(job)
        base = self.base[job.index] = features(job, user)
        seconds = abs(self.model.value(products(base)))
        if self.model.steps == 0 or not math.isfinite(seconds):
            return None
        return Guess(seconds, Basis.OWN if user.ended else Basis.GENERAL)

    def started(self, job: StartedJob) -> None:
        """Note that the user has one more job running."""
        user = self._user(job)
        run = user.running[job.index] = Run(job.start, job.procs)
        user.last = [run, *user.last[:2]]

    def observe(self, job: FinishedJob) -> None:
        """Learn from the features that the job had when it was submitted."""
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
# Each sum is taken in the same order as above, so that both forms give the same numbers to the last bit. `fifo` has the jobs of a user
# that have started. What is remembered of a user besides, in `counts`: how many jobs have started; the first of these that may still
# run; how many run, on how many processors, and the sum of their starts; the processors of the jobs that have ended, and the last end.

STARTED, FIRST_RUNNING, RUNNING, RUNNING_PROCS, RUNNING_SINCE, ENDED_PROCS, LAST_END = range(7)
COUNTS = 7
OVER, UNDER, LEARNING_WEIGHT = 0, 1, 2
OVER_COEFFICIENT, UNDER_COEFFICIENT, SURPLUS, ETA, L2 = 0, 1, 2, 3, 4
W, LARGEST, GRADIENTS, SUMS = 0, 1, 2, 3
"""Rows of `model`: coefficients, the largest value of each feature so far, the sum of its squared gradients; N and the steps."""
NORM, STEPS = 0, 1
BY_ABS, BY_SQUARE = CURVES.index("abs"), CURVES.index("square")
EVENLY, BY_LOG_R_OVER_N, BY_LOG_N_OVER_R = WEIGHTS.index("one"), WEIGHTS.index("log_r_over_n"), WEIGHTS.index("log_n_over_r")
BY_LOG_RN = WEIGHTS.index("log_rn")


def note_start_by_gaussier15(learning, job, now):
    """Note that a job starts now."""
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
    """The absolute value of w.x at the submission of a job; -1 as long as nothing has been learned."""
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
    """What is known of a job and its user now, in the order of `features`."""
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
    """Learn from a job that ends now, whose runtime has been noted, with the features that it had when it was submitted."""
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
    """How much a job counts."""
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
    """The derivative of the loss by the prediction."""
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
