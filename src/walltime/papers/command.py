"""`walltime paper`: reproduce published tables and figures, next to the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from walltime.cli import options as o
from walltime.cli.completion import completion_of
from walltime.cli.help import manual
from walltime.cli.option_groups import CommandGroup
from walltime.cli.output import Output, note, progress_row
from walltime.errors import OutputError, PolicyError
from walltime.tables import Table
from walltime.wording import counted, listed

if TYPE_CHECKING:
    from walltime.papers.items import Item
    from walltime.papers.results import Result
    from walltime.papers.subjects import Subject

MOST_NAMED = 6
"""Before a run, at most this many items are listed by name."""
app = CommandGroup("paper", "Reproduce published studies: their tables and figures, next to the published numbers.")


@app.command("list")
@manual(
    "guides/papers",
    ("List the papers with their tables and figures.", "paper list"),
    ("List the items of one paper.", "paper list feitelson98"),
)
def list_items(
    paper: Annotated[
        str | None, o.argument("The paper, such as mualem01; without it, list all papers.", "PAPER", autocompletion=completion_of("PAPER"))
    ] = None,
    *,
    output: Output,
) -> None:
    """List the papers with the tables and figures that can be reproduced."""
    from walltime.papers.items import items_of
    from walltime.papers.printed import PAPERS, paper_name, printed

    record: dict[str, Any] = {}
    blocks: list[Any] = []
    for name in PAPERS if paper is None else [paper_name(paper)]:
        given = printed(name)
        rows = [[item.name, item.title] for item in items_of(name)]
        items = [{"item": item, "title": title} for item, title in rows]
        record[name] = {"title": given.title, "source": given.source, "logs": list(given.logs), "items": items}
        blocks += [Table(["item", "title"], rows, f"{name}: {given.title}", texts=2), f"{given.source}; logs: {', '.join(given.logs)}"]
    output.show({"papers": record}, blocks)


@dataclass(frozen=True)
class Inputs:
    """Options for the logs and the effort."""

    subject: list[str] | None = o.field(None, "Use only this log of the paper, such as KTH. Default: all.", group=o.INPUT, metavar="NAME")
    logs: list[Path] | None = o.field(
        None, "Look for the paper's logs in this folder. Default: the folder of walltime fetch.", group=o.INPUT, metavar="FOLDER"
    )
    trace: list[Path] | None = o.field(None, "Use this log instead of the paper's logs.", group=o.INPUT, metavar="LOG")
    generated: bool = o.field(False, "Use generated workloads of the same sizes for all logs, not only for missing ones.", group=o.INPUT)
    quick: bool = o.field(False, "Use a coarser grid and fewer seeds, which takes less than two minutes per paper.", group=o.RUNS)


@app.command()
@manual(
    "guides/papers",
    ("Reproduce all tables and figures of a paper with few seeds.", "paper run mualem01 --quick"),
    ("Reproduce one table on generated workloads.", "paper run feitelson98 --item T2 --generated --quick"),
)
def run(
    paper: Annotated[
        str, o.argument("The paper, such as mualem01; walltime paper list shows all.", "PAPER", autocompletion=completion_of("PAPER"))
    ],
    *,
    item: Annotated[
        list[str] | None,
        o.option(
            "Reproduce only this item, such as F4 or T2; walltime paper list PAPER shows all. Default: all.", group=o.RUNS, metavar="NAME"
        ),
    ] = None,
    inputs: Inputs,
    out: Annotated[
        Path | None,
        o.option("Write the results to this folder. Default: the paper's name, such as ./mualem01.", metavar="FOLDER", callback=o.written),
    ] = None,
    workers: o.WorkersOption = None,
    size: o.SizeOption = "",
    output: Output,
) -> None:
    """Reproduce tables and figures of a paper: a page, figures as PDF and PNG, and numbers as CSV.

    After an interruption with Ctrl-C, the same command continues; finished simulations are kept in the folder.
    """
    from walltime.papers.items import items_of
    from walltime.papers.printed import paper_name, printed
    from walltime.papers.run import run_paper
    from walltime.papers.subjects import find_subjects

    name = paper_name(paper)
    if inputs.trace and (inputs.subject or inputs.generated):
        raise PolicyError("--trace cannot be combined with --subject or --generated; leave out one of them")
    chosen = items_of(name) if not item else [one_item for one in item for one_item in items_of(name, one)]
    chosen = list(dict.fromkeys(chosen))
    folder = out or Path(name)
    for place in inputs.logs or []:
        if not place.is_dir():
            raise PolicyError(f"--logs {place}: not a folder; give the folder of the logs")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({(error.strerror or str(error)).lower()}); use another --out") from error
    subjects = find_subjects(
        printed(name),
        only=inputs.subject or [],
        folders=inputs.logs or [],
        traces=inputs.trace or [],
        made=folder,
        generated=inputs.generated,
    )
    for one in subjects:
        _ = one.workload  # an unreadable log is reported first
    note(f"{name}, {_work(chosen, subjects, folder, inputs.quick)}")
    for one in subjects:
        note(f"{one.name}: {one.log}, {one.about}")
    note(f"{name}: {printed(name).title}. {printed(name).source}")
    with progress_row(name, unit="runs", patience=0) as row:

        def show(what: str, done: int, total: int) -> None:
            row.update(done, description=f"{name}: {what}", total=total)

        done = run_paper(name, chosen, subjects, folder, quick=inputs.quick, workers=workers, progress=show, size=size)
    words = f"page written to {done.page}; {counted(done.jobs, 'job')} simulated in {done.seconds:,.1f} s"
    output.show(_record(name, done, folder, inputs.quick), [*map(_outcome, done.results), words])


def complete_item(_: str, given: Mapping[str, Any]) -> list[str]:
    """Return the names of the items of the given paper."""
    from walltime.papers.items import items_of

    return [item.name for item in items_of(given["paper"] or "")]


def complete_subject(_: str, given: Mapping[str, Any]) -> list[str]:
    """Return the names of the logs of the given paper."""
    from walltime.papers.printed import paper_name, printed

    return list(printed(paper_name(given["paper"] or "")).logs)


def _work(items: Sequence[Item], subjects: Sequence[Subject], folder: Path, quick: bool) -> str:
    """Return a sentence on the items, their logs, the time they may take, and how to stop."""
    from walltime.papers.subjects import GENERATED

    what = listed([item.name for item in items]) if len(items) <= MOST_NAMED else f"{len(items)} items"
    real = [one.log for one in subjects if one.kind != GENERATED]
    made = [one.log for one in subjects if one.kind == GENERATED]
    on = f"on {listed(real)}" if real else ""
    if made:
        advice = "walltime fetch, or --logs DIR, brings the real ones"
        missing = f"on generated workloads in place of logs that are missing ({listed(made)}; {advice})"
        on = f"{on}, and {missing}" if on else missing
    longer = "under two minutes for all items"
    takes = f"takes {longer}" if quick else f"may take ten minutes and more for each item (--quick: {longer})"
    return f"{what} {on}; {takes}; Ctrl-C stops it, and what is done is kept in {folder}"


def _outcome(result: Result) -> str:
    """Return a line for a completed item."""
    from walltime.papers.results import Tally

    tally = Tally.of(result)
    chaos = f", {tally.verdicts['chaos']} within run-to-run variation" if tally.verdicts["chaos"] else ""
    told = [f"{tally.numbers} printed numbers reproduced{chaos}"] if tally.numbers else []
    told += [f"{tally.claims} claims hold"] if tally.claims else []
    return f"{result.title}: {'; '.join(told) or 'done'}"


def _record(paper: str, done: Any, folder: Path, quick: bool) -> dict[str, Any]:
    from walltime.papers.printed import printed
    from walltime.papers.results import Tally
    from walltime.provenance import version

    items = []
    for result in done.results:
        verdicts = {verdict: Tally.of(result).verdicts[verdict] for verdict in ("reproduced", "chaos", "off")}
        claims = [one._asdict() for one in result.claims]
        items.append({"item": result.item, "title": result.title, "run_on": result.where, "numbers": verdicts, "claims": claims})
    head = {"paper": paper, "source": printed(paper).source, "folder": str(folder), "page": str(done.page), "quick": quick, "items": items}
    return {**head, "jobs_simulated": done.jobs, "seconds": done.seconds, "version": version()}
