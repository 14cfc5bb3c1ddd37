"""Restore limits: query the jobs whose limits may be shortened, and raise every shortened limit.

This needs only the ledger and the output of squeue. It is the first step of each round, and is repeated between the other steps.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from walltime.errors import OutputError
from walltime.slurm.client import Client, DeniedError
from walltime.slurm.configuration import Configuration, Limits
from walltime.slurm.records import SlurmError
from walltime.slurm.sidecar.bounds import Overruns
from walltime.slurm.sidecar.host import Budget, Host
from walltime.slurm.sidecar.ledger import Adjustments, Entry, State
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.report import Report
from walltime.slurm.squeue_fields import QueueJob
from walltime.slurm_values import Minutes

STEP, RESERVE = 120, 60
"""Minutes. If the user's true limit is in doubt, the known limit is extended by STEP whenever less than RESERVE is left."""
PASS = 120.0
"""Seconds after which a round stops raising limits and continues with its other steps, even if some limits are still short."""
LOOK_AGAIN = 30.0
"""Seconds of raising after which squeue is queried again, because other jobs may have less time left by then."""
MOST_FAILURES = 3
"""Number of consecutive failures after which Slurm counts as not answering; the next round tries again."""
MOST_RAISES = 3
"""If a job's limit has been raised this many times, its user must have lowered it again; the user's jobs are left alone."""
MOST_MISSING = 3
"""If this many watched jobs vanish from squeue at the same time, and no watched job is left, Slurm probably does not show all jobs."""


