"""`walltime search`: a queue order that is good on many logs, found by trial; and what it is worth on logs that the search has not seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, command_line, progress_bar, write_json
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.workload import Workload

SEARCH, FINAL = "The search", "The final logs"


@dataclass(frozen=True)
class SearchOptions:
    """How orders are searched."""

    budget: Annotated[int, o.own("Candidates to simulate.", SEARCH, min=1)] = 1500
    test_share: Annotated[float, o.option("--test-share", panel=SEARCH)] = 0.4
    copies: Annotated[int | None, o.option("--copies", "So many per log, itself counted; 2, or 3 if final.", SEARCH, min=1)] = None
    shake: Annotated[int, o.option("--shake", "For the copies.", SEARCH, min=1, metavar="SECONDS")] = 60
    penalty: Annotated[float, o.own("Weight of longest waits above EASY's.", SEARCH, min=0)] = 3.0
    optimiser: Annotated[str, o.own("How candidates are found: cma (needs the extra tune) or random.", SEARCH)] = "cma"
    predictor: Annotated[
        str | None, o.option("--predictor", "They decide the order alone, unless --believe says more.", SEARCH, metavar="NAME")
    ] = None
    believe: Annotated[str | None, o.option("--believe", "The order alone if not said.", SEARCH)] = None
    fair: Annotated[int, o.own("Jobs per log whose fair starts are found under what is on the front.", SEARCH, min=0)] = 0
    store: Annotated[Path | None, o.option("--store", panel=SEARCH)] = None
    seed: o.SeedOption = 0
    workers: o.WorkersOption = None


@dataclass(frozen=True)
class JudgementOptions:
    """Whether an order is judged instead."""

    final: Annotated[
        Path | None, o.own("Judge this order on the logs, and note that in it.", FINAL, metavar="ORDER.TOML", callback=o.written)
    ] = None
    again: Annotated[bool, o.own("Judge on logs, too, that have been looked at.", FINAL)] = False


def search(
    traces: Annotated[list[Path], typer.Argument(metavar="LOG...", help="Job logs.", show_default=False)],
    *,
    searching: SearchOptions,
    judging: JudgementOptions,
    own: o.OwnOption = None,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("what was found, or with --final the table", ".toml", ".json")] = None,
    output: PageOutput,
) -> None:
    """Search for a queue order that is good on many logs; with --final, judge one on logs that the search has not seen."""
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
    if searching.believe is not None and searching.predictor is None:
        raise PolicyError("--believe says what is done with predictions; name a --predictor too")
    options = {name: value for name, value in asdict(searching).items() if value is not None}
    options |= {"share": 1 - options.pop("test_share"), "shaken": options.pop("shake")}
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
