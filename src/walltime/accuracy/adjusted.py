"""What adjusted walltimes would gain: schemes of tang13 chosen by replaying the log, and simulated beside the users' estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from walltime import metrics
from walltime.errors import WorkloadError
from walltime.machine import Machine
from walltime.metrics.jobs import accuracy
from walltime.policy import SJF, Easy, Policy
from walltime.predictors import Prediction
from walltime.schedule.schedule import Schedule
from walltime.simulation.replay import Replay, predict
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.simulation.spread import COPIES, Spread, shaking_spread
from walltime.workload import Workload

if TYPE_CHECKING:
    from walltime.predictors import Tang13

THRESHOLD = 0.5
"""Lower bound of the adjustment that tang13 tries, beside none."""
MOST_UNDER, MOST_BAD = 10.0, 1.5
"""Percent of jobs that a scheme may underestimate, and by 30 min or more: what tang13, section 7, reaches with its 85th percentile."""
LISTED = 8
"""Schemes of the replay that are listed."""
USERS, FEW_UNDER, MOST_ACCURATE = "users' estimates", "few underestimates", "most accurate scheme"
OF_PAPER, ALSO_RUNNING, EASY_PLUS_PLUS = "the paper's scheme", "first scheme, running too", "EASY++"
MEANINGS = {
    FEW_UNDER: f"the most accurate scheme that underestimates at most {MOST_UNDER:g} % of the jobs, and {MOST_BAD:g} % by 30 min or more",
    MOST_ACCURATE: "however many jobs it underestimates",
    OF_PAPER: "jobs alike in user, account (if the log says it) and request, 85th percentile, one month (tang13, section 7)",
    ALSO_RUNNING: "adjusted walltimes are believed of running jobs as well (regular)",
    EASY_PLUS_PLUS: "the mean of the user's last two runtimes, and backfilling in order of it (tsafrir07)",
}
"""What is simulated, and why."""
Bars = Callable[[int, str], AbstractContextManager[Any]]
"""Shows progress: of the number of steps and a label, a context with a function of the steps done."""


@contextmanager
def no_bars(total: int, label: str) -> Iterator[None]:
    """Shows nothing."""
    yield None


@dataclass(frozen=True, eq=False)
class AdjustedWalltimes:
    """Schedules with the users' estimates (the first) and with adjusted ones, and the replay by which the schemes were chosen."""

    schedules: Sequence[Schedule]
    reasons: Sequence[str]
    """what each of them is, see MEANINGS"""
    replays: Sequence[Replay]
    """the schemes tried, the most accurate first"""
    spread: Spread | None
    """of the same schedules on shaken copies of the log"""
    instead: str
    """the policy of the machine that takes no predictions, in place of which EASY was simulated; empty if there is none"""

    @property
    def ends(self) -> str:
        """The source of the ends from which the replay learned."""
        return self.replays[0].ends

    def rows(self) -> list[dict[str, Any]]:
        """A row for each schedule: waits (s), bounded slowdown, utilization; accuracy, and percent of jobs underestimated.

        `wait_change`, `slowdown_change`: to the users' estimates, in percent. `wait_clear`: whether shaking the log leaves the change of
        the mean wait its sign, None if that is not known.
        """
        summaries = [schedule.summary() for schedule in self.schedules]
        rows = []
        for k, (schedule, why, s) in enumerate(zip(self.schedules, self.reasons, summaries, strict=True)):
            first = summaries[0]
            w = schedule.workload
            row: dict[str, Any] = {"policy": schedule.label, "what": why}
            row |= {name: getattr(s, name) for name in MEASURES}
            row["wait_change"] = metrics.relative_difference(s.mean_wait, first.mean_wait) if k else 0.0
            row["slowdown_change"] = metrics.relative_difference(s.mean_bounded_slowdown, first.mean_bounded_slowdown) if k else 0.0
            mean, scatter = self.spread.difference("mean_wait", 0, k) if k and self.spread is not None else (None, None)
            row |= {"wait_difference": mean, "wait_scatter": scatter}
            row["wait_clear"] = None if mean is None or scatter is None else abs(mean) > scatter
            if schedule.predictions is None:
                exact = accuracy(schedule.runtime, w.requested)
                row |= {
                    "accuracy": float(exact.mean()),
                    "adjusted": 0.0,
                    "under": float(100 * (schedule.runtime > w.requested).mean()),
                    "bad": 0.0,
                }
            else:
                p = schedule.prediction_summary()
                row |= {"accuracy": p.mean_accuracy, "adjusted": 100 - p.na_percent}
                row |= {"under": p.ue_percent + p.be_percent, "bad": p.be_percent}
            rows.append(row)
        return rows

    def schemes(self, most: int = LISTED) -> list[dict[str, Any]]:
        """The most accurate schemes of the replay, a row each: accuracy, and percent of jobs not adjusted and underestimated.

        Of schemes that come to the same there is only the first, such as one of several windows longer than the log.
        """
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for replay in self.replays:
            row = scheme_row(replay)
            rows.setdefault(tuple(row.values())[1:], row)
            if len(rows) == most:
                break
        return list(rows.values())


