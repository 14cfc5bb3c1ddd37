"""The report page and the tables on users' walltimes: requested and used hours, the gain from adjusted walltimes, and advice."""

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from walltime.accuracy.accuracy import COLUMNS, WalltimeAccuracy, failed_jobs
from walltime.accuracy.adjusted import MEANINGS, MOST_BAD, MOST_UNDER, AdjustedWalltimes
from walltime.accuracy.advice import KindAdvice
from walltime.accuracy.requests import Judgement, judge_requests
from walltime.comparison.caveats import caveats_of
from walltime.metrics.estimates import FAILED
from walltime.metrics.intervals import SHOWN_LEVEL
from walltime.provenance import provenance
from walltime.report.page import Block, Code, Drawing, Fold, Group, Heading, Page, Paragraph, Section, note
from walltime.schedule.groups import UNKNOWN, alike_columns
from walltime.tables import Cell, Row, Table, hours_cell, time_cell
from walltime.wording import UNDEFINED, counted, hours, human_difference, human_number, human_percent, human_time, listed, numbered

Rows = Sequence[Mapping[str, Any]]
MUCH_OVER = 0.01
"""Hours used beyond the requests are reported if they exceed this share of the requested hours."""
MOST_NAMED = 5
"""Largest number of users named in a sentence."""
MOST_DRAWN = 10
"""Largest number of users in a figure, so that it is legible on the first screen."""
MEANING = (
    "Hours are processor-hours. Used: hours of the runtimes over hours of the requests. Accuracy of a request: the smaller of runtime "
    "and request over the larger (tang13, eq. 3), averaged over jobs, so small and large jobs count alike. All used: 99 % or more."
)


def accuracy_page(
    accuracy: WalltimeAccuracy,
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    log: Sequence[str] | None = None,
) -> Page:
    """Return the report page of an analysis by `estimate_accuracy`.

    `settings`: further entries of the provenance record, such as `command`. `log`: the log and the options with which it is read, used
    in the commands on the page; by default its name.
    """
    workload, t = accuracy.workload, accuracy.total
    record, others = provenance(workload, **(settings or {})), judged_table(judge_requests(workload))
    sections = [_users(accuracy), _ends(accuracy), _requests(accuracy), *([Section(others.title, [others])] if others else [])]
    return Page(
        "requested and used walltimes",
        title or f"Requested walltimes on {workload.origin.site}",
        [answer(accuracy)],
        [*sections, *_over_time(accuracy), *_adjusted(accuracy), *_advice(accuracy, log)],
        [
            ("log", workload.origin.name),
            ("jobs with a limit", f"{t.jobs:,}"),
            ("processors", f"{workload.machine_procs:,}"),
            ("median accuracy", _share(t.median_accuracy).text),
        ],
        caveats(accuracy),
        [
            ("requested hours", hours(t.asked_hours)),
            ("unused hours", hours(t.unused_hours)),
            ("mean accuracy", _share(t.mean_accuracy).text),
        ],
        workload=workload,
        record=record,
        data=record | {"accuracy": as_record(accuracy)},
    )


def answer(accuracy: WalltimeAccuracy) -> str:
    """Return the result in a few sentences."""
    t = accuracy.total
    much = t.over_hours > MUCH_OVER * t.asked_hours
    beyond = f", and {hours(t.over_hours)} are used beyond the requests" if much else ""
    text = (
        f"Users of {accuracy.workload.origin.site} request {hours(t.asked_hours)} processor-hours and use {_share(t.used_share).text} of "
        f"them; {hours(t.unused_hours)} are not used{beyond}. "
        f"The mean accuracy of a request is {_share(t.mean_accuracy).text}."
    )
    if accuracy.adjusted is None or len(accuracy.adjusted.schedules) < 2:
        return text
    rows = accuracy.adjusted.rows()
    row, first = rows[1], rows[0]["mean_wait"]
    if not first:
        return f"{text} In the simulation no job waits, so adjusted walltimes gain nothing."
    text += " In a simulation, walltimes adjusted to the runtimes of earlier jobs"
    if row["wait_clear"] is False:
        text += f" make no clear difference to the mean wait of {human_time(first)}"
        clear = [one for one in rows[2:] if one["wait_clear"]]
        if not clear:
            return f"{text}."
        best = min(clear, key=lambda one: one["wait_change"])
        short = f"are too short for {human_percent(best['under'])} of the jobs"
        change = f"{'shorten' if best['wait_change'] < 0 else 'lengthen'} it by {human_percent(abs(best['wait_change']))}"
        return f"{text} in the scheme '{row['what']}'. Those of '{best['what']}' {change}, but {short}."
    verb = "shorten" if row["wait_change"] < 0 else "lengthen"
    change = human_difference(row["wait_change"]) + ("" if row["wait_clear"] else "; the effect of chance was not measured")
    return f"{text} {verb} the mean wait from {human_time(first)} to {human_time(row['mean_wait'])} ({change})."


