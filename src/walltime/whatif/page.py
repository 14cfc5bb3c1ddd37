"""The report page of a what-if: the effect of each change, its uncertainty, the waits of groups, and the cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from walltime.comparison.caveats import LONG_QUEUE, caveats_of, longest_queue, queue_keeps_growing
from walltime.comparison.tables import gains_blocks, sides_table
from walltime.metrics import range_meaning
from walltime.metrics.energy import ENERGY_NOTE
from walltime.metrics.intervals import KINDS, SCOPES, SHOWN_LEVEL
from walltime.provenance import provenance
from walltime.report.page import Block, Fold, Heading, Items, Page, Paragraph, Section, note, workload_facts
from walltime.schedule.groups import TITLES
from walltime.tables import Cell, Row, Table, energy_cells
from walltime.whatif import agreement_page as calibrated
from walltime.whatif.answer import one_by_one
from walltime.whatif.calibration import ERROR, GROUPED_BY
from walltime.whatif.effects import Effect, GroupEffect, signed
from walltime.whatif.figures import TRUE_CHANGE, drawings
from walltime.whatif.simulations import TODAY
from walltime.whatif.whatif import NO_WAITS, REACT, WhatIf
from walltime.wording import UNDEFINED, counted, human_number, human_percent, human_time, listed, sanitize, time_form

if TYPE_CHECKING:
    pass

SHOWN = {"mean_wait": "mean wait", "median_wait": "median wait", "p90_wait": "wait, 90 %", "mean_bounded_slowdown": "bounded slowdown"}
SURE = (
    "difference",
    f"{KINDS['shaken.copy'].of}, {SHOWN_LEVEL}",
    f"{KINDS['weeks'].of}, {SHOWN_LEVEL}",
    "weeks that agree",
    KINDS["weeks.logs"].of,
    ERROR,
)
UNTRUSTED = "†"
"""Marks a difference smaller than the calibration error."""
MOST_NAMED = 2
"""Largest number of changes that the title names."""


def what_if_page(answer: WhatIf, settings: Mapping[str, Any] | None = None) -> Page:
    """Return the report page of a what-if; `settings`: additional entries of the provenance record, such as `command`."""
    jobs, changes = answer.today.workload, [effect.label for effect in answer.alone]
    shared = {"policy": answer.today.label, "changes": changes, "trim": answer.trim, "replications": answer.replications}
    record = provenance(jobs, **shared, **(settings or {}))
    names = [effect.name for effect in answer.alone]
    several = listed(names) if len(names) <= MOST_NAMED else f"{len(names)} changes"
    effects, *others = effect_sections(answer)
    picture, curves = drawings(answer)
    log = Table(("entry", "value"), workload_facts(jobs, record["log"]), "The log", texts=-1)
    return Page(
        "what-if analysis",
        f"What-if: {several} on {sanitize(answer.machine.name)}",
        [answer.answer()],
        [
            *([Section("Ranking", [ranking_table(answer)])] if len(answer.effects) > 1 else []),
            Section("Effect of each change", [*map(Paragraph, one_by_one(answer.ranked)), *effects.blocks, curves]),
            *others[:-1],
            _cost_section(answer),
            others[-1],
            Section("The log", [log]),
        ],
        caveats=all_caveats(answer),
        numbers=three_numbers(answer),
        picture=picture,
        workload=jobs,
        record=record,
    )


def three_numbers(answer: WhatIf) -> list[tuple[str, str]]:
    """Return the key figures of the page: mean wait and cost of the best change, and the interval of its true effect."""
    effect = answer.best
    wait, cost = effect.differences["mean_wait"], effect.cost
    of = f", {effect.name}" if len(answer.ranked) > 1 else ""
    gone = cost.gone_jobs
    price = f"{counted(gone, 'job')}, {human_percent(100 * cost.work_lost)} of the work" if gone else "no job"
    return [
        (f"mean wait{of}", f"{human_time(wait.changed)} instead of {human_time(wait.today)}"),
        (f"killed, out of memory or left out{of}" if cost.short_jobs else f"killed or left out{of}", price),
        (TRUE_CHANGE, _true_change(effect)),
    ]


def _true_change(effect: Effect) -> str:
    """Return the interval of the true change of the mean wait, as text; n/a without a calibration."""
    return UNDEFINED if effect.record is None or effect.nothing else effect.record.interval


def threshold(answer: WhatIf) -> str:
    """Return the calibration error over all jobs, as text."""
    if answer.calibration is None:
        return "unknown: the log records no waits"
    return "not usable" if answer.calibration.overall.doubt else human_time(answer.calibration.overall.threshold)


def effect_sections(answer: WhatIf) -> list[Section]:
    """Return the sections on effects, uncertainty, groups, gains, and agreement with the record."""
    became = [f"{effect.name}: {'; '.join(effect.became)}" for effect in answer.alone if effect.became]
    groups: list[Block] = []
    for by in GROUPED_BY:
        table = groups_table(answer, by, [effect.name for effect in answer.ranked])
        groups += [Heading(f"By {TITLES[by]}"), table] if table else []
    small = f"Mean waits, with the difference from today in small print. {UNTRUSTED}: smaller than the group's calibration error."
    gains: list[Block] = []
    for effect in answer.ranked:
        gains.append(Heading(effect.name, change=True))
        gains += [Paragraph("No job starts earlier or later.")] if effect.nothing else gains_blocks(effect.gains, effect.name)
    if answer.calibration is None:
        agreement: list[Block] = [Paragraph(NO_WAITS)]
    else:
        sentences = [Paragraph(sentence) for sentence in (*answer.calibration.verdict, *answer.calibration.evidence.hints)]
        tables = [block for table in calibrated.all_tables(answer.calibration) for block in calibrated.titled(table)]
        agreement = [*sentences, Fold("Recorded and simulated waits", [note(calibrated.RULE), *tables])]
    return [
        Section("Effect of each change", [effects_table(answer), Items(became, "note change") if became else None]),
        Section("Uncertainty", [sure_table(answer)]),
        Section("Waits by group", [*groups, note(small)]),
        Section("Winners and losers", gains),
        Section("Agreement with the record", agreement),
    ]


def short_table(answer: WhatIf) -> Table:
    """Return a table of the effect of each change and its uncertainty, for the terminal."""
    waits = [effect.differences["mean_wait"] for effect in answer.ranked]
    show = time_form([time for one in waits for time in (one.changed, one.difference)], short=True)

    def change(seconds: float) -> str:
        return f"{'+' if seconds > 0 else ''}{show(seconds)}"

    rows: list[Row] = []
    for effect, one in zip(answer.ranked, waits, strict=True):
        other = UNDEFINED if effect.other_users is None else change(effect.other_users.difference)
        rows.append([effect.name, show(one.changed), change(one.difference), _true_change(effect), other, *price(effect)])
    log, jobs = answer.today.workload.origin.site, _measured_jobs(answer)
    title = f"{log}: {jobs} measured, {answer.today.label}, mean wait today {human_time(answer.measures['mean_wait'])}"
    other_users = "submit as recorded" if answer.submissions == REACT else "react"
    head = ["change", "mean wait", "difference", TRUE_CHANGE, f"if users {other_users}", *_price_heads(answer)]
    return Table(head, rows, title)


def _price_heads(answer: WhatIf) -> tuple[str, str, str]:
    """Return the titles of the columns that `price` fills."""
    return f"jobs {_fates(answer)}", "work lost", "users worse off"


def _fates(answer: WhatIf) -> str:
    """Return, in words, what happens to jobs that a change harms; running out of memory is named only if it happens."""
    return "killed, out of memory or left out" if any(one.cost.short_jobs for one in answer.effects) else "killed or left out"


def price(effect: Effect) -> list[str]:
    """Return the cost of a change as cells of the columns `_price_heads`."""
    cost = effect.cost
    return [f"{cost.gone_jobs:,}", human_percent(100 * cost.work_lost), f"{cost.users_worse:,}"]


def ranking_table(answer: WhatIf) -> Table:
    """Return a table of the changes, in descending order of gain minus cost."""
    rows = [
        [
            Cell(one.name, look="change"),
            Cell(f"{one.percent:+.0f} %", value=one.percent),
            Cell(_true_change(one), value=one.percent if one.record is None else 100 * one.record.expected),
            *price(one),
            f"{100 * one.nodes_added:+.0f} %" if one.nodes_added else "0",
            Cell(f"{one.worth:+.0f} %", value=one.worth),
        ]
        for one in answer.ranked
    ]
    remark = (
        f"{TRUE_CHANGE[0].upper()}{TRUE_CHANGE[1:]}: from synthetic sites with known truth that agreed with their logs as well. "
        "Gain minus cost: the decrease of the mean wait, less the shares of work lost or stranded and of nodes added. Work lost: "
        f"today's node-hours of the jobs {_fates(answer)}. Users worse off: their jobs wait longer in total, or are {_fates(answer)}."
    )
    return Table(
        ["change", "mean wait", TRUE_CHANGE, *_price_heads(answer), "nodes added", "gain minus cost"],
        rows,
        "Ranking of the changes",
        remark,
    )


def _measured_jobs(answer: WhatIf) -> str:
    """Return the number of measured jobs, as text; if some are not measured, with the number of all jobs."""
    measured, jobs = int(answer.measured.sum()), len(answer.measured)
    return counted(jobs, "job") if measured == jobs else f"{measured:,} of {counted(jobs, 'job')}"


def tables_of(answer: WhatIf) -> list[Table]:
    """Return all tables for the terminal; changes in column heads are numbers."""
    numbers = [f"({k})" for k in range(1, len(answer.ranked) + 1)]
    names = [f"{number} {effect.name}" for number, effect in zip(numbers, answer.ranked, strict=True)]
    title = (
        f"{answer.today.workload.origin.site}: {_measured_jobs(answer)} measured, {answer.today.label} on {sanitize(answer.machine.name)}"
    )
    sure = [[name, *cells] for name, cells in zip(names, sure_rows(answer), strict=True)]
    changed = [(name, effect) for name, effect in zip(names, answer.ranked, strict=True) if not effect.nothing]
    return [
        *([ranking_table(answer)] if len(answer.effects) > 1 else []),
        effects_table(answer, names, title).without("jobs"),
        Table(("change", *SURE), sure, "Uncertainty of the difference in mean wait"),
        *(table for by in GROUPED_BY if (table := groups_table(answer, by, numbers))),
        Table(("change", *COSTS), cost_rows(answer, names), "Cost in node-hours while jobs arrive"),
        *filter(None, [energy_table(answer, names)]),
        *(sides_table(effect.gains, f"Winners and losers: {name}") for name, effect in changed),
    ]


def remarks(answer: WhatIf) -> list[str]:
    """Return notes on the users whose jobs are killed earlier or left out, and on the mark of small differences."""
    doubtful = any(_mark(answer, effect) or not all(row.trusted for row in effect.groups) for effect in answer.ranked)
    return [*_whose(answer), *([f"{UNTRUSTED}: smaller than the calibration error, or not calibrated."] if doubtful else [])]


def _whose(answer: WhatIf) -> list[str]:
    """Return, for each change, a sentence about the users whose jobs are killed earlier or left out."""
    fates = [(one.name, {"killed earlier than today": one.cost.cut, "left out": one.cost.lost}) for one in answer.ranked]
    return [f"{name}: jobs {fate}: {'; '.join(whose)}." for name, both in fates for fate, whose in both.items() if whose]


def short_caveats(answer: WhatIf) -> list[str]:
    """Return the caveats that the answer and the short table do not cover, without the differences under the other assumption on users."""
    several = answer.calibration.verdict[1:] if answer.calibration is not None else []
    return [answer.users(False) if one == answer.users() else one for one in answer.caveats if one not in several]


def all_caveats(answer: WhatIf) -> list[str]:
    """Return the caveats on the changes, the simulations and today's schedule."""
    said = list(answer.caveats)
    settings = [(TODAY, answer.today), *((effect.name, effect.schedule) for effect in answer.ranked)]
    queues = [(label, *longest_queue(schedule)) for label, schedule in settings]
    saturated = [(label, queued, share) for label, queued, share in queues if share >= LONG_QUEUE]
    if saturated:
        everywhere = len(saturated) == len(settings) > MOST_NAMED
        names = "today and with each change" if everywhere else ", ".join(label for label, _, _ in saturated)
        longest, share = max(queued for _, queued, _ in saturated), max(share for _, _, share in saturated)
        said.append(
            f"Saturated ({names}): for up to {human_time(longest)} ({human_percent(100 * share)} of the time in which jobs arrive) the "
            "queue is never empty, so the waits depend mainly on the length of this period."
        )
    growing = [label for label, schedule in settings if queue_keeps_growing(schedule)]
    if growing:
        said.append(f"Not a steady state ({', '.join(growing)}): the queue is longer in every quarter of the log than in the previous one.")
    known = (f"{TODAY} is saturated", "Under ", "Averages include", "Not modelled")
    general = caveats_of([answer.today], answer.trim, names=[TODAY], masks=[answer.measured])
    return said + [one for one in general if not one.startswith(known) and one not in said]


