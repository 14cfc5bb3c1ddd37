"""The common part of the reference engines for one pool and for several: the order of the queue, predicted runtimes, policies in Python."""

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from walltime.engine.problem import Problem
from walltime.engine.reference.plain import BACKFILLED, IMMEDIATE, RESERVED, Job
from walltime.errors import EngineError, PolicyError
from walltime.policy import FCFS, Order, UserOrder
from walltime.policy.log_view import LogView
from walltime.policy.orders import HISTORY
from walltime.policy.plain import PlainRun, deadlock_message

PATIENCE = 100_000
"""Number of consecutive wake-ups, with nothing else happening or to come, after which a policy in plain Python counts as looping."""


class Predictions(NamedTuple):
    """The parts of a `walltime.predictors.Prediction`: the predictor, and where its predictions are used.

    * `history`: an object with the functions `predict(index, submit, now)`, which returns seconds and their basis, `started(index, submit,
      start)`, and `observe(index, submit, start, end)`
    * `again`: whether waiting jobs are predicted again in every pass
    """

    history: Any
    uses: Any
    correction: Any
    again: bool = False


class GroupHistory:
    """The history of users, groups and queues, for orders that use it: totals are computed from all starts and ends so far.

    `columns`: columns of the log by name, with a number for each job.
    """

    def __init__(self, columns: Mapping[str, Sequence[int]]):
        self._columns = columns
        self._starts: list[tuple[int, int, int]] = []  # time, job, wait
        self._longest: list[int] = []  # wait, of the starts so far
        self._ends: list[tuple[int, int, int]] = []  # time, job, processor seconds

    def started(self, job: int, submit: int, now: int) -> None:
        """Record a start."""
        self._starts.append((now, job, now - submit))
        self._longest.append(max(*self._longest[-1:], now - submit, 0))

    def ended(self, job: int, runtime: int, procs: int, now: int) -> None:
        """Record an end."""
        self._ends.append((now, job, runtime * procs))

    def started_at(self, now: int) -> list[int]:
        """Return the jobs that have started at this instant."""
        return [job for _, job, _ in self._starts[bisect.bisect_left(self._starts, (now,)) :]]

    def longest(self, now: int) -> int:
        """Return the longest wait of the jobs that started before now, s; 0 if there are none."""
        before = bisect.bisect_left(self._starts, (now,))
        return self._longest[before - 1] if before else 0

    def of(self, order: Order, job: int, now: int) -> dict[str, float]:
        """Return the totals that an order uses, by name, for a job that waits now."""
        return {name: self._one(order, name, job, now) for name in order.arguments if name in HISTORY}

    def _one(self, order: Order, name: str, job: int, now: int) -> float:
        column, measure = HISTORY[name], name.rpartition("_")[2]
        of = self._columns.get(column)
        events = self._ends if measure == "used" else self._starts
        last: int | None = getattr(order, "last", None)
        half_life: int | None = getattr(order, "half_life", None)
        first = 0 if last is None else bisect.bisect_left(events, (now - last,))
        total, since = 0.0, 0
        for time, other, amount in events[first:]:
            if time >= now:
                break
            if of is not None and of[other] != of[job]:
                continue
            value = 1.0 if measure == "started" else float(amount)
            if half_life is not None:
                total, since = total * math.pow(0.5, (time - since) / half_life), time
            total += value
        return total if half_life is None else total * math.pow(0.5, (now - since) / half_life)


