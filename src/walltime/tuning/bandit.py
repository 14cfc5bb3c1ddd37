"""The queue order chosen anew every week, from simulations of the last weeks or from what was seen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import effective_times
from walltime.metrics import Interval, halves_differ, summarize
from walltime.policy import Policy, parse_order
from walltime.provenance import version
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.simulation.windows import DAY, LEAST, change_interval, check_cost, log_cost
from walltime.tuning.fitting import SIMPLE
from walltime.tuning.switching import Switching, can_switch
from walltime.tuning.trials import with_order
from walltime.workload import Workload, check_workload

__all__ = ["STRATEGIES", "Weekly", "choose_weekly"]

Array = np.ndarray
STRATEGIES = ("simulate", "epsilon", "ucb")
EPSILON = 0.1
"""How often `epsilon` takes an order at random."""
CANDIDATES = tuple(name for name in SIMPLE if can_switch(parse_order(name)))


CAVEATS = (
    "The intervals are of such weeks of one log, over five blocks of neighbours; on another machine it may be otherwise.",
    "Each interval holds its 90 % alone: of many orders some seem clearly better or worse by chance, and the best of them is "
    "chosen afterwards.",
    "Users might submit other jobs if the queue were ordered otherwise; the log's jobs stay as they are.",
)
"""The caveats of all weekly choices."""


@dataclass(frozen=True)
class Weekly:
    """The result of `walltime.tuning.choose_weekly`.

    `choices`: the order of each week. `against`: by scheduler with one order all along, the change of the metric in percent with its 90 %
    interval over five blocks of neighbouring `weeks`; less is better. `halves_differ`: those against which the change differs between the
    earlier and the later half of the weeks.
    """

    log: str
    sha256: str
    metric: str
    policy: str
    strategy: str
    orders: tuple[str, ...]
    choices: tuple[str, ...]
    against: dict[str, Interval]
    halves_differ: tuple[str, ...]
    weeks: int
    settings: dict[str, Any]

    @property
    def verdict(self) -> list[str]:
        """Against the scheduler as it is, against the order that would have been best all along, and how many are better or worse."""
        said = [self._said(self.policy)] if self.policy in self.against else []
        others = [label for label in self.against if label != self.policy]
        best = max(others, key=lambda label: self.against[label].mean)
        if len(others) == 1:
            return [*said, self._said(best)]
        said.append(
            f"{self._said(best)} Nobody knew beforehand that this order would be the best of the {len(others)}, and the "
            "interval does not include that choice."
        )
        changes = [self.against[label] for label in others]
        worse, better = sum(one.high < 0 for one in changes), sum(one.low > 0 for one in changes)
        rest = len(others) - worse - better
        said.append(
            f"All along, {worse} of these orders are clearly worse than weekly choices, {better} clearly better, {rest} "
            "neither, each compared alone."
        )
        return said

    def _said(self, label: str) -> str:
        """The comparison with this scheduler all along, in a sentence."""
        name, change = self.metric.replace("_", " "), self.against[label]
        span = change.as_change("such weeks", f"{self.weeks} weeks")
        if change.low <= 0 <= change.high:
            return f"No clear difference of the {name} to {label} all along: {span}."
        return f"The {name} is {'lower' if change.high < 0 else 'higher'} than under {label} all along: {span}."

    @property
    def caveats(self) -> tuple[str, ...]:
        """The caveats, in sentences."""
        if not self.halves_differ:
            return CAVEATS
        names = ", ".join(self.halves_differ)
        return (
            f"The halves of this log differ beyond chance in the change against {names}: these intervals are of these weeks only.",
            *CAVEATS,
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self) | {"verdict": self.verdict, "caveats": list(self.caveats), "version": version()}


def choose_weekly(
    workload: Workload,
    policy: Policy | Scheduler | str = "easy",
    *,
    orders: Sequence[str] = CANDIDATES,
    strategy: str = "simulate",
    metric: str = "mean_bounded_slowdown",
    days: int = 7,
    look: int = 1,
    seed: int = 0,
    overrun: str = "kill",
    progress: Callable[[int], None] | None = None,
) -> Weekly:
    """Choose the queue order for each next week from what is known at its begin, and compare with each order all along.

    `strategy`: `simulate` simulates the last `look` weeks under each order from the state of machine and queue at their begin, and takes
    the best; `epsilon` (greedy) and `ucb` (upper confidence bound) know only how the orders did in the weeks in which they were chosen. A
    week's cost is the `metric` over the jobs that waited at its begin or were submitted in it; a job that still waits at its end has waited
    so far, and one that has not ended counts with its estimate. `days`: of a week. `policy`: fcfs or easy, without predictions. `progress`
    is called with the number of weeks done.

    After Gaussier, Lelong, Reis, Trystram, IEEE TPDS 29 (2018), with and without simulations; the state and the costs are ours. The
    simulated weeks have the jobs' real runtimes, also of those that had not ended. Raises PolicyError for orders or policies that cannot
    change, WorkloadError for a log of under three weeks.
    """
    check_workload(workload)
    check_cost(metric)
    base = Scheduler.of(policy)
    candidates = [parse_order(text) for text in orders]
    if len({one.label for one in candidates}) < max(2, len(candidates)):
        raise PolicyError("weekly choices need two different orders or more, each once")
    if strategy not in STRATEGIES:
        raise PolicyError(f"unknown strategy {strategy!r}; known are {', '.join(STRATEGIES)}")
    if days < 1 or look < 1:
        raise PolicyError(f"a week needs 1 day or more, and a look back 1 week or more, not {days} and {look}")
    zero = int(workload.submit[0]) if len(workload) else 0
    count = (int(workload.submit[-1]) - zero) // (days * DAY) if len(workload) else 0
    if count < 3 or workload.feedback:
        raise WorkloadError(f"{workload.origin.name} has {count} weeks of {days} days; weekly choices need 3 at least, and no feedback")
    begins = [zero + week * days * DAY for week in range(count + 1)]
    running = Switching(workload, base, candidates, overrun)
    measure = _Measure(workload, metric, overrun)
    chooser = _Chooser(len(candidates), strategy, seed)
    choices, states = [0], [running.state()]
    for week in range(1, count + 1):
        now = begins[week]
        running.run_until(now)
        real = running.start
        choice = choices[-1]
        if strategy == "simulate":
            back = max(0, week - look)
            here, costs = running.state(), []
            for which in range(len(candidates)):
                if all(one == which for one in choices[back:]):
                    costs.append(measure(real, real, begins[back], now))
                    continue
                running.restore(states[0])
                running.choose(which, begins[back])
                running.run_until(now)
                costs.append(measure(running.start, real, begins[back], now))
            running.restore(here)
            states = [*states, here][-look:]
            lowest = int(np.argmin(costs))
            choice = lowest if costs[lowest] < costs[choice] else choice
        else:
            chooser.saw(choice, measure(real, real, begins[week - 1], now))
            choice = chooser.choose()
        running.choose(choice, now)
        choices.append(choice)
        if progress is not None:
            progress(week)
    running.finish()
    own, weeks = measure.by_week(running.start, begins)
    fixed = [with_order(base, one, "order") for one in candidates]
    changes = {one.label: own - measure.by_week(simulate(workload, one, overrun=overrun).start, begins)[0] for one in fixed}
    return Weekly(
        log=workload.origin.name,
        sha256=workload.origin.sha256,
        metric=metric,
        policy=base.label,
        strategy=strategy,
        orders=tuple(one.label for one in candidates),
        choices=tuple(candidates[which].label for which in choices),
        against={label: change_interval(change) for label, change in changes.items()},
        halves_differ=tuple(label for label, change in changes.items() if halves_differ(change)),
        weeks=weeks,
        settings={"days": days, "look": look, "seed": seed, "overrun": overrun},
    )


class _Measure:
    """The logarithm of the cost of some jobs."""

    def __init__(self, workload: Workload, metric: str, overrun: str):
        self.workload, self.metric = workload, metric
        self.runtime, self.believed = effective_times(workload, overrun)

    def __call__(self, start: Array, real: Array, begin: int, now: int) -> float:
        """Of the jobs that waited at `begin` or came until `now`, as far as is known now; `real`: the starts that happened."""
        submit = self.workload.submit
        chosen = (submit < now) & ((start < 0) | (start >= begin))
        known = (real >= 0) & (real + self.runtime <= now)
        until = np.where(start < 0, now, start)
        return self._cost(chosen, until, np.where(known, self.runtime, self.believed))

    def by_week(self, start: Array, begins: Sequence[int]) -> tuple[Array, int]:
        """Of the jobs submitted in each week but the first, float64; weeks with under 20 jobs are left out."""
        submit = self.workload.submit
        masks = [(submit >= begin) & (submit < end) for begin, end in itertools.pairwise(begins[1:])]
        costs = [self._cost(mask, start, self.runtime) for mask in masks if mask.sum() >= LEAST]
        return np.array(costs), len(costs)

    def _cost(self, chosen: Array, start: Array, runtime: Array) -> float:
        if not chosen.any():
            return 0.0
        w = self.workload
        columns = {"submit": w.submit, "start": start, "runtime": runtime, "procs": w.procs, "backfilled": np.zeros(len(w), bool)}
        summary = summarize(**{name: column[chosen] for name, column in columns.items()}, machine_procs=w.machine_procs, offered_load=0.0)
        return float(log_cost(getattr(summary, self.metric), self.metric))


class _Chooser:
    """Chooses by the costs seen of each order; every order is tried once first."""

    def __init__(self, orders: int, strategy: str, seed: int):
        self.seen: list[list[float]] = [[] for _ in range(orders)]
        self.strategy = strategy
        self.random = np.random.Generator(np.random.Philox(seed))

    def saw(self, which: int, cost: float) -> None:
        """An order had this cost in a week."""
        self.seen[which].append(cost)

    def choose(self) -> int:
        """The order for the next week."""
        untried = [which for which, costs in enumerate(self.seen) if not costs]
        if untried:
            return untried[0]
        means = np.array([np.mean(costs) for costs in self.seen])
        if self.strategy == "epsilon":
            return int(self.random.integers(len(means))) if self.random.random() < EPSILON else int(np.argmin(means))
        weeks = np.array([len(costs) for costs in self.seen])
        spread = float(np.std(np.concatenate(self.seen)))
        return int(np.argmin(means - spread * np.sqrt(2 * np.log(weeks.sum()) / weeks)))
