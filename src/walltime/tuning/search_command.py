"""`walltime search`: a queue order that is good on many logs, found by trial."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, progress_bar
from walltime.errors import PolicyError


@dataclass(frozen=True)
class SearchOptions:
    """The options for searching orders."""

    budget: o.BudgetOption = 1500
    test_share: float = o.field(
        0.4, "Hold out this last share of each log, above 0 and below 1, for the choice among the best orders.", group=o.RUNS
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
        "Use predictions everywhere (regular), except for running jobs (selective), or by three bits: for the order, for a job's "
        "own length, and for running jobs. Default: 100, for the order alone.",
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
    ("Search with orders of predicted runtimes.", "search KTH-SP2 SDSC-SP2 --predictor tsafrir07 --out order.toml"),
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
    """Search for a queue order that is good on many logs."""
    logs = [stretch.alone(reading.load(trace)[0]) for trace in traces]
    from walltime.tuning.formula_search import CHOOSING, search_orders
    from walltime.tuning.order_file import write_order_file
    from walltime.tuning.tables import search_answer, search_tables

    if searching.predictions_for is not None and searching.predictor is None:
        raise PolicyError("--predictions-for needs predictions; name a --predictor too")
    options = {name: value for name, value in asdict(searching).items() if value is not None}
    options |= {"share": 1 - options.pop("test_share"), "shaken": options.pop("shake")}
    if searching.predictions_for is not None:
        options["believe"] = options.pop("predictions_for")
    with progress_bar(searching.budget, "schedulers") as progress:

        def show(done: int, what: str) -> None:
            over = f"over the budget of {searching.budget:,}, until the round ends" if done > searching.budget else ""
            note = what if what == CHOOSING else over
            progress(done, **({"total": None, "note": note} if note else {}))

        found = search_orders(logs, progress=show, **options)
    if out is not None:
        write_order_file(found, out)
    blocks = search_tables(found)
    output.write_blocks("search for an order", f"A queue order for {found.logs}", search_answer(found), blocks, logs[0])
    output.show(found.as_dict(), blocks, result=out)
