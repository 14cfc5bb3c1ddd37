"""The page and the metrics of `walltime waste`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from walltime.metrics.energy import NO_ENERGY
from walltime.metrics.right_size import memory_of
from walltime.provenance import provenance
from walltime.report.figures import BLUE, percent_ticks, rows_figure
from walltime.report.page import Drawing, Fold, Page, Section, workload_facts
from walltime.report.prometheus import label, metrics_text
from walltime.usage.hours import memory_beyond
from walltime.usage.records import CAUSES, GROUPINGS, KINDS, RESOURCES, GroupHours
from walltime.usage.summary import Waste
from walltime.usage.tables import share_cell
from walltime.wording import counted, human_percent, listed

USED = {"cores": "processors", "gpus": "GPUs", "memory": "memory"}
"""The resources whose use is recorded, in words."""
LEAST = 0.005
"""Smallest share of the hours that the answer mentions."""
PARTS = {
    BLUE: "Blue: used.",
    "#E8A87C": "Orange: allocated, not used.",
    "#D8DCE2": "Grey: use not recorded; the percentages in the text leave these jobs out.",
}
"""Colours of the bars, and their meanings."""
KINDS_MEANING = "Hours by resource and kind (requested, allocated, measured, used)"


def answer(waste: Waste) -> str:
    """Return the used share of each resource, the lost share of the core-hours and the idle GPUs, in sentences."""
    known = [(one.efficiency, RESOURCES[name]) for name, one in waste.total.hours.items() if name != "nodes" and one.measured > 0]
    sentences = []
    if known:
        shares = [f"{human_percent(100 * share)} of the {words}" for share, words in known]
        whole = all(waste.total.hours[name].unmeasured_jobs == 0 for name in waste.total.hours if name != "nodes")
        sentences.append(f"Jobs used {listed(shares)} that were allocated{'' if whole else ', where their use is recorded'}.")
    unknown = [USED[name] for name, one in waste.total.hours.items() if name != "nodes" and not one.measured > 0]
    if unknown:
        sentences.append(f"The log does not record the use of {listed(unknown)}.")
    cores = waste.total.hours.get("cores")
    if cores is not None and cores.allocated > 0 and waste.total.lost >= LEAST * cores.allocated:
        worst = max(waste.lost, key=lambda one: one.hours.get("cores", 0.0))
        share = human_percent(100 * worst.hours["cores"] / cores.allocated)
        lost = human_percent(100 * waste.total.lost / cores.allocated)
        sentences.append(f"{lost} of the allocated core-hours were lost; the main cause is '{CAUSES[worst.cause]}' ({share}).")
    idle = next((one for one in waste.patterns if one.name == "idle_gpus" and one.jobs), None)
    if idle is not None:
        sentences.append(f"{counted(idle.jobs, 'job')} left their GPUs idle ({idle.unused:,.0f} GPU-hours).")
    return " ".join(sentences) or "The log does not record the use of any resource."


def notes(waste: Waste) -> list[str]:
    """Return notes on unknown values."""
    w, jobs = waste.workload, waste.total.jobs
    unknown = [
        (f"of {USED[name]}", f"{one.unmeasured_jobs:,}")
        for name, one in waste.total.hours.items()
        if name != "nodes" and one.measured > 0 and one.unmeasured_jobs
    ]
    of = f" of {counted(jobs, 'job')}"
    lacks = [f"{words} for {number}{'' if k else of}" for k, (words, number) in enumerate(unknown)]
    sentences = [f"The log records no use {listed(lacks)}."] if lacks else []
    beyond, held = int(memory_beyond(w).sum()), "were allocated" if "mem_mb" in w.columns else "requested; their use counts as allocated"
    if beyond:
        known = int((~np.isnan(memory_of(w, "used_mem_mb")) & ~np.isnan(memory_of(w, "mem_mb"))).sum())
        sentences.append(f"{human_percent(100 * beyond / known)} of {counted(known, 'job')} used more memory than they {held}.")
    if waste.shows_energy:
        sentences.append(energy_sentence(waste))
    return sentences


def energy_sentence(waste: Waste) -> str:
    """Return a sentence on the energy of the jobs, with its cost and carbon if known, or on the reason why it is unknown."""
    if math.isnan(waste.energy):
        return NO_ENERGY
    known = int((~np.isnan(waste.known_energy)).sum())
    from_power = f" ({known - waste.energy_jobs:,} estimated from the power of nodes)" if known > waste.energy_jobs else ""
    price, grams = waste.power.price, waste.total.grams
    cost = "" if price is None else f", cost {price * waste.energy:,.2f}"
    carbon = "" if math.isnan(grams) else f", CO2 {grams / 1000:,.0f} kg"
    missing = int((np.isnan(waste.grams) & ~np.isnan(waste.known_energy)).sum()) if carbon else 0
    without = f" The file of carbon does not cover the runs of {counted(missing, 'job')}." if missing else ""
    others = waste.total.jobs - known
    unknown = f" The energy of the other {counted(others, 'job')} is unknown." if others else ""
    return f"Energy of {counted(known, 'job')}{from_power}: {waste.energy:,.0f} kWh{cost}{carbon}.{unknown}{without}"


def page(waste: Waste, command: Sequence[str], more_notes: Sequence[str] = ()) -> Page:
    """Return the page on the waste; `more_notes`: further sentences."""
    energy = list(waste.energy_tables())
    sections = [Section(table.title, [table]) for table in list(waste.tables(()))[: -len(energy) or None]]
    groups = [waste.table(by) for by in waste.distinct]
    sections += [Section("Groups", [groups[0], *(Fold(table.title, [table]) for table in groups[1:])])] if groups else []
    sections += [Section("Energy", [energy[0], *(Fold(table.title, [table]) for table in energy[1:])])] if energy else []
    record = provenance(waste.workload, command=command)
    three = [
        (f"of the {RESOURCES[name]} used", share_cell(one.efficiency).text) for name, one in waste.total.hours.items() if name != "nodes"
    ]
    return Page(
        "waste",
        f"Waste on {waste.workload.origin.site}",
        [answer(waste)],
        sections,
        facts=workload_facts(waste.workload, waste.workload.origin.name),
        caveats=[*more_notes, *notes(waste)],
        numbers=three[:3] if waste.has_use else (),
        picture=chart(waste) if waste.has_use else None,
        workload=waste.workload,
        record=record,
        data=record | waste.as_dict(),
    )


def chart(waste: Waste) -> Drawing:
    """Draw the used, unused and unmeasured shares of the allocated hours, a bar for each resource."""
    rows = {RESOURCES[name]: one for name, one in waste.total.hours.items() if name != "nodes" and one.allocated > 0}
    visible = set[str]()
    with rows_figure(list(rows), "share of the allocated hours", row=0.4) as (figure, axes):
        for k, one in enumerate(rows.values()):
            measured = 0.0 if math.isnan(one.measured) else one.measured
            used = 0.0 if math.isnan(one.used) else min(one.used, measured)
            left = 0.0
            for value, (colour, meaning) in zip((used, measured - used, one.allocated - measured), PARTS.items(), strict=True):
                axes.barh(k, 100 * value / one.allocated, left=left, color=colour, height=0.6)
                visible |= {meaning} if value >= LEAST * one.allocated else set()
                left += 100 * value / one.allocated
        axes.set_xlim(0, 100)
        percent_ticks(axes.xaxis)
    words = " ".join(meaning for meaning in PARTS.values() if meaning in visible)
    return Drawing(figure, "waste", f"Used share of the allocated hours. {answer(waste)}", words, wide=False)


LABELS = {"user": "username", "group": "account", "executable": "job_name"}
"""Labels of groups in the metrics, for columns that have another name in Slurm's OpenMetrics."""


