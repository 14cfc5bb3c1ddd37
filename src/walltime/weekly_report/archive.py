"""Publish weekly reports: a folder with a page for each period and an index, metrics, a dashboard, and an e-mail."""

import json
import math
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from walltime.accuracy.accuracy import dates
from walltime.errors import OutputError
from walltime.report.html import write_page
from walltime.report.page import Page, Section
from walltime.report.prometheus import label, metrics_text
from walltime.tables import Cell, Row, Table, hours_cell, time_cell
from walltime.weekly_report.period import Period, PeriodNumbers, read_trend
from walltime.wording import human_percent
from walltime.workload import Workload

INDEX = "index.html"
METRICS = {
    "mean_wait": ("mean_wait_seconds", "Mean wait of the jobs that started in the period."),
    "median_wait": ("median_wait_seconds", "Median wait of the jobs that started in the period."),
    "p90_wait": ("p90_wait_seconds", "90th percentile of the waits of the jobs that started in the period."),
    "utilization": ("utilization_ratio", "Used share of the processors."),
    "second_utilization": ("second_utilization_ratio", "Used share of the machine's second resource, such as GPUs."),
    "submitted": ("jobs_submitted", "Jobs submitted in the period."),
    "started": ("jobs_started", "Jobs started in the period."),
    "waiting_at_end": ("jobs_pending", "Jobs waiting at the end of the period."),
    "used_hours": ("used_processor_hours", "Processor-hours of the jobs that ended in the period."),
    "unused_hours": ("unused_processor_hours", "Requested and unused processor-hours of the jobs that ended in the period."),
    "failed_hours": ("failed_processor_hours", "Processor-hours of failed jobs that ended in the period."),
    "limit_hours": ("limit_processor_hours", "Processor-hours of jobs that ended at their limit in the period."),
}
"""Fields of `PeriodNumbers`, with the names and descriptions of their metrics, which follow Slurm's OpenMetrics (`slurm_jobs_pending`)."""
PANELS = {
    "Waits": ("s", ("mean_wait", "median_wait", "p90_wait")),
    "Utilization": ("percentunit", ("utilization", "second_utilization")),
    "Jobs": ("short", ("submitted", "started", "waiting_at_end")),
    "Processor-hours": ("short", ("used_hours", "unused_hours", "failed_hours", "limit_hours")),
}
"""Panels of the dashboard, with their unit and fields."""


def write_archive(folder: Path, page: Page, numbers: Period) -> Path:
    """Write the page of a period and the index of all periods into a folder; return the path of the index."""
    write_page(folder / _file_of(numbers.numbers, numbers.workload), page)
    kept = read_trend(folder, numbers.workload.origin.unix_start_time or 0)
    rows = [_row(one, folder, numbers.workload) for one in reversed(kept)]
    head = ["period from", "jobs started", "mean wait", "90 % wait", "utilization", "used hours", "hours of failed jobs", "at their limit"]
    table = Table(head, rows, "Reports")
    index = Page("index of reports", numbers.site, page.answer, [Section("Reports", [table])], picture=page.picture, record=page.record)
    return write_page(folder / INDEX, index)


def _begin_of(one: PeriodNumbers, workload: Workload) -> str:
    found = dates(workload, np.array([one.begin]))
    return found[0] if found else f"{one.begin}"


def _file_of(one: PeriodNumbers, workload: Workload) -> str:
    return f"{_begin_of(one, workload)}.html"


def _row(one: PeriodNumbers, folder: Path, workload: Workload) -> Row:
    name = _file_of(one, workload)
    first = Cell(_begin_of(one, workload), value=one.begin, link=name if (folder / name).is_file() else "")
    hours = (hours_cell(value) for value in (one.used_hours, one.failed_hours, one.limit_hours))
    use = Cell(human_percent(100 * one.utilization), value=one.utilization)
    return [first, f"{one.started:,}", time_cell(one.mean_wait), time_cell(one.p90_wait), use, *hours]


def period_metrics(numbers: Period) -> str:
    """Return the known numbers of a period as metrics for Prometheus."""
    n, clock = numbers.numbers, numbers.workload.origin.unix_start_time
    known = [(name, meaning, getattr(n, field)) for field, (name, meaning) in METRICS.items() if math.isfinite(getattr(n, field))]
    ends = [] if clock is None else [("end_timestamp_seconds", "End of the period, Unix time.", [("", n.end + clock)])]
    causes = [(label(cause=cause), value) for cause, value in numbers.causes[0].items() if cause not in ("group", "hours")]
    waited = [("waited_hours", "Hours that jobs waited in the period, by cause.", causes)]
    rows = [*ends, *((name, meaning, [("", value)]) for name, meaning, value in known), *waited]
    return metrics_text((f"report_{name}", meaning, values) for name, meaning, values in rows)


def dashboard() -> str:
    """Return a Grafana dashboard of these metrics, as JSON."""
    source = {"type": "prometheus", "uid": "${source}"}
    panels: list[dict[str, Any]] = []
    for k, (title, (unit, names)) in enumerate(PANELS.items()):
        targets = [
            {"refId": chr(65 + i), "expr": f"walltime_report_{METRICS[name][0]}", "legendFormat": name.replace("_", " ")}
            for i, name in enumerate(names)
        ]
        place = {"h": 8, "w": 12, "x": 12 * (k % 2), "y": 8 * (k // 2)}
        defaults = {"defaults": {"unit": unit, "min": 0}, "overrides": []}
        one = {"id": k + 1, "type": "timeseries", "title": title, "datasource": source, "gridPos": place, "fieldConfig": defaults}
        panels.append(one | {"targets": targets})
    variable = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    board = {"title": "walltime report", "uid": "walltime-report", "schemaVersion": 38, "time": {"from": "now-1y", "to": "now"}}
    return json.dumps(board | {"templating": {"list": [variable]}, "panels": panels}, indent=1) + "\n"


def send_mail(command: str, page: Page, path: Path) -> None:
    """Run a command with an e-mail about the page on its standard input; raises OutputError if it fails or takes over a minute."""
    from walltime.report.pdf import mail_text  # loads matplotlib

    try:
        done = subprocess.run(
            shlex.split(command),
            input=mail_text(page, f"Report: {path.absolute()}"),
            text=True,
            capture_output=True,
            check=False,
            timeout=60,
        )
        reason = "" if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
    if reason:
        raise OutputError(f"the mail command {command!r} failed ({reason}); run it by hand to see why", "mail_failed")
