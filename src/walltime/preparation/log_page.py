"""Pages of a log: its jobs, and its changes by cleaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from walltime.preparation.workload_figures import compare_workloads
from walltime.provenance import provenance
from walltime.report.page import Block, Drawing, Page, sections
from walltime.tables import Facts
from walltime.wording import UNDEFINED, human_percent, human_time
from walltime.workload import Workload
from walltime.workload.cleaning import CleaningReport

FIRST_SCREEN = 4.2
"""Inches down of a picture of four panels that a first screen shows without small letters."""


def log_page(w: Workload, blocks: Iterable[Block | Facts | str], command: Sequence[str]) -> Page:
    """What is in a log: the page of `walltime info`."""
    load = human_percent(100 * w.offered_load)
    span = int(w.submit[-1] - w.submit[0]) if len(w) else 0
    use = float(np.minimum(w.runtime / w.requested, 1).mean()) if len(w) else 0.0
    dropped = sum(w.origin.dropped.values())
    lost = f"; {dropped:,} record{'' if dropped == 1 else 's'} cannot be simulated" if dropped else ""
    answer = (
        f"{w.origin.name} holds {len(w):,} jobs over {human_time(span)}, of a machine of {w.machine_procs:,} processors: they would keep "
        f"{load} of it busy, and use {human_percent(100 * use)} of the time that they ask for, on average{lost}."
    )
    picture = None
    if len(w) > 1:
        words = "Distributions of the jobs' processors, runtimes, and times between arrivals, and arrivals by hour of the day."
        picture = Drawing(compare_workloads([w], height=FIRST_SCREEN), "jobs", words, words)
    return Page(
        "what is in a log",
        w.origin.name,
        [answer],
        list(sections(blocks)),
        numbers=[("jobs", f"{len(w):,}"), ("offered load", load), ("of the request is used", human_percent(100 * use))],
        picture=picture,
        workload=w,
        record=provenance(w, command=command),
    )


def cleaning_page(report: CleaningReport, blocks: Iterable[Block | Facts | str], command: Sequence[str]) -> Page:
    """What became of a log: the page of `walltime clean`."""
    before, after = report.before, report.after
    facts = {name: (one, other) for name, one, other in report.rows()}
    removed = len(before) - len(after)
    loads = [human_percent(100 * load) for load in facts["offered load"]]
    busiest = [f"{value:,.1f}" if np.isfinite(value) else UNDEFINED for value in facts["busiest week of one user, in median weeks"]]
    if not after.origin.steps:
        answer = f"Nothing of {before.origin.name} was changed: its {len(before):,} jobs stay as they are."
    else:
        share = human_percent(100 * removed / max(len(before), 1))
        answer = (
            f"{removed:,} of the {len(before):,} jobs of {before.origin.name} are removed ({share}), {len(after):,} stay; "
            f"the offered load goes from {loads[0]} to {loads[1]}."
        )
    words = "Distributions of processors, runtimes and times between arrivals, and arrivals by hour of the day, before and after."
    picture = None
    if min(len(before), len(after)) > 1:
        picture = Drawing(compare_workloads([before, after], ["before", "after"], FIRST_SCREEN), "jobs", words, words)
    return Page(
        "a changed log",
        before.origin.name,
        [answer],
        list(sections(blocks)),
        numbers=[
            ("jobs that stay", f"{len(after):,} of {len(before):,}"),
            ("offered load", f"{loads[0]} to {loads[1]}"),
            ("busiest week of one user, in median weeks", f"{busiest[0]} to {busiest[1]}"),
        ],
        picture=picture,
        workload=after,
        record=provenance(after, command=command),
    )
