"""The facts of a job's story, gathered from one event to the next while the simulation is watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from walltime.engine.reference.plain import find_shadow
from walltime.explanation.records import Alternative, Cause, Change, NumberExplanation, Overtaker, Reservation, RunningJob, Submission
from walltime.explanation.snapshots import Snapshot, snapshots
from walltime.policy import Kind
from walltime.schedule.schedule import Schedule

__all__ = ["story_of"]


def story_of(schedule: Schedule, job: int, alternatives: Iterable[Alternative] = ()) -> NumberExplanation:
    """The story of a job, by its index; raises EngineError where the schedule cannot be made again."""
    w = schedule.workload
    facts = _Facts(schedule, job)
    for seen in snapshots(schedule, job):
        facts.add(seen)
    assert facts.submission is not None, "the last snapshot is its start"
    return NumberExplanation(
        job=int(w.job_id[job]),
        submit=int(schedule.submit[job]),
        start=int(schedule.start[job]),
        end=int(schedule.end[job]),
        procs=int(w.procs[job]),
        requested=int(w.requested[job]),
        believed=facts.believed,
        runtime=int(schedule.runtime[job]),
        kind=Kind(schedule.kind[job]).name.lower(),
        policy=schedule.label,
        submission=facts.submission,
        head_since=facts.head_since,
        reservations=tuple(facts.changes),
        overtaken_by=tuple(facts.overtakers),
        too_few=facts.too_few,
        held=facts.held,
        let_in=facts.let_in,
        alternatives=tuple(alternatives),
        schedule=schedule,
    )


class _Facts:
    """What is gathered from one event to the next."""

    def __init__(self, schedule: Schedule, job: int):
        self.schedule, self.job = schedule, job
        self.w, self.policy = schedule.workload, schedule.policy
        self.procs = int(self.w.procs[job])
        self.submission: Submission | None = None
        self.head_since: int | None = None
        self.believed = 0
        self.changes: list[Change] = []
        self.overtakers: list[Overtaker] = []
        self.too_few = self.held = 0
        self.let_in: tuple[RunningJob, ...] = ()
        self._before: Snapshot | None = None

    def add(self, seen: Snapshot) -> None:
        """One more event."""
        before = self._before
        self.believed = seen.length
        waits = self.job in seen.waiting
        if before is None:
            self.submission = self._met(seen)
        else:
            span = seen.now - before.now
            enough = before.free >= self.procs
            self.held += span * enough
            self.too_few += span * (not enough)
        if waits:
            self._follow_reservation(before, seen)
            self._follow_overtakers(seen)
            if seen.head == self.job and self.head_since is None:
                self.head_since = seen.now
        elif before is not None:
            self.let_in = tuple(self._ran(one, before.running[one]) for one in before.running if one not in seen.running)
        self._before = seen

    # -------------------------------------------------------------- at its submission

    def _met(self, seen: Snapshot) -> Submission:
        waits = self.job in seen.waiting
        others = [(start, one) for one, start in seen.reserved.items() if one != self.job]
        running = [self._ran(one, end) for one, end in seen.running.items() if one != self.job]
        return Submission(
            free=seen.free + (0 if waits else self.procs),
            ahead=seen.ahead or 0,
            held_back=self._held_back(seen) if waits else "nothing",
            running=tuple(sorted(running, key=lambda one: (one.expected_end, one.job))),
            reserved=tuple(Reservation(self._id(one), int(self.w.procs[one]), start) for start, one in sorted(others)),
            extra=seen.extra if seen.head != self.job else None,
        )

    def _held_back(self, seen: Snapshot) -> str:
        if seen.free < self.procs:
            return "too few"
        if not self.policy.backfills:
            return "order"
        match self.policy.reservations.of:
            case "unknown":
                return "policy"
            case "nobody":
                return "score"
            case "some" | "all":
                return "reservations"
        delays = seen.now + seen.length > seen.reserved[seen.head] and self.procs > (seen.extra or 0)
        return "head" if delays else "score"

    # -------------------------------------------------------------- its reservation

    def _follow_reservation(self, before: Snapshot | None, seen: Snapshot) -> None:
        """Note whether its reservation is another one than before."""
        old = None if before is None else before.reserved.get(self.job)
        new = seen.reserved.get(self.job)
        if new == old:
            return
        if new is None:
            self.changes.append(Change(seen.now, "given up", -1))
        elif old is None or before is None:
            self.changes.append(Change(seen.now, "made", new))
        elif new < old:
            self.changes.append(Change(seen.now, "forward", new, tuple(self._ended_early(before, seen))))
        else:
            self.changes.append(Change(seen.now, "back", new, tuple(self._outlived(before, seen))))

    def _ended_early(self, before: Snapshot, seen: Snapshot) -> Iterator[Cause]:
        """Who has ended earlier than expected, which can move a reservation forward."""
        for one, expected in before.running.items():
            if one not in seen.running and expected > seen.now:
                yield Cause("ended early", self._id(one), expected - seen.now)

    def _outlived(self, before: Snapshot, seen: Snapshot) -> Iterator[Cause]:
        """Who runs longer than was expected, which can move a reservation back."""
        for one, expected in seen.running.items():
            if expected <= seen.now:
                yield Cause("overdue", self._id(one), seen.now - expected)
            elif expected > before.running.get(one, expected):
                yield Cause("expected longer", self._id(one), expected - before.running[one])

    # -------------------------------------------------------------- who overtakes

    def _follow_overtakers(self, seen: Snapshot) -> None:
        """Note who arrived later and starts now, and what that does to the job at the head of the queue."""
        submit, start, end = self.schedule.submit, self.schedule.start, self.schedule.end
        here, head = (submit[self.job], self.job), seen.head
        later = {one for one in seen.lengths if (submit[one], one) > here and start[one] < start[self.job]}
        if not later:
            return
        free = seen.free + sum(int(self.w.procs[one]) for one in seen.lengths)
        running = [(int(end[one]), int(self.w.procs[one])) for one in seen.running if one not in seen.lengths]
        wanted = int(self.w.procs[head])
        for one, length in seen.lengths.items():
            procs = int(self.w.procs[one])
            before = find_shadow(running, free, wanted, seen.now)[0]
            free -= procs
            running.append((int(end[one]), procs))
            if one in later:
                delay = find_shadow(running, free, wanted, seen.now)[0] - before
                times = (seen.now, length, int(self.schedule.runtime[one]))
                self.overtakers.append(Overtaker(self._id(one), procs, *times, self._how(seen, one, length), self._id(head), delay))

    def _how(self, seen: Snapshot, job: int, length: int) -> str:
        """How a job could overtake."""
        reserved = self.policy.reservations.of
        if reserved == "unknown":
            return "policy"
        if self.schedule.kind[job] != Kind.BACKFILLED:
            return "order"
        if reserved == "head":
            return "in time" if seen.now + length <= seen.reserved[seen.head] else "extra"
        return "fits" if reserved == "nobody" else "hole"

    def _ran(self, job: int, expected: int) -> RunningJob:
        return RunningJob(self._id(job), int(self.w.procs[job]), expected, int(self.schedule.end[job]))

    def _id(self, job: int) -> int:
        return int(self.w.job_id[job])
