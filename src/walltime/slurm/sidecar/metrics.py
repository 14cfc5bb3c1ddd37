"""What operators see of the side-car: metrics for Prometheus, in a file for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from walltime.files import whole_file
from walltime.slurm.configuration import Mode
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.round import Sidecar

GAUGES: Mapping[str, tuple[str, Callable[[Report, Sidecar], int]]] = {
    "waiting_jobs": ("Jobs that wait.", lambda report, _: report.waiting),
    "adjusted_jobs": ("Waiting jobs that have a TimeMin of the side-car.", lambda report, _: report.adjusted + report.set_now),
    "wanted_jobs": ("Further jobs that it would adjust.", lambda report, _: len(report.wanted) - report.set_now),
    "short_jobs": ("Running jobs whose limit is to be raised.", lambda _, sidecar: sidecar.short),
    "untaken_jobs": (
        "Jobs with a TimeMin of the side-car, also those from which it is to be taken back.",
        lambda report, _: report.untaken,
    ),
    "late_heads": (
        "Partitions in which nothing is adjusted, as the head of the queue has waited too long.",
        lambda _, sidecar: len(sidecar.heads.late(sidecar.clock.time(), sidecar.settings)),
    ),
    "quarantined_users": (
        "Users who lower limits that were raised, and whose jobs are left alone.",
        lambda _, sidecar: len(sidecar.back.quarantine),
    ),
    "acting": ("1 if it adjusts, 0 if not.", lambda report, _: report.mode is not Mode.ADVICE and not report.why),
    "may_act": (
        "1 if it was started to adjust, and nobody has stopped it.",
        lambda _, sidecar: sidecar.ledger is not None and not sidecar.stopped(),
    ),
    "floor_seconds": ("What a shortened job has at least, from its start.", lambda _, sidecar: sidecar.settings.floor * 60),
    "last_try_seconds": ("Unix time of the last round.", lambda _, sidecar: int(sidecar.clock.time())),
}
"""What each round tells of the present: its meaning, and its value."""
COUNTERS: Mapping[str, tuple[str, Callable[[Report], int]]] = {
    "set": ("TimeMin set.", lambda report: report.set_now),
    "taken_back": ("TimeMin taken back.", lambda report: report.taken_back),
    "given_back": ("Limits of running jobs raised.", lambda report: report.given_back),
    "failures": ("Commands that failed.", lambda report: report.failures),
    "alarms": ("Alarms.", lambda report: report.alarms),
    "rounds_tried": ("Rounds.", lambda report: 1),
    "rounds_answered": ("Rounds in which Slurm answered.", lambda report: report.answered),
}
"""What is summed up over all rounds."""


class Metrics:
    """The file, written anew after each round.

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
        if report.answered:
            self._answered_at = sidecar.clock.time()
        if report.least_left is not None:
            self._least_left = report.least_left if self._least_left is None else min(self._least_left, report.least_left)
        rows: list[tuple[str, str, str, Any]] = []
        rows += [(name, meaning, "gauge", value(report, sidecar)) for name, (meaning, value) in GAUGES.items()]
        answered = "Unix time of the last round in which Slurm answered, 0 if there was none."
        rows.append(("last_answer_seconds", answered, "gauge", self._answered_at))
        for name, (meaning, more) in COUNTERS.items():
            self._sums[name] += more(report)
            rows.append((f"{name}_total", meaning, "counter", self._sums[name]))
        if self._least_left is not None:
            meaning = "What the shortest job had left of its shortened limit when it was raised."
            rows.append(("least_seconds_left", meaning, "gauge", round(self._least_left)))
        texts = [
            f"# HELP walltime_adjust_{name} {meaning}\n# TYPE walltime_adjust_{name} {kind}\nwalltime_adjust_{name} {int(value)}\n"
            for name, meaning, kind, value in rows
        ]
        try:
            with whole_file(self._path) as file:
                file.write("".join(texts).encode())
            if self._path.is_file():
                self._path.chmod(0o644)  # node_exporter is another user
            self.wrong = ""
        except OSError as error:
            if not self.wrong:
                self._say(str(error))
            self.wrong = str(error)
