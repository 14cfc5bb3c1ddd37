"""`walltime calibrate`: compare a simulation, or predicted start times, with the recorded waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from walltime.cli import options as o
from walltime.cli.command_lines import command_line, next_command
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, SiteOptions, machine_in
from walltime.cli.output import PageOutput, caveats, paragraphs, progress_bar, report_on
from walltime.cli.table import part_of
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.report.page import Block
    from walltime.tables import Facts
    from walltime.whatif import Calibration


@dataclass(frozen=True)
class Moments:
    """Options of --starts, which tests predictions of start times."""

    starts: bool = o.field(
        False, "Predict start times at random moments of the log instead, and compare them with the recorded start times.", group=o.RUNS
    )
    predictor: o.RuntimePredictorOption = None
    moments: int = o.field(150, "Predict start times at N moments of the log.", group=o.RUNS, advanced=True, min=1)
    samples: int = o.field(40, "Simulate N possible futures at each moment.", group=o.RUNS, advanced=True, min=1)
    seed: o.SeedOption = 0


SIMULATION_OPTIONS = ("--policy=", "--overrun=", "--hindsight", "--trim=", "--predictor=", "--moments=", "--samples=", "--seed=")
"""Options of `calibrate` that `infer` does not have."""


@manual(
    "guides/calibrate",
    ("Compare a simulation of the site's policy with the recorded waits.", "calibrate jobs.txt.gz --machine machine.toml"),
    ("Save the calibration for walltime what-if.", "calibrate jobs.txt.gz --machine machine.toml --out calibration.json"),
)
def calibrate(
    trace: o.TraceArgument,
    *,
    site: SiteOptions,
    drawn: Moments,
    reading: LogOptions,
    part: RecordedWindow,
    out: Annotated[Path | None, o.out("the calibration, for walltime what-if,", ".json")] = None,
    verbose: o.VerboseOption = False,
    output: PageOutput,
) -> None:
    """Simulate a site's own policy, compare it with the recorded waits, and estimate the calibration error.

    With --starts, the command instead picks random moments of the log. For each moment, it predicts the starts of the waiting jobs from
    the data known at that time, and reports how many jobs started within their prediction intervals.
    """
    if drawn.starts:
        if out is not None:
            raise PolicyError("--starts makes no calibration that --out could write; use --json")
        if site.hindsight:
            raise PolicyError("--hindsight cannot be combined with --starts, which uses only what was known then; leave one out")
        machine = machine_in(site.machine_file)
        workload = part.alone(reading.load(trace, machine)[0])
        part_of("calibrate --starts").calibrate_starts_command(workload, machine, site.policy, vars(drawn), output)
        return
    if drawn.predictor is not None:
        raise PolicyError("--predictor needs --starts; for the scheduler's own predictor, use --policy easy:predictor=tsafrir07")
    from walltime.inference.step_agreement import record_note
    from walltime.simulation.specification import parse_scheduler
    from walltime.whatif import calibrate as run
    from walltime.whatif.setting import NEEDED, Setting, machine_of

    if site.policy is not None:
        parse_scheduler(site.policy)  # a misspelling is reported before the log is read
    machine = machine_in(site.machine_file, NEEDED if site.policy is None else {})
    workload, _ = reading.load(trace, machine)
    machine = machine_of(workload, machine)
    workload = part.of(workload, machine)
    with progress_bar(len(workload), Setting.of(machine, site.policy).scheduler().label) as progress:
        agreement = run(workload, machine, site.policy, trim=site.trim, overrun=site.overrun, hindsight=site.hindsight, progress=progress)
    report_on(replace(workload, origin=replace(workload.origin, drops=tuple(agreement.drops))))
    if out is not None:
        agreement.write(out)
    if output.report is not None:
        from walltime.whatif import calibration_page

        output.write(calibration_page(agreement, workload, {"command": command_line(), "overrun": site.overrun}))
    said = record_note(workload, machine, Setting.of(machine, site.policy).scheduler())
    output.show(agreement.as_dict() | {"one_step": said}, _blocks(agreement, said, verbose), calibration=out)


def _blocks(calibration: Calibration, said: str, verbose: bool) -> Iterator[Block | Facts | str]:
    """Yield the verdict, a table of waits by group, and the suggested next command; with `verbose`, all tables."""
    from walltime.whatif.agreement_page import direction, full_tables, short_table
    from walltime.wording import human_time

    every = calibration.overall
    table = short_table(calibration)
    some = " It is reliable for the groups marked yes." if any(row[-1] == "yes" for row in table.rows) else ""
    hours = f"For all jobs together, the size of a change in hours is not reliable: {every.doubt}.{some}"
    if not every.doubt:
        hours = f"Differences in mean wait above {human_time(every.threshold)} exceed the calibration error."
    yield f"{direction(calibration)}{hours}"
    yield table
    if verbose:
        yield from paragraphs([calibration.verdict[0], *calibration.doubted])  # the table above has the rest of the verdict
        yield from (table for table in full_tables(calibration) if table.rows)
    if every.doubt:
        infer = next_command("infer", "--out", "site.toml", without=SIMULATION_OPTIONS)
        yield f"Next: infer the site's rules with {infer}, and calibrate again with --machine site.toml."
    more = [said] if verbose else ["For more groups, utilization and other causes of waiting, add --verbose or --report page.html."]
    yield from caveats([*calibration.evidence.hints, *more])
