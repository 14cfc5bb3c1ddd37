"""`walltime tune`: a queue order fitted to a log, tested on its later months."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, caveats, command_line, progress_bar, write_json


@dataclass(frozen=True)
class Runs:
    """The simulated policy, and the measure."""

    policy: Annotated[
        str, o.option("Fit the order of this policy, and compare with it; walltime list policies shows all.", "--policy", group=o.SCHEDULER)
    ] = "easy"
    metric: Annotated[
        str,
        o.option("Minimise this metric: mean_wait, p90_wait, mean_bounded_slowdown, ...; walltime list metrics shows all.", group=o.RUNS),
    ] = "mean_bounded_slowdown"
    seed: o.SeedOption = 0
    overrun: o.OverrunOption = "kill"


@dataclass(frozen=True)
class FitOptions:
    """How a score is fitted."""

    score: Annotated[str, o.option("Fit a score of this kind: linear or power.", group=o.SCHEDULER)] = "power"
    features: Annotated[
        str | None,
        o.option(
            "Use these features in the score, as in wait/area: wait, believed, procs or area; for linear also log-wait, ... Default: those "
            "of the kind of score.",
            group=o.SCHEDULER,
        ),
    ] = None
    where: Annotated[str, o.option("Use the score as order or as backfill-order.", group=o.SCHEDULER, advanced=True)] = "order"
    days: Annotated[int, o.option("Cut the log into windows of N days.", group=o.RUNS, advanced=True, min=1)] = 30
    margin: Annotated[
        int, o.option("Simulate N further days before and after each window, without measuring them.", group=o.RUNS, advanced=True, min=0)
    ] = 7
    test_share: Annotated[float, o.option("Hold out this last share of the log, above 0 and below 1, for the test.", group=o.RUNS)] = 0.5
    most: Annotated[int, o.option("Train on at most N windows.", group=o.RUNS, advanced=True, min=2)] = 6
    copies: Annotated[int, o.option("Simulate N copies of each window, the original included.", group=o.RUNS, advanced=True, min=1)] = 2
    shake: Annotated[
        int,
        o.option(
            "Move the submissions of the copies at random by up to this many seconds.",
            group=o.RUNS,
            advanced=True,
            min=1,
            metavar="SECONDS",
        ),
    ] = 60
    budget: Annotated[int, o.option("Simulate N candidates.", group=o.RUNS, min=1)] = 150
    optimiser: Annotated[
        str, o.option("Find candidates by cma (needs the extra tune: pip install walltime[tune]) or at random (random).", group=o.RUNS)
    ] = "cma"
    store: Annotated[
        Path | None, o.option("Keep the simulations in this folder, and continue from there.", metavar="DIR", callback=o.written)
    ] = None
    workers: o.WorkersOption = None


@manual(
    "guides/tuning",
    ("Fit the queue order to the first half of a log, and test it on the second half.", "tune KTH-SP2 --out order.json"),
    ("Fit the backfill order with few simulations.", "tune log.swf.gz --where backfill-order --budget 20 --optimiser random"),
)
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
    """Fit the order of the queue to the first months of a log, and test it on the later months."""
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
