"""The page on users' walltimes: what they ask for and use, what adjusted ones would gain, and what to ask for."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from walltime.files import whole_file
from walltime.metrics.estimates import FAILED
from walltime.metrics.intervals import SHOWN_LEVEL
from walltime.provenance import provenance
from walltime.report.caveats import caveats_of
from walltime.report.interactive import TABLES, scripts
from walltime.report.shell import CONTENTS, CSS_OF_RESULTS, caveats_list, facts, figure, page, with_contents
from walltime.report.tables import provenance_table, rules_table, table, text, unbroken
from walltime.report.text import ELSEWHERE, UNDEFINED, human_difference, human_number, human_percent, human_time
from walltime.schedule.groups import UNKNOWN
from walltime.simulation.accuracy import WalltimeAccuracy
from walltime.simulation.adjusted import MEANINGS, MOST_BAD, MOST_UNDER, AdjustedWalltimes
from walltime.simulation.advice import RISK, UserAdvice

Rows = Sequence[Mapping[str, Any]]
HEAD = ("jobs", "hours asked for", "used", "not used", "of all hours not used", "mean accuracy", "all used", "under 10 % used")
CSS = ".half { max-width: 34rem; }\ntd code { white-space: normal; overflow-wrap: anywhere; }\n"
MUCH_OVER = 0.01
"""Share of the hours asked for from which hours beyond the requests are mentioned."""
MOST_NAMED = 5
"""Users named in a sentence."""
KINDS = {"user": "By user", "account": "By account", "partition": "By partition", "queue": "By queue"}
MEANING = (
    "Hours are processor-hours: request or runtime, times processors; used: their sum over that of the requests. Accuracy of a request: "
    "the smaller of runtime and request over the larger (tang13, eq. 3), the mean over jobs, so that a small job counts as much as a large "
    "one. All used: 99 % or more."
)


def write_accuracy_report(
    path: str | Path,
    found: WalltimeAccuracy,
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    log: Sequence[str] | None = None,
) -> Path:
    """Write a self-contained page of `walltime_accuracy`; returns its path.

    `settings`: further entries of the provenance, and as `command` the command line. `log`: the log and how it is read, as words of a
    command line, for the commands that the page shows; by default its name. Raises OutputError if it cannot be written.
    """
    path = Path(path)
    content = render(found, title=title, settings=settings, log=log)
    with whole_file(path) as file:
        file.write(content.encode())
    return path


def render(
    found: WalltimeAccuracy,
    *,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    log: Sequence[str] | None = None,
) -> str:
    """The page of `write_accuracy_report` as a string."""
    workload, t = found.workload, found.total
    heading = title or f"Walltimes asked for on {workload.origin.name}"
    record = provenance(workload, **(settings or {}))
    command = record["settings"].get("command")
    about = [
        ("log", workload.origin.name),
        ("jobs with a limit", f"{t.jobs:,}"),
        ("processors", f"{workload.machine_procs:,}"),
        ("hours asked for", hours(t.asked_hours)),
        ("hours not used", hours(t.unused_hours)),
        ("mean accuracy", _share(t.mean_accuracy)),
        ("median accuracy", _share(t.median_accuracy)),
    ]
    body = [
        '<p class="eyebrow">walltime: what users ask for, and what they use</p>',
        f"<h1>{text(heading)}</h1>",
        f'<p class="answer">{unbroken(text(answer(found)))}</p>',
        facts(about),
        caveats_list(caveats(found)),
        CONTENTS,
        *_who(found),
        *_ends(found),
        *_requests(found),
        *_over_time(found),
        *_adjusted(found),
        *_advice(found, log),
        "<h2>What was dropped or changed</h2>",
        rules_table(workload),
        "<h2>Where this comes from</h2>",
        provenance_table(record),
        f'<h3>To repeat it</h3>\n<pre tabindex="0">{text(_line(command))}</pre>' if command else "",
        '<details><summary>The same as JSON</summary><pre tabindex="0">'
        f"{text(json.dumps(record | {'accuracy': as_record(found)}, indent=2, ensure_ascii=False))}</pre></details>",
    ]
    return page(heading, with_contents(filter(None, body)), [scripts(TABLES)], CSS_OF_RESULTS + CSS)


def answer(found: WalltimeAccuracy) -> str:
    """The result in a few sentences."""
    t = found.total
    much = t.over_hours > MUCH_OVER * t.asked_hours
    beyond = f", and {hours(t.over_hours)} used beyond the requests" if much else ""
    told = (
        f"Users of {found.workload.origin.name} ask for {hours(t.asked_hours)} processor-hours and use {_share(t.used_share)} of them: "
        f"{hours(t.unused_hours)} are asked for and not used{beyond}. The mean accuracy of a request is {_share(t.mean_accuracy)}."
    )
    if found.adjusted is None or len(found.adjusted.schedules) < 2:
        return told
    rows = found.adjusted.rows()
    row, first = rows[1], rows[0]["mean_wait"]
    if not first:
        return f"{told} In a simulation nobody waits, so adjusted walltimes gain nothing."
    if row["wait_clear"] is False:
        same = f"make no clear difference to the mean wait of {human_time(first)}"
        return f"{told} In a simulation walltimes adjusted to what earlier jobs used {same}."
    verb = "shorten" if row["wait_change"] < 0 else "lengthen"
    sure = "" if row["wait_clear"] else "; whether by more than chance was not measured"
    return (
        f"{told} In a simulation walltimes adjusted to what earlier jobs used {verb} the mean wait from {human_time(first)} to "
        f"{human_time(row['mean_wait'])} ({human_difference(row['wait_change'])}{sure})."
    )


def as_record(found: WalltimeAccuracy) -> dict[str, Any]:
    """The analysis ready for JSON, with all caveats."""
    return found.as_dict() | {"caveats": caveats(found)}


def caveats(found: WalltimeAccuracy) -> list[str]:
    """The caveats of the analysis, and those of the simulation with the users' estimates, such as a saturated machine."""
    if found.adjusted is None:
        return list(found.caveats)
    simulated = caveats_of(found.adjusted.schedules[:1], "none", "user")
    return [*found.caveats, *(f"Of the simulations: {said[0].lower()}{said[1:]}" for said in simulated if "measured:" not in said)]


