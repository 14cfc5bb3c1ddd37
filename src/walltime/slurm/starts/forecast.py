"""Simulate the future of a snapshot many times, each time with other random runtimes and arrivals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from walltime.errors import PolicyError
from walltime.machine import omission_sentences
from walltime.policy import Policy
from walltime.predictors import Predictor
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.starts.initial_state import InitialState, make_initial_state
from walltime.slurm.starts.predicted import PredictedRuntimes, predict_snapshot_runtimes
from walltime.slurm.starts.projection import Projection, misfit
from walltime.slurm.starts.sampling import DAY, LEVELS, WEEK, Arrivals, JobsToDraw, RuntimePredictions, Runtimes
from walltime.wording import counted, seed_fault
from walltime.workload import Workload

Array = np.ndarray

LONGEST = 14 * 86400
"""The longest time for which arrivals are drawn, s."""
MOST_MISFITS = 100


@dataclass(frozen=True)
class Draws:
    """The number of simulations, whether jobs arrive in them, and the seed of the random numbers."""

    samples: int = 200
    arrivals: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise PolicyError(f"the number of samples must be 1 or more, not {self.samples}", "number_out_of_range")
        if fault := seed_fault(self.seed):
            raise PolicyError(fault)


USUAL = Draws()


class Forecast:
    """The jobs of a snapshot under a policy, by default the site's, ready for simulations; raises PolicyError and WorkloadError.

    `predictor`: predicts runtimes, which are drawn around its predictions; the scheduler still plans with the limits. `misfits`: the labels
    of running jobs that are left out, because the machine has no room for them. `arrivals`: the jobs to come, None without.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        history: Workload,
        policy: str | Policy | Scheduler | None,
        predictor: str | Predictor | PredictedRuntimes | None = None,
    ):
        chosen = snapshot.machine.policy if policy is None else policy
        if chosen is None:
            raise PolicyError("the snapshot has no scheduling policy; give one", "missing_policy")
        self.snapshot, self.scheduler = snapshot, Scheduler.of(chosen, None)
        self.misfits: list[str] = []
        self.arrivals: Arrivals | None = None
        while True:
            self.state = make_initial_state(snapshot, history, self.scheduler, self.misfits)
            self.projection = Projection(self.state, self.scheduler)
            place = misfit(self.projection)
            if place is None:
                break
            self.misfits.append(self.state.jobs[place].label)
            if len(self.misfits) > MOST_MISFITS:
                raise PolicyError(f"over {MOST_MISFITS} running jobs have no room on {snapshot.machine.name}; compare it with the cluster")
        if predictor is not None and not isinstance(predictor, PredictedRuntimes):
            predictor = predict_snapshot_runtimes(predictor, snapshot, history)
        self.predicted, predictions = predictor, None
        if predictor is not None:
            predictions = RuntimePredictions(predictor.of([job.job for job in self.state.jobs]), predictor.of(self.state.history.job_id))
        self.runtimes = Runtimes(self.state.history, self.state.ended, _jobs_to_draw(self.state), predictions)

    def simulate(
        self, run: Callable[..., Array], draws: Draws, workers: int | None = None, progress: Callable[[int], None] | None = None
    ) -> tuple[Array, Array]:
        """Return the starts if every job runs to its limit and none arrives, and the starts of each simulation: s after the snapshot.

        `run`: returns starts; its arguments are runtimes and, optionally, the places and times of arrivals and a check, as in
        `Projection.run`.
        """
        state = self.state
        to_limits = run(np.maximum(state.workload.requested[: len(state.jobs)], self.runtimes.elapsed + 1))
        finite = to_limits[np.isfinite(to_limits)]
        horizon = min(LONGEST, int(finite.max(initial=state.now)) - state.now + 3600)
        arrivals = Arrivals(state.recent, state.now, horizon if draws.arrivals else 0)
        self.arrivals = arrivals if draws.arrivals else None

        def sample(number: int, check: Callable[[int], None]) -> Array:
            random = np.random.Generator(np.random.Philox(key=[draws.seed, number]))
            runtimes = self.runtimes.draw(random)
            return run(runtimes, *arrivals.draw(random), check) - state.now

        return to_limits - state.now, np.array(in_threads(sample, draws.samples, workers, progress))

    def caveats(self) -> list[str]:
        """Return caveats of the simulations, in sentences."""
        arrivals, lost, misfits = self.arrivals, self.state.lost, self.misfits
        never = self.snapshot.never
        apart = len(self.snapshot.apart) - len(never)
        unknown = int(((self.runtimes.level == len(LEVELS)) & ~self.runtimes.predicted).sum())
        days = 0 if arrivals is None else arrivals.reach // DAY
        short_history = (
            f"The history has {days} day{'s' * (days > 1)} before the snapshot, from which arrivals are drawn: with less than two weeks, "
            "fewer than 90 % may start within their intervals."
        )
        no_room = f"{len(misfits):,} running jobs have no room on the machine as described, and are left out, such as"
        sentences = {
            f"{unknown:,} jobs are assumed to run to their limits: too few jobs like them have ended.": unknown,
            "The history is shorter than a day before the snapshot: no jobs arrive in the simulations.": arrivals and not arrivals.period,
            short_history: arrivals and arrivals.period and arrivals.reach < 2 * WEEK,
            f"{len(lost):,} jobs do not fit the machine and are left out, such as {lost[0].label if lost else ''}.": lost,
            f"{no_room} {misfits[0] if misfits else ''}.": misfits,
            f"{len(never):,} waiting jobs never start as they are, such as job {never[0].label if never else ''}.": never,
            f"Not simulated: {counted(apart, 'job')} of the snapshot (held, dependent on others, or not modelled).": apart,
        }
        remarks = () if self.predicted is None else self.predicted.remarks
        return [*omission_sentences([self.state.workload]), *remarks, *(sentence for sentence, holds in sentences.items() if holds)]


def _jobs_to_draw(state: InitialState) -> JobsToDraw:
    """Return the snapshot's jobs, for which runtimes are drawn."""
    count, placed = len(state.jobs), state.workload
    columns = {name: values[:count] for name, values in placed.columns.items()}
    columns |= {"requested": placed.requested[:count], "procs": placed.procs[:count]}
    unknown = np.full(count, -1, np.int64)
    named = {name: columns.get(name, unknown) for level in LEVELS for name in level}
    elapsed = [0 if job.start is None else max(1, state.now + state.zero - job.start) for job in state.jobs]
    return JobsToDraw(named, placed.requested[:count], np.array(elapsed, np.int64))
