"""Render pages as self-contained HTML files. All HTML is generated, and all text is escaped, in this module."""

import html
import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from walltime.files import whole_file
from walltime.provenance import version
from walltime.report.page import (
    Block,
    Chart,
    Code,
    Drawing,
    Fold,
    Fragment,
    Group,
    Heading,
    Items,
    Page,
    Paragraph,
    Section,
    command_text,
    first_screen,
)
from walltime.tables import Cell, Column, Table
from walltime.wording import UNDEFINED, human_percent
from walltime.workload import Workload
from walltime.workload.drops import jobs_only

ALLOWED = "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\""
"""Content security policy, which forbids the page to load anything."""
MARKED = ("best", "reproduced", "chaos", "off")
"""Styles of cells with shaded text."""
LIBRARY = "uPlot-1.6.32.min"
TABLES = ("time", "tables", "page")
"""The scripts of a page with tables, which readers can sort."""
CHARTS = ("time", "charts", "tables", "page")
"""The scripts of a page with charts."""
STEERING = (
    "Point at a chart to read its values; drag to zoom in; double-click to show everything. Keys: Tab, then the left and right arrows."
)
PAGE_WIDTH, PICTURE_HEIGHT, LEAST_WIDTH = 1030, 440, 560
"""Largest width and height, and smallest width, of the figure on the first screen, pixels."""
EVERYTHING = ("data", "time", "gantt", "explanation", "charts", "tables", "steer", "page")


def write_page(path: str | Path, page: Page) -> Path:
    """Write a page atomically, with reproducible bytes, and return its path; raises OutputError.

    A .pdf file has one or two sheets; the text of an e-mail is written next to it as a .txt file.
    """
    target = Path(path)
    if target.name.lower().endswith(".pdf"):
        from walltime.report.pdf import mail_text, pdf_bytes  # matplotlib is slow to load

        content, mail = pdf_bytes(page), mail_text(page, f"Attached: {target.name}")
        with whole_file(target.with_suffix(".txt")) as file:
            file.write(mail.encode())
    else:
        content = render(page).encode()
    with whole_file(target) as file:
        file.write(content)
    return target


def render(page: Page) -> str:
    """Return a page as HTML."""
    page = first_screen(page)
    sections = [*page.sections, *_origin(page)]
    body = [
        f'<p class="eyebrow">walltime: {escape(page.kind)}</p>',
        f"<h1>{escape(page.title)}</h1>",
        *(f'<p class="answer">{unbroken(escape(sentence))}</p>' for sentence in page.answer),
        _facts(page.numbers, "facts first"),
        _picture(page.picture) if page.picture is not None else "",
        _facts(page.facts),
        _caveats(page.caveats),
        _contents(sections),
        *map(_section, sections),
        f"<footer>Made by walltime {escape(version())}. This file is self-contained: it loads nothing from the network.</footer>",
        "</main>",
        page.interactive,
    ]
    charts, rows = (any(sign in part for part in body) for sign in ('<div class="chart"><', 'class="rows"'))
    scripts = EVERYTHING if page.interactive else CHARTS if charts or rows else TABLES
    body.append(_scripts(scripts, library=bool(page.interactive) or charts))
    head = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" {ALLOWED}>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(page.title)}</title>\n<style>{resource('page.css')}{page.css}</style>\n</head>\n"
    )
    inside = "\n".join(filter(None, body))
    return f"{head}<body>\n<main>\n{inside}\n</body>\n</html>\n"


