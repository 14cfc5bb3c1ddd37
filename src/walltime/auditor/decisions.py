"""Compare the starts of a schedule with the policy's decisions along it.

At every event, the policy's pass (passes/) runs in the state that the schedule has reached. The first job on which the two differ is
reported, and the run then continues as the schedule does.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from walltime.auditor.passes import state as s
from walltime.auditor.passes.events import PASSES, RUNS
from walltime.auditor.passes.together import BY_PLAN, OBJECTIVES
from walltime.auditor.report import Violation
from walltime.compiled.cache import is_kept
from walltime.compiled.compilation import Compilation, notify
from walltime.compiled.folder import cache_folder
from walltime.policy import FCFS, Dialect, Kind, Order, Policy, Wfp
from walltime.policy.later import first_random
from walltime.policy.orders import ScoredOrder
from walltime.policy.schedule_scores import Scores
from walltime.predictors import Prediction
from walltime.predictors.history import history_for
from walltime.wording import counted
from walltime.workload import Array, Workload

COMPILED = {"heads": (40, 9.0), "plans": (55, 13.0), "combinations": (45, 10.0)}
"""For each run, the number of its functions, and the approximate time to compile them, s."""
STEPS = 20_000
"""Number of events between two reports of progress, at which Ctrl-C takes effect as well."""
COINCIDENT = {"batch": s.BATCH, "sequential": s.SEQUENTIAL, "arrivals-first": s.ARRIVALS_FIRST, "one-by-one": s.ONE_BY_ONE}
COMPRESSION = {"once": 0, "fixpoint": 1, "always": 2}
EXTRA = {"all": s.ALL, "literal": s.LITERAL, "none": s.NONE}
SHADOW = {"always": s.AFRESH, "kept": s.UNTIL_END, "once": s.ONCE}
INCREMENTS = {"prediction": s.BY_PREDICTION, "elapsed": s.BY_ELAPSED}
CORRECTIONS = {"none": s.NOT_CORRECTED, "estimate": s.TO_ESTIMATE, "double": s.DOUBLED, "half": s.HALVED, "soft": s.EXTENDED}


class RecordedJobs(NamedTuple):
    """The jobs of a schedule, int64, one entry per job in any order; times in s.

    `job`: indices into the workload. `submit`: computed from the schedule if there is feedback. `runtime`: effective. `estimate`: the
    planned runtime without predictions. `kind`, `reserved_start`: columns of the schedule, None if it lacks them.
    """

    job: Array
    submit: Array
    start: Array
    end: Array
    runtime: Array
    estimate: Array
    kind: Array | None
    reserved_start: Array | None


class Decisions:
    """A run along a schedule. Raises WorkloadError if the log lacks a column that the predictor or an order needs."""

    decided = 1.0
    """the share of the events at which decisions are checked"""

    def __init__(self, workload: Workload, recorded: RecordedJobs, policy: Policy, prediction: Prediction | None, rules: s.Records):
        order = np.lexsort((recorded.job, np.minimum(recorded.submit, recorded.start)))
        self.workload, self.policy, self.prediction = workload, policy, prediction
        self.recorded = RecordedJobs(*(None if column is None else column[order] for column in recorded))  # type: ignore[arg-type]
        self.ids = workload.job_id[self.recorded.job]
        self._fill(rules)
        self._orders = orders_of(policy)
        self._history = self._predictor()
        jobs = self.memory.jobs
        self._scores = Scores(workload, self._orders, (jobs.submit, jobs.start, jobs.end, jobs.estimate), self.recorded.job)
        self._columns = {name: jobs[name] for name in s.JOB.names or ()}  # plain arrays, because fields of records are slow to access
        if not rules.asks:
            self._score(np.arange(len(order)), None)

    def _fill(self, rules: s.Records) -> None:
        w, recorded, count = self.workload, self.recorded, len(self.recorded.job)
        increments = np.array(self.prediction.correction.increments if self.prediction else (), np.int64)
        bounds, by_start = np.array(self.policy.passes.bounds, np.int64), np.argsort(recorded.start, kind="stable")
        self.memory = s.new_memory(rules, count, by_start, bounds, increments)
        self.memory.state.random = first_random(self.policy.passes) if rules.iterations else 0
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
        if self.prediction is None:
            return None
        w, recorded = self.workload, self.recorded
        runtime, planned = w.runtime.copy(), w.planned.copy()
        runtime[recorded.job], planned[recorded.job] = recorded.runtime, recorded.estimate
        return history_for(self.prediction, w, w.requested, np.minimum(w.requested, planned), runtime)

    # ------------------------------------------------------------ the run

    def differences(self, progress: Callable[[int], None] | None = None) -> Iterator[tuple[int, bool]]:
        """Yield each job on which policy and schedule differ, once per kind of difference: its index, and whether the policy starts it.

        `progress` is called from time to time with the number of jobs that have started.
        """
        state, reported, run_along = self.memory.state, set(), _load_run(self.memory.run)
        while True:
            reason = run_along(*self.memory, STEPS)
            if reason == s.DONE:
                return
            if reason == s.ASKS:
                self.answer()
            elif reason == s.PAUSED:
                if progress is not None:
                    progress(int(state.started))
            elif (int(state.culprit), reason) not in reported:
                reported.add((int(state.culprit), reason))
                yield int(state.culprit), reason == s.LEFT

    def answer(self) -> None:
        """Pass the logged events to the predictor; then predict and score waiting jobs."""
        memory, predictor = self.memory, self._history
        state, lists, of = memory.state, memory.lists, self._columns
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
        for job in waiting if again else ():
            self._predict(job, now)
        if waiting:
            self._score(np.array(waiting, np.int64), now)

    def _predict(self, job: int, now: int) -> None:
        """Predict the runtime of a waiting job, and use it for planning as the prediction's options require."""
        assert self.prediction is not None
        of, uses = self._columns, self.prediction.predictions_for
        planned, estimate = of["own"][job], of["estimate"][job]
        predicted, _ = self._history.predict(int(self.recorded.job[job]), int(of["submit"][job]), now)
        of["predicted"][job] = predicted
        of["own"][job] = predicted if uses.own else estimate
        of["run"][job] = predicted if uses.running else estimate
        if of["reservation"][job] >= 0 and of["own"][job] != planned:
            self.memory.state.void = 1

    def _score(self, jobs: Array, now: int | None) -> None:
        """Score jobs for the queue and for backfilling, at a time or, with None, permanently; FCFS needs no scores."""
        of, place = self._columns, self.recorded.job[jobs]
        length = of["predicted" if self.prediction is not None and self.prediction.predictions_for.order else "estimate"][jobs]
        submit, known = of["submit"][jobs], dict[Order, Any]()
        for order, name in zip(self._orders, ("score", "back_score"), strict=True):
            changing_wfp = isinstance(order, Wfp) and order.bounds == (None, None)
            if order == FCFS or (changing_wfp and now is None):  # compiled code scores WFP in each pass
                continue
            if order not in known and changing_wfp:
                score: Any = order.score  # it also accepts arrays
                known[order] = score(now - submit, length, of["procs"][jobs], 0)
            elif order not in known:
                many = self._scores.many(order, place, length, submit, now)
                each = zip(*(column.tolist() for column in (place, length, submit)), strict=True)
                known[order] = (
                    many if many is not None else [self._scores.of(j, order, came if now is None else now, n, came) for j, n, came in each]
                )
            of[name][jobs] = known[order]

    # ------------------------------------------------------- messages

    def violations(self, progress: Callable[[int], None] | None = None) -> Iterator[Violation]:
        """Yield the differences between schedule and policy; if there are none, also wrong labels and reservations."""
        clean = True
        for job, policy_starts in self.differences(progress):
            clean = False
            yield self._left(job) if policy_starts else self._early(job)
        if clean:
            yield from self._labels()
            yield from self._reservations()

    def _left(self, job: int) -> Violation:
        """Describe a job that the policy starts now but the schedule does not."""
        state, jobs, lists = self.memory.state, self.memory.jobs, self.memory.lists
        now, own = int(state.now), self.ids[job]
        late = f"job {own} starts at {jobs.start[job]}"
        if "reserved_start_missed" in self.policy.promises:
            return self._violation("reserved_start_missed", f"{late}, although it has a reserved start at {now}", job)
        needs = self._needs(job)
        if job == (state.at_head if state.at_head >= 0 else lists.line[0]):
            return self._violation("head_waits", f"{late}, although it is first in the queue at {now}: it {needs}", job)
        return self._violation("left_waiting", f"{late}, although {self.policy.label} starts it at {now}: it {needs}", job)

    def _early(self, job: int) -> Violation:
        """Describe a job that the schedule starts now but the policy does not."""
        state, jobs, lists = self.memory.state, self.memory.jobs, self.memory.lists
        now, own, ahead = int(state.now), self.ids[job], int(lists.line[0])
        what = f"job {own} starts at {now}, although {self.policy.label} would not start it"
        if jobs.procs[job] > state.free:
            return self._violation("out_of_turn", f"{what}: it {self._needs(job)}", job)
        if ahead == job:
            return self._violation("out_of_turn", f"{what}: no event at this time causes a pass", job)
        what += f": job {self.ids[ahead]} is ahead of it"
        if jobs.overtaken[ahead] >= self.memory.rules.overtakes:
            what += f", and {counted(int(jobs.overtaken[ahead]), 'later job')} started before that job"
            return self._violation("overtaken_too_often", what, job, ahead)
        if "reservation_delayed" not in self.policy.promises:
            return self._violation("out_of_turn", what, job, ahead)
        if state.head == ahead:
            what += f", has a reservation at {state.shadow}, and leaves {state.extra} extra processors"
        else:
            what += ", and a reservation would be moved back"
        return self._violation("reservation_delayed", what, job, ahead)

    def _needs(self, job: int) -> str:
        free = int(self.memory.state.free)
        return f"needs {counted(int(self.memory.jobs.procs[job]), 'processor')}, and {free:,} {'is' if free == 1 else 'are'} free"

    def _violation(self, rule: str, message: str, *jobs: int) -> Violation:
        return Violation(rule, message, tuple(int(self.ids[job]) for job in jobs), int(self.memory.state.now))

    def _labels(self) -> Iterator[Violation]:
        """Yield the starts with a wrong label."""
        if self.recorded.kind is None:
            return
        names = {int(k): k.name.lower() for k in Kind}
        jobs = self.memory.jobs
        for job in np.flatnonzero(self.recorded.kind != jobs.kind).tolist():
            label = names.get(int(self.recorded.kind[job]), str(self.recorded.kind[job]))
            message = f"the start of job {self.ids[job]} is labelled {label}; it is {names[int(jobs.kind[job])]}"
            yield Violation("kind_wrong", message, (int(self.ids[job]),), int(jobs.start[job]))

    def _reservations(self) -> Iterator[Violation]:
        """Yield the jobs whose first reservation differs from the policy's."""
        if self.recorded.reserved_start is None:
            return
        jobs = self.memory.jobs
        for job in np.flatnonzero(self.recorded.reserved_start != jobs.reserved).tolist():
            stated, true = (int(value) for value in (self.recorded.reserved_start[job], jobs.reserved[job]))
            has = f"has its first reservation at {true}" if true >= 0 else "has no reservation"
            message = f"the schedule gives job {self.ids[job]} a first reservation at {stated}; it {has}"
            yield Violation("reserved_start_differs", message, (int(self.ids[job]),), int(jobs.start[job]))

    @property
    def predicted(self) -> Array:
        """Return the predicted runtime of each job of the workload, int64 s; 0 for a job that is not in the schedule."""
        predicted = np.zeros(len(self.workload), np.int64)
        predicted[self.recorded.job] = self.memory.jobs.predicted
        return predicted