class Engine:
    """A simulation in progress. For a predictor, nothing happens before the beginning of the log: times below 0 count as 0."""

    jobs: list[Any]
    waiting: list[Any]
    running: list[Any]

    def __init__(self, problem: Problem, machine_procs: int) -> None:
        self.now, self.first_submit = 0, int(problem.submit[0]) if len(problem) else 0
        self.tick = problem.tick
        known = problem.known or LogView({})
        self.known = known._replace(columns={name: np.asarray(values).tolist() for name, values in known.columns.items()})
        self.machine_procs, self.policy, self.passes = machine_procs, problem.policy, problem.policy.passes
        self.done = False
        self._own = None if self.passes.kind != "python" else PlainRun(self.policy, self.known, machine_procs)
        self._wake_ups: set[int] = set()
        """Times of the next calls of a policy in plain Python."""
        self._woken = 0
        """Number of consecutive events that were only wake-ups, with nothing else to come."""
        self.predictions: Predictions | None = None if problem.prediction is None else problem.prediction.plain()
        self.ended_early = False
        self.overdue = False
        """Whether a running job was overdue at the last pass."""
        self.reservations_void = False
        """Whether the reservations must be recomputed."""
        self._arrived = self._started = 0
        self._slowdowns: list[int] = []  # of jobs that have ended: bounded, in thousandths
        self.history = GroupHistory(self.known.columns)
        self._scores: dict[tuple[Order, int, int], float] = {}  # scores that do not change while jobs wait

    def step(self, until: float = math.inf) -> bool:
        """Handle the next event; return False if there is none, or it is later than `until`, s."""
        raise NotImplementedError

    def run(self) -> None:
        """Simulate until every job has started and ended."""
        while self.step():
            pass

    def _in_order(self, jobs: Sequence[Any], order: Order) -> list[Any]:
        """Return the jobs with the highest score first, ties by arrival."""
        by_arrival = sorted(jobs, key=lambda job: job.arrival)
        if order == FCFS:
            return by_arrival
        return sorted(by_arrival, key=lambda job: -self._score(job, order))

    def _score(self, job: Job, order: Order) -> float:
        """Return the sort key of a waiting job: its score; NaN is the lowest, and a starving job has the highest.

        A score that does not change while the job waits is stored.
        """
        key = (order, job.index, job.order_length)
        if key in self._scores:
            return self._scores[key]
        others: dict[str, Any] = {name: self.known.columns[name][job.index] for name in order.columns if name in self.known.columns}
        others["elapsed"] = job.submit - self.first_submit
        if order.reads_calendar:
            if self.known.calendar is None:
                raise order.without_calendar()
            local = self.known.calendar.local(self.now)
            others |= {"hour": local.hour, "weekday": local.weekday()}
        others |= self.history.of(order, job.index, self.now)
        if order.reads_system_state:
            others |= self._standing()
        wait, longest = self.now - job.submit, self.history.longest(self.now) if order.reads_longest else 0
        score = order.score(wait, job.order_length, job.procs, job.submit, **others, longest=longest)
        if isinstance(order, UserOrder):
            score = order.checked(score, job.index)
        value = order.sort_key(score, wait, longest)
        if isinstance(order, UserOrder) and not order.reads_time and order.bounds == (None, None):
            self._scores[key] = value
        return value

    def _standing(self) -> dict[str, int]:
        """Return the state of queue and machine at the beginning of this instant."""
        waiting = [*self.waiting, *(self.jobs[index] for index in self.history.started_at(self.now))]
        procs = self.machine_procs
        free = procs - sum(job.procs for job in self.running if job.start < self.now)
        return {"waiting": len(waiting), "queued": sum(job.procs * job.estimate for job in waiting), "free": free, "machine": procs}

    def _wake_up(self, times: Sequence[int]) -> tuple[list[int], int]:
        """Return the time of the next call of a policy in plain Python (or none), and the number of consecutive calls without other events.

        `times`: when anything else happens.
        """
        woken = 0 if times else self._woken + 1
        if self._wake_ups and (times or self.waiting) and woken <= PATIENCE:
            return [min(self._wake_ups)], woken
        return [], woken

    def _chosen(self, free: int) -> Iterator[Any]:
        """Call a policy in plain Python with this many free processors, and yield the jobs that it starts; check that each still waits."""
        assert self._own is not None, "as the policy is in plain Python"
        chosen, wake_at = self._own.choose(self.now, self.waiting, self.running, free)
        for job in [self.jobs[index] for index in chosen]:
            if job not in self.waiting:
                raise PolicyError(f"{self.policy.name} chose job number {job.index + 1}, which is not waiting", "choice_not_waiting")
            yield job
        if wake_at is not None:
            self._wake_ups.add(self._next_tick(wake_at))

    def _starts_nothing(self) -> EngineError:
        """Return the error of a policy in plain Python that starts none of the waiting jobs."""
        ids = self.known.columns.get("job_id", range(1, len(self.jobs) + 1))
        waiting = [ids[job.index] for job in self.waiting]
        return EngineError(deadlock_message(self.policy, self.now, waiting, PATIENCE if self._wake_ups else 0), "endless_wait")

    def _predict(self, job: Job) -> None:
        """Predict a job's runtime, and use it where the rules require it; a waiting job may then need another reservation."""
        if self.predictions is None:
            return
        uses, planned = self.predictions.uses, job.planned
        job.predicted, job.basis = self.predictions.history.predict(job.index, job.submit, max(self.now, 0))
        job.predicted = self._until_tick(job, job.predicted)
        job.order_length = job.predicted if uses.order else job.estimate
        job.planned = job.predicted if uses.own else job.estimate
        job.run_length = job.predicted if uses.running else job.estimate
        if job.reservation >= 0 and job.planned != planned:
            self.reservations_void = True

    def _enter(self, job: Job) -> None:
        job.arrival = self._arrived
        self._arrived += 1
        self.waiting.append(job)
        self._introduce(job)

    def _introduce(self, job: Job) -> None:
        """Predict a new job, and report it to a policy in plain Python."""
        self._predict(job)
        if self._own is not None:
            self._own.report("submitted", job, self.now)

    def _next_tick(self, time: int) -> int:
        """Return when the scheduler notices something that happens at this time."""
        return -(-time // self.tick) * self.tick

    def _until_tick(self, job: Job, length: int) -> int:
        """Return the expected runtime if ends are noticed only at ticks; waiting jobs arrive and start at a tick."""
        begin = job.submit if job.start == -1 else job.start
        return self._next_tick(begin + length) - begin

    def _begin(self, job: Job, behind: bool) -> None:
        """Start a job; one that starts while another ahead of it waits (`behind`) is backfilled."""
        job.start, job.ticket = self.now, self._started
        job.kind = BACKFILLED if behind else IMMEDIATE if job.submit == self.now else RESERVED
        self._started += 1
        self.waiting.remove(job)
        self.running.append(job)
        self._note_start(job)

    def _note_start(self, job: Job) -> None:
        """Report a start to the history, to the predictor and to a policy in plain Python."""
        if self._own is not None:
            self._own.report("started", job, self.now)
        self.history.started(job.index, job.submit, job.start)
        if self.predictions is not None:
            self.predictions.history.started(job.index, job.submit, max(job.start, 0))

    def _note_end(self, job: Job) -> None:
        """Report an end to the history, to the predictor and to a policy in plain Python."""
        if self._own is not None:
            self._own.report("ended", job, self.now)
        ran = max(job.runtime, 10)
        self._slowdowns.append(1000 * max(job.end - job.submit, ran) // ran)
        self.history.ended(job.index, job.runtime, job.procs, self.now)
        if self.predictions is not None:
            end = max(self.now, 0)
            self.predictions.history.observe(job.index, job.submit, end - job.runtime, end)

    def _class_of(self, job: Job) -> int:
        """Return the number of a job's queue, by its planned length, under a policy with several queues."""
        return sum(job.planned >= bound for bound in self.passes.bounds)

    def mean_slowdown(self) -> float:
        """Return the mean bounded slowdown of the jobs that have ended; 1 before the first end."""
        return sum(self._slowdowns) / (1000 * len(self._slowdowns)) if self._slowdowns else 1.0

    def _can_be_corrected(self, job: Job) -> bool:
        """Return whether a running job has a prediction in use that is shorter than the user's estimate."""
        if self.predictions is None or self.predictions.correction.kind == "none":
            return False
        return bool(self.predictions.uses.running) and job.run_length < job.estimate

    def _correct_expired(self) -> bool:
        """Correct the expired predictions of running jobs (tsafrir07, section 3); return whether there were any."""
        expired = [job for job in self.running if self._can_be_corrected(job) and job.expected_end <= self.now]
        for job in expired:
            while self._can_be_corrected(job) and job.expected_end <= self.now:
                job.run_length = self._until_tick(job, self._corrected_length(job))
                job.corrections += 1
        self.reservations_void = self.reservations_void or bool(expired)
        return bool(expired)

    def _corrected_length(self, job: Job) -> int:
        """Return the new expected runtime of a job that has outlived its prediction, s."""
        assert self.predictions is not None
        correction, elapsed = self.predictions.correction, self.now - job.start
        corrected: int = job.estimate
        if correction.kind == "double":
            corrected = 2 * job.run_length
        elif correction.kind == "soft":
            corrected = job.run_length + job.predicted
        elif correction.kind == "half":
            corrected = elapsed + max((job.estimate - elapsed) // 2, 1)
        elif correction.kind == "tsafrir07" and job.corrections < len(correction.increments):
            base = job.predicted if correction.relative == "prediction" else elapsed
            corrected = base + correction.increments[job.corrections]
        return min(corrected, job.estimate) if correction.capped else corrected
