"""Self-tests, which show before any other change that shortened limits can be restored.

The first test job, held, gets a TimeMin and then another TimeLimit: the guard in job_submit.lua must remove the TimeMin, because after a
change of the limit only Slurm would have the user's limit. Then the job runs, its limit is lowered, as backfill would do, and the side-car
raises it again, which needs operator permissions. If there is a prolog, a second job tests it: only the prolog may raise that job's limit.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from walltime.errors import OutputError
from walltime.slurm.client import Client
from walltime.slurm.configuration import Configuration
from walltime.slurm.records import SlurmError
from walltime.slurm.sidecar.ledger import Ledger
from walltime.slurm.sidecar.prolog import Spool
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import QueueJob

NAMES = ("walltime-self-test", "walltime-self-test-prolog")
LIMIT, SHORT, WHOLE = 10, 12, 15
"""Minutes: the limit at submission, the shortened limit, and the limit that the job gets later, or to which it must be raised."""
PATIENCE = 1800.0
"""Seconds after which a job that has not started is cancelled."""
LOOKS = 3
"""Number of queries that show the test job running before the prolog counts as missing."""
WORKS = "works"


@dataclass
class TestJob:
    """A test with one job. Call `step` once a round until `fault` is not None: it is empty if the test has passed.

    `options`: options of sbatch, such as a partition.
    """

    slurm: Client
    options: Sequence[str]
    say: Callable[[str], None]
    fault: str | None = None
    _key: str = ""
    _since: float = 0.0

    @property
    def key(self) -> str:
        """Return the key of its job while the test is under way; empty otherwise."""
        return self._key if self.fault is None else ""

    def _submit(self, name: str, minutes: int, user: str) -> None:
        for left in self.slurm.jobs_named([name], user):  # from a side-car that was killed
            self._cancel(left)
        self._key = self.slurm.submit_test(name, minutes, 600, self.options)

    def _cancel(self, key: str) -> None:
        self.slurm.cancel(key)

    def _find(self, queue: Sequence[QueueJob]) -> QueueJob | None:
        return next((job for job in queue if job.key == self._key), None)


@dataclass
class SelfTest(TestJob):
    """The test of the guard and of the permission to raise limits; `guard_only`: test only the guard."""

    guard_only: bool = False
    guarded: bool = False
    _stage: str = "submit"
    _gone: int = 0

    def step(self, queue: Sequence[QueueJob], monotonic: float, user: str) -> None:
        """Continue the test; raises SlurmError if Slurm does not answer, after which it may be called again."""
        if self._stage == "submit":
            self._submit(NAMES[0], LIMIT, user)
            self._go_on("guard", monotonic)
            self.slurm.set_time_min(self._key, 1)
            self.slurm.set_limit(self._key, WHOLE)
            return
        job = self._find(queue)
        if job is None or not (job.waits or job.runs):
            self._go_on("submit", monotonic)  # it was cancelled, or ended before it was checked
            self._gone += 1
            if self._gone >= 3:
                self._fail("three self-test jobs left the queue before they could be checked")
        elif self._stage == "guard":
            self._look_at_guard(job, monotonic)
        elif self._stage == "start" and job.runs:
            self.slurm.set_limit(self._key, SHORT)
            self._go_on("short", monotonic)
        elif self._stage == "short" and job.limit == SHORT:
            self.slurm.set_limit(self._key, WHOLE)
            self._go_on("back", monotonic)
        elif self._stage == "back" and job.limit == WHOLE:
            self._pass("passed")
        elif self._stage == "back":
            self._fail("the limit of a running job could not be raised")
        elif monotonic - self._since > PATIENCE:
            self._submit_again(monotonic)

    def _look_at_guard(self, job: QueueJob, monotonic: float) -> None:
        if job.limit != WHOLE:
            self._submit_again(monotonic)  # Slurm has not made the change
            return
        if job.time_min:
            self._fail("TimeMin is unchanged after a change of the limit: the guard in job_submit.lua is missing; see --print-guard")
            return
        self.guarded = True
        if self.guard_only:
            self._pass("the guard works")
        else:
            self.slurm.release(self._key)
            self._go_on("start", monotonic)

    def _go_on(self, stage: str, monotonic: float) -> None:
        self._stage, self._since = stage, monotonic

    def _submit_again(self, monotonic: float) -> None:
        self._cancel(self._key)
        self._go_on("submit", monotonic)

    def _pass(self, what: str) -> None:
        self._cancel(self._key)
        self.fault = ""
        self.say(f"self-test: {what}")

    def _fail(self, why: str) -> None:
        self.fault = why
        self.say(f"self-test: FAILED: {why}")
        try:
            self._cancel(self._key)
        except SlurmError:
            self.say("self-test: its job could not be cancelled")


@dataclass
class PrologTest(TestJob):
    """The test of the prolog: a job with a TimeMin and too short a limit, which only the prolog may raise."""

    spool: Spool = field(kw_only=True)
    _looks: int = 0

    def step(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str) -> None:
        """Continue the test; raises SlurmError if Slurm does not answer, and OutputError, after which it may be called again."""
        if not self._key:
            self._submit(NAMES[1], SHORT, user)
            self._since, self._looks = monotonic, 0
            self.spool.put(self._key, WHOLE, WHOLE)
            self.slurm.set_time_min(self._key, SHORT - 1)
            self.slurm.release(self._key)
            return
        job = self._find(queue)
        if job is not None and job.runs and job.limit is not None and job.limit >= WHOLE:
            self._end("")
            self.say("self-test: the prolog works")
        elif job is not None and job.state == "RUNNING":
            self._looks += 1
            if self._looks >= LOOKS:
                script = cluster.settings.get("PrologSlurmctld", "(null)")
                missing = "slurm.conf has no PrologSlurmctld; see --print-prolog"
                if script not in ("", "(null)"):
                    missing = f"PrologSlurmctld={script[:80]} raised no limit; restart slurmctld after setting it, and see its log"
                self._end(missing)
        elif (job is None and monotonic - self._since > 60) or monotonic - self._since > PATIENCE:
            self._end("its self-test job left the queue" if job is None else "its self-test job does not start")

    def _end(self, missing: str) -> None:
        self.fault = missing
        self._cancel(self._key)
        if missing:
            self.say(f"self-test: prolog missing: {missing}")

    def _cancel(self, key: str) -> None:
        with suppress(SlurmError, OutputError):
            self.spool.remove(key)
            self.slurm.cancel(key)


class SelfTests:
    """All tests, repeated for each new slurmctld and after every alarm. Raises LedgerError if a result cannot be written.

    `spool`: the prolog's folder, None without a prolog. `distrust`: why the tests must be repeated, empty if they need not be.
    """

    def __init__(self, slurm: Client, settings: SidecarSettings, say: Callable[[str], None], ledger: Ledger, spool: Spool | None):
        self.slurm, self.settings, self.say, self.ledger, self.spool = slurm, settings, say, ledger, spool
        self.distrust = ""
        self._left = True  # there may be a test job, also from a side-car that was killed
        self._test: SelfTest | None = None
        self._prolog_test: PrologTest | None = None
        self._controller = ""

    @property
    def prolog(self) -> str:
        """Return the result for the prolog: `works`, why it does not, or empty if unknown."""
        return self.ledger.noted("prolog") if self.spool is not None else ""

    @property
    def spool_keys(self) -> list[str]:
        """Return the keys of test jobs whose files must stay in the spool folder."""
        return [self._prolog_test.key] if self._prolog_test is not None and self._prolog_test.key else []

    @property
    def keys(self) -> list[str]:
        """Return the keys of the test jobs that are under way."""
        return [*self.spool_keys, *([self._test.key] if self._test is not None and self._test.key else [])]

    def is_guarded(self, cluster: Configuration) -> bool:
        """Return whether this slurmctld is known to have the guard, which keeps users from setting TimeMin."""
        return self.ledger.noted("tested") == self._tested(cluster) or (self._test is not None and self._test.guarded)

    def _tested(self, cluster: Configuration) -> str:
        return cluster.controller if self.spool is None else f"{cluster.controller} and the prolog of {self.spool.folder}"

    def step(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str, report: Report) -> str:
        """Continue the tests, and return why no job may be adjusted yet; empty if jobs may be. Soft limits need no test.

        `report`: counts failed commands.
        """
        if cluster.soft_limit and not self.distrust:
            self.give_up(user, report)
            return ""
        tested = self._tested(cluster)
        if self.distrust or self.ledger.noted("tested") != tested:
            why = self._step_tests(queue, cluster, monotonic, user, report)
            if why:
                return why
            if not cluster.soft_limit:
                self.ledger.note("tested", tested)
            self._test, self._prolog_test, self.distrust, self._left = None, None, "", False
        if self.spool is not None and self.settings.need_prolog and self.prolog != WORKS and not cluster.soft_limit:
            return f"prolog missing: {self.prolog}"
        return ""

    def _step_tests(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str, report: Report) -> str:
        self._left = True
        controller = f"{cluster.controller} {cluster.soft_limit}"
        if self._test is None or self._controller != controller:
            options, self._controller = self.settings.self_test, controller
            self._test, self._prolog_test = SelfTest(self.slurm, options, self.say, guard_only=cluster.soft_limit), None
            if self.spool is not None and not cluster.soft_limit:
                self._prolog_test = PrologTest(self.slurm, options, self.say, spool=self.spool)
        try:
            if self._test.fault is None:
                self._test.step(queue, monotonic, user)
            if self._prolog_test is not None and self._test.fault == "" and self._prolog_test.fault is None:
                self._prolog_test.step(queue, cluster, monotonic, user)
        except (SlurmError, OutputError) as error:
            report.failures += 1
            self.say(f"self-test: {error}")
        if self._test.fault:
            return f"the self-test failed: {self._test.fault}"
        if self._test.fault is None or (self._prolog_test is not None and self._prolog_test.fault is None):
            return f"self-test under way{f' because {self.distrust}' if self.distrust else ''}"
        if self._prolog_test is not None:
            self.ledger.note("prolog", self._prolog_test.fault or WORKS)
            if self._prolog_test.fault and not self.settings.need_prolog:
                self.say("the side-car continues in give-back mode without the prolog; --need-prolog would prevent that")
        return ""

    def give_up(self, user: str, report: Report) -> None:
        """End the tests that are under way, as they are no longer needed; the next call retries jobs that were not cancelled."""
        if not self._left:
            return
        try:
            for key in self.slurm.jobs_named(NAMES, user):
                self.slurm.cancel(key)
        except SlurmError as error:
            report.failures += 1
            self.say(f"self-test: {error}")
            return
        self._test, self._prolog_test, self._left = None, None, False

    def invalidate(self, why: str) -> None:
        """Forbid adjustments until the tests have passed again."""
        self.distrust, self._test, self._prolog_test = why, None, None
        self.ledger.note("tested", "")
