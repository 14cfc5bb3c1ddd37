"""`walltime audit`: check a schedule of any simulator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, SingleRunOptions, machine_in
from walltime.cli.output import PageOutput, caveats, command_line, progress_bar, report_on
from walltime.wording import lower_first

if TYPE_CHECKING:
    from walltime.auditor.report import AuditReport
    from walltime.report.page import Block
    from walltime.tables import Facts
    from walltime.workload import Workload


@manual(
    "guides/audit",
    ("Check a schedule against the rules of all schedules.", "audit log.swf.gz schedule.csv"),
    ("Check that a schedule keeps what EASY backfilling promises.", "audit log.swf.gz schedule.csv --policy easy"),
)
def audit(
    trace: o.TraceArgument,
    schedule: Annotated[
        Path,
        o.argument("The schedule: .csv or .parquet with the columns job_id, start and end, or .swf with wait times.", "SCHEDULE"),
    ],
    *,
    policy: Annotated[
        str | None,
        o.option(
            f"Check the promises of this policy: {o.POLICIES}. Default: only the rules of all schedules.", "--policy", group=o.SCHEDULER
        ),
    ] = None,
    deciding: SingleRunOptions,
    planned_from_file: Annotated[
        bool,
        o.option(
            "Use the planned runtimes in the schedule file (its column believed), and check whether the other options give the same ones.",
            group=o.SCHEDULER,
            advanced=True,
        ),
    ] = False,
    machine_file: o.MachineOption = None,
    reading: LogOptions,
    output: PageOutput,
) -> None:
    """Check a schedule from any simulator against its log.

    The exit status is 1 if a rule is broken, or if the policy's decisions cannot be checked.
    """
    from walltime.auditor import audit as check
    from walltime.schedule import read_schedule
    from walltime.simulation.run import placed_under

    scheduler = deciding.schedulers([policy])[0] if policy else None
    chosen = scheduler.policy if scheduler else None
    machine = machine_in(machine_file)
    workload, _ = reading.load(trace, machine)
    workload = workload.with_feedback(deciding.feedback).with_estimates(deciding.model, deciding.seed)
    workload, placement = (workload, None) if machine is None else placed_under(workload, machine, chosen)
    report_on(workload)
    rules: dict[str, Any] = {"prediction": scheduler.prediction if scheduler else None, "own_beliefs": planned_from_file, **deciding.rules}
    columns = read_schedule(schedule)
    with progress_bar(len(workload), "audit") as progress:
        report = check(workload, columns, chosen, placement=placement, progress=progress, **rules)
    spelled = None if scheduler is None else scheduler.label
    promises = None if chosen is None else lower_first(chosen.title)
    answer = report.answer(schedule.name, workload, promises)
    if output.report is not None:
        from walltime.checking.audit_page import audit_page

        output.write(audit_page(workload, columns, report, schedule.name, promises, command_line()))
    record = {"trace": str(trace), "schedule": str(schedule), "policy": spelled, **report.as_dict()}
    output.show(record, [f"ok: {answer}" if report.ok else answer, *_blocks(report, workload)])
    if not report.ok:
        raise typer.Exit(1)


def _blocks(report: AuditReport, workload: Workload) -> Iterator[Block | Facts | str]:
    """Yield each broken rule with its first violation, and what was not checked or is assumed."""
    from walltime.tables import Facts

    firsts = {one.rule: one for one in reversed(report.violations)}
    ordered = sorted(firsts.items(), key=lambda item: item[1].time)
    rows = [(rule, f"{report.counts[rule]:,}", one.told(workload.origin)) for rule, one in ordered]
    if rows:
        yield Facts("Broken rules, with their counts and first violations", rows)
    reasons: dict[str, list[str]] = {}
    for rule, why in report.skipped.items():
        reasons.setdefault(why, []).append(rule)
    unchecked = [f"Not checked, as {why}: {', '.join(rules)}." for why, rules in reasons.items()]
    yield from caveats([*unchecked, *(f"Assumed: {text}." for text in report.assumed)])