def _who(found: WalltimeAccuracy) -> list[str]:
    """Tables by user, account, partition and queue, and a figure of the largest users."""
    from walltime.report.accuracy_figures import hours_figure  # matplotlib is slow to load; only a page needs it

    parts = ["<h2>Who asks for how much</h2>", f'<p class="note">{text(MEANING)}</p>']
    rows = found.groups.get("user", ())
    named = [row for row in rows if row["group"] not in ("other users", UNKNOWN)]
    if named:
        worst = max(named, key=lambda row: row["unused_hours"])
        alternative = (
            f"Bars of the processor-hours of the {len(named)} users that ask for most. The largest part not used: "
            f"{worst['group']}, {hours(worst['unused_hours'])} of {hours(worst['asked_hours'])}. The numbers are in the table below."
        )
        caption = "The users that ask for most; all others are in the table below. At the right of each bar: the share used."
        parts.append(figure(hours_figure(named), "users", alternative, caption))
    if found.advice:
        who = "; ".join(f"user {one.user} {hours(one.unused_hours)}" for one in found.advice[:MOST_NAMED])
        parts.append(f"<p>{unbroken(text(f'Could give back most, in hours not used: {who}.'))}</p>")
    for by, heading in KINDS.items():
        if by in found.groups and (by == "user" or len(found.groups[by]) > 1):
            parts += [f"<h3>{heading}</h3>", _table(found.groups[by], heading, by)]
    return parts


