"""Fit the queue order as a conditional logit model of the job that starts, with effects of users and projects.

At each recorded start, the alternatives are the waiting jobs that no window forbids and that fit into the processors of the started job
plus the free processors. The log-odds of an alternative are a weighted sum of its features, which are the features of the order `linear:`,
plus effects of its user and its project.

Source: McFadden 1974, Conditional logit analysis of qualitative choice behavior, section 2; alternatives are drawn at random as in McFadden
1978, Modelling the choice of residential location, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from walltime.inference.candidate_rules import FEWEST, RecordedLog
from walltime.machine.windows import Hours
from walltime.metrics import busy_processors, levels_at

Array = np.ndarray
HOUR = 3600
MOST_ALTERNATIVES = 30
"""Largest number of alternatives; a random sample is drawn if there are more."""
ROUNDS = 200
"""Maximum number of Newton steps, rarely reached."""
STILL = 1e-5
"""The fit ends when the log-likelihood per choice gains less than this in a step."""
FORMS = (("wait", "log-procs", "log-planned"), ("log-wait", "log-procs", "log-planned"), ("log-procs", "log-planned"))
"""The features of fitted orders: hours of waiting, the logarithms of seconds of waiting, of processors and of the request in s."""
SPREAD = 1.0
"""Assumed standard deviation of the effects of users and projects (ridge penalty)."""


class Choices(NamedTuple):
    """Recorded choices, with one row per alternative; the rows of a choice are adjacent, and the started job is the first of them.

    `first`: the first row of each choice, int64; `job`: the index of each row's job in the workload, int64; `wait`: its wait so far, h.
    """

    first: Array
    job: Array
    wait: Array

    @property
    def choice(self) -> Array:
        """Return the index of the choice to which each row belongs."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self.job)))


@dataclass(frozen=True)
class OrderChoice:
    """The hit rates of orders over held-out choices.

    `choices`: their number, with `alternatives` on average. Each other field is the share of choices in which the started job ranks first:
    by chance, in order of arrival, and by the logit without effects, with effects of users, and with effects of users and projects. The
    last two rates are None if the log names fewer than two users or projects.
    """

    choices: int
    alternatives: float
    chance: float
    arrival: float
    fitted: float
    users: float | None
    projects: float | None


def recorded_choices(
    log: RecordedLog, procs: int, chosen: Array, windows: Sequence[tuple[Hours, Array]] = (), eligible: Array | None = None, seed: int = 0
) -> Choices:
    """Return the choices at the recorded starts of the chosen jobs (bool) on a machine, or a part of it, with `procs` processors.

    `windows`: hours, and the jobs (bool) to which they apply. `eligible`: the time before which a job is not an alternative, int64 s.
    Choices with a single alternative are omitted.
    """
    w, draw = log.workload, np.random.Generator(np.random.Philox(seed))
    mine = np.flatnonzero(log.known & chosen)
    mine = mine[np.argsort(log.start[mine], kind="stable")]
    start, size, submit = log.start[mine], w.procs[mine], w.submit[mine]
    free = procs - levels_at(*busy_processors(start, log.end[mine], size), start)  # all that start at an instant have started
    by_submit = np.argsort(submit, kind="stable")
    come = np.searchsorted(submit[by_submit], start, side="right")
    waiting: list[int] = []
    first, jobs, waits, count, seen = [], [], [], 0, 0
    for k in range(len(mine)):
        waiting += by_submit[seen : come[k]].tolist()
        seen = max(seen, int(come[k]))
        if k == 0 or start[k] != start[k - 1]:
            waiting = [job for job in waiting if start[job] >= start[k]]
        others = np.array(waiting, np.int64)
        others = others[(start[others] > start[k]) & (size[others] <= free[k] + size[k])]
        if eligible is not None:
            others = others[eligible[mine[others]] <= start[k]]
        for hours, holds in windows:
            held = holds[mine[others]]
            others = others[~(held & _shut(hours, int(start[k]), w.requested[mine[others]]))]
        if not len(others):
            continue
        if len(others) >= MOST_ALTERNATIVES:
            others = draw.choice(others, MOST_ALTERNATIVES - 1, replace=False)
        first.append(count)
        jobs += [mine[[k]], mine[others]]
        waits += [(start[k] - submit[[k]]) / HOUR, (start[k] - submit[others]) / HOUR]
        count += 1 + len(others)
    nothing = np.zeros(0, np.int64)
    return Choices(np.array(first, np.int64), np.concatenate([nothing, *jobs]), np.concatenate([nothing / HOUR, *waits]))


def _shut(hours: Hours, now: int, requested: Array) -> Array:
    """Return whether a window forbids jobs with these requests to start now, bool."""
    following = int(np.searchsorted(hours.begin, now, side="right"))
    if following > 0 and now < hours.end[following - 1]:
        return np.ones(len(requested), bool)
    return (requested > hours.begin[following] - now) & hours.crossing if following < len(hours.begin) else np.zeros(len(requested), bool)


