"""Jobs of the side-car's own that show, before anything else is changed, that what is shortened can be given back.

The first one, held, gets a TimeMin and then another TimeLimit: the guard in job_submit.lua must take the TimeMin away, since after a change
of the limit nobody but Slurm would know the user's limit any more. Then it runs, its limit is lowered, as backfill would do it, and the
side-car raises it again, which a user without rights could not. The second one, where there is a prolog, only that may raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from walltime.errors import OutputError
from walltime.slurm.client import Client
from walltime.slurm.configuration import Configuration
from walltime.slurm.records import SlurmError
from walltime.slurm.sidecar.ledger import Ledger
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob

NAMES = ("walltime-self-test", "walltime-self-test-prolog")
LIMIT, SHORT, WHOLE = 10, 12, 15
"""Minutes: the limit at submission, the one that it is shortened to, and the one that it is changed to, or that it must be raised to."""
PATIENCE = 1800.0
"""Seconds after which a job that has not started is given up."""
LOOKS = 3
"""So often a running job is looked at before the prolog is said not to have raised its limit."""
WORKS = "works"


@dataclass
class SelfTest:
    """The test of one slurmctld; `step` it once a round until it has `passed` or `failed`, which says why.

    `options`: words for sbatch, such as a partition. `guard_only`: limits need not be given back, so that the guard is all that is tested.
    """

    slurm: Client
    options: Sequence[str]
    say: Callable[[str], None]
    guard_only: bool = False
    passed: bool = False
    failed: str = ""
    guarded: bool = False
    _key: str = ""
    _stage: str = "submit"
    _since: float = 0.0
    _gone: int = 0

    def step(self, queue: Sequence[QueueJob], monotonic: float, user: str) -> None:
        """Go on with the test; raises SlurmError if Slurm did not answer, and may then be stepped again."""
        if self.passed or self.failed:
            return
        if self._stage == "submit":
            for left in self.slurm.jobs_named(NAMES[:1], user):  # by a side-car that was killed
                self.slurm.cancel(left)
            self._key = self.slurm.submit_test(NAMES[0], LIMIT, 600, self.options)
            self._go_on("guard", monotonic)
            self.slurm.set_time_min(self._key, 1)
            self.slurm.set_limit(self._key, WHOLE)
            return
        job = next((job for job in queue if job.key == self._key), None)
        if job is None or not (job.waits or job.runs):
            self._go_on("submit", monotonic)  # somebody cancelled it, or it ended before it was looked at
            self._gone += 1
            if self._gone >= 3:
                self._fail("three self-test jobs left the queue before they could be looked at")
        elif self._stage == "guard":
            self._look_at_guard(job, monotonic)
        elif self._stage == "start" and job.runs:
            self.slurm.set_limit(self._key, SHORT)
            self._go_on("short", monotonic)
        elif self._stage == "short" and job.limit == SHORT:
            self.slurm.set_limit(self._key, WHOLE)
            self._go_on("back", monotonic)
        elif self._stage == "back":
            if job.limit == WHOLE:
                self._pass("passed")
            else:
                self._fail("the limit of a running job could not be raised")
        elif monotonic - self._since > PATIENCE:
            self._submit_again(monotonic)

    def _look_at_guard(self, job: QueueJob, monotonic: float) -> None:
        if job.limit != WHOLE:
            self._submit_again(monotonic)  # an update was lost
            return
        if job.time_min:
            self._fail("a changed limit leaves TimeMin as it is: the guard in job_submit.lua is missing; see --print-guard")
            return
        self.guarded = True
        if self.guard_only:
            self._pass("the guard works")
        else:
            self.slurm.release(self._key)
            self._go_on("start", monotonic)

    @property
    def key(self) -> str:
        """The number of its job while it is under way."""
        return "" if self.passed or self.failed else self._key

    def _go_on(self, stage: str, monotonic: float) -> None:
        self._stage, self._since = stage, monotonic

    def _submit_again(self, monotonic: float) -> None:
        self.slurm.cancel(self._key)
        self._go_on("submit", monotonic)

    def _pass(self, what: str) -> None:
        self.slurm.cancel(self._key)
        self.passed = True
        self.say(f"self-test: {what}")

    def _fail(self, why: str) -> None:
        self.failed = why
        self.say(f"self-test: FAILED: {why}")
        try:
            self.slurm.cancel(self._key)
        except SlurmError:
            self.say("self-test: its job could not be cancelled")


@dataclass
class PrologTest:
    """A job with a TimeMin and too short a limit, which only the prolog may raise; `step` it once a round.

    `works`: None until it is known. `missing`: why it does not.
    """

    slurm: Client
    spool: Spool
    options: Sequence[str]
    say: Callable[[str], None]
    works: bool | None = None
    missing: str = ""
    _key: str = ""
    _since: float = 0.0
    _looks: int = 0

    def step(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str) -> None:
        """Go on; raises SlurmError if Slurm did not answer, and OutputError, and may then be stepped again."""
        if self.works is not None:
            return
        if not self._key:
            for left in self.slurm.jobs_named(NAMES[1:], user):  # by a side-car that was killed
                self._cancel(left)
            self._key = self.slurm.submit_test(NAMES[1], SHORT, 600, self.options)
            self._since, self._looks = monotonic, 0
            self.spool.put(self._key, WHOLE, WHOLE)
            self.slurm.set_time_min(self._key, SHORT - 1)
            self.slurm.release(self._key)
            return
        job = next((job for job in queue if job.key == self._key), None)
        if job is not None and job.runs and job.limit is not None and job.limit >= WHOLE:
            self._end(True)
            self.say("self-test: the prolog works")
        elif job is not None and job.state == "RUNNING":
            self._looks += 1
            if self._looks >= LOOKS:
                self._end(False, _why_no_prolog(cluster))
        elif (job is None and monotonic - self._since > 60) or monotonic - self._since > PATIENCE:
            self._end(False, "its self-test job left the queue" if job is None else "its self-test job does not start")

    @property
    def key(self) -> str:
        """The job's number while the test is under way; its file must stay."""
        return self._key if self.works is None else ""

    def _end(self, works: bool, why: str = "") -> None:
        self.works, self.missing = works, why
        self._cancel(self._key)
        if not works:
            self.say(f"self-test: prolog missing: {why}")

    def _cancel(self, key: str) -> None:
        with suppress(SlurmError, OutputError):
            self.spool.remove(key)
            self.slurm.cancel(key)


