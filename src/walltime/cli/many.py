"""Many runs of one log in `simulate` and `compare`: replications, and lists of loads and of estimates."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.campaign import Line
    from walltime.cli.groups import Part, Scheduling
    from walltime.schedule.replication import Replications
    from walltime.schedule.scheduler import Scheduler
    from walltime.workload import Workload


def is_many(run: Scheduling, part: Part) -> bool:
    """Whether the options ask for more than one run of each policy."""
    return run.replications > 1 or len(part.loads) > 1 or len(run.models()) > 1


def refuse(options: dict[str, object]) -> None:
    """Raise PolicyError for options, given or not, that show one run only."""
    given = [name for name, value in options.items() if value]
    if given:
        raise PolicyError(f"{' and '.join(given)} would show one run; leave out, or take one replication, one load and one estimate")


def run_many(
    trace: Path,
    workload: Workload,
    schedulers: Sequence[Scheduler],
    run: Scheduling,
    part: Part,
    *,
    report: Path | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Simulate every combination of load, estimates and policy with the same seeds; print, and write the page and the table of all runs.

    Raises PolicyError if all replications would be the same.
    """
    from walltime.campaign import replication_cells
    from walltime.cli import common
    from walltime.cli.vary import as_records, print_replications
    from walltime.report.replicated import cautions_of_cells, compare_replications, curves, write_replicated_report
    from walltime.schedule.replication import replicate

    models, variations = run.models(), part.variations(run.feedback)
    one = len(models) == len(variations) == 1
    schedulers = schedulers if one else list({scheduler.label: scheduler for scheduler in schedulers}.values())
    for variation, model in itertools.product(variations.values(), models.values()):
        if run.replications > 1:
            variation.check_replications(model)
    bases = {load: variation.apply(workload, run.seed) for load, variation in variations.items()}
    common.note_feedback(next(iter(bases.values())))
    combinations: list[dict[str, Any]] = []
    results: list[Replications] = []
    keep = curves(run.trim.value) if report is not None and one else None
    for load, text, scheduler in itertools.product(bases, models, schedulers):
        base, model, variation = bases[load], models[text], variations[load]
        where = [*([f"load {load:g}"] if load is not None and len(bases) > 1 else []), *([text] if len(models) > 1 else [])]
        title = ", ".join([scheduler.label, *where, *([f"{run.replications} replications"] if run.replications > 1 else [])])

        def drawn(seed: int, base: Workload = base, model: Any = model, variation: Any = variation) -> Workload:
            return variation.replica(base, model, seed)

        with common.progress_bar(run.replications, title) as progress:
            found = replicate(drawn, scheduler, run.seeds, trim=run.trim.value, progress=progress, keep=keep, **run.rules)
        results.append(found)
        combinations.append({"load": load, "policy": scheduler.label, "estimates": text})
    if one:
        combinations = []
    lines, baseline = compare_replications(results, combinations or None)
    shown_trim = run.trim.value
    if report is not None:
        loads = [load for load in bases if load is not None]
        settings = {"command": ["walltime", *sys.argv[1:]], "shake": part.shake or None, "feedback": run.feedback or None, **run.rules}
        settings |= {"estimates": next(iter(models)) if len(models) == 1 else list(models), "load": loads or None}
        first = next(iter(bases.values()))
        write_replicated_report(report, results, first, combinations=combinations or None, trim=shown_trim, settings=settings)
    cells = replication_cells(results, combinations or None)
    if out is not None:
        common.write_rows(cells, out)
    base = next(iter(bases.values()))
    shared = {"trace": trace, "shake": part.shake, "trim": shown_trim, **run.rules}
    if one:
        if as_json:
            estimates = next(iter(models))
            record = common.replication_object(base, as_records(results), **shared, estimates=estimates)
            common.print_json(record | ({"report": report} if report is not None else {}))
            return
        title = f"{base.origin.name}: {len(base):,} jobs, {run.replications} replications, seeds {run.seeds[0]} to {run.seeds[-1]}"
        print_replications(title, results)
    else:
        cautions = cautions_of_cells(results, combinations, shown_trim)
        if as_json:
            common.print_json(_record(base, lines, baseline, combinations, cautions, report, shared, run))
            return
        _print(base, lines, baseline, cautions, run)
    if report is not None:
        typer.echo(f"report written to {report}")
    if out is not None:
        typer.echo(f"{len(cells)} rows written to {out}")


def _record(
    base: Workload,
    lines: Sequence[Line],
    baseline: dict[str, Any] | None,
    combinations: Sequence[dict[str, Any]],
    cautions: Sequence[str],
    report: Path | None,
    shared: dict[str, Any],
    run: Scheduling,
) -> dict[str, Any]:
    """The `--json` record of loads and estimates: a line for each combination and measure, as in a campaign's report."""
    from walltime.cli import common
    from walltime.cli.lines import line_records

    record = common.replication_object(base, [], **shared)
    for name in ("replications", "offered_load", "steps"):  # they differ between the loads
        record.pop(name)
    values = {name: list(dict.fromkeys(combination[name] for combination in combinations)) for name in ("policy", "load", "estimates")}
    more = {"seeds": list(run.seeds), "baseline": baseline, "cautions": list(cautions), "report": report, "lines": line_records(lines)}
    return record | values | more


def _print(base: Workload, lines: Sequence[Line], baseline: dict[str, Any] | None, cautions: Sequence[str], run: Scheduling) -> None:
    from walltime.cli.common import print_cautions
    from walltime.cli.lines import print_lines
    from walltime.report.combinations import varying

    runs = f"{run.replications} replications, seeds {run.seeds[0]} to {run.seeds[-1]}" if run.replications > 1 else f"seed {run.seed}"
    typer.echo(f"{base.origin.name}: {len(base):,} jobs, {base.machine_procs:,} processors, {runs}")
    print_lines(varying(lines), lines, baseline)
    print_cautions(cautions)
