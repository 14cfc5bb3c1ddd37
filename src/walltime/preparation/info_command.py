"""`walltime info`: the content of a log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, read_shown
from walltime.cli.output import Output, command_line, note

if TYPE_CHECKING:
    from walltime.logs import JobLog
    from walltime.tables import Facts, Table
    from walltime.workload import Workload

LISTED = 20
"""Number of bad lines listed; all are counted, and `--json` lists all."""


@manual(
    "guides/cluster-logs",
    ("Show the machine, the load and the data quality of a log.", "info KTH-SP2"),
    ("Check whether a cluster's accounting records are read as expected.", "info jobs.txt.gz --report log.html"),
)
def info(trace: o.TraceArgument, *, reading: LogOptions, part: RecordedWindow, report: o.ReportOption = None, output: Output) -> None:
    """Show what is in a log: machine, period, load, jobs, and data quality.

    Lines that cannot be read are left out, counted and listed; other commands stop at the first one, unless with --skip-bad-lines.
    """
    from walltime.provenance import version

    begin = time.perf_counter()
    log = read_shown(trace, **(reading.of_file | {"skip_bad_lines": True}))
    estimate = None
    if reading.procs is None and log.header.machine_procs is None:
        from walltime.logs.joblog import estimated_size

        estimate = estimated_size(log)
    workload = log.to_workload(**(reading.of_jobs | ({} if estimate is None else {"procs": estimate.procs})))
    seconds = time.perf_counter() - begin
    workload = part.alone(workload)
    record = _record(log, workload) | {"procs_estimated": None if estimate is None else asdict(estimate)}
    if report is not None:
        from walltime.preparation.log_page import log_page
        from walltime.report.html import write_page

        write_page(log_page(workload, _blocks(record, workload), command_line()), report)
    if log.bad_lines and not reading.skip_bad_lines:
        first, all_lines = log.bad_lines[0], log.records + len(log.bad_lines)
        note(
            f"{len(log.bad_lines):,} of {all_lines:,} lines left out, because they cannot be read (the first is line {first.line}: "
            f"{first.reason}); other commands stop there: correct them, or skip bad lines with --skip-bad-lines"
        )
    record = {"trace": str(trace), **record, "seconds": {"read": seconds}, "report": report, "version": version()}
    output.show(record, _blocks(record, workload), report=report)


def _record(log: JobLog, w: Workload) -> dict[str, Any]:
    """The `--json` record of a log."""
    import numpy as np

    origin = w.origin
    quantiles = [0, 25, 50, 75, 90, 99, 100]
    ratio = w.runtime / w.requested
    start = origin.unix_start_time
    return {
        "format": log.format,
        "layout": getattr(log, "layout", ""),
        "recognised": list(getattr(log, "reading", ())),
        "further_fields": list(getattr(log, "fields", ())),
        "sha256": origin.sha256,
        "records": origin.records,
        "jobs": len(w),
        "procs": w.machine_procs,
        "offered_load": None if np.isnan(w.offered_load) else w.offered_load,
        "first_submit": int(w.submit[0]),
        "last_submit": int(w.submit[-1]),
        "unix_start_time": start,
        "time_zone": origin.time_zone,
        "users": len(np.unique(w.columns["user"])) if "user" in w.columns else None,
        "mean_runtime": float(w.runtime.mean()),
        "mean_requested": float(w.requested.mean()),
        "mean_procs": float(w.procs.mean()),
        "serial_percent": float(100 * (w.procs == 1).mean()),
        "power_of_two_percent": float(100 * ((w.procs & (w.procs - 1)) == 0).mean()),
        "mean_use_of_request": float(np.minimum(ratio, 1).mean()),
        "distinct_requests": len(np.unique(w.requested)),
        "percentiles": {
            name: dict(zip(map(str, quantiles), np.percentile(values, quantiles).tolist(), strict=True))
            for name, values in (("runtime", w.runtime), ("requested", w.requested), ("procs", w.procs))
        },
        "status": _counts(w, "status"),
        "dropped": dict(origin.dropped),
        "changed": dict(origin.changed),
        "noticed": dict(origin.noticed),
        "bad_lines": [{"line": bad.line, "reason": bad.reason, "text": bad.text} for bad in log.bad_lines],
        "header": {key: list(values) for key, values in log.header.items()},
    }


def _size_said(estimate: dict[str, Any] | None) -> str:
    """Return the source of an estimated size of the machine as a text."""
    from walltime.wording import human_time

    if estimate is None:
        return ""
    if estimate["seconds"] is None:
        return f"estimated: the widest job; if the machine is larger, pass its size with --procs N (--procs {estimate['procs']})"
    nodes = ""
    if estimate["nodes"] is not None:
        nodes = f"; {estimate['nodes']:,} nodes, for {human_time(estimate['nodes_seconds'])}"
    reached = f"so many were busy at once, for {human_time(estimate['seconds'])} in sum{nodes}"
    return f"estimated: {reached}; pass the size with --procs N (--procs {estimate['procs']})"


def _counts(w: Workload, column: str) -> dict[str, int]:
    import numpy as np

    if column not in w.columns:
        return {}
    values, counts = np.unique(w.columns[column], return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts, strict=True)}


def _blocks(facts: dict[str, Any], w: Workload) -> Iterator[Facts | Table | str]:
    from walltime.logs import all_rules
    from walltime.tables import Facts, Table
    from walltime.wording import human_time, percent

    days = (facts["last_submit"] - facts["first_submit"]) / 86400
    since = ""
    if facts["unix_start_time"] is not None:
        try:
            local = datetime.fromtimestamp(facts["unix_start_time"] + facts["first_submit"], UTC).astimezone(w.origin.tzinfo())
            since = f"from {local:%Y-%m-%d %H:%M} {w.origin.time_zone}"
        except (OverflowError, OSError, ValueError):
            since = f"from {facts['unix_start_time']} s since 1970, beyond the calendar's range"
    load = percent(w.offered_load)
    rows = [
        ("records", f"{facts['records']:,}", f"{facts['jobs']:,} jobs to simulate"),
        ("processors", f"{facts['procs']:,}", _size_said(facts["procs_estimated"])),
        ("span of submissions", f"{days:,.1f} days", since),
        ("offered load", load, "processor time of the jobs over that of the machine, first to last submit"),
        ("users", "unknown" if facts["users"] is None else f"{facts['users']:,}", ""),
        ("mean runtime", human_time(facts["mean_runtime"]), f"median {human_time(facts['percentiles']['runtime']['50'])}"),
        ("mean request", human_time(facts["mean_requested"]), f"{facts['distinct_requests']:,} distinct values"),
        ("mean use of request", f"{100 * facts['mean_use_of_request']:.0f} %", "runtime over request, at most 100 %"),
        (
            "mean processors",
            f"{facts['mean_procs']:.1f}",
            f"{facts['serial_percent']:.0f} % serial, {facts['power_of_two_percent']:.0f} % powers of two",
        ),
        ("format", facts["format"], f"with further fields as of {facts['layout']}" if facts["layout"] else ""),
        ("sha256", facts["sha256"][:16], "begins that of the file as it is stored"),
    ]
    yield Facts(w.origin.name, rows)
    if facts["recognised"]:
        yield Table(
            ["column"], [[line] for line in facts["recognised"]], "how the columns were recognised; walltime mapping writes it", texts=-1
        )
    if facts["further_fields"]:
        yield Table(["field"], [[line] for line in facts["further_fields"]], "fields beyond the 18th", texts=-1)
    meaning = {rule.name: rule.meaning for rule in all_rules()}
    odd = [
        [what, f"{count:,}", rule, meaning.get(rule, "")]
        for what, counts in (("dropped", facts["dropped"]), ("changed", facts["changed"]), ("as it is", facts["noticed"]))
        for rule, count in counts.items()
    ]
    if odd:
        yield Table(["", "records", "rule", "meaning"], odd, "what is odd in it", texts=-1)
    else:
        yield "nothing odd: no job dropped or changed"
    if facts["bad_lines"]:
        bad = [[str(b["line"]), b["reason"]] for b in facts["bad_lines"][:LISTED]]
        yield Table(["line", "why"], bad, f"{len(facts['bad_lines']):,} lines left out")
