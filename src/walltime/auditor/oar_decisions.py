"""A walk along a schedule made by OAR: the reference engine makes the passes in the state that the schedule has reached."""

from collections.abc import Iterator

from walltime.auditor.slurm_decisions import problem_of
from walltime.auditor.walk import Difference, MachineSchedule, Walk
from walltime.engine.reference.oar import OarJob, OarReference, lowest
from walltime.machine.placing import NEVER
from walltime.policy.oar import Oar


class OarWalk(OarReference, Walk):
    """A walk along a schedule made by OAR, from pass to pass."""

    def __init__(self, schedule: MachineSchedule, policy: Oar):
        OarReference.__init__(self, problem_of(schedule, policy))
        Walk.__init__(self, schedule)
        self.recorded: list[int] | None = None
        if schedule.slots is not None:
            self.recorded = [0] * len(self.jobs)
            for job, node in zip(schedule.slots[0].tolist(), schedule.slots[1].tolist(), strict=True):
                self.recorded[job] |= 1 << node

    def _has_started(self, job: int) -> bool:
        return self.jobs[job].ticket >= 0

    def _begin_job(self, job: int) -> Iterator[Difference]:
        one = self.jobs[job]
        nodes = lowest(one.may & ~self.used(), one.need)
        yield from self._check_nodes(one, one.since, nodes)
        self._start(one, one.since, nodes)

    def _next_event(self) -> int | None:
        begin = self._next_step()
        if begin is None:
            return None
        self.time = begin
        return self._second_read(begin)

    def _is_waited_for(self) -> bool:
        return any(job.index not in self.late for job in self.waiting)

    def _instant(self) -> Iterator[Difference]:
        self._bring_up_to_date(self.time)
        if not self.waiting:
            return
        starting = self._pass()
        wrong = yield from self._report_late([job.index for job, _ in starting])
        begun = [] if wrong else starting
        for job, nodes in begun:
            yield from self._check_nodes(job, self.now, nodes)
        self._start_jobs(begun)
        if wrong or self.settled == self.now:
            self.time += self.takes.start * self._adopt(self.now)

    def _start(self, job: OarJob, start: int, nodes: int, launched: int = -NEVER) -> None:
        """Run a job on its nodes in the schedule, until its end in the schedule."""
        job.runtime = self.end[job.index] - self.start[job.index]
        super()._start(job, start, nodes if self.recorded is None else self.recorded[job.index], launched)

    def _adopt_job(self, job: int) -> None:
        one = self.jobs[job]
        if one in self.waiting:
            self.waiting.remove(one)
        free = one.may & ~self.used()
        self._start(one, self.start[job], lowest(free, min(one.need, free.bit_count())), self.time + self.takes.launch)

    def _check_nodes(self, job: OarJob, start: int, nodes: int) -> Iterator[Difference]:
        """Check that a job has the nodes that OAR chooses."""
        if self.recorded is not None and self.recorded[job.index] != nodes:
            yield self._difference("node_order", job.index, "has other nodes than OAR chooses for it", start)

    def _too_late(self, job: int) -> Difference:
        if self.waiting[0].index == job:
            what = f"is first in the queue and has its nodes at {self.now}, but {self._actual_start(job)}"
            return self._difference("head_waits", job, what)
        return self._difference("left_waiting", job, f"is placed at {self.now} in OAR's plan, but {self._actual_start(job)}")

    def _too_early(self, job: int) -> Difference:
        if self.jobs[job] in self.waiting and self.waiting[0].index != job:
            what = f"starts at {self.now}, when OAR's plan has its nodes for other jobs, or no pass is made"
            return self._difference("reservation_delayed", job, what)
        return self._difference("out_of_turn", job, f"starts at {self.now}, when no pass of OAR starts it")
