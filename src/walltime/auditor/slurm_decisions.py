"""A walk along a schedule made by Slurm: the reference engine decides at every event and backfill cycle, in the state of the schedule.

Its starts are compared with the schedule's. After a difference the walk continues as the schedule does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from walltime.auditor.walk import Difference, MachineSchedule
from walltime.engine.problem import Problem
from walltime.engine.reference.nodes import Free, Given, SlurmJob, SlurmReference
from walltime.estimates import effective_times
from walltime.machine.placing import NEVER
from walltime.node_demands import demands_on, nodes_of, with_priorities
from walltime.policy import Slurm

Array = np.ndarray


class SlurmWalk(SlurmReference):
    """A simulation of Slurm that follows a schedule and records the starts where it would have decided differently."""

    def __init__(self, schedule: MachineSchedule, policy: Slurm):
        super().__init__(problem_of(schedule, policy))
        self.schedule, self.overrun = schedule, schedule.overrun
        self.actual_start, self.actual_end = schedule.start.tolist(), np.maximum(schedule.start, schedule.end).tolist()
        self.actual_nodes = None if schedule.slots is None else _by_job(schedule.slots, len(self.jobs))
        self.runtimes = [job.runtime for job in self.jobs]
        self.differences: list[Difference] = []
        self.late: set[int] = set()  # reported as left waiting
        self.begun_now: list[SlurmJob] = []
        self.settled: int | None = None

    # ------------------------------------------------------------------ from event to event

    def run(self) -> Iterator[Difference]:
        """Walk along the schedule and yield its differences from Slurm's decisions."""
        self._place_first()
        yield from self._reported()
        self.to_start = sorted((self.jobs[k] for k in self.coming), key=lambda job: (-self.actual_start[job.index], -job.index))
        begun = False
        while True:
            moment, recorded = self._next_event(), self._next_recorded()
            if moment is None and recorded is None:
                return
            is_recorded = recorded is not None and (moment is None or recorded < moment)
            to = recorded if is_recorded else moment
            assert to is not None
            self.now, begun = max(self.now, to) if begun else to, True  # the first may be before 0
            if is_recorded:
                if self.settled != recorded and self.to_start[-1].index not in self.late:
                    self._report_early(self.to_start[-1])
                self._adopt(to)
            else:
                self._decide()
            yield from self._reported()

    def _reported(self) -> Iterator[Difference]:
        """Yield the new differences."""
        yield from self.differences
        self.differences.clear()

    def _next_recorded(self) -> int | None:
        """Return when the schedule starts the next job that has not started here; None without one."""
        while self.to_start and self.to_start[-1].start >= 0:
            self.to_start.pop()
        return self.actual_start[self.to_start[-1].index] if self.to_start else None

    def _next_passes(self, is_more_to_come: bool) -> list[int]:
        """Return when passes are made; for jobs that have been reported alone there are none."""
        return [] if all(job.index in self.late for job in self.waiting) else super()._next_passes(is_more_to_come)

    def _decide(self) -> None:
        """Handle the events of this instant, let the schedulers decide, and compare their starts."""
        came, gone = self._process_events()
        if not self.waiting:
            return
        if self.settled == self.now:
            self._adopt(self.now)
            return
        self.begun_now.clear()
        self._schedule(came, gone)
        wrong = next((job for job in self.begun_now if self.actual_start[job.index] != self.now), None)
        if wrong is None:
            return
        for job in self.begun_now:
            self._release_nodes(job)
            job.start, job.runtime = -1, self.runtimes[job.index]
            self.waiting.append(job)
        self._sort()
        if wrong.index not in self.late:
            self._report_late(wrong)
            self.late.add(wrong.index)
        self._adopt(self.now)

    def _to_backfill(self) -> list[SlurmJob]:
        """Return the jobs up to the last one for which there is room now: plans of later jobs start nothing."""
        waiting = list(self.waiting)
        free = self.free[0]
        procs, nodes, whole = int(free.sum()), np.count_nonzero(free), np.count_nonzero((free > 0) & (free == self.capacity[0]))
        while waiting:
            job = waiting[-1]
            if (job.fewest <= whole) if job.whole else (job.fewest <= nodes and job.procs <= procs):
                break
            waiting.pop()
        return waiting

    # ------------------------------------------------------------------ what the schedule does

    def _begin_at_first(self, job: SlurmJob, free: Free) -> None:
        start = self.actual_start[job.index]
        if start != job.since:
            self._report("out_of_turn", job, f"runs since {job.since}, but the schedule starts it at {start}", start)
        self.actual_start[job.index], self.actual_end[job.index] = job.since, job.since + self.actual_end[job.index] - start
        self._run(job, free, job.since, job.believed)

    def _run(self, job: SlurmJob, free: Free, start: int, limit: int) -> None:
        """Start a job, on the schedule's nodes and until the schedule's end, after comparing these with Slurm's."""
        super()._run(job, free, start, limit)
        self.begun_now.append(job)
        if self.actual_start[job.index] == start:
            self._check(job)
        self._follow(job)

    def _follow(self, job: SlurmJob) -> None:
        """Let a job that starts run until the schedule's end, on the schedule's nodes."""
        job.runtime = self.actual_end[job.index] - self.actual_start[job.index]
        if self.actual_nodes is not None:
            self.free[:, job.given.nodes] += job.given.amounts
            job.given = self.actual_nodes[job.index]
            self.free[:, job.given.nodes] -= job.given.amounts

    def _adopt(self, moment: int) -> None:
        """Start the jobs that the schedule has started by now; if it only leaves jobs waiting, the next passes have nothing new to try."""
        self.settled, before = moment, self._started
        while self.to_start and self.actual_start[self.to_start[-1].index] <= moment:
            job = self.to_start.pop()
            if job.start < 0:
                self.coming.discard(job.index)
                limit = job.believed if self.schedule.limit is None else min(int(self.schedule.limit[job.index]), job.believed)
                super()._run(job, self._usable(job, self.free, self.now, 1, []), self.actual_start[job.index], limit)
                self._follow(job)
        self._news = self._news_for_all = self._started > before

    # ------------------------------------------------------------------ differences

    def _report(self, rule: str, job: SlurmJob, what: str, moment: int | None = None) -> None:
        number = self.schedule.workload.job_id[job.index]
        self.differences.append((rule, f"job {number} {what}", job.index, self.now if moment is None else moment))

    def _check(self, job: SlurmJob) -> None:
        """Check the nodes, limit and end of a job that starts when Slurm starts it."""
        k, now = job.index, job.start
        requested, shorter = int(self.schedule.workload.requested[k]), job.limit < job.believed
        recorded = requested if self.schedule.limit is None else int(self.schedule.limit[k])
        due = min(job.limit, requested) if shorter else requested
        if self.schedule.limit is not None and recorded != due:
            self._report("limit_shortened", job, f"starts under a limit of {recorded} s; Slurm gives it {due} s", now)
        elif (shorter or job.time_min > 0) and self.actual_end[k] != job.end:
            what = f"ends at {self.actual_end[k]}; under its limit of {due} s it ends at {job.end}"
            self._report("end_differs", job, what, now)
        if self.actual_nodes is not None:
            order, actual = np.argsort(job.given.nodes), self.actual_nodes[k]
            chosen = Given(job.given.nodes[order], job.given.amounts[:, order])
            if not all(map(np.array_equal, chosen, actual)):
                self._report("node_order", job, "has other nodes than Slurm chooses for it", now)

    def _report_late(self, job: SlurmJob) -> None:
        now, start = self.now, self.actual_start[job.index]
        actual = f"starts only at {start}" if start > now else f"has started at {start}"
        if self.waiting[0] is job:
            self._report("head_waits", job, f"has the highest priority and finds its nodes at {now}, but {actual}")
        else:
            self._report("left_waiting", job, f"finds its nodes at {now} and delays no job planned before it, but {actual}")

    def _report_early(self, job: SlurmJob) -> None:
        fits = self._enough(job, self._usable(job, self.free, self.now, 1, []))
        if job in self.waiting and fits and self.waiting[0] is not job:
            what = f"starts at {self.now}, ahead of jobs of a higher priority that it may delay"
            self._report("reservation_delayed", job, what)
        else:
            self._report("out_of_turn", job, f"starts at {self.now}, when neither of Slurm's schedulers starts it")


