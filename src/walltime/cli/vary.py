"""What `simulate` and `compare` can do to a log before they run it, and running it many times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.estimates import EstimateModel
    from walltime.policy import Policy
    from walltime.schedule.replication import Replications
    from walltime.workload import Workload

METRICS = ("mean_wait", "mean_response", "mean_slowdown", "mean_bounded_slowdown", "utilization", "backfilled_percent")
"""The fields of a summary that are shown of replications."""


@dataclass(frozen=True)
class Variation:
    """How a log is varied: what is the same in every replication, and what each seed changes."""

    load: float | None = None
    scale_by: str = "interarrival"
    remove: Sequence[str] = ()
    head: int | None = None
    tail: int | None = None
    window: str | None = None
    shake: int = 0
    feedback: bool = False

    def apply(self, workload: Workload, seed: int) -> Workload:
        """Everything but shaking and estimates: filters first, then the part of the log, then the load."""
        from walltime.cli.common import note
        from walltime.logs.cleaning import clean
        from walltime.workload import scaling

        if self.scale_by != "interarrival" and self.load is None:
            raise PolicyError("--scale-by says how to reach a --load; give both")

        if self.remove:
            workload = clean(workload, self.remove).after
        if self.window is not None:
            begin, end = _span(self.window)
            workload = scaling.window(workload, begin, end)
        if self.head is not None:
            workload = scaling.head(workload, self.head)
        if self.tail is not None:
            workload = scaling.tail(workload, self.tail)
        if self.load is not None:
            workload = scaling.scale_load(workload, self.load, self.scale_by, seed)
        if self.feedback:
            workload = workload.with_feedback()
            if (workload.dependencies()[0] < 0).all():
                note("no job of this log names one that it follows, so --feedback changes nothing")
        return workload

    def replica(self, workload: Workload, model: EstimateModel, seed: int) -> Workload:
        """What one seed makes of the workload: shaken, with estimates drawn."""
        from walltime.workload.scaling import shake

        shaken = shake(workload, self.shake, seed) if self.shake else workload
        return shaken.with_estimates(model, seed)

    def check_replications(self, model: EstimateModel) -> None:
        """Replications that would all be the same tell nothing; raises PolicyError."""
        if not self.shake and not model.random:
            raise PolicyError("replications would all be the same; shake the log (--shake 30) or draw estimates (--estimates f:4)")


def _span(text: str) -> tuple[int, int]:
    from walltime.logs.filters import UNITS

    match = re.fullmatch(r"(\d+)([smhdw]?):(\d+)([smhdw]?)", text.strip())
    if match is None:
        raise PolicyError(f"the window {text!r} is not of the form BEGIN:END, such as 86400:172800 or 30d:60d")
    return int(match[1]) * UNITS[match[2]], int(match[3]) * UNITS[match[4]]


def run_replications(
    variation: Variation,
    workload: Workload,
    model: EstimateModel,
    policies: Sequence[Policy],
    seeds: range,
    *,
    as_json: bool,
    settings: dict[str, Any],
    **options: Any,
) -> None:
    """Replicate each policy with the same seeds, with a progress bar if it takes long, and print what came out.

    `settings` stand in the JSON object; `options` go to `walltime.replicate`.
    """
    from walltime.cli.common import announce_compilation, print_json, progress_bar, replication_object
    from walltime.schedule.replication import replicate

    variation.check_replications(model)
    announce_compilation()
    results = []
    for policy in policies:
        with progress_bar(len(seeds), f"{policy.label}, {len(seeds)} replications") as progress:
            results.append(replicate(lambda seed: variation.replica(workload, model, seed), policy, seeds, progress=progress, **options))
    if as_json:
        print_json(replication_object(workload, as_records(results), shake=variation.shake, **options, **settings))
        return
    title = f"{workload.origin.name}: {len(workload):,} jobs, {len(seeds)} replications, seeds {seeds[0]} to {seeds[-1]}"
    print_replications(title, results)


def as_records(results: Sequence[Replications]) -> list[dict[str, Any]]:
    """What `--json` prints of replications: mean, percentile band, spread, and paired differences to the first policy."""
    records = []
    for result in results:
        record: dict[str, Any] = {"policy": result.policy.label, "seeds": list(result.seeds)}
        for name in METRICS:
            band = result.band(name)
            record[name] = {"mean": band.mean, "p5": band.low, "p95": band.high, "relative_spread": result.spread(name)}
            if result is not results[0] and len(result.seeds) > 1:
                difference = result.difference(name, results[0])
                record[name]["difference"] = {
                    "mean": difference.mean,
                    "low": difference.low,
                    "high": difference.high,
                    "what": difference.what,
                }
        records.append(record)
    return records


def print_replications(title: str, results: Sequence[Replications]) -> None:
    """Print the mean of each measure, the spread beside it, and what the spread is."""
    from walltime.cli.common import print_table

    rows = []
    for result in results:
        for name in METRICS:
            band = result.band(name)
            row = [f"{result.policy.label}: {name.replace('_', ' ')}", f"{band.mean:,.2f}", f"{band.low:,.2f}", f"{band.high:,.2f}"]
            row.append(f"{100 * result.spread(name):.1f} %")
            if len(results) > 1:
                row.append("" if result is results[0] else _difference(result, results[0], name))
            rows.append(row)
    columns = ["", "mean", "5th percentile", "95th percentile", "spread"]
    print_table(title, [*columns, *([f"difference to {results[0].policy.label}"] if len(results) > 1 else [])], rows)
    typer.echo("The percentiles are of single replications; they are no confidence interval of the mean.")
    typer.echo("The spread is the standard deviation of the replications over their mean.")
    if len(results) > 1:
        typer.echo("A difference is the mean over pairs with the same seed, +- the half-width of its 90 % confidence interval.")


def _difference(result: Replications, first: Replications, name: str) -> str:
    if len(result.seeds) < 2:
        return ""
    interval = result.difference(name, first)
    return f"{interval.mean:+,.2f} +- {interval.half_width:,.2f}"
