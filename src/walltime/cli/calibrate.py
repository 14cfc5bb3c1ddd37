"""`walltime calibrate`: does the simulation resemble the machine?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from walltime.cli import options as o
from walltime.cli.explain import paragraphs
from walltime.cli.groups import Reading, Stretch, read_cluster
from walltime.cli.output import Output, command_line, progress_bar

if TYPE_CHECKING:
    from walltime.report.page import Block
    from walltime.whatif import Calibration

__all__ = ["calibrate"]


def calibrate(
    trace: o.TraceArgument,
    *,
    cluster: o.ClusterOption = None,
    policy: o.PolicyOption = None,
    overrun: o.OverrunOption = o.Overrun.kill,
    reading: Reading,
    part: Stretch,
    trim: o.TrimOption = o.Trim.tsafrir06,
    out: Annotated[Path | None, o.out("the calibration, for walltime what-if", ".json")] = None,
    report: o.ReportOption = None,
    output: Output,
) -> None:
    """Simulate the site's own policy, compare with the recorded waits, and say which differences can be trusted."""
    from walltime.simulation.specification import parse_scheduler
    from walltime.whatif import calibrate as run
    from walltime.whatif.setting import NEEDED, Setting, machine_of

    if policy is not None:
        parse_scheduler(policy)  # so that what is misspelled is told before the log is read
    machine = read_cluster(cluster, NEEDED if policy is None else {})
    workload, _ = reading.load(trace, machine)
    machine = machine_of(workload, machine)
    workload = part.of(workload, machine)
    with progress_bar(len(workload), Setting.of(machine, policy).scheduler().label) as progress:
        found = run(workload, machine, policy, trim=trim.value, overrun=overrun.value, progress=progress)
    if out is not None:
        found.write(out)
    if report is not None:
        from walltime.report import write_calibration_report

        write_calibration_report(report, found, workload, settings={"command": command_line(), "overrun": overrun.value})
    output.show(found.as_dict(), _blocks(found), calibration=out, report=report)


def _blocks(found: Calibration) -> Iterator[Block | str]:
    """The verdict, then the numbers behind it."""
    from walltime.report.calibration import short_tables
    from walltime.report.page import Items

    yield from paragraphs(found.verdict)
    yield ""
    yield from (table for table in short_tables(found) if table.rows)
    yield Items(found.evidence.hints)
