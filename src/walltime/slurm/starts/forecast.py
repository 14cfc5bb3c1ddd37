"""Simulate a snapshot's jobs, many times with random runtimes and arrivals, until all waiting jobs have started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from walltime.engine.machines import Demands, Shares
from walltime.engine.problem import Problem
from walltime.errors import EngineError, PolicyError, WorkloadError
from walltime.machine import omission_sentences
from walltime.policy import PAPERS, Policy
from walltime.policy.log_view import LogView
from walltime.predictors import Predictor
from walltime.ragged import Ragged
from walltime.schedule import Schedule
from walltime.simulation.run import Run, new_engine, pools_of
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.slurm.snapshot import Snapshot
from walltime.slurm.starts.initial_state import InitialState, make_initial_state
from walltime.slurm.starts.predicted import PredictedRuntimes, predict_snapshot_runtimes
from walltime.slurm.starts.sampling import DAY, LEVELS, WEEK, Arrivals, JobsToDraw, Runtimes
from walltime.wording import counted, seed_fault
from walltime.workload import Array, Workload

FIRST_NUMBER = 10**12
"""The number of the first job in a schedule; numbers of real jobs are lower."""
LONGEST = 14 * 86400
"""The longest time, s, for which arrivals are drawn."""
MOST_MISFITS = 100
SOON = 60
"""Seconds: a job that starts within this time counts as starting in the scheduler's next pass; Slurm backfills every 30 s."""


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
NOT_ALONE = ("after", "limits", "merit", "association", "charge", "user", "place", "since")
"""Fields of the demands that do not matter for a job without others on the machine."""