MEASURES = ("mean_wait", "median_wait", "p90_wait", "mean_bounded_slowdown", "utilization")
"""Fields of the summary that a row has."""


def scheme_row(replay: Replay) -> dict[str, Any]:
    """A scheme of the replay as a row."""
    s = replay.summary()
    under = s.ue_percent + s.be_percent
    return {
        "predictor": replay.predictor.label,
        "accuracy": s.mean_accuracy,
        "not_adjusted": s.na_percent,
        "under": under,
        "bad": s.be_percent,
    }


def tang13_schemes(workload: Workload, threshold: float = 0.0) -> list[Tang13]:
    """Every key that the log supports, with every statistic and window of tang13; raises WorkloadError for a log without users."""
    from walltime.predictors import STATISTICS, WINDOWS, Tang13  # loads Numba

    def has(name: str) -> bool:
        column = workload.columns.get(name)
        return column is not None and bool((column >= 0).any())

    if not has("user"):
        raise WorkloadError(f"{workload.origin.name} does not have the users of its jobs, so nothing can be learned", "missing_column")
    keys = ("user", "project", "double", "triple") if has("group") else ("user", "request")
    return [Tang13(key=k, statistic=s, window=w, threshold=threshold) for k in keys for s in STATISTICS for w in WINDOWS]


def adjust_walltimes(
    workload: Workload, *, machine: Machine | None = None, replications: int | None = None, progress: Bars = no_bars
) -> AdjustedWalltimes:
    """Choose schemes of tang13 by how well they would have predicted the log, and simulate them beside the users' estimates.

    Under EASY, or the policy of the machine if that backfills and takes predictions. The schemes: the most accurate one that
    underestimates few jobs, the same believed for running jobs too, the most accurate one of all, and the paper's; adjusted walltimes
    are believed while a job waits, the user's once it runs (selective). Beside them EASY++ (tsafrir07). `replications`: shaken copies of
    the log; by default as many as take little time. Raises WorkloadError if the log does not have the users of its jobs.
    Source: tang13, sections 4 to 6.
    """
    schemes = [*tang13_schemes(workload), *tang13_schemes(workload, THRESHOLD)]
    with progress(len(schemes), "schemes replayed") as show:
        replays = predict(workload, schemes, progress=show)
    replays = [replay for _, replay in sorted(zip([r.summary().mean_accuracy for r in replays], replays, strict=True), key=lambda p: -p[0])]
    policy, instead = simulated_policy(machine)
    cases = [(USERS, Scheduler(policy)), *_cases(policy, replays)]
    schedules = []
    for _, scheduler in cases:
        with progress(len(workload), scheduler.label) as show:
            schedules.append(simulate(workload, scheduler, machine=machine, progress=show))
    with progress(replications or COPIES, "shaken copies of the log") as show:
        spread = shaking_spread(schedules, progress=show, copies=replications)
    return AdjustedWalltimes(schedules, [why for why, _ in cases], replays, spread, instead)


def simulated_policy(machine: Machine | None) -> tuple[Policy, str]:
    """The policy to simulate, and that of the machine if it is another."""
    if machine is None or machine.policy is None:
        return Easy(), ""
    own = parse_scheduler(machine.policy).policy
    usable = own.passes.compiled and own.backfills and own.on_numbers
    return (own, "") if usable else (Easy(), own.label)


def _cases(policy: Policy, replays: Sequence[Replay]) -> list[tuple[str, Scheduler]]:
    """The schedulers with predictions, and why each of them is there; none twice."""
    from walltime.predictors import Tang13

    summaries = [replay.summary() for replay in replays]
    few = [k for k, s in enumerate(summaries) if s.ue_percent + s.be_percent <= MOST_UNDER and s.be_percent <= MOST_BAD]
    careful = replays[few[0]].predictor if few else None
    cases = []
    if careful is not None:
        cases.append((FEW_UNDER, Scheduler(policy, Prediction(careful, believe="selective"))))
    cases.append((MOST_ACCURATE, Scheduler(policy, Prediction(replays[0].predictor, believe="selective"))))
    key = "triple" if any(isinstance(r.predictor, Tang13) and r.predictor.key == "triple" for r in replays) else "request"
    cases.append((OF_PAPER, Scheduler(policy, Prediction(Tang13(key=key, statistic="p85", window=1), believe="selective"))))
    best = replays[0].predictor if careful is None else careful
    cases.append((ALSO_RUNNING, Scheduler(policy, Prediction(best, believe="regular"))))
    cases.append((EASY_PLUS_PLUS, Scheduler(Easy(backfill_order=SJF), Prediction("tsafrir07"))))
    seen: dict[str, tuple[str, Scheduler]] = {}
    for why, scheduler in cases:
        seen.setdefault(scheduler.label, (why, scheduler))
    return list(seen.values())
