"""Medians of the mean bounded slowdown over the sequences, by queue order, with and without the window, and under EASY."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from walltime.papers import drawing
from walltime.papers.carastan17.sequences import ORDERS, measure, sequences
from walltime.papers.item import Item
from walltime.papers.results import Chart, Claim, Claims, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject

QUICK_SEQUENCES = 4
NEAR = 0.2
"""Medians of the published files are of another version of the log, and of sequences that may begin at other times."""
WAYS: Sequence[tuple[str, bool, str]] = (
    ("first 32, no backfilling", False, "sc17"),
    ("whole queue, no backfilling", False, "papers"),
    ("EASY", True, "papers"),
)
"""What is compared; whether there is backfilling, and the dialect."""
RUNTIMES = {"exact": True, "requests": False}


def medians(study: Study) -> list[Part]:
    """Medians over the sequences."""
    rows: list[list[str | int | Value]] = []
    claims: list[Claim] = []
    figures: list[Part] = []
    for subject in study.subjects:
        found = {
            (way, runtimes, name): run(study, subject, name, backfilling, exact, dialect)
            for way, backfilling, dialect in WAYS
            for runtimes, exact in RUNTIMES.items()
            for name in ORDERS
        }
        for way, _, dialect in WAYS:
            for runtimes in RUNTIMES:
                row = [_beside(study, subject, name, runtimes, dialect, found[way, runtimes, name]) for name in ORDERS]
                rows.append([subject.name, way, runtimes, len(found[way, runtimes, "fcfs"]), *row])
        windowed, whole = WAYS[0][0], WAYS[1][0]
        for runtimes in RUNTIMES:
            typical = {name: float(np.median(found[windowed, runtimes, name])) for name in ORDERS}
            best = min(typical, key=lambda name: typical[name])
            told = ", ".join(f"{name} {value:,.1f}" for name, value in typical.items())
            claims.append((f"{subject.name}, {runtimes}, {windowed}: F2 is the best order", best == "f2", told))
            for name in ("wfp3", "unicef", "spt"):
                inside, outside = (float(np.median(found[way, runtimes, name])) for way in (windowed, whole))
                said = f"{subject.name}, {runtimes}: {name} is worse in the window than on the whole queue"
                claims.append((said, outside < inside, f"{inside:,.1f} and {outside:,.1f}"))
            under_easy = float(np.median(found["EASY", runtimes, "fcfs"]))
            said = f"{subject.name}, {runtimes}: F2 without backfilling, as published, is better than EASY with FCFS"
            claims.append((said, typical["f2"] < under_easy, f"{typical['f2']:,.1f} and {under_easy:,.1f}"))
        figures.append(_figure(subject, found))
    columns = ["log", "queue", "runtimes known", "sequences", *ORDERS]
    note = f"The first {QUICK_SEQUENCES} sequences." if study.quick else ""
    return [*figures, Table("medians", "Median of the mean bounded slowdown", columns, rows, note), Claims(claims), Notes([_ABOUT])]


_ABOUT = (
    "A sequence has the jobs of 15 days and begins with an empty machine; its first 16 jobs start in order of arrival, unmeasured. "
    "Read in the published program, its policies order only the 32 jobs that arrived first of those that wait. Orders that keep some jobs "
    "waiting for long then have their window full of these, so the orders that suffer most are not those that would on the whole queue."
)


def run(study: Study, subject: Subject, name: str, backfilling: bool, exact: bool, dialect: str) -> np.ndarray:
    """The mean bounded slowdown of each sequence; simulations that are stored are not repeated."""
    count = len(sequences(subject.workload)) if subject not in study.memory else study.memory[subject]
    study.memory[subject] = count
    count = min(count, QUICK_SEQUENCES) if study.quick else count
    common = {"file": str(subject.file.resolve()), "sha256": subject.workload.origin.sha256, "procs": subject.procs}
    common |= {"order": name, "backfilling": backfilling, "exact": exact, "dialect": dialect}
    found = study.kept(f"{subject.name}: {name}, {dialect}", [common | {"sequence": number} for number in range(count)], measure)
    return np.array([one["slowdown"] for one in found])


def _beside(study: Study, subject: Subject, name: str, runtimes: str, dialect: str, values: np.ndarray) -> Value:
    printed = None
    if subject.kind == PAPER and dialect == "sc17" and not study.quick:
        printed = study.printed.tables["medians"].value(name, log=subject.name, runtimes=runtimes)
    return Value(float(np.median(values)) if len(values) else float("nan"), printed, None if printed is None else NEAR, digits=1)


def _figure(subject: Subject, found: dict[tuple[str, str, str], np.ndarray]) -> Chart:
    def draw(axes: Axes, row: int, column: int) -> None:
        runtimes = list(RUNTIMES)[column]
        values = {way: [float(np.median(found[way, runtimes, name])) for name in ORDERS] for way, _, _ in WAYS}
        drawing.bars(axes, values, list(ORDERS))
        axes.set_yscale("log")
        axes.tick_params(axis="x", rotation=45)

    figure = drawing.panels([f"{word} runtimes" if word == "exact" else word for word in RUNTIMES], ["median slowdown"], draw)
    keys = [(way, runtimes) for way, _, _ in WAYS for runtimes in RUNTIMES]
    data: dict[str, list[object]] = {"queue": [way for way, _ in keys], "runtimes": [runtimes for _, runtimes in keys]}
    data |= {name: [float(np.median(found[(*key, name)])) for key in keys] for name in ORDERS}
    caption = f"{subject.label}: median over the sequences of the mean bounded slowdown, by queue order."
    return Chart(f"medians-{subject.log}", figure, caption, data)


ITEMS = (Item("carastan17", "medians", "Medians over sequences of 15 days, by queue order", medians),)
