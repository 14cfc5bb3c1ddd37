"""The tables of the page on the reproduction, generated from the numbers that `docs/generators/reproduction_data.py` collected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from walltime.papers.printed import PAPERS

FILE = Path(__file__).with_name("reproduction.json")
MARKS = {"reproduced": "", "chaos": " ~", "off": " **!**", "": ""}


def load(file: Path = FILE) -> dict[str, Any]:
    """The stored papers by name, in order of year."""
    stored: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return {paper: stored[paper] for paper in PAPERS if paper in stored}


def reproduction(what: str, file: Path = FILE) -> str:
    """A part of the page as Markdown: `summary`, `mualem01/table3` for a table, `tsafrir06/claims/F4` for claims."""
    papers = load(file)
    if what == "summary":
        return summary(papers)
    paper, *rest = what.split("/")
    part = papers.get(paper, {}).get("claims" if rest[0] == "claims" else "tables", {}).get(rest[-1])
    if part is None:
        return f"*Not run: {what} is not among the stored results.*"
    return claims(part) if rest[0] == "claims" else table(part)


def summary(papers: dict[str, Any]) -> str:
    """For each paper, the number of printed numbers and claims that are reproduced."""
    lines = [
        "| paper | numbers with a criterion | reproduced | within variation | off | claims | claims that hold |",
        "|---|---|---|---|---|---|---|",
    ]
    for paper, found in papers.items():
        verdicts = [cell for t in found["tables"].values() for cell in _verdicts(t)]
        decided = [c["holds"] for cs in found["claims"].values() for c in cs if c["holds"] is not None]
        counts = [verdicts.count(name) for name in ("reproduced", "chaos", "off")]
        lines.append(f"| {paper} | {sum(counts)} | {' | '.join(map(str, counts))} | {len(decided)} | {sum(decided)} |")
    return "\n".join(lines)


def _verdicts(part: dict[str, Any]) -> list[str]:
    places = [k for k, name in enumerate(part["columns"]) if name.endswith("(verdict)")]
    return [row[k] for row in part["rows"] for k in places if row[k]]


def table(part: dict[str, Any]) -> str:
    """Our number, with the printed one and the deviation in small print, if any."""
    columns = part["columns"]
    heads = [k for k, name in enumerate(columns) if not name.endswith(("(printed)", "(deviation, %)", "(verdict)"))]
    lines = ["| " + " | ".join(columns[k] for k in heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(_cell(columns, row, k) for k in heads) + " |" for row in part["rows"]]
    return "\n".join(lines)


def _cell(columns: list[str], row: list[str], k: int) -> str:
    ours = _short(row[k])
    if k + 1 == len(columns) or not columns[k + 1].endswith("(printed)") or not row[k + 1]:
        return ours
    deviation = f", {float(row[k + 2]):+.1f} %" if row[k + 2] else ""
    return f"{ours}{MARKS[row[k + 3]]}<br><small>{_short(row[k + 1])}{deviation}</small>"


def _short(text: str) -> str:
    """A number with its significant digits; other text unchanged."""
    try:
        value = float(text)
    except ValueError:
        return text.replace("|", "\\|")
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def claims(part: list[dict[str, Any]]) -> str:
    """The paper's claims, and whether they hold."""
    marks = {True: "yes", False: "**no**", None: "-"}
    lines = ["| claim | holds? | evidence |", "|---|---|---|"]
    lines += [f"| {c['claim']} | {marks[c['holds']]} | {c['evidence']} |" for c in part]
    return "\n".join(lines)
