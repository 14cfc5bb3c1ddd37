"""Start times of waiting jobs: a page, rows of text, and metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walltime.files import whole_file
from walltime.provenance import provenance
from walltime.report import shell
from walltime.report.interactive import TABLES, scripts
from walltime.report.tables import provenance_table, table, text
from walltime.report.text import human_percent
from walltime.slurm.starts.scores import Score
from walltime.slurm.starts.start_times import StartTime, StartTimes
from walltime.slurm.starts.trials import Trial
from walltime.wording import harmless, human_time
from walltime.workload import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("job", "user", "partition", "processors", "starts in", "at the earliest", "at the latest", "Slurm says", "by limits")
"""Of the terminal's table; times are lengths from the snapshot on."""
TRY_COLUMNS = ("if submitted now", "starts in", "at the earliest", "at the latest", "by limits")
"""Of the table of jobs that are tried."""
SCORE_COLUMNS = ("start predicted", "jobs", "within", "before", "after", "adjusted: within", "error", "by limits", "Slurm's", "width")
"""Of the table of scores; errors are median absolute ones."""
NEVER, UNKNOWN = "never", "-"
MOST_BARS = 40
"""So many jobs are in the figure, those that start first."""


def ahead(time: int | None, now: int, unknown: str = NEVER) -> str:
    """How far ahead a time lies, in words.

    >>> ahead(7300, 100), ahead(50, 100), ahead(None, 100)
    ('2 h 00 min', 'now', 'never')
    """
    return unknown if time is None else "now" if time <= now else human_time(time - now)


def clock(time: int | None) -> str:
    """A Unix time in UTC, to the minute."""
    return NEVER if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def row(one: StartTime, now: int) -> list[str]:
    """A row of text; the columns are `COLUMNS`."""
    job = one.job
    return [
        job.label,
        harmless(job.user, 20),
        harmless(job.partition, 20),
        f"{job.cpus:,}",
        ahead(one.median, now),
        ahead(one.early, now),
        ahead(one.late, now),
        ahead(one.slurm, now, UNKNOWN),
        ahead(one.by_limits, now),
    ]


def try_row(one: Trial, now: int) -> list[str]:
    """A row of text; the columns are `TRY_COLUMNS`."""
    return [harmless(one.text), *(ahead(time, now) for time in (one.median, one.early, one.late, one.by_limits))]


def score_row(one: Score, adjusted: float | None) -> list[str]:
    """A row of text; the columns are `SCORE_COLUMNS`; `adjusted`: the part within intervals that are adjusted."""
    parts = [human_percent(100 * part) for part in (one.inside, one.before, one.after)]
    times = [human_time(time) for time in (one.error, one.error_limits, one.error_slurm, one.width)]
    return [one.name, f"{one.jobs:,}", *parts, UNKNOWN if adjusted is None else human_percent(100 * adjusted), *times]


def answer(found: StartTimes) -> str:
    """The result in one sentence."""
    now, jobs = found.snapshot.time, found.jobs
    soon = sum(one.median is not None and one.median - now < 3600 for one in jobs)
    sentence = f"{len(jobs):,} {'job waits' if len(jobs) == 1 else 'jobs wait'}; {soon:,} will probably start within an hour"
    last = [one.median for one in jobs if one.median is not None]
    return f"{sentence}, the last after {human_time(max(last) - now)}." if last else f"{sentence}."


def write_start_times_report(path: str | Path, found: StartTimes, history: Workload, *, settings: Mapping[str, Any] | None = None) -> Path:
    """Write the page; `settings`: further entries of the provenance, and as `command` the command line. Raises OutputError."""
    path = Path(path)
    content = render(found, history, settings)
    with whole_file(path) as file:
        file.write(content.encode())
    return path


def render(found: StartTimes, history: Workload, settings: Mapping[str, Any] | None = None) -> str:
    """The page of `write_start_times_report` as a string."""
    now, name = found.snapshot.time, harmless(found.snapshot.machine.name)
    record = provenance(history, policy=found.policy, samples=found.samples, seed=found.seed, arrivals=found.arrivals, **(settings or {}))
    heading = f"When will jobs start on {name}?"
    values = [
        ("taken at", f"{clock(now)} UTC"),
        *((rule.replace("_", " "), f"{count:,}") for rule, count in found.snapshot.totals().items()),
        ("simulations", f"{found.samples:,}"),
        ("policy", found.policy),
    ]
    rows = [
        [
            text(one.job.label),
            *(f'<td class="word">{text(harmless(value, 40))}</td>' for value in (one.job.user, one.job.name, one.job.partition)),
            f"{one.job.cpus:,}",
            *(text(value) for value in (clock(one.median), ahead(one.median, now), ahead(one.early, now), ahead(one.late, now))),
            text(ahead(one.slurm, now, UNKNOWN)),
            text(ahead(one.by_limits, now)),
        ]
        for one in found.jobs
    ]
    heads = ["job", "user", "name", "partition", "processors", "likely start (UTC)", "in", "earliest (5 %)", "latest (95 %)"]
    body = [
        '<p class="eyebrow">walltime: start times of waiting jobs</p>',
        f"<h1>{text(heading)}</h1>",
        f'<p class="answer">{text(answer(found))}</p>',
        shell.facts(values),
        shell.caveats_list([*found.caveats, MEANING]),
        shell.CONTENTS,
        "<h2>The next jobs</h2>",
        shell.figure(
            bars_figure(found),
            "starts",
            "For each waiting job the interval in which it will probably start.",
            "Bars: from the 5 % to the 95 % quantile over the simulations; dots: medians; ticks: Slurm's own estimates.",
        ),
        "<h2>All waiting jobs</h2>",
        table([*heads, "Slurm says, in", "by limits, in"], rows, "Start times", "words4"),
        "<h2>Where this comes from</h2>",
        provenance_table(record),
    ]
    return shell.page(heading, shell.with_contents(body), [scripts(TABLES)], shell.CSS_OF_RESULTS)