def effects_table(answer: WhatIf, names: Sequence[str] = (), title: str = "Effect of each change, one row per change") -> Table:
    """Return a table of each measure and its difference from today by setting; `names`: how to name the changes."""
    shows = {name: human_time if name.endswith("wait") else human_number for name in SHOWN}
    today = [Cell(show(answer.measures[name]), value=answer.measures[name]) for name, show in shows.items()]
    rows: list[Row] = [[TODAY, f"{int(answer.measured.sum()):,}", *today, human_percent(100 * answer.utilization)]]
    for effect, label in zip(answer.ranked, names or [effect.name for effect in answer.ranked], strict=True):
        spelled = [] if effect.label == effect.name or names else [effect.label]
        row: list[str | Cell] = [Cell(label, spelled, look="change"), f"{effect.jobs:,}"]
        for name, show in shows.items():
            one = effect.differences[name]
            mark = _mark(answer, effect) if name == "mean_wait" else ""
            row.append(Cell(show(one.changed), [signed(one.difference, show) + mark], value=one.changed))
        points = 100 * (effect.utilization - answer.utilization)
        rows.append([*row, Cell(human_percent(100 * effect.utilization), [f"{points:+.1f} points"], value=effect.utilization)])
    remark = (
        f"Small print: difference from today, over the measured jobs that run in both. Utilization: while jobs arrive. {_meaning(answer)}"
    )
    return Table(["change", "jobs", *SHOWN.values(), "utilization"], rows, title, remark.rstrip())


