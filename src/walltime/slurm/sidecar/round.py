"""One round of the side-car: give back, look at the cluster, take back what must not stay, adjust.

What makes it safe: what it may have shortened is on disk before it is changed, with the user's limit and for as long as the job is in the
queue; everything else is found out anew from what Slurm says. So a round can end anywhere, and the next one goes on. Giving back comes
first, needs nothing but the ledger and squeue, and comes again while a round does other things, which have a time and no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from walltime.errors import OutputError
from walltime.slurm.client import Client, DeniedError
from walltime.slurm.configuration import Configuration, Limits, Mode
from walltime.slurm.records import SlurmError
from walltime.slurm.sidecar.adjustments import OPEN, Adjustments
from walltime.slurm.sidecar.giveback import GiveBack
from walltime.slurm.sidecar.host import Budget, Host
from walltime.slurm.sidecar.ledger import Entry, Ledger, LedgerError, State
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.queue_heads import WHY, QueueHeads
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.rules import exclusion_reason
from walltime.slurm.sidecar.selection import Predict, choose
from walltime.slurm.sidecar.self_tests import NAMES, WHOLE, WORKS, SelfTests
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob
from walltime.slurm_values import Minutes

KEEP_LIMITS = 600.0
"""Seconds for which limits on jobs are not asked for again."""
LATEST = 300.0
"""Seconds after which a change that Slurm did not answer has been made, or will never be."""
MOST_FAILURES = 3
"""So many failures in a row end taking back, or adjusting, for this round."""
TO_ADOPT = 3
"""So many more rounds a side-car that does not stay has for jobs that a lost ledger knew of."""
JUMP = 60.0
"""A clock that has gone wrong by so many seconds since the last round is not believed in this one."""
PART_OF_TIME = 0.1
"""The part of the time in which slurmctld may be asked for the whole queue."""


class Sidecar:
    """The side-car. Without a ledger it changes nothing and only says what it would do.

    `spool`: the files of a second give-back, the prolog's.
    """

    def __init__(
        self,
        slurm: Client,
        predict: Predict,
        settings: SidecarSettings,
        host: Host,
        ledger: Ledger | None = None,
        spool: Spool | None = None,
    ):
        self.slurm, self.predict, self.settings, self.ledger = slurm, predict, settings, ledger
        self.clock, self.user, self.say = host.clock, host.user, host.say
        self.stopped, self.blocked, self.stays = host.stopped, host.blocked, host.stays
        self.adjustments = Adjustments(ledger, host.clock, host.say)
        self.spool = spool if ledger is not None else None
        self.tests = None if ledger is None else SelfTests(slurm, settings, host.say, ledger, spool)
        self.back = GiveBack(slurm, self.adjustments, host.clock, host.say, self._lose_trust, self.spool)
        self.back.extra = lambda: [] if self.tests is None else self.tests.keys
        self.back.prolog_missed = self._report_prolog_failure
        self.heads = QueueHeads("" if ledger is None else ledger.noted("heads"))
        self.alarms = 0
        self._denied = ""
        self._asked_right_of, self._right = "", False
        self._limits_at = float("-inf")
        self._changes: deque[float] = deque()
        self._clocks: tuple[float, float] | None = None
        self._answered_at = host.clock.monotonic()
        self._queue_at, self._queue_took = float("-inf"), 0.0
        self._blocked_by = ""
        self._queue: list[QueueJob] = []
        self._own: set[str] = set()  # jobs of self-tests
        # a change that Slurm did not answer may come late; until it must have come, no other one follows it
        self._not_before = {key: host.clock.monotonic() + LATEST for key, entry in self.entries.items() if entry.state is not State.SET}
        if self.entries:
            host.say(f"the ledger has {len(self.entries)} jobs")
        if ledger is not None and (ledger.lost or ledger.unwritable or ledger.exposed):
            self._alarm(ledger.lost or ledger.unwritable or ledger.exposed)

    @property
    def entries(self) -> dict[str, Entry]:
        """What the ledger knows, by key."""
        return self.adjustments.jobs

    @property
    def watched(self) -> list[str]:
        """The jobs that may be short, or may have a TimeMin of the side-car."""
        return [key for key in self.adjustments.watched if self.back.may_be_there(key)]

    @property
    def short(self) -> int:
        """How many jobs are short."""
        return sum(entry.state is State.SHORT and self.back.may_be_there(key) for key, entry in self.entries.items())

    def round(self) -> Report:
        """One round; what Slurm does not answer is counted in the report's `failures`, and is asked again in the next round."""
        report = Report()
        alarms = self.alarms
        try:
            self._go_round(report)
        except SlurmError as error:
            report.failures += 1
            report.why = str(error)
            if self.stays:
                self.say(f"nothing more is done in this round: {error}")
            self._count_silence()
        report.alarms = self.alarms - alarms
        report.untaken = sum(entry.state in OPEN and self.back.may_be_there(key) for key, entry in self.entries.items())
        return report

    def once(self) -> Report:
        """One round, and more as long as there are jobs whose TimeMin nobody knows of, for which the guard is tested; all in one report."""
        report = self.round()
        for _ in range(TO_ADOPT):
            if not self.unknown():
                break
            before, report = report, self.round()
            for name in ("taken_back", "given_back", "failures", "alarms"):
                setattr(report, name, getattr(before, name) + getattr(report, name))
            self.back.again(report, self.settings.tasks, 0)
        self._give_up_tests(report)
        return report

    def _go_round(self, report: Report) -> None:
        now = self.clock.time()
        steady = self._clock_is_steady(now)
        self.adjustments.mend()
        cluster = self._give_back(report)
        if cluster is None:
            report.why = "the ledger is that of another cluster"
            return
        budget = self._budget()
        self._take_back_soft_limits(cluster, report, budget)
        self._between(report)
        new = self._look_at_queue(report)
        report.answered = True
        self._answered_at = self.clock.monotonic()
        ready = self._find_mode(cluster, report)
        if new:
            self._ask_limits(cluster)
            self._adopt(cluster, report)
            if steady and self.heads.look((job for job in self._queue if job.waits), now):
                self._note("heads", self.heads.note())
        waiting = self._waiting()
        report.waiting = len(waiting)
        report.left = self._reasons(waiting, cluster, now)
        entries = [entry for entry in self.entries.values() if entry.key in waiting and entry.state is not State.ENDED]
        held = [entry for entry in entries if waiting[entry.key].time_min == entry.time_min]
        ready = ready and not (self.tests is not None and self.tests.distrust)  # which may have come since
        unwanted = [entry for entry in held if not ready or entry.key in report.left]
        report.adjusted = len(held) - len(unwanted)
        self._take_back(unwanted, report, budget)
        if new:
            self._adjust(waiting, cluster, now, report, self._budget(), act=ready and steady)
        self.adjustments.forget_old()
        if report.set_now:
            self.back.again(report, self.settings.tasks, 0)  # one may start before the next round; its user's limit is then known
        self._keep_spool()

    def _give_back(self, report: Report) -> Configuration | None:
        """Give back, and ask for the configuration; None if the ledger is that of another cluster."""
        if self._is_foreign(None):
            return None
        if self.ledger is not None:
            self.back.run(report, self.settings.tasks)
        cluster = self.back.cluster = self.slurm.configuration()
        return None if self._is_foreign(cluster) else cluster

    def _waiting(self) -> dict[str, QueueJob]:
        """The jobs that wait, by key; what was just looked at is known better than the queue."""
        ended = {job.key for job in self.back.seen if not job.waits}
        waiting = {job.key: job for job in self._queue if job.waits and job.key not in ended}
        return waiting | {job.key: job for job in self.back.seen if job.waits and job.key in self.entries}

    def _budget(self) -> Budget:
        return Budget(self.clock, self.settings.every, MOST_FAILURES)

    def _between(self, report: Report) -> None:
        """Give back again if other things have taken a while."""
        if self.ledger is not None:
            self.back.again(report, self.settings.tasks, self.settings.every)

    def _look_at_queue(self, report: Report) -> bool:
        """Ask for the whole queue, unless that takes long and was done a short while ago; whether it was."""
        begin = self.clock.monotonic()
        if begin - self._queue_at < min(self._queue_took / PART_OF_TIME, 600.0):
            return False
        self._queue = self.slurm.queue(self.settings.tasks)
        self._own = self._own_tests()
        self._queue_at, self._queue_took = self.clock.monotonic(), self.clock.monotonic() - begin
        self._between(report)
        return True

    # ------------------------------------------------------------------------------------------------------- what must be undone

    def _take_back_soft_limits(self, cluster: Configuration, report: Report, budget: Budget) -> None:
        """Take back all TimeMin that count on time_min_as_soft_limit once the option is gone."""
        here = [self.entries[job.key] for job in self.back.seen if job.waits and job.time_min and job.key in self.entries]
        soft = [entry for entry in here if entry.soft and entry.state in OPEN]
        if soft and not cluster.soft_limit:
            self.say("time_min_as_soft_limit is gone while jobs have a TimeMin: all of them are taken back")
            self._take_back(soft, report, budget)

    def _is_foreign(self, cluster: Configuration | None) -> bool:
        """Whether the ledger is that of another cluster, whose jobs have the same numbers."""
        if self.ledger is None or (cluster is None and not self._foreign):
            return False
        if cluster is not None:
            name, noted = cluster.settings.get("ClusterName", ""), self.ledger.noted("cluster")
            if noted and name != noted:
                if not self._foreign:
                    self._alarm(f"the ledger is that of cluster {noted}, and this is {name}: nothing is changed")
                self._foreign = True
            elif not noted:
                self._note("cluster", name)
        return self._foreign

    _foreign = False

    def _adopt(self, cluster: Configuration, report: Report) -> None:
        """Jobs with a TimeMin that the ledger does not know, and that the guard keeps users from setting: the ledger was lost.

        Of one that runs nobody knows the user's limit any more.
        """
        if self.tests is None or cluster.soft_limit or not self.tests.guarded(cluster):
            return
        for job in self.unknown():
            self.back.adopt(
                job,
                job.limit or 0,
                self.back.limits.longest(job, cluster),
                State.SET if job.waits else State.STARTED,
                doubt=job.runs or job.restarts > 0,
            )

    def unknown(self) -> list[QueueJob]:
        """Jobs that have a limit and a TimeMin which the ledger does not know; none without a ledger."""
        queue = [] if self.ledger is None else self._queue
        jobs = [job for job in queue if job.time_min and job.limit is not None and job.key not in self._own]
        return [job for job in jobs if (job.waits or job.runs) and not self._is_known(job)]

    def _is_known(self, job: QueueJob) -> bool:
        entry = self.entries.get(job.key)
        return entry is not None and entry.time_min == job.time_min and self.adjustments.is_same(job)

    def _own_tests(self) -> set[str]:
        """Jobs of self-tests, also of a side-car that was killed."""
        if self.tests is None or not any(job.user == self.user for job in self._queue):
            return set()
        return {*self.slurm.jobs_named(NAMES, self.user), *self.tests.keys}

    def _take_back(self, entries: list[Entry], report: Report, budget: Budget) -> None:
        """Take TimeMin away for as long as there is time; what is left, or fails, is seen again in the next round."""
        for entry in entries:
            if budget.spent:
                return
            worked = self._change(lambda key=entry.key: self.slurm.set_time_min(key, 0), report)  # type: ignore[misc]
            budget.count(worked)
            if worked:
                report.taken_back += 1
                self.adjustments.note("taken back", entry)
                self.say(f"job {entry.key}: TimeMin is taken back")
            self._between(report)

    # ------------------------------------------------------------------------------------------------------------ whether to act

    def _find_mode(self, cluster: Configuration, report: Report) -> bool:
        """Find the mode; returns whether jobs may keep their TimeMin, and others get one."""
        report.mode = Mode.SOFT_LIMIT if cluster.soft_limit else Mode.GIVE_BACK
        found = next((one for one in HINDRANCES if one.test(self, cluster)), None)
        if found is None:
            report.why = self._self_test(cluster, report)
            return not report.why
        report.why = found.reason.format(car=self)
        if found.lasting:
            report.mode = Mode.ADVICE
        if report.mode is Mode.GIVE_BACK and self.unknown():
            self._self_test(cluster, report)  # some may be short already, and only the test of the guard says whose their TimeMin is
        else:
            self._give_up_tests(report)
        return False

    def _is_blocked(self) -> bool:
        why = self.blocked()
        if why and why != self._blocked_by:
            self._alarm(why)
        self._blocked_by = why
        return bool(why)

    def _may_change(self, cluster: Configuration) -> bool:
        if self.user == "root" or cluster.settings.get("SlurmUser", "").partition("(")[0] == self.user:
            return True
        if self._asked_right_of != cluster.controller:
            try:
                self._right = self.slurm.admin_level(self.user) in ("Operator", "Administrator")
            except SlurmError as error:
                self.say(f"whether user {self.user} is an operator is unknown: {error}")
                return False
            self._asked_right_of = cluster.controller
        return self._right

    def _self_test(self, cluster: Configuration, report: Report) -> str:
        """Go on with the self-tests; returns why nothing may be adjusted yet."""
        assert self.tests is not None
        before = self.tests.failures
        try:
            alive = [job for job in self.back.seen if not job.ended]
            return self.tests.why_not(alive, cluster, self.clock.monotonic(), self.user)
        except LedgerError as error:
            self.adjustments.fail(error)
            return "the ledger cannot be written"
        finally:
            report.failures += self.tests.failures - before

    def _give_up_tests(self, report: Report) -> None:
        if self.tests is not None:
            before = self.tests.failures
            self.tests.give_up(self.user)
            report.failures += self.tests.failures - before

    def _report_prolog_failure(self, job: QueueJob) -> None:
        """The prolog has ended, and has not raised the limit."""
        if self.tests is None or self.tests.prolog != WORKS or self.entries[job.key].soft:
            return
        why = f"the prolog has not raised the limit of job {job.key}"
        self.adjustments.note("prolog missed", detail=why)
        if self.settings.need_prolog:
            self._lose_trust(why)
        else:
            self.say(f"{why}; the side-car does")

    def _alarm(self, why: str) -> None:
        self.alarms += 1
        self.say(f"ALARM: {why}")
        self.adjustments.note("alarm", detail=why)

    def _lose_trust(self, why: str) -> None:
        """Nothing is adjusted any more, and all is taken back, until a new self-test has passed."""
        self._alarm(why)
        self._asked_right_of = ""
        if self.tests is not None:
            try:
                self.tests.invalidate(why)
            except LedgerError as error:
                self.adjustments.fail(error)

    def _count_silence(self) -> None:
        """Alarm once Slurm has not answered for half of the time that a shortened job has at least."""
        silent = self.clock.monotonic() - self._answered_at
        if silent > self.settings.floor * 30 and self.ledger is not None:
            self._alarm(f"no round had an answer for {silent:.0f} s: shortened jobs may end before they can be given back")
            self._answered_at = self.clock.monotonic()  # and again after the same time

    # ----------------------------------------------------------------------------------------------------------------- adjusting

    def _ask_limits(self, cluster: Configuration) -> None:
        if not cluster.enforces_limits:
            self.back.limits = Limits()
        elif self.clock.monotonic() - self._limits_at > KEEP_LIMITS:
            try:
                self.back.limits, self._limits_at = self.slurm.limits(), self.clock.monotonic()
            except SlurmError as error:
                self.back.limits = Limits(known=False)
                self.say(f"the limits on jobs are unknown: {error}")

    def _reasons(self, waiting: Mapping[str, QueueJob], cluster: Configuration, now: float) -> dict[str, str]:
        """Why jobs may not have a TimeMin."""
        late = self.heads.late(now, self.settings)
        reasons = {key: self._reason(job, cluster, now, late) for key, job in waiting.items()}
        return {key: why for key, why in reasons.items() if why is not None}

    def _reason(self, job: QueueJob, cluster: Configuration, now: float, late: Collection[str]) -> str | None:
        entry = self.entries.get(job.key)
        tests = (
            (job.key in self._own, "self-test"),
            (job.time_min and (entry is None or entry.time_min != job.time_min), "TimeMin is the user's own"),
            (entry is not None and job.limit is not None and entry.time_min >= job.limit, "its limit has become too short"),
            (job.user in self.back.quarantine, "its user lowers limits that were raised"),
            (any(name in late for name in job.partitions), WHY),
        )
        why = next((reason for is_so, reason in tests if is_so), None)
        why = why or exclusion_reason(job, cluster, self.back.limits, self.settings, now)
        return why or self.back.overdue.why_not(job, cluster, self.settings)

    def _adjust(
        self, waiting: Mapping[str, QueueJob], cluster: Configuration, now: float, report: Report, budget: Budget, act: bool
    ) -> None:
        """Set TimeMin where it may be set and is worth it, each one after it is on disk."""
        for job, minutes, seconds in choose(waiting, self.entries, self.predict, self.back.overdue, self.settings, now, report):
            if not act or budget.spent or self.stopped() or report.failures >= MOST_FAILURES or self._denied or not self.adjustments.works:
                continue
            if not self._has_budget() or self._not_before.get(job.key, 0) > self.clock.monotonic():
                continue
            longest = self.back.limits.longest(job, cluster)
            soft = report.mode is Mode.SOFT_LIMIT
            entry = Entry(job.key, job.user, minutes, job.limit or 0, longest, job.restarts, soft, State.INTENT, now)
            if not self.adjustments.keep(None, entry):
                continue
            self._changes.append(self.clock.monotonic())
            if not soft and not self._put(job, longest):
                continue
            worked = self._change(lambda key=job.key, minutes=minutes: self.slurm.set_time_min(key, minutes), report)  # type: ignore[misc]
            budget.count(worked)
            if worked:
                report.set_now += 1
                self.adjustments.keep(None, self.entries[job.key], "Slurm has it")
                self.adjustments.note("set", self.entries[job.key], job, "" if seconds is None else f"{seconds:.0f}")
                self.say(f"job {job.key}: TimeMin {minutes} of {job.limit} minutes")
            else:
                self._not_before[job.key] = self.clock.monotonic() + LATEST
            self._between(report)

    def _put(self, job: QueueJob, longest: Minutes) -> bool:
        """Let the prolog know of a job before it can be shortened; whether it may be. What its user may have asked for unseen counts."""
        if self.spool is None:
            return True
        try:
            self.spool.put(job.key, job.limit or 0, longest)
        except OutputError as error:
            self.say(f"the prolog is not told: {error}")
            return self.tests is None or not self.settings.need_prolog
        return True

    def _keep_spool(self) -> None:
        """Files of the jobs that wait with a TimeMin, or may.

        In them is the user's limit, and the longest that they can have chosen unseen: the same once the job was seen with its TimeMin.
        """
        if self.spool is None or self.tests is None:
            return
        of = (*OPEN, State.CLEAR, State.SHORT)
        open_ones = [entry for entry in self.entries.values() if not entry.soft and entry.state in of]
        wanted = {e.key: (e.limit, e.limit if e.state is State.SET and not e.doubt else e.longest) for e in open_ones}
        try:
            self.spool.keep(wanted | dict.fromkeys(self.tests.spool_keys, (WHOLE, WHOLE)), self.back.orphans)
        except OutputError as error:
            self.say(f"the prolog is not told: {error}")

    def _has_budget(self) -> bool:
        """Whether one more change is allowed in this minute."""
        while self._changes and self.clock.monotonic() - self._changes[0] > 60:
            self._changes.popleft()
        return len(self._changes) < self.settings.changes

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
            self.adjustments.note("failed", detail=str(error))
            if isinstance(error, DeniedError):
                self._denied = str(error)
            return False
        return True

    def _note(self, name: str, value: str) -> None:
        """Note a value in the ledger."""
        if self.ledger is not None:
            try:
                self.ledger.note(name, value)
            except LedgerError as error:
                self.adjustments.fail(error)

    def _clock_is_steady(self, now: float) -> bool:
        monotonic = self.clock.monotonic()
        before, self._clocks = self._clocks, (now, monotonic)
        if before is None or abs((now - before[0]) - (monotonic - before[1])) < JUMP:
            return True
        self.say("the clock was set: no new adjustments in this round")
        return False


