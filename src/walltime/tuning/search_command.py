"""`walltime search`: a queue order that is good on many logs, found by trial; and its effect on logs that the search has not seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, command_line, progress_bar, write_json
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.workload import Workload


@dataclass(frozen=True)
class SearchOptions:
    """How orders are searched."""

    budget: o.BudgetOption = 1500
    test_share: float = o.field(
        0.4, "Hold out this last share of each log, above 0 and below 1, for the choice among the best orders.", group=o.RUNS
    )
    copies: int | None = o.field(
        None, "Simulate N copies of each log, the original included. Default: 2, or 3 with --final.", group=o.RUNS, advanced=True, min=1
    )
    shake: o.CopyShakeOption = 60
    penalty: float = o.field(3.0, "Weight waits longer than EASY's longest wait by this factor.", group=o.RUNS, advanced=True, min=0)
    optimiser: o.OptimiserOption = "cma"
    predictor: str | None = o.field(
        None,
        f"Sort the queue by predicted runtimes: {o.PREDICTORS}; all else uses the requests unless --predictions-for changes it. "
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


@dataclass(frozen=True)
class JudgementOptions:
    """The order that is judged instead."""

    final: Path | None = o.field(
        None,
        "Judge this order on the logs instead of searching, and record the logs in its file.",
        group=o.RUNS,
        metavar="ORDER.toml",
        callback=o.written,
    )
    again: bool = o.field(False, "Judge with --final even on logs on which the order has been judged before.", group=o.RUNS, advanced=True)


@manual(
    "guides/tuning",
    ("Search for an order on several logs.", "search KTH-SP2 SDSC-SP2 --budget 500 --out order.toml"),
    ("Judge the found order on a log that the search has not seen.", "search CTC-SP2 --procs 512 --final order.toml"),
)
def search(
    traces: Annotated[list[Path], o.argument("The job logs.", "LOG...")],
    *,
    searching: SearchOptions,
    judging: JudgementOptions,
    own: o.OwnOption = None,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the best orders, or with --final the table,", ".toml", ".json")] = None,
    output: PageOutput,
) -> None:
    """Search for a queue order that is good on many logs, or judge one on logs that the search has not seen (--final)."""
    ending = ".toml" if judging.final is None else ".json"
    if out is not None and out.suffix.lower() != ending:
        raise PolicyError(f"--out must end in {ending} {'without' if judging.final is None else 'with'} --final, not {out.name}")
    logs = [stretch.alone(reading.load(trace)[0]) for trace in traces]
    if judging.final is not None:
        _judge(judging.final, logs, judging.again, searching.copies or 3, searching.shake, searching.workers, out, output)
        return
    from walltime.tuning.formula_search import CHOOSING, search_orders
    from walltime.tuning.order_file import write_order_file
    from walltime.tuning.order_search_page import search_page, search_tables

    if judging.again:
        raise PolicyError("--again is for --final; leave it out")
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
    if output.report is not None:
        output.write(search_page(found, logs[0], command_line()))
    output.show(found.as_dict(), search_tables(found), result=out)


def _judge(
    file: Path, logs: list[Workload], again: bool, copies: int, shake: int, workers: int | None, out: Path | None, output: PageOutput
) -> None:
    from walltime.simulation.specification import parse_scheduler
    from walltime.tuning.final_table import judge, simulations
    from walltime.tuning.order_file import read_order_file, write_order_file
    from walltime.tuning.order_search_page import final_page, final_tables

    found = read_order_file(file).with_judgement(logs, again)
    write_order_file(found, file)
    with progress_bar(simulations(len(logs) * copies, parse_scheduler(found.scheduler)), "simulations") as progress:
        table = judge(found.scheduler, logs, copies=copies, shaken=shake, workers=workers, progress=progress)
    if out is not None:
        write_json(table.as_dict(), out)
    if output.report is not None:
        output.write(final_page(table, logs[0], command_line()))
    output.show(table.as_dict(), final_tables(table), result=out)