def sure_rows(answer: WhatIf) -> list[list[str]]:
    """Return a row for each effect with the columns `SURE`."""
    rows = []
    trusted = UNDEFINED if answer.calibration is None else threshold(answer)
    for effect in answer.ranked:
        one = effect.differences["mean_wait"]
        weeks = f"{signed(one.low)} to {signed(one.high)}" if math.isfinite(one.low) else f"withheld: {one.withheld}"
        agree = human_percent(100 * one.agree)
        scatter = f"±{human_time(one.scatter)}" if math.isfinite(one.scatter) else UNDEFINED
        others = f"{signed(one.other_low)} to {signed(one.other_high)}" if math.isfinite(one.other_low) else UNDEFINED
        rows.append([signed(one.difference), scatter, weeks, agree, others, trusted])
    return rows


def sure_table(answer: WhatIf) -> Table:
    """Return a table of the uncertainty of each difference in mean wait, and the doubts."""
    rows: list[Row] = []
    for effect, texts in zip(answer.ranked, sure_rows(answer), strict=True):
        cells = [Cell(text, look="wrap") if text.startswith("withheld") else Cell(text.replace(" to ", " to\n")) for text in texts]
        why = Cell("; ".join(effect.doubts) or "none found", look="wrap")
        rows.append([Cell(effect.name, look="change"), *cells, why])
    counts = {effect.differences["mean_wait"].others for effect in answer.ranked}
    simulated = max(counts, default=0)
    linked = "" if answer.feedback else "; jobs submitted within 20 min after the end of their user's earlier job follow that end"
    meaning = f". The interval is the {range_meaning(simulated).replace('run', 'log')}" if simulated else ""
    how = {
        "shaken.copy": f"The interval predicts one more copy, from {answer.replications} copies that are the same for every setting",
        "weeks": "The interval comes from the differences between five parts of the log, with fixed schedules",
        "weeks.logs": f"Simulated under each setting: {simulated or 'no'} such logs{linked}{meaning}",
    }
    scopes = [f"{KINDS[name].of[0].upper()}{KINDS[name].of[1:]}: {SCOPES[KINDS[name].of]}. {detail}." for name, detail in how.items()]
    remark = f"Differences of the mean wait. {' '.join(scopes)} Weeks that agree: share of weeks in which the difference has this sign."
    return Table(["change", *SURE, "doubts"], rows, "Uncertainty of each difference", remark, look="sure")