class LimitRestorer:
    """Raises shortened limits. `distrust` is called with the reason when that fails.

    `cluster`, `limits`: the configuration that was read last. `quarantine`: users who lower limits after they are raised. `extra`: returns
    the keys of other jobs to query, such as the jobs of self-tests. `prolog_missed`: called with a running job whose limit the prolog has
    not raised.
    """

    def __init__(self, slurm: Client, entries: Adjustments, host: Host, distrust: Callable[[str], None], spool: Spool | None):
        self.slurm, self.entries, self.distrust, self.spool = slurm, entries, distrust, spool
        self.clock, self.say = host.clock, host.say
        self.cluster: Configuration | None = None
        self.limits = Limits(known=False)
        self.overruns = Overruns(entries, host.clock)
        self.quarantine: set[str] = set()
        self.extra: Callable[[], list[str]] = lambda: []
        self.prolog_missed: Callable[[QueueJob], None] = lambda job: None
        self.orphans: dict[str, tuple[int, int]] = {} if spool is None else spool.orphans(set(entries.jobs))
        self.looked_at = float("-inf")
        self.seen: list[QueueJob] = []
        """The watched jobs and the test jobs, as of the last query."""
        self._shown: dict[str, Minutes] = {}
        self._failed: Counter[str] = Counter()
        self._raises: Counter[str] = Counter()
        self._raised: set[str] = set()
        self._present: set[str] = set()

    def run(self, report: Report, tasks: int) -> None:
        """Raise all shortened limits, first for the job with the least time left; raises SlurmError if the first query fails."""
        end = self.clock.monotonic() + PASS
        tried: Counter[str] = Counter()
        looks = 0
        while True:
            try:
                short = self._look(report, tasks)
            except SlurmError:
                if looks:
                    return  # the next round checks the raised limits
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
                return  # only failures

    def run_if_due(self, report: Report, tasks: int, every: float) -> None:
        """Run if the last query is at least `every` seconds ago; if the query fails, only report it, as rounds repeat it."""
        if self.clock.monotonic() - self.looked_at < every:
            return
        try:
            self.run(report, tasks)
        except SlurmError as error:
            report.failures += 1
            self.say(f"could not check jobs whose limits may be shortened: {error}")

    def may_exist(self, key: str) -> bool:
        """Return whether a job may still wait or run: the last query showed it, or there was no query."""
        return self.looked_at == float("-inf") or key in self._present

    # ---------------------------------------------------------------------------------------------------------------- looking

    def _look(self, report: Report, tasks: int) -> list[tuple[QueueJob, float, Minutes]]:
        """Query the watched jobs, and return those with short limits: job, seconds left, and the limit that it needs (minutes)."""
        keys = [*self.entries.jobs, *self.orphans, *self.extra()]
        self.seen = self.slurm.jobs(list(dict.fromkeys(keys)), tasks)
        self.looked_at = self.clock.monotonic()
        present = {job.key for job in self.seen if not job.ended}
        gone = self._present & set(keys) - {job.key for job in self.seen}
        if len(gone) >= MOST_MISSING and not present:
            self.distrust(
                f"Slurm shows neither the {len(gone)} watched jobs nor their ends; check that the side-car's user may see all jobs"
            )
        self._present = present
        short = []
        for job in self.seen:
            if job.key in self.orphans:
                self._adopt_orphan(job)
            entry = self.entries.jobs.get(job.key)
            if entry is None or not self.entries.is_same(job):
                continue
            if job.ended:
                if entry.state is not State.ENDED:
                    self.overruns.end(entry, job)
                    self.entries.save(entry, entry.but(state=State.ENDED))
                    self._shown.pop(job.key, None)
            elif job.runs:
                short += self._look_at_running(entry, job, report)
            elif job.waits:
                short += self._look_at_waiting(entry, job)
        self._raised = set()
        return short

    def _adopt_orphan(self, job: QueueJob) -> None:
        """Handle a job that has a file in the spool folder but no entry in the ledger: add the entry, unless it has ended."""
        known, longest = self.orphans[job.key]
        if self.spool is None or job.key in self.entries.jobs or job.ended:
            if job.ended and self.spool is not None and job.key not in self.entries.jobs:
                with suppress(OutputError):  # a file that stays does no harm
                    self.spool.remove(job.key)
            del self.orphans[job.key]
        elif job.time_min and (job.waits or job.runs):
            state = State.SET if job.waits else State.STARTED
            self.adopt(job, max(known, job.limit or 0), max(longest, known), state, doubt=longest > known or job.runs)
            del self.orphans[job.key]

    def adopt(self, job: QueueJob, limit: int, longest: Minutes, state: State, doubt: bool) -> None:
        """Add an entry for a job that the ledger lacks, although only the side-car can have set its TimeMin."""
        if job.runs and job.limit is not None and job.limit < limit:
            state = State.SHORT
        entry = Entry(job.key, job.user, job.time_min, limit, longest, job.restarts, False, state, self.clock.time(), doubt)
        self.entries.jobs[job.key] = entry
        self.entries.save(None, entry, "found without an entry")
        self.distrust(f"job {job.key} has a TimeMin of {job.time_min} min, which is not in the ledger and which its user cannot set")

    def _look_at_running(self, entry: Entry, job: QueueJob, report: Report) -> list[tuple[QueueJob, float, Minutes]]:
        now = self.clock.time()
        before = self._shown.get(job.key)
        self._shown[job.key] = job.limit
        first_seen = entry.state not in (State.STARTED, State.SHORT) or entry.restarts != job.restarts
        if first_seen:
            before = None
            entry = entry.but(doubt=entry.doubt or self._is_doubtful(entry, job))
        if job.time_min != entry.time_min and not entry.doubt:
            self.entries.save(
                entry, entry.but(state=State.STARTED, restarts=job.restarts)
            )  # backfill did not plan with the side-car's TimeMin
            return []
        self.overruns.watch(entry, job, now)
        if before is not None and job.limit is not None and job.limit < before and entry.state is not State.SHORT:
            entry = entry.but(doubt=False)  # a user or operator has lowered the limit since the last query: Slurm itself never does
        need = self._needed_limit(entry, job, now, first_seen)
        short = _is_less(job.limit, entry.limit)
        if first_seen:
            self.entries.record("started short" if short else "started", entry, job)
        state = State.SHORT if need is not None and short and (entry.state is State.SHORT or first_seen) else State.STARTED
        self.entries.save(entry, entry.but(state=state, restarts=job.restarts))
        if need is None or job.limit is None:
            return []
        left = job.start + job.limit * 60 - now
        if state is State.SHORT:
            report.least_left = left if report.least_left is None else min(left, report.least_left)
            if job.state == "RUNNING":
                self.prolog_missed(job)
        return [(job, left, need)]

    def _is_doubtful(self, entry: Entry, job: QueueJob) -> bool:
        """Return whether the user of a job that has just started may have changed its limit after it was last seen."""
        if not _is_less(job.limit, entry.longest):
            return False
        if entry.soft:
            return not (self.cluster is not None and self.cluster.soft_limit) and job.limit != entry.limit
        return (
            entry.state not in (State.SET, State.STARTED, State.SHORT) and job.limit != entry.limit
        )  # for waiting jobs, the guard would have removed TimeMin

    def _needed_limit(self, entry: Entry, job: QueueJob, now: float, first_seen: bool) -> Minutes:
        """Return the limit, minutes, to which a running job's limit must be raised now; None if it is long enough."""
        if job.limit is None or (entry.state is State.STARTED and not first_seen and not entry.doubt):
            return None  # it had its full limit, so a user or operator has lowered it
        need = entry.limit if job.limit < entry.limit else None
        longest = entry.longest
        if self.cluster is not None and self.limits.known and longest is not None:
            allowed = self.limits.longest(job, self.cluster)
            longest = None if allowed is None else max(allowed, longest)
        if not entry.doubt or not _is_less(job.limit, longest):
            return need
        # in one change, because the lower of two limits might take effect last
        ran, sure = int(self.overruns.ran(job, now) / 60), max(job.limit, entry.limit)
        if sure - ran >= RESERVE:
            return need
        step = max(ran, sure) + STEP
        return step if longest is None else max(min(step, longest), sure)

    def _look_at_waiting(self, entry: Entry, job: QueueJob) -> list[tuple[QueueJob, float, Minutes]]:
        """Update the entry of a waiting job; its limit may still be short if it was put back into the queue."""
        same, again = job.time_min == entry.time_min, job.restarts > entry.restarts
        if same and (entry.state is State.SHORT or again) and _is_less(job.limit, entry.limit):
            self.entries.save(entry, entry.but(state=State.SHORT, restarts=job.restarts))
            return [(job, float("inf"), entry.limit)]
        if job.limit is None:
            return []
        changed = job.limit != entry.limit
        if same and changed and entry.state is State.SET and not again and not entry.doubt:
            self.distrust(f"the limit of job {job.key} was changed, but its TimeMin was kept: the guard in job_submit.lua is missing")
        state = State.SET if same else State.CLEAR
        if entry.state is State.INTENT and same:
            self.say(f"job {job.key}: Slurm shows its TimeMin")
        doubt = entry.doubt and job.restarts > 0 and not (changed and not again)
        longest = entry.longest if self.cluster is None or not self.limits.known else self.limits.longest(job, self.cluster)
        self.entries.save(entry, entry.but(state=state, limit=job.limit, restarts=job.restarts, longest=longest, doubt=doubt))
        return []

    # ---------------------------------------------------------------------------------------------------------------- raising

    def _raise(self, job: QueueJob, need: Minutes, report: Report, tasks: int) -> bool:
        """Raise a limit, and return whether Slurm confirms it. After a failure no job is adjusted, unless this job no longer needs it."""
        entry = self.entries.jobs[job.key]
        try:
            self.slurm.set_limit(job.key, need)
        except SlurmError as error:
            report.failures += 1
            self._failed[job.key] += 1
            self.say(f"failed: {error}")
            self.entries.record("failed", detail=str(error))
            if self._has_no_need(job, need, tasks):
                return not isinstance(error, DeniedError)
            self.distrust(f"the limit of job {job.key} could not be raised to {need} min")
            return False
        del self._failed[job.key]
        self._raised.add(job.key)
        self._shown[job.key] = need
        self.say(f"job {job.key}: raised its limit from {job.limit} to {need} min")
        if job.runs and entry.state is State.SHORT:
            report.restored += 1
            left = job.start + (job.limit or 0) * 60 - self.clock.time()
            self.entries.record("given back", entry, job, str(int(left)))
            self._raises[job.key] += 1
            if self._raises[job.key] == MOST_RAISES:
                self._quarantine_user(job)
        return True

    def _quarantine_user(self, job: QueueJob) -> None:
        self.say(f"the limit of job {job.key} was lowered after every increase; jobs of {job.user} are no longer adjusted")
        self.entries.record("failed", detail=f"the limit of job {job.key} was raised and lowered again {MOST_RAISES} times")
        self.quarantine.add(job.user)
        if len(self.quarantine) > 1:
            self.distrust(f"raised limits were lowered again for jobs of {len(self.quarantine)} users")

    def _has_no_need(self, job: QueueJob, need: Minutes, tasks: int) -> bool:
        """Return whether a new query shows that a job no longer needs a limit that could not be raised."""
        try:
            now = next(iter(self.slurm.jobs([job.key], tasks)), None)
        except SlurmError:
            return False
        return now is None or not (now.waits or now.runs) or not _is_less(now.limit, need)


def _is_less(limit: Minutes, than: Minutes) -> bool:
    return limit is not None and (than is None or limit < than)
