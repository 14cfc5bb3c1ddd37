"""`walltime explain`: explain why a job waited."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from walltime.cli import options as o
from walltime.cli.command_lines import command_line, next_command
from walltime.cli.help import manual
from walltime.cli.option_groups import (
    FigureOptions,
    JobSelectionWithLoad,
    LogOptions,
    PolicyOptions,
    SingleRunOptions,
    machine_in,
    one_workload,
)
from walltime.cli.output import PageOutput, caveats, progress_bar
from walltime.errors import PolicyError
from walltime.wording import human_time

if TYPE_CHECKING:
    from walltime.machine import Machine


@dataclass(frozen=True)
class JobOptions:
    """Options that select the jobs to explain."""

    job: str | None = o.field(
        None, "Explain the job with this number, or this task of an array, as in 27_3.", "--job", group=o.JOBS, metavar="NUMBER"
    )
    longest: int | None = o.field(
        None, "List the N longest simulated waits, or with --recorded the N longest waits of the log, one row each.", group=o.JOBS, min=1
    )
    recorded: bool = o.field(False, "Explain the recorded wait from the log alone, without a simulation.", "--recorded", group=o.JOBS)
    no_sooner: bool = o.field(
        False, "Skip the search for changes that would have let the job start sooner, which takes about 20 simulations.", group=o.RUNS
    )


@manual(
    "guides/explain",
    ("List the ten longest waits under EASY.", "explain KTH-SP2 --longest 10"),
    ("Explain the wait of one job on a report page with a figure.", "explain KTH-SP2 --job 14708 --report why.html"),
)
def explain(
    trace: o.TraceArgument,
    *,
    asked: JobOptions,
    simulated: PolicyOptions,
    run: SingleRunOptions,
    reading: LogOptions,
    part: JobSelectionWithLoad,
    drawn: FigureOptions,
    output: PageOutput,
) -> None:
    """Explain why a job waited: free and reserved processors, overtaking jobs, and what would have helped."""
    from walltime.explanation import explain as explain_job, longest_waits
    from walltime.explanation.records import index_of, recorded_wait_of
    from walltime.explanation.sentences import waits_table

    if (asked.job is None) == (asked.longest is None):
        raise PolicyError("give either --job NUMBER, to explain a job, or --longest N, to list the longest waits")
    if asked.job is None and (drawn.figure is not None or asked.no_sooner):
        raise PolicyError("--figure and --no-sooner need a job; add --job NUMBER")
    machine = machine_in(simulated.machine_file)
    if asked.recorded:
        given = {"--policy": simulated.policy, "--no-sooner": asked.no_sooner or None, "--figure": drawn.figure}
        if named := [name for name, value in given.items() if value is not None]:
            raise PolicyError(f"--recorded runs no simulation; leave {named[0]} out", "option_without_effect")
        _explain_recorded(trace, asked, machine, reading, output)
        return
    [chosen] = run.schedulers([simulated.policy or (None if machine is None else machine.policy) or "easy"])
    _ = run.model  # an invalid one is reported before the log is read
    workload, _ = reading.load(trace, machine)
    schedule = run.run(one_workload(run, part, workload), chosen, machine=machine)
    record = {"trace": str(trace), "sha256": workload.origin.sha256, "policy": schedule.label}
    if asked.longest is not None:
        waits = longest_waits(schedule, asked.longest)
        table = [waits_table(schedule, waits)] if waits else []
        words = [f"To explain the longest: {next_command('explain', '--job', str(waits[0].job), without=['--longest='])}"] if waits else []
        log = [recorded_wait_of(schedule, index_of(schedule, wait.job)) for wait in waits]
        known = f"; the log records {human_time(log[0])} for this job" if log and log[0] is not None else ""
        longest = f"the longest simulated wait is {human_time(waits[0].wait)}{known}" if waits else "no job waits"
        answer = f"Under {schedule.title}, {longest}."
        output.write_blocks("longest waits", workload.origin.site, [answer], [*table, *words], schedule.workload)
        rows = [wait.as_dict() | {"recorded_wait": real} for wait, real in zip(waits, log, strict=True)]
        output.show(record | {"longest_waits": rows}, [answer, *table, *words])
        return
    assert asked.job is not None, "or the longest waits were asked for"
    with progress_bar(None, "what would have helped", "runs") as progress:
        explanation = explain_job(schedule, schedule.workload.job_number(asked.job), sooner=not asked.no_sooner, progress=progress)
    if drawn.figure is not None:
        from walltime.explanation.page import explanation_figure
        from walltime.report.figure_files import width_of, write_figure

        write_figure(drawn.figure, explanation_figure(explanation, **width_of(drawn.size)))
    if output.report is not None:
        from walltime.explanation.page import explanation_page

        output.write(explanation_page(explanation, command_line()))
    notes = ["Each change is simulated on the whole log: other jobs may start at other times, but runtimes stay the same."]
    notes = notes if explanation.alternatives else []
    notes += [] if explanation.recorded_wait is None else ["To explain the recorded wait, add --recorded."]
    output.show(record | explanation.as_dict() | {"figure": drawn.figure}, [explanation.facts, *caveats(notes)], figure=drawn.figure)


def _explain_recorded(trace: Path, asked: JobOptions, machine: Machine | None, reading: LogOptions, output: PageOutput) -> None:
    """Explain the recorded wait of a job from the log, or list the longest recorded waits."""
    from walltime.explanation import explain_recorded, longest_recorded, recorded_table

    workload, _ = reading.load(trace, machine)
    record = {"trace": str(trace), "sha256": workload.origin.sha256}
    if asked.longest is not None:
        waits = longest_recorded(workload, asked.longest, machine)
        longest = f"The longest recorded wait is {human_time(waits[0].wait)}." if waits else "No job waited."
        table = [recorded_table(waits, f"Longest recorded waits of {workload.origin.site}")] if waits else []
        words = [f"To explain the longest: {next_command('explain', '--job', str(waits[0].job), without=['--longest='])}"] if waits else []
        output.write_blocks("longest recorded waits", workload.origin.site, [longest], [*table, *words], workload)
        output.show(record | {"recorded_waits": [one.as_dict() for one in waits]}, [longest, *table, *words])
        return
    assert asked.job is not None, "or the longest waits were asked for"
    found = explain_recorded(workload, workload.job_number(asked.job), machine)
    answer = f"Job {found.job} waited {human_time(found.wait)} in the log: {found.reason or 'it started at once'}."
    output.write_blocks("why a job waited", workload.origin.site, [answer], [found.facts, found.table()], workload)
    output.show(record | found.as_dict(), [found.facts, found.table()])
