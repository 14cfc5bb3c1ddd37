"""`walltime benchmark`: run suites that never change, check results, and rank schedulers."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.completion import completion_of
from walltime.cli.help import manual
from walltime.cli.option_groups import CommandGroup, LogOptions, RecordedWindow
from walltime.cli.output import Output, PageOutput, caveats, progress_bar
from walltime.errors import PolicyError
from walltime.tables import Cell, Table
from walltime.wording import counted, human_number

app = CommandGroup("benchmark", "Run fixed benchmark suites, check the results of others, and compare schedulers and predictors.")
SuiteArgument = Annotated[
    str, o.argument("The suite: classic, archive, overload or estimates.", "SUITE", autocompletion=completion_of("SUITE"))
]
PathsArgument = Annotated[list[Path], o.argument("Result files, or folders that contain them.", "PATH")]


@app.command("list")
@manual("guides/benchmarks", ("List the suites.", "benchmark list"), ("Print the same as JSON.", "benchmark list --json"))
def show(*, output: Output) -> None:
    """List the suites with their jobs, metrics and baselines."""
    from walltime.benchmark import SUITES, read_suite
    from walltime.benchmark.predictions import VERSION

    suites = [read_suite(name) for name in SUITES]
    listed = [
        {name: getattr(one, name) for name in ("name", "version", "title", "metrics", "baselines", "definition")}
        | {"subjects": {subject.name: len(subject.checksums) for subject in one.subjects}}
        for one in suites
    ]
    rows = [[f"{s.name} {s.version}", s.title, str(sum(len(one.checksums) for one in s.subjects)), s.metrics[0]] for s in suites]
    table = Table(["suite", "description", "windows", "ranked by"], rows, "Suites", texts=-1)
    predictors = f"To evaluate predictors on logs of your own (suite predictions {VERSION}): walltime benchmark predictions LOG..."
    output.show({"suites": listed, "predictions": VERSION}, [table, predictors])


@app.command()
@manual(
    "guides/benchmarks",
    ("Run a suite under a scheduler.", "benchmark run classic --policy easy"),
    (
        "Run it under two schedulers, and keep the results in a folder.",
        "benchmark run classic --policy fcfs --policy easy:order=saf --out results",
    ),
)
def run(
    suite: SuiteArgument,
    *,
    policy: Annotated[
        list[str], o.option("Run the suite under this policy; walltime list policies shows all.", "--policy", group=o.SCHEDULER)
    ],
    out: Annotated[
        Path, o.option("Write the results to this file (.json), or to a folder with a file for each.", metavar="PATH", callback=o.written)
    ] = Path("benchmark-results"),
    workers: o.WorkersOption = None,
    output: Output,
) -> None:
    """Run a suite under one or more schedulers; after an interruption, the same command continues."""
    from walltime.benchmark import read_result, read_suite, run_suite
    from walltime.simulation.specification import Scheduler

    if len(policy) > 1 and out.suffix == ".json" and not out.is_dir():
        raise PolicyError(f"{out} is one file, but each of the {len(policy)} schedulers needs its own; give a folder")
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
    rows = [
        [one["policy"], *(Cell(human_number(v), value=v) for v in (one["totals"][first][key] for key in ("mean", "low", "high")))]
        for one in results
    ]
    table = Table(["scheduler", name, "90 %: from", "to"], rows, f"{suite}: geometric mean of the {name} over {counted(total, 'window')}")
    scope = (
        "Each interval is for one scheduler, under sampling of windows of these subjects. To compare schedulers: "
        "walltime benchmark leaderboard."
    )
    record = {"results": [{"file": file} | one for file, one in zip(files, results, strict=True)]}
    output.show(record, [table, scope, *(f"result written to {file}" for file in files)])


@dataclass(frozen=True)
class PredictionOptions:
    """Options for the predictors and their evaluation."""

    predictor: list[str] | None = o.field(
        None, f"Evaluate this predictor in addition to the usual ones: {o.PREDICTORS}.", "--predictor", group=o.SCHEDULER, metavar="NAME"
    )
    only: bool = o.field(False, "Evaluate only the predictors named by --predictor.", group=o.SCHEDULER)
    buffer: list[float] | None = o.field(
        None, "Multiply predictions by this factor. Default: 1, 1.5 and 3.", group=o.SCHEDULER, advanced=True, metavar="FACTOR"
    )
    copies: o.CopiesOption = 4
    test_share: o.TestShareOption = 1.0


@app.command()
@manual(
    "guides/benchmarks",
    ("Evaluate the usual predictors.", "benchmark predictions log.swf.gz --copies 0"),
    ("Evaluate one predictor only, and write a page.", "benchmark predictions log.swf.gz --predictor last --only --report page.html"),
)
def predictions(
    traces: Annotated[list[Path], o.argument("The job logs on which to evaluate the predictors.", "LOG")],
    *,
    judging: PredictionOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    workers: o.WorkersOption = None,
    output: PageOutput,
) -> None:
    """Evaluate predictors by the schedules that result: accuracy, waits, killed jobs and lost work."""
    from walltime.benchmark.predictions import BUFFERS, PREDICTORS, judge_predictions
    from walltime.benchmark.tables import answers, predictions_tables

    if judging.only and not judging.predictor:
        raise PolicyError("--only needs a predictor; add --predictor NAME")
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
    answer = answers(judgement)
    blocks = [*predictions_tables(judgement), *answer, *judgement.skipped, *caveats(judgement.caveats)]
    sentences = [f"{clause[:1].upper()}{clause[1:]}." for clause in answer]
    output.write_blocks("predictions", "Predictions compared by their schedules", sentences, blocks, next(iter(logs.values())))
    output.show(judgement.as_dict() | {"answers": answer}, blocks)


@app.command()
@manual(
    "guides/benchmarks",
    ("Check a folder of results, and simulate three windows of each result again.", "benchmark verify benchmark-results"),
    ("Simulate all windows again.", "benchmark verify benchmark-results --all"),
)
def verify(
    paths: PathsArgument,
    *,
    everything: Annotated[bool, o.option("Simulate all windows again, instead of --sample.", "--all", group=o.RUNS)] = False,
    sample: Annotated[int, o.option("Simulate N windows of each result again.", group=o.RUNS, min=1)] = 3,
    seed: o.SeedOption = 0,
    own: o.OwnOption = None,
    workers: o.WorkersOption = None,
    output: Output,
) -> None:
    """Check the jobs and totals in result files, and simulate some windows again; the exit status is 1 if anything differs."""
    from walltime.benchmark import result_files, verify_result
    from walltime.report.page import Items

    again = None if everything else sample
    faults: dict[Path, list[str]] = {}
    for file in result_files(*paths):
        with progress_bar(sample, f"windows of {file.name}") as progress:
            faults[file] = verify_result(file, own=own or (), sample=again, seed=seed, workers=workers, progress=progress)
    checked = "all windows" if everything else f"a sample of {counted(sample, 'window')}"
    holds = f"verified (jobs, totals, and {checked} simulated again)"
    results = [{"file": file, "holds": not wrong, "wrong": wrong} for file, wrong in faults.items()]
    blocks: list[Any] = []
    for file, wrong in faults.items():
        blocks += [Items(wrong), f"{file.name}: {'wrong' if wrong else holds}"]
    output.show({"holds": not any(faults.values()), "results": results}, blocks)
    if any(faults.values()):
        raise typer.Exit(1)


@app.command()
@manual(
    "guides/benchmarks",
    ("Rank the schedulers in a folder of results.", "benchmark leaderboard benchmark-results"),
    ("Write the ranking as a page.", "benchmark leaderboard benchmark-results --report page.html"),
)
def leaderboard(paths: PathsArgument, *, output: PageOutput) -> None:
    """Rank schedulers by their results in each suite, and compare each with the best one."""
    from walltime.benchmark import leaderboard as compare, read_result, result_files
    from walltime.benchmark.tables import LEADERBOARD_CAVEATS, leaderboard_answer, leaderboard_table

    boards = compare([read_result(file) for file in result_files(*paths)])
    suites = {name: [asdict(one) | {"is_clear": one.is_clear} for one in rows] for name, rows in boards.items()}
    answers = {name: leaderboard_answer(rows) for name, rows in boards.items()}
    ranked = [block for name, rows in boards.items() for block in (leaderboard_table(name, rows), answers[name])]
    record = {"answers": answers, "caveats": LEADERBOARD_CAVEATS, "suites": suites}
    blocks = [*ranked, *caveats(LEADERBOARD_CAVEATS)]
    output.write_blocks("benchmark", "Leaderboard", list(answers.values()), blocks)
    output.show(record, blocks)
