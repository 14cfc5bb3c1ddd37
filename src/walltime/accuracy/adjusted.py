"""Adjusted walltimes: choose schemes of tang13 by replaying the log, simulate them, and compare them with the users' estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from walltime import metrics
from walltime.engine.interface.choice import support
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
"""Lower bound on an adjusted walltime, as a share of the request, with which tang13 also tests each scheme."""
MOST_UNDER, MOST_BAD = 10.0, 1.5
"""Largest percentage of jobs that a scheme may underestimate, and underestimate by 30 min or more (tang13, section 7)."""
LISTED = 8
"""Number of schemes in the table of the replay."""
USERS, FEW_UNDER, MOST_ACCURATE = "users' estimates", "few underestimates", "most accurate scheme"
OF_PAPER, ALSO_RUNNING, EASY_PLUS_PLUS = "the paper's scheme", "first scheme, also for running jobs", "EASY++"
MEANINGS = {
    FEW_UNDER: f"the most accurate scheme that underestimates at most {MOST_UNDER:g} % of the jobs, and {MOST_BAD:g} % by 30 min or more",
    MOST_ACCURATE: "regardless of how many jobs it underestimates",
    OF_PAPER: "jobs with the same user, account (if recorded) and request, 85th percentile, one month (tang13, section 7)",
    ALSO_RUNNING: "the scheduler plans with adjusted walltimes for running jobs as well (regular)",
    EASY_PLUS_PLUS: "the mean of the user's last two runtimes; the shortest predicted job is backfilled first (tsafrir07)",
}
"""Descriptions of the simulated schedulers, by name."""
MOST_PLAIN_JOBS = 1000
"""Largest number of jobs for which predictions are simulated in plain Python: on many nodes, long queues take minutes per 1,000 jobs."""
Bars = Callable[[int, str], AbstractContextManager[Any]]
"""A function that shows a progress bar: from the number of steps and a label, it returns a context manager whose value is called with the
number of completed steps."""


def no_bars(total: int, label: str) -> AbstractContextManager[None]:
    """Show no progress."""
    return nullcontext()


@dataclass(frozen=True, eq=False)
class AdjustedWalltimes:
    """Schedules with the users' estimates (the first one) and with adjusted walltimes, and the replay that selected the schemes."""

    schedules: Sequence[Schedule]
    reasons: Sequence[str]
    """the name of each schedule, a key of MEANINGS or `USERS`"""
    replays: Sequence[Replay]
    """the tested schemes, in descending order of accuracy"""
    spread: Spread | None
    """spread of the results over shaken copies of the log"""
    instead: str
    """the machine's policy if EASY was simulated instead, because the policy does not accept predictions; otherwise empty"""

    @property
    def ends(self) -> str:
        """Return the source of the job ends from which predictors learned: `log`, or the simulated policy."""
        return self.replays[0].ends

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each schedule: waits (s), bounded slowdown, utilization, accuracy, and percentage of jobs underestimated.

        `wait_change`, `slowdown_change`: relative to the users' estimates, in percent. `wait_clear`: whether the change of the mean wait
        exceeds its scatter over shaken copies of the log; None if unknown.
        """
        first = self.schedules[0].summary()
        rows = []
        for k, (schedule, reason) in enumerate(zip(self.schedules, self.reasons, strict=True)):
            s, requested = schedule.summary(), schedule.workload.requested
            row: dict[str, Any] = {"policy": schedule.label, "what": reason}
            row |= {name: getattr(s, name) for name in MEASURES}
            row["wait_change"] = metrics.relative_difference(s.mean_wait, first.mean_wait) if k else 0.0
            row["slowdown_change"] = metrics.relative_difference(s.mean_bounded_slowdown, first.mean_bounded_slowdown) if k else 0.0
            mean, scatter = self.spread.difference("mean_wait", 0, k) if k and self.spread is not None else (None, None)
            row |= {"wait_difference": mean, "wait_scatter": scatter}
            row["wait_clear"] = None if mean is None or scatter is None else abs(mean) > scatter
            if schedule.predictions is None:
                row |= {"accuracy": float(accuracy(schedule.runtime, requested).mean()), "adjusted": 0.0}
                row |= {"under": float(100 * (schedule.runtime > requested).mean()), "bad": 0.0}
            else:
                p = schedule.prediction_summary()
                row |= {"accuracy": p.mean_accuracy, "adjusted": 100 - p.na_percent}
                row |= {"under": p.ue_percent + p.be_percent, "bad": p.be_percent}
            rows.append(row)
        return rows

    def schemes(self, most: int = LISTED) -> list[dict[str, Any]]:
        """Return a row for each of the most accurate schemes, with its accuracy and the percentages of jobs unadjusted and underestimated.

        Schemes with equal results, such as windows longer than the log, have one row.
        """
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for replay in self.replays:
            s = replay.summary()
            row = {"predictor": replay.predictor.label, "accuracy": s.mean_accuracy, "not_adjusted": s.na_percent}
            row |= {"under": s.ue_percent + s.be_percent, "bad": s.be_percent}
            rows.setdefault(tuple(row.values())[1:], row)
            if len(rows) == most:
                break
        return list(rows.values())


MEASURES = ("mean_wait", "median_wait", "p90_wait", "mean_bounded_slowdown", "utilization")
"""Fields of the summary that each row of `AdjustedWalltimes.rows` contains."""


def has_column(workload: Workload, name: str) -> bool:
    """Return whether the log records this column for any job."""
    column = workload.columns.get(name)
    return column is not None and bool((column >= 0).any())


def tang13_schemes(workload: Workload, threshold: float = 0.0) -> list[Tang13]:
    """Return every key that the log supports, with every statistic and window of tang13; raises WorkloadError without users."""
    from walltime.predictors import STATISTICS, WINDOWS, Tang13  # loads Numba

    if not has_column(workload, "user"):
        raise WorkloadError(
            f"{workload.origin.name} does not record users, so predictors cannot learn from their earlier jobs; use another log",
            "missing_column",
        )
    keys = ("user", "project", "double", "triple") if has_column(workload, "group") else ("user", "request")
    return [Tang13(key=k, statistic=s, window=w, threshold=threshold) for k in keys for s in STATISTICS for w in WINDOWS]


def adjust_walltimes(
    workload: Workload, *, machine: Machine | None = None, replications: int | None = None, progress: Bars = no_bars
) -> AdjustedWalltimes:
    """Select schemes of tang13 by their accuracy in a replay of the log, and simulate them and the users' estimates.

    The policy is EASY, or the policy of the machine if it backfills and accepts predictions. The schemes are the most accurate one that
    underestimates few jobs, the same also for running jobs, the most accurate one, and the paper's. The scheduler plans with adjusted
    walltimes while a job waits, and with the user's request once it runs (selective). EASY++ (tsafrir07) is simulated as well.
    `replications`: number of shaken copies of the log, by default as many as take little time. Raises WorkloadError if the log does not
    record users. Source: tang13, sections 4 to 6.
    """
    schemes = [*tang13_schemes(workload), *tang13_schemes(workload, THRESHOLD)]
    with progress(len(schemes), "schemes replayed") as show:
        replays = predict(workload, schemes, progress=show)
    replays = sorted(replays, key=lambda replay: -replay.summary().mean_accuracy)
    policy, instead = simulated_policy(machine)
    cases = [(USERS, Scheduler(policy)), *_cases(policy, replays)]
    schedules = []
    for _, scheduler in cases:
        with progress(len(workload), scheduler.label) as show:
            schedules.append(simulate(workload, scheduler, machine=machine, progress=show))
    with progress(replications or COPIES, "copies of the log") as show:
        spread = shaking_spread(schedules, progress=show, copies=replications)
    return AdjustedWalltimes(schedules, [reason for reason, _ in cases], replays, spread, instead)


def is_too_slow(workload: Workload, machine: Machine | None) -> bool:
    """Return whether adjusted walltimes take too long to simulate, because only plain Python simulates predictions on individual nodes."""
    if machine is None or not machine.has_nodes or len(workload) <= MOST_PLAIN_JOBS:
        return False
    return support(simulated_policy(machine)[0], "nodes", ["predictor"]).engine != "kernel"


def simulated_policy(machine: Machine | None, predicts: bool = True) -> tuple[Policy, str]:
    """Return the policy to simulate, and the label of the machine's policy if EASY replaces it.

    `predicts`: whether the policy must accept predictions; policies for individual nodes do not.
    """
    if machine is None or machine.policy is None:
        return Easy(), ""
    own = parse_scheduler(machine.policy).policy
    usable = own.passes.compiled and own.passes.backfills and (own.machines["number"].engine or not predicts)
    return (own, "") if usable else (Easy(), own.label)


def _cases(policy: Policy, replays: Sequence[Replay]) -> list[tuple[str, Scheduler]]:
    """Return the distinct schedulers with predictions, each with its name."""
    from walltime.predictors import Tang13

    best = replays[0].predictor
    summaries = [(replay.predictor, replay.summary()) for replay in replays]
    few = [predictor for predictor, s in summaries if s.ue_percent + s.be_percent <= MOST_UNDER and s.be_percent <= MOST_BAD]
    key = "triple" if any(isinstance(r.predictor, Tang13) and r.predictor.key == "triple" for r in replays) else "request"
    predictions = [(FEW_UNDER, Prediction(few[0], predictions_for="selective"))] if few else []
    predictions += [
        (MOST_ACCURATE, Prediction(best, predictions_for="selective")),
        (OF_PAPER, Prediction(Tang13(key=key, statistic="p85", window=1), predictions_for="selective")),
        (ALSO_RUNNING, Prediction(few[0] if few else best, predictions_for="regular")),
    ]
    cases = [(reason, Scheduler(policy, prediction)) for reason, prediction in predictions]
    cases.append((EASY_PLUS_PLUS, Scheduler(Easy(backfill_order=SJF), Prediction("tsafrir07"))))
    by_label: dict[str, tuple[str, Scheduler]] = {}
    for case in cases:
        by_label.setdefault(case[1].label, case)
    return list(by_label.values())
