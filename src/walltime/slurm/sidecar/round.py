"""One round of the side-car: restore limits, read the cluster's state, remove each TimeMin that must not stay, and adjust jobs.

Safety: before a change that may shorten a job, the job is on disk with its user's limit, and stays there while the job is in the queue.
All other state is read from Slurm in each round, so a round may be interrupted anywhere and the next one continues. Restoring comes first
and needs only the ledger and squeue. It is repeated during the other steps of a round, whose time is limited.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from walltime.errors import OutputError
from walltime.slurm.client import Client, DeniedError
from walltime.slurm.configuration import Configuration, Limits, Mode
from walltime.slurm.records import SlurmError
from walltime.slurm.sidecar.bounds import LATE_HEAD, QueueHeads
from walltime.slurm.sidecar.host import Budget, Host
from walltime.slurm.sidecar.ledger import OPEN, Adjustments, Entry, Ledger, State
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.restoring import LimitRestorer
from walltime.slurm.sidecar.selection import Predict, choose, exclusion_reason
from walltime.slurm.sidecar.self_tests import NAMES, WHOLE, WORKS, SelfTests
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob
from walltime.slurm_values import Minutes

KEEP_LIMITS = 600.0
"""Seconds for which the limits read from sacctmgr are used."""
LATEST = 300.0
"""Seconds for which a job is not changed again after a command without an answer: until then, Slurm may still make the change."""
MOST_FAILURES = 3
"""Number of consecutive failures after which a round stops removing TimeMin, or stops adjusting."""
TO_ADOPT = 3
"""The most further rounds of a side-car that runs only once, to restore jobs that a lost ledger contained."""
JUMP = 60.0
"""Seconds: if the system clock was changed by more than this since the last round, this round adjusts no jobs."""
QUEUE_SHARE = 0.1
"""The largest share of the time that slurmctld may spend on listing the whole queue."""


class Sidecar:
    """The side-car. Without a ledger it makes no changes, and only reports what it would do.

    `spool`: the folder of files with which the prolog restores limits.
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
        self.restorer = LimitRestorer(slurm, self.adjustments, host, self._lose_trust, self.spool)
        self.restorer.extra = lambda: [] if self.tests is None else self.tests.keys
        self.restorer.prolog_missed = self._report_prolog_failure
        self.heads = QueueHeads("" if ledger is None else ledger.noted("heads"))
        self.alarms = 0
        self._denied = ""
        self._foreign = False
        self._permission_checked, self._permitted = "", False  # of this controller
        self._limits_at = float("-inf")
        self._changes: deque[float] = deque()
        self._clocks: tuple[float, float] | None = None
        self._answered_at = host.clock.monotonic()
        self._queue_at, self._queue_took = float("-inf"), 0.0
        self._blocked_by = ""
        self._queue: list[QueueJob] = []
        self._own: set[str] = set()  # jobs of self-tests
        # Slurm may make a change without an answer late; until LATEST has passed, the job is not changed again
        self._not_before = {key: host.clock.monotonic() + LATEST for key, entry in self.entries.items() if entry.state is not State.SET}
        if self.entries:
            host.say(f"jobs in the ledger: {len(self.entries):,}")
        if ledger is not None and (ledger.lost or ledger.unwritable or ledger.exposed):
            self._alarm(ledger.lost or ledger.unwritable or ledger.exposed)

    @property
    def entries(self) -> dict[str, Entry]:
        """Return the ledger's entries, by key."""
        return self.adjustments.jobs

    @property
    def watched(self) -> list[str]:
        """Return the keys of jobs that may have a shortened limit or the side-car's TimeMin."""
        return self._jobs_in(*OPEN, State.SHORT)

    @property
    def short(self) -> int:
        """Return the number of jobs with shortened limits."""
        return len(self._jobs_in(State.SHORT))

    def _jobs_in(self, *states: State) -> list[str]:
        return [key for key, entry in self.entries.items() if entry.state in states and self.restorer.may_exist(key)]

    def round(self) -> Report:
        """Run one round; the report counts the commands that failed, which the next round repeats."""
        report = Report()
        alarms = self.alarms
        try:
            self._run_round(report)
        except SlurmError as error:
            report.failures += 1
            report.why = str(error)
            if self.stays:
                self.say(f"this round ends early: {error}")
            silent = self.clock.monotonic() - self._answered_at
            if silent > self.settings.floor * 30 and self.ledger is not None:  # half of the shortest limit that backfill can set
                self._alarm(f"Slurm has not answered for {silent:.0f} s: jobs may end before their limits can be restored")
                self._answered_at = self.clock.monotonic()  # the next alarm follows after the same time
        report.alarms = self.alarms - alarms
        report.with_time_min = len(self._jobs_in(*OPEN))
        return report

    def once(self) -> Report:
        """Run one round, and more while jobs have a TimeMin that the ledger lacks; return one report on all of them.

        The further rounds test the guard, which shows whether users can have set these TimeMin.
        """
        report = self.round()
        for _ in range(TO_ADOPT):
            if not self.unknown():
                break
            before, report = report, self.round()
            for name in ("removed", "restored", "failures", "alarms"):
                setattr(report, name, getattr(before, name) + getattr(report, name))
            self.restorer.run_if_due(report, self.settings.tasks, 0)
        self._give_up_tests(report)
        return report

    def _run_round(self, report: Report) -> None:
        now = self.clock.time()
        steady = self._clock_is_steady(now)
        self.adjustments.retry()
        cluster = self._restore_limits(report)
        if cluster is None:
            report.why = "the ledger belongs to another cluster"
            return
        budget = Budget(self.clock, self.settings.every, MOST_FAILURES)
        self._take_back_soft_limits(cluster, report, budget)
        self._restore_if_due(report)
        fresh = self._read_queue(report)
        report.answered = True
        self._answered_at = self.clock.monotonic()
        ready = self._find_mode(cluster, report)
        if fresh:
            self._read_limits(cluster)
            self._adopt(cluster)
            if steady and self.heads.look((job for job in self._queue if job.waits), now):
                self._note("heads", self.heads.note())
        waiting = self.waiting()
        report.waiting = len(waiting)
        late = self.heads.late(now, self.settings)
        reasons = {key: self._exclusion_reason(job, cluster, now, late) for key, job in waiting.items()}
        report.left = {key: reason for key, reason in reasons.items() if reason is not None}
        entries = [entry for entry in self.entries.values() if entry.key in waiting and entry.state is not State.ENDED]
        held = [entry for entry in entries if waiting[entry.key].time_min == entry.time_min]
        ready = ready and not (self.tests is not None and self.tests.distrust)  # trust may have been lost meanwhile
        unwanted = [entry for entry in held if not ready or entry.key in report.left]
        report.adjusted = len(held) - len(unwanted)
        self._take_back(unwanted, report, budget)
        if fresh:
            budget = Budget(self.clock, self.settings.every, MOST_FAILURES)
            self._adjust(waiting, cluster, now, report, budget, act=ready and steady)
        self.adjustments.forget_old()
        if report.set_now:
            self.restorer.run_if_due(
                report, self.settings.tasks, 0
            )  # so that its user's limit is known even if it starts before the next round
        self._keep_spool()

    def _restore_limits(self, report: Report) -> Configuration | None:
        """Restore limits, and return the configuration; None if the ledger belongs to another cluster."""
        if self._is_foreign(None):
            return None
        if self.ledger is not None:
            self.restorer.run(report, self.settings.tasks)
        cluster = self.restorer.cluster = self.slurm.configuration()
        return None if self._is_foreign(cluster) else cluster

    def waiting(self) -> dict[str, QueueJob]:
        """Return the waiting jobs, by key; the last query of watched jobs is newer than the list of the whole queue."""
        ended = {job.key for job in self.restorer.seen if not job.waits}
        waiting = {job.key: job for job in self._queue if job.waits and job.key not in ended}
        return waiting | {job.key: job for job in self.restorer.seen if job.waits and job.key in self.entries}

    def _restore_if_due(self, report: Report) -> None:
        """Restore limits again if the other steps have taken a while."""
        if self.ledger is not None:
            self.restorer.run_if_due(report, self.settings.tasks, self.settings.every)

    def _read_queue(self, report: Report) -> bool:
        """Read the whole queue, unless that takes long and was done recently; return whether it was read."""
        begin = self.clock.monotonic()
        if begin - self._queue_at < min(self._queue_took / QUEUE_SHARE, 600.0):
            return False
        self._queue = self.slurm.queue(self.settings.tasks)
        if self.tests is None or not any(job.user == self.user for job in self._queue):
            self._own = set()
        else:  # also from a side-car that was killed
            self._own = {*self.slurm.jobs_named(NAMES, self.user), *self.tests.keys}
        self._queue_at, self._queue_took = self.clock.monotonic(), self.clock.monotonic() - begin
        self._restore_if_due(report)
        return True

    # ------------------------------------------------------------------------------------------------------- undoing changes

    def _take_back_soft_limits(self, cluster: Configuration, report: Report, budget: Budget) -> None:
        """Remove all TimeMin that need time_min_as_soft_limit once that option is no longer set."""
        here = [self.entries[job.key] for job in self.restorer.seen if job.waits and job.time_min and job.key in self.entries]
        soft = [entry for entry in here if entry.soft and entry.state in OPEN]
        if soft and not cluster.soft_limit:
            self.say("time_min_as_soft_limit was removed while jobs have a TimeMin: every TimeMin is withdrawn")
            self._take_back(soft, report, budget)

    def _is_foreign(self, cluster: Configuration | None) -> bool:
        """Return whether the ledger belongs to another cluster, whose jobs may have the same numbers."""
        if self.ledger is None or (cluster is None and not self._foreign):
            return False
        if cluster is not None:
            name, noted = cluster.settings.get("ClusterName", ""), self.ledger.noted("cluster")
            if noted and name != noted:
                if not self._foreign:
                    self._alarm(f"the ledger belongs to cluster {noted}, but this is cluster {name}; no job is changed")
                self._foreign = True
            elif not noted:
                self._note("cluster", name)
        return self._foreign

    def _adopt(self, cluster: Configuration) -> None:
        """Add entries for jobs whose TimeMin the ledger lacks: the guard keeps users from setting it, so the ledger was lost.

        If such a job runs, its user's limit is unknown.
        """
        if self.tests is None or cluster.soft_limit or not self.tests.is_guarded(cluster):
            return
        for job in self.unknown():
            state, longest = State.SET if job.waits else State.STARTED, self.restorer.limits.longest(job, cluster)
            self.restorer.adopt(job, job.limit or 0, longest, state, doubt=job.runs or job.restarts > 0)

    def unknown(self) -> list[QueueJob]:
        """Return the jobs with a limit and a TimeMin that is not in the ledger; none without a ledger."""
        queue = [] if self.ledger is None else self._queue
        jobs = [job for job in queue if job.time_min and job.limit is not None and job.key not in self._own]
        known = {key: entry.time_min for key, entry in self.entries.items()}
        return [
            job for job in jobs if (job.waits or job.runs) and not (known.get(job.key) == job.time_min and self.adjustments.is_same(job))
        ]

    def _take_back(self, entries: list[Entry], report: Report, budget: Budget) -> None:
        """Remove TimeMin while there is time; the next round continues with the rest."""
        for entry in entries:
            if budget.spent:
                return
            worked = self._change(lambda key=entry.key: self.slurm.set_time_min(key, 0), report)  # type: ignore[misc]
            budget.count(worked)
            if worked:
                report.removed += 1
                self.adjustments.record("taken back", entry)
                self.say(f"job {entry.key}: removed TimeMin")
            self._restore_if_due(report)

    # ------------------------------------------------------------------------------------------------------------ whether to act

    def _find_mode(self, cluster: Configuration, report: Report) -> bool:
        """Set the report's mode and reason, and return whether jobs may keep their TimeMin and others may get one."""
        report.mode = Mode.SOFT_LIMIT if cluster.soft_limit else Mode.GIVE_BACK
        found = next((one for one in HINDRANCES if one.test(self, cluster)), None)
        if found is None:
            report.why = self._self_test(cluster, report)
            return not report.why
        report.why = found.reason.format(car=self)
        if found.lasting:
            report.mode = Mode.ADVICE
        if report.mode is Mode.GIVE_BACK and self.unknown():
            self._self_test(cluster, report)  # some may be short; only a test of the guard shows whether users can set TimeMin
        else:
            self._give_up_tests(report)
        return False

    def _is_blocked(self) -> bool:
        reason = self.blocked()
        if reason and reason != self._blocked_by:
            self._alarm(reason)
        self._blocked_by = reason
        return bool(reason)

    def _may_change(self, cluster: Configuration) -> bool:
        if self.user == "root" or cluster.settings.get("SlurmUser", "").partition("(")[0] == self.user:
            return True
        if self._permission_checked != cluster.controller:
            try:
                self._permitted = self.slurm.admin_level(self.user) in ("Operator", "Administrator")
            except SlurmError as error:
                self.say(f"the AdminLevel of user {self.user} is unknown: {error}")
                return False
            self._permission_checked = cluster.controller
        return self._permitted

    def _self_test(self, cluster: Configuration, report: Report) -> str:
        """Continue the self-tests, and return why nothing may be adjusted yet."""
        assert self.tests is not None
        with self.adjustments.reporting():
            alive = [job for job in self.restorer.seen if not job.ended]
            return self.tests.step(alive, cluster, self.clock.monotonic(), self.user, report)
        return "the ledger cannot be written"  # type: ignore[unreachable]  # reached after an error

    def _give_up_tests(self, report: Report) -> None:
        if self.tests is not None:
            self.tests.give_up(self.user, report)

    def _report_prolog_failure(self, job: QueueJob) -> None:
        if self.tests is None or self.tests.prolog != WORKS or self.entries[job.key].soft:
            return
        failure = f"the prolog did not raise the limit of job {job.key}"
        self.adjustments.record("prolog missed", detail=failure)
        if self.settings.need_prolog:
            self._lose_trust(failure)
        else:
            self.say(f"{failure}; the side-car raises it instead")

    def _alarm(self, reason: str) -> None:
        self.alarms += 1
        self.say(f"ALARM: {reason}")
        self.adjustments.record("alarm", detail=reason)

    def _lose_trust(self, reason: str) -> None:
        """Raise an alarm, withdraw all adjustments, and make no new ones until another self-test has passed."""
        self._alarm(reason)
        self._permission_checked = ""
        if self.tests is not None:
            with self.adjustments.reporting():
                self.tests.invalidate(reason)

    # ----------------------------------------------------------------------------------------------------------------- adjusting

    def _read_limits(self, cluster: Configuration) -> None:
        if not cluster.enforces_limits:
            self.restorer.limits = Limits()
        elif self.clock.monotonic() - self._limits_at > KEEP_LIMITS:
            try:
                self.restorer.limits, self._limits_at = self.slurm.limits(), self.clock.monotonic()
            except SlurmError as error:
                self.restorer.limits = Limits(known=False)
                self.say(f"could not read the limits on jobs: {error}")

    def _exclusion_reason(self, job: QueueJob, cluster: Configuration, now: float, late: Collection[str]) -> str | None:
        """Return why a job may not have a TimeMin, None if it may; `late`: partitions whose head has waited too long."""
        entry = self.entries.get(job.key)
        tests = (
            (job.key in self._own, "self-test"),
            (job.time_min and (entry is None or entry.time_min != job.time_min), "TimeMin is the user's own"),
            (entry is not None and job.limit is not None and entry.time_min >= job.limit, "its limit has become too short"),
            (job.user in self.restorer.quarantine, "its user has lowered raised limits"),
            (any(name in late for name in job.partitions), LATE_HEAD),
        )
        reason = next((reason for excluded, reason in tests if excluded), None)
        reason = reason or exclusion_reason(job, cluster, self.restorer.limits, self.settings, now)
        return reason or self.restorer.overruns.exclusion_reason(job, cluster, self.settings)

    def _adjust(
        self, waiting: Mapping[str, QueueJob], cluster: Configuration, now: float, report: Report, budget: Budget, act: bool
    ) -> None:
        """Set TimeMin of the chosen jobs, each after its entry is on disk."""
        for job, minutes, seconds in choose(waiting, self.entries, self.predict, self.restorer.overruns, self.settings, now, report):
            if not act or budget.spent or self.stopped() or report.failures >= MOST_FAILURES or self._denied:
                continue
            if not self.adjustments.writable or self._not_before.get(job.key, 0) > self.clock.monotonic():
                continue
            while self._changes and self.clock.monotonic() - self._changes[0] > 60:
                self._changes.popleft()
            if len(self._changes) >= self.settings.changes:  # in the last minute
                continue
            longest = self.restorer.limits.longest(job, cluster)
            soft = report.mode is Mode.SOFT_LIMIT
            entry = Entry(job.key, job.user, minutes, job.limit or 0, longest, job.restarts, soft, State.INTENT, now)
            if not self.adjustments.save(None, entry):
                continue
            self._changes.append(self.clock.monotonic())
            if not soft and not self._write_spool(job, longest):
                continue
            worked = self._change(lambda key=job.key, minutes=minutes: self.slurm.set_time_min(key, minutes), report)  # type: ignore[misc]
            budget.count(worked)
            if worked:
                report.set_now += 1
                self.adjustments.save(None, self.entries[job.key], "Slurm has it")
                self.adjustments.record("set", self.entries[job.key], job, "" if seconds is None else f"{seconds:.0f}")
                self.say(f"job {job.key}: TimeMin {minutes} of {job.limit} min")
            else:
                self._not_before[job.key] = self.clock.monotonic() + LATEST
            self._restore_if_due(report)

    def _write_spool(self, job: QueueJob, longest: Minutes) -> bool:
        """Write a job's file for the prolog, and return whether the job may be shortened."""
        if self.spool is None:
            return True
        try:
            self.spool.put(job.key, job.limit or 0, longest)
        except OutputError as error:
            self.say(f"could not write the file for the prolog: {error}")
            return self.tests is None or not self.settings.need_prolog
        return True

    def _keep_spool(self) -> None:
        """Keep only the prolog's files of jobs that wait, or may wait, with a TimeMin.

        A file has the user's limit, and the longest that the user can have chosen unseen: the same, once the job was seen with its TimeMin.
        """
        if self.spool is None or self.tests is None:
            return
        states = (*OPEN, State.CLEAR, State.SHORT)
        entries = [entry for entry in self.entries.values() if not entry.soft and entry.state in states]
        wanted = {e.key: (e.limit, e.limit if e.state is State.SET and not e.doubt else e.longest) for e in entries}
        try:
            self.spool.keep(wanted | dict.fromkeys(self.tests.spool_keys, (WHOLE, WHOLE)), self.restorer.orphans)
        except OutputError as error:
            self.say(f"could not write the files for the prolog: {error}")

    # ------------------------------------------------------------------------------------------------------------------- helpers

    def _change(self, change: Callable[[], None], report: Report) -> bool:
        """Make a change, and return whether Slurm confirms it."""
        if self.ledger is None:
            return False
        try:
            change()
        except SlurmError as error:
            report.failures += 1
            self.say(f"failed: {error}")
            self.adjustments.record("failed", detail=str(error))
            if isinstance(error, DeniedError):
                self._denied = str(error)
            return False
        return True

    def _note(self, name: str, value: str) -> None:
        if self.ledger is not None:
            with self.adjustments.reporting():
                self.ledger.note(name, value)

    def _clock_is_steady(self, now: float) -> bool:
        monotonic = self.clock.monotonic()
        before, self._clocks = self._clocks, (now, monotonic)
        if before is None or abs((now - before[0]) - (monotonic - before[1])) < JUMP:
            return True
        self.say("the system clock was changed: no new adjustments in this round")
        return False


class Hindrance(NamedTuple):
    """A condition under which no job may have a TimeMin, and the reason; `lasting`: whether the side-car can then only give advice."""

    test: Callable[[Sidecar, Configuration], object]
    reason: str
    lasting: bool = False


HINDRANCES = (
    Hindrance(lambda car, cluster: not cluster.has_backfill, "only SchedulerType=sched/backfill uses TimeMin", True),
    Hindrance(lambda car, cluster: car._denied, "{car._denied}", True),
    Hindrance(lambda car, cluster: not car._may_change(cluster), "user {car.user} is not SlurmUser, root or an operator", True),
    Hindrance(lambda car, cluster: car.ledger is None, "dry run"),
    Hindrance(lambda car, cluster: car.stopped(), "stopped by the operator"),
    Hindrance(lambda car, cluster: not car.adjustments.writable, "the ledger cannot be written"),
    Hindrance(lambda car, cluster: car.ledger is not None and car.ledger.exposed, "other users can access the ledger's folder"),
    Hindrance(lambda car, cluster: not car.stays, "a running side-car must watch each TimeMin; leave out --once"),
    Hindrance(lambda car, cluster: car._is_blocked(), "{car._blocked_by}"),
)
"""The conditions in order; the first that is met gives the reason."""
