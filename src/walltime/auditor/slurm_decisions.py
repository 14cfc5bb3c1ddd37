"""A walk along a schedule made by Slurm: the reference engine decides at every event and backfill cycle, in the state of the schedule."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.engine.problem import Problem
from walltime.engine.reference.nodes import Free, Given, SlurmJob
from walltime.engine.reference.slurm import SlurmReference
from walltime.estimates import effective_times
from walltime.machine.placing import NEVER
from walltime.node_demands import problem_fields
from walltime.policy import Policy, Slurm
from walltime.policy.log_view import LogView

Array = np.ndarray


class SlurmWalk(SlurmReference, Walk):
    """A walk along a schedule made by Slurm."""

    def __init__(self, schedule: MachineSchedule, policy: Slurm):
        problem = problem_of(schedule, policy)
        SlurmReference.__init__(self, problem)
        Walk.__init__(self, schedule)
        self.recorded = None if schedule.slots is None else _by_job(schedule.slots, problem)
        self.runtimes = [job.runtime for job in self.jobs]
        self.begun_now: list[SlurmJob] = []
        self.preempted: set[int] = set()  # jobs whose preemption has been reported
        self.differences: list[Difference] = []
        """Differences in the nodes, limits and ends of jobs that the schedule and Slurm start at the same time."""

    def _has_started(self, job: int) -> bool:
        return self.jobs[job].ticket >= 0

    def _begin_job(self, job: int) -> Iterator[Difference]:
        one = self.jobs[job]
        self._run(one, self.usable(one, self.free, 0, 1, []), one.since, one.planned)
        yield from self._found()

    def _found(self) -> Iterator[Difference]:
        yield from self.differences
        self.differences.clear()

    def _next_passes(self, is_more_to_come: bool) -> list[int]:
        """Return when the next passes are made; none are made if all waiting jobs have already been reported."""
        return [] if all(job.index in self.late for job in self.waiting) else super()._next_passes(is_more_to_come)

    def _instant(self) -> Iterator[Difference]:
        came, gone = self._process_events()
        yield from self._found()
        if self.waiting and self.settled == self.now:
            self._adopt(self.now)
        elif self.waiting:
            self.begun_now.clear()
            self._schedule(came, gone)
            yield from self._found()
            if any(self.start[job.index] != self.now for job in self.begun_now):
                for job in self.begun_now:
                    self._release_nodes(job)
                    job.start, job.ticket, job.runtime = -1, -1, self.runtimes[job.index]
                    self.waiting.append(job)
                self._sort()
                yield from self._report_late([job.index for job in self.begun_now])
                self._adopt(self.now)

    def _to_backfill(self) -> list[SlurmJob]:
        """Return the jobs up to the last one for which there is room now; planning later jobs would start nothing."""
        waiting = list(self.waiting)
        if self.machine.preemption is not None:
            return waiting
        free = self.free[0]
        procs, nodes, whole = int(free.sum()), np.count_nonzero(free), np.count_nonzero((free > 0) & (free == self.capacity[0]))
        while waiting:
            job = waiting[-1]
            if job.fewest <= (whole if job.whole else nodes) and job.asked <= procs:
                break
            waiting.pop()
        return waiting

    def _run(self, job: SlurmJob, free: Free, start: int, limit: int) -> None:
        """Start a job, compare its nodes and its end with Slurm's, and let it run as in the schedule."""
        super()._run(job, free, start, limit)
        self.begun_now.append(job)
        if self.start[job.index] == start:
            self._check(job)
        self._follow(job)

    def _follow(self, job: SlurmJob) -> None:
        """Run a started job on its nodes in the schedule, until its end in the schedule."""
        job.runtime = self.end[job.index] - self.start[job.index]
        if self.recorded is not None and not self.later.get(job.index):
            self.free[:, job.given.nodes] += job.given.amounts
            job.given = self.recorded[job.index]
            self.free[:, job.given.nodes] -= job.given.amounts

    def _adopt_job(self, job: int) -> None:
        one = self.jobs[job]
        self.coming.discard(job)
        limit = one.planned if self.schedule.limit is None else min(int(self.schedule.limit[job]), one.planned)
        super()._run(one, self.usable(one, self.free, self.now, 1, []), self.start[job], limit)
        self._follow(one)

    def _adopt(self, moment: int) -> int:
        """Start jobs as the schedule does; if the only difference is that jobs wait, the next passes have nothing new to try."""
        count = super()._adopt(moment)
        self._news = self._news_for_all = count > 0
        return count

    # ------------------------------------------------------------------ preemption

    def _preempt(self, job: SlurmJob, victims: list[SlurmJob]) -> None:
        """Preempt jobs for another job; those that the schedule does not preempt then continue."""
        for other in victims:
            if self._is_cut(other.index) and other.due == NEVER:
                other.runtime = self.runtimes[other.index]
        super()._preempt(job, victims)
        for other in victims:
            k = other.index
            may_fail = self.now < self.end[k] < other.due  # `_lose_nodes` then checks whether a node fails in the grace time
            if other.due < NEVER and not (self._is_cut(k) and (self.end[k] == other.due or may_fail)):
                self._note_preemption(other, f"must end at {other.due} for job {self._job_id(job)}, but runs until {self.end[k]}")
                other.due = NEVER
            other.runtime = self.end[k] - other.start

    def _lose_nodes(self) -> None:
        """End jobs that lose a node, unless they continue in the schedule, and note jobs that end early without a reason."""
        for job in self.running:
            if job.end <= self.now < job.due and self._is_cut(job.index):
                job.runtime = self.runtimes[job.index]
        super()._lose_nodes()
        for job in self.running:
            k, is_cut = job.index, self._is_cut(job.index)
            if job.due == self.now and not (is_cut and self.end[k] == self.now):
                self._note_preemption(job, f"must end at {self.now}, when one of its nodes fails, but runs until {self.end[k]}")
                job.due = NEVER
            job.runtime = self.end[k] - job.start
            if job.end <= self.now and job.due != job.end and is_cut:
                self._note_preemption(job, f"ends at {job.end}, without a failure and when Slurm does not preempt it")
                job.due = job.end

    def _returns(self, job: SlurmJob) -> bool:
        requeued = bool(self.later.get(job.index))
        if self.machine.preemption is None or requeued != super()._returns(job):
            self._note_preemption(job, f"{'returns' if requeued else 'does not return'} to the queue after a preemption")
        if requeued:
            self._go_to_next_run(job.index)
        return requeued

    def _note_preemption(self, job: SlurmJob, what: str) -> None:
        if job.index not in self.preempted:
            self.preempted.add(job.index)
            self.differences.append(self._difference("preemption", job.index, what))

    def _job_id(self, job: SlurmJob) -> int:
        return int(self.schedule.workload.job_id[job.index])

    # ------------------------------------------------------------------ differences

    def _note(self, rule: str, job: SlurmJob, what: str) -> None:
        self.differences.append(self._difference(rule, job.index, what, job.start))

    def _check(self, job: SlurmJob) -> None:
        """Check the nodes, limit and end of a job that starts when Slurm starts it."""
        k = job.index
        requested, shorter = int(self.schedule.workload.requested[k]), job.limit < job.planned
        recorded = requested if self.schedule.limit is None else int(self.schedule.limit[k])
        due = min(job.limit, requested) if shorter else requested
        is_last = not self.later.get(k)
        if is_last and self.schedule.limit is not None and recorded != due:  # the schedule has the limit of the last run
            self._note("limit_shortened", job, f"starts under a limit of {recorded} s; Slurm gives it {due} s")
        elif (shorter or job.time_min > 0) and self.end[k] != job.end and not self._is_cut(k):
            self._note("end_differs", job, f"ends at {self.end[k]}; under its limit of {due} s it ends at {job.end}")
        if self.recorded is not None and is_last:
            order, actual = np.argsort(job.given.nodes), self.recorded[k]
            chosen = Given(job.given.nodes[order], job.given.amounts[:, order])
            if not all(map(np.array_equal, chosen, actual)):
                self._note("node_order", job, "has other nodes than Slurm chooses for it")

    def _too_late(self, job: int) -> Difference:
        if self.waiting[0].index == job:
            what = f"has the highest priority and finds its nodes at {self.now}, but {self._actual_start(job)}"
            return self._difference("head_waits", job, what)
        what = f"finds its nodes at {self.now} and delays no job planned before it, but {self._actual_start(job)}"
        return self._difference("left_waiting", job, what)

    def _too_early(self, job: int) -> Difference:
        one = self.jobs[job]
        fits = self.is_enough(one, self.usable(one, self.free, self.now, 1, []))
        if one in self.waiting and fits and self.waiting[0] is not one:
            what = f"starts at {self.now}, ahead of jobs of a higher priority that it may delay"
            return self._difference("reservation_delayed", job, what)
        return self._difference("out_of_turn", job, f"starts at {self.now}, when neither of Slurm's schedulers starts it")


