"""How results look in a notebook: small tables in HTML, which follow the notebook's light or dark mode."""

from __future__ import annotations

import html
from collections.abc import Sequence


def facts(title: str, rows: Sequence[tuple[str, str]], note: str = "") -> str:
    """A title, and names with values below.

    >>> facts("EASY", [("mean wait", "1 h")]).count("<tr>")
    1
    """
    lines = [
        f'<tr><th style="text-align: left">{_text(name)}</th><td style="text-align: right">{_text(value)}</td></tr>' for name, value in rows
    ]
    return _table(title, "".join(lines), note)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    """A title, and rows of cells; the first column is text, the others are numbers."""
    top = "".join(f'<th style="text-align: {"right" if k else "left"}">{_text(name)}</th>' for k, name in enumerate(head))
    lines = [
        "<tr>" + "".join(f'<td style="text-align: {"right" if k else "left"}">{_text(cell)}</td>' for k, cell in enumerate(row)) + "</tr>"
        for row in rows
    ]
    return _table(title, f"<tr>{top}</tr>" + "".join(lines), note)


def _table(title: str, body: str, note: str) -> str:
    caption = f'<caption style="text-align: left; font-weight: bold">{_text(title)}</caption>'
    return f"<table>{caption}<tbody>{body}</tbody></table>" + (f"<p>{_text(note)}</p>" if note else "")


def number(value: object) -> str:
    """A value for a cell: whole numbers with separators, others with four significant digits.

    >>> number(28489), number(6887.38), number(None), number(0.70415)
    ('28,489', '6,887', 'n/a', '0.7042')
    """
    if value is None:
        return "n/a"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _text(value: str) -> str:
    return html.escape(value)
