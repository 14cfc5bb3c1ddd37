"""`walltime diff`: the first difference between two schedules, and the rule behind it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import FigureOptions, LogOptions, machine_in
from walltime.cli.output import PageOutput, progress_bar, report_on


@dataclass(frozen=True)
class TrialOptions:
    """The schedulers and dialects to try as explanations of a difference."""

    policy: list[str] | None = o.field(
        None,
        "Try only this policy as an explanation; walltime list policies shows all. Default: the usual policies.",
        "--policy",
        group=o.SCHEDULER,
    )
    dialect: list[str] | None = o.field(
        None,
        "Try only this dialect; walltime list dialects shows all. Default: all dialects, and each of their interpretations.",
        "--dialect",
        group=o.SCHEDULER,
        metavar="NAME",
    )


@manual(
    "guides/audit",
    ("Find the first job on which two simulators differ.", "diff ours.csv theirs.csv --log log.swf.gz"),
    (
        "Try only EASY as an explanation, and draw the machine at that time.",
        "diff ours.csv theirs.csv --log log.swf.gz --policy easy --figure moment.svg",
    ),
)
def diff(
    a: Annotated[Path, o.argument("A schedule: .csv or .parquet with the columns job_id, start and end, or .swf with wait times.", "A")],
    b: Annotated[Path, o.argument("Another schedule of the same jobs.", "B")],
    *,
    log: Annotated[Path, o.option("Read the jobs of both schedules from this log.", "--log", group=o.INPUT, metavar="LOG")],
    tried: TrialOptions,
    overrun: o.OverrunOption = "kill",
    machine_file: o.MachineOption = None,
    schedule_mapping: o.ScheduleMappingOption = None,
    reading: LogOptions,
    drawn: FigureOptions,
    output: PageOutput,
) -> None:
    """Find the first difference between two schedules, show the machine and the queue at that time, and name the rule that explains it."""
    from walltime.checking import diff as find
    from walltime.schedule import read_schedule
    from walltime.tables import Facts

    machine = machine_in(machine_file)
    workload, _ = reading.load(log, machine)
    one, other = (read_schedule(path, schedule_mapping, workload) for path in (a, b))
    names = (a.name, b.name) if a.name != b.name else (f"{a.parent.name}/{a.name}", f"{b.parent.name}/{b.name}")
    names = names if names[0] != names[1] else ("A", "B")
    with progress_bar(None, "schedulers that may explain it", "tried") as progress:
        rules: dict[str, Any] = {"policies": tried.policy, "dialects": tried.dialect, "overrun": overrun, "machine": machine}
        difference = find(one, other, workload, names=names, progress=progress, **rules)
    report_on(difference.workload)
    if drawn.figure is not None:
        from walltime.checking.difference_page import difference_figure
        from walltime.report.figure_files import width_of, write_figure

        write_figure(drawn.figure, difference_figure(difference, **width_of(drawn.size)))
    if output.report is not None:
        from walltime.checking.difference_page import difference_page

        output.write(difference_page(difference, command_line()))
    record = {"log": str(log), "sha256": workload.origin.sha256, "overrun": overrun} | difference.as_dict()
    headline, *rows = difference.texts()
    output.show(record, [Facts(headline[1], rows)], figure=drawn.figure)
