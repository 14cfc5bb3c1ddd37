"""What `simulate` and `compare` print of replications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walltime.simulation.replication import Replications

METRICS = ("mean_wait", "mean_response", "mean_slowdown", "mean_bounded_slowdown", "utilization", "backfilled_percent")
"""The fields of a summary shown for replications."""
LEAST = 0.1
"""Errors below this do not make for more than two decimals."""


def as_records(results: Sequence[Replications]) -> list[dict[str, Any]]:
    """The `--json` record of replications: mean, range of single runs, spread, and paired differences to the first policy."""
    from walltime.metrics.intervals import KINDS

    records = []
    for result in results:
        record: dict[str, Any] = {"policy": result.scheduler.label, "seeds": list(result.seeds)}
        for name in METRICS:
            band = result.band(name)
            record[name] = {"mean": band.mean, "low": band.low, "high": band.high, "what": band.what}
            record[name]["relative_spread"] = result.spread(name)
            if result is not results[0] and len(result.seeds) > 1:
                difference = result.difference(name, results[0])
                record[name]["difference"] = {
                    "mean": difference.mean,
                    "low": difference.low,
                    "high": difference.high,
                    "what": difference.what,
                    "of": KINDS["replications.difference"].of,
                }
        records.append(record)
    return records


def print_replications(title: str, results: Sequence[Replications]) -> None:
    """Print the mean and spread of each measure, and the meaning of the spread."""
    from walltime import metrics
    from walltime.cli.common import print_table, print_text
    from walltime.metrics.intervals import KINDS, SCOPES, SHOWN_LEVEL
    from walltime.report.measures import measure

    rows = []
    for result in results:
        for name in METRICS:
            shown = measure(name)
            row = [f"{result.scheduler.label}: {shown.axis}", *_shown(result, name, shown.divisor)]
            row.append(f"{100 * result.spread(name):.1f} %")
            if len(results) > 1:
                row.append("" if result is results[0] else _difference(result, results[0], name))
            rows.append(row)
    columns = ["", "mean", "single runs: from", "to", "spread"]
    print_table(title, [*columns, *([f"difference to {results[0].scheduler.label}"] if len(results) > 1 else [])], rows)
    print_text(f"Single runs: {metrics.range_meaning(len(results[0].seeds))}; no confidence interval of the mean.")
    print_text("The spread is the standard deviation of the runs over their mean.")
    if len(results) > 1:
        print_text(f"A difference is the mean over pairs with the same seed, +- the half-width of its {SHOWN_LEVEL} confidence interval.")
    print_text(f"Of {KINDS['replications.mean'].of}: {SCOPES[KINDS['replications.mean'].of]}.")


def _difference(result: Replications, first: Replications, name: str) -> str:
    if len(result.seeds) < 2:
        return ""
    from walltime.report.measures import measure
    from walltime.wording import to_error

    interval = result.difference(name, first)
    divisor = measure(name).divisor
    mean, half = interval.mean / divisor, interval.half_width / divisor
    return f"{'+' if mean >= 0 else ''}{to_error(mean, max(half, LEAST))} +- {to_error(half, max(half, LEAST))}"


def _shown(result: Replications, name: str, divisor: float) -> list[str]:
    """The mean and the range of single runs, without digits that their errors make meaningless."""
    from walltime.wording import to_error

    band = result.band(name)
    width = (band.high - band.low) / divisor
    error = result.interval(name).half_width / divisor if len(result.seeds) > 1 else width
    ends = (to_error(end / divisor, max(width, LEAST)) for end in (band.low, band.high))
    return [to_error(band.mean / divisor, max(error, LEAST)), *ends]
