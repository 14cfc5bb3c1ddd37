"""`walltime audit`: check a schedule of any simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, SingleRunOptions, machine_in
from walltime.cli.output import PageOutput, caveats, progress_bar, report_on
from walltime.errors import PolicyError
from walltime.wording import counted, lower_first

if TYPE_CHECKING:
    from walltime.auditor.report import AuditReport
    from walltime.report.page import Block
    from walltime.tables import Facts
    from walltime.workload import Workload


@manual(
    "guides/audit",
    ("Check a schedule against the rules that hold under every policy.", "audit log.swf.gz schedule.csv"),
    ("Check a schedule against the guarantees of EASY backfilling as well.", "audit log.swf.gz schedule.csv --policy easy"),
)
def audit(
    trace: o.TraceArgument,
    schedule: Annotated[
        Path | None,
        o.argument(
            "The schedule: .csv or .parquet with the columns job_id, start and end, or .swf with wait times. Default: the recorded starts "
            "of the log.",
            "SCHEDULE",
        ),
    ] = None,
    *,
    policy: Annotated[
        str | None,
        o.option(
            f"Check the guarantees of this policy as well: {o.POLICIES}. Default: check only the rules that hold under every policy.",
            "--policy",
            group=o.SCHEDULER,
        ),
    ] = None,
    deciding: SingleRunOptions,
    planned_from_file: Annotated[
        bool,
        o.option(
            "Read the planned runtimes from the column 'planned' of the schedule file, and check that the other options lead to "
            "the same values.",
            group=o.SCHEDULER,
            advanced=True,
        ),
    ] = False,
    machine_file: o.MachineOption = None,
    schedule_mapping: o.ScheduleMappingOption = None,
    reading: LogOptions,
    output: PageOutput,
) -> None:
    """Check a schedule from any simulator against its log.

    The exit status is 1 if a rule is broken that holds under every policy. With --policy, it is also 1 if a guarantee of the policy is
    broken, or if its decisions cannot be checked.
    """
    from walltime.auditor import audit as check
    from walltime.schedule import read_schedule
    from walltime.simulation.run import placed_under

    if schedule is None and schedule_mapping is not None:
        raise PolicyError("--schedule-mapping needs a schedule file; --mapping is for the columns of the log", "option_without_effect")
    scheduler = deciding.schedulers([policy])[0] if policy else None
    chosen = scheduler.policy if scheduler else None
    machine = machine_in(machine_file)
    workload, _ = reading.load(trace, machine)
    workload = workload.with_feedback(deciding.feedback).with_estimates(deciding.model, deciding.seed)
    workload, remarks = (workload, []) if schedule is not None else recorded_jobs(workload)
    workload, placement = (workload, None) if machine is None else placed_under(workload, machine, chosen)
    if schedule is None:
        workload, slack = allow_kill_wait(workload)
        remarks += slack
    report_on(workload)
    rules: dict[str, Any] = {
        "prediction": scheduler.prediction if scheduler else None,
        "planned_from_file": planned_from_file,
        **deciding.rules,
    }
    columns = recorded_schedule(workload) if schedule is None else read_schedule(schedule, schedule_mapping, workload)
    name = "the recorded schedule" if schedule is None else schedule.name
    with progress_bar(len(workload), "audit") as progress:
        report = check(workload, columns, chosen, placement=placement, seed=deciding.seed, progress=progress, **rules)
    report = replace(report, assumed=(*report.assumed, *remarks))
    spelled = None if scheduler is None else scheduler.label
    promises = None if chosen is None else lower_first(chosen.title)
    answer = report.answer(name, workload, promises)
    if output.report is not None:
        from walltime.checking.audit_page import audit_page

        output.write(audit_page(workload, columns, report, name, promises, command_line()))
    record = {"trace": str(trace), "schedule": None if schedule is None else str(schedule), "policy": spelled, **report.as_dict()}
    output.show(record, [f"ok: {answer}" if report.ok else answer, *_blocks(report, workload)])
    if not report.ok:
        raise typer.Exit(1)


KILL_WAIT = 60
"""Longest time, s, by which Slurm lets a job exceed its limit before the job is killed (KillWait, OverTimeLimit)."""


def recorded_jobs(workload: Workload) -> tuple[Workload, list[str]]:
    """Return the jobs with a recorded start, and a sentence on the others; raises PolicyError for a log without waits."""
    waits = workload.recorded_wait
    if waits is None:
        raise PolicyError(f"{workload.origin.name} records no waits; give a schedule file", "missing_schedule")
    left_out = int((waits < 0).sum())
    remarks = [f"{counted(left_out, 'job')} without a recorded start left out"] if left_out else []
    return workload.take(waits >= 0, ""), remarks


def allow_kill_wait(workload: Workload) -> tuple[Workload, list[str]]:
    """Return placed jobs whose limits are raised, by up to `KILL_WAIT`, for those that ran over them, and a sentence on these jobs."""
    import numpy as np

    over = workload.runtime - workload.requested
    slack = (over > 0) & (over <= KILL_WAIT)
    if not slack.any():
        return workload, []
    requested = np.where(slack, workload.runtime, workload.requested)
    planned = requested if workload.planned is workload.requested else workload.planned
    remark = f"jobs may run up to {KILL_WAIT} s over their limit (KillWait, OverTimeLimit), as {counted(int(slack.sum()), 'job')} did"
    return replace(workload, requested=requested, planned=planned), [remark]


def recorded_schedule(workload: Workload) -> dict[str, Any]:
    """Return the recorded schedule of a log, as the columns of a schedule file."""
    start = workload.submit + workload.columns["wait"]
    return {"job_id": workload.job_id, "start": start, "end": start + workload.runtime}


def _blocks(report: AuditReport, workload: Workload) -> Iterator[Block | Facts | str]:
    """Yield each broken rule with its first violation, the unchecked rules, and the assumptions."""
    from walltime.tables import Facts

    firsts = {one.rule: one for one in reversed(report.violations)}
    ordered = sorted(firsts.items(), key=lambda item: item[1].time)
    rows = [(rule, f"{report.counts[rule]:,}", one.told(workload.origin)) for rule, one in ordered]
    if rows:
        yield Facts("Broken rules, with their counts and first violations", rows)
    reasons: dict[str, list[str]] = {}
    for rule, why in report.skipped.items():
        reasons.setdefault(why, []).append(rule)
    each = [f"{', '.join(rules)} ({why})" for why, rules in reasons.items()]
    yield from caveats([*([f"Not checked: {'; '.join(each)}."] if each else []), *(f"Assumed: {text}." for text in report.assumed)])
