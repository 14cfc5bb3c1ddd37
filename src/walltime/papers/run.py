"""Run the items of a paper and write a folder with a page, the figures as PDF and PNG, and every number as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from walltime.files import whole_file
from walltime.papers.items import Item
from walltime.papers.page import paper_page
from walltime.papers.printed import printed
from walltime.papers.results import Chart, Entry, Result, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import GENERATED, OTHER, PAPER, Subject
from walltime.report.html import write_page
from walltime.simulation.run import counted_simulations

LETTERS_PER_INCH = 20
"""Width of the small print under a figure."""


@dataclass(frozen=True)
class PaperRun:
    """The results of a run, and where they are."""

    results: Sequence[Result]
    page: Path
    jobs: int
    """simulated now, not reused from an earlier run"""
    seconds: float


def run_paper(
    paper: str,
    items: Sequence[Item],
    subjects: Sequence[Subject],
    folder: Path,
    *,
    quick: bool = False,
    workers: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
    size: str = "",
) -> PaperRun:
    """Run these items on these subjects and write everything into the folder.

    Simulations already in the folder, by this version and on the same log, are not repeated, so an interrupted run can be
    resumed. `progress`: called with a description, the number of runs done and the total; `on_result`: called with each result as
    soon as it is available. `size`: the width of the figures, as `write_figure` takes it. Raises OutputError if the folder cannot be
    written.
    """
    begin = time.monotonic()
    study = Study(printed(paper), subjects, folder, quick, workers, progress)
    results, jobs = [], 0
    for item in items:
        with counted_simulations() as simulated:
            parts = list(item.run(study))
        jobs += sum(simulated)
        if any(subject.kind == PAPER for subject in subjects):
            parts += study.printed.notes.get(item.name, [])
        result = Result(item.name, item.title, item.where or describe(subjects, quick), parts)
        write_parts(result, folder, size)
        results.append(result)
        if on_result is not None:
            on_result(result)
    page = write_page(folder / "index.html", paper_page(study.printed, results, subjects, quick=quick))
    return PaperRun(results, page, jobs, time.monotonic() - begin)


def describe(subjects: Sequence[Subject], quick: bool) -> str:
    """Return the input of an item, for its title."""
    about = {GENERATED: "GENERATED workload of its size", OTHER: "not a log of the paper"}
    names = [f"{one.log if one.kind == OTHER else one.name}: {about.get(one.kind, one.about)}" for one in subjects]
    return "; ".join(names) + (" (quick: a coarser grid, fewer seeds)" if quick else "")


def write_parts(result: Result, folder: Path, size: str = "") -> None:
    """Write figures as PDF and PNG, and the numbers of figures and tables as CSV."""
    from walltime.report.figure_files import write_figure

    for kind in ("figures", "numbers"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    for part in result.shown:
        if isinstance(part, Chart):
            letters = int(LETTERS_PER_INCH * float(part.figure.get_size_inches()[0]))
            lines = textwrap.wrap(f"{result.title}. Run on: {result.where}.", letters)
            part.figure.supxlabel("\n".join(lines), fontsize=6, x=0.01, ha="left")
            for ending in (".pdf", ".png"):
                write_figure(folder / "figures" / f"{part.name}{ending}", part.figure, size)
            _write_csv(folder / "numbers" / f"{part.name}-figure.csv", list(part.data), list(zip(*part.data.values(), strict=True)))
        else:
            columns, rows = flat(part)
            _write_csv(folder / "numbers" / f"{part.name}.csv", columns, rows)
    if result.claims:
        with whole_file(folder / "numbers" / f"claims-{result.item}.json") as file:
            file.write(json.dumps([one._asdict() for one in result.claims], indent=1).encode())


def flat(table: Table) -> tuple[list[str], list[list[object]]]:
    """Return a table with separate columns for our number, the printed one, the deviation in percent and the verdict."""
    compared = [any(isinstance(e := row[k], Value) and e.printed is not None for row in table.rows) for k in range(len(table.columns))]
    heads = ("", " (printed)", " (deviation, %)", " (verdict)")
    columns = [f"{name}{head}" for name, more in zip(table.columns, compared, strict=True) for head in heads[: 4 if more else 1]]
    rows = [[cell for entry, more in zip(row, compared, strict=True) for cell in _cells(entry)[: 4 if more else 1]] for row in table.rows]
    return columns, rows


def _cells(entry: Entry) -> list[object]:
    """Return our number, the printed one, the deviation in percent and the verdict."""
    if not isinstance(entry, Value):
        return ["" if entry is None else entry, "", "", ""]
    deviation = "" if entry.deviation is None else round(100 * entry.deviation, 3)
    return [entry.ours, "" if entry.printed is None else entry.printed, deviation, entry.verdict]


def _write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if isinstance(v, float) and not math.isfinite(v) else v for v in row] for row in rows])
    with whole_file(path) as file:
        file.write(text.getvalue().encode())
