"""`walltime benchmark`: frozen suites, results that others can check, leaderboards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o

if TYPE_CHECKING:
    from walltime.benchmark import Standing

app = typer.Typer(
    help="Frozen suites of simulations: run one under a scheduler, check the results of others, compare them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
SuiteArgument = Annotated[str, typer.Argument(metavar="SUITE", help="classic, archive, overload or estimates.")]
PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Results: files, or folders of them.")]
WorkersOption = Annotated[int | None, typer.Option("--workers", min=1, help="Threads; default: one per core.")]


@app.command("list")
def show(as_json: o.JsonOption = False) -> None:
    """List the suites: their jobs, metrics and baselines."""
    from walltime.benchmark import SUITES, read_suite
    from walltime.cli import common

    suites = [read_suite(name) for name in SUITES]
    if as_json:
        listed = [
            {name: getattr(one, name) for name in ("name", "version", "title", "metrics", "baselines", "definition")}
            | {"subjects": {subject.name: len(subject.checksums) for subject in one.subjects}}
            for one in suites
        ]
        common.print_json({"suites": listed})
        return
    rows = [[f"{s.name} {s.version}", s.title, str(sum(len(one.checksums) for one in s.subjects)), s.metrics[0]] for s in suites]
    common.print_text_table("suites", ["suite", "what", "windows", "decides"], rows)


@app.command()
def run(
    suite: SuiteArgument,
    policy: Annotated[list[str], typer.Option("--policy", help="A scheduler, or FILE.py:NAME for one of your own; repeat it.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="PATH", help="The file of the result, FILE.json, or a folder with a file for each scheduler.")
    ] = Path("benchmark-results"),
    workers: WorkersOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Run a suite under schedulers; it can be stopped and resumed at any time."""
    from walltime.benchmark import read_result, read_suite, run_suite
    from walltime.cli import common
    from walltime.errors import PolicyError
    from walltime.report import human_number
    from walltime.simulation.specification import Scheduler

    if len(policy) > 1 and out.suffix == ".json" and not out.is_dir():
        raise PolicyError(f"{out} would be one file, but each of the {len(policy)} schedulers has its own; name a folder")
    chosen = read_suite(suite)
    for text in policy:
        Scheduler.of(text)
    total = sum(len(one.checksums) for one in chosen.subjects)
    files = []
    for text in policy:
        with common.progress_bar(total, f"{suite}: {text}") as progress:
            files.append(run_suite(chosen, text, out, workers=workers, progress=progress))
    results = [read_result(file) for file in files]
    if as_json:
        common.print_json({"results": [{"file": file} | one for file, one in zip(files, results, strict=True)]})
        return
    first = chosen.metrics[0]
    rows = []
    for one in results:
        total_of = one["totals"][first]
        rows.append([one["policy"], *(human_number(total_of[key]) for key in ("mean", "low", "high"))])
    name = first.replace("_", " ")
    common.print_table(f"{suite}: geometric mean of the {name} over {total} windows", ["scheduler", name, "90 %: from", "to"], rows)
    common.print_text(
        "The intervals are of such windows of these subjects, each alone; walltime benchmark leaderboard compares schedulers."
    )
    for file in files:
        typer.echo(f"result written to {file}")


@app.command()
def verify(
    paths: PathsArgument,
    everything: Annotated[bool, typer.Option("--all", help="Simulate all windows again.")] = False,
    sample: Annotated[int, typer.Option("--sample", min=1, help="How many windows of each result are simulated again.")] = 3,
    seed: o.SeedOption = 0,
    own: Annotated[
        list[Path] | None,
        typer.Option("--own", metavar="FILE.py", help="A Python file of a policy that may be run; repeat it. No other one is."),
    ] = None,
    workers: WorkersOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Check results: the jobs, the totals, and some windows simulated again. Exit status 1 if something differs."""
    from walltime.benchmark import result_files, verify_result
    from walltime.cli import common

    again = None if everything else sample
    faults: dict[Path, list[str]] = {}
    for file in result_files(*paths):
        with common.progress_bar(sample, f"windows of {file.name}") as progress:
            wrong = faults[file] = verify_result(file, own=own or (), sample=again, seed=seed, workers=workers, progress=progress)
        if as_json:
            continue
        for fault in wrong:
            common.print_text(fault, "* ")
        checked = "all windows" if everything else f"a sample of {sample} windows"
        typer.echo(f"{file.name}: {'does not hold' if wrong else f'holds: the jobs, the totals, and {checked} simulated again'}")
    if as_json:
        results = [{"file": file, "holds": not wrong, "wrong": wrong} for file, wrong in faults.items()]
        common.print_json({"holds": not any(faults.values()), "results": results})
    if any(faults.values()):
        raise typer.Exit(1)


@app.command()
def leaderboard(
    paths: PathsArgument,
    out: Annotated[Path | None, typer.Option("--out", help="Write a self-contained HTML page here.")] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Compare results, suite by suite, each scheduler with the best one."""
    from dataclasses import asdict

    from walltime.benchmark import leaderboard as compare
    from walltime.benchmark import read_result, result_files
    from walltime.cli import common
    from walltime.report.benchmark import CAVEATS, answer, cells, write_leaderboard

    if out is not None:
        common.check_output(out, (".html", ".htm"))
    results = [read_result(file) for file in result_files(*paths)]
    boards: dict[str, list[Standing]] = compare(results)
    if out is not None:
        write_leaderboard(out, results)
    if as_json:
        answers = {name: answer(rows) for name, rows in boards.items()}
        common.print_json(
            {
                "answers": answers,
                "caveats": list(CAVEATS),
                "suites": {name: [asdict(one) | {"is_clear": one.is_clear} for one in rows] for name, rows in boards.items()},
            }
        )
        return
    for name, rows in boards.items():
        title, head, lines = cells(name, rows)
        common.print_table(title, head, lines)
        common.print_text(answer(rows))
    common.print_caveats(CAVEATS)
    if out is not None:
        typer.echo(f"page written to {out}")
