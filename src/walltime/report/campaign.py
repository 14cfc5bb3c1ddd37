"""The page of a campaign: what was run, what came out with its intervals, and its provenance."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from walltime.campaign import DIMENSIONS, Plan, Results, Store, campaign_caveats, read_results
from walltime.campaign.caveats import count_flurries
from walltime.campaign.cell import Cell
from walltime.campaign.comparison import METRICS
from walltime.campaign.run import find_logs
from walltime.files import whole_file
from walltime.provenance import version
from walltime.report.interactive import TABLES, scripts
from walltime.report.lines import answer, groups_table, word_cell
from walltime.report.measures import measure
from walltime.report.sections import figures_section, tables_section
from walltime.report.shell import CSS_OF_RESULTS, caveats_list, facts, page
from walltime.report.tables import table, text, unbroken
from walltime.schedule.groups import GROUPINGS

OF_GROUPS = ("mean_wait", "mean_bounded_slowdown")
"""Measures of the tables by groups of jobs."""
MOST_GROUPS = 60
"""A grouping with more groups gets no table."""
MOST_MISSING = 20
"""So many kinds of missing cells are listed."""
WHY = "not run yet, or stopped by an error. Running the plan again adds what can be run."


def write_campaign_report(
    path: str | Path,
    plan: Plan,
    store: Store | None = None,
    *,
    metrics: Sequence[str] = METRICS,
    baseline: Mapping[str, Any] | None = None,
    command: str | Sequence[str] | None = None,
    flurries: Mapping[str, int] | None = None,
) -> Path:
    """Write a page of a campaign's results; returns its path.

    The page needs no network and no other file, and the same store gives the same bytes. It is written completely or not at all.
    `store`: by default the folder that the plan names. `metrics`: fields of the summary. `baseline`: values of parameters that the
    others are compared with, by default the first policy. `command`: the command line that repeats it. `flurries`: from
    `count_flurries`, which is called without them.

    Raises OutputError if there is no result or the page cannot be written, PolicyError for an unknown measure or baseline, LogError
    for a log that is missing.
    """
    results = read_results(plan, store)
    content = render(results, metrics, baseline, command, count_flurries(plan) if flurries is None else flurries)
    path = Path(path)
    with whole_file(path) as file:
        file.write(content.encode())
    return path


def render(
    results: Results,
    metrics: Sequence[str] = METRICS,
    baseline: Mapping[str, Any] | None = None,
    command: str | Sequence[str] | None = None,
    flurries: Mapping[str, int] | None = None,
) -> str:
    """The page of `write_campaign_report` as a string."""
    plan, cells = results.plan, results.cells
    base = dict(results.baseline or {}) if baseline is None else dict(baseline)
    lines = results.lines(metrics, baseline=base)
    missing = results.missing
    caveats = campaign_caveats(plan, cells, dict(flurries or {}))
    if missing:
        caveats.insert(
            0, f"Incomplete: {len(missing):,} of {len(results.keys):,} cells {_are(missing)} missing, so means are over fewer runs."
        )
    first = [line for line in lines if line.metric == metrics[0]]
    body = [
        '<p class="eyebrow">walltime: a campaign</p>',
        f"<h1>{text(plan.name)}</h1>",
        f'<p class="answer">{unbroken(text(answer(first, base, _subject(results))))}</p>',
        facts(_facts(results)),
        caveats_list(caveats),
        *figures_section(lines),
        *tables_section(lines, base),
        *_groups(results, base),
        *_missing(results, missing),
        *_provenance(results, command),
    ]
    return page(plan.name, body, [scripts(TABLES)], CSS_OF_RESULTS)


def _are(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def _subject(results: Results) -> str:
    """The logs and models, in a few words."""
    traces, models = (results.cells[name].drop_nulls().unique().sort().to_list() for name in ("trace", "model"))
    if len(traces) + len(models) <= 2:
        return " and ".join([*traces, *models])
    return " and ".join(f"{len(names)} {what}" for names, what in ((traces, "logs"), (models, "models")) if names)


def _facts(results: Results) -> list[tuple[str, str]]:
    plan, cells = results.plan, results.cells
    jobs = int(cells["jobs"].sum() or 0)
    found = [("cells", f"{len(cells):,} of {len(results.keys):,}"), ("missing", f"{len(results.keys) - len(cells):,}")]
    found += [("seeds", f"{len(plan.seeds):,}"), ("jobs simulated", f"{jobs:,}")]
    for name, said in (("trace", "logs"), ("model", "models"), ("policy", "policies")):
        values = cells[name].drop_nulls().unique()
        if len(values):
            found.append((said, str(values[0]) if len(values) == 1 else f"{len(values):,}"))
    return found


def _groups(results: Results, base: Mapping[str, Any]) -> list[str]:
    """Tables by groups of jobs, collapsed, for each grouping of the plan."""
    parts = []
    for by in results.plan.groups:
        names = results.groups.filter(results.groups["by"] == by)["group"].n_unique()
        if not names:
            continue
        said = f"{by}: {GROUPINGS[by]}"
        if names > MOST_GROUPS:
            parts.append(f'<p class="note">{text(said)}: {names} groups, too many for a table; see walltime campaign report --by {by}.</p>')
            continue
        lines = results.lines(OF_GROUPS, baseline=base, by=by)
        for name in OF_GROUPS:
            label = measure(name).label
            inside = groups_table([line for line in lines if line.metric == name], f"by {by}", base)
            parts.append(f"<details><summary>{text(label.capitalize())} by {text(said)}</summary>{inside}</details>")
    return ["<h2>By groups of jobs</h2>", *parts] if parts else []


def _missing(results: Results, missing: Sequence[Cell]) -> list[str]:
    if not missing:
        return []
    words = [name for name in results.plan.varied if name in DIMENSIONS]
    spelled = results.plan.spelled
    kinds = Counter(tuple(spelled.get(cell.settings[name], cell.settings[name]) for name in words) for cell in missing)
    rows = [[*map(word_cell, values), f"{count:,}"] for values, count in list(kinds.items())[:MOST_MISSING]]
    if not words:
        return ["<h2>What is missing</h2>", f"<p>{len(missing):,} of {len(results.keys):,} cells: {WHY}</p>"]
    head = ["", *(text(name.replace("_", " ")) for name in words), "missing cells"]
    rows = [[str(number), *row] for number, row in enumerate(rows, 1)]
    more = f" The first {MOST_MISSING} of {len(kinds)} combinations:" if len(kinds) > MOST_MISSING else ""
    return [
        "<h2>What is missing</h2>",
        f"<p>{len(missing):,} of {len(results.keys):,} cells: {WHY}{more}</p>",
        table(head, rows, "Missing cells by combination", "words"),
    ]


def _provenance(results: Results, command: str | Sequence[str] | None) -> list[str]:
    """Versions, logs, what is the same in all cells, the command, and the plan itself."""
    plan, cells = results.plan, results.cells
    settings = plan.cells[0].settings
    fixed = {name: value for name, value in settings.items() if name not in plan.varied and value != DIMENSIONS[name].default}
    rows: list[tuple[str, Any]] = [
        ("walltime", ", ".join(sorted(set(cells["walltime"].drop_nulls())))),
        ("code of the results", ", ".join(sorted(set(cells["engine"].drop_nulls())))),
        ("page made by", version()),
        ("trim", plan.trim),
        ("seeds", _seeds(plan.seeds)),
        *((name.replace("_", " "), plan.spelled.get(value, value)) for name, value in fixed.items()),
    ]
    values = {name: list(dict.fromkeys(cell.settings[name] for cell in plan.cells)) for name in plan.varied}
    shown = {name: ["default" if v is None else str(plan.spelled.get(v, v)) for v in found] for name, found in values.items()}
    rows += [(f"{name.replace('_', ' ')}, varied", "; ".join(found)) for name, found in shown.items()]
    rows += [(f"SHA-256 of {trace}", sha256) for trace, (_, sha256) in find_logs(plan).items()]
    usual = ["walltime", "campaign", "report", plan.path.name, "--report", "page.html"]
    line = command if isinstance(command, str) else shlex.join(command or usual)
    where = ["--store", str(results.store.folder)] if results.store.folder != plan.store else []
    again = shlex.join(["walltime", "campaign", "run", str(plan.path) if command else plan.path.name, *where]) + f"\n{line}"
    counts = {"walltime": version(), "plan": plan.name, "cells": len(cells), "missing": len(results.keys) - len(cells)}
    record = json.dumps(counts | {name.replace(" ", "_"): value for name, value in rows}, indent=2, ensure_ascii=False)
    shown_rows = [[text(name), f'<td class="wrap">{text(value)}</td>'] for name, value in rows]
    parts = ["<h2>Where this comes from</h2>", table(["what", "value"], shown_rows, "Provenance", "words")]
    parts.append(f"<h3>To repeat it</h3>\n<pre>{text(again)}</pre>")
    if plan.path.is_file():
        parts.append(f"<h3>The plan</h3>\n<pre>{text(plan.path.read_text(encoding='utf-8').strip())}</pre>")
    parts.append(f"<details><summary>The same as JSON</summary><pre>{text(record)}</pre></details>")
    return parts


def _seeds(seeds: Sequence[int]) -> str:
    listed = list(seeds)
    if len(listed) > 2 and listed == list(range(listed[0], listed[-1] + 1)):
        return f"{listed[0]} to {listed[-1]}"
    return ", ".join(map(str, listed))