MEANING = (
    "A start time is predicted, not promised: jobs are taken to run as long as jobs like them did, and others to come as in the past "
    "weeks. Nobody knows of nodes that will fail, jobs that will be cancelled, or priorities that will be changed."
)


def bars_figure(found: StartTimes) -> Figure:
    """The intervals of the jobs that start first."""
    from matplotlib.figure import Figure

    from walltime.report.figures import BLUE, style

    now = found.snapshot.time
    jobs: Sequence[StartTime] = [one for one in found.jobs if one.median is not None and one.early is not None][:MOST_BARS]
    ends = [(one.late if one.late is not None else one.median) or now for one in jobs]
    right = max([60, *(end - now for end in ends)])
    unit, word = (86400, "days") if right > 2 * 86400 else (3600, "hours") if right > 2 * 3600 else (60, "minutes")
    with style():
        figure = Figure(figsize=(9.2, 0.9 + 0.22 * max(len(jobs), 1)), layout="constrained")
        axes = figure.subplots()
        for k, (one, end) in enumerate(zip(jobs, ends, strict=True)):
            assert one.early is not None
            assert one.median is not None
            axes.plot([(one.early - now) / unit, (end - now) / unit], [k, k], color=BLUE, linewidth=2.5, solid_capstyle="butt")
            axes.plot([(one.median - now) / unit], [k], marker="o", color=BLUE, markersize=4.5)
            if one.slurm is not None and 0 <= one.slurm - now <= 1.5 * right:
                axes.plot([(one.slurm - now) / unit], [k], marker="|", color="#808890", markersize=9)
        axes.set_yticks(range(len(jobs)), [one.job.label for one in jobs])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel(f"{word} from the snapshot on")
        axes.grid(axis="x")
    return figure


def prometheus(found: StartTimes) -> str:
    """Metrics in the text format of Prometheus, for the textfile collector of its node exporter."""
    now = found.snapshot.time
    lines = [
        "# HELP walltime_snapshot_time_seconds When the snapshot was taken, Unix time.",
        "# TYPE walltime_snapshot_time_seconds gauge",
        f"walltime_snapshot_time_seconds {now}",
        "# HELP walltime_jobs Jobs of the snapshot, by what they do or why they are left out.",
        "# TYPE walltime_jobs gauge",
        *(f'walltime_jobs{{state="{_label(state)}"}} {count}' for state, count in found.snapshot.totals().items()),
        "# HELP walltime_start_in_seconds How long a waiting job will probably still wait, by quantile.",
        "# TYPE walltime_start_in_seconds gauge",
    ]
    for one in found.jobs:
        labels = f'job="{_label(one.job.label)}",partition="{_label(one.job.partition)}"'
        for quantile, time in (("0.05", one.early), ("0.5", one.median), ("0.95", one.late)):
            value = "+Inf" if time is None else str(max(time - now, 0))
            lines.append(f'walltime_start_in_seconds{{{labels},quantile="{quantile}"}} {value}')
    lines += ["# HELP walltime_start_in_seconds_slurm The same by Slurm's own estimate.", "# TYPE walltime_start_in_seconds_slurm gauge"]
    for one in found.jobs:
        if one.slurm is not None:
            labels = f'job="{_label(one.job.label)}",partition="{_label(one.job.partition)}"'
            lines.append(f"walltime_start_in_seconds_slurm{{{labels}}} {max(one.slurm - now, 0)}")
    return "\n".join(lines) + "\n"


def write_prometheus(path: str | Path, found: StartTimes) -> None:
    """Write the metrics; the file is there as a whole or not at all. Raises OutputError."""
    with whole_file(path) as file:
        file.write(prometheus(found).encode())


def _label(value: str) -> str:
    """A text as the value of a label."""
    return harmless(value).replace("\\", "\\\\").replace('"', '\\"')
