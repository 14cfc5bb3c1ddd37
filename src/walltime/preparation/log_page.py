"""Pages of a log: its content, and its changes by cleaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from walltime.preparation.workload_figures import compare_workloads
from walltime.provenance import provenance
from walltime.report.page import Block, Drawing, Page, sections
from walltime.tables import Facts
from walltime.wording import UNDEFINED, human_percent, human_time
from walltime.workload import Workload
from walltime.workload.cleaning import CleaningReport

FIRST_SCREEN = 4.2
"""Height in inches of a picture of four panels that fits on the first screen and is legible."""


def log_page(w: Workload, blocks: Iterable[Block | Facts | str], command: Sequence[str]) -> Page:
    """Return the page of `walltime info`: the content of a log."""
    load = human_percent(100 * w.offered_load)
    span = int(w.submit[-1] - w.submit[0]) if len(w) else 0
    use = human_percent(100 * float(np.minimum(w.runtime / w.requested, 1).mean()) if len(w) else 0.0)
    dropped = sum(w.origin.dropped.values())
    lost = f"; {dropped:,} record{'' if dropped == 1 else 's'} cannot be simulated" if dropped else ""
    answer = (
        f"{w.origin.name} has {len(w):,} jobs over {human_time(span)}, on a machine of {w.machine_procs:,} processors: they would keep "
        f"{load} of it busy, and use {use} of their requested time, on average{lost}."
    )
    numbers = [("jobs", f"{len(w):,}"), ("offered load", load), ("of the request is used", use)]
    return _page("content of a log", w.origin.name, answer, blocks, numbers, {"": w}, command)


def cleaning_page(report: CleaningReport, blocks: Iterable[Block | Facts | str], command: Sequence[str]) -> Page:
    """Return the page of `walltime clean`: the changes of a log."""
    before, after = report.before, report.after
    facts = {name: (one, other) for name, one, other in report.rows()}
    removed = len(before) - len(after)
    loads = [human_percent(100 * load) for load in facts["offered load"]]
    busiest = [f"{value:,.1f}" if np.isfinite(value) else UNDEFINED for value in facts["busiest week of one user, in median weeks"]]
    if not after.origin.steps:
        answer = f"{before.origin.name} was not changed: its {len(before):,} jobs stay as they are."
    else:
        share = human_percent(100 * removed / max(len(before), 1))
        answer = (
            f"{removed:,} of the {len(before):,} jobs of {before.origin.name} are removed ({share}), {len(after):,} stay; "
            f"the offered load changes from {loads[0]} to {loads[1]}."
        )
    numbers = [
        ("jobs that stay", f"{len(after):,} of {len(before):,}"),
        ("offered load", f"{loads[0]} to {loads[1]}"),
        ("busiest week of one user, in median weeks", f"{busiest[0]} to {busiest[1]}"),
    ]
    return _page("a changed log", before.origin.name, answer, blocks, numbers, {"before": before, "after": after}, command)


def _page(
    kind: str,
    title: str,
    answer: str,
    blocks: Iterable[Block | Facts | str],
    numbers: list[tuple[str, str]],
    workloads: Mapping[str, Workload],
    command: Sequence[str],
) -> Page:
    """A page with a picture of the workloads, which is about the last one."""
    picture = None
    jobs = list(workloads.values())
    if min(map(len, jobs)) > 1:
        words = "Distributions of processors, runtimes, and times between arrivals, and arrivals by hour of the day"
        words += ", before and after." if len(jobs) > 1 else "."
        picture = Drawing(compare_workloads(jobs, list(workloads) if len(jobs) > 1 else None, FIRST_SCREEN), "jobs", words, words)
    record = provenance(jobs[-1], command=command)
    return Page(kind, title, [answer], list(sections(blocks)), numbers=numbers, picture=picture, workload=jobs[-1], record=record)
