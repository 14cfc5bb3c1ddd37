"""`walltime what-if`: the effect of changes to a machine or its settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.energy_options import EnergyOptions
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, SiteOptions, machine_in, used_by
from walltime.cli.output import PageOutput, caveats, progress_bar, report_on, write_rows
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.report.page import Block
    from walltime.tables import Facts
    from walltime.whatif import WhatIf


@dataclass(frozen=True)
class TrialOptions:
    """Options for the changes and their simulation."""

    change: list[str] | None = o.field(
        None,
        "Simulate this change: nodes+=10%, pool.gpu.nodes+=4, partition.long.MaxTime=24h, limit.1.jobs=8, load*=1.1, "
        "policy=easy++, SchedulerParameters+=bf_max_job_test=1000, ...",
        group=o.SCHEDULER,
    )
    against: list[Path] | None = o.field(
        None, "Simulate this other machine file as well, and rank it together with the changes.", group=o.SCHEDULER, metavar="FILE"
    )
    together: bool = o.field(False, "Simulate all changes together as well.", "--together", group=o.SCHEDULER)
    submissions: Literal["as-recorded", "react"] = o.field(
        "as-recorded",
        "Submit jobs at their recorded times, or let users react: a job submitted within 20 min after the end of its user's earlier job "
        "then moves with this end. The result of the other choice is shown as well.",
        group=o.JOBS,
        advanced=True,
    )
    replications: int = o.field(
        5,
        "Simulate N copies of the log with submissions shifted by up to 30 s, for the intervals of the differences; 0 for none.",
        "--replications",
        group=o.RUNS,
        min=0,
    )
    seed: o.SeedOption = 0
    calibration: Path | None = o.field(
        None, "Use the calibration that walltime calibrate --out wrote. Default: calibrate first.", group=o.INPUT, metavar="FILE"
    )


@manual(
    "guides/what-if",
    ("Show the effect of 10 % more nodes.", "what-if jobs.txt.gz --machine machine.toml --change nodes+=10%"),
    (
        "Compare two settings, and write a page.",
        "what-if jobs.txt.gz --machine machine.toml --change policy=easy --change policy=conservative --report page.html",
    ),
)
def what_if(
    trace: o.TraceArgument,
    *,
    site: SiteOptions,
    energy: EnergyOptions,
    trial: TrialOptions,
    reading: LogOptions,
    part: RecordedWindow,
    use: o.UseOption = None,
    out: Annotated[Path | None, o.out("a row for each change", *o.TABLE)] = None,
    verbose: o.VerboseOption = False,
    output: PageOutput,
) -> None:
    """Simulate each of several changes to a machine or its settings, and rank them by gain (shorter waits) minus cost.

    The gain is the decrease of the mean wait, in percent. The costs are the lost work, including jobs that can
    no longer run, and the added nodes, each as a percentage of the total.
    """
    from walltime.whatif import parse_change, read_calibration, runs, what_if as run
    from walltime.whatif.setting import NEEDED, machine_of
    from walltime.whatif.simulations import settings_of

    if not trial.change and not trial.against:
        raise PolicyError("no change was given; add one such as --change 'nodes+=10%', or --against FILE", "no_change")
    changes = [parse_change(text) for text in trial.change or ()]
    against = [replace(machine, name=path.stem) for path in trial.against or () if (machine := machine_in(path)) is not None]
    machine = machine_in(site.machine_file, NEEDED if site.policy is None else {})
    if machine is not None:
        settings_of(machine, changes, site.policy, against, trial.together)  # a misspelling is reported before the log is read
    agreement = None if trial.calibration is None else read_calibration(trial.calibration)
    workload, _ = reading.load(trace, machine)
    workload = used_by(workload, use)
    machine = machine_of(workload, machine)
    workload = part.of(workload, machine)
    every = runs(len(changes) + len(against) + trial.together, trial.replications)
    with progress_bar(every, "simulations") as progress:
        result = run(
            workload,
            machine,
            changes,
            against=against,
            together=trial.together,
            policy=site.policy,
            calibration=agreement,
            replications=trial.replications,
            submissions=trial.submissions,
            trim=site.trim,
            overrun=site.overrun,
            seed=trial.seed,
            hindsight=site.hindsight,
            kwh_price=energy.kwh_price,
            carbon=energy.carbon_of(workload),
            progress=progress,
        )
    if result.reused:
        typer.echo(f"walltime: {result.reused:,} of {every:,} simulations are taken from an earlier run", err=True)
    report_on(result.today.workload)
    if out is not None:
        write_rows(out, result.table())
    if output.report is not None:
        from walltime.whatif import what_if_page

        output.write(what_if_page(result, {"command": command_line(), "overrun": site.overrun, "seed": trial.seed}))
    record = result.as_dict() | {"report": output.report, "out": out}
    output.show(record, _blocks(result, verbose), **{f"{len(result.effects) + 1} rows": out})


def _blocks(answer: WhatIf, verbose: bool) -> Iterator[Block | Facts | str]:
    """Yield the answer, a table of the changes, and notes; with `verbose`, also intervals, affected users and costs."""
    from walltime.whatif import page

    yield answer.answer()
    if not verbose:
        yield page.short_table(answer)
        if (energy := page.energy_table(answer)) is not None:
            yield energy
        yield from (f"{effect.name}: {'; '.join(effect.became)}." for effect in answer.alone if len(effect.became) > 1)
        more = "For groups, intervals, node-hours and users, add --verbose or --report page.html."
        yield from caveats([*page.short_caveats(answer), more])
        return
    yield from (f"{effect.label}: {line}" for effect in answer.alone for line in effect.became)
    yield from page.tables_of(answer)
    yield from page.remarks(answer)
    yield from caveats(page.all_caveats(answer))
