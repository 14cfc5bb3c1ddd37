"""The page of the content of a log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from walltime.preparation.workload_figures import compare_workloads
from walltime.provenance import provenance
from walltime.report.page import Block, Drawing, Page, sections
from walltime.tables import Facts
from walltime.wording import UNDEFINED, counted, human_percent, human_time
from walltime.workload import Workload

FIRST_SCREEN = 4.2
"""Height, in inches, of a picture of four panels that fits on the first screen and stays legible."""


def log_page(w: Workload, blocks: Iterable[Block | Facts | str], command: Sequence[str], use: float) -> Page:
    """Return the page of `walltime info`; `use`: the mean share of requests that was used, NaN if unknown."""
    load = human_percent(100 * w.offered_load)
    span = int(w.submit[-1] - w.submit[0]) if len(w) else 0
    used = UNDEFINED if math.isnan(use) else human_percent(100 * use)
    requests = "" if math.isnan(use) else f", and jobs use {used} of their requested time on average"
    dropped = sum(w.origin.dropped.values())
    lost = f"; {counted(dropped, 'record')} cannot be simulated" if dropped else ""
    answer = (
        f"{w.origin.site} has {counted(len(w), 'job')} over {human_time(span)}, on a machine of {counted(w.machine_procs, 'processor')}. "
        f"The offered load is {load}{requests}{lost}."
    )
    numbers = [("jobs", f"{len(w):,}"), ("offered load", load), ("mean use of the request", used)]
    picture = None
    if len(w) > 1:
        words = "Distributions of job sizes, runtimes and interarrival times, and arrivals by hour of the day."
        picture = Drawing(compare_workloads([w], None, FIRST_SCREEN), "jobs", words, words)
    record, kind = provenance(w, command=command), "contents of a log"
    return Page(kind, w.origin.site, [answer], list(sections(blocks)), numbers=numbers, picture=picture, workload=w, record=record)