def as_record(accuracy: WalltimeAccuracy) -> dict[str, Any]:
    """Return the analysis as a dictionary for JSON, with all caveats."""
    return accuracy.as_dict() | {"caveats": caveats(accuracy)}


def caveats(accuracy: WalltimeAccuracy) -> list[str]:
    """Return the caveats of the analysis, and of the simulation with the users' estimates, such as a saturated machine."""
    if accuracy.adjusted is None:
        return list(accuracy.caveats)
    simulated = caveats_of(accuracy.adjusted.schedules[:1], "none", "user")
    return [*accuracy.caveats, *(f"Simulations: {caveat[0].lower()}{caveat[1:]}" for caveat in simulated if "measured:" not in caveat)]


def _users(accuracy: WalltimeAccuracy) -> Section:
    """Return the section on requests by user: tables by user, account, partition and queue, and a figure of the largest users."""
    from walltime.accuracy.figures import hours_figure  # matplotlib is slow to load; only a page needs it

    blocks: list[Block] = [note(MEANING)]
    named = [row for row in accuracy.groups.get("user", ()) if row["group"] not in ("other users", UNKNOWN)]
    if named:
        worst = max(named, key=lambda row: row["unused_hours"])
        alternative = (
            f"Bars of processor-hours: the {counted(min(len(named), MOST_DRAWN), 'user')} who request the most. Most unused hours: "
            f"{worst['group']}, {hours(worst['unused_hours'])} of {hours(worst['asked_hours'])}. The numbers are in the table below."
        )
        caption = "The users who request the most hours, with the share used at the right of each bar. The table below has more users."
        blocks.append(Drawing(hours_figure(named[:MOST_DRAWN]), "users", alternative, caption))
    if accuracy.advice:
        users = "; ".join(f"{numbered('user', one.user)} {hours(one.unused_hours)}" for one in accuracy.advice[:MOST_NAMED])
        blocks.append(Paragraph(f"Users with the most unused hours: {users}."))
    for by, words in groupings(accuracy).items():
        if by in COLUMNS:
            blocks += [Heading(f"By {words}"), use_table(accuracy.groups[by], f"By {words}", by)]
    return Section("Requests by user", blocks)


def groupings(accuracy: WalltimeAccuracy) -> dict[str, str]:
    """Return the names of the groupings to show (by user, and those with several groups); equal ones share a name: `user and account`."""
    names = {column: by for by, column in COLUMNS.items()}
    alike = [[names[column] for column in columns] for columns in alike_columns(accuracy.jobs, names)]
    words = {by[0]: listed(by) for by in alike} | {by: by for by in accuracy.groups if by not in COLUMNS}
    return {by: text for by, text in words.items() if by == "user" or len(accuracy.groups[by]) > 1}


def _ends(accuracy: WalltimeAccuracy) -> Section:
    known = any(row["failed"] is not None for row in accuracy.ends)
    head = ["end of the job", "jobs", "of all jobs", "requested hours", "unused", "of all unused", *(["failed status"] if known else [])]
    whole = max(accuracy.total.unused_hours, 1e-9)
    rows = []
    for row in accuracy.ends:
        counts = [row["group"], f"{row['jobs']:,}", human_percent(100 * row["jobs"] / accuracy.total.jobs)]
        unused = [hours(row["asked_hours"]), hours(row["unused_hours"]), human_percent(100 * row["unused_hours"] / whole)]
        rows.append([*counts, *unused, *([f"{row['failed']:,}"] if known else [])])
    remark = (
        "Jobs that reach their limits are usually killed there: the limit was too short, or the job saves checkpoints and continues in "
        "another job. Many jobs that end within a minute have failed at once, so their requests say little about their runtimes."
    )
    failed = f"Failed status: {FAILED} in the log, which in some logs includes jobs killed at their limit."
    blocks: list[Block] = [Table(head, rows, "Ends of jobs, by the used share of their requests", remark)]
    blocks += [note(failed)] if known else []
    if accuracy.states:
        blocks += [Heading("By recorded state"), use_table(accuracy.states, "Jobs by recorded state", "state")]
    return Section("How jobs end", blocks)


