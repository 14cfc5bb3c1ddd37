"""Damages inputs of every kind, and looks for what must never happen: a traceback, a hang, a record that is dropped without a count.

    python validation/hostile.py [--count N] [--seed N] [--only KIND ...] [--keep FOLDER]

Each trial damages one file of a whole input and calls the commands that read it. Bad input must be reported in one line, with exit status
1 or 2, within 20 s of processor time; every record must be counted. Trial k of a kind is a function of the seed, the kind and k. Ends
with status 1 if anything failed; `--keep` keeps the inputs that did it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from validation.hostile_damage import damaged, odd_digits
from validation.hostile_inputs import INPUTS, Input
from walltime.cli.main import run

PATIENCE = 20
"""Seconds of processor time that a command may take."""
WAITING = 15
"""A command may take this many times as long by the clock, because other processes may run at the same time."""
COMPILING = 300
"""Seconds of processor time that the first call of each command may take, which compiles the engine."""


Damage = Callable[[bytes, random.Random], bytes]


class Hang(BaseException):
    """A command took too long; no `except Exception` of the program catches it."""


@dataclass(frozen=True)
class Fault:
    """A failed trial: kind of input, number, command, and observation."""

    kind: str
    trial: int | None
    command: str
    seen: str


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Raise Hang within this context after `seconds` of processor time, or WAITING times as many seconds."""

    def stop(*_: object) -> None:
        raise Hang

    timers = (signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, WAITING * seconds)
    before = [signal.signal(number, stop) for _, number, _ in timers]
    for timer, _, until in timers:
        signal.setitimer(timer, until)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def called(arguments: Sequence[str], seconds: float) -> tuple[int | None, str, str]:
    """Exit status, standard output and standard error of a command in this process; None and the traceback where it raised something."""
    out, err = io.StringIO(), io.StringIO()
    status, fault = None, ""
    with beneath_python() as printed:
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), patience(seconds):
                status = run(list(arguments))
        except Hang:
            fault = f"no end after {seconds} s"
        except BaseException:  # also SystemExit: a command returns its status
            fault = traceback.format_exc()
    return status, out.getvalue(), (fault or err.getvalue()) + "".join(printed)


@contextlib.contextmanager
def beneath_python() -> Iterator[list[str]]:
    """Capture direct writes of libraries to standard error within this context."""
    printed: list[str] = []
    sys.stderr.flush()
    own = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield printed
        finally:
            os.dup2(own, 2)
            os.close(own)
            file.seek(0)
            printed.append(file.read().decode(errors="replace"))


def fault_of(status: int | None, out: str, err: str) -> str | None:
    """Return the fault of a command's end, or None."""
    if status is None:
        return err
    if any(word in err for word in ("Traceback", "panicked", "the result cannot be printed")):
        return err
    said = [line for line in err.splitlines() if "compiling the engine" not in line]
    if status == 0 or (status == 1 and out and not said):  # an audit found broken rules: its report is the output
        return None
    if status not in (1, 2) or not said or not said[-1].startswith("walltime: "):
        return f"exit status {status} and: {err or 'nothing'}"
    return None


def lost(out: str, one: Input, content: bytes) -> str | None:
    """Whether what a log's description counts is not all of its records."""
    found = json.loads(out)
    gone = sum(found["dropped"].values())
    if found["jobs"] + gone != found["records"]:
        return f"{found['records']} records, but {found['jobs']} jobs and {gone} dropped: {found['dropped']}"
    there = one.records(content) if one.records is not None else None
    if there is not None and there != found["records"]:
        return f"{there} records in the file, but {found['records']} counted"
    return None


def uncounted(out: str) -> str | None:
    """Whether a result's jobs and those left out of it are not all of those before; None for a result without these counts."""
    try:
        found = json.loads(out)
    except ValueError:
        return None  # a table or text
    rules = found.get("left_out", {}).get("rules", []) if isinstance(found, dict) else []
    if not rules or not isinstance(found.get("jobs"), int):
        return None
    gone = sum(one["jobs"] for one in rules)
    if rules[0]["of_jobs"] - gone != found["jobs"]:
        return f"{rules[0]['of_jobs']} records, {gone} left out, but {found['jobs']} jobs: {found['left_out']}"
    return None


def trial(one: Input, number: int | None, seed: int, folder: Path, damage: Damage = damaged) -> list[Fault]:
    """Damage a file of an input, call the commands that read it; what was wrong. Number None: nothing is damaged, and all must succeed."""
    rng = random.Random(f"{seed} {one.kind} {number}")
    files = dict(one.files)
    target = rng.choice(one.damaged)
    if number is not None:
        files[target] = damage(files[target], rng)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    faults = []
    for command in one.commands:
        words = [word.format(folder=folder) for word in command]
        status, out, err = called(words, PATIENCE if number is not None else COMPILING)
        seen = fault_of(status, out, err)
        if seen is None and number is None and status != 0:
            seen = f"exit status {status} of what is not damaged: {err}"
        if seen is None and status == 0 and one.is_log and words[0] == "info":
            seen = lost(out, one, files[target])
        if seen is None and status == 0 and "--json" in words:
            seen = uncounted(out)
        if seen is not None:
            faults.append(Fault(one.kind, number, " ".join(command), seen))
    return faults


def trials(kind: str, count: int, seed: int, keep: Path | None = None, damage: Damage = damaged) -> list[Fault]:
    """Return all failures in the trials of a kind of input."""
    faults = []
    with INPUTS[kind]() as one:
        for number in (None, *range(count)):
            with tempfile.TemporaryDirectory(prefix="walltime-hostile-") as name:
                folder = Path(name)
                found = trial(one, number, seed, folder, damage)
                if found and keep is not None:
                    shutil.copytree(folder, keep / f"{kind}-{number}", dirs_exist_ok=True)
                faults += found
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials and print what failed; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="trials of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=INPUTS, metavar="KIND", help=f"kinds: {', '.join(INPUTS)}")
    parser.add_argument("--keep", type=Path, help="a folder for the inputs that failed")
    parser.add_argument("--digits", action="store_true", help="write numbers in other digits than those of ASCII")
    given = parser.parse_args(arguments)
    damage = odd_digits if given.digits else damaged
    failed = 0
    for kind in given.only or INPUTS:
        begin = time.monotonic()
        faults = trials(kind, given.count, given.seed, given.keep, damage)
        failed += len(faults)
        print(f"{kind}: {given.count:,} trials, {len(faults)} failed, {time.monotonic() - begin:.0f} s", flush=True)
        for fault in faults:
            print(f"  trial {fault.trial}, {fault.command}:\n    " + "\n    ".join(fault.seen.strip().splitlines()[-6:]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
