"""Round after round, until a signal; and what operators see of it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from walltime.adjust.facts import Mode
from walltime.adjust.given import Report
from walltime.adjust.round import Sidecar
from walltime.errors import OutputError
from walltime.logs.output import whole_file

LAST_ROUNDS = 3
"""Rounds in which a side-car that ends takes everything back."""


class SystemClock:
    """The time of this machine."""

    def time(self) -> float:
        """Unix time, s."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()


class Signals:
    """SIGTERM and SIGINT, noticed instead of obeyed: `asked` says whether one came, and `wait` returns when one comes."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._event.set()

    def asked(self) -> bool:
        """Whether the side-car is to end."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until it is to end."""
        self._event.wait(seconds)

    def restore(self) -> None:
        """Give the signals back to those who had them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def keep_on(
    sidecar: Sidecar, every: float, asked: Callable[[], bool], wait: Callable[[float], None], done: Callable[[Report], None]
) -> None:
    """Rounds every so many seconds until asked to end; then rounds that take everything back, as nobody watches any more.

    `sidecar.stopped` must say yes once it is asked to end.
    """
    while not asked():
        begin = sidecar.clock.monotonic()
        done(sidecar.round())
        wait(max(every - (sidecar.clock.monotonic() - begin), 1.0))
    if sidecar.ledger is None:
        return
    for _ in range(LAST_ROUNDS):
        report = sidecar.round()
        done(report)
        if not (report.failures or report.adjusted or report.taken_back or report.given_back):
            break
    if sidecar.watched:
        sidecar.say(f"ended with {len(sidecar.watched)} jobs that may be short or have a TimeMin: {', '.join(sidecar.watched[:20])}")


def describe(report: Report) -> str:
    """A round in one line."""
    parts = [
        f"{report.mode}{f' ({report.why})' if report.why else ''}: {report.waiting} waiting, {report.adjusted + report.set_now} adjusted"
    ]
    numbers = {"set": report.set_now, "taken back": report.taken_back, "given back": report.given_back, "failures": report.failures}
    parts += [f"{count} {name}" for name, count in numbers.items() if count]
    return ", ".join(parts)


METRICS = {
    "waiting_jobs": "Jobs that wait.",
    "adjusted_jobs": "Waiting jobs that have a TimeMin of the side-car.",
    "wanted_jobs": "Further jobs that it would adjust.",
    "short_jobs": "Running jobs whose limit is to be raised.",
    "acting": "1 if it adjusts, 0 if not.",
    "last_round_seconds": "Unix time of the last round.",
}
COUNTERS = {
    "set": "TimeMin set.",
    "taken_back": "TimeMin taken back.",
    "given_back": "Limits of running jobs raised.",
    "failures": "Commands that failed.",
}


class Metrics:
    """A file for the textfile collector of Prometheus' node_exporter, written anew after each round."""

    def __init__(self, path: Path, say: Callable[[str], None]):
        self._path, self._say = path, say
        self._sums = dict.fromkeys(COUNTERS, 0)
        self._least_left: float | None = None

    def write(self, report: Report, short: int, now: float) -> None:
        """Write the metrics of a round; that it cannot be written is said, and does not matter otherwise."""
        for name, more in zip(COUNTERS, (report.set_now, report.taken_back, report.given_back, report.failures), strict=True):
            self._sums[name] += more
        acting = report.mode is not Mode.ADVICE and not report.why
        values = (report.waiting, report.adjusted + report.set_now, len(report.wanted) - report.set_now, short, int(acting), int(now))
        lines: list[str] = []
        for (name, told), value in zip(METRICS.items(), values, strict=True):
            lines += [f"# HELP walltime_adjust_{name} {told}", f"# TYPE walltime_adjust_{name} gauge", f"walltime_adjust_{name} {value}"]
        for name, told in COUNTERS.items():
            full = f"walltime_adjust_{name}_total"
            lines += [f"# HELP {full} {told}", f"# TYPE {full} counter", f"{full} {self._sums[name]}"]
        if report.least_left is not None:
            self._least_left = report.least_left if self._least_left is None else min(self._least_left, report.least_left)
        if self._least_left is not None:
            full = "walltime_adjust_least_seconds_left"
            told = "What the shortest job had left of its shortened limit when it was raised."
            lines += [f"# HELP {full} {told}", f"# TYPE {full} gauge", f"{full} {self._least_left:g}"]
        try:
            with whole_file(self._path) as file:
                file.write(("\n".join(lines) + "\n").encode())
        except OutputError as error:
            self._say(str(error))
