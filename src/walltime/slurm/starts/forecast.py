"""Many simulations of what may follow a snapshot, each with runtimes and jobs to come that are drawn anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from walltime.errors import PolicyError
from walltime.policy import Policy
from walltime.predictors import Predictor
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.starts.initial_state import InitialState, initial_state_of
from walltime.slurm.starts.predicted import PredictedRuntimes, predicted_of_snapshot
from walltime.slurm.starts.projection import Projection, misfit
from walltime.slurm.starts.sampling import DAY, LEVELS, WEEK, Arrivals, JobsToDraw, RuntimePredictions, Runtimes
from walltime.wording import seed_fault
from walltime.workload import Workload

Array = np.ndarray

LONGEST = 14 * 86400
"""Jobs to come are drawn for so long at most, s."""
MOST_MISFITS = 100


@dataclass(frozen=True)
class Draws:
    """How many simulations there are, whether jobs come in them, and the seed of what is drawn."""

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
    """The jobs of a snapshot under a policy, by default the site's own, ready to be simulated; raises PolicyError and WorkloadError.

    `predictor`: of runtimes, which are then drawn around its predictions; the scheduler plans with the limits all the same. `gone`: the
    labels of running jobs for which the machine has no room, and which are left out. `coming`: the jobs to come, None without.
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
            raise PolicyError("the snapshot does not say how the site schedules; give a policy", "missing_policy")
        self.snapshot, self.scheduler = snapshot, Scheduler.of(chosen, None)
        self.gone: list[str] = []
        self.coming: Arrivals | None = None
        while True:
            self.state = initial_state_of(snapshot, history, self.scheduler, self.gone)
            self.projection = Projection(self.state, self.scheduler)
            place = misfit(self.projection)
            if place is None:
                break
            self.gone.append(self.state.jobs[place].label)
            if len(self.gone) > MOST_MISFITS:
                raise PolicyError(f"over {MOST_MISFITS} running jobs have no room on {snapshot.machine.name}; compare it with the cluster")
        if predictor is not None and not isinstance(predictor, PredictedRuntimes):
            predictor = predicted_of_snapshot(predictor, snapshot, history)
        self.predicted, told = predictor, None
        if predictor is not None:
            told = RuntimePredictions(predictor.of([job.job for job in self.state.jobs]), predictor.of(self.state.history.job_id))
        self.runtimes = Runtimes(self.state.history, self.state.ended, _jobs_to_draw(self.state), told)

    def simulate(
        self, run: Callable[..., Array], draws: Draws, workers: int | None = None, progress: Callable[[int], None] | None = None
    ) -> tuple[Array, Array]:
        """The starts if every job runs to its limit and none comes, and those of each simulation: s after the snapshot.

        `run`: takes runtimes, and perhaps the places and times of jobs to come and a check, as `Projection.run` does; gives starts.
        """
        state = self.state
        to_limits = run(np.maximum(state.workload.requested[: len(state.jobs)], self.runtimes.elapsed + 1))
        finite = to_limits[np.isfinite(to_limits)]
        horizon = min(LONGEST, int(finite.max(initial=state.now)) - state.now + 3600)
        coming = Arrivals(state.recent, state.now, horizon if draws.arrivals else 0)
        self.coming = coming if draws.arrivals else None

        def sample(number: int, check: Callable[[int], None]) -> Array:
            random = np.random.Generator(np.random.Philox(key=[draws.seed, number]))
            runtimes = self.runtimes.draw(random)
            return run(runtimes, *coming.draw(random), check) - state.now

        return to_limits - state.now, np.array(in_threads(lambda: sample, draws.samples, workers, progress))

    def caveats(self) -> list[str]:
        """What is to be known of the simulations, in sentences."""
        coming, lost, apart = self.coming, self.state.lost, len(self.snapshot.apart)
        unknown = int(((self.runtimes.level == len(LEVELS)) & ~self.runtimes.told).sum())
        days = 0 if coming is None else coming.reach // DAY
        of_history = (
            f"The history has {days} day{'s' * (days > 1)} before the snapshot, and the jobs to come are drawn from these: with under two "
            "weeks fewer than 90 % may start within their intervals."
        )
        room = f"For {len(self.gone):,} running jobs the machine, as it is described, has no room: they are left out, such as"
        said = {
            f"{unknown:,} jobs are taken to run to their limits: too few jobs like them have ended.": unknown,
            "The history is shorter than a day before the snapshot: no jobs come in the simulations.": coming and not coming.period,
            of_history: coming and coming.period and coming.reach < 2 * WEEK,
            f"{len(lost):,} jobs do not fit the machine and are left out, such as {lost[0].label if lost else ''}.": lost,
            f"{room} {self.gone[0] if self.gone else ''}.": self.gone,
            f"{apart:,} jobs of the snapshot are not simulated: held, dependent on others, or of a kind that is not modelled.": apart,
        }
        return [*(self.predicted.remarks if self.predicted is not None else ()), *(sentence for sentence, holds in said.items() if holds)]


def _jobs_to_draw(state: InitialState) -> JobsToDraw:
    """The snapshot's jobs, as runtimes are drawn for them."""
    count, placed = len(state.jobs), state.workload
    columns = {name: values[:count] for name, values in placed.columns.items()}
    columns |= {"requested": placed.requested[:count], "procs": placed.procs[:count]}
    nobody = np.full(count, -1, np.int64)
    named = {name: columns.get(name, nobody) for level in LEVELS for name in level}
    elapsed = [0 if job.start is None else max(1, state.now + state.zero - job.start) for job in state.jobs]
    return JobsToDraw(named, placed.requested[:count], np.array(elapsed, np.int64))
