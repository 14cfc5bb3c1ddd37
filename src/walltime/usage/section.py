"""The part of `walltime report` on the waste of a period."""

from __future__ import annotations

from walltime.report.page import Paragraph, Section
from walltime.usage.page import answer, energy_sentence
from walltime.usage.records import Power as Power
from walltime.usage.summary import Waste, waste
from walltime.workload import Workload


def waste_of_period(jobs: Workload, begin: int, end: int, power: Power | None = None) -> Waste | None:
    """Return the waste of the jobs that ended from `begin` to `end`, s of the log's clock; None if no job ended.

    `jobs`: a workload with recorded waits.
    """
    ended = jobs.submit + jobs.columns["wait"] + jobs.runtime
    inside = (ended >= begin) & (ended < end)
    return waste(jobs.take(inside, "jobs that ended in the period"), power=power) if inside.any() else None


def waste_section(found: Waste) -> Section:
    """Return the section of the page."""
    energy = [energy_sentence(found)] if found.shows_energy else []
    groups = [by for by in ("user", "group") if by in found.distinct]
    return Section("Waste", [Paragraph(" ".join([answer(found), *energy])), *found.tables(groups)])
