"""Whether what is shortened will be given back: self-tests of both ways, and what costs the trust in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from walltime.errors import OutputError
from walltime.slurm.client import Client
from walltime.slurm.configuration import Configuration
from walltime.slurm.queue import QueueJob
from walltime.slurm.records import SlurmError
from walltime.slurm.sidecar.ledger import Ledger
from walltime.slurm.sidecar.prolog import NAME as PROLOG_NAME
from walltime.slurm.sidecar.prolog import PrologTest, Spool
from walltime.slurm.sidecar.selftest import NAME, SelfTest

WORKS = "works"
NAMES = (NAME, PROLOG_NAME)


class SelfTests:
    """The tests of a slurmctld, each new one anew and after every alarm. Raises LedgerError where a result cannot be written.

    `spool`: of the prolog, None without one. `needs_prolog`: whether nothing may be adjusted while the prolog does not work.
    """

    def __init__(self, slurm: Client, options: Sequence[str], say: Callable[[str], None], ledger: Ledger, spool: Spool | None, needs: bool):
        self.slurm, self.options, self.say, self.ledger, self.spool, self.needs_prolog = slurm, options, say, ledger, spool, needs
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
        if self.spool is not None and self.needs_prolog and self.prolog != WORKS and not cluster.soft_limit:
            return f"prolog missing: {self.prolog}"
        return ""

    def _step(self, queue: Sequence[QueueJob], cluster: Configuration, monotonic: float, user: str) -> str:
        """One step of the tests; returns why nothing may be adjusted yet."""
        self._left = True
        of = f"{cluster.controller} {cluster.soft_limit}"
        if self._test is None or self._test_of != of:
            self._test, self._test_of = SelfTest(self.slurm, self.options, self.say, guard_only=cluster.soft_limit), of
            with_prolog = self.spool is not None and not cluster.soft_limit
            self._prolog_test = (
                PrologTest(self.slurm, self.spool, self.options, self.say) if with_prolog and self.spool is not None else None
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
            if not self._prolog_test.works and not self.needs_prolog:
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

    def lose(self, why: str) -> None:
        """Nothing is adjusted any more until the tests have passed again."""
        self.distrust, self._test, self._prolog_test = why, None, None
        self.ledger.note("tested", "")
