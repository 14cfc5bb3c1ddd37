"""`walltime info`: the content of a log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, machine_in, read_shown
from walltime.cli.output import Output, forget_logs, note
from walltime.wording import counted

if TYPE_CHECKING:
    from walltime.logs import JobLog
    from walltime.machine import Machine
    from walltime.tables import Facts, Table
    from walltime.workload import Workload

LISTED = 20
"""Number of bad lines listed; all are counted, and `--json` lists all."""


@manual(
    "guides/cluster-logs",
    ("Show the machine, the load and the data quality of a log.", "info KTH-SP2"),
    ("Show the load of each partition and pool of a cluster.", "info jobs.txt.gz --machine machine.toml --report log.html"),
)
def info(
    trace: o.TraceArgument,
    *,
    machine_file: o.MachineOption = None,
    reading: LogOptions,
    part: RecordedWindow,
    report: o.ReportOption = None,
    output: Output,
) -> None:
    """Show what is in a log: machine, period, load, jobs, and data quality.

    Lines that cannot be read are skipped, counted and listed; other commands stop at the first such line unless --skip-bad-lines is given.
    If the columns of a table are not recognised, or are ambiguous, they are shown with their first values before the error. With --machine,
    the offered load of each partition, pool and resource is shown.
    """
    from walltime.errors import LogError
    from walltime.logs.formats import columns_of
    from walltime.provenance import version
    from walltime.tables import Table

    machine = machine_in(machine_file)
    begin = time.perf_counter()
    try:
        log = read_shown(trace, **reading.on_machine(machine).of_file | {"skip_bad_lines": True})
    except LogError as error:
        if error.code in ("unknown_columns", "ambiguous_columns"):
            columns = Table(["title", "meaning", "first values"], columns_of(trace), "Columns of the table", texts=-1)
            output.show({"trace": str(trace), "columns": columns.records()}, [columns])
        raise
    estimate = None
    if reading.procs is None and machine is None and log.header.machine_procs is None:
        from walltime.logs.joblog import estimated_size

        estimate = estimated_size(log)
    workload = log.to_workload(**(reading.on_machine(machine).of_jobs | ({} if estimate is None else {"procs": estimate.procs})))
    seconds = time.perf_counter() - begin
    workload = part.alone(workload)
    record = _record(log, workload) | {"procs_estimated": None if estimate is None else asdict(estimate)}
    record["machine"] = None if machine is None else _on_machine(workload, machine)
    if report is not None:
        from walltime.preparation.workload_figures import log_page
        from walltime.report.html import write_page

        blocks = _blocks(record, workload, machine)
        write_page(report, log_page(workload, blocks, command_line(), record["mean_use_of_request"]))
    if log.bad_lines and not reading.skip_bad_lines:
        first, all_lines = log.bad_lines[0], log.records + len(log.bad_lines)
        note(
            f"{len(log.bad_lines):,} of {all_lines:,} lines skipped as unreadable (the first is line {first.line}: "
            f"{first.reason}); other commands stop there: correct them, or skip bad lines with --skip-bad-lines"
        )
    record = {"trace": str(trace), **record, "seconds": {"read": seconds}, "report": report, "version": version()}
    forget_logs()  # a table of its own lists what is left out
    output.show(record, [*workload.warnings, *_blocks(record, workload, machine)], report=report)


def _record(log: JobLog, w: Workload) -> dict[str, Any]:
    import numpy as np

    from walltime.workload.drops import left_out

    origin = w.origin
    quantiles = [0, 25, 50, 75, 90, 99, 100]
    requested = w.requested if origin.changed.get("runtime_as_estimate", 0) < len(w) else np.full(len(w), np.nan)  # none is known
    ratio = w.runtime / requested
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
        "mean_requested": float(requested.mean()),
        "mean_procs": float(w.procs.mean()),
        "serial_percent": float(100 * (w.procs == 1).mean()),
        "power_of_two_percent": float(100 * ((w.procs & (w.procs - 1)) == 0).mean()),
        "mean_use_of_request": float(np.minimum(ratio, 1).mean()),
        "distinct_requests": None if np.isnan(requested).any() else len(np.unique(requested)),
        "percentiles": {
            name: dict(zip(map(str, quantiles), np.percentile(values, quantiles).tolist(), strict=True))
            for name, values in (("runtime", w.runtime), ("requested", requested), ("procs", w.procs))
        },
        "status": {str(status): int((w.columns["status"] == status).sum()) for status in np.unique(w.columns.get("status", []))},
        "dropped": dict(origin.dropped),
        "left_out": left_out(origin.drops),
        "changed": dict(origin.changed),
        "noticed": dict(origin.noticed),
        "bad_lines": [{"line": bad.line, "reason": bad.reason, "text": bad.text} for bad in log.bad_lines],
        "header": {key: list(values) for key, values in log.header.items()},
    }


def _size_text(procs: int, estimate: dict[str, Any] | None) -> str:
    """Return the size of the machine and, if it is estimated, the source of the estimate."""
    from walltime.wording import human_time

    if estimate is None:
        return counted(procs, "processor")
    basis = "the widest job"
    if estimate["seconds"] is not None:
        basis = f"the largest number busy at once, for {human_time(estimate['seconds'])} in total"
    if estimate["nodes"] is not None:
        alone = "" if estimate["unshared"] else " if jobs share none"
        basis += f"; {counted(estimate['nodes'], 'node')}{alone}, for {human_time(estimate['nodes_seconds'])}"
    return f"{counted(procs, 'processor')}, estimated ({basis}); confirm or correct it with --procs {procs}"


def _on_machine(workload: Workload, machine: Machine) -> dict[str, Any]:
    """Return the loads of the jobs that can run on the machine, and the numbers of jobs that its rules drop or change."""
    from walltime.preparation.machine_load import offered_loads
    from walltime.simulation.run import placed_on
    from walltime.workload.drops import left_out

    placed, placement = placed_on(workload, machine)
    before, after = workload.origin, placed.origin
    counts = {what: _further(getattr(before, what), getattr(after, what)) for what in ("dropped", "changed", "noticed")}
    return {"name": machine.name, "loads": offered_loads(placed, placement), **counts, "left_out": left_out(after.drops)}


def _further(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the increase of each count, by name, without counts that have not grown."""
    more = {name: count - before.get(name, 0) for name, count in after.items()}
    return {name: count for name, count in more.items() if count}


