"""Many runs of one log in `simulate` and `compare`: replications, and lists of loads and of estimates."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walltime.cli.command_lines import command_line
from walltime.cli.option_groups import note_feedback
from walltime.cli.output import PageOutput, caveats, progress_bar, report_on, reported, write_rows
from walltime.cli.table import part_of
from walltime.errors import PolicyError
from walltime.metrics.intervals import KINDS, LEVEL
from walltime.wording import counted

if TYPE_CHECKING:
    from walltime.cli.option_groups import Files, JobSelection, SchedulingOptions
    from walltime.comparison import CombinationMean
    from walltime.machine import Machine
    from walltime.simulation.replication import Replications
    from walltime.simulation.specification import Scheduler, Variation
    from walltime.tables import Table
    from walltime.workload import Workload


def refuse(options: dict[str, object]) -> None:
    """Raise PolicyError for options of one run only, if any is given."""
    given = [name for name, value in options.items() if value]
    if given:
        names = f"{' and '.join(given)} {'works' if len(given) == 1 else 'work'}"
        raise PolicyError(f"{names} with a single run only; use one replication, one load and one estimate model")


def run_many(
    trace: Path,
    workload: Workload,
    schedulers: Sequence[Scheduler],
    run: SchedulingOptions,
    part: JobSelection,
    machine: Machine | None,
    output: PageOutput,
    files: Files,
) -> None:
    """Simulate every combination of load, estimates and policy with the same seeds; print, and write the page and the table of all runs.

    The figures of `files` are bands over the replications. Raises PolicyError if all replications would be the
    same, and for a figure of one run.
    """
    from walltime.comparison import replication_cells
    from walltime.comparison.many_runs_page import caveats_of_cells, compare_replications, replicated_page
    from walltime.comparison.runs import answer, combinations_table, short_remarks

    models, variations, trim = run.models, part.variations(run.feedback), run.trim
    several = len(models) > 1 or len(variations) > 1
    check_bands(files.figure, several)
    for variation, model in itertools.product(variations.values(), models.values()):
        if run.replications > 1 and not any(scheduler.draws for scheduler in schedulers):
            variation.check_replications(model)
    bases = {load: variation.apply(workload, run.seed) for load, variation in variations.items()}
    shown = next(iter(bases.values()))
    if len(bases) > 1:  # the workload before its load is changed
        shown = replace(next(iter(variations.values())), load=None, scale_by="interarrival").apply(workload, run.seed)
    note_feedback(shown)
    if machine is not None:
        from walltime.simulation.run import placed_under

        report_on(*(placed_under(shown, machine, one.policy)[0] for one in schedulers))
        placed = reported(shown).origin
        shown = replace(shown, origin=replace(shown.origin, drops=placed.drops, omissions=placed.omissions))
    pairs = list(_simulate(schedulers, run, variations, bases, (output.report is not None or bool(files.figure)) and not several, machine))
    results, combinations = [result for _, result in pairs], [combination for combination, _ in pairs] if several else None
    loads = {"load": list(bases), "offered_load_of_log": [base.offered_load for base in bases.values()]} if len(bases) > 1 else {}
    estimates = list(models) if len(models) > 1 else run.estimates
    if output.report is not None:
        settings = {"command": command_line(), "shake": part.shake or None, "feedback": run.feedback or None, **run.settings}
        settings |= {"estimates": estimates, **loads}
        output.write(replicated_page(results, shown, combinations, trim=trim, settings=settings, level=run.level))
    cells = replication_cells(results, combinations)
    if files.out is not None:
        write_rows(files.out, cells)
    record = _record(shown, run, {"trace": trace, "shake": part.shake, "trim": trim, **run.settings}, output.report)
    lines, baseline = compare_replications(results, combinations, level=run.level)
    seeds = f"{run.replications} replications, seeds {run.seeds[0]} to {run.seeds[-1]}" if run.replications > 1 else f"seed {run.seed}"
    title = f"{shown.origin.name}: {counted(len(shown), 'job')}, {counted(shown.machine_procs, 'processor')}, {seeds}"
    blocks: list[Any] = [
        answer([line for line in lines if line.metric == lines[0].metric], baseline, shown.origin.name),
        replace(combinations_table(lines, baseline), title=title),
        *short_remarks(lines, baseline),
    ]
    if combinations is None:
        record |= {"replications": as_records(results, run.level), "estimates": run.estimates}
    else:
        told = [*shown.warnings, *caveats_of_cells(results, combinations, trim)]
        blocks += caveats(told)
        record = {name: value for name, value in record.items() if name != "steps"}  # they differ between the loads
        record |= {"seeds": list(run.seeds), **loads, "estimates": list(models), "report": output.report}
        record["policy"] = list(dict.fromkeys(combination["policy"] for combination in combinations))
        record |= {"baseline": baseline, "caveats": told, "lines": line_records(lines)}
    drawn = draw_bands(files.figure, results, files.size)
    output.show(record, blocks, line_tables(lines, baseline), **{counted(len(cells), "row"): files.out}, **drawn)


def check_bands(figures: Sequence[str] | None, several: bool) -> None:
    """Raise PolicyError, before any work is done, for figures that have no bands; `several`: there are several loads or estimates."""
    if not figures:
        return
    figures_module = part_of("simulate --figure")
    if several:
        refuse({"--figure": figures})
    bands = figures_module.BANDS
    others = [name for name, _ in map(figures_module.named_file, figures) if name not in bands]
    if others:
        raise PolicyError(f"--figure {others[0]} shows a single run; with replications, draw {' or '.join(bands)}")


def draw_bands(texts: Sequence[str] | None, results: Sequence[Replications], size: str) -> dict[str, Path]:
    """Draw the requested figures as bands over the replications, and return their files by content."""
    if not texts:
        return {}
    figures = part_of("simulate --figure")
    named = map(figures.named_file, texts)
    return {f"figure_of_{name}": figures.save(figures.bands(results, name, width=size or "column"), path) for name, path in named}


def _record(shown: Workload, run: SchedulingOptions, settings: Mapping[str, Any], report: Path | None) -> dict[str, Any]:
    """Return the keys that the `--json` records of replications and of combinations share."""
    from walltime.provenance import version

    origin = shown.origin
    return {
        "sha256": origin.sha256,
        "procs": shown.machine_procs,
        "jobs": len(shown),
        "offered_load_of_log": shown.offered_load,
        "steps": list(origin.steps),
        **{name: dict(getattr(origin, name)) for name in ("dropped", "changed", "noticed")},
        "feedback": shown.feedback,
        **settings,
        **({"report": report} if report is not None else {}),
        "version": version(),
    }


def _simulate(
    schedulers: Sequence[Scheduler],
    run: SchedulingOptions,
    variations: Mapping[float | None, Variation],
    bases: Mapping[float | None, Workload],
    keep: bool,
    machine: Machine | None,
) -> Iterator[tuple[dict[str, Any], Replications]]:
    """Yield the parameters and the replications of every combination; long ones show a progress bar."""
    from walltime.comparison.many_runs_page import curves
    from walltime.simulation.replication import replicate

    models, trim = run.models, run.trim
    if len(models) > 1 or len(bases) > 1:  # combinations are known by their labels
        schedulers = list({scheduler.label: scheduler for scheduler in schedulers}.values())
    options: dict[str, Any] = {"trim": trim, "keep": curves(trim) if keep else None, "machine": machine, **run.rules}
    for (load, base), (text, model), scheduler in itertools.product(bases.items(), models.items(), schedulers):
        replica = functools.partial(variations[load].replica, base, model)
        words = [scheduler.label, *([f"load {load:g}"] if load is not None else []), *([text] if len(models) > 1 else [])]
        words += [f"{run.replications} replications"] if run.replications > 1 else []
        with progress_bar(run.replications, ", ".join(words)) as progress:
            result = replicate(replica, scheduler, run.seeds, progress=progress, **options)
        yield {"load": load, "policy": scheduler.label, "estimates": text}, result


def as_records(results: Sequence[Replications], level: float = LEVEL) -> list[dict[str, Any]]:
    """Return the `--json` record of replications: mean, range of single runs, spread, and paired differences from the first policy."""
    from walltime.comparison.tables import COLUMNS

    of, records = KINDS["replications.difference"].of, []
    for result in results:
        record: dict[str, Any] = {"policy": result.scheduler.label, "seeds": list(result.seeds)}
        for name in COLUMNS:
            record[name] = asdict(result.band(name)) | {"relative_spread": result.spread(name)}
            if result is not results[0] and len(result.seeds) > 1:
                record[name]["difference"] = asdict(result.difference(name, results[0], level)) | {"of": of}
        records.append(record)
    return records


def line_records(lines: Sequence[CombinationMean]) -> list[dict[str, Any]]:
    """Return the lines of a comparison of many runs, ready for JSON."""
    of, records = KINDS["replications.difference"].of, []
    for line in lines:
        record = {**line.combination, "group": line.group, "metric": line.metric, "runs": line.runs}
        record |= asdict(line.band) | {"relative_spread": line.spread}
        for name, interval in (("interval", line.interval), ("difference", line.difference)):
            if interval is not None:
                record[name] = asdict(interval) | {"of": of}
        if line.clear is not None:
            record["difference"] |= {"clear": line.clear, "p_holm": line.probability}
        records.append(record)
    return records


def line_tables(lines: Sequence[CombinationMean], baseline: Mapping[str, Any] | None, by: str | None = None) -> list[Table]:
    """Return the full table of each measure, for files; `by`: the name of the grouping, if the lines are for groups of jobs."""
    from walltime.comparison.runs import metric_table

    names = dict.fromkeys(line.metric for line in lines)
    return [metric_table([line for line in lines if line.metric == name], baseline, by) for name in names]
