"""`walltime tune`: a queue order fitted to a log, tested on its later months."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, caveats, command_line, progress_bar, write_json

FIT = "The fitting"


@dataclass(frozen=True)
class Runs:
    """What is simulated, and measured."""

    policy: Annotated[str, o.option("--policy", "It gets the order, and is the baseline.")] = "easy"
    metric: Annotated[str, o.option("--metric", "It is to be lower.")] = "mean_bounded_slowdown"
    seed: o.SeedOption = 0
    overrun: o.OverrunOption = "kill"


@dataclass(frozen=True)
class FitOptions:
    """How a score is fitted."""

    score: Annotated[str, o.own("The kind of score: linear or power.", FIT)] = "power"
    features: Annotated[
        str | None, o.own("Of the score, as wait/area: wait, believed, procs, area; for linear also log-wait, ...", FIT)
    ] = None
    where: Annotated[str, o.own("Use the score as order or as backfill-order.", FIT)] = "order"
    days: Annotated[int, o.own("Length of a window.", FIT, min=1)] = 30
    margin: Annotated[int, o.own("Days before and after it that are simulated, but not measured.", FIT, min=0)] = 7
    test_share: Annotated[float, o.option("--test-share", panel=FIT)] = 0.5
    most: Annotated[int, o.option("--most", "Windows for training.", FIT, min=2)] = 6
    copies: Annotated[int, o.option("--copies", "So many per window, the log itself counted.", FIT, min=1)] = 2
    shake: Annotated[int, o.option("--shake", "For the copies.", FIT, min=1, metavar="SECONDS")] = 60
    budget: Annotated[int, o.own("Candidates to simulate.", FIT, min=1)] = 150
    optimiser: Annotated[str, o.own("How candidates are found: cma (needs the extra tune) or random.", FIT)] = "cma"
    store: Annotated[Path | None, o.option("--store", panel=FIT)] = None
    workers: o.WorkersOption = None


def tune(
    trace: o.TraceArgument,
    *,
    runs: Runs,
    fitting: FitOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the result", ".json")] = None,
    output: PageOutput,
) -> None:
    """Fit the order of the queue to the first months of a log, and say what it gains on the later ones."""
    from walltime.tuning import tune as fit
    from walltime.tuning.page import tuning_page, tuning_tables

    workload = stretch.alone(reading.load(trace)[0])
    options = asdict(fitting)
    options |= {"warm": options.pop("margin"), "share": 1 - options.pop("test_share")}
    if fitting.features is not None:
        options["features"] = [name.strip() for name in fitting.features.split("/")]
    with progress_bar(fitting.budget, "candidates") as progress:
        result = fit(workload, progress=progress, **asdict(runs), **options)
    if out is not None:
        write_json(result.as_dict(), out)
    if output.report is not None:
        output.write(tuning_page(result, workload, {"command": command_line()}))
    output.show(result.as_dict(), [*tuning_tables(result), *result.verdict, *caveats(result.caveats)], result=out)
