"""The page, tables and Prometheus metrics of predicted start times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from walltime.provenance import provenance
from walltime.report.page import Drawing, Page, Section
from walltime.report.prometheus import label, metrics_text
from walltime.slurm.snapshot_jobs import SnapshotJob
from walltime.slurm.starts.pending import Pending
from walltime.slurm.starts.scores import Score
from walltime.slurm.starts.start_times import StartTime, StartTimes
from walltime.slurm.starts.trials import StartTrial
from walltime.tables import Cell, Row, Table
from walltime.wording import counted, human_percent, human_time, sanitize
from walltime.workload import Workload
from walltime.workload.origin import Origin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEVER, UNKNOWN = "never", "-"
MOST_BARS = 20
"""Number of jobs in the figure, those that start first."""


def ahead(time: int | None, now: int, unknown: str = NEVER) -> str:
    """Return how far ahead a Unix time is, in words.

    >>> ahead(7300, 100), ahead(50, 100), ahead(None, 100)
    ('2 h 00 min', 'now', 'never')
    """
    return unknown if time is None else "now" if time <= now else human_time(time - now)


def clock(time: int | None) -> str:
    """Return a Unix time as UTC, to the minute."""
    return NEVER if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def start_times_table(jobs: Sequence[StartTime], now: int) -> Table:
    """Return the table of jobs for the terminal; `now`: the snapshot's Unix time."""
    rows = [
        [
            one.job.label,
            *(sanitize(one.job.user, 20), sanitize(one.job.partition, 20)),
            f"{one.job.cpus:,}",
            *(ahead(time, now) for time in (one.median, one.early, one.late)),
            ahead(one.slurm, now, UNKNOWN),
            Cell(one.pending.text, look="wrap"),
        ]
        for one in jobs
    ]
    head = ["job", "user", "partition", "processors", "starts in", "earliest", "latest", "Slurm says", "why it waits"]
    return Table(head, rows)


def trials_table(trials: Sequence[StartTrial], now: int) -> Table:
    """Return the table of trial jobs."""
    rows = [[sanitize(one.text), *(ahead(time, now) for time in (one.median, one.early, one.late, one.by_limits))] for one in trials]
    remark = " ".join(f"{sanitize(one.text)}: {one.never}" for one in trials if one.never)
    return Table(["if submitted now", "starts in", "at the earliest", "at the latest", "by limits"], rows, note=remark)


def apart_table(apart: Sequence[tuple[SnapshotJob, Pending]]) -> Table:
    """Return the table of the waiting jobs without a predicted start, with reasons."""
    rows = [[one.label, sanitize(one.user, 20), sanitize(one.partition, 20), why.kind, Cell(why.text, look="wrap")] for one, why in apart]
    return Table(["job", "user", "partition", "kind", "why it waits"], rows, "Waiting jobs without a predicted start", texts=-1)


def apart_record(apart: Sequence[tuple[SnapshotJob, Pending]]) -> dict[str, Any]:
    """Return the waiting jobs without a predicted start for JSON, and those among them that never start."""
    jobs = [one.as_dict() | {"job": one.label, "pending": why.as_dict()} for one, why in apart]
    never = [{"job": one.label, "rule": one.left_out, "reason": one.never} for one, _ in apart if one.never]
    return {"never": never, "apart": jobs}


def scores_table(scores: Sequence[Score]) -> Table:
    """Return the table of scores, with median absolute errors."""
    rows = [
        [
            one.name,
            f"{one.jobs:,}",
            *(human_percent(100 * part) for part in (one.inside, one.before, one.after)),
            *(human_time(time) for time in (one.error, one.error_limits, one.error_slurm, one.width)),
        ]
        for one in scores
    ]
    head = ["predicted start", "jobs", "in interval", "before", "after", "median error", "by limits", "Slurm's", "width"]
    note = (
        "Predicted start: time from the prediction to the likely start. In interval, before, after: shares of jobs that started then. "
        "Median error: of the likely start, of the start by limits and of Slurm's estimate. Width: median width of the intervals."
    )
    return Table(head, rows, note=note)


def answer(times: StartTimes, chosen: Sequence[StartTime] | None = None) -> str:
    """Return the main result in one sentence, for all or for the `chosen` jobs."""
    now, jobs = times.snapshot.time, times.jobs if chosen is None else chosen
    soon = sum(one.median is not None and one.median - now < 3600 for one in jobs)
    sentence = f"{len(jobs):,} {'job is' if len(jobs) == 1 else 'jobs are'} waiting; {soon:,} will probably start within an hour"
    sentence = f"{counted(len(times.snapshot.never), 'waiting job')} can never start; {sentence}" if times.snapshot.never else sentence
    with_end = [one for one in jobs if one.median is not None]
    if not with_end:
        return f"{sentence}."
    last = max(with_end, key=lambda one: (one.median or 0, one.late is None, one.late or 0))
    latest = max((one.slurm for one in jobs if one.slurm is not None), default=None)
    slurm = "" if latest is None else f"; Slurm's latest estimate is {ahead(latest, now)}"
    # with the interval, because the likely time may be a minute away and the interval's end an hour
    interval = f"90 % interval: {ahead(last.early, now)} to {ahead(last.late, now)}"
    return f"{sentence}, the last in {ahead(last.median, now)} ({interval}){slurm}."