def groups_table(answer: WhatIf, by: str, columns: Sequence[str]) -> Table | None:
    """Return a table of mean waits by group; None with fewer than two groups. `columns`: the column heads of the changes."""
    changed: list[dict[str, GroupEffect]] = [{row.group: row for row in effect.groups if row.by == by} for effect in answer.ranked]
    if len(changed[0]) < 2:
        return None
    rows: list[Row] = []
    for row in changed[0].values():
        cells: list[str | Cell] = [row.group, f"{row.jobs:,}", Cell(human_time(row.today), value=row.today)]
        for of_change in changed:
            one = of_change.get(row.group)
            if one is None:
                cells.append(UNDEFINED)
                continue
            mark = "" if one.trusted or answer.calibration is None or not one.difference else UNTRUSTED
            cells.append(Cell(human_time(one.changed), [signed(one.difference) + mark], value=one.changed))
        rows.append(cells)
    return Table(["group", "jobs", TODAY, *columns], rows, f"Mean wait by {TITLES[by]}", look="months")


COSTS = {"nodes": "nodes", "available": "capacity", "used": "used", "idle": "idle", "jobs killed": "cut_jobs"}
COSTS |= {"jobs left out": "lost_jobs", "jobs out of memory": "short_jobs", "work lost": "work_lost_hours"}
"""Columns of the cost table, and the fields of `Cost` that they show."""


