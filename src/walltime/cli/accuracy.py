"""What `walltime estimates` says of hours asked for and used, of adjusted walltimes, and to the largest users."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from walltime.errors import PolicyError

if TYPE_CHECKING:
    import numpy as np

    from walltime.cli.groups import Reading
    from walltime.machine import Machine
    from walltime.simulation.accuracy import WalltimeAccuracy
    from walltime.workload import Workload


def is_users(model: str) -> bool:
    """Whether the estimates to look at are the users'."""
    return model.strip().lower() == "user"


def check(report: Path | None, adjusted: bool, cluster: Path | None, replications: int | None, model: str) -> None:
    """Raise PolicyError or OutputError, before any work is done, for options that do not fit together."""
    from walltime.cli.common import check_output

    if report is not None:
        check_output(report, (".html", ".htm"))
    simulated = report is not None or adjusted
    if simulated and not is_users(model):
        raise PolicyError("--report and --adjusted are about the users' estimates; leave out --estimates")
    given = [name for name, value in (("--cluster", cluster), ("--replications", replications)) if value is not None]
    if given and not simulated:
        raise PolicyError(f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} for simulations; add --adjusted or --report")


def hours_of(runtime: np.ndarray, requested: np.ndarray, procs: np.ndarray, killed: np.ndarray | None) -> dict[str, Any] | None:
    """Hours asked for and used by the jobs that have a limit, in all and by how jobs end; None if none has a limit."""
    from walltime.metrics.estimates import YEAR, asked_time, how_jobs_end

    limited = requested < YEAR
    if not limited.any():
        return None
    three = (runtime[limited], requested[limited], procs[limited])
    return {"total": asked_time(*three).as_dict(), "ends": how_jobs_end(*three, None if killed is None else killed[limited])}


def show_hours(found: dict[str, Any] | None) -> None:
    """Print them."""
    from walltime.cli.common import percent, print_facts
    from walltime.report.accuracy import hours

    if found is None:
        return
    t = found["total"]
    facts = [
        ("processor-hours asked for", hours(t["asked_hours"]), f"{percent(t['used_share'])} of them used"),
        ("asked for and not used", hours(t["unused_hours"]), ""),
    ]
    facts += [(row["group"], f"{row['jobs']:,}", f"jobs; {hours(row['unused_hours'])} hours not used") for row in found["ends"]]
    print_facts("hours, and how jobs end", facts)


def find(workload: Workload, machine: Machine | None, replications: int | None) -> WalltimeAccuracy:
    """The analysis with simulations, with progress bars."""
    from walltime.cli.common import progress_bar
    from walltime.simulation.accuracy import walltime_accuracy

    return walltime_accuracy(workload, machine=machine, replications=replications, progress=progress_bar)


def write_page(path: Path, found: WalltimeAccuracy, trace: Path, reading: Reading, machine: Machine | None) -> None:
    """Write the page, with the command line in its provenance, and commands that read the log as this one did."""
    from walltime.cli import common
    from walltime.report import write_accuracy_report

    size = ["--procs", str(machine.procs)] if machine is not None and reading.procs is None else []
    settings = {"command": common.command_line()}
    write_accuracy_report(path, found, settings=settings, log=[str(trace), *reading.words, *size])


def record_of(found: WalltimeAccuracy) -> dict[str, Any]:
    """What `--json` says of it."""
    from walltime.report.accuracy import as_record

    return as_record(found)


def show(found: WalltimeAccuracy) -> None:
    """Print whose hours they are, what adjusted walltimes gain, the advice, and the caveats."""
    from walltime.cli.common import percent, print_caveats, print_table, print_text
    from walltime.report.accuracy import MEANING, answer, caveats, hours

    for by in ("user", "account", "partition", "queue", "size", "length", "time"):
        rows = found.groups.get(by, ())
        if len(rows) < 2 and by != "user":
            continue
        lines = []
        for row in rows:
            times = [hours(row["asked_hours"]), hours(row["unused_hours"])]
            shares = [percent(math.nan if row[name] is None else row[name]) for name in ("used_share", "share_of_unused", "mean_accuracy")]
            lines.append([str(row["group"]), f"{row['jobs']:,}", *times, *shares])
        if lines:
            print_table(f"by {by}", ["", "jobs", "hours asked for", "not used", "used", "of all not used", "mean accuracy"], lines)
    print_text(MEANING)
    _show_adjusted(found)
    _show_advice(found)
    print_text(answer(found))
    print_caveats(caveats(found))


def _show_adjusted(found: WalltimeAccuracy) -> None:
    from walltime.cli.common import print_table, print_text
    from walltime.report import human_number, human_percent, human_time
    from walltime.report.accuracy import change
    from walltime.simulation.adjusted import MEANINGS

    a = found.adjusted
    if a is None:
        return
    lines = []
    for row in a.rows():
        times = [human_time(row[name]) for name in ("mean_wait", "median_wait", "p90_wait")]
        shares = [human_percent(100 * row[name]) for name in ("utilization", "accuracy")]
        under = [human_percent(row[name]) for name in ("under", "bad")]
        lines.append([row["what"], times[0], change(row), *times[1:], human_number(row["mean_bounded_slowdown"]), *shares, *under])
    head = [
        "adjusted walltimes",
        "mean wait",
        "change",
        "median",
        "90 %",
        "bounded slowdown",
        "utilization",
        "accuracy",
        "under",
        "30 min under",
    ]
    print_table("what adjusted walltimes would gain, simulated", head, lines)
    for row in a.rows():
        said = MEANINGS.get(row["what"])
        print_text(f"{row['what']}: {row['policy']}" + ("" if said is None else f"; {said}"))


def _show_advice(found: WalltimeAccuracy) -> None:
    from walltime.cli.common import print_table, print_text
    from walltime.report import human_time
    from walltime.report.accuracy import hours, kind_of

    lines = []
    for one in found.advice:
        row = [f"user {one.user}", hours(one.unused_hours), kind_of(one)]
        if one.advice is None:
            lines.append([*row, *["n/a"] * 5])
            continue
        a, s = one.advice, one.advice.suggestions[0]
        tested = "n/a" if math.isnan(s.backtest) else f"{s.backtest:.1f} %"
        times = [human_time(value) for value in (a.median_runtime, a.median_request, s.walltime)]
        lines.append([*row, *times, tested, hours(one.less_hours)])
    if lines:
        head = ["", "hours not used", "kind of job", "ran", "asked for", "ask for", "killed in hindsight", "hours less"]
        print_table("what the users with most hours not used could ask for, at a risk of 5 %", head, lines)
        print_text("More of each: walltime suggest LOG --user NAME [--job-name NAME] [--job-procs N]. Ran, asked for: medians.")