def _blocks(facts: dict[str, Any], w: Workload, machine: Machine | None) -> Iterator[Facts | Table | str]:
    from walltime.tables import Cell, Facts, Table, time_cell
    from walltime.wording import UNDEFINED, human_percent, percent

    days = f"{(facts['last_submit'] - facts['first_submit']) / 86400:,.1f} days"
    first, last = (w.origin.moment(facts[f"{which}_submit"]) for which in ("first", "last"))
    period = f"{days}; the log has no dates"
    if first is not None and last is not None:
        period = f"{first:%Y-%m-%d} to {last:%Y-%m-%d} ({days}, {w.origin.time_zone})"
    elif facts["unix_start_time"] is not None:
        period = f"{days}; beyond the calendar's range"
    users = "" if facts["users"] is None else f" from {counted(facts['users'], 'user')}"
    layout = f", with additional fields as in {facts['layout']}" if facts["layout"] else ""
    requests = "not recorded"
    if facts["distinct_requests"] is not None:
        used = human_percent(100 * facts["mean_use_of_request"])
        requests = f"{used} of the requested time is used; {counted(facts['distinct_requests'], 'distinct value')}"
    rows = [
        ("machine", _size_text(facts["procs"], facts["procs_estimated"])),
        ("period", period),
        ("jobs", f"{facts['jobs']:,}{users}; {facts['serial_percent']:.0f} % serial, {facts['power_of_two_percent']:.0f} % powers of two"),
        ("offered load", UNDEFINED if facts["offered_load"] is None else f"{percent(w.offered_load)} of the machine's processor time"),
        ("requests", requests),
        ("log", f"{facts['format']}{layout}; {counted(facts['records'], 'record')}; SHA-256 {facts['sha256'][:16]}..."),
    ]
    yield Facts(w.origin.site, rows)
    shares, named = facts["percentiles"], (("runtime", "runtime"), ("request", "requested"))
    lines = [[what, time_cell(facts[f"mean_{name}"]), *(time_cell(shares[name][at]) for at in ("50", "90", "100"))] for what, name in named]
    wide = [facts["mean_procs"], *(shares["procs"][at] for at in ("50", "90", "100"))]
    lines.append(["processors", Cell(f"{wide[0]:,.1f}", value=wide[0]), *(Cell(f"{value:,.0f}", value=value) for value in wide[1:])])
    yield Table(["", "mean", "median", "90 %", "largest"], lines, "Per job")
    for title, column, key in (
        ("Columns as they were recognised (walltime mapping writes them to a file)", "column", "recognised"),
        ("Fields beyond the 18th", "field", "further_fields"),
    ):
        if facts[key]:
            yield Table([column], [[line] for line in facts[key]], title, texts=-1)
    if machine is not None:
        from walltime.preparation.machine_load import loads_table

        yield loads_table(facts["machine"]["loads"], machine)
        if any(facts["machine"][what] for what in ("dropped", "changed")):
            yield _quality(facts["machine"], "On the machine, in jobs")
    yield _quality(facts, "Data quality of the whole log, in records")
    if facts["bad_lines"]:
        bad = [[str(b["line"]), b["reason"]] for b in facts["bad_lines"][:LISTED]]
        yield Table(["line", "reason"], bad, f"{counted(len(facts['bad_lines']), 'bad line')} skipped")


def _quality(facts: dict[str, Any], title: str) -> Facts | str:
    """Return the number of records that each rule dropped, changed or kept unchanged."""
    from walltime.logs import all_rules
    from walltime.machine import PLACING_RULES
    from walltime.tables import Facts
    from walltime.wording import first_clause, human_percent
    from walltime.workload.drops import UNKNOWN_WORK

    meaning = {rule.name: first_clause(rule.meaning) for rule in all_rules()}
    meaning |= {name: first_clause(text) for name, (_, text) in PLACING_RULES.items()}
    works = {one["rule"]: one["share_of_work"] for one in facts["left_out"]["rules"]}
    work = {rule: f"; {UNKNOWN_WORK if share is None else human_percent(100 * share)} of the work" for rule, share in works.items()}
    rows = [
        (
            "kept" if what == "noticed" else what,
            f"{count:,}",
            f"{f'{meaning[rule]} ({rule})' if rule in meaning else rule}{work.get(rule, '')}",
        )
        for what in ("dropped", "changed", "noticed")
        for rule, count in facts[what].items()
    ]
    return Facts(title, rows) if rows else "Data quality: no record was dropped or changed, and none is unusual."