def _ends(found: WalltimeAccuracy) -> list[str]:
    """How jobs end."""
    told = any(row["failed"] is not None for row in found.ends)
    head = ["how", "jobs", "of the jobs", "hours asked for", "not used", "of all hours not used", *(["failed by the log"] if told else [])]
    whole = max(found.total.unused_hours, 1e-9)
    rows = []
    for row in found.ends:
        cells = [text(row["group"]), f"{row['jobs']:,}", human_percent(100 * row["jobs"] / found.total.jobs)]
        cells += [hours(row["asked_hours"]), hours(row["unused_hours"]), human_percent(100 * row["unused_hours"] / whole)]
        rows.append(cells + ([f"{row['failed']:,}"] if told else []))
    parts = ["<h2>How jobs end</h2>", table(head, rows, "How jobs end, by what they use of their requests")]
    note = (
        "Jobs that reach their limits are ended there, as a rule: to them the limit is too short, or they save their state and go on. Many "
        "jobs that end within a minute fail at once: what these ask for does not say how long they would have run."
    )
    parts.append(f'<p class="note">{text(note)}</p>')
    if told:
        parts.append(
            f'<p class="note">Failed: status {FAILED} in the log, which some logs also give to jobs that were ended at the limit.</p>'
        )
    if found.states:
        parts += ["<h3>By what the log says</h3>", _table(found.states, "Jobs by what the log says of their ends", "state")]
    return parts


def _requests(found: WalltimeAccuracy) -> list[str]:
    """The four panels on estimates, and tables by size and length."""
    from walltime.estimates import largest_estimate
    from walltime.report.estimates import estimates_figure

    jobs = found.jobs
    status = jobs.columns.get("status")
    failed = None if status is None or not (status == FAILED).any() else status == FAILED
    drawn = estimates_figure(jobs.runtime, jobs.requested, killed=failed, emax=largest_estimate(jobs.requested))
    t = found.total
    alternative = (
        f"Four panels: the share of the request that jobs use ({_share(t.at_limit)} use all of it, {_share(t.under_tenth)} less than a "
        "tenth); runtime against request; the distributions of both; and accuracy by runtime."
    )
    caption = (
        "Share of the request used (mualem01, Fig. 8; killed: status 0), runtime against request, the distributions of both "
        "(tsafrir06, Fig. 11), and accuracy from the shortest to the longest jobs (Fig. 12 there)."
    )
    return [
        "<h2>How accurate the requests are</h2>",
        figure(drawn, "requests", alternative, caption),
        "<h3>By size</h3>",
        _table(found.groups["size"], "By size", "processors", "months"),
        "<h3>By length</h3>",
        _table(found.groups["length"], "By requested time", "request", "months"),
    ]


def _over_time(found: WalltimeAccuracy) -> list[str]:
    """The picture over time, and its table."""
    rows = found.groups["time"]
    if len(rows) < 2:
        return []
    from walltime.report.accuracy_figures import time_figure

    low, high = (pick((row for row in rows), key=lambda row: row["used_share"] or 0.0) for pick in (min, max))
    alternative = (
        f"Bars of the hours used and not used, and lines of the share used and of the mean accuracy, {rows[0]['group']} to "
        f"{rows[-1]['group']}. Share used: lowest {_share(low['used_share'])} ({low['group']}), highest {_share(high['used_share'])} "
        f"({high['group']})."
    )
    inside = _table(rows, "Over time", "submitted", "months")
    return [
        "<h2>Over time</h2>",
        figure(time_figure(rows), "time", alternative, "Jobs by the time of their submission."),
        f"<details><summary>{len(rows)} periods, {text(rows[0]['group'])} to {text(rows[-1]['group'])}</summary>{inside}</details>",
    ]