def problem_of(schedule: MachineSchedule, policy: Slurm) -> Problem:
    """Return the problem that the schedule should solve."""
    jobs, placement = schedule.workload, schedule.placement
    machine = placement.machine
    settings, nodes = policy.settings(machine.slurm), nodes_of(machine, placement)
    demands, shares = with_priorities(jobs, machine, settings, demands_on(nodes, jobs, placement), nodes)
    after, think = jobs.dependencies() if jobs.feedback else (np.full(len(jobs), -1), np.zeros(len(jobs), np.int64))
    runtime, believed = effective_times(jobs, schedule.overrun)
    return Problem(
        submit=jobs.submit,
        runtime=runtime,
        believed=believed,
        procs=jobs.procs,
        machine=nodes,
        policy=policy,
        demands=demands,
        after=np.where(placement.since < NEVER, -1, after),
        think=think,
        settings=settings,
        shares=shares,
        kill=schedule.overrun == "kill",
    )


def _by_job(slots: Sequence[Array], count: int) -> list[Given]:
    """Return the nodes of each job, in order, and what it has of each."""
    job, node, procs, second = slots
    order = np.lexsort((node, job))
    first = np.searchsorted(job[order], np.arange(count + 1))
    nodes, amounts = node[order], np.stack([procs, second])[:, order]
    return [Given(nodes[a:b], amounts[:, a:b]) for a, b in pairwise(first.tolist())]
