"""Giving back: a look at the jobs that may be short, and at nothing else, after which every short limit is raised.

It needs nothing but the ledger and an answer of squeue, comes first in every round, and comes again while a round does other things.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from walltime.slurm.client import Client, DeniedError
from walltime.slurm.configuration import Configuration, Limits
from walltime.slurm.records import SlurmError
from walltime.slurm.sidecar.adjustments import Adjustments
from walltime.slurm.sidecar.host import Budget, Clock
from walltime.slurm.sidecar.ledger import Entry, State
from walltime.slurm.sidecar.overruns import Overruns
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.report import Report
from walltime.slurm.squeue_fields import QueueJob
from walltime.slurm_values import Minutes

STEP, RESERVE = 120, 60
"""Minutes: a limit in doubt is raised to STEP from now whenever less than RESERVE is left of it."""
PASS = 120.0
"""Seconds after which giving back lets other things happen, although limits are still to be raised."""
LOOK_AGAIN = 30.0
"""Seconds of raising after which the jobs are looked at again, as others may have less left by then."""
MOST_FAILURES = 3
"""So many failures in a row mean that Slurm does not answer: the next round tries again."""
TOLD_TWICE = 3
"""So often Slurm says that it has raised a limit which is lower again at the next look, before its user is left alone."""
MOST_MISSING = 3
"""So many watched jobs, or more, that vanish at once without having been seen to end mean that Slurm does not show all jobs."""


class GiveBack:
    """Raises what is short. `distrust` is called when that fails; `cluster` and `limits` are what was last known of the cluster.

    `quarantine`: users who lower limits as soon as they are raised. `extra`: more jobs to look at, those of tests.
    """

    def __init__(
        self,
        slurm: Client,
        entries: Adjustments,
        clock: Clock,
        say: Callable[[str], None],
        distrust: Callable[[str], None],
        spool: Spool | None,
    ):
        self.slurm, self.entries, self.clock, self.say, self.distrust, self.spool = slurm, entries, clock, say, distrust, spool
        self.cluster: Configuration | None = None
        self.limits = Limits(known=False)
        self.overdue = Overruns(entries, clock)
        self.quarantine: set[str] = set()
        self.extra: Callable[[], list[str]] = lambda: []
        self.prolog_missed: Callable[[QueueJob], None] = lambda job: None
        self.orphans: dict[str, tuple[int, int]] = {} if spool is None else spool.orphans(set(entries.jobs))
        self.looked_at = float("-inf")
        self.seen: list[QueueJob] = []
        """The watched jobs and those of tests, at the last look."""
        self._shown: dict[str, Minutes] = {}
        self._failed: Counter[str] = Counter()
        self._again: Counter[str] = Counter()
        self._raised: set[str] = set()
        self._present: set[str] = set()

    def run(self, report: Report, tasks: int) -> None:
        """Look, and raise what is short, the job with the least time left first; raises SlurmError if the first look has no answer."""
        end = self.clock.monotonic() + PASS
        tried: Counter[str] = Counter()
        looks = 0
        while True:
            try:
                short = self._look(report, tasks)
            except SlurmError:
                if looks:
                    return  # what was raised is looked at in the next round
                raise
            looks += 1
            due = [(self._failed[job.key], left, job, need) for job, left, need in short if tried[job.key] < 2]
            if not due or self.clock.monotonic() >= end:
                return
            budget = Budget(self.clock, LOOK_AGAIN, MOST_FAILURES)
            for place, (_, _, job, need) in enumerate(sorted(due, key=lambda one: one[:2])):
                if place and budget.spent:
                    break
                tried[job.key] += 1
                budget.count(self._raise(job, need, report, tasks))
            if budget.spent and self.clock.monotonic() < end and not any(key in self._raised for key in tried):
                return  # nothing but failures

    def again(self, report: Report, tasks: int, every: float) -> None:
        """The same if the last look is so many seconds ago; what has no answer now is asked in the next round."""
        if self.clock.monotonic() - self.looked_at < every:
            return
        try:
            self.run(report, tasks)
        except SlurmError as error:
            report.failures += 1
            self.say(f"the jobs that may be short are not seen: {error}")

    def may_be_there(self, key: str) -> bool:
        """Whether a job may still wait or run: the last look, if there was one, showed it."""
        return self.looked_at == float("-inf") or key in self._present

    # ---------------------------------------------------------------------------------------------------------------- looking

    def _look(self, report: Report, tasks: int) -> list[tuple[QueueJob, float, Minutes]]:
        """The short jobs, with the seconds that they have left and the limit that each needs, minutes."""
        keys = [*self.entries.jobs, *self.orphans, *self.extra()]
        self.seen = self.slurm.jobs(list(dict.fromkeys(keys)), tasks)
        self.looked_at = self.clock.monotonic()
        self._miss(keys)
        short = []
        for job in self.seen:
            if job.key in self.orphans:
                self._adopt_orphan(job)
            entry = self.entries.jobs.get(job.key)
            if entry is None or not self.entries.is_same(job):
                continue
            if job.ended:
                self._end(entry, job)
            elif job.runs:
                short += self._look_at_running(entry, job, report)
            elif job.waits:
                short += self._look_at_waiting(entry, job)
        self._raised = set()
        return short

    def _miss(self, keys: Sequence[str]) -> None:
        """Notice that Slurm has stopped showing jobs."""
        present = {job.key for job in self.seen if not job.ended}
        gone = self._present & set(keys) - {job.key for job in self.seen}
        if len(gone) >= MOST_MISSING and not present:
            self.distrust(f"Slurm shows none of {len(gone)} watched jobs any more, nor how they ended; may the side-car see all jobs?")
        self._present = present

    def _end(self, entry: Entry, job: QueueJob) -> None:
        if entry.state is not State.ENDED:
            self.overdue.end(entry, job)
            self.entries.keep(entry, entry.but(state=State.ENDED))
            self._shown.pop(job.key, None)

    def _adopt_orphan(self, job: QueueJob) -> None:
        """A job that the spool folder knows, but the ledger does not, any more."""
        known, longest = self.orphans[job.key]
        if self.spool is None or job.key in self.entries.jobs or job.ended:
            if job.ended and self.spool is not None and job.key not in self.entries.jobs:
                self.spool.discard(job.key)
            del self.orphans[job.key]
        elif job.time_min and (job.waits or job.runs):
            state = State.SET if job.waits else State.STARTED
            self.adopt(job, max(known, job.limit or 0), max(longest, known), state, doubt=longest > known or job.runs)
            del self.orphans[job.key]

    def adopt(self, job: QueueJob, limit: int, longest: Minutes, state: State, doubt: bool) -> None:
        """Enter a job whose TimeMin nobody else can have set, and which the ledger should know."""
        if job.runs and job.limit is not None and job.limit < limit:
            state = State.SHORT
        entry = Entry(job.key, job.user, job.time_min, limit, longest, job.restarts, False, state, self.clock.time(), doubt)
        self.entries.jobs[job.key] = entry
        self.entries.keep(None, entry, "found without an entry")
        self.distrust(f"job {job.key} has a TimeMin of {job.time_min} minutes that is not in the ledger, and that its user may not set")

    def _look_at_running(self, entry: Entry, job: QueueJob, report: Report) -> list[tuple[QueueJob, float, Minutes]]:
        now = self.clock.time()
        before = self._shown.get(job.key)
        self._shown[job.key] = job.limit
        anew = entry.state not in (State.STARTED, State.SHORT) or entry.restarts != job.restarts
        if anew:
            before = None
            entry = entry.but(doubt=entry.doubt or self._is_doubtful(entry, job))
        if job.time_min != entry.time_min and not entry.doubt:
            self.entries.keep(entry, entry.but(state=State.STARTED, restarts=job.restarts))  # it was not planned by it
            return []
        self.overdue.watch(entry, job, now)
        if before is not None and job.limit is not None and job.limit < before:
            entry = self._lowered(entry, job)
        need = self._need(entry, job, now, anew)
        short = anew and _is_less(job.limit, entry.limit)
        if anew:
            self.entries.note("started short" if short else "started", entry, job)
        behind = entry.state is State.SHORT or anew
        state = State.SHORT if need is not None and _is_less(job.limit, entry.limit) and behind else State.STARTED
        self.entries.keep(entry, entry.but(state=state, restarts=job.restarts))
        if need is None or job.limit is None:
            return []
        left = job.start + job.limit * 60 - now
        if state is State.SHORT:
            report.least_left = left if report.least_left is None else min(left, report.least_left)
            if job.state == "RUNNING":
                self.prolog_missed(job)
        return [(job, left, need)]

    def _is_doubtful(self, entry: Entry, job: QueueJob) -> bool:
        """Whether the user of a job that has just started can have changed its limit after it was last seen."""
        if not _is_less(job.limit, entry.longest):
            return False
        if entry.soft:
            return not (self.cluster is not None and self.cluster.soft_limit) and job.limit != entry.limit
        return entry.state not in (State.SET, State.STARTED, State.SHORT) and job.limit != entry.limit  # later the guard takes TimeMin away

    def _need(self, entry: Entry, job: QueueJob, now: float, anew: bool) -> Minutes:
        """The limit, minutes, that a running job must have now; None if what it has is enough."""
        if job.limit is None or (entry.state is State.STARTED and not anew and not entry.doubt):
            return None  # it was whole, so whoever has lowered it meant it
        need = entry.limit if job.limit < entry.limit else None
        longest = self._longest(entry, job)
        if not entry.doubt or not _is_less(job.limit, longest):
            return need
        # in one change: of two, the lower one might come late
        ran, sure = int(self.overdue.ran(job, now) / 60), max(job.limit, entry.limit)
        if sure - ran >= RESERVE:
            return need
        step = max(ran, sure) + STEP
        return step if longest is None else max(min(step, longest), sure)

    def _longest(self, entry: Entry, job: QueueJob) -> Minutes:
        """The longest limit that its user can have chosen, by what is known now."""
        if self.cluster is None or not self.limits.known or entry.longest is None:
            return entry.longest
        now = self.limits.longest(job, self.cluster)
        return None if now is None else max(now, entry.longest)

    def _lowered(self, entry: Entry, job: QueueJob) -> Entry:
        """Somebody has lowered the limit of a running job since the last look; Slurm itself never does."""
        if entry.state is not State.SHORT:
            return entry.but(doubt=False)
        return entry

    def _look_at_waiting(self, entry: Entry, job: QueueJob) -> list[tuple[QueueJob, float, Minutes]]:
        """Bring the entry of a waiting job up to what it shows; a limit may still be short if it was put back into the queue."""
        same, again = job.time_min == entry.time_min, job.restarts > entry.restarts
        if same and (entry.state is State.SHORT or again) and _is_less(job.limit, entry.limit):
            self.entries.keep(entry, entry.but(state=State.SHORT, restarts=job.restarts))
            return [(job, float("inf"), entry.limit)]
        if job.limit is None:
            return []
        changed = job.limit != entry.limit
        if same and changed and entry.state is State.SET and not again and not entry.doubt:
            self.distrust(f"the limit of job {job.key} was changed and its TimeMin stayed: the guard in job_submit.lua is gone")
        state = State.SET if same else State.CLEAR
        if entry.state is State.INTENT and same:
            self.say(f"job {job.key}: TimeMin is seen")
        doubt = entry.doubt and job.restarts > 0 and not (changed and not again)
        longest = entry.longest if self.cluster is None or not self.limits.known else self.limits.longest(job, self.cluster)
        self.entries.keep(entry, entry.but(state=state, limit=job.limit, restarts=job.restarts, longest=longest, doubt=doubt))
        return []

    # ---------------------------------------------------------------------------------------------------------------- raising

    def _raise(self, job: QueueJob, need: Minutes, report: Report, tasks: int) -> bool:
        """Raise a limit; whether Slurm says that it has. If it has not, the job may have ended meanwhile; if not, all trust is lost."""
        entry = self.entries.jobs[job.key]
        try:
            self.slurm.set_limit(job.key, need)
        except SlurmError as error:
            report.failures += 1
            self._failed[job.key] += 1
            self.say(f"failed: {error}")
            self.entries.note("failed", detail=str(error))
            if self._has_no_need(job, need, tasks):
                return not isinstance(error, DeniedError)
            self.distrust(f"the limit of job {job.key} could not be raised to {need} minutes")
            return False
        del self._failed[job.key]
        self._raised.add(job.key)
        self._shown[job.key] = need
        self.say(f"job {job.key}: its limit of {job.limit} minutes is raised to {need} minutes")
        if job.runs and entry.state is State.SHORT:
            report.given_back += 1
            left = job.start + (job.limit or 0) * 60 - self.clock.time()
            self.entries.note("given back", entry, job, str(int(left)))
            self._count_raise(job)
        return True

    def _count_raise(self, job: QueueJob) -> None:
        """A limit that Slurm says it has raised again and again: its user lowers it, or Slurm does not tell the truth."""
        self._again[job.key] += 1
        if self._again[job.key] != TOLD_TWICE:
            return
        self.say(f"the limit of job {job.key} is lower again each time that it was raised; jobs of {job.user} are left alone from now on")
        self.entries.note("failed", detail=f"the limit of job {job.key} was raised, and was lower again, {TOLD_TWICE} times")
        self.quarantine.add(job.user)
        if len(self.quarantine) > 1:
            self.distrust(f"limits of jobs of {len(self.quarantine)} users were raised, and were lower again")

    def _has_no_need(self, job: QueueJob, need: Minutes, tasks: int) -> bool:
        """Look again whether a job whose limit could not be raised is still short."""
        try:
            now = next(iter(self.slurm.jobs([job.key], tasks)), None)
        except SlurmError:
            return False
        return now is None or not (now.waits or now.runs) or not _is_less(now.limit, need)


def _is_less(limit: Minutes, than: Minutes) -> bool:
    return limit is not None and (than is None or limit < than)
