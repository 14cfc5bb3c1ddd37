"""Write the page of a paper: each item with its figures, its numbers next to the printed ones, and whether its claims hold."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.papers.printed import Printed
from walltime.papers.results import Chart, Entry, Result, Table, Tally, Value
from walltime.papers.subjects import GENERATED, Subject
from walltime.report.page import Block, Drawing, Heading, Page, Paragraph, Section, note
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
    """Return a table of how many numbers and claims of each item hold."""
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