class Hindrance(NamedTuple):
    """A test of whether no job may have a TimeMin, and the reason; `lasting`: whether the side-car can only give advice."""

    test: Callable[[Sidecar, Configuration], object]
    reason: str
    lasting: bool = False


HINDRANCES = (
    Hindrance(lambda car, cluster: not cluster.has_backfill, "SchedulerType is not sched/backfill, and nothing else reads TimeMin", True),
    Hindrance(lambda car, cluster: car._denied, "{car._denied}", True),
    Hindrance(lambda car, cluster: not car._may_change(cluster), "user {car.user} is neither SlurmUser, root nor operator", True),
    Hindrance(lambda car, cluster: car.ledger is None, "dry run"),
    Hindrance(lambda car, cluster: car.stopped(), "stopped by the operator"),
    Hindrance(lambda car, cluster: not car.adjustments.works, "the ledger cannot be written"),
    Hindrance(lambda car, cluster: car.ledger is not None and car.ledger.exposed, "others can reach into the ledger's folder"),
    Hindrance(lambda car, cluster: not car.stays, "a TimeMin must be watched by a side-car that stays; leave out --once"),
    Hindrance(lambda car, cluster: car._is_blocked(), "{car._blocked_by}"),
)
"""The tests in their order; the first that holds gives the reason."""