def encode_policy(
    policy: Policy, dialect: Dialect, prediction: Prediction | None, procs: int, all_reserved: bool, histories: bool = False
) -> s.Records | None:
    """Return the rules of a policy as one record.

    The result is None for a policy without a pass here and, without `histories`, for an order that reads the history of the schedule.
    """
    passes, orders = policy.passes, orders_of(policy)
    if passes.kind not in PASSES or (any(order.history_of for order in orders) and not histories):
        return None
    wfp_powers = [order.exponent if isinstance(order, Wfp) and order.bounds == (None, None) else None for order in orders]
    powers = [None if prediction is not None else power for power in wfp_powers]
    same = ("backfills", "window", "committed", "head_runtime_factor", "ahead", "omega", "factor", "recent", "iterations")
    values: dict[str, Any] = {name: getattr(passes, name) for name in same} | {
        "kind": list(PASSES).index(passes.kind),
        "plans": passes.kind in BY_PLAN,
        "keeps": passes.kind == "kept",
        "depth": s.NEVER if passes.depth is None else passes.depth,
        "plain_heads": not passes.window and not passes.committed,
        "extra": EXTRA[passes.extra],
        "shadow": SHADOW[passes.shadow],
        "before": passes.ends == "before",
        "cost_power": passes.power,
        "overtakes": s.NEVER if passes.overtakes is None else min(passes.overtakes, s.NEVER),
        "compression": COMPRESSION[passes.compression],
        "objective": OBJECTIVES[passes.objective],
        "threshold_of_all": passes.adapts,
        "procs": procs,
        "near": policy.order.threshold if isinstance(policy.order, Wfp) else 0.0,
        "coincident": COINCIDENT[dialect.coincident],
        "silent": dialect.expiry == "silent",
        "dynamic": any(map(changes, orders)) or (prediction is not None and prediction.predictor.again),
        "all_reserved": all_reserved,
        "power": powers[0] or 0,
        "back_power": powers[1] or 0,
        "asks": prediction is not None or any(changes(order) for order, power in zip(orders, powers, strict=True) if power is None),
    }
    if prediction is not None:
        correction = prediction.correction
        kind = INCREMENTS[correction.relative] if correction.kind == "tsafrir07" else CORRECTIONS[correction.kind]
        values["correction"] = kind if prediction.predictions_for.running else s.NOT_CORRECTED
        values |= {"capped": correction.capped, "fitting": not passes.every_arrival}
    rules = np.zeros(1, s.RULES).view(np.recarray)[0]
    for name, value in values.items():
        rules[name] = value
    return rules


def orders_of(policy: Policy) -> tuple[Order, Order]:
    """Return the queue order and the backfill order."""
    return policy.order, getattr(policy, "backfill_order", None) or policy.order


def changes(order: Order) -> bool:
    """Return whether the scores of an order change while jobs wait."""
    return order != FCFS and (order.bounds != (None, None) or (isinstance(order, ScoredOrder) and order.reads_time))


def _load_run(name: str) -> Callable[..., int]:
    """Return a compiled run, and announce its compilation if it is not stored yet."""
    function = RUNS[name]
    if getattr(function, "dispatcher", function) is None and not is_kept(function, cache_folder()):
        notify(Compilation(f"audit-{name}", "audits", *COMPILED[name]))
    return function
