"""The reference engine: the papers' algorithms, transcribed into plain Python so that they can be compared with the text.

It is slow, and shares nothing with the compiled kernel but the declarations of policies. Every schedule of the kernel must equal its own,
job for job. It also runs policies that are written in plain Python (`walltime.PlainPolicy`).
"""

import bisect
import math
from collections.abc import Callable, Iterable, Sequence

from walltime.engine.problem import Problem
from walltime.engine.reference import later
from walltime.engine.reference.engine import Engine
from walltime.engine.reference.plain import Job, Profile, followers_of, release_followers
from walltime.errors import EngineError, PolicyError
from walltime.policy import FCFS, Order, Wfp
from walltime.policy.easy import find_shadow
from walltime.policy.later import first_random

COINCIDENT = ("batch", "sequential", "arrivals-first", "one-by-one")


class Reference(Engine):
    """A simulation on a single-pool machine; `run` it, then read `jobs`.

    If starts are logged, each job also records the effects of its start (`wild`, `suffered`, `delay`, `shortest`, `alone`).
    """

    def __init__(self, problem: Problem):
        if problem.coincident not in COINCIDENT:
            raise PolicyError(f"unknown way to handle simultaneous events {problem.coincident!r}. Valid options: {', '.join(COINCIDENT)}")
        assert isinstance(problem.machine, int), "or another reference is for it"
        super().__init__(problem, problem.machine)
        self.jobs = [Job(index, *row) for index, row in enumerate(problem.rows())]
        self.coincident, self.expiry, self.dynamics = problem.coincident, problem.expiry, problem.logged
        self.waiting: list[Job] = []  # in order of arrival
        self.running: list[Job] = []  # in the order in which they started
        self.terminating: list[Job] = []  # jobs that count as ended but whose termination is not yet handled (not with `batch`)
        self.terminated = False  # whether a job has ended since the shadow time was found
        self._kept: tuple[Job | None, int, int] = (None, 0, 0)  # the last head with a reservation, its shadow time and the extra processors
        self._committed: Job | None = None  # the head that was chosen
        self.earliest_shadow: tuple[Job | None, int] = (None, 0)  # the head, and its earliest shadow time so far
        self.expected_wait: dict[int, int] = {}  # by job: its wait until the first reservation that it had as the head, s
        self.line, self.latest = list[Job](), dict[int, int]()  # slack: the waiting jobs as planned, and the latest start of each
        self.random = first_random(self.passes) if self.passes.iterations else 0  # state of the random number generator (plan-based)
        self.processors: dict[int, set[int]] = {}  # by job: the particular processors that it has, had or reserves
        self.seen, self.on_machine = set[int](), set[int]()  # jobs that an earlier pass has placed, and jobs that ran after it
        self._followers = followers_of(self.jobs)
        self._arriving = [job for job in self.jobs if job.after < 0]  # submitted in the future, in order of submission

    @property
    def free(self) -> int:
        """Return the processors that no job runs on."""
        return self.machine_procs - sum(job.procs for job in self.running)

    def step(self, until: float = math.inf) -> bool:
        """Handle the next event and make the pass after it; return False if there is none (then `done`), or it is later than `until`, s."""
        times = [job.end for job in self.running] + [self.now] * len(self.terminating)
        times += [job.submit for job in self._arriving[:1]]
        expiries = [job.expected_end for job in self.running if self._can_be_corrected(job)]
        if self.passes.kind == "kept" and not self.overdue:
            times += [job.reservation for job in self.waiting]
        others, times = times, times + expiries
        wake_up, woken = self._wake_up(times)
        times += wake_up
        self.done = not times
        if self.done and self.waiting:
            raise self._stuck()
        if self.done or min(times) > until:
            return False
        self.now, self._woken = min(times), woken
        if self.expiry == "silent" and self.now not in (*others, *self._wake_ups):
            self._correct_expired()
            return True
        self._wake_ups.discard(self.now)
        quiet, waiting = self._nothing_but_arrivals(), len(self.waiting)
        (self._all_events if self.coincident == "batch" else self._one_event)()
        if not quiet or any(job.procs <= self.free for job in self.waiting[waiting:]):
            self._pass()
        return True

    def _stuck(self) -> EngineError:
        if self._own is None:
            return EngineError(f"{len(self.waiting)} jobs wait for processors that no running job will free", "endless_wait")
        return self._starts_nothing()

    def _nothing_but_arrivals(self) -> bool:
        """Return whether only jobs arrive now, and the policy makes no pass for those that do not fit."""
        if self.predictions is None or self.passes.every_arrival:
            return False
        ends = self.terminating or any(job.end == self.now for job in self.running)
        if not self._arriving or self._arriving[0].submit != self.now or (ends and self.coincident != "sequential"):
            return False
        expires = any(self._can_be_corrected(job) and job.expected_end == self.now for job in self.running)
        return self.expiry == "silent" or not expires

    def _all_events(self) -> None:
        """Handle all terminations of this instant, then corrections, then all arrivals."""
        for job in [job for job in self.running if job.end == self.now]:
            self._terminate(job)
        self._correct_expired()
        while self._arriving and self._arriving[0].submit == self.now:
            self._arrive()

    def _one_event(self) -> None:
        """Handle one event: an arrival, else the termination of the job that started first; with `one-by-one`, terminations come first.

        Jobs whose expected and real ends are both this instant count as ended even before their termination, except with `arrivals-first`.
        Predictions that expire now are corrected before the first event of this instant; if there is none, they are the event.
        """
        ending = [job for job in self.running if job.expected_end == self.now == job.end]
        for job in ending if self.coincident != "arrivals-first" else ():
            self.running.remove(job)
            self.terminating.append(job)
        self._correct_expired()
        arrives = bool(self._arriving) and self._arriving[0].submit == self.now
        if arrives and self.coincident != "one-by-one":
            self._arrive()
            return
        ending = self.terminating + [job for job in self.running if job.end == self.now]
        if ending:
            self._terminate(min(ending, key=lambda job: job.ticket))
        elif arrives:
            self._arrive()

    def _arrive(self) -> None:
        self._enter(self._arriving.pop(0))

    def _correct_expired(self) -> bool:
        corrected = super()._correct_expired()
        if corrected:
            self._kept = (None, 0, 0)
        return corrected

    def _terminate(self, job: Job) -> None:
        """Handle the end of a job, and submit the jobs that waited for it, each after its think time."""
        (self.running if job in self.running else self.terminating).remove(job)
        self.terminated = True
        self.ended_early = self.ended_early or self.now < job.expected_end
        self._note_end(job)
        for follower in release_followers(self._followers, job.index, self.now):
            bisect.insort(self._arriving, follower, key=lambda job: (job.submit, job.index))

    def _start(self, job: Job, ahead: Iterable[Job] = ()) -> None:
        """Start a job; it is backfilled if one of the jobs `ahead` of it waits."""
        if self.dynamics:
            job.shortest = all(job.runtime <= other.runtime for other in self.waiting)
            job.alone = len(self.waiting) == 1
        for other in self._ahead(job):
            other.overtaken += 1
        self._begin(job, any(other.start < 0 for other in ahead))

    def _ahead(self, job: Job) -> list[Job]:
        """Return the jobs that arrived before this one and wait."""
        return self.waiting[: self.waiting.index(job)]

    def _may_overtake(self, job: Job) -> bool:
        """Return whether the bound on overtaking lets a job start (feitelson98, section 1)."""
        most = self.passes.overtakes
        return most is None or all(other.overtaken < most for other in self._ahead(job))

    def _near_enough(self, jobs: Sequence[Job], head: Job) -> list[Job]:
        """Return the jobs that may start in place of the blocked head: with a threshold, those with a high enough score."""
        order = self.policy.order
        threshold = order.threshold if isinstance(order, Wfp) else 0
        if threshold == 0:
            return list(jobs)
        return [job for job in jobs if self._score(job, order) >= threshold * self._score(head, order)]

    def _expected_end(self, job: Job, overdue: int) -> int:
        """Return the expected end of a running job; a job that has passed it is expected to end at `overdue`."""
        return job.expected_end if job.expected_end > self.now else overdue

    def reserved(self) -> tuple[dict[int, int], int | None]:
        """Return the reserved starts after a pass, by job, s, and under EASY the extra processors of the head."""
        if self.policy.reservations.kept:
            return {job.index: job.reservation for job in self.waiting if job.reservation >= 0}, None
        head, shadow, extra = self._kept
        queue = self._in_order(self.waiting, self.policy.order)
        if self.policy.reservations.of == "head" and queue and head is queue[0]:
            return {head.index: shadow}, extra
        return {job.index: job.reserved_start for job in self.waiting if job.reserved_start >= 0}, None

    def _pass(self) -> None:
        if self.predictions is not None and self.predictions.again:
            for job in self.waiting:
                self._predict(job)
        passes = self.passes
        match passes.kind:
            case "head" if passes.depth:
                self._easy(self._shadow_and_extra)
            case "head" if passes.backfills:
                self._backfill_without_reservation()
            case "head":
                self._start_heads()
            case "fresh":
                self._reserve_from_scratch(passes.depth)
            case "kept":
                self._keep_reservations(passes.compression)
            case "python":
                self._ask()
            case kind if kind in later.PASS_OF_KIND:
                later.PASS_OF_KIND[kind](self)
            case _:
                raise PolicyError(f"the reference engine does not support the policy {self.policy!r}", "unsupported_policy")

    def _start_heads(self) -> list[Job]:
        """Start the head of the queue while it fits (feitelson98, section 1); return the queue that is left, in order."""
        queue = self._queue()
        while queue and queue[0].procs <= self.free:
            head = queue.pop(0)
            head.run_length *= self.passes.head_runtime_factor  # doubled by `HeadDoubleEasyScheduler` of pyss
            self._start(head)
            if self.passes.window or self.passes.committed:
                queue = self._queue()
        return queue

    def _queue(self) -> list[Job]:
        """Return the queue in order, the head first: all waiting jobs, or those in the window; a committed head comes first."""
        if self._committed is not None and self._committed.start < 0:
            return [self._committed, *(job for job in self.waiting if job is not self._committed)]
        queue = self._in_order(self.waiting[: self.passes.window or None], self.policy.order)
        if self.passes.committed:
            self._committed = queue[0] if queue else None
        return queue

    def _easy(self, reservation_of: Callable[[Job], tuple[int, int]]) -> None:
        """Make a pass of algorithm EASY Backfill (mualem01, section 2.2), restarted after every job that it starts.

        `reservation_of`: a function that returns the start reserved for the head, and the extra processors.
        """
        while True:
            queue = self._start_heads()
            if not queue:
                return
            head, others = queue[0], self._near_enough(queue[1:], queue[0])
            shadow, extra = reservation_of(head)
            # 2. Find a backfill job.
            free = self.free
            for job in self._in_order(others, self._backfill_order()):
                ends = self.now + job.planned
                ends_by_shadow = job.procs <= free and (ends < shadow or (ends == shadow and self.passes.ends == "by"))
                uses_extra_nodes = job.procs <= min(free, extra)
                if (ends_by_shadow or uses_extra_nodes) and self._may_overtake(job):
                    self._backfill(job, head)
                    break
            else:
                return

    def _shadow_and_extra(self, head: Job) -> tuple[int, int]:
        """Return the head's shadow time and extra processors, computed now or in an earlier pass (step 1)."""
        reading, (kept_for, shadow, extra) = self.passes, self._kept
        if kept_for is not head or reading.shadow == "always" or (self.terminated and reading.shadow == "kept"):
            shadow, extra = self._shadow(head, literal=reading.extra == "literal")
            extra = 0 if reading.extra == "none" else extra
            self._kept, self.terminated = (head, shadow, extra), False
        self._note_head(head, shadow)
        return shadow, extra

    def _note_head(self, head: Job, shadow: int) -> None:
        head.note_reservation(shadow)
        if self.dynamics and head.shadow_at_head < 0:
            head.shadow_at_head = self._real_shadow(head)

    def _shadow(self, head: Job, literal: bool) -> tuple[int, int]:
        """Return the shadow time and extra processors (step 1); read literally, the job that started last comes first among equal ends."""
        running = reversed(self.running) if literal else self.running
        ends = [(self._expected_end(job, self.now), job.procs) for job in running]
        return find_shadow(ends, self.free, head.procs, self.now, literal)

    def _backfill(self, job: Job, head: Job) -> None:
        """Start a job ahead of the head, and record whether that moves the head's real shadow to a later time (tsafrir06, section V)."""
        if not self.dynamics:
            self._start(job, [head])
            return
        before = self._real_shadow(head)
        if head.initial_shadow < 0:
            head.initial_shadow = before
            if self.policy.order == FCFS:
                # Only starts move the real shadow, and in order of arrival no other job starts from the head meanwhile.
                assert before == head.shadow_at_head, "nothing moved the real shadow before the first backfill"
        self._start(job, [head])
        if self._real_shadow(head) > before:
            job.wild = True
            head.suffered += 1

    def _real_shadow(self, head: Job) -> int:
        """Return when the head would start if the real ends of running jobs were known and no other job started (tsafrir06, section V)."""
        return find_shadow([(job.end, job.procs) for job in self.running], self.free, head.procs, self.now)[0]

    def _backfill_order(self) -> Order:
        return getattr(self.policy, "backfill_order", None) or self.policy.order

    def _backfill_without_reservation(self) -> None:
        """Start the heads that fit, then all other jobs that fit; no job has a reservation."""
        queue = self._start_heads()
        head = queue[:1]
        for job in self._in_order(self._near_enough(queue, *head) if head else [], self._backfill_order()):
            if job.procs <= self.free and self._may_overtake(job):
                self._start(job, head)

    def _profile_of_running(self) -> Profile:
        profile = Profile(self.now, self.machine_procs)
        for job in self.running:
            profile.occupy(job.start, self._expected_end(job, self.now + 1), job.procs)
        return profile

    def _reserve_from_scratch(self, depth: int | None) -> None:
        """Make a pass of conservative backfill from scratch (feitelson98, Fig. 1), with reservations for `depth` blocked jobs only."""
        profile, line = self._profile_of_running(), self._in_order(self.waiting, self.policy.order)
        others, blocked = list(line), 0
        while others and (depth is None or blocked < depth):
            blocked += not self._reserve(others.pop(0), profile, line)
        self._start_around(profile, others, line)

    def _reserve(self, job: Job, profile: Profile, line: Sequence[Job]) -> bool:
        """Give a job a reservation; start it if that is now, and return whether it is; `line`: the queue at the beginning of the pass."""
        anchor = profile.reserve(job)
        job.note_reservation(anchor)
        if anchor == self.now:
            self._start(job, line[: line.index(job)])
        return anchor == self.now

    def _start_around(self, profile: Profile, others: Sequence[Job], line: Sequence[Job]) -> None:
        """Start the other jobs that delay no reservation, in the backfill order."""
        for job in self._in_order(others, self._backfill_order()):
            if profile.anchor(job) == self.now:
                profile.reserve(job)
                self._start(job, line[: line.index(job)])

    def _keep_reservations(self, compression: str) -> None:
        """Make a pass of algorithm Conservative Backfill (mualem01, section 2.1) with compression.

        All reservations are recomputed while a running job is overdue. They are also recomputed once when a prediction has been corrected
        or a waiting job is planned with another length, and once after the start of a job whose expected runtime is longer than its
        reservation.
        """
        overdue = any(job.expected_end <= self.now for job in self.running)
        profile = self._profile_of_running()
        if overdue or self.reservations_void:
            for job in self._in_order(self.waiting, self.policy.order):
                job.reservation = profile.reserve(job)
        else:
            planned = [job for job in self.waiting if job.reservation >= 0]
            for job in planned:
                profile.occupy(job.reservation, job.reservation + job.planned, job.procs)
            moves = self.ended_early or compression == "always"
            while moves:
                before = [job.reservation for job in planned]
                for job in self._in_order(planned, self.policy.order):
                    old = job.reservation
                    profile.occupy(old, old + job.planned, -job.procs)
                    job.reservation = profile.reserve(job)
                    assert job.reservation <= old, "compression never delays a job"
                moves = compression == "fixpoint" and before != [job.reservation for job in planned]
            for job in self.waiting:
                if job.reservation < 0:
                    job.reservation = profile.reserve(job)
        self.ended_early = False
        self.overdue = self.reservations_void = overdue
        for job in list(self.waiting):
            job.note_reservation(job.reservation)
            if job.reservation == self.now:
                self._start(job, self._ahead(job))
                if job.run_length > job.planned:
                    self.reservations_void = True  # it needs time that was reserved for others

    def _ask(self) -> None:
        """Start the jobs that a policy in plain Python chooses, after checking that they may start."""
        for job in self._chosen(self.free):
            if job.procs > self.free:
                raise PolicyError(
                    f"{self.policy.name} chose job number {job.index + 1}, which needs {job.procs} processors, but {self.free} are free",
                    "choice_too_large",
                )
            self._start(job, self._ahead(job))
