"""`walltime benchmark`: frozen suites, results that others can check, leaderboards."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.option_groups import CommandGroup, LogOptions, RecordedWindow
from walltime.cli.output import Output, PageOutput, caveats, command_line, progress_bar
from walltime.errors import PolicyError
from walltime.tables import Cell, Table
from walltime.wording import human_number

app = CommandGroup("benchmark", "Frozen suites of simulations: run one under a scheduler, check the results of others, compare them.")
SuiteArgument = Annotated[str, typer.Argument(metavar="SUITE", help="classic, archive, overload or estimates.")]
PathsArgument = Annotated[list[Path], typer.Argument(metavar="PATH", help="Results: files, or folders of them.")]


@app.command("list")
def show(*, output: Output) -> None:
    """List the suites: their jobs, metrics and baselines."""
    from walltime.benchmark import SUITES, read_suite
    from walltime.benchmark.predictions import VERSION

    suites = [read_suite(name) for name in SUITES]
    listed = [
        {name: getattr(one, name) for name in ("name", "version", "title", "metrics", "baselines", "definition")}
        | {"subjects": {subject.name: len(subject.checksums) for subject in one.subjects}}
        for one in suites
    ]
    rows = [[f"{s.name} {s.version}", s.title, str(sum(len(one.checksums) for one in s.subjects)), s.metrics[0]] for s in suites]
    table = Table(["suite", "what", "windows", "decides"], rows, "suites", texts=-1)
    predictors = f"predictions {VERSION} judges predictors by schedules, on logs of yours: walltime benchmark predictions LOG..."
    output.show({"suites": listed, "predictions": VERSION}, [table, predictors])


@app.command()
def run(
    suite: SuiteArgument,
    *,
    policy: Annotated[list[str], o.option("--policy", "Repeat it for more.", None)],
    out: Annotated[
        Path, o.own("Write the results here: FILE.json, or a folder with a file for each.", metavar="PATH", callback=o.written)
    ] = Path("benchmark-results"),
    workers: o.WorkersOption = None,
    output: Output,
) -> None:
    """Run a suite under schedulers; it can be stopped and resumed at any time."""
    from walltime.benchmark import read_result, read_suite, run_suite
    from walltime.simulation.specification import Scheduler

    if len(policy) > 1 and out.suffix == ".json" and not out.is_dir():
        raise PolicyError(f"{out} would be one file, but each of the {len(policy)} schedulers has its own; name a folder")
    chosen = read_suite(suite)
    for text in policy:
        Scheduler.of(text)
    total = sum(len(one.checksums) for one in chosen.subjects)
    files = []
    for text in policy:
        with progress_bar(total, f"{suite}: {text}") as progress:
            files.append(run_suite(chosen, text, out, workers=workers, progress=progress))
    results = [read_result(file) for file in files]
    first = chosen.metrics[0]
    name = first.replace("_", " ")
    totals = [(one["policy"], one["totals"][first]) for one in results]
    rows = [[label, *(Cell(human_number(of[key]), value=of[key]) for key in ("mean", "low", "high"))] for label, of in totals]
    table = Table(["scheduler", name, "90 %: from", "to"], rows, f"{suite}: geometric mean of the {name} over {total} windows")
    scope = "The intervals are of such windows of these subjects, each alone; walltime benchmark leaderboard compares schedulers."
    record = {"results": [{"file": file} | one for file, one in zip(files, results, strict=True)]}
    output.show(record, [table, scope, *(f"result written to {file}" for file in files)])


@dataclass(frozen=True)
class PredictionOptions:
    """What predictors are judged by."""

    predictor: Annotated[
        list[str] | None, o.option("--predictor", "Judged beside those of the suite; repeat it for more.", None, metavar="NAME")
    ] = None
    only: Annotated[bool, o.own("Judge only the predictors that are named.")] = False
    buffer: Annotated[list[float] | None, o.own("Factor on predictions; repeat it. Default: 1, 1.5 and 3.", metavar="FACTOR")] = None
    copies: Annotated[int, o.option("--copies", "Shaken by 30 s, they show how much is chance; 0 for none.", None, min=0)] = 4
    test_share: Annotated[float, o.option("--test-share", "Only its jobs are measured; default: all.", None, min=0, max=1)] = 1.0


@app.command()
def predictions(
    traces: Annotated[list[Path], typer.Argument(metavar="LOG", help="Logs on which predictors are judged, one or several.")],
    *,
    judging: PredictionOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    workers: o.WorkersOption = None,
    output: PageOutput,
) -> None:
    """Judge predictions by the schedules that they make: accuracy, kills and lost work beside waits, and which accuracy tells the gain."""
    from walltime.benchmark.predictions import BUFFERS, PREDICTORS, judge_predictions
    from walltime.benchmark.predictions_page import answers, predictions_page, predictions_tables

    if judging.only and not judging.predictor:
        raise PolicyError("--only judges the predictors that are named; name one with --predictor")
    logs = {}
    for trace in traces:
        workload = stretch.alone(reading.load(trace)[0])
        name = workload.origin.name
        logs[name if name not in logs else str(trace)] = workload
    texts = judging.predictor or []
    total = len(logs) * len(dict.fromkeys([*([] if judging.only else PREDICTORS), *texts]))
    with progress_bar(total, "predictors") as progress:
        judgement = judge_predictions(
            logs,
            texts,
            buffers=tuple(judging.buffer or BUFFERS),
            copies=judging.copies,
            only=judging.only,
            test_share=judging.test_share,
            workers=workers,
            progress=progress,
        )
    if output.report is not None:
        output.write(predictions_page(judgement, logs, command_line()))
    answer = answers(judgement)
    output.show(
        judgement.as_dict() | {"answers": answer},
        [*predictions_tables(judgement), *answer, *judgement.skipped, *caveats(judgement.caveats)],
    )


@app.command()
def verify(
    paths: PathsArgument,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Simulate all windows again.")] = False,
    sample: Annotated[int, o.own("How many windows of each result are simulated again.", min=1)] = 3,
    seed: o.SeedOption = 0,
    own: o.OwnOption = None,
    workers: o.WorkersOption = None,
    output: Output,
) -> None:
    """Check results: the jobs, the totals, and some windows simulated again. Exit status 1 if something differs."""
    from walltime.benchmark import result_files, verify_result
    from walltime.report.page import Items

    again = None if everything else sample
    faults: dict[Path, list[str]] = {}
    for file in result_files(*paths):
        with progress_bar(sample, f"windows of {file.name}") as progress:
            faults[file] = verify_result(file, own=own or (), sample=again, seed=seed, workers=workers, progress=progress)
    checked = "all windows" if everything else f"a sample of {sample} windows"
    holds = f"holds: the jobs, the totals, and {checked} simulated again"
    results = [{"file": file, "holds": not wrong, "wrong": wrong} for file, wrong in faults.items()]
    blocks: list[Any] = []
    for file, wrong in faults.items():
        blocks += [Items(wrong), f"{file.name}: {'does not hold' if wrong else holds}"]
    output.show({"holds": not any(faults.values()), "results": results}, blocks)
    if any(faults.values()):
        raise typer.Exit(1)


@app.command()
def leaderboard(
    paths: PathsArgument,
    *,
    output: PageOutput,
) -> None:
    """Compare results, suite by suite, each scheduler with the best one."""
    from walltime.benchmark import leaderboard as compare
    from walltime.benchmark import read_result, result_files
    from walltime.benchmark.page import LEADERBOARD_CAVEATS, leaderboard_answer, leaderboard_page, leaderboard_table

    results = [read_result(file) for file in result_files(*paths)]
    boards = compare(results)
    if output.report is not None:
        output.write(leaderboard_page(results))
    suites = {name: [asdict(one) | {"is_clear": one.is_clear} for one in rows] for name, rows in boards.items()}
    answers = {name: leaderboard_answer(rows) for name, rows in boards.items()}
    blocks = [block for name, rows in boards.items() for block in (leaderboard_table(name, rows), answers[name])]
    record = {"answers": answers, "caveats": LEADERBOARD_CAVEATS, "suites": suites}
    output.show(record, [*blocks, *caveats(LEADERBOARD_CAVEATS)])
