"""Many runs of one log in `simulate` and `compare`: replications, and lists of loads and of estimates."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.cli.groups import Part, Scheduling
    from walltime.machine import Machine
    from walltime.simulation.replication import Replications
    from walltime.simulation.specification import Scheduler
    from walltime.simulation.variation import Variation
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
    machine: Machine | None = None,
) -> None:
    """Simulate every combination of load, estimates and policy with the same seeds; print, and write the page and the table of all runs.

    Raises PolicyError if all replications would be the same.
    """
    from walltime.campaign import replication_cells
    from walltime.cli import common
    from walltime.cli.vary import as_records, print_replications
    from walltime.report.replicated import write_replicated_report

    models, variations = run.models(), part.variations(run.feedback)
    for variation, model in itertools.product(variations.values(), models.values()):
        if run.replications > 1:
            variation.check_replications(model)
    bases = {load: variation.apply(workload, run.seed) for load, variation in variations.items()}
    shown = next(iter(bases.values()))
    several = len(models) > 1 or len(bases) > 1
    if len(bases) > 1:  # what they have in common
        shown = replace(next(iter(variations.values())), load=None, scale_by="interarrival").apply(workload, run.seed)
    common.note_feedback(shown)
    found = _simulate(schedulers, run, variations, bases, report is not None and not several, machine)
    results, combinations = [result for _, result in found], [combination for combination, _ in found] if several else None
    cells = replication_cells(results, combinations)
    trim = run.trim.value
    if report is not None:
        settings = {"command": common.command_line(), "shake": part.shake or None, "feedback": run.feedback or None, **run.settings}
        settings |= {"estimates": list(models) if len(models) > 1 else run.estimates, **(_loads(bases) if len(bases) > 1 else {})}
        write_replicated_report(report, results, shown, combinations=combinations, trim=trim, settings=settings)
    if out is not None:
        common.write_rows(cells, out)
    shared = {"trace": trace, "shake": part.shake, "trim": trim, **run.settings}
    if combinations is not None:
        record = common.replication_object(shown, [], **shared) | {"seeds": list(run.seeds)} | _loads(bases) | {"estimates": list(models)}
        _show_combinations(results, combinations, run, record | {"report": report}, as_json)
    elif as_json:
        record = common.replication_object(shown, as_records(results), **shared, estimates=run.estimates)
        common.print_json(record | ({"report": report} if report is not None else {}))
    else:
        title = f"{shown.origin.name}: {len(shown):,} jobs, {run.replications} replications, seeds {run.seeds[0]} to {run.seeds[-1]}"
        print_replications(title, results)
    if report is not None and not as_json:
        typer.echo(f"report written to {report}")
    if out is not None and not as_json:
        typer.echo(f"{len(cells)} rows written to {out}")


def _simulate(
    schedulers: Sequence[Scheduler],
    run: Scheduling,
    variations: Mapping[float | None, Variation],
    bases: Mapping[float | None, Workload],
    keep: bool,
    machine: Machine | None,
) -> list[tuple[dict[str, Any], Replications]]:
    """The parameters and the replications of every combination, with a progress bar for each that takes long."""
    from walltime.cli.common import progress_bar
    from walltime.report.replicated import curves
    from walltime.simulation.replication import replicate

    models = run.models()
    if len(models) > 1 or len(bases) > 1:  # combinations are known by their labels
        schedulers = list({scheduler.label: scheduler for scheduler in schedulers}.values())
    found = []
    for (load, base), (text, model), scheduler in itertools.product(bases.items(), models.items(), schedulers):
        replica = functools.partial(variations[load].replica, base, model)
        words = [scheduler.label, *([f"load {load:g}"] if load is not None else []), *([text] if len(models) > 1 else [])]
        words += [f"{run.replications} replications"] if run.replications > 1 else []
        options: dict[str, Any] = {
            "trim": run.trim.value,
            "keep": curves(run.trim.value) if keep else None,
            **run.rules,
        }
        with progress_bar(run.replications, ", ".join(words)) as progress:
            result = replicate(replica, scheduler, run.seeds, machine=machine, progress=progress, **options)
        found.append(({"load": load, "policy": scheduler.label, "estimates": text}, result))
    return found


def _loads(bases: Mapping[float | None, Workload]) -> dict[str, list[Any]]:
    """The loads that were asked for, and what they came to."""
    return {"load": list(bases), "offered_load_of_log": [base.offered_load for base in bases.values()]}


def _show_combinations(
    results: Sequence[Replications],
    combinations: Sequence[Mapping[str, Any]],
    run: Scheduling,
    record: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Print a line for each combination and measure, as in a campaign's report."""
    from walltime.cli.common import print_caveats, print_json
    from walltime.cli.lines import line_records, print_lines
    from walltime.report.combinations import varying
    from walltime.report.replicated import caveats_of_cells, compare_replications

    lines, baseline = compare_replications(results, combinations)
    caveats = caveats_of_cells(results, combinations, run.trim.value)
    if as_json:
        kept = {name: value for name, value in record.items() if name not in ("replications", "steps")}  # they differ between the loads
        kept["policy"] = list(dict.fromkeys(combination["policy"] for combination in combinations))
        print_json(kept | {"baseline": baseline, "caveats": caveats, "lines": line_records(lines)})
        return
    runs = f"{run.replications} replications, seeds {run.seeds[0]} to {run.seeds[-1]}" if run.replications > 1 else f"seed {run.seed}"
    typer.echo(f"{Path(record['trace']).name}: {record['jobs']:,} jobs, {record['procs']:,} processors, {runs}")
    print_lines(varying(lines), lines, baseline)
    print_caveats(caveats)