def fitted_logit(choices: Choices, used: Array, features: Array, groups: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Return the weights of the features and the effects of each grouping, fitted to the choices `used` (bool).

    `features`: float64, shape (rows, features). `groups`: for each grouping, such as users, the group number of each row. The
    log-likelihood is concave and the steps of the effects are bounded, so each step increases it.
    """
    choice, weights = choices.choice, np.zeros(features.shape[1])
    mine = used[choice]
    effects = [np.zeros(int(group.max(initial=0)) + 1) for group in groups]
    top = np.zeros(len(choice), bool)
    top[choices.first] = True
    last = -np.inf
    for _ in range(ROUNDS):
        for part in range(1 + len(groups)):
            odds, likelihood = _odds(choices, features @ weights + sum(own[group] for own, group in zip(effects, groups, strict=True)))
            surprise = np.where(mine, top - odds, 0.0)
            if part == 0:
                weights = weights + _newton(choices, features, np.where(mine, odds, 0.0), surprise)
                continue
            group, own = groups[part - 1], effects[part - 1]
            gradient = np.bincount(group, surprise, len(own)) - own / SPREAD**2
            effects[part - 1] = own + gradient / (np.bincount(group, np.where(mine, odds, 0.0), len(own)) + 1 / SPREAD**2)
        now = float(likelihood[used].mean()) if used.any() else 0.0
        if now - last < STILL:
            break
        last = now
    return weights, effects


def _odds(choices: Choices, score: Array) -> tuple[Array, Array]:
    """Return the probability of each row within its choice, and the log-likelihood of each choice."""
    choice = choices.choice
    score = score - np.maximum.reduceat(score, choices.first)[choice]
    total = np.add.reduceat(np.exp(score), choices.first)
    return np.exp(score) / total[choice], score[choices.first] - np.log(total)


def _newton(choices: Choices, features: Array, odds: Array, surprise: Array) -> Array:
    """Return a Newton step for the weights of the features."""
    mean = np.add.reduceat(features * odds[:, None], choices.first)[choices.choice]
    spread = (features - mean) * np.sqrt(odds)[:, None]
    step: Array = np.linalg.solve(spread.T @ spread + 1e-6 * np.eye(features.shape[1]), features.T @ surprise)
    return step


def fitted_weights(choices: Choices, log: RecordedLog, used: Array, form: Sequence[str]) -> dict[str, float]:
    """Return the weights of these features (FORMS), fitted without effects to the choices whose started job is in `used` (bool).

    All weights are 0 if a longer wait would lower a job's rank, because such an order would starve jobs.
    """
    weights, _ = fitted_logit(choices, used[choices.job[choices.first]], _features(choices, log, form), [])
    own = dict(zip(form, weights.tolist(), strict=True))
    return own if own[form[0]] > 0 or "wait" not in form[0] else dict.fromkeys(form, 0.0)


def _features(choices: Choices, log: RecordedLog, form: Sequence[str]) -> Array:
    w, job = log.workload, choices.job
    values = {
        "wait": choices.wait,
        "log-wait": np.log(choices.wait * HOUR + 1),
        "log-procs": np.log(w.procs[job]),
        "log-planned": np.log(np.maximum(w.requested[job], 1)),
    }
    return np.stack([values[name] for name in form], axis=1)


def order_choice(choices: Choices, log: RecordedLog, used: Array, judged: Array) -> OrderChoice | None:
    """Fit the order to the choices whose started job is in `used` (bool), and test it on those in `judged`; None if either has too few."""
    if not len(choices.first):
        return None
    w, job, starter = log.workload, choices.job, choices.job[choices.first]
    fit, judge = used[starter], judged[starter]
    if fit.sum() < FEWEST or judge.sum() < FEWEST:
        return None
    features = _features(choices, log, FORMS[0])
    names = [name for name in ("user", "group") if name in w.columns and len(np.unique(w.columns[name])) > 1]
    groups = [_numbers(w.columns[name], starter[fit], job) for name in names]
    counts = np.diff(choices.first, append=len(job))[judge]

    def share(score: Array) -> float:
        best = np.maximum.reduceat(score, choices.first)
        ties = np.add.reduceat((score == best[choices.choice]).astype(float), choices.first)
        return float(np.where(score[choices.first] == best, 1 / ties, 0)[judge].mean())

    def fitted(groups: Sequence[Array]) -> float:
        weights, effects = fitted_logit(choices, fit, features, groups)
        return share(features @ weights + sum(own[group] for own, group in zip(effects, groups, strict=True)))

    return OrderChoice(
        choices=int(judge.sum()),
        alternatives=float(counts.mean()),
        chance=float((1 / counts).mean()),
        arrival=share(choices.wait),
        fitted=fitted([]),
        users=fitted(groups[:1]) if "user" in names else None,
        projects=fitted(groups) if "group" in names else None,
    )


def _numbers(column: Array, fitted: Array, rows: Array) -> Array:
    """Return the group number of each row: 1, 2, ... for values with enough starts, 0 for all others."""
    values, counts = np.unique(column[fitted], return_counts=True)
    often = values[(counts >= FEWEST) & (values >= 0)]
    if not len(often):
        return np.zeros(len(rows), np.int64)
    place = np.searchsorted(often, column[rows]).clip(max=len(often) - 1)
    return np.where(often[place] == column[rows], place + 1, 0)
