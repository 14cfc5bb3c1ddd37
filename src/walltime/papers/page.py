"""The page of a paper: every item with its figures, its numbers beside the printed ones, and whether its claims hold."""

from __future__ import annotations

from collections.abc import Sequence

from walltime.papers.printed import Printed
from walltime.papers.results import Chart, Claims, Entry, Notes, Part, Result, Table, Value
from walltime.papers.subjects import GENERATED, Subject
from walltime.report import shell
from walltime.report.interactive import TABLES, scripts
from walltime.report.tables import scroll, table, text

__all__ = ["render"]

VERDICTS = {
    "reproduced": "within the accepted deviation",
    "chaos": "beyond it, but within the range of shaking the submit times by half a minute",
    "off": "beyond both",
}
MARKS = {"reproduced": "", "chaos": " ~", "off": " !"}
PIXELS = 85
"""Width of an inch of a figure on a wide screen."""
OWN_CSS = """
.where { color: var(--soft); font-size: .9rem; margin: 0 0 .8rem; }
.generated { background: var(--caveat); border-left: 4px solid var(--caveat-line); padding: .3rem .7rem; }
td .off, .legend .off { background: #f6d3c4; border-radius: 4px; padding: .1rem .35rem; font-weight: 600; }
td .chaos, .legend .chaos { background: var(--caveat); border-radius: 4px; padding: .1rem .35rem; }
td .reproduced, .legend .reproduced { background: var(--best); border-radius: 4px; padding: .1rem .35rem; }
@media (prefers-color-scheme: dark) { td .off, .legend .off { background: #5a2f20; } }
.claims { list-style: none; padding: 0; max-width: 60rem; }
.claims li { padding: .15rem 0 .15rem 1.6rem; text-indent: -1.6rem; }
.claims b { display: inline-block; width: 1.6rem; text-indent: 0; }
.claims small { color: var(--soft); }
nav ol { columns: 2; padding-left: 1.2rem; }
"""


def render(given: Printed, results: Sequence[Result], subjects: Sequence[Subject], *, quick: bool = False) -> str:
    """The page as a string; it is self-contained, including the figures."""
    values = [value for result in results for value in result.values() if value.verdict]
    claims = [holds for result in results for _, holds, _ in result.claims if holds is not None]
    counts = {verdict: sum(value.verdict == verdict for value in values) for verdict in VERDICTS}
    told = []
    if values:
        told.append(f"{counts['reproduced']} of {len(values)} printed numbers are reproduced")
        if counts["chaos"]:
            told.append(f"{counts['chaos']} more lie within the chaos of the simulation")
    if claims:
        told.append(f"{sum(claims)} of {len(claims)} claims hold")
    stands = [subject.name for subject in subjects if subject.kind == GENERATED]
    body = [
        f'<p class="eyebrow">walltime: {text(given.paper)} run anew</p>',
        f"<h1>{text(given.title)}</h1>",
        f'<p class="note">{text(given.source)}</p>',
        f'<p class="answer">{text("; ".join(told) or "Nothing to compare")}.</p>',
    ]
    if stands:
        which = ", ".join(stands)
        body.append(
            f'<p class="generated">Generated workloads stand for {text(which)}: nothing here can be compared with print for them.</p>'
        )
    if quick:
        body.append('<p class="generated">Quick: a coarser grid and fewer seeds than in the paper.</p>')
    body += [_legend(), _contents(results)]
    for result in results:
        body.append(f'<h2 id="{text(result.item)}">{text(result.title)}</h2>')
        loud = "GENERATED" in result.where
        body.append(f'<p class="where{" generated" if loud else ""}">Run on: {text(result.where)}</p>')
        body += [_part(part, f"{result.item}-{k}") for k, part in enumerate(result.parts)]
    logs = [[text(s.name), text(s.log), text(s.about), f"<code>{text(s.workload.origin.sha256 or '')[:16]}</code>"] for s in subjects]
    if logs:
        body += ["<h2>Where this comes from</h2>", table(["", "file", "what it is", "SHA-256"], logs, "logs", "words")]
    return shell.page(f"{given.paper} run anew", body, [scripts(TABLES)], OWN_CSS)


def _legend() -> str:
    items = ", ".join(f'<span class="{name}">{name}{mark}</span> {VERDICTS[name]}' for name, mark in MARKS.items())
    return f'<p class="note legend">In the tables ours stands first, the printed number and the deviation below it: {items}.</p>'


def _contents(results: Sequence[Result]) -> str:
    lines = []
    for result in results:
        values = [value for value in result.values() if value.verdict]
        said = [holds for _, holds, _ in result.claims if holds is not None]
        counts = [f"{sum(v.verdict == 'reproduced' for v in values)}/{len(values)} numbers"] if values else []
        counts += [f"{sum(said)}/{len(said)} claims"] if said else []
        lines.append(f'<li><a href="#{text(result.item)}">{text(result.title)}</a> <small>{text(", ".join(counts))}</small></li>')
    return f"<nav><ol>{''.join(lines)}</ol></nav>"


def _part(part: Part, prefix: str) -> str:
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Chart):
        from walltime.report.figures import to_svg  # matplotlib is slow to load

        width = round(PIXELS * float(part.figure.get_size_inches()[0]))
        svg = to_svg(part.figure, f"{prefix}-{part.name}")
        image = f'<div role="img" aria-label="{text(part.caption)}" style="max-width: {width}px">{svg}</div>'
        return f"<figure>{scroll(image, part.caption, 'wide')}<figcaption>{text(part.caption)}</figcaption></figure>"
    if isinstance(part, Claims):
        return _claims(part)
    assert isinstance(part, Notes)
    return "".join(f'<p class="note">{text(sentence)}</p>' for sentence in part.sentences)


def _claims(part: Claims) -> str:
    marks = {True: "&#10003;", False: "&#10007;", None: "&ndash;"}
    words = {True: "holds", False: "does not hold", None: "not decided"}
    lines = [
        f'<li><b title="{words[holds]}">{marks[holds]}</b>{text(claim)} <small>{text(evidence)}</small></li>'
        for claim, holds, evidence in part
    ]
    return f'<ul class="claims">{"".join(lines)}</ul>'


def _table(part: Table) -> str:
    rows = [[_entry(entry) for entry in row] for row in part.rows]
    note = f'<p class="note">{text(part.note)}</p>' if part.note else ""
    return f"<h3>{text(part.title)}</h3>" + table([text(c) for c in part.columns], rows, part.title, "words" if part.words else "") + note


def _entry(entry: Entry) -> str:
    if not isinstance(entry, Value):
        return "" if entry is None else text(entry)
    ours = number(entry.ours, entry.digits)
    if entry.printed is None:
        return ours
    verdict = entry.verdict
    shown = f'<span class="{verdict}">{ours}{MARKS[verdict]}</span>' if verdict else ours
    away = f", {100 * entry.deviation:+.1f}&nbsp;%" if entry.deviation is not None else ""
    band = (
        ""
        if entry.band is None
        else f"<small>shaken: {number(entry.band[0], entry.digits)} to {number(entry.band[1], entry.digits)}</small>"
    )
    return f"{shown}<small>{number(entry.printed, entry.digits)}{away}</small>{band if verdict != 'reproduced' else ''}"


def number(value: float, digits: int) -> str:
    """A number with this many decimal places.

    >>> number(15_744.8, 0), number(float("nan"), 1)
    ('15,745', 'n/a')
    """
    return "n/a" if value != value else f"{value:,.{digits}f}"
