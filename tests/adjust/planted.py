"""Faults in the side-car itself, each a line of it that is changed: the tests must find every one of them.

`python -m tests.adjust.planted [NUMBER ...]` tries all of them, or these, each on a copy of the package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
UNLUCKY, LOST, FAIR, FAILURES, RULES, PROLOG = (
    f"tests/adjust/test_{name}.py" for name in ("unlucky", "lost", "fairness", "failures", "rules", "prolog")
)


class Fault(NamedTuple):
    """What is changed in a file of `walltime/slurm/sidecar`, and the tests, by parts of their names, one of which must fail."""

    file: str
    old: str
    new: str
    path: str
    tests: str


FAULTS = (
    Fault("restoring.py", "need = entry.limit if job.limit < entry.limit else None", "need = None", FAILURES, "without_failures"),
    Fault("restoring.py", "            self.slurm.set_limit(job.key, need)", "            pass", FAILURES, "without_failures"),
    Fault("restoring.py", "self.slurm.set_limit(job.key, need)", "self.slurm.set_limit(job.key, job.limit)", FAILURES, "without_failures"),
    Fault(
        "restoring.py", "keys = [*self.entries.jobs, *self.orphans, *self.extra()]", "keys = [*self.extra()]", FAILURES, "without_failures"
    ),
    Fault("restoring.py", "self._adopt_orphan(job)", "pass", UNLUCKY, "lost_ledger"),
    Fault("restoring.py", "state is State.SHORT or again) and _is_less", "state is State.SHORT) and _is_less", UNLUCKY, "put_back"),
    Fault("restoring.py", "step = max(ran, sure) + STEP", "step = sure", FAIR, "in_doubt"),
    Fault("restoring.py", "return step if longest is None else max(min(step, longest), sure)", "return step", FAIR, "in_doubt"),
    Fault("restoring.py", "if self._has_no_need(job, need, tasks):", "if False:", FAIR, "just_ended"),
    Fault("restoring.py", "if len(gone) >= MOST_MISSING and not present:", "if False:", UNLUCKY, "answer_without_jobs"),
    Fault(
        "restoring.py",
        "if same and changed and entry.state is State.SET and not again and not entry.doubt:",
        "if False:",
        UNLUCKY,
        "lost_guard",
    ),
    Fault("restoring.py", "if len(self.quarantine) > 1:", "if False:", FAIR, "that_lies"),
    Fault("restoring.py", "self.quarantine.add(job.user)", "self.distrust(job.user)", FAIR, "lowers_a_limit"),
    Fault("restoring.py", "if self.clock.monotonic() - self.looked_at < every:", "if every:", UNLUCKY, "slow_changes"),
    Fault(
        "ledger.py",
        "limit = {State.ENDED: FORGET_AFTER}",
        "limit = dict.fromkeys(State, FORGET_AFTER)",
        UNLUCKY,
        "answer_without_jobs",
    ),
    Fault("ledger.py", "return entry.user == job.user and entry.restarts <= job.restarts", "return False", FAILURES, "without_failures"),
    Fault("round.py", "self.restorer.run(report, self.settings.tasks)", "pass", UNLUCKY, "needs_nothing_but"),
    Fault("round.py", "if soft and not cluster.soft_limit:", "if False:", RULES, "dropped_option"),
    Fault("round.py", "return None if self._is_foreign(cluster) else cluster", "return cluster", UNLUCKY, "another_cluster"),
    Fault("round.py", "            self._adopt(cluster)", "            pass", UNLUCKY, "unknown_time_min"),
    Fault("round.py", "unwanted = [entry for entry in held if not ready or", "unwanted = [entry for entry in held if", RULES, "stop_file"),
    Fault("round.py", "lambda car, cluster: not car.stays", "lambda car, cluster: False", FAIR, "once_adjusts"),
    Fault("round.py", "lambda car, cluster: car._is_blocked()", "lambda car, cluster: False", UNLUCKY, "missing_at_the_start"),
    Fault("round.py", "if silent > self.settings.floor * 30 and", "if silent > self.settings.floor * 3000 and", UNLUCKY, "silence"),
    Fault("round.py", "if not self.adjustments.save(None, entry):", "if False:", RULES, "full_disk"),
    Fault("round.py", "if not soft and not self._write_spool(job, longest):", "if False:", PROLOG, "cannot_be_written"),
    Fault("round.py", "(any(name in late for name in job.partitions), LATE_HEAD)", "(False, LATE_HEAD)", FAIR, "late_head"),
    Fault("round.py", "if budget.spent:\n                return", "if False:\n                return", UNLUCKY, "slow_changes"),
    Fault("ledger.py", '        if noted not in (expected or [""]):', "        if False:", UNLUCKY, "another_ledger"),
    Fault("ledger.py", "self.folder.chmod(0o700)", "pass", UNLUCKY, "the_lock"),
    Fault("ledger.py", "os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600", "os.O_RDWR | os.O_CREAT, 0o644", UNLUCKY, "the_lock"),
    Fault("ledger.py", "        self._open_to_read(error)", "        raise", UNLUCKY, "only_be_read"),
    Fault(
        "ledger.py", 'self._base.execute(f"INSERT OR REPLACE INTO jobs', 'print(f"INSERT OR REPLACE INTO jobs', RULES, "ledger_is_on_disk"
    ),
    Fault("ledger.py", "        new = Ledger(self.folder)", "        raise LedgerError(self.unwritable)", UNLUCKY, "only_be_read"),
    Fault("ledger.py", 'self._base.execute("PRAGMA query_only=ON")', "self.unwritable = ''", LOST, "full_disk_without"),
    Fault("round.py", "            if not self.unknown():\n                break", "            break", LOST, "single_round"),
    Fault("self_tests.py", "                self.slurm.cancel(key)", "                pass", LOST, "self_test"),
    Fault("selection.py", "for choice in in_turn(wanted):", "for choice in wanted:", FAIR, "take_turns"),
    Fault("bounds.py", "return 1 + max(", "return 1 + 0 * max(", FAIR, "count_against"),
    Fault("bounds.py", "if beyond and beyond >", "if beyond and 0 >", FAIR, "holds_beyond"),
    Fault("bounds.py", "head.start = min(head.start, max(job.start, head.begin))", "head.start = job.start", FAIR, "reserved_start"),
    Fault("../configuration.py", "(cluster.enforces_safely and", "(False and", RULES, "limits_on_minutes"),
    Fault(
        "prolog.py",
        "        for key in [key for key in self._known if key not in wanted and key not in untouched]:",
        "        for key in self._known:",
        PROLOG,
        "the_folder",
    ),
    Fault("advice.py", "        check_texts(self._path)", "        pass", FAIR, "texts_of_users"),
    Fault("loop.py", "idle = 0 if report.removed or report.restored else idle + 1", "idle = 3", UNLUCKY, "a_stop_with"),
    Fault(
        "self_tests.py",
        "        if job.time_min:\n            self._fail(",
        "        if False:\n            self._fail(",
        RULES,
        "without_the_guard",
    ),
)


def plant(fault: Fault, folder: Path) -> Path:
    """A copy of the package with a fault; raises ValueError if the line is no longer there, once."""
    copy = folder / "walltime"
    shutil.copytree(ROOT / "src/walltime", copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / "slurm" / "sidecar" / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.file} has {fault.old!r} {text.count(fault.old)} times")
    path.write_text(text.replace(fault.old, fault.new))
    return folder


def is_found(fault: Fault) -> bool:
    """Whether a test fails with it."""
    with TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "WALLTIME_GOLDEN"}  # no fault becomes an expected text
        environment |= {"PYTHONPATH": str(plant(fault, Path(folder))), "PYTHONDONTWRITEBYTECODE": "1"}
        words = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not nightly and not slurm", "--tb=no", "-k", fault.tests, fault.path]
        done = subprocess.run([sys.executable, "-m", "pytest", *words], env=environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout[-1000:])
    return done.returncode == 1


if __name__ == "__main__":
    chosen = [int(word) for word in sys.argv[1:]] or list(range(len(FAULTS)))
    missed = 0
    for number in chosen:
        found = is_found(FAULTS[number])
        missed += not found
        print(f"{number:2} {'found ' if found else 'MISSED'} {FAULTS[number].file}: {FAULTS[number].new.strip()}", flush=True)
    sys.exit(f"{missed} of {len(chosen)} missed" if missed else f"all {len(chosen)} found")