def prometheus(waste: Waste, by: Iterable[str] = ("user", "group", "partition")) -> str:
    """Return metrics in the text format of Prometheus, for the textfile collector of its node exporter; `by`: the groupings of hours."""
    by_group = {
        one: [
            (label(**{LABELS.get(one, one): group.group}, **of), value)
            for group in waste.groups.get(one, ())
            for of, value in _values(group)
        ]
        for one in by
    }
    lost = [(label(cause=one.cause, resource=name), value) for one in waste.lost for name, value in one.hours.items()]
    patterns = [(label(pattern=one.name), one.jobs) for one in waste.patterns if one.judged]
    return metrics_text(
        (
            ("waste_jobs", "Jobs of the log.", [("", waste.total.jobs)]),
            ("waste_hours", f"{KINDS_MEANING}.", [(label(**of), value) for of, value in _values(waste.total)]),
            *(
                (f"waste_hours_by_{GROUPINGS[one].replace(' ', '_').lower()}", f"{KINDS_MEANING}, by {GROUPINGS[one]}.", values)
                for one, values in by_group.items()
            ),
            ("waste_lost_hours", "Allocated hours of jobs that lost them, by cause.", lost),
            ("waste_energy_kwh", "Energy of the jobs whose energy is known, kWh.", _known(waste.energy)),
            ("waste_co2_grams", "CO2 of the same jobs, grams.", _known(waste.total.grams)),
            ("waste_pattern_jobs", "Jobs with a pattern of waste.", patterns),
        )
    )


def _known(value: float) -> list[tuple[str, float]]:
    return [] if math.isnan(value) else [("", value)]


def _values(group: GroupHours) -> Iterator[tuple[dict[str, Any], float]]:
    for name, one in group.hours.items():
        for kind in KINDS:
            value = getattr(one, kind)
            if not math.isnan(value):
                yield {"resource": name, "kind": kind}, value
