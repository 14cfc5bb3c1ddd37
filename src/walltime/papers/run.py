"""Run the items of a paper and write a folder with a page, the figures as PDF and PNG, and every number as CSV."""

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
from walltime.papers.printed import Printed, printed
from walltime.papers.results import Chart, Entry, Result, Table, Tally, Value
from walltime.papers.study import Study
from walltime.papers.subjects import GENERATED, OTHER, PAPER, Subject
from walltime.report.html import write_page
from walltime.report.page import Block, Drawing, Heading, Page, Paragraph, Section, note
from walltime.simulation.run import counted_simulations
from walltime.tables import Cell, Table as Shown

VERDICTS = {
    "reproduced": "within the accepted deviation",
    "chaos": "beyond it, but within the range of runs whose submit times are shaken by half a minute",
    "off": "beyond both",
}
MARKS = {"reproduced": "", "chaos": " ~", "off": " !"}
HOLDS = {True: "✓ holds", False: "✗ does not hold", None: "– not decided"}  # noqa: RUF001 (a dash)
PIXELS = 85
"""Width on a wide screen of one inch of a figure."""


def paper_page(given: Printed, results: Sequence[Result], subjects: Sequence[Subject], *, quick: bool = False) -> Page:
    """Return the page of these items; it is self-contained, including the figures."""
    tally = Tally.of(*results)
    chaos = tally.verdicts["chaos"]
    answer = [f"{tally.numbers} printed numbers are reproduced"] if tally.numbers else []
    answer += [f"{chaos} more differ by no more than run-to-run variation"] if chaos else []
    answer += [f"{tally.claims} claims hold"] if tally.claims else []
    replaced = ", ".join(subject.name for subject in subjects if subject.kind == GENERATED)
    caveats = [f"Generated workloads stand for {replaced}, so these results cannot be compared with print."] if replaced else []
    caveats += ["Quick: a coarser grid and fewer seeds than in the paper."] if quick else []
    logs = [[s.name, s.log, s.about, Cell((s.workload.origin.sha256 or "")[:16], look="code")] for s in subjects]
    numbers = [("printed numbers reproduced", tally.numbers), ("within run-to-run variation", f"{chaos}" if tally.numbers else "")]
    sources = [Section("Provenance", [Shown(["", "file", "origin", "SHA-256"], logs, "logs", texts=-1)])] if logs else []
    return Page(
        f"{given.paper} reproduced",
        given.title,
        [f"{'; '.join(answer) or 'Nothing to compare'}."],
        [Section("What holds", [note(given.source), _overview(results)]), *map(_item, results), *sources],
        caveats=caveats,
        numbers=[(name, text) for name, text in [*numbers, ("claims that hold", tally.claims)] if text],
    )


def _overview(results: Sequence[Result]) -> Shown:
    """Return a table with the numbers reproduced and the claims that hold, for each item."""
    rows = [[result.title, tally.numbers, tally.claims] for result, tally in ((one, Tally.of(one)) for one in results)]
    legend = ", ".join(f"{name}{mark}: {VERDICTS[name]}" for name, mark in MARKS.items())
    remark = f"In the tables our number comes first, the printed number and the deviation below it; {legend}."
    return Shown(["item", "numbers reproduced", "claims that hold"], rows, "Items", remark)


def _item(result: Result) -> Section:
    where = Paragraph(f"Run on: {result.where}", "warning" if "GENERATED" in result.where else "note")
    parts = [block for k, part in enumerate(result.shown) for block in _blocks(part, f"{result.item}-{k}")]
    claims = [[HOLDS[holds], Cell(claim, look="wrap"), Cell(evidence, look="wrap")] for claim, holds, evidence in result.claims]
    table = [Shown(["", "claim", "evidence"], claims, "Claims of the paper", texts=-1)] if claims else []
    return Section(result.title, [where, *parts, *table, *map(note, result.notes)], result.item)


def _blocks(part: Table | Chart, prefix: str) -> list[Block]:
    if isinstance(part, Table):
        rows = [[_cell(entry, part.digits) for entry in row] for row in part.rows]
        return [Heading(part.title), Shown(part.columns, rows, part.title, part.note, -1 if part.words else 1)]
    pixels = round(PIXELS * float(part.figure.get_size_inches()[0]))
    return [Drawing(part.figure, f"{prefix}-{part.name}", part.caption, part.caption, pixels=pixels)]


def _cell(entry: Entry, digits: int) -> Cell:
    if isinstance(entry, float):
        return Cell(number(entry, digits), value=entry)
    if not isinstance(entry, Value):
        return Cell("" if entry is None else str(entry))
    ours = number(entry.ours, entry.digits)
    if entry.printed is None:
        return Cell(ours, value=entry.ours)
    away = f", {100 * entry.deviation:+.1f} %" if entry.deviation is not None else ""
    small = [f"{number(entry.printed, entry.digits)}{away}"]
    if entry.band is not None and entry.verdict != "reproduced":
        small.append(f"shaken: {number(entry.band[0], entry.digits)} to {number(entry.band[1], entry.digits)}")
    return Cell(f"{ours}{MARKS.get(entry.verdict, '')}", small, value=entry.ours, look=entry.verdict)


def number(value: float, digits: int) -> str:
    """Format a number with this many decimal places.

    >>> number(15_744.8, 0), number(float("nan"), 1)
    ('15,745', 'n/a')
    """
    return "n/a" if value != value else f"{value:,.{digits}f}"


LETTERS_PER_INCH = 20
"""Width of the small print under a figure."""


@dataclass(frozen=True)
class PaperRun:
    """The results of a run, and the files that contain them."""

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
    size: str = "",
) -> PaperRun:
    """Run these items on these subjects and write everything into the folder.

    Simulations already in the folder, by this version and on the same log, are not repeated, so an interrupted run can be
    resumed. `progress`: called with a description, the number of runs done and the total. `size`: the width of the figures, as
    `write_figure` takes it. Raises OutputError if the folder cannot be written.
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
