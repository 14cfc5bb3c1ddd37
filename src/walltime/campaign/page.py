"""The report page of a campaign: results with intervals, missing cells, and provenance."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from walltime.campaign.cell import DIMENSIONS
from walltime.campaign.results import Results, campaign_caveats, count_flurries
from walltime.campaign.run import Failures, find_logs
from walltime.comparison.cell_caveats import left_out_cells
from walltime.comparison.combination_means import METRICS
from walltime.comparison.measures import measure
from walltime.comparison.runs import answer, figures_sections, groups_tables, numbers_section, three_numbers, value_cell
from walltime.provenance import version
from walltime.report.page import Block, Code, Fold, Page, Paragraph, Section, command_text, note
from walltime.schedule.groups import GROUPINGS
from walltime.tables import Table

GROUP_MEASURES = ("mean_wait", "mean_bounded_slowdown")
"""Metrics in the tables by groups of jobs."""
MAX_GROUPS = 60
"""Groupings with more groups are omitted."""
MAX_MISSING = 20
"""Maximum number of combinations in the table of missing cells."""


def campaign_page(
    results: Results,
    metrics: Sequence[str] = METRICS,
    baseline: Mapping[str, Any] | None = None,
    command: str | Sequence[str] | None = None,
    flurries: Mapping[str, int] | None = None,
    level: float | None = None,
) -> Page:
    """Return the report page of a campaign; the same store always gives the same page.

    `metrics`: fields of the summary. `baseline`: parameter values to compare with, by default the first policy. `command`: the command
    line to show. `flurries`: the result of `count_flurries`, by default computed. `level`: level of the intervals, by default the plan's.

    Raises PolicyError for an unknown measure or baseline, LogError for a missing log.
    """
    plan, cells = results.plan, results.cells
    base = dict(results.baseline or {}) if baseline is None else dict(baseline)
    lines = results.means(metrics, baseline=base, level=level)
    missing, wanted = len(results.missing), len(results.keys)
    caveats = campaign_caveats(plan, cells, dict(count_flurries(plan) if flurries is None else flurries))
    if missing:
        verb = "is" if missing == 1 else "are"
        caveats.insert(0, f"Incomplete: {missing:,} of {wanted:,} cells {verb} missing, so means are over fewer runs.")
    rows = _provenance(results)
    counts = {"walltime": version(), "plan": plan.name, "cells": len(cells), "missing": wanted - len(cells)}
    text = plan.path.read_text(encoding="utf-8").strip() if plan.path.is_file() else ""
    return Page(
        "a campaign",
        plan.name,
        [*left_out_cells(cells), answer([line for line in lines if line.metric == metrics[0]], base, _subject(results))],
        [
            *figures_sections(lines),
            numbers_section(lines, base),
            *_groups(results, base, level),
            *_missing(results),
            *([Section("The plan", [Code(text)])] if text else []),
        ],
        _facts(results),
        caveats,
        three_numbers(lines, base),
        record={"settings": rows},
        command=_repetition(results, command),
        data=counts | {name.replace(" ", "_"): value for name, value in rows.items()},
    )


def _subject(results: Results) -> str:
    """Describe the logs and models in a few words."""
    traces, models = (results.cells[name].drop_nulls().unique().sort().to_list() for name in ("trace", "model"))
    if len(traces) + len(models) <= 2:
        return " and ".join([*traces, *models])
    return " and ".join(f"{len(names)} {kind}" for names, kind in ((traces, "logs"), (models, "models")) if names)


def _facts(results: Results) -> list[tuple[str, str]]:
    plan, cells = results.plan, results.cells
    facts = [("cells", f"{len(cells):,} of {len(results.keys):,}"), ("missing", f"{len(results.keys) - len(cells):,}")]
    facts += [("seeds", f"{len(plan.seeds):,}"), ("jobs simulated", f"{int(cells['jobs'].sum() or 0):,}")]
    for name, plural in (("trace", "logs"), ("model", "models"), ("policy", "policies")):
        values = cells[name].drop_nulls().unique()
        if len(values):
            facts.append((plural, str(values[0]) if len(values) == 1 else f"{len(values):,}"))
    return facts


def _groups(results: Results, base: Mapping[str, Any], level: float | None) -> list[Section]:
    """Return collapsed tables by groups of jobs, for each grouping of the plan."""
    blocks: list[Block] = []
    for by in results.plan.groups:
        names = results.groups.filter(results.groups["by"] == by)["group"].n_unique()
        title = f"{by}: {GROUPINGS[by]}"
        if names > MAX_GROUPS:
            blocks.append(note(f"{title}: {names} groups, too many for a table; see walltime campaign report --by {by}."))
        elif names:
            lines = results.means(GROUP_MEASURES, baseline=base, by=by, level=level)
            for name in GROUP_MEASURES:
                tables = groups_tables([line for line in lines if line.metric == name], f"by {by}", base)
                blocks.append(Fold(f"{measure(name).title} by {title}", tables))
    return [Section("By groups of jobs", blocks)] if blocks else []


def _missing(results: Results) -> list[Section]:
    missing, spelled = results.missing, results.plan.spelled
    if not missing:
        return []
    words = [name for name in results.plan.varied if name in DIMENSIONS]
    kinds = Counter(tuple(spelled.get(cell.settings[name], cell.settings[name]) for name in words) for cell in missing)
    first = list(kinds.items())[:MAX_MISSING]
    rows = [[str(number), *map(value_cell, values), f"{count:,}"] for number, (values, count) in enumerate(first, 1)]
    text = f"{len(missing):,} of {len(results.keys):,} cells: not run yet, or stopped by an error. Run the plan again to add them."
    failures = failures_table(results.failures)
    more = f" The first {MAX_MISSING} of {len(kinds)} combinations:" if len(kinds) > MAX_MISSING else ""
    head = ["", *(name.replace("_", " ") for name in words), "missing cells"]
    table = Table(head, rows, "Missing cells by combination", texts=-1) if words else None
    return [Section("Missing cells", [Paragraph(text + more), table, failures])]


def failures_table(failures: Sequence[Failures]) -> Table | None:
    """Return a table of the failed cells by cause; None if there are none."""
    rows = [[f"{group.cells:,}", group.first, group.cause] for group in failures]
    return Table(["failed cells", "first of them", "cause"], rows, "Failed cells by cause", texts=-1) if rows else None


def _provenance(results: Results) -> dict[str, Any]:
    """Return facts on versions, logs, and constant and varied settings."""
    plan, cells = results.plan, results.cells
    settings, spelled = plan.cells[0].settings, plan.spelled
    rows: dict[str, Any] = {
        "walltime": ", ".join(sorted(set(cells["walltime"].drop_nulls()))),
        "code of the results": ", ".join(sorted(set(cells["engine"].drop_nulls()))),
        "page made by": version(),
        "trim": plan.trim,
        "seeds": _seeds(plan.seeds),
    }
    for name, value in settings.items():
        if name not in plan.varied and value != DIMENSIONS[name].default:
            rows[name.replace("_", " ")] = spelled.get(value, value)
    for name in plan.varied:
        values = dict.fromkeys(cell.settings[name] for cell in plan.cells)
        rows[f"{name.replace('_', ' ')}, varied"] = "; ".join("default" if v is None else str(spelled.get(v, v)) for v in values)
    return rows | {f"SHA-256 of {trace}": sha256 for trace, (_, sha256) in find_logs(plan).items()}


def _repetition(results: Results, command: str | Sequence[str] | None) -> str:
    """Return the commands that run the plan and write the page."""
    plan = results.plan
    store = ["--store", str(results.store.folder)] if results.store.folder != plan.store else []
    run = shlex.join(["walltime", "campaign", "run", str(plan.path) if command else plan.path.name, *store])
    return f"{run}\n{command_text(command or ['walltime', 'campaign', 'report', plan.path.name, '--report', 'page.html'])}"


def _seeds(seeds: Sequence[int]) -> str:
    listed = list(seeds)
    if len(listed) > 2 and listed == list(range(listed[0], listed[-1] + 1)):
        return f"{listed[0]} to {listed[-1]}"
    return ", ".join(map(str, listed))
