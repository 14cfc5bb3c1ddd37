"""`walltime tune`: fit a queue order to a log; `walltime search`: search for an order that performs well on many logs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, caveats, progress_bar, write_json
from walltime.errors import PolicyError


@dataclass(frozen=True)
class Runs:
    """Options for the simulated policy and the metric."""

    policy: str = o.field(
        "easy", "Fit the order of this policy, and compare with it; walltime list policies shows all.", "--policy", group=o.SCHEDULER
    )
    metric: str = o.field(
        "mean_bounded_slowdown",
        "Minimise this wait, response or slowdown metric: mean_wait, p90_wait, mean_bounded_slowdown, ...; walltime list metrics "
        "shows all.",
        group=o.RUNS,
    )
    seed: o.SeedOption = 0
    overrun: o.OverrunOption = "kill"


@dataclass(frozen=True)
class FitOptions:
    """Options for fitting a score."""

    score: str = o.field("power", "Fit a score of this kind: linear or power.", group=o.SCHEDULER)
    features: str | None = o.field(
        None,
        "Use these features in the score, separated by slashes as in wait/area: wait, planned (the planned runtime), procs or "
        "area; for a linear score also log-wait, ... Default: wait/planned/procs, for a linear score also area, log-wait and log-area.",
        group=o.SCHEDULER,
    )
    where: str = o.field("order", "Fit the queue order (order) or the backfill order (backfill-order).", group=o.SCHEDULER, advanced=True)
    days: int = o.field(30, "Cut the log into windows of N days.", group=o.RUNS, advanced=True, min=1)
    margin: int = o.field(
        7, "Simulate N more days before and after each window, without measuring them.", group=o.RUNS, advanced=True, min=0
    )
    test_share: float = o.field(0.5, "Hold out this final share of the log, above 0 and below 1, for the test.", group=o.RUNS)
    max_windows: int = o.field(6, "Train on at most N windows.", group=o.RUNS, advanced=True, min=2)
    copies: int = o.field(2, "Simulate N copies of each window, the original included.", group=o.RUNS, advanced=True, min=1)
    shake: o.CopyShakeOption = 60
    budget: o.BudgetOption = 150
    optimiser: o.OptimiserOption = "cma"
    store: o.StoreOption = None
    workers: o.WorkersOption = None


@manual(
    "guides/tuning",
    ("Fit the queue order to the first half of a log, and test it on the second half.", "tune KTH-SP2 --out order.json"),
    ("Fit the backfill order with few simulations.", "tune KTH-SP2 --where backfill-order --budget 20 --optimiser random"),
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
    from walltime.tuning.tables import tuning_tables

    workload = stretch.alone(reading.load(trace)[0])
    options = asdict(fitting)
    options |= {"warm": options.pop("margin"), "most": options.pop("max_windows"), "share": 1 - options.pop("test_share")}
    if fitting.features is not None:
        options["features"] = [name.strip() for name in fitting.features.split("/")]
    with progress_bar(fitting.budget, "candidates") as progress:
        result = fit(workload, progress=progress, **asdict(runs), **options)
    if out is not None:
        write_json(out, result.as_dict())
    blocks = [*tuning_tables(result), *result.verdict, *caveats(result.caveats)]
    output.write_blocks("tuning", f"A queue order fitted to {result.log}", result.verdict, blocks, workload)
    output.show(result.as_dict(), blocks, result=out)


@dataclass(frozen=True)
class SearchOptions:
    """Options for the search for an order."""

    budget: o.BudgetOption = 1500
    test_share: float = o.field(
        0.4, "Hold out this final share of each log, above 0 and below 1, for the choice among the best orders.", group=o.RUNS
    )
    copies: int | None = o.field(
        None, "Simulate N copies of each log, the original included. Default: 2.", group=o.RUNS, advanced=True, min=1
    )
    shake: o.CopyShakeOption = 60
    penalty: float = o.field(3.0, "Weight waits longer than EASY's longest wait by this factor.", group=o.RUNS, advanced=True, min=0)
    optimiser: o.OptimiserOption = "cma"
    predictor: str | None = o.field(
        None,
        f"Sort the queue by predicted runtimes: {o.PREDICTORS}. The scheduler plans with the requests unless --predictions-for changes it. "
        "Default: sort by the requests.",
        "--predictor",
        group=o.SCHEDULER,
        metavar="NAME",
    )
    predictions_for: str | None = o.field(
        None,
        "Use predictions for all jobs (regular) or only for waiting jobs (selective). Or give three digits, as in 110, for the queue "
        "order, the lengths of waiting jobs, and the ends of running jobs: 1 uses predictions, 0 requests. Default: 100.",
        "--predictions-for",
        group=o.SCHEDULER,
        advanced=True,
    )
    store: o.StoreOption = None
    seed: o.SeedOption = 0
    workers: o.WorkersOption = None


@manual(
    "guides/tuning",
    ("Search for an order on several logs.", "search KTH-SP2 SDSC-SP2 --budget 500 --out order.toml"),
    ("Search for an order that uses predicted runtimes.", "search KTH-SP2 SDSC-SP2 --predictor tsafrir07 --out order.toml"),
)
def search(
    traces: Annotated[list[Path], o.argument("The job logs.", "LOG...")],
    *,
    searching: SearchOptions,
    own: o.OwnOption = None,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the best orders", ".toml")] = None,
    output: PageOutput,
) -> None:
    """Search for a queue order that performs well on many logs."""
    logs = [stretch.alone(reading.load(trace)[0]) for trace in traces]
    from walltime.tuning.formula_search import CHOOSING, search_orders
    from walltime.tuning.order_file import write_order_file
    from walltime.tuning.tables import search_answer, search_tables

    if searching.predictions_for is not None and searching.predictor is None:
        raise PolicyError("--predictions-for needs predictions; add --predictor NAME")
    options = {name: value for name, value in asdict(searching).items() if value is not None}
    options |= {"share": 1 - options.pop("test_share"), "shaken": options.pop("shake")}
    if searching.predictions_for is not None:
        options["predictions_for"] = options.pop("predictions_for")
    with progress_bar(searching.budget, "schedulers") as progress:

        def show(done: int, what: str) -> None:
            over = f"over the budget of {searching.budget:,}, until the round ends" if done > searching.budget else ""
            note = what if what == CHOOSING else over
            progress(done, **({"total": None, "note": note} if note else {}))

        found = search_orders(logs, progress=show, **options)
    if out is not None:
        write_order_file(out, found)
    blocks = search_tables(found)
    output.write_blocks("search for an order", f"A queue order for {found.logs}", search_answer(found), blocks, logs[0])
    output.show(found.as_dict(), blocks, result=out)