class Projection:
    """Runs the snapshot's jobs and arriving jobs under the site's policy."""

    def __init__(self, state: InitialState, scheduler: Scheduler):
        self.state, self.scheduler = state, scheduler
        self._slurm = scheduler.policy.settings() is not None
        if self._slurm:
            self._prepare_slurm()
        else:
            self._pools = pools_of(state.placement)

    def run(
        self,
        runtime: Array,
        arriving: Array | None = None,
        times: Array | None = None,
        check: Callable[[int], None] | None = None,
        *,
        only: int | None = None,
        without: Sequence[int] = (),
    ) -> Array:
        """Return the start of each of the snapshot's jobs, s from the state's zero, float64; inf for jobs that never start.

        `runtime`: runtimes of the snapshot's jobs (int64 s). `arriving`: indices of recent jobs in the history, which arrive `times` (s)
        after now. `only`: the index of the only job whose start is needed; other starts may be inf. `without`: indices of jobs that are
        left out. `check`: called with 0 from time to time; it may raise an error to end the run.
        """
        state = self.state
        count = len(state.jobs)
        if arriving is None or times is None:
            arriving, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
        kept = np.delete(np.arange(count), list(without))
        chosen = np.concatenate([kept, count + arriving])
        submit = np.concatenate([state.submit[kept], state.now + times])
        order = np.argsort(submit, kind="stable")
        chosen = chosen[order]
        arriving_runtimes = np.minimum(state.workload.runtime, state.workload.requested)[count + arriving]
        runtimes = np.concatenate([runtime[kept], arriving_runtimes])[order]
        engine = new_engine(self.problem(chosen, submit[order], runtimes, starts_only=True), "kernel")
        mine = np.flatnonzero(chosen < count)
        awaited = mine if only is None else np.flatnonzero(chosen == only)
        try:
            while len(awaited):  # the last job in the queue is usually one of the last to start
                engine.await_start(awaited[-1])
                done = engine.advance()
                awaited = awaited[engine.start[awaited] < 0]
                if done:
                    break
                if check is not None:
                    check(0)
        except EngineError:
            pass  # some jobs never start
        started = engine.start[mine]
        start = np.full(count, np.inf)
        start[chosen[mine]] = np.where(started < 0, np.inf, started)
        return start

    def schedule(self, runtime: Array, without: Sequence[int] = ()) -> Schedule:
        """Return the schedule of the snapshot's jobs alone, with these runtimes (int64 s). Raises EngineError if some never start.

        `without`: indices of jobs that are left out.

        Jobs are numbered from FIRST_NUMBER, in their order here, because an array and its tasks may share a number.
        """
        state = self.state
        chosen = np.argsort(state.submit, kind="stable")
        chosen = chosen[~np.isin(chosen, list(without))]
        submit, runtime = state.submit[chosen], runtime[chosen]
        problem, placement = self.problem(chosen, submit, runtime), state.placement
        engine = new_engine(problem, "kernel")
        engine.run()
        jobs = replace(self._jobs(chosen, submit, runtime), job_id=FIRST_NUMBER + chosen)
        second, partition, since, after, limits, windows = self._pool_demands(chosen)
        placement = replace(placement, second=second, partition=partition, since=since, after=after, limits_of=limits, windows_of=windows)
        placement = replace(placement, reservation=placement.reservation[chosen])
        return Run(jobs, self.scheduler, PAPERS, "kill", placement, problem).schedule(engine.outcome())

    def problem(self, chosen: Array, submit: Array, runtime: Array, starts_only: bool = False) -> Problem:
        """Return the problem of the jobs with these indices, with these submit times and runtimes (int64 s), on the machine."""
        placed, own = self.state.workload, self._pool_demands(chosen)
        common: dict[str, Any] = {"submit": submit, "runtime": runtime, "policy": self.scheduler.policy, "starts_only": starts_only}
        common |= {"planned": placed.requested[chosen], "procs": placed.procs[chosen]}
        if self._slurm:
            columns = [name for name in self._demands._fields if name not in ("after", "limits")]
            demands = self._demands._replace(**{name: getattr(self._demands, name)[chosen] for name in columns})
            demands = demands._replace(after=own.after, limits=own.limits)
            return Problem(machine=self.state.nodes, demands=demands, shares=self._shares, settings=self._settings, **common)
        known = LogView.of(self.scheduler.policy.reads, self._jobs(chosen, submit, runtime), placed.requested[chosen])
        return Problem(machine=self._pools, demands=own, known=known, **common)

    def needs(self, place: int) -> tuple[int, ...]:
        """Return the values that determine when a job with this index could start on the machine without other jobs."""
        state = self.state
        if not self._slurm:
            return (place,)
        own = [int(getattr(self._demands, name)[place]) for name in self._demands._fields if name not in NOT_ALONE]
        placed, placement = state.workload, state.placement
        times = int(placed.requested[place]), int(state.submit[place]), int(placed.procs[place])
        return (*own, *times, int(placement.reservation[place]), *map(int, placement.limits_of[place]))

    def _pool_demands(self, chosen: Array) -> Demands:
        placement, none = self.state.placement, Ragged.empty(len(chosen))
        limits = placement.limits_of.take(chosen) if placement.limits else none
        second, partition, since = placement.second[chosen], placement.partition[chosen], placement.since[chosen]
        return Demands(second, partition, since, none, limits, placement.windows_of.take(chosen))

    def _jobs(self, chosen: Array, submit: Array, runtime: Array) -> Workload:
        placed = self.state.workload
        return replace(
            placed,
            job_id=np.arange(1, len(chosen) + 1),
            submit=submit,
            runtime=runtime,
            requested=placed.requested[chosen],
            planned=placed.requested[chosen],
            procs=placed.procs[chosen],
            columns={name: values[chosen] for name, values in placed.columns.items()},
            order=None,
        )

    def _prepare_slurm(self) -> None:
        """Prepare nodes, settings and priorities: waiting jobs keep Slurm's own priorities, and shares do not change."""
        from walltime.policy.slurm import SlurmSettings
        from walltime.slurm_priorities import with_priorities

        state, machine = self.state, self.state.placement.machine
        settings = self.scheduler.policy.settings(machine.slurm)
        demands = state.demands
        self._shares = Shares(np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int64))
        self._settings = settings
        if settings.multifactor:
            demands = with_priorities(state.workload, state.placement, settings, demands, state.nodes)[0]
            demands = demands._replace(merit=self._merits(demands.merit, settings), association=np.zeros_like(demands.association))
            self._settings = SlurmSettings({**settings.values, "priority_weight_fairshare": 0}, settings.notes)
            if not self._settings.multifactor:  # otherwise all priorities would be equal
                self._settings = SlurmSettings({**self._settings.values, "priority_weight_qos": 1}, settings.notes)
        self._demands = demands

    def _merits(self, static: Array, settings: Any) -> Array:
        """Return the constant part of each priority: Slurm's own for waiting jobs, for others the known part plus the user's share.

        The share is the median, over the waiting jobs of the user (or of all users), of the priority less its known part.
        """
        state = self.state
        count, merit = len(state.jobs), static.copy()
        user = state.workload.columns["user"]
        age_weight, longest = settings["priority_weight_age"], max(1, settings["priority_max_age"])
        share: dict[int, list[float]] = {}
        for k, job in enumerate(state.jobs):
            if job.start is None and job.priority is not None:
                waited = max(0, state.now + state.zero - (job.eligible or job.submit or state.now + state.zero))
                rest = job.priority - static[k] - age_weight * min(1.0, waited / longest)
                share.setdefault(int(user[k]), []).append(rest)
                merit[k] = job.priority
        all_shares = [rest for values in share.values() for rest in values]
        usual = float(np.median(all_shares)) if all_shares else settings["priority_weight_fairshare"] / 2
        user_share = {one: float(np.median(values)) for one, values in share.items()}
        unknown = np.arange(len(static)) >= count
        unknown[:count] = [job.start is None and job.priority is None for job in state.jobs]
        merit[unknown] += [user_share.get(one, usual) for one in user[unknown].tolist()]
        return merit