def _requests(accuracy: WalltimeAccuracy) -> Section:
    """Return the section on the accuracy of requests: a figure with four panels, and tables by size and requested time."""
    from walltime.accuracy.estimate_figures import estimates_figure
    from walltime.estimates import largest_estimate

    jobs, t = accuracy.jobs, accuracy.total
    drawn = estimates_figure(jobs.runtime, jobs.requested, killed=failed_jobs(jobs), emax=largest_estimate(jobs.requested))
    alternative = (
        f"Four panels: the share of the request that jobs use ({_share(t.at_limit).text} use all of it, {_share(t.under_tenth).text} less "
        "than a tenth); runtime against request; the distributions of both; and accuracy by runtime."
    )
    caption = (
        "Share of the request used (as Fig. 8 of mualem01; killed: status 0), runtime against request, the distributions of both "
        "(as Fig. 11 of tsafrir06), and accuracy from the shortest to the longest jobs (as Fig. 12 of tsafrir06)."
    )
    by_size: list[Block] = [Heading("By size"), use_table(accuracy.groups["size"], "By size", "processors")]
    by_length: list[Block] = [Heading("By length"), use_table(accuracy.groups["length"], "By requested time", "request")]
    return Section("Accuracy of the requests", [Drawing(drawn, "requests", alternative, caption), *by_size, *by_length])


def ratio_percent(percent: float) -> str:
    """Format a percentage of an amount that may be almost 0; beyond 10,000 % in either direction, return only this bound.

    >>> ratio_percent(72.4), ratio_percent(130972.0), ratio_percent(-65436.0)
    ('72 %', '> 10,000 %', '< -10,000 %')
    """
    return human_percent(percent) if not abs(percent) > 10_000 else "> 10,000 %" if percent > 0 else "< -10,000 %"


def judged_table(judged: Sequence[Judgement]) -> Table | None:
    """Return a table that compares requests and suggestions of other resources with the needs; None if the log does not record the use."""
    rows: list[Row] = []
    for one in judged:
        shares = ((one.under, one.under_low, one.under_high), (one.over, one.over_low, one.over_high))
        cells = []
        for middle, low, high in shares:
            ends = [] if math.isnan(low) else [f"{ratio_percent(max(low, 0))} to {ratio_percent(high)}"]
            cells.append(Cell(ratio_percent(middle), ends, value=middle))
        amounts = "requests" if math.isnan(one.risk) else f"suggestions, risk {one.risk:g} %"
        rows.append([{"cores": "processors", "gpus": "GPUs"}.get(one.resource, one.resource), amounts, f"{one.jobs:,}", *cells])
    note = (
        "Each job's suggestion comes from the jobs that ended before its submission. Under-allocated: share of jobs that needed more. "
        "Over-allocated: unused amounts of the other jobs, relative to what they needed. Small print: "
        f"{SHOWN_LEVEL} interval under sampling of weeks, for logs of 20 weeks or more."
    )
    head = ["resource", "amounts", "jobs", "under-allocated", "over-allocated"]
    return Table(head, rows, "Requests and suggestions of other resources", note, texts=2) if rows else None


def _over_time(accuracy: WalltimeAccuracy) -> list[Section]:
    rows = accuracy.groups["time"]
    if len(rows) < 2:
        return []
    from walltime.accuracy.figures import time_figure

    low, high = (pick(rows, key=lambda row: row["used_share"] or 0.0) for pick in (min, max))
    first, last = rows[0]["group"], rows[-1]["group"]
    alternative = (
        f"Bars of the hours used and not used, and lines of the share used and of the mean accuracy, {first} to {last}. Share used: lowest "
        f"{_share(low['used_share']).text} ({low['group']}), highest {_share(high['used_share']).text} ({high['group']})."
    )
    drawing = Drawing(time_figure(rows), "time", alternative, "Jobs by time of submission.")
    folded = Fold(f"{len(rows)} periods, {first} to {last}", [use_table(rows, "Over time", "submitted")])
    return [Section("Over time", [drawing, folded])]


