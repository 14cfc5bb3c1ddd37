"""What `simulate` and `compare` print of replications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walltime.schedule.replication import Replications

METRICS = ("mean_wait", "mean_response", "mean_slowdown", "mean_bounded_slowdown", "utilization", "backfilled_percent")
"""The fields of a summary shown for replications."""


def as_records(results: Sequence[Replications]) -> list[dict[str, Any]]:
    """The `--json` record of replications: mean, percentile band, spread, and paired differences to the first policy."""
    records = []
    for result in results:
        record: dict[str, Any] = {"policy": result.scheduler.label, "seeds": list(result.seeds)}
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
    """Print the mean and spread of each measure, and the meaning of the spread."""
    from walltime.cli.common import print_table, print_text
    from walltime.report.measures import measure

    rows = []
    for result in results:
        for name in METRICS:
            band, shown = result.band(name), measure(name)
            row = [f"{result.scheduler.label}: {shown.axis}", *(f"{x / shown.divisor:,.2f}" for x in (band.mean, band.low, band.high))]
            row.append(f"{100 * result.spread(name):.1f} %")
            if len(results) > 1:
                row.append("" if result is results[0] else _difference(result, results[0], name))
            rows.append(row)
    columns = ["", "mean", "5th percentile", "95th percentile", "spread"]
    print_table(title, [*columns, *([f"difference to {results[0].scheduler.label}"] if len(results) > 1 else [])], rows)
    print_text("The percentiles are of single replications; they are no confidence interval of the mean.")
    print_text("The spread is the standard deviation of the replications over their mean.")
    if len(results) > 1:
        print_text("A difference is the mean over pairs with the same seed, +- the half-width of its 90 % confidence interval.")


def _difference(result: Replications, first: Replications, name: str) -> str:
    if len(result.seeds) < 2:
        return ""
    from walltime.report.measures import measure

    interval = result.difference(name, first)
    divisor = measure(name).divisor
    return f"{interval.mean / divisor:+,.2f} +- {interval.half_width / divisor:,.2f}"