def misfit(projection: Projection) -> int | None:
    """Return the index of a running job for which the described machine has no room; None if all fit. Raises WorkloadError."""
    state = projection.state
    places = np.arange(len(state.jobs))
    try:
        now = np.full(len(places), state.now)
        engine = new_engine(projection.problem(places, now, np.maximum(state.workload.requested[places], 1)), "kernel")
        if engine.machine == "nodes":
            engine.advance(1)
    except WorkloadError as error:
        if error.job is None:
            raise
        return error.job
    return None


class Forecast:
    """The jobs of a snapshot under a policy, by default the site's, ready for simulations; raises PolicyError and WorkloadError.

    `predictor`: predicts runtimes, which are drawn around its predictions; the scheduler still plans with the limits. `arrivals`: draws the
    arriving jobs, None without. `loose`: the labels of running jobs that are placed on any nodes, without memory, because not all fit where
    they request; `misfits`: the labels of running jobs that are left out, because the machine has no room for them.
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
        self.loose: set[str] = set()
        attempts = 0
        self.arrivals: Arrivals | None = None
        while True:
            self.state = make_initial_state(snapshot, history, self.scheduler, self.misfits, self.loose)
            self.projection = Projection(self.state, self.scheduler)
            place = misfit(self.projection)
            if place is None:
                break
            label = self.state.jobs[place].label
            if (
                label not in self.loose and self.state.demands is not None
            ):  # twice as many at each attempt, because each attempt takes a while
                self.loose.update(job.label for job in self.state.jobs[place : place + 2**attempts] if job.start is not None)
                attempts += 1
                continue
            self.misfits.append(label)
            if len(self.misfits) > MOST_MISFITS:
                raise PolicyError(
                    f"over {MOST_MISFITS} running jobs do not fit on {snapshot.machine.name}; compare it with the cluster",
                    "overfull_machine",
                )
        if predictor is not None and not isinstance(predictor, PredictedRuntimes):
            predictor = predict_snapshot_runtimes(predictor, snapshot, history)
        self.predicted, predictions = predictor, None
        if predictor is not None:
            predictions = predictor.of([job.job for job in self.state.jobs]), predictor.of(self.state.history.job_id)
        moment = self.state.now + self.state.zero
        elapsed = [0 if job.start is None else max(1, moment - job.start) for job in self.state.jobs]
        jobs = JobsToDraw.of(self.state.workload, np.array(elapsed, np.int64))
        self.runtimes = Runtimes(self.state.history, self.state.ended, jobs, predictions)

    def simulate(
        self, run: Callable[..., Array], draws: Draws, workers: int | None = None, progress: Callable[[int], None] | None = None
    ) -> tuple[Array, Array]:
        """Run the simulations; return the starts, s after the snapshot, if all jobs run to their limits, and those in each simulation.

        Without random draws, no jobs arrive. `run`: returns starts; its arguments are runtimes and, optionally, the indices and times of
        arrivals and a check, as in `Projection.run`. The shapes are (jobs,) and (samples, jobs).
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

    def earliest(self, places: Array) -> Array:
        """Return the starts of waiting jobs on the machine without other jobs, s after the snapshot, float64: lower bounds.

        A start is above 0 only because of outages, reservations and closed hours, or if the job is not eligible yet.
        """
        state, placement, found = self.state, self.state.placement, np.zeros(len(places))
        spans = [one[3:5] for one in placement.outages] + [one[1:3] for one in placement.reservations]
        until = state.now + state.workload.requested
        typical, every = self.runtimes.typical(), np.arange(len(state.jobs))
        known: dict[tuple[int, ...], float] = {}
        for k, place in enumerate(places.tolist()):
            near = any(begin < until[place] and end > state.now for begin, end in spans)
            if near or placement.windows or placement.reservation[place] or state.submit[place] > state.now:
                needs = self.projection.needs(place)
                if needs not in known:
                    start = self.projection.run(typical, only=place, without=np.delete(every, place).tolist())[place]
                    known[needs] = float(start - state.now)
                found[k] = known[needs]
        return np.where(np.isfinite(found) & (found > SOON), found, 0)

    def caveats(self) -> list[str]:
        """Return caveats of the simulations, in sentences."""
        arrivals, lost, misfits = self.arrivals, self.state.lost, self.misfits
        never = self.snapshot.never
        apart = len(self.snapshot.apart) - len(never)
        unknown = int(((self.runtimes.level == len(LEVELS)) & ~self.runtimes.predicted).sum())
        days = 0 if arrivals is None else arrivals.reach // DAY
        short_history = (
            f"Arrivals are drawn from the {counted(days, 'day')} of history before the snapshot; with less than two weeks, "
            "fewer than 90 % of the jobs may start within their intervals."
        )
        no_room = f"Left out, because they have no room on the machine as described: {counted(len(misfits), 'running job')}, such as"
        sentences = {
            f"Assumed to run to the limit, because too few similar jobs have ended: {counted(unknown, 'job')}.": unknown,
            "The history covers less than a day before the snapshot, so no new jobs are simulated.": arrivals and not arrivals.period,
            short_history: arrivals and arrivals.period and arrivals.reach < 2 * WEEK,
            f"Left out, because they do not fit the machine: {counted(len(lost), 'job')}, such as {lost[0].label if lost else ''}.": lost,
            f"{no_room} {misfits[0] if misfits else ''}.": misfits,
            f"Placed on any nodes, regardless of memory, because not all fit: {counted(len(self.loose), 'running job')}.": self.loose,
            f"Can never start as requested: {counted(len(never), 'waiting job')}, such as job {never[0].label if never else ''}.": never,
            f"Not simulated: {counted(apart, 'job')} of the snapshot (held, dependent on others, or not modelled).": apart,
        }
        remarks = () if self.predicted is None else self.predicted.remarks
        return [*omission_sentences([self.state.workload]), *remarks, *(sentence for sentence, holds in sentences.items() if holds)]