def escape(value: Any) -> str:
    """Return a value as text with the special characters of HTML escaped.

    >>> escape('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(str(value), quote=True)


def unbroken(sentence: str) -> str:
    """Return a sentence with non-breaking spaces between numbers and units.

    >>> unbroken("60 % in 2 h 05 min")
    '60&nbsp;% in 2&nbsp;h&nbsp;05&nbsp;min'
    """
    joined = re.sub(r"(\d) (%|s\b|min\b|h\b|d\b)", r"\1&nbsp;\2", sentence)
    return re.sub(r"(&nbsp;(?:min|h|d)) (\d)", r"\1&nbsp;\2", joined)


def breakable(label: str) -> str:
    """Return a change or a specification as escaped text that may break after punctuation.

    >>> breakable("a.b+=<c>")
    'a.<wbr>b+=<wbr>&lt;c&gt;'
    """
    return "<wbr>".join(escape(part) for part in re.split(r"(?<=[.,:=_])(?=[^\s.,:=_])", label))


@cache
def resource(name: str) -> str:
    """Return the text of a file in scripts/."""
    return (files("walltime.report") / "scripts" / name).read_text(encoding="utf-8")


def _facts(values: Sequence[tuple[str, str]], look: str = "facts") -> str:
    if not values:
        return ""
    return f'<dl class="{look}">' + "".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in values) + "</dl>"


def _caveats(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    return f'<aside class="caveats" aria-labelledby="caveats"><h2 id="caveats">Caveats</h2>\n{_items(Items(sentences))}</aside>'


def _anchor(section: Section) -> str:
    return section.name or "section-" + re.sub(r"\W+", "-", section.title.lower()).strip("-")


def _contents(sections: Sequence[Section]) -> str:
    links = (
        f'<li{_attribute("class", section.shown)}><a href="#{escape(_anchor(section))}">{escape(section.title)}</a></li>'
        for section in sections
        if section.title
    )
    return f'<nav class="contents" aria-label="Sections"><ul>{"".join(links)}</ul></nav>'


def _section(section: Section) -> str:
    name = escape(_anchor(section))
    heading = f'<h2 id="{name}">{escape(section.title)}</h2>\n' if section.title else ""
    inside = heading + _blocks(block for block in section.blocks if block is not None)
    return f'<section class="{section.shown}" aria-labelledby="{name}">\n{inside}\n</section>' if section.shown else inside


def _origin(page: Page) -> list[Section]:
    """Return the sections on dropped and changed records and on provenance, with the command and the JSON."""
    sections = [Section("Dropped and changed records", _rules(page.workload))] if page.workload is not None else []
    if not page.record:
        return sections
    flat = {name: value for name, value in page.record.items() if name not in ("settings", "dropped", "left_out", "changed", "noticed")}
    flat |= dict(page.record.get("settings", {}))
    rows = [[name, Cell(_plain(name, value) or UNDEFINED, look="wrap")] for name, value in flat.items()]
    blocks: list[Block] = [Table(["entry", "value"], rows, "Provenance", texts=-1)]
    if page.repetition:
        blocks += [Heading("Command to reproduce this page"), Code(page.repetition)]
    whole = json.dumps(page.record if page.data is None else page.data, indent=2, ensure_ascii=False)
    return [*sections, Section("Provenance", [*blocks, Fold("Provenance and results as JSON", [Code(whole)])])]


def _rules(workload: Workload) -> list[Block]:
    """Return a table of the rules that dropped, changed or flagged jobs, with their counts and shares."""
    origin = workload.origin
    total = max(origin.records, len(workload), 1)
    rows = [
        [one.rule, "dropped", f"{one.jobs:,}", human_percent(100 * one.share_of_jobs), human_percent(100 * one.share_of_work)]
        for one in jobs_only(origin.drops)
    ] + [
        [rule, did, f"{count:,}", human_percent(100 * count / total), ""]
        for did, counts in (("changed", origin.changed), ("kept", origin.noticed))
        for rule, count in counts.items()
    ]
    read = f"Records read: {origin.records:,}; jobs simulated: {len(workload):,}."
    if not rows:
        return [Paragraph(f"No record was dropped or changed. {read}")]
    head = ["rule", "action", "jobs", "of all records", "of all work"]
    return [Paragraph(read), Table(head, rows, "Jobs per rule", texts=-1)]


def _plain(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return command_text(value) if name == "command" else "; ".join(map(str, value)) or "none"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _scripts(names: Sequence[str], library: bool) -> str:
    """Return these scripts as one element; `library`: whether the chart library and its licence come first."""
    own = "\n".join(resource(f"{name}.js") for name in names)
    element = f'<script>\n"use strict";\n(() => {{\n{own}}})();\n</script>'
    if not library:
        return element
    licence = f"/*\n{resource('uPlot-LICENSE.txt').strip()}\n*/"
    return f"<style>{resource(f'{LIBRARY}.css')}</style>\n<script>{licence}\n{resource(f'{LIBRARY}.js')}</script>\n{element}"


def _blocks(blocks: Iterable[Block]) -> str:
    return "\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    match block:
        case Table():
            return _table(block)
        case Paragraph():
            return f"<p{_attribute('class', block.look)}>{unbroken(escape(block.text))}</p>"
        case Heading():
            return f'<h3 class="change">{breakable(block.text)}</h3>' if block.change else f"<h3>{escape(block.text)}</h3>"
        case Items():
            return _items(block)
        case Code():
            return f'<pre tabindex="0">{escape(block.text)}</pre>'
        case Chart():
            return _charts([block])
        case Drawing():
            return _drawing(block)
        case Fold():
            policy = _attribute("data-p", block.policy)
            return f"<details{policy}><summary>{escape(block.summary)}</summary>\n{_blocks(block.blocks)}\n</details>"
        case Group():
            attributes = _attribute("class", block.look) + _attribute("data-p", " ".join(map(str, block.policies)))
            return f"<div{attributes}>\n{_blocks(block.blocks)}\n</div>"
        case Fragment():
            return resource(block.file).strip()


def _items(block: Items) -> str:
    lines = "\n".join(f"<li>{escape(item)}</li>" for item in block.items)
    return f"<ul{_attribute('class', block.look)}>\n{lines}\n</ul>"


def _drawing(block: Drawing) -> str:
    from walltime.report.figure_files import to_svg  # matplotlib is slow to load

    width = "" if block.pixels is None else f' style="max-width: {block.pixels}px"'
    image = f'<div role="img" aria-label="{escape(block.alternative)}"{width}>{to_svg(block.figure, block.name)}</div>'
    caption = f"<figcaption>{escape(block.caption)}</figcaption>" if block.caption else ""
    shown = _scroll(image, block.alternative, "wide") if block.wide else image
    return f"<figure{_attribute('data-p', block.policy)}>{_living(block, shown)}{caption}</figure>"


def _living(block: Drawing, static: str) -> str:
    """Return the static figures of a drawing with the interactive charts that replace them, or with the tooltips of their rows."""
    from walltime.report.interactive import json_text

    if block.rows:
        return f'{static}<script type="application/json" class="rows">{json_text(list(block.rows))}</script>'
    return f'{_charts(block.live)}<div class="only-static">{static}</div>' if block.live else static


def _charts(charts: Sequence[Chart]) -> str:
    from walltime.report.interactive import chart_json

    drawn = "\n".join(
        f'<div role="group" aria-label="{escape(chart.title)}"><h3>{escape(chart.title)}</h3>'
        f'<div class="chart"><script type="application/json">{chart_json(chart)}</script></div></div>'
        for chart in charts
    )
    return f'<div class="only-live">{drawn}<p class="note">{STEERING}</p></div>'


def _picture(block: Drawing) -> str:
    """Return the drawing of the first screen, limited in height, and a narrow version with text of the same size."""
    from walltime.report.figure_files import slim, to_svg

    across, down = block.figure.get_size_inches()
    most = min(block.pixels or PAGE_WIDTH, max(round(PICTURE_HEIGHT * across / down), LEAST_WIDTH))
    label = f'role="img" aria-label="{escape(block.alternative)}"'
    broad = f'<div class="broad" {label} style="max-width: {most}px">{to_svg(block.figure, block.name)}</div>'
    narrow = f'<div class="slim" {label}>{to_svg(block.narrow or slim(block.figure), f"{block.name}-slim")}</div>'
    caption = f"<figcaption>{escape(block.caption)}</figcaption>" if block.caption else ""
    return f"<figure>{_living(block, broad + narrow)}{caption}</figure>"


def _scroll(inside: str, label: str, name: str = "") -> str:
    """Return a box that scrolls horizontally, also by keyboard, if its content is wider than the screen."""
    return f'<div class="scroll {name}" tabindex="0" role="region" aria-label="{escape(label)}">{inside}</div>'


def _table(table: Table) -> str:
    columns = table.heads
    top = "".join(_head(column) for column in columns)
    lines = []
    for k, row in enumerate(table.cells):
        mine = table.row_policies[k] if table.row_policies else None
        cells = [f'<th scope="row"{_attribute("data-p", mine)}>{_inside(row[0])}</th>']
        cells += [_cell(cell, column.policy if mine is None else mine) for cell, column in zip(row[1:], columns[1:], strict=True)]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    note = re.sub(r"\{(.*?)\}", r'<span class="base">\1</span>', escape(table.note))  # its name follows the reader's choice of a baseline
    look = [table.look, "words" if table.texts < 0 else f"words{table.texts}" if table.texts > 1 else ""]
    body = "\n".join(lines)
    inside = f'<table class="{" ".join(filter(None, look))}"><thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
    return _scroll(inside, table.title) + (f'\n<p class="note">{note}</p>' if table.note else "")


def _head(column: Column) -> str:
    swatch = f'<span class="key {column.swatch}"></span>' if column.swatch else ""
    return f'<th scope="col"{_attribute("data-p", column.policy)}>{swatch}{breakable(column.name)}</th>'


def _cell(cell: Cell, policy: int | None) -> str:
    attributes = _attribute("data-p", policy)
    value = cell.value if isinstance(cell.value, int | float) and math.isfinite(cell.value) else None
    if cell.of is not None:
        attributes += f' data-key="{escape(cell.of[0])}" data-of="{cell.of[1]}"'
    if value is not None:
        attributes += f' data-v="{value:.10g}"'
    attributes += _attribute("title", cell.exact) + _attribute("class", "" if cell.look in MARKED or cell.look == "code" else cell.look)
    if cell.shares:
        attributes += ' aria-hidden="true"'
    return f"<td{attributes}>{_inside(cell)}{''.join(f'<small>{escape(line)}</small>' for line in cell.small)}</td>"


def _inside(cell: Cell) -> str:
    if cell.shares:
        parts = "".join(f'<i class="{name}" style="width:{share:.3f}%"></i>' for name, share in cell.shares.items())
        return f'<div class="bar">{parts}</div>'
    if cell.link:
        return f'<a href="{escape(cell.link)}">{escape(cell.text)}</a>'
    if cell.job is not None:
        return f'<span data-job="{cell.job}">{escape(cell.text)}</span>'
    if cell.look == "change":
        return f'<span class="change">{breakable(cell.text)}</span>'
    text = escape(cell.text).replace("\n", "<br>")
    if cell.look == "code":
        return f"<code>{text}</code>"
    return f'<span class="{cell.look}">{text}</span>' if cell.look in MARKED else text


def _attribute(name: str, value: Any) -> str:
    return "" if value is None or value == "" else f' {name}="{escape(value)}"'
