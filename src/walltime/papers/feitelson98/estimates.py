"""feitelson98, Fig. 4: how much of the requested time is used."""

from __future__ import annotations

from walltime.metrics.estimates import estimate_use
from walltime.papers.item import Item
from walltime.papers.mualem01.estimates import NEAR, killed_jobs, use_chart
from walltime.papers.results import Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER

FOUR_HOURS = 14_400


def figure_4(study: Study) -> list[Part]:
    """How much of the requested time was used."""
    printed = study.printed.tables["F4"]
    parts: list[Part] = [use_chart("fig4", study.subjects)]
    rows: list[list[Entry]] = []
    for subject in study.subjects:
        w, killed = subject.workload, killed_jobs(subject)
        peak = estimate_use(w.runtime, w.requested) == 99
        ours = {"jobs in the peak": int(peak.sum())}
        if killed is not None:
            ours["killed jobs in the peak"] = int((peak & killed).sum())
            ours["of these with a request of 4 h"] = int((peak & killed & (w.requested == FOUR_HOURS)).sum())
        for name, count in ours.items():
            value = printed.value("value", quantity=name) if subject.kind == PAPER else None
            rows.append([subject.name, name, Value(count, value, NEAR)])
    table = Table("fig4-peak", printed.title, ["log", "", "jobs"], rows)
    return [
        *parts,
        table,
        Notes(["The peak is the bin of 99 % here, which gives feitelson98's number; mualem01's peak has the bin of 100 % too."]),
    ]


ITEMS = (Item("feitelson98", "F4", "Fig. 4: how much of the requested time is used", figure_4),)
