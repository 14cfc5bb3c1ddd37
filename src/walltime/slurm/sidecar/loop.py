"""Round after round, until a signal; and what operators see of it."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from walltime.files import whole_file
from walltime.slurm.configuration import Mode
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.round import Sidecar

LAST_ROUNDS = 3
"""So many rounds in which nothing more could be given or taken back end a side-car that is to end."""
PATIENCE = 120
"""Seconds for which systemd is asked to wait for each of them."""


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


class Systemd:
    """What systemd is told, if it listens (sd_notify)."""

    def __init__(self, address: str | None):
        self._address = "" if not address else "\0" + address[1:] if address.startswith("@") else address

    def tell(self, *words: str) -> None:
        """Tell something such as `READY=1`; that nobody listens does not matter, and nobody is waited for."""
        if self._address:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
                one.setblocking(False)
                one.sendto("\n".join(words).encode(), self._address)

    def alive(self) -> None:
        """The side-car still does something."""
        self.tell("WATCHDOG=1")


def keep_on(
    sidecar: Sidecar,
    every: float,
    asked: Callable[[], bool],
    wait: Callable[[float], None],
    done: Callable[[Report], None],
    tell: Callable[..., None] = lambda *words: None,
) -> None:
    """Rounds every so many seconds until asked to end; then rounds that take everything back, as nobody watches any more.

    `sidecar.stopped` must say yes once it is asked to end. `tell`: of systemd, which is asked to wait.
    """
    while not asked():
        begin = sidecar.clock.monotonic()
        done(sidecar.round())
        tell("READY=1", "WATCHDOG=1")
        wait(max(every - (sidecar.clock.monotonic() - begin), 1.0))
    if sidecar.ledger is None:
        return
    tell("STOPPING=1")
    idle = 0
    while idle < LAST_ROUNDS:
        tell(f"EXTEND_TIMEOUT_USEC={PATIENCE * 1_000_000}", "WATCHDOG=1")
        report = sidecar.round()
        done(report)
        if report.answered and not (report.failures or report.adjusted or report.untaken or report.taken_back or report.given_back):
            break
        idle = 0 if report.taken_back or report.given_back else idle + 1
        if report.untaken or sidecar.short:
            sidecar.say(f"before the end: {sidecar.short} jobs are short, {report.untaken} have a TimeMin")
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
    "untaken_jobs": "Jobs with a TimeMin of the side-car, also those from which it is to be taken back.",
    "late_heads": "Partitions in which nothing is adjusted, as the head of the queue has waited too long.",
    "quarantined_users": "Users who lower limits that were raised, and whose jobs are left alone.",
    "acting": "1 if it adjusts, 0 if not.",
    "may_act": "1 if it was started to adjust, and nobody has stopped it.",
    "floor_seconds": "What a shortened job has at least, from its start.",
    "last_try_seconds": "Unix time of the last round.",
    "last_answer_seconds": "Unix time of the last round in which Slurm answered, 0 if there was none.",
}
COUNTERS = {
    "set": "TimeMin set.",
    "taken_back": "TimeMin taken back.",
    "given_back": "Limits of running jobs raised.",
    "failures": "Commands that failed.",
    "alarms": "Alarms.",
    "rounds_tried": "Rounds.",
    "rounds_answered": "Rounds in which Slurm answered.",
}


class Metrics:
    """A file for the textfile collector of Prometheus' node_exporter, written anew after each round.

    `wrong`: why the last one could not be written.
    """

    def __init__(self, path: Path, say: Callable[[str], None]):
        self._path, self._say = path, say
        self._sums = dict.fromkeys(COUNTERS, 0)
        self._least_left: float | None = None
        self._answered_at = 0.0
        try:
            there = path.parent.is_dir()
        except OSError:  # it cannot be looked for
            there = False
        self.wrong = "" if there else f"{path.parent}: there is no such folder, in which the metrics are to be written"

    def write(self, report: Report, sidecar: Sidecar) -> None:
        """Write the metrics of a round."""
        now, bounds = sidecar.clock.time(), sidecar.bounds
        counts = (report.set_now, report.taken_back, report.given_back, report.failures, report.alarms, 1, int(report.answered))
        for name, more in zip(COUNTERS, counts, strict=True):
            self._sums[name] += more
        if report.answered:
            self._answered_at = now
        values = {
            "waiting_jobs": report.waiting,
            "adjusted_jobs": report.adjusted + report.set_now,
            "wanted_jobs": len(report.wanted) - report.set_now,
            "short_jobs": sidecar.short,
            "untaken_jobs": report.untaken,
            "late_heads": len(sidecar.heads.late(now, bounds)),
            "quarantined_users": len(sidecar.back.quarantine),
            "acting": int(report.mode is not Mode.ADVICE and not report.why),
            "may_act": int(sidecar.ledger is not None and not sidecar.stopped()),
            "floor_seconds": bounds.floor * 60,
            "last_try_seconds": int(now),
            "last_answer_seconds": int(self._answered_at),
        }
        lines: list[str] = []
        for name, told in METRICS.items():
            lines += _lines(name, told, "gauge", values[name])
        for name, told in COUNTERS.items():
            lines += _lines(f"{name}_total", told, "counter", self._sums[name])
        if report.least_left is not None:
            self._least_left = report.least_left if self._least_left is None else min(self._least_left, report.least_left)
        if self._least_left is not None:
            told = "What the shortest job had left of its shortened limit when it was raised."
            lines += _lines("least_seconds_left", told, "gauge", round(self._least_left))
        try:
            with whole_file(self._path) as file:
                file.write(("\n".join(lines) + "\n").encode())
            if self._path.is_file():
                self._path.chmod(0o644)  # node_exporter is another user
            self.wrong = ""
        except OSError as error:
            if not self.wrong:
                self._say(str(error))
            self.wrong = str(error)


def _lines(name: str, told: str, kind: str, value: int) -> list[str]:
    full = f"walltime_adjust_{name}"
    return [f"# HELP {full} {told}", f"# TYPE {full} {kind}", f"{full} {value}"]
