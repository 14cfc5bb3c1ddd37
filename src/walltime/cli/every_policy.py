"""`walltime compare LOG --policy all`: every policy at once, sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.cli.groups import Scheduling
    from walltime.metrics import Interval
    from walltime.schedule import Schedule
    from walltime.simulation.first_look import Look
    from walltime.simulation.specification import Scheduler
    from walltime.simulation.spread import Spread

ALL = "all"
BASELINE = "easy"


def refuse_beside_all(options: dict[str, object]) -> None:
    """Raise PolicyError for options, given or not, that are not for so many policies."""
    given = [name for name, value in options.items() if value]
    if given:
        raise PolicyError(f"{' and '.join(given)} are not for all policies at once; leave them out, or name a few policies")


def show_all(
    schedules: Sequence[Schedule],
    schedulers: Sequence[Scheduler],
    run: Scheduling,
    copies: int | None,
    *,
    trace: Path,
    seconds_read: float,
    out: Path | None,
    as_object: Callable[..., dict[str, Any]] | None,
) -> None:
    """Shake the log, sort the policies, and print them; `copies`: of the log, None for no intervals.

    `as_object`: makes of the records what `--json` prints; None for text.
    """
    from walltime.cli import common
    from walltime.report.caveats import caveats_of
    from walltime.schedule.comparison import compare
    from walltime.simulation.first_look import first_look
    from walltime.simulation.spread import shaking_spread

    trim, labels = run.trim.value, [scheduler.label for scheduler in schedulers]
    spread = None
    if copies is not None:
        with common.progress_bar(copies, "shaken copies of the log") as progress:
            spread = shaking_spread(schedules, trim, progress, copies=copies)
    looks = first_look(schedules, labels, labels.index(BASELINE), spread, trim)
    caveats = [
        f"{len(looks)} policies are compared on one log: the lowest of so many is partly luck, and the intervals do not "
        "include that choice; each holds its 90 % alone. See whether it is as low on other logs, or in other months, as well.",
        *caveats_of([schedules[labels.index(BASELINE)]], trim, run.estimates),
    ]
    if out is not None:
        common.write_rows(compare(*schedules, trim=trim).table(), out)
    if as_object is not None:
        shared: dict[str, Any] = {"trace": trace, "seconds_read": seconds_read, "estimates": run.estimates, "seed": run.seed}
        records = [common.run_record(schedule, trim, **shared)[0] for schedule in schedules]
        common.print_json(as_object(records, [], None, caveats, spread) | {"sorted": [look.as_dict() for look in looks]})
        return
    print_looks(looks, schedules, spread)
    common.print_caveats(caveats)
    if out is not None:
        typer.echo(f"{len(schedules)} rows written to {out}")


def print_looks(looks: Sequence[Look], schedules: Sequence[Schedule], spread: Spread | None) -> None:
    """A row for each policy, and what the columns are."""
    from walltime.cli.common import percent, print_table, print_text

    workload = schedules[0].workload
    rows = [
        [
            look.label,
            _shown(look.means["mean_bounded_slowdown"], 1),
            _shown(look.differences["mean_bounded_slowdown"], 1, sign=True),
            "" if look.label == BASELINE else look.verdict("mean_bounded_slowdown"),
            _shown(look.means["mean_wait"], 0),
            _shown(look.differences["mean_wait"], 0, sign=True),
            "" if look.label == BASELINE else look.verdict("mean_wait"),
        ]
        for look in looks
    ]
    processors = f"{workload.machine_procs:,} processors"
    title = f"{workload.origin.name}: {len(workload):,} jobs, {processors}, offered load {percent(schedules[0].offered_load)}"
    columns = ["policy", "bounded slowdown", f"more than {BASELINE}", "which is", "mean wait (s)", f"more than {BASELINE} (s)", "which is"]
    print_table(title, columns, rows)
    if spread is not None:
        print_text(
            f"Means over the log and {spread.copies} copies whose submissions are shaken by up to {spread.seconds} s; "
            f"within \N{PLUS-MINUS SIGN} of them a further copy would lie with 90 %. Differences to {BASELINE} are paired, and better or "
            "worse where they exceed that. It tells how chaotic this log is, not what another log would show."
        )


def _shown(found: Interval, digits: int, sign: bool = False) -> str:
    """A mean, and its interval if there is one, with at most so many decimals, and none beyond the error."""
    from walltime.wording import to_error

    half = found.half_width
    if half != half:
        return f"{found.mean:{'+' if sign else ''},.{digits}f}"
    error = max(half, 10 ** (1 - digits))
    return f"{'+' if sign and found.mean > 0 else ''}{to_error(found.mean, error)} \N{PLUS-MINUS SIGN} {to_error(half, error)}"
