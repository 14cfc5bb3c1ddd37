"""Metrics of the side-car for Prometheus, in a file for node_exporter's textfile collector."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from walltime.files import whole_file
from walltime.slurm.configuration import Mode
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.round import Sidecar

GAUGES: Mapping[str, tuple[str, Callable[[Report, Sidecar], int]]] = {
    "jobs_pending": ("Waiting jobs.", lambda report, _: report.waiting),
    "adjusted_jobs": ("Waiting jobs with the side-car's TimeMin.", lambda report, _: report.adjusted + report.set_now),
    "wanted_jobs": ("Other jobs that the side-car would adjust.", lambda report, _: len(report.wanted) - report.set_now),
    "short_jobs": ("Running jobs whose limit must be raised.", lambda _, sidecar: sidecar.short),
    "time_min_jobs": ("Jobs with the side-car's TimeMin, including those that will lose it.", lambda report, _: report.with_time_min),
    "late_heads": (
        "Partitions without adjustments, because the head of the queue has waited too long.",
        lambda _, sidecar: len(sidecar.heads.late(sidecar.clock.time(), sidecar.settings)),
    ),
    "quarantined_users": (
        "Users whose jobs are left alone: they lower raised limits.",
        lambda _, sidecar: len(sidecar.restorer.quarantine),
    ),
    "acting": ("1 if the side-car adjusts jobs, else 0.", lambda report, _: report.mode is not Mode.ADVICE and not report.why),
    "may_act": (
        "1 if the side-car was started to adjust jobs and has not been stopped.",
        lambda _, sidecar: sidecar.ledger is not None and not sidecar.stopped(),
    ),
    "floor_seconds": ("The shortest limit of a shortened job, from its start.", lambda _, sidecar: sidecar.settings.floor * 60),
    "last_try_seconds": ("Unix time of the last round.", lambda _, sidecar: int(sidecar.clock.time())),
}
"""The metrics of the present state, by name: the help text, and the function that returns the value."""
COUNTERS: Mapping[str, tuple[str, Callable[[Report], int]]] = {
    "set": ("TimeMin set.", lambda report: report.set_now),
    "time_min_removed": ("TimeMin removed.", lambda report: report.removed),
    "limits_restored": ("Limits of running jobs raised.", lambda report: report.restored),
    "failures": ("Commands that failed.", lambda report: report.failures),
    "alarms": ("Alarms.", lambda report: report.alarms),
    "rounds_tried": ("Rounds.", lambda report: 1),
    "rounds_answered": ("Rounds in which Slurm answered.", lambda report: report.answered),
}
"""The metrics that are sums over all rounds, by name: the help text, and the function that returns a round's amount."""
LAST_ANSWER = "Unix time of the last round in which Slurm answered, 0 for none."
LEAST_LEFT = "The least time that a job had left of its shortened limit when the limit was raised."


class Metrics:
    """The file of metrics, which is replaced after each round; `wrong`: why it could not be written, empty if it could."""

    def __init__(self, path: Path, say: Callable[[str], None]):
        self._path, self._say = path, say
        self._sums = dict.fromkeys(COUNTERS, 0)
        self._least_left: float | None = None
        self._answered_at = 0.0
        try:
            there = path.parent.is_dir()
        except OSError:  # the folder above is not readable
            there = False
        self.wrong = "" if there else f"{path.parent}: no such folder; the metrics cannot be written"

    def write(self, report: Report, sidecar: Sidecar) -> None:
        """Write the metrics of a round."""
        if report.answered:
            self._answered_at = sidecar.clock.time()
        if report.least_left is not None:
            self._least_left = report.least_left if self._least_left is None else min(self._least_left, report.least_left)
        rows: list[tuple[str, str, str, Any]] = []
        rows += [(name, meaning, "gauge", value(report, sidecar)) for name, (meaning, value) in GAUGES.items()]
        rows.append(("last_answer_seconds", LAST_ANSWER, "gauge", self._answered_at))
        for name, (meaning, increase) in COUNTERS.items():
            self._sums[name] += increase(report)
            rows.append((f"{name}_total", meaning, "counter", self._sums[name]))
        if self._least_left is not None:
            rows.append(("least_seconds_left", LEAST_LEFT, "gauge", round(self._least_left)))
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
