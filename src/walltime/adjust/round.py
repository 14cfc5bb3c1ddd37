"""One round of the side-car: read the cluster, give back, take back what must not stay, adjust.

What makes it safe: what it may have shortened is on disk before it is changed, with the user's limit and for as long as the job is in the
queue; everything else is found out anew in each round from what Slurm says. So a round can end anywhere, and the next one goes on.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping

from walltime.adjust.commands import DeniedError, Slurm
from walltime.adjust.facts import Facts, Minutes, Mode, SlurmError
from walltime.adjust.given import Clock, Predict, Report
from walltime.adjust.ledger import Entry, Fact, Ledger, LedgerError, State
from walltime.adjust.prolog import NAME as PROLOG_NAME
from walltime.adjust.prolog import WHOLE, Spool
from walltime.adjust.queue import QueuedJob, array_of
from walltime.adjust.rules import Bounds, RunMinutes, read_run_minutes, time_min_of, why_never
from walltime.adjust.selftest import NAME
from walltime.adjust.trust import WORKS, Trust
from walltime.errors import OutputError

KEEP_LIMITS = 600.0
"""Seconds for which limits on running minutes are not asked for again."""
FORGET_AFTER = 3600.0
"""Seconds after which the entry of a job that has left the queue is removed."""
LATEST = 300.0
"""Seconds after which a change that Slurm did not answer has been made, or will never be."""
MOST_FAILURES = 3
"""So many failures in a round end its adjusting."""
OPEN = (State.INTENT, State.SET)
JUMP = 60.0
"""A clock that has gone wrong by so many seconds since the last round is not believed in this one."""


class Sidecar:
    """The side-car. Without a ledger it changes nothing and only says what it would do.

    `stopped`: asked in each round whether everything is to be taken back. `test_options`: words for sbatch of the self-test. `stays`:
    whether more rounds will follow. `spool`: the files of a second give-back, the prolog's, and `needs_prolog` whether it must work.
    """

    def __init__(
        self,
        slurm: Slurm,
        predict: Predict,
        bounds: Bounds,
        clock: Clock,
        user: str,
        say: Callable[[str], None],
        ledger: Ledger | None = None,
        stopped: Callable[[], bool] = lambda: False,
        test_options: tuple[str, ...] = (),
        stays: bool = True,
        spool: Spool | None = None,
        needs_prolog: bool = False,
    ):
        self.slurm, self.predict, self.bounds, self.clock, self.user, self.say = slurm, predict, bounds, clock, user, say
        self.ledger, self.stopped, self.stays = ledger, stopped, stays
        self.entries: dict[str, Entry] = {} if ledger is None else ledger.entries()
        self._ledger_works = True
        self._denied = ""
        self.spool = spool if ledger is not None else None
        self.trust = None if ledger is None else Trust(slurm, test_options, say, ledger, spool, needs_prolog)
        self._asked_right_of, self._right = "", False
        self._limits, self._limits_at = RunMinutes(known=False), float("-inf")
        self._changes: deque[float] = deque()
        self._clocks: tuple[float, float] | None = None
        # a change that Slurm did not answer may come late; until it must have come, no other one follows it
        self._not_before = {key: clock.monotonic() + LATEST for key, entry in self.entries.items() if entry.state is not State.SET}
        self._late: set[str] = set()  # jobs whose limit was raised in the last round; once more is a failure
        if self.entries:
            say(f"the ledger has {len(self.entries)} jobs")

    @property
    def watched(self) -> list[str]:
        """The jobs that may be short, or may have a TimeMin of the side-car."""
        return [key for key, entry in self.entries.items() if entry.state in (*OPEN, State.SHORT)]

    @property
    def short(self) -> int:
        """How many running jobs are short."""
        return sum(entry.state is State.SHORT for entry in self.entries.values())

    def round(self) -> Report:
        """One round; what Slurm does not answer is counted in the report's `failures`, and is asked again in the next round."""
        report = Report()
        now = self.clock.time()
        steady = self._clock_is_steady(now)
        try:
            facts = self.slurm.facts()
            if self._option_is_gone(facts):
                self.say("time_min_as_soft_limit is gone while jobs have a TimeMin: all of them are taken back")
                self._take_back([entry for entry in self.entries.values() if entry.soft and entry.state in OPEN], report)
            queue = self.slurm.queue(self.bounds.tasks)
        except SlurmError as error:
            report.failures += 1
            report.why = str(error)
            if self.stays:
                self.say(f"nothing is done in this round: {error}")
            return report
        report.answered = True
        self._mend_ledger(now)
        self._give_back(queue, facts, now, report)
        self._reconcile(queue, now, report)
        ready = self._find_mode(facts, queue, report)
        waiting = {job.key: job for job in queue if job.waits}
        report.waiting = len(waiting)
        report.left = self._reasons(waiting, facts, now)
        held = [entry for entry in self.entries.values() if entry.key in waiting and waiting[entry.key].time_min == entry.time_min]
        unwanted = [entry for entry in held if not ready or entry.key in report.left]
        self._take_back(unwanted, report)
        report.adjusted = len(held) - len(unwanted)
        self._adjust(waiting, facts, now, report, act=ready and steady)
        if report.set_now:
            self._look_again(now, report)
        self._keep_spool()
        return report

    def _look_again(self, now: float, report: Report) -> None:
        """See that jobs wait with their new TimeMin and their old limit.

        Backfill may start one before the next round. Its user's limit is then known; without this look he might have changed it while
        TimeMin was being set, and the job would be raised to the longest limit that he can have chosen.
        """
        try:
            self._reconcile(self.slurm.queue(self.bounds.tasks), now, report)
        except SlurmError as error:
            report.failures += 1
            self.say(f"what was set is not seen yet: {error}")

    # ------------------------------------------------------------------------------------------------------- what must be undone

    def _option_is_gone(self, facts: Facts) -> bool:
        return not facts.soft_limit and any(entry.soft and entry.state in OPEN for entry in self.entries.values())

    def _give_back(self, queue: list[QueuedJob], facts: Facts, now: float, report: Report) -> None:
        """Raise the limits of running jobs that were started with a shortened one."""
        late, self._late = self._late, set()
        for job in queue:
            entry = self.entries.get(job.key)
            if entry is None or not job.runs or not self._is_same(entry, job):
                continue
            target = self._target(entry, job, facts)
            anew = entry.state not in (State.STARTED, State.SHORT) or entry.restarts != job.restarts
            if job.time_min != entry.time_min or job.limit is None or (target is not None and job.limit >= target):
                if anew and job.time_min == entry.time_min:
                    self._note("started", entry, job)
                self._keep(entry, entry.but(state=State.STARTED, restarts=job.restarts), now)
                continue
            if anew:
                self._note("started short", entry, job)
            left = job.start + job.limit * 60 - now
            report.least_left = left if report.least_left is None else min(left, report.least_left)
            if job.key in late:
                self._lose_trust(f"the limit of job {job.key} was raised, and still is {job.limit} minutes")
            self._late.add(job.key)
            self._keep(entry, entry.but(state=State.SHORT, restarts=job.restarts, longest=target), now)
            if self._raise(job, target, report):
                report.given_back += 1
                self._note("given back", entry, job, str(int(left)))
            if job.state == "RUNNING" and self.trust is not None and self.trust.prolog == WORKS and not entry.soft:
                self._miss_prolog(job)

    def _miss_prolog(self, job: QueuedJob) -> None:
        """The prolog has ended, and has not raised the limit."""
        why = f"the prolog has not raised the limit of job {job.key}"
        self._note("prolog missed", detail=why)
        if self.trust is not None and self.trust.needs_prolog:
            self._lose_trust(why)
        else:
            self.say(f"{why}; the side-car does")

    def _target(self, entry: Entry, job: QueuedJob, facts: Facts) -> Minutes:
        """The limit, minutes, that a running job must have at least.

        It is the user's, as long as he cannot have changed it unseen; where he can, the longest one that he can have chosen.
        """
        if entry.state is State.STARTED and entry.restarts == job.restarts:
            return 0  # it was whole, so whoever has lowered it meant it
        if entry.state is State.SHORT:
            return entry.longest
        guarded = entry.state in (State.SET, State.STARTED) and not entry.soft
        if guarded or (facts.soft_limit and entry.soft) or job.limit == entry.limit:
            return entry.limit
        return entry.longest

    def _raise(self, job: QueuedJob, target: Minutes, report: Report) -> bool:
        """Raise a limit; a failure costs all trust."""
        told = "no limit" if target is None else f"{target} minutes"
        if self._change(lambda: self.slurm.set_limit(job.key, target), report):
            self.say(f"job {job.key}: its limit of {job.limit} minutes is raised to {told}")
            return True
        self._lose_trust(f"the limit of job {job.key} could not be raised to {told}")
        return False

    def _reconcile(self, queue: list[QueuedJob], now: float, report: Report) -> None:
        """Bring the ledger up to what the waiting jobs show, and forget jobs that have left the queue."""
        here = {job.key for job in queue}
        gone = [key for key, entry in self.entries.items() if key not in here and now - entry.seen > FORGET_AFTER]
        for job in queue:
            entry = self.entries.get(job.key)
            if entry is None or not job.waits:
                continue
            if not self._is_same(entry, job):
                gone.append(job.key)
            elif entry.state is State.SHORT and job.time_min == entry.time_min and _is_less(job.limit, entry.longest):
                self._raise(job, entry.longest, report)  # it was put back into the queue before its limit was raised
            elif job.restarts > entry.restarts and job.time_min == entry.time_min and _is_less(job.limit, entry.limit):
                self._raise(job, entry.limit, report)
            elif job.limit is not None:
                state = State.SET if job.time_min == entry.time_min else State.CLEAR
                if entry.state is State.INTENT and state is State.SET:
                    self.say(f"job {job.key}: TimeMin is seen")
                self._keep(entry, entry.but(state=state, limit=job.limit, restarts=job.restarts), now)
        for key in gone:
            del self.entries[key]
        if self.ledger is not None and gone:
            try:
                self.ledger.forget(gone)
            except LedgerError as error:
                self._ledger_fails(error)

    def _take_back(self, entries: list[Entry], report: Report) -> None:
        """Take TimeMin away; what fails is tried again in the next round, as it will still be seen."""
        for entry in entries:
            if self._change(lambda key=entry.key: self.slurm.set_time_min(key, 0), report):  # type: ignore[misc]
                report.taken_back += 1
                self._note("taken back", entry)
                self.say(f"job {entry.key}: TimeMin is taken back")

    # ------------------------------------------------------------------------------------------------------------ whether to act

    def _find_mode(self, facts: Facts, queue: list[QueuedJob], report: Report) -> bool:
        """Find the mode; returns whether jobs may keep their TimeMin, and others get one."""
        report.mode = Mode.SOFT_LIMIT if facts.soft_limit else Mode.GIVE_BACK
        if not facts.has_backfill:
            report.mode, report.why = Mode.ADVICE, "SchedulerType is not sched/backfill, and nothing else reads TimeMin"
        elif self._denied or not self._may_change(facts):
            report.mode, report.why = Mode.ADVICE, self._denied or f"user {self.user} is neither SlurmUser, root nor operator"
        elif self.ledger is None:
            report.why = "dry run"
        elif self.stopped():
            report.why = "stopped by the operator"
        elif not self._ledger_works:
            report.why = "the ledger cannot be written"
        elif report.mode is Mode.GIVE_BACK and not self.stays:
            report.why = "a limit can be given back only by a side-car that stays; leave out --once"
        elif report.mode is Mode.GIVE_BACK:
            report.why = self._self_test(facts, queue, report)
        elif self.trust is not None and self.trust.distrust:
            if not self.short:
                self.trust.distrust = ""  # under soft limits there is nothing more to be tested
            report.why = self.trust.distrust
        return not report.why

    def _may_change(self, facts: Facts) -> bool:
        if self.user == "root" or facts.settings.get("SlurmUser", "").partition("(")[0] == self.user:
            return True
        if self._asked_right_of != facts.controller:
            try:
                self._right = self.slurm.admin_level(self.user) in ("Operator", "Administrator")
            except SlurmError as error:
                self.say(f"whether user {self.user} is an operator is unknown: {error}")
                return False
            self._asked_right_of = facts.controller
        return self._right

    def _self_test(self, facts: Facts, queue: list[QueuedJob], report: Report) -> str:
        """Go on with the self-tests; returns why nothing may be adjusted yet."""
        assert self.trust is not None
        before = self.trust.failures
        try:
            return self.trust.why_not(queue, facts, self.clock.monotonic(), self.user)
        except LedgerError as error:
            self._ledger_fails(error)
            return "the ledger cannot be written"
        finally:
            report.failures += self.trust.failures - before

    def _lose_trust(self, why: str) -> None:
        """Nothing is adjusted any more, and all is taken back, until a new self-test has passed."""
        self.say(f"ALARM: {why}")
        self._note("alarm", detail=why)
        if self.trust is not None:
            try:
                self.trust.lose(why)
            except LedgerError as error:
                self._ledger_fails(error)

    # ----------------------------------------------------------------------------------------------------------------- adjusting

    def _reasons(self, waiting: Mapping[str, QueuedJob], facts: Facts, now: float) -> dict[str, str]:
        """Why jobs may not have a TimeMin."""
        if facts.enforces_limits and self.clock.monotonic() - self._limits_at > KEEP_LIMITS:
            try:
                self._limits, self._limits_at = read_run_minutes(*self.slurm.run_minute_limits()), self.clock.monotonic()
            except SlurmError as error:
                self._limits = RunMinutes(known=False)
                self.say(f"limits on running minutes are unknown: {error}")
        found = {}
        for key, job in waiting.items():
            entry = self.entries.get(key)
            if job.time_min and (entry is None or entry.time_min != job.time_min):
                why: str | None = "TimeMin is the user's own"
            elif job.name in (NAME, PROLOG_NAME) and job.user == self.user:
                why = "self-test"
            elif entry is not None and job.limit is not None and entry.time_min >= job.limit:
                why = "its limit has become too short"
            else:
                why = why_never(job, facts, self._limits, self.bounds, now)
            if why is not None:
                found[key] = why
        return found

    def _adjust(self, waiting: Mapping[str, QueuedJob], facts: Facts, now: float, report: Report, act: bool) -> None:
        """Set TimeMin where it may be set and is worth it, each one after it is on disk."""
        room = int(self.bounds.share * len(waiting)) - report.adjusted
        tasks = Counter(array_of(key) for key, job in waiting.items() if job.time_min)
        for key, job in waiting.items():
            if key in report.left or job.time_min or job.limit is None:
                continue
            entry = self.entries.get(key)
            seconds = None if entry is not None else self.predict(job, now)
            minutes = entry.time_min if entry is not None else time_min_of(seconds, job.limit, self.bounds)
            if minutes is None:
                report.left[key] = "nothing to gain, or too little known"
                continue
            array = array_of(key)
            if array and tasks[array] >= self.bounds.tasks:
                report.left[key] = "enough tasks of its array have one"
                continue
            tasks[array] += 1
            report.wanted[key] = minutes
            if not act or report.failures >= MOST_FAILURES or self._denied or not self._ledger_works:
                continue
            if report.set_now >= room or not self._has_budget() or self._not_before.get(key, 0) > self.clock.monotonic():
                continue
            longest = facts.longest(job.partitions)
            longest = None if longest is None else max(longest, job.limit)
            soft = report.mode is Mode.SOFT_LIMIT
            if not self._keep(None, Entry(key, job.user, minutes, job.limit, longest, job.restarts, soft, State.INTENT, now), now):
                continue
            self._changes.append(self.clock.monotonic())
            if not soft and not self._put(key, longest):
                continue
            if self._change(lambda key=key, minutes=minutes: self.slurm.set_time_min(key, minutes), report):  # type: ignore[misc]
                report.set_now += 1
                self._keep(None, self.entries[key], now, "Slurm has it")
                self._note("set", self.entries[key], job, "" if seconds is None else f"{seconds:.0f}")
                self.say(f"job {key}: TimeMin {minutes} of {job.limit} minutes")
            else:
                self._not_before[key] = self.clock.monotonic() + LATEST

    def _put(self, key: str, minutes: Minutes) -> bool:
        """Let the prolog know of a job before it can be shortened; whether it may be. What its user may have asked for unseen counts."""
        if self.spool is None:
            return True
        try:
            self.spool.put(key, minutes)
        except OutputError as error:
            self.say(f"the prolog is not told: {error}")
            return self.trust is None or not self.trust.needs_prolog
        return True

    def _keep_spool(self) -> None:
        """Files of the jobs that wait with a TimeMin, or may.

        In them is the user's limit, where he cannot have changed it unseen, else the longest that he can have chosen.
        """
        if self.spool is None or self.trust is None:
            return
        open_ones = [entry for entry in self.entries.values() if not entry.soft and entry.state in (*OPEN, State.CLEAR)]
        wanted = {entry.key: entry.limit if entry.state is State.SET else entry.longest for entry in open_ones}
        try:
            self.spool.keep(wanted | dict.fromkeys(self.trust.keys, WHOLE))
        except OutputError as error:
            self.say(f"the prolog is not told: {error}")

    def _has_budget(self) -> bool:
        """Whether one more change is allowed in this minute."""
        while self._changes and self.clock.monotonic() - self._changes[0] > 60:
            self._changes.popleft()
        return len(self._changes) < self.bounds.a_minute

    # ------------------------------------------------------------------------------------------------------------------- helpers

    def _change(self, change: Callable[[], None], report: Report) -> bool:
        """Make a change; whether Slurm says that it is made."""
        if self.ledger is None:
            return False
        try:
            change()
        except SlurmError as error:
            report.failures += 1
            self.say(f"failed: {error}")
            self._note("failed", detail=str(error))
            if isinstance(error, DeniedError):
                self._denied = str(error)
            return False
        return True

    def _keep(self, before: Entry | None, after: Entry, now: float, detail: str = "") -> bool:
        """Write an entry if it has changed; whether it is on disk. What cannot be written is remembered as long as this process lives."""
        if before is not None and before == after.but(seen=before.seen) and now - before.seen < FORGET_AFTER / 4:
            return True
        after = after.but(seen=now)
        if before is not None:
            self.entries[after.key] = after
        try:
            assert self.ledger is not None
            self.ledger.write(after, now, detail)
        except LedgerError as error:
            self._ledger_fails(error)
            return False
        self.entries[after.key] = after
        return True

    def _note(self, what: str, entry: Entry | None = None, job: QueuedJob | None = None, detail: str = "") -> None:
        """Note for those who ask later what happened; nothing depends on it."""
        if self.ledger is None:
            return
        about = ("", "", 0, 0) if entry is None else (entry.key, entry.user, entry.time_min, entry.limit)
        seen = (None, 0) if job is None else (job.limit, job.start)
        try:
            self.ledger.remember(Fact(self.clock.time(), what, *about, *seen, detail))
        except LedgerError as error:
            self._ledger_fails(error)

    def _ledger_fails(self, error: LedgerError) -> None:
        if self._ledger_works:
            self.say(f"ALARM: {error}")
        self._ledger_works = False

    def _mend_ledger(self, now: float) -> None:
        """Try whether a ledger that could not be written can be written again, and write what is missing."""
        if self._ledger_works or self.ledger is None:
            return
        try:
            for entry in self.entries.values():
                self.ledger.write(entry, now, "written later")
            self.ledger.note("written", str(int(now)))
        except LedgerError:
            return
        self._ledger_works = True
        self.say("the ledger can be written again")

    def _clock_is_steady(self, now: float) -> bool:
        monotonic = self.clock.monotonic()
        before, self._clocks = self._clocks, (now, monotonic)
        if before is None or abs((now - before[0]) - (monotonic - before[1])) < JUMP:
            return True
        self.say("the clock was set: no new adjustments in this round")
        return False

    @staticmethod
    def _is_same(entry: Entry, job: QueuedJob) -> bool:
        """Whether it is the job of the entry, and not one that has got its number later."""
        return entry.user == job.user and entry.restarts <= job.restarts


def _is_less(limit: Minutes, than: Minutes) -> bool:
    return limit is not None and (than is None or limit < than)