def _adjusted(accuracy: WalltimeAccuracy) -> list[Section]:
    """Return the section on the simulations with adjusted walltimes, and on the replay that selected the schemes."""
    a = accuracy.adjusted
    if a is None:
        return []
    schedulers: list[Row] = [
        [row["what"], Cell(row["policy"], look="code"), Cell(MEANINGS.get(row["what"], ""), look="wrap")] for row in a.rows()
    ]
    method = (
        f"A replay of the log without scheduling selected a few of {len(a.replays):,} schemes, which differ in the similarity of jobs, "
        "the percentile, the months of history and the threshold. In selective schemes, the scheduler plans with adjusted walltimes while "
        "a job waits, and with the user's request once it runs (tang13, section 6). The user's request remains the kill limit."
    )
    table = Table(["", "scheduler", "description"], schedulers, "Schedulers", texts=-1)
    blocks: list[Block] = [note(method), adjusted_table(a), Heading("Simulated schedulers"), table]
    blocks += [Heading("Schemes in the replay"), *_schemes(a)]
    return [Section("Gain from adjusted walltimes", blocks)]


def adjusted_table(a: AdjustedWalltimes) -> Table:
    """Return a table of the simulations with the users' and with adjusted walltimes."""
    rows: list[Row] = []
    for k, row in enumerate(a.rows()):
        change = human_difference(row["wait_change"])
        small = [f"{change}, unclear" if change and row["wait_clear"] is False else change] if k else []
        if k and row["wait_difference"] is not None:
            sign = "-" if row["wait_difference"] < 0 else "+"
            small.append(f"{sign}{human_time(abs(row['wait_difference']))} ± {human_time(row['wait_scatter'])}")
        slowdown, slower = row["mean_bounded_slowdown"], [human_difference(row["slowdown_change"])] if k else []
        waits = [Cell(human_time(row["mean_wait"]), list(filter(None, small)), value=row["mean_wait"])]
        waits += [time_cell(row[name]) for name in ("median_wait", "p90_wait")]
        slowdowns = Cell(human_number(slowdown), list(filter(None, slower)), value=slowdown)
        shares = [_share(row[name]) for name in ("utilization", "accuracy")]
        rows.append([row["what"], *waits, slowdowns, *shares, *(human_percent(row[name]) for name in ("adjusted", "under", "bad"))])
    remark = (
        "Small print: change from the users' requests. Accuracy: accuracy of the walltimes with which the scheduler plans. Under, 30 min "
        "under: jobs whose adjusted walltime is too short, or too short by at least 30 min."
    )
    if a.spread is not None:
        remark += (
            f" Each simulation was repeated on {a.spread.copies} copies of the log with submissions shifted by up to {a.spread.seconds} "
            f"s. The mean change over the log and the copies follows, with its {SHOWN_LEVEL} prediction interval for one more copy; a "
            "change within this interval is marked unclear. A clear change on this log may differ on other logs."
        )
    head = ["simulated", "mean wait", "median", "90 %", "bounded slowdown", "utilization", "accuracy"]
    head += ["jobs adjusted", "under", "30 min under"]
    return Table(head, rows, "Gain from adjusted walltimes, simulated", remark, look="overview")


def _schemes(a: AdjustedWalltimes) -> list[Block]:
    """Return the figure of all schemes and a table of the most accurate ones."""
    from walltime.accuracy.figures import schemes_figure

    tried = a.schemes(len(a.replays))
    best: list[Row] = [
        [row["predictor"], _share(row["accuracy"]), *(human_percent(row[name]) for name in ("not_adjusted", "under", "bad"))]
        for row in a.schemes()
    ]
    own = a.replays[0].summary().mean_accuracy_of_requests
    chosen = [s.predictions.prediction.predictor.label for s in a.schedules if s.predictions is not None]
    alternative = (
        "A dot for each of the schemes: mean accuracy over the share of jobs underestimated. The most accurate one: "
        f"{tried[0]['predictor']}, {_share(tried[0]['accuracy']).text}, {human_percent(tried[0]['under'])} underestimated; "
        f"the users' requests: {_share(own).text}."
    )
    caption = f"All schemes tried. Few underestimates: at most {MOST_UNDER:g} % of the jobs, and at most {MOST_BAD:g} % by 30 min or more."
    head = ["predictor", "accuracy", "not adjusted", "under", "30 min under"]
    return [
        Group([Drawing(schemes_figure(tried, own, chosen), "schemes", alternative, caption, wide=False)], "half"),
        Fold("Most accurate schemes", [Table(head, best, "Most accurate schemes of the replay")]),
    ]


