"""What a policy decides along a schedule, against what the schedule does: nothing starts, and nothing waits, that should not.

At every event the policy's pass (passes/) is made in the state that the schedule has led to. The first job on which the two differ is
told, and the schedule is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.passes import state as s
from walltime.auditor.passes.events import RUNS
from walltime.auditor.policy_numbers import orders_of
from walltime.auditor.report import Violation
from walltime.compiled.cache import is_kept
from walltime.compiled.compilation import Compilation, notify
from walltime.compiled.folder import cache_folder
from walltime.policy import FCFS, Dialect, Kind, Order, Policy, Wfp
from walltime.policy.schedule_scores import Scores
from walltime.predictors import Prediction
from walltime.predictors.history import history_for
from walltime.workload import Workload

Array = np.ndarray
COMPILED = {"heads": (40, 9.0), "plans": (55, 13.0), "combinations": (45, 10.0)}
"""How many functions each of the runs has, and about how long it takes to compile them, s."""
STEPS = 20_000
"""Events between two looks at the clock, and at Ctrl-C."""


class RecordedJobs(NamedTuple):
    """The jobs of a schedule, int64, one entry per job in any order; times in s.

    `job`: places in the workload. `submit`: with feedback, as it follows from the schedule. `runtime`: effective. `estimate`: what the
    scheduler believes without predictions. `kind`, `reserved_start`: as the schedule says, None if it does not.
    """

    job: Array
    submit: Array
    start: Array
    end: Array
    runtime: Array
    estimate: Array
    kind: Array | None
    reserved_start: Array | None

    def taken(self, order: Array) -> RecordedJobs:
        """The jobs in this order."""
        columns = {name: column[order] for name, column in self._asdict().items() if column is not None}
        return self._replace(**columns)


class Decisions:
    """One run along a schedule. Raises WorkloadError where the log lacks a column that the predictor or an order needs."""

    def __init__(
        self, workload: Workload, recorded: RecordedJobs, policy: Policy, dialect: Dialect, prediction: Prediction | None, rules: s.Records
    ):
        order = np.lexsort((recorded.job, np.minimum(recorded.submit, recorded.start)))
        self.workload, self.policy, self.prediction = workload, policy, prediction
        self.recorded = recorded.taken(order)
        self.ids = workload.job_id[self.recorded.job]
        self._fill(rules)
        self._orders = orders_of(policy)
        self._history = self._predictor()
        jobs = self.memory.jobs
        self._scores = Scores(workload, self._orders, (jobs.submit, jobs.start, jobs.end, jobs.estimate), self.recorded.job)
        self._of = {name: self.memory.jobs[name] for name in s.JOB.names or ()}  # plain arrays: fields of records are slow to reach
        if not rules.asks:
            self._score_all()

    def _fill(self, rules: s.Records) -> None:
        """Put the jobs into memory."""
        w, recorded, count = self.workload, self.recorded, len(self.recorded.job)
        by_start = np.argsort(recorded.start, kind="stable")
        bounds = np.array(self.policy.passes.bounds, np.int64)
        increments = np.array(self.prediction.correction.increments if self.prediction else (), np.int64)
        self.memory = s.new_memory(rules, count, by_start, bounds, increments)
        jobs = self.memory.jobs
        jobs.submit, jobs.start = np.minimum(recorded.submit, recorded.start), recorded.start
        jobs.end, jobs.procs = np.maximum(recorded.end, recorded.start), w.procs[recorded.job]
        jobs.runtime = recorded.runtime
        jobs.own = jobs.run = jobs.estimate = recorded.estimate
        if w.feedback:
            after, _ = w.dependencies()
            place = np.full(len(w), -1)
            place[recorded.job] = np.arange(count)
            jobs.after = np.where(after[recorded.job] >= 0, place[after[recorded.job]], -1)

    def _predictor(self) -> Any:
        """What makes the predictions, and is shown what has happened; None without."""
        if self.prediction is None:
            return None
        w, recorded = self.workload, self.recorded
        runtime, believed = w.runtime.copy(), w.believed.copy()
        runtime[recorded.job], believed[recorded.job] = recorded.runtime, recorded.estimate
        return history_for(self.prediction, w, w.requested, np.minimum(w.requested, believed), runtime)

    # ------------------------------------------------------------ the run

    def differences(self, progress: Callable[[int], None] | None = None) -> Iterator[tuple[int, bool]]:
        """Jobs on which policy and schedule differ: their places, and whether it is the policy that starts them; once for each.

        `progress` is called from time to time with the number of jobs that have started.
        """
        state, told, run_along = self.memory.state, set(), _loaded(self.memory.run)
        while True:
            reason = run_along(*self.memory, STEPS)
            if reason == s.DONE:
                return
            if reason == s.ASKS:
                self.answer()
            elif reason == s.PAUSED:
                if progress is not None:
                    progress(int(state.started))
            elif (int(state.culprit), reason) not in told:
                told.add((int(state.culprit), reason))
                yield int(state.culprit), reason == s.LEFT

    def answer(self) -> None:
        """Tell the predictor what has happened, and predict and score who waits."""
        memory, predictor = self.memory, self._history
        state, lists, of = memory.state, memory.lists, self._of
        submit, start, end, place = of["submit"], of["start"], of["end"], self.recorded.job
        now, arrived = int(state.now), []
        for what, job in lists.log[: state.logged].tolist():
            if what == s.ARRIVED:
                arrived.append(job)
                if predictor is not None:
                    self._predict(job, now)
            elif predictor is not None and what == s.OBSERVED:
                predictor.observe(int(place[job]), int(submit[job]), int(start[job]), int(end[job]))
            elif predictor is not None:
                predictor.started(int(place[job]), int(submit[job]), int(start[job]))
        state.logged = 0
        again = self.prediction is not None and self.prediction.predictor.again and state.resume == s.PASS
        waiting = lists.queue[: state.waiting].tolist() if again or memory.rules.dynamic else arrived
        if again:
            for job in waiting:
                self._predict(job, now)
        self._score(waiting, now)

    def _predict(self, job: int, now: int) -> None:
        """Predict how long a waiting job will run, and believe it where that is wanted."""
        assert self.prediction is not None
        of, belief = self._of, self.prediction.believe
        planned, estimate = of["own"][job], of["estimate"][job]
        predicted, _ = self._history.predict(int(self.recorded.job[job]), int(of["submit"][job]), now)
        of["predicted"][job] = predicted
        of["own"][job] = predicted if belief.own else estimate
        of["run"][job] = predicted if belief.running else estimate
        if of["reservation"][job] >= 0 and of["own"][job] != planned:
            self.memory.state.void = 1

    def _score_all(self) -> None:
        """Score all jobs once for all."""
        known: dict[Order, Array | None] = {}
        for order, name in zip(self._orders, ("score", "back_score"), strict=True):
            if order != FCFS and not isinstance(order, Wfp):  # that one is scored along the way
                if order not in known:
                    known[order] = self._scores.many(order, self.recorded.job, self._lengths(), self._of["submit"], None)
                scores = known[order]
                if scores is None:
                    return self._score(range(len(self.recorded.job)), None)
                self._of[name][:] = scores
        return None

    def _score(self, chosen: Sequence[int], now: int | None) -> None:
        """Score jobs for the queue and as candidates, now, or once for all; first come, first served needs no scores."""
        queue, candidates = self._orders
        for order, name in ((queue, "score"), (candidates, "back_score")):
            if order == FCFS:
                continue
            scores = self._of[name]
            if isinstance(order, Wfp) and order.bounds == (None, None) and now is not None:
                formula: Any = order.score  # it takes arrays as well: many jobs at once
                jobs = np.array(chosen, np.int64)
                scores[jobs] = formula(now - self._of["submit"][jobs], self._lengths()[jobs], self._of["procs"][jobs], 0)
                continue
            lengths, submit = self._lengths(), self._of["submit"]
            if now is not None and len(chosen):
                jobs = np.array(chosen, np.int64)
                several = self._scores.many(order, self.recorded.job[jobs], lengths[jobs], submit[jobs], now)
                if several is not None:
                    scores[jobs] = several
                    continue
            for job in chosen:
                of, came = int(self.recorded.job[job]), int(submit[job])
                scores[job] = self._scores.of(of, order, came if now is None else now, int(lengths[job]), came)

    def _lengths(self) -> Array:
        """The length of each job on which its place in the queue depends."""
        return self._of["predicted" if self.prediction is not None and self.prediction.believe.order else "estimate"]

    # ------------------------------------------------------- what it means

    def violations(self, progress: Callable[[int], None] | None = None) -> Iterator[Violation]:
        """What the schedule does otherwise; where it does all as the policy, also labels and reservations that are wrong."""
        clean = True
        for job, policy_starts in self.differences(progress):
            clean = False
            yield self._left(job) if policy_starts else self._early(job)
        if clean:
            yield from self._labels()
            yield from self._reservations()

    def _left(self, job: int) -> Violation:
        """The policy starts a job now, and the schedule does not."""
        state, jobs, lists = self.memory.state, self.memory.jobs, self.memory.lists
        now, own = int(state.now), self.ids[job]
        free, start = int(state.free), f"but it starts only at {jobs.start[job]}"
        if "reserved_start_missed" in self.policy.promises:
            return self._violation("reserved_start_missed", f"the reserved start of job {own} is {now}, {start}", job)
        needs = f"needs {jobs.procs[job]} processors, {free} are free"
        if job == (state.at_head if state.at_head >= 0 else lists.line[0]):
            return self._violation("head_waits", f"job {own} is the head of the queue and {needs}, {start}", job)
        return self._violation("left_waiting", f"job {own} {needs}, and {self.policy.label} starts it at {now}, {start}", job)

    def _early(self, job: int) -> Violation:
        """The schedule starts a job, and the policy does not."""
        state, jobs, lists = self.memory.state, self.memory.jobs, self.memory.lists
        now, own, ahead = int(state.now), self.ids[job], int(lists.line[0])
        what = f"job {own} starts at {now}, where {self.policy.label} does not start it"
        if jobs.procs[job] > state.free:
            return self._violation("out_of_turn", f"{what}: it needs {jobs.procs[job]} processors, {state.free} are free", job)
        if ahead == job:
            return self._violation("out_of_turn", f"{what}: nothing has happened at this time that brings a pass", job)
        what += f": job {self.ids[ahead]} is ahead of it"
        if "reservation_delayed" not in self.policy.promises:
            return self._violation("out_of_turn", what, job, ahead)
        if state.head == ahead:
            what += f", has a reservation at {state.shadow}, and leaves {state.extra} processors beside it"
        else:
            what += ", and a reservation would be moved back"
        return self._violation("reservation_delayed", what, job, ahead)

    def _violation(self, rule: str, message: str, *jobs: int) -> Violation:
        return Violation(rule, message, tuple(int(self.ids[job]) for job in jobs), int(self.memory.state.now))

    def _labels(self) -> Iterator[Violation]:
        """Starts that are labelled as what they are not."""
        if self.recorded.kind is None:
            return
        names = {int(k): k.name.lower() for k in Kind}
        jobs = self.memory.jobs
        for job in np.flatnonzero(self.recorded.kind != jobs.kind).tolist():
            said = names.get(int(self.recorded.kind[job]), str(self.recorded.kind[job]))
            message = f"the start of job {self.ids[job]} is labelled {said}; it is {names[int(jobs.kind[job])]}"
            yield Violation("kind_wrong", message, (int(self.ids[job]),), int(jobs.start[job]))

    def _reservations(self) -> Iterator[Violation]:
        """First reservations that are not those that the policy makes."""
        if self.recorded.reserved_start is None:
            return
        jobs = self.memory.jobs
        for job in np.flatnonzero(self.recorded.reserved_start != jobs.reserved).tolist():
            said, true = (int(value) for value in (self.recorded.reserved_start[job], jobs.reserved[job]))
            has = f"has its first reservation at {true}" if true >= 0 else "has no reservation"
            message = f"the schedule gives job {self.ids[job]} a first reservation at {said}; it {has}"
            yield Violation("reserved_start_differs", message, (int(self.ids[job]),), int(jobs.start[job]))

    @property
    def predicted(self) -> Array:
        """What was predicted for each job, by its place in the workload, int64 s; 0 for one that is not in the schedule."""
        predicted = np.zeros(len(self.workload), np.int64)
        predicted[self.recorded.job] = self.memory.jobs.predicted
        return predicted


def _loaded(name: str) -> Callable[..., int]:
    """A compiled run; says so where it is compiled only now."""
    function = RUNS[name]
    if getattr(function, "dispatcher", function) is None and not is_kept(function, cache_folder()):
        notify(Compilation(f"audit-{name}", "audits", *COMPILED[name]))
    return function
