"""`walltime slurm report`: a page of a Slurm cluster's last week, with predicted start times and the side-car."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions
from walltime.cli.output import Output
from walltime.slurm.commands.cluster import FIELDS
from walltime.weekly_report.command import LogArgument, Span, print_timer, read_period, show_period

if TYPE_CHECKING:
    from walltime.tables import Table
    from walltime.weekly_report.period import Period
    from walltime.workload import Workload

SACCT = (
    "TZ=UTC SLURM_TIME_FORMAT=%s sacct --allusers --allocations --duplicates --parsable2 --noconvert --starttime=now-90days --endtime=now "
    "--format={fields} | gzip > jobs.new && mv jobs.new jobs.txt.gz"
)


@manual(
    "guides/waits",
    ("Report on the last whole week of a cluster.", "slurm report jobs.txt.gz --machine machine.toml --report week.html"),
    ("Print a timer that writes the report every Monday.", "slurm report --print-timer"),
)
def report(
    trace: LogArgument = None,
    *,
    span: Span,
    predictions: Annotated[
        Path | None,
        o.option(
            "Report how good the predicted start times of the week were, from the folder of walltime slurm start-times --predictions.",
            group=o.INPUT,
            metavar="FOLDER",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        o.option(
            "Report what the side-car did in the week, from the folder of walltime slurm adjust --ledger.", group=o.INPUT, metavar="FOLDER"
        ),
    ] = None,
    machine_file: o.MachineOption = None,
    reading: LogOptions,
    page: o.ReportOption = None,
    output: Output,
) -> None:
    """Report on last week as walltime report does, with predicted start times and the side-car."""
    if span.timer:
        print_timer("slurm report jobs.txt.gz", output, SACCT.format(fields=FIELDS))
        return
    workload, numbers = read_period(trace, reading, machine_file, span)
    said = [] if predictions is None else _predictions(predictions, workload, numbers)
    effects = [] if ledger is None else _sidecar(ledger, workload, numbers)
    show_period(workload, numbers, page, output, span.verbose, said, effects)


def _predictions(folder: Path, workload: Workload, numbers: Period) -> list[Table | str]:
    """Return a sentence and a table on the accuracy of the predictions made in the period."""
    from walltime.slurm import PredictionLedger
    from walltime.slurm.starts.page import scores_table
    from walltime.slurm.starts.scores import score_outcomes
    from walltime.wording import human_percent

    start = workload.origin.unix_start_time
    if start is None:
        return ["The log has no calendar, so the predictions cannot be compared with it."]
    kept = PredictionLedger(folder)
    kept.complete(workload)
    begin, end = numbers.numbers.begin + start, numbers.numbers.end + start
    outcomes = [one for one in kept.outcomes() if begin <= one.made < end]
    if not outcomes:
        return ["No prediction of this period is of a job that has started since."]
    inside = sum(one.inside for one in outcomes)
    share = human_percent(100 * inside / len(outcomes))
    said = f"{len(outcomes):,} predictions were made of jobs that have started; {share} of these started within the interval (asked: 90 %)."
    return [said, scores_table(score_outcomes(outcomes), {})]


def _sidecar(folder: Path, workload: Workload, numbers: Period) -> list[Table | str]:
    """Return sentences and tables on the side-car in the period, from its ledger and the log."""
    from walltime.slurm.sidecar.ledger import read_events
    from walltime.slurm.sidecar.page import review_sentences, review_tables
    from walltime.slurm.sidecar.review import what_happened

    start = workload.origin.unix_start_time or 0
    review = what_happened(read_events(folder), workload, float(numbers.numbers.begin + start), float(numbers.numbers.end + start))
    return [*review_sentences(review), *review_tables(review, 5)]