def problem_of(schedule: MachineSchedule, policy: Policy) -> Problem:
    """Return the problem that the schedule should solve."""
    jobs, placement = schedule.workload, schedule.placement
    after, think = jobs.dependencies() if jobs.feedback else (np.full(len(jobs), -1), np.zeros(len(jobs), np.int64))
    runtime, planned = effective_times(jobs, schedule.overrun)
    return Problem(
        submit=jobs.submit,
        runtime=runtime,
        planned=planned,
        procs=jobs.procs,
        policy=policy,
        after=np.where(placement.since < NEVER, -1, after),
        think=think,
        known=LogView.of(policy.reads, jobs, jobs.requested),
        kill=schedule.overrun == "kill",
        **problem_fields(jobs, placement, policy),
    )


def _by_job(slots: Sequence[Array], problem: Problem) -> list[Given]:
    """Return the nodes of each job, in order, and its amounts on each; its memory follows from its processors."""
    job, node, procs, second = slots
    demands: Any = problem.demands
    order = np.lexsort((node, job))
    first = np.searchsorted(job[order], np.arange(len(problem) + 1))
    each, by_task, task, whole = (getattr(demands, name)[job] for name in ("memory", "task_memory", "task", "whole"))
    memory = np.where(whole > 0, 0, np.where(each > 0, each, by_task * (procs // task)))
    machine: Any = problem.machine
    nodes, amounts = node[order], machine.allocated(demands.second_row[job], procs, second, memory)[:, order]
    return [Given(nodes[a:b], amounts[:, a:b]) for a, b in pairwise(first.tolist())]