def _adjusted(found: WalltimeAccuracy) -> list[str]:
    """The simulations, and the replay by which their schemes were chosen."""
    a = found.adjusted
    if a is None:
        return []
    from walltime.report.accuracy_figures import schemes_figure

    simulated = a.rows()
    labels = [[text(row["what"]), f"<code>{text(row['policy'])}</code>", text(MEANINGS.get(row["what"], ""))] for row in simulated]
    why = (
        f"Of {len(a.replays):,} schemes (which jobs are alike, percentile, months of history, threshold) a few were chosen by replaying "
        "the log without scheduling. Selective: adjusted walltimes are believed while a job waits, the user's own once it runs (tang13, "
        "section 6). Nobody is killed at an adjusted walltime: the user's request stays the limit."
    )
    said = (
        "Small print: change from the users' estimates. Accuracy: of the walltimes that the scheduler plans with. Under, 30 min under: "
        "jobs whose adjusted walltime is too short, and by that much."
    )
    if a.spread is not None:
        said += (
            f" Each simulation was repeated on {a.spread.copies} copies of the log whose submissions are shaken by up to "
            f"{a.spread.seconds} s. Below the change is its mean over the log and the copies, and the distance within which a further copy "
            f"would lie with a probability of {SHOWN_LEVEL}; a change smaller than that is called unclear. {ELSEWHERE}"
        )
    return [
        "<h2>What adjusted walltimes would gain</h2>",
        f'<p class="note">{text(why)}</p>',
        table(SIMULATED, _simulated(simulated), "Simulations with the users' and with adjusted walltimes", "overview"),
        f'<p class="note">{text(said)}</p>',
        "<h3>What was simulated</h3>",
        table(
            ["", "scheduler", "what it is"], [[*row[:2], f'<td class="word wrap">{row[2]}</td>'] for row in labels], "Schedulers", "words"
        ),
        "<h3>The schemes in the replay</h3>",
        *_schemes(a, schemes_figure),
    ]


SIMULATED = (
    "simulated",
    "mean wait",
    "median",
    "90 %",
    "bounded slowdown",
    "utilization",
    "accuracy",
    "jobs adjusted",
    "under",
    "30 min under",
)


def _simulated(rows: Rows) -> list[list[str]]:
    """The cells of the simulations."""
    lines = []
    for k, row in enumerate(rows):
        wait = f"<small>{text(change(row))}</small>{_scatter(row)}" if k else ""
        slower = f"<small>{human_difference(row['slowdown_change'])}</small>" if k else ""
        cells = [text(row["what"]), f'<td data-v="{row["mean_wait"]:.6g}">{human_time(row["mean_wait"])}{wait}</td>']
        cells += [human_time(row["median_wait"]), human_time(row["p90_wait"])]
        cells += [f'<td data-v="{row["mean_bounded_slowdown"]:.6g}">{human_number(row["mean_bounded_slowdown"])}{slower}</td>']
        cells += [_share(row["utilization"]), _share(row["accuracy"]), *(human_percent(row[name]) for name in ("adjusted", "under", "bad"))]
        lines.append(cells)
    return lines


def _scatter(row: Mapping[str, Any]) -> str:
    """The change over the log and its copies, and how far single ones scatter; nothing without copies."""
    if row["wait_difference"] is None:
        return ""
    sign = "-" if row["wait_difference"] < 0 else "+"
    return f"<small>{sign}{human_time(abs(row['wait_difference']))} ± {human_time(row['wait_scatter'])}</small>"


def _schemes(a: AdjustedWalltimes, draw: Callable[..., Any]) -> list[str]:
    """The figure of all schemes and a table of the most accurate ones."""
    tried = a.schemes(len(a.replays))
    best = [
        [text(r["predictor"]), _share(r["accuracy"]), *(human_percent(r[n]) for n in ("not_adjusted", "under", "bad"))] for r in a.schemes()
    ]
    own = a.replays[0].summary().mean_accuracy_of_requests
    chosen = [s.predictions.prediction.predictor.label for s in a.schedules if s.predictions is not None]
    alternative = (
        "A dot for each of the schemes: mean accuracy over the share of jobs underestimated. The most accurate one: "
        f"{tried[0]['predictor']}, {_share(tried[0]['accuracy'])}, {human_percent(tried[0]['under'])} underestimated; "
        f"the users' requests: {_share(own)}."
    )
    caption = (
        f"Every scheme that was tried. Few underestimates: at most {MOST_UNDER:g} % of the jobs, and {MOST_BAD:g} % by 30 min or more."
    )
    head = ["predictor", "accuracy", "not adjusted", "under", "30 min under"]
    return [
        f'<div class="half">{figure(draw(tried, own, chosen), "schemes", alternative, caption, wide=False)}</div>',
        f"<details><summary>The most accurate schemes</summary>{table(head, best, 'The most accurate schemes of the replay')}</details>",
    ]