def _why_no_prolog(cluster: Configuration) -> str:
    """Why the prolog may not have run, by the settings."""
    said = cluster.settings.get("PrologSlurmctld", "(null)")
    if said in ("", "(null)"):
        return "slurm.conf has no PrologSlurmctld; see --print-prolog"
    return f"PrologSlurmctld={said[:80]} raised nothing; slurmctld must be restarted after it has been set, and see its log"


class SelfTests:
    """The tests of a slurmctld, each new one anew and after every alarm. Raises LedgerError where a result cannot be written.

    `spool`: of the prolog, None without one.
    """

    def __init__(self, slurm: Client, settings: SidecarSettings, say: Callable[[str], None], ledger: Ledger, spool: Spool | None):
        self.slurm, self.settings, self.say, self.ledger, self.spool = slurm, settings, say, ledger, spool
        self.distrust = ""
        self.failures = 0
        """commands that failed, in all tests"""
        self._left = True  # a job of a test may be there, also of a side-car that was killed
        self._test: SelfTest | None = None
        self._prolog_test: PrologTest | None = None
        self._test_of = ""

    @property
    def prolog(self) -> str:
        """What is known of the prolog: `works`, why it does not, or nothing."""
        return self.ledger.noted("prolog") if self.spool is not None else ""

    @property
    def spool_keys(self) -> list[str]:
        """Jobs of tests whose files must stay in the spool folder."""
        return [self._prolog_test.key] if self._prolog_test is not None and self._prolog_test.key else []

    @property
    def keys(self) -> list[str]:
        """Jobs of tests that are under way."""
        return [key for key in (*self.spool_keys, "" if self._test is None else self._test.key) if key]

    def guarded(self, cluster: Configuration) -> bool:
        """Whether this slurmctld is known to have the guard, so that no user can have set a TimeMin."""
        return self.ledger.noted("tested") == self._tested(cluster) or (self._test is not None and self._test.guarded)

    def _tested(self, cluster: Configuration) -> str:
        return cluster.controller if self.spool is None else f"{cluster.controller} and the prolog of {self.spool.folder}"

    def why_not(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str) -> str:
        """Go on with the tests; returns why nothing may be adjusted yet, empty if it may. Under soft limits only the guard is tested."""
        if cluster.soft_limit and not self.distrust:
            self.give_up(user)
            return ""
        tested = self._tested(cluster)
        if self.distrust or self.ledger.noted("tested") != tested:
            why = self._step(queue, cluster, monotonic, user)
            if why:
                return why
            if not cluster.soft_limit:
                self.ledger.note("tested", tested)
            self._test, self._prolog_test, self.distrust, self._left = None, None, "", False
        if self.spool is not None and self.settings.need_prolog and self.prolog != WORKS and not cluster.soft_limit:
            return f"prolog missing: {self.prolog}"
        return ""

    def _step(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str) -> str:
        """One step of the tests; returns why nothing may be adjusted yet."""
        self._left = True
        of = f"{cluster.controller} {cluster.soft_limit}"
        if self._test is None or self._test_of != of:
            self._test, self._test_of = SelfTest(self.slurm, self.settings.self_test, self.say, guard_only=cluster.soft_limit), of
            with_prolog = self.spool is not None and not cluster.soft_limit
            self._prolog_test = (
                PrologTest(self.slurm, self.spool, self.settings.self_test, self.say) if with_prolog and self.spool is not None else None
            )
        try:
            self._test.step(queue, monotonic, user)
            if self._prolog_test is not None and self._test.passed:
                self._prolog_test.step(queue, cluster, monotonic, user)
        except (SlurmError, OutputError) as error:
            self.failures += 1
            self.say(f"self-test: {error}")
        if self._test.failed:
            return f"the self-test failed: {self._test.failed}"
        under_way = f"self-test under way{f', as {self.distrust}' if self.distrust else ''}"
        if not self._test.passed:
            return under_way
        if self._prolog_test is not None:
            if self._prolog_test.works is None:
                return under_way
            self.ledger.note("prolog", WORKS if self._prolog_test.works else self._prolog_test.missing)
            if not self._prolog_test.works and not self.settings.need_prolog:
                self.say("it goes on with one give-back, the side-car's own; --need-prolog would keep it from that")
        return ""

    def give_up(self, user: str) -> None:
        """End tests that are under way, as nothing depends on them any more; what cannot be cancelled is tried again at the next call."""
        if not self._left:
            return
        try:
            for key in self.slurm.jobs_named(NAMES, user):
                self.slurm.cancel(key)
        except SlurmError as error:
            self.failures += 1
            self.say(f"self-test: {error}")
            return
        self._test, self._prolog_test, self._left = None, None, False

    def invalidate(self, why: str) -> None:
        """Nothing is adjusted any more until the tests have passed again."""
        self.distrust, self._test, self._prolog_test = why, None, None
        self.ledger.note("tested", "")