def cost_rows(answer: WhatIf, names: Sequence[str]) -> list[list[str]]:
    """Return rows for today and each effect with the columns `change` and `COSTS`."""
    costs = [answer.cost, *(effect.cost for effect in answer.ranked)]
    fields = COSTS.values()
    return [[name, *(f"{getattr(one, field):,.0f}" for field in fields)] for name, one in zip([TODAY, *names], costs, strict=True)]


def energy_table(answer: WhatIf, names: Sequence[str] = ()) -> Table | None:
    """Return a table of energy, its cost and CO2 by setting; None if the energy is unknown. `names`: how to name the changes."""
    costs = [answer.cost, *(effect.cost for effect in answer.ranked)]
    today, *changed = ((one.energy, one.energy_cost, one.grams) for one in costs)
    if math.isnan(today[0]):
        return None
    heads, (first, *rows) = energy_cells([today, *changed], today, [one.energy_spans for one in costs])
    labels = [Cell(name, look="change") for name in names or [effect.name for effect in answer.ranked]]
    why = answer.best.differences["mean_wait"].withheld
    interval = f"; its interval is withheld: {why}" if why else f", and its {SHOWN_LEVEL} interval under sampling of weeks"
    return Table(
        ["change", *heads],
        [[TODAY, *(replace(one, small=[]) for one in first)], *([label, *row] for label, row in zip(labels, rows, strict=True))],
        "Energy of the jobs",
        f"{ENERGY_NOTE} Small print: difference from today{interval}.",
    )


def _cost_section(answer: WhatIf) -> Section:
    """Return the section on node-hours available, used, idle and lost, and on the users who lose work."""
    today, *rows = cost_rows(answer, [effect.name for effect in answer.ranked])
    lines: list[Row] = [today, *([Cell(row[0], look="change"), *row[1:]] for row in rows)]
    remark = (
        "Node-hours from the first submission to the last. Jobs killed: earlier than today, at a shorter limit. Jobs left out no longer "
        "fit the machine or their partition. Jobs out of memory run twice, because of a smaller request. Work lost: the "
        "node-hours that these jobs use today, without checkpoints."
    )
    whose = _whose(answer)
    table = Table(["change", *COSTS], lines, "Node-hours, one row per change", remark)
    return Section("Cost", [table, Items(whose, "change") if whose else None, energy_table(answer)])


def _mark(answer: WhatIf, effect: Effect) -> str:
    calibration = answer.calibration
    mean = effect.differences["mean_wait"].difference
    return UNTRUSTED if calibration is not None and mean and not calibration.trusts("all jobs", "all jobs", mean) else ""


def _meaning(answer: WhatIf) -> str:
    """Return a sentence that explains the mark if any difference has it, otherwise an empty string."""
    return f"{UNTRUSTED}: smaller than the calibration error." if any(_mark(answer, effect) for effect in answer.ranked) else ""