def _advice(accuracy: WalltimeAccuracy, log: Sequence[str] | None) -> list[Section]:
    """Return the section with the advised requests for the users with the most unused hours."""
    if not accuracy.advice:
        return []
    before = ["walltime", "suggest", *(log or [accuracy.workload.origin.name])]
    lines = [shlex.join([*before, *one.options]) for one in accuracy.advice if one.options and one.kinds]
    blocks: list[Block] = [advice_table(accuracy)]
    if lines:
        blocks += [Heading("More on each user"), Code("\n".join(lines))]
    if any(one.options is None for one in accuracy.advice):
        blocks.append(note("The names of some users or jobs contain characters that cannot be typed, so they have no command."))
    return [Section("Advice for the largest users", blocks)]


def advice_table(accuracy: WalltimeAccuracy) -> Table:
    """Return a table of advice for the users with the most unused hours, for the kind of job that would save most."""
    rows: list[Row] = []
    for one in accuracy.advice:
        cells = [one.user, hours(one.unused_hours)]
        if not one.kinds:
            rows.append([*cells, "too few similar jobs", f"{one.jobs:,}", *[UNDEFINED] * 2, "no change", UNDEFINED, UNDEFINED])
            continue
        kind = one.kinds[0]
        times = [time_cell(value) for value in (kind.median_runtime, kind.median_request)]
        ask = Cell("no change", [kind.why]) if kind.walltime is None else time_cell(kind.walltime)
        killed = UNDEFINED if math.isnan(kind.hindsight) else human_percent(kind.hindsight)
        less = hours_cell(kind.less_hours) if kind.walltime is not None else Cell(UNDEFINED)
        rows.append([*cells, Cell(kind_of(kind), look="word long"), f"{kind.jobs:,}", *times, ask, killed, less])
    risk = accuracy.advice[0].risk if accuracy.advice else 0.0
    remark = (
        "For each user, the kind of job (name, processors, queue) that would save the most hours, and the shortest request that at most "
        f"{risk:g} % of these jobs outran. Ran, requested: medians. Backtest: share of jobs killed if each had requested what its "
        "predecessors suggest. Hours saved: by jobs that requested more than this; all other jobs keep their requests."
    )
    head = ["user", "unused hours", "kind of job", "jobs", "ran", "requested", "should request", "backtest", "hours saved"]
    return Table(head, rows, "Advice for the users with the most unused hours", remark)


def kind_of(one: KindAdvice, show: Callable[[int], str] = human_time) -> str:
    """Describe a kind of jobs by their common values; `show` formats a requested time, s."""
    words = {"procs": lambda n: f"{n} processor{'' if n == '1' else 's'}", "requested": lambda n: f"requesting {show(int(n))}"}
    words["executable"] = lambda name: f"job {name}"
    return ", ".join(words[column](value) if column in words else f"{column} {value}" for column, value in one.kind.items()) or "all jobs"


def use_table(rows: Rows, title: str, first: str) -> Table:
    """Return a table of groups of jobs with their hours and accuracies; `first`: head of the first column."""
    lines: list[Row] = []
    for row in rows:
        cells = [hours_cell(row["asked_hours"]), _share(row["used_share"]), hours_cell(row["unused_hours"])]
        shares = (_share(row.get(name)) for name in ("share_of_unused", "mean_accuracy", "at_limit", "under_tenth"))
        lines.append([str(row["group"]), f"{row['jobs']:,}", *cells, *shares])
    head = [first, "jobs", "requested hours", "used", "unused", "of all unused", "mean accuracy", "all used", "under 10 % used"]
    return Table(head, lines, title, look="months")


def _share(share: float | None) -> Cell:
    return Cell(UNDEFINED) if share is None else Cell(human_percent(100 * share), value=share)