def start_times_page(times: StartTimes, history: Workload, settings: Mapping[str, Any] | None = None) -> Page:
    """Return the page of predicted start times; `settings`: additional entries of the provenance, with the command line as `command`."""
    now, name = times.snapshot.time, sanitize(times.snapshot.machine.name)
    record = provenance(history, policy=times.policy, samples=times.samples, seed=times.seed, arrivals=times.arrivals, **(settings or {}))
    rows: list[Row] = [
        [
            one.job.label,
            *(Cell(sanitize(value, 40), look="word") for value in (one.job.user, one.job.name, one.job.partition)),
            f"{one.job.cpus:,}",
            Cell(clock(one.median), small=[f"in {ahead(one.median, now)}"] if one.median is not None and one.median > now else []),
            *(ahead(one.early, now), ahead(one.late, now)),
            *(ahead(one.slurm, now, UNKNOWN), ahead(one.by_limits, now), Cell(one.pending.text, look="wrap")),
        ]
        for one in times.jobs
    ]
    heads = ["job", "user", "name", "partition", "processors", "likely start (UTC)", "at the earliest", "at the latest"]
    drawing = Drawing(
        bars_figure(times),
        "starts",
        "For each waiting job the interval in which it will probably start.",
        "Bars: intervals in which 90 % of such jobs should start. Dots: likely starts. Ticks: Slurm's own estimates.",
        rows=[_row_text(one, now) for one in _drawn(times)],
    )
    return Page(
        "start times of waiting jobs",
        f"Start times of waiting jobs on {name}",
        [answer(times)],
        [
            Section("The next jobs", [drawing]),
            Section(
                "All waiting jobs", [Table([*heads, "Slurm's estimate, in", "by limits, in", "why it waits"], rows, "Start times", texts=4)]
            ),
            *([Section("Waiting jobs without a predicted start", [apart_table(times.apart)])] if times.apart else []),
        ],
        [
            ("taken at", f"{clock(now)} UTC"),
            *((rule.replace("_", " "), f"{count:,}") for rule, count in times.snapshot.totals().items()),
            ("policy", times.policy),
        ],
        [*times.caveats, MEANING],
        record=record,
        numbers=[
            ("jobs that wait", f"{len(times.jobs):,}"),
            ("likely to start within a day", f"{sum(one.median is not None and one.median <= now + 86_400 for one in times.jobs):,}"),
            ("simulations", f"{times.samples:,}"),
        ],
    )


MEANING = (
    "A start time is a prediction, not a promise. It assumes that jobs run as long as similar jobs did, and that jobs arrive as in past "
    "weeks; with a history of starts, it also learns from earlier waits. Node failures, cancellations and changed priorities are unknown. "
    "The reasons of waits are from one plan, in which every job runs as long as similar jobs did at the median, and no job arrives."
)


def _drawn(times: StartTimes) -> list[StartTime]:
    return [one for one in times.jobs if one.median is not None and one.early is not None][:MOST_BARS]


def _row_text(one: StartTime, now: int) -> str:
    """Return the text that the page shows for a job under the pointer."""
    lines = [f"job {one.job.label} of user {sanitize(one.job.user, 40)}", f"likely start {clock(one.median)}, in {ahead(one.median, now)}"]
    lines.append(f"90 %: {ahead(one.early, now)} to {ahead(one.late, now)}")
    lines += [] if one.slurm is None else [f"Slurm's estimate: {ahead(one.slurm, now)}"]
    return "\n".join([*lines, one.pending.text])


def bars_figure(times: StartTimes) -> Figure:
    """Draw the intervals of the jobs that start first."""
    from walltime.report.figures import BLUE, date_ticks, rows_figure

    now, jobs = times.snapshot.time, _drawn(times)
    ends = [(one.late if one.late is not None else one.median) or now for one in jobs]
    right = max([3600, *(end - now for end in ends)])
    ticks = date_ticks(Origin(unix_start_time=0), now, now + right)
    label = f"UTC, from the snapshot at {clock(now)} on"
    with rows_figure([one.job.label for one in jobs], label, 0.17) as (figure, axes):
        for k, (one, end) in enumerate(zip(jobs, ends, strict=True)):
            assert one.early is not None
            assert one.median is not None
            axes.plot([one.early, end], [k, k], color=BLUE, linewidth=2.5, solid_capstyle="butt")
            axes.plot([one.median], [k], marker="o", color=BLUE, markersize=4.5)
            if one.slurm is not None and 0 <= one.slurm - now <= 1.5 * right:
                axes.plot([one.slurm], [k], marker="|", color="#808890", markersize=9)
        axes.set_xlim(left=now)
        axes.set_xticks(list(ticks), list(ticks.values()))
    return figure


def prometheus(times: StartTimes) -> str:
    """Return metrics in the text format of Prometheus, for the textfile collector of its node exporter."""
    now = times.snapshot.time
    starts: list[tuple[str, int | str]] = []
    estimates: list[tuple[str, int | str]] = []
    for one in times.jobs:
        of = {"job": one.job.label, "partition": one.job.partition}
        for quantile, time in (("0.05", one.early), ("0.5", one.median), ("0.95", one.late)):
            starts.append((label(**of, quantile=quantile), "+Inf" if time is None else max(time - now, 0)))
        if one.slurm is not None:
            estimates.append((label(**of), max(one.slurm - now, 0)))
    return metrics_text(
        (
            ("snapshot_time_seconds", "When the snapshot was taken, Unix time.", [("", now)]),
            (
                "jobs",
                "Jobs of the snapshot, by state or reason for leaving them out.",
                [(label(state=state), count) for state, count in times.snapshot.totals().items()],
            ),
            ("start_in_seconds", "The probable remaining wait of a waiting job, by quantile.", starts),
            ("start_in_seconds_slurm", "The same by Slurm's own estimate.", estimates),
        )
    )
