"""Data classes for the parts of a report page, which html.py, terminal.py and pdf.py render."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from walltime.machine import omission_sentences
from walltime.tables import Facts, Table
from walltime.wording import human_percent, human_time
from walltime.workload import Workload


@dataclass(frozen=True)
class Paragraph:
    """One or more sentences; `look`: the style, which is note, warning, alarm or empty."""

    text: str
    look: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading within a section; `change`: whether it may break after punctuation."""

    text: str
    change: bool = False


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: Sequence[str]
    look: str = ""


@dataclass(frozen=True)
class Code:
    """Text to copy, such as a command line."""

    text: str


@dataclass(frozen=True)
class Chart:
    """An interactive chart, which the scripts of a page draw with zoom and a readout of values.

    `x`: log times, s, if there is a `clock` (see `clock_of`), otherwise durations, s, on a logarithmic axis. `lines`: for each name, a
    value for each `x`, nan if undefined. `unit`: %, s, or empty for counts. `form`: line, steps, bars or stack. `most`: upper end of the
    vertical axis, by default above the largest value. `colours`: colours of the lines, by default the palette. `marks`: times with labels;
    `level`: a value with its label.
    """

    title: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    unit: str = ""
    form: str = "line"
    clock: Mapping[str, Any] | None = None
    most: float | None = None
    colours: Sequence[str] = ()
    marks: Sequence[tuple[float, str]] = ()
    level: tuple[float, str] | None = None


@dataclass(frozen=True)
class Drawing:
    """A matplotlib figure with its alternative text; `wide`: whether it scrolls on narrow screens. `name`: unique on the page."""

    figure: Any
    name: str
    alternative: str
    caption: str = ""
    wide: bool = True
    pixels: int | None = None
    """largest width, pixels"""
    policy: int | None = None
    narrow: Any = None
    """a version for phones, if the figure of the first screen cannot be narrowed automatically"""
    live: Sequence[Chart] = ()
    """charts that replace the figure if scripts run"""
    rows: Sequence[str] = ()
    """the tooltip of each row of a `rows_figure`"""


@dataclass(frozen=True)
class Fold:
    """Blocks that are collapsed until the reader opens them."""

    summary: str
    blocks: Sequence[Block]
    policy: int | None = None


@dataclass(frozen=True)
class Group:
    """Blocks shown together.

    `look`: pair (side by side), half (narrow), or only-static (shown if scripts do not run). `policies`: indices of the policies with which
    the blocks are shown.
    """

    blocks: Sequence[Block]
    look: str = ""
    policies: Sequence[int] = ()


@dataclass(frozen=True)
class Fragment:
    """An HTML file of scripts/ that the scripts of the page fill."""

    file: str


Block = Paragraph | Heading | Items | Code | Chart | Drawing | Fold | Group | Fragment | Table
Part = Block | Facts | str
"""Parts of the output of a command: blocks of a page, facts, and sentences."""


@dataclass(frozen=True)
class Section:
    """A section of a page, to which the table of contents links; `name`: its anchor, by default derived from the title.

    `shown`: only-live (if scripts run), only-static (if they do not), or empty for always.
    """

    title: str
    blocks: Sequence[Block | None]
    name: str = ""
    shown: str = ""


@dataclass(frozen=True)
class Page:
    """A report page, with its contents in this order: kind, title, answer, key numbers, picture, facts, caveats, sections, provenance.

    The first screen ends before the facts.
    """

    kind: str
    title: str
    answer: Sequence[str]
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()
    caveats: Sequence[str] = ()
    numbers: Sequence[tuple[str, str]] = ()
    """the three most important numbers: label and value"""
    picture: Drawing | None = None
    """the figure of the first screen, by default the first drawing of a section"""
    workload: Workload | None = None
    """the log with the dropped and changed records to list, if any"""
    record: Mapping[str, Any] = field(default_factory=dict)
    """the provenance record, from `walltime.provenance.provenance`"""
    command: str | Sequence[Any] | None = None
    """the command line that makes the page, by default from the record's settings"""
    data: Mapping[str, Any] | None = None
    """the content to show as JSON, by default the provenance record"""
    interactive: str = ""
    """the data of interactive figures, as elements of the page"""
    css: str = ""
    """additional CSS"""

    def __post_init__(self) -> None:
        if self.workload is not None:
            warnings = self.workload.warnings
            for name, sentences in (("answer", warnings), ("caveats", [*warnings, *omission_sentences([self.workload])])):
                told = getattr(self, name)
                new = [sentence for sentence in sentences if not any(sentence in one for one in told)]
                object.__setattr__(self, name, [*new, *told])

    @property
    def repetition(self) -> str:
        """Return the command line as text; empty if there is none."""
        command = self.command or self.record.get("settings", {}).get("command")
        return command_text(command) if command else ""


def first_screen(page: Page) -> Page:
    """Return the page with a picture; if it has none, the first drawing of its sections becomes the picture."""
    if page.picture is not None:
        return page
    sections = list(page.sections)
    for k, section in enumerate(sections):
        for block in section.blocks:
            group = block if isinstance(block, Group) and not block.policies and block.look != "only-static" else None
            inside = [block] if group is None else group.blocks
            for one in inside:
                if isinstance(one, Drawing) and one.policy is None and not section.shown:
                    left = [other for other in inside if other is not one and other is not None]
                    instead: list[Block] = [replace(group, blocks=left)] if group is not None and left else []
                    rest = [other for each in section.blocks if each is not None for other in (instead if each is block else [each])]
                    sections[k : k + 1] = [replace(section, blocks=rest)] if rest else []
                    return replace(page, picture=one, sections=sections)
    return page


def note(text: str) -> Paragraph:
    """Return a remark in small print."""
    return Paragraph(text, "note")


def command_text(command: str | Sequence[Any]) -> str:
    """Return a command line quoted for a shell; strings are unchanged."""
    return command if isinstance(command, str) else shlex.join(map(str, command))


def workload_facts(workload: Workload, log: str) -> list[tuple[str, str]]:
    """Return the jobs, machine, period and load of a workload as facts."""
    span = int(workload.submit[-1] - workload.submit[0]) if len(workload) else 0
    values = [
        ("log", log),
        ("jobs", f"{len(workload):,}"),
        ("processors", f"{workload.machine_procs:,}"),
        ("period of submissions", human_time(span)),
        ("offered load of the log", human_percent(100 * workload.offered_load)),
    ]
    days = [workload.origin.moment(time) for time in workload.submit[[0, -1]].tolist()] if len(workload) else []
    if days and all(days):
        values.append(("first and last submission", ", ".join(f"{day:%Y-%m-%d}" for day in days)))
    return values


def sections(blocks: Iterable[Part]) -> Iterator[Section]:
    """Yield a section for each table, with the sentences that follow it."""
    title = ""
    parts: list[Block] = []
    for block in blocks:
        if isinstance(block, Table | Facts):
            if parts:
                yield Section(title or "Summary", parts)
            table = block if isinstance(block, Table) else block.table()
            title, parts = table.title.partition(":")[0] or "The table", [table]
        elif block:
            parts.append(Paragraph(block) if isinstance(block, str) else block)
    if parts:
        yield Section(title or "Summary", parts)
