"""The page of an audit: the rules that a schedule keeps and breaks, and busy processors over time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from walltime import metrics
from walltime.auditor.report import CHECKS, AuditReport
from walltime.provenance import provenance
from walltime.report.figures import BLUE, COLOURS, date_ticks, percent_ticks, style, unit_of
from walltime.report.page import Drawing, Items, Page, Section, note, workload_facts
from walltime.tables import Cell, Table
from walltime.workload import Array, Workload

INTERVALS = 300
BROKEN = COLOURS[1]


def audit_page(
    w: Workload, schedule: Mapping[str, Array], report: AuditReport, name: str, policy: str | None, command: Sequence[Any]
) -> Page:
    """Return the page of `walltime audit`.

    `schedule`: the columns of the checked schedule; `name`: its file; `policy`: the policy whose guarantees are checked, if any.
    """
    first, answer = report.first, report.answer(name, w, policy)
    sections = []
    if first is not None:
        messages = {v.rule: v.told(w.origin) for v in reversed(report.violations)}
        counts = sorted(report.counts.items(), key=lambda item: -item[1])
        rows = [[Cell(rule, look="code"), Cell(messages[rule], look="wrap"), f"{number:,}"] for rule, number in counts]
        sections.append(Section("Broken rules", [Table(["rule", "first violation", "count"], rows, texts=2)]))
    sections.append(Section("Checked rules", list(_checked(report))))
    if report.assumed:
        sections.append(Section("Assumptions", [Items(list(report.assumed))]))
    words = f"Busy processors over time.{'' if first is None else ' Marks above: times at which a rule is broken.'}"
    return Page(
        "audit",
        f"Audit of {name} on {w.origin.site}",
        [f"{answer[0].upper()}{answer[1:]}" if answer.startswith("the ") else answer],
        sections,
        facts=workload_facts(w, w.origin.name),
        numbers=[
            ("rules broken", f"{len(report.counts):,}"),
            ("rules checked", f"{len(report.checked):,}"),
            ("rules that could not be checked", f"{len(report.skipped):,}"),
        ],
        picture=Drawing(_use(w, schedule, report), "use", words, words),
        workload=w,
        record=provenance(w, policy=policy, command=list(command)),
        data=report.as_dict(),
    )


def _checked(report: AuditReport) -> Iterator[Table | Any]:
    counts = report.counts
    rows = [
        [Cell(rule, look="code"), "no" if rule in counts else "yes", Cell(CHECKS.get(rule, ""), look="wrap")] for rule in report.checked
    ]
    rows += [[Cell(rule, look="code"), "not checked", Cell(reason, look="wrap")] for rule, reason in report.skipped.items()]
    yield Table(["rule", "kept", "requirement, or why it was not checked"], rows, texts=-1)
    yield note("An audit uses only the schedule and the log, and no part of the program that made the schedule.")


def _use(w: Workload, schedule: Mapping[str, Array], report: AuditReport) -> Figure:
    """Draw busy processors over time, with a mark for each time at which a rule is broken."""
    place = w.places_of(schedule["job_id"])
    known = place >= 0
    start, end, procs = schedule["start"][known], schedule["end"][known], w.procs[place[known]]
    ran = end > start
    with style():
        figure = Figure(figsize=(9.2, 2.6), layout="constrained")
        axes = figure.subplots()
        if ran.any():
            begin, last = int(start[ran].min()), int(end[ran].max())
            edges = np.unique(np.linspace(begin, last, INTERVALS + 1).astype(np.int64))
            busy = metrics.means_between(*metrics.busy_processors(start[ran], end[ran], procs[ran]), edges)
            divisor, unit = unit_of(last - begin)
            axes.stairs(100 * busy / w.machine_procs, (edges - begin) / divisor, fill=True, color=BLUE)
            axes.axhline(100, color="#808080", linewidth=0.8)
            axes.set_xlim(0, (last - begin) / divisor)
            axes.set_ylim(0, max(112.0, 105 * float(busy.max()) / w.machine_procs))
            broken = np.array([one.time for one in report.violations], np.int64)
            marks = edges[np.unique(np.searchsorted(edges, broken, "right") - 1).clip(0)]  # one per interval, to keep the page small
            if len(marks):
                axes.plot((marks - begin) / divisor, np.full(len(marks), 106.0), "v", color=BROKEN, markersize=5, clip_on=False)
            if dates := date_ticks(w.origin, begin, last):
                axes.set_xticks([(tick - begin) / divisor for tick in dates], list(dates.values()))
            else:
                axes.set_xlabel(f"{unit} since the first start")
        percent_ticks(axes.yaxis)
        axes.set_ylabel("busy processors")
    return figure
