"""The page of a result that is a comparison on one log: the answer in sentences, pictures, tables, and where it comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from walltime.files import whole_file
from walltime.provenance import provenance
from walltime.report.interactive import TABLES, scripts
from walltime.report.shell import CSS_OF_RESULTS, caveats_list, page
from walltime.report.tables import facts, provenance_table, rules_table, table, text, unbroken
from walltime.workload import Workload

Table = tuple[str, Sequence[str], list[list[str]]]
"""A title, the heads of the columns, and rows of text."""


def write_result(
    path: str | Path,
    kind: str,
    heading: str,
    verdict: Sequence[str],
    caveats: Sequence[str],
    figures: Sequence[str],
    tables: Sequence[Table],
    plain: Mapping[str, Any],
    workload: Workload,
    settings: Mapping[str, Any] | None,
) -> Path:
    """Write the page, and return its path.

    `kind`: a word above the heading. `figures`: parts of the page. `plain`: all of it, ready for JSON. `settings`: further entries of the
    provenance. Raises OutputError if it cannot be written.
    """
    record = provenance(workload, **(settings or {}))
    body = [
        f'<p class="eyebrow">walltime: {text(kind)}</p>',
        f"<h1>{text(heading)}</h1>",
        f'<p class="answer">{unbroken(text(" ".join(verdict)))}</p>',
        facts(workload, record),
        caveats_list(caveats),
        *figures,
    ]
    for title, columns, rows in tables:
        body.append(f"<h2>{text(title[:1].upper() + title[1:])}</h2>")
        body.append(table(columns, [[text(cell) for cell in row] for row in rows], title))
    body += ["<h2>What was dropped or changed</h2>", rules_table(workload), "<h2>Where this comes from</h2>", provenance_table(record)]
    kept = json.dumps(plain, indent=2)
    body.append(f'<details><summary>The same as JSON</summary><pre tabindex="0">{text(kept)}</pre></details>')
    path = Path(path)
    with whole_file(path) as file:
        file.write(page(heading, body, [scripts(TABLES)], CSS_OF_RESULTS).encode())
    return path