def change(row: Mapping[str, Any]) -> str:
    """The change of the mean wait in a row of `AdjustedWalltimes.rows`, and whether it may be chance."""
    said = human_difference(row["wait_change"])
    return f"{said}, unclear" if said and row["wait_clear"] is False else said


def _advice(found: WalltimeAccuracy, log: Sequence[str] | None) -> list[str]:
    """What the users with most hours to give back could ask for."""
    if not found.advice:
        return []
    head = ["user", "hours not used", "jobs of the kind", "alike jobs", "ran", "asked for", "ask for", "killed in hindsight", "hours less"]
    rows = []
    for one in found.advice:
        kind = kind_of(one)
        cells = [text(one.user), hours(one.unused_hours), f'<td class="word long">{text(kind)}</td>']
        if one.advice is None:
            rows.append([*cells, "too few", *[UNDEFINED] * 4, hours(0)])
            continue
        s = one.advice.suggestions[0]
        killed = UNDEFINED if math.isnan(s.backtest) else human_percent(s.backtest)
        times = [human_time(value) for value in (one.advice.median_runtime, one.advice.median_request, s.walltime)]
        rows.append([*cells, f"{one.advice.jobs:,}", *times, killed, hours(one.less_hours)])
    note = (
        "For each user the kind of job (account, job name, processors) with the most hours not used, and the shortest walltime that at "
        f"most {RISK:g} % of the earlier jobs of this kind outran. Ran, asked for: medians. Killed in hindsight: jobs that would have been "
        "killed, had each asked for what its predecessors suggest. Hours less: what these jobs would not have asked for; where that is "
        "little, some jobs of the kind need the time."
    )
    lines = [
        shlex.join(["walltime", "suggest", *(log or [found.workload.origin.name]), *one.options])
        for one in found.advice
        if one.options and one.advice
    ]
    parts = [
        "<h2>What the largest users could ask for</h2>",
        table(head, rows, "Walltimes for the users with most hours not used"),
        f'<p class="note">{text(note)}</p>',
    ]
    untyped = [one.user for one in found.advice if one.options is None]
    if lines:
        shown = text("\n".join(lines))
        parts.append(f'<h3>To see more of each</h3>\n<pre tabindex="0">{shown}</pre>')
    if untyped:
        parts.append(
            f'<p class="note">{text("The names of some users or jobs hold characters that cannot be typed, so they have no command.")}</p>'
        )
    return parts


WORDS = {"group": "account", "executable": "job", "procs": "processors"}


def kind_of(one: UserAdvice) -> str:
    """What the jobs of an advice have in common, in words."""
    return ", ".join(f"{WORDS.get(name, name)} {value}" for name, value in one.kind.items()) or "all jobs"


def _table(rows: Rows, label: str, first: str, name: str = "") -> str:
    """Groups with their hours and accuracies."""
    lines = []
    for row in rows:
        share = row.get("share_of_unused")
        cells = [text(row["group"]), f"{row['jobs']:,}", hours(row["asked_hours"]), _share(row["used_share"]), hours(row["unused_hours"])]
        cells += [UNDEFINED if share is None else human_percent(100 * share)]
        lines.append(cells + [_share(row[field]) for field in ("mean_accuracy", "at_limit", "under_tenth")])
    return table([first, *HEAD], lines, label, name)


def hours(value: float) -> str:
    """Processor-hours, whole ones from ten on.

    >>> hours(12345.6), hours(0.6088), hours(0.0)
    ('12,346', '0.61', '0')
    """
    return f"{value:,.0f}" if value >= 10 or not value else f"{value:.2g}"


def _share(share: float | None) -> str:
    return UNDEFINED if share is None else human_percent(100 * share)


def _line(command: Any) -> str:
    return command if isinstance(command, str) else shlex.join(map(str, command))
