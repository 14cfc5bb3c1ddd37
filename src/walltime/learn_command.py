"""`walltime learn`: train an agent on the early part of a log, and compare it with schedulers on the later part."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import CommandGroup, LogOptions
from walltime.cli.output import Output, PageOutput, caveats, progress_bar, write_rows
from walltime.errors import PolicyError

app = CommandGroup("learn", "Train a scheduling agent on the early part of a log, and compare it with other orders on the later part.")
LogArgument = Annotated[str, o.argument("The job log; walltime generate makes one from a workload model.", "LOG")]


def _one_thread() -> None:
    """Limit numpy, if it is not imported yet, to one thread, because threads slow down its small matrices on busy cores."""
    for library in ("OPENBLAS", "OMP", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


@dataclass(frozen=True)
class TrainingOptions:
    """Options for the task and the training of the agent."""

    episodes: int = o.field(10_240, "Train for this many episodes in total.", group=o.RUNS, min=1)
    minutes: float | None = o.field(
        None, "Stop after this many minutes; the same command continues. Default: no limit.", group=o.RUNS, min=0
    )
    reward: str = o.field("bounded_slowdown", "Minimise wait, response, slowdown or bounded_slowdown.", group=o.SCHEDULER)
    skip: bool = o.field(False, "Let the agent also choose to start no job.", group=o.SCHEDULER, advanced=True)
    warm_up: str = o.field(
        "easy",
        "Fill the machine with jobs by this scheduler before each episode, or start with an empty machine (none).",
        group=o.SCHEDULER,
        advanced=True,
    )
    test_share: float = o.field(0.3, "Hold out this final share of the log, above 0 and below 1, for the comparison.", group=o.RUNS)
    overrun: o.OverrunOption = "kill"


@app.command()
@manual(
    "guides/agents",
    ("Train an agent, and stop after one minute if it has not finished.", "learn train KTH-SP2 --out agent --minutes 1"),
    ("Train with few episodes.", "learn train long.swf.gz --episodes 32 --out small"),
)
def train(
    log: LogArgument,
    *,
    out: Annotated[
        Path,
        o.option("Store the agent in this folder; training continues if it already contains one.", metavar="FOLDER", callback=o.written),
    ],
    seed: o.SeedOption = 0,
    training: TrainingOptions,
    reading: LogOptions,
    output: Output,
) -> None:
    """Train an agent with proximal policy optimisation (PPO).

    After an interruption, the same command continues from the last saved state.
    """
    _one_thread()
    from walltime.learn.ppo import TrainingSettings
    from walltime.learn.training import Task, train as learn
    from walltime.provenance import plain

    warm = None if training.warm_up == "none" else training.warm_up
    task = Task(reward=training.reward, skip=training.skip, warm=warm, test_share=training.test_share, overrun=training.overrun)
    settings = TrainingSettings(episodes=training.episodes)
    workload = reading.load(Path(log))[0]
    how = {name: value for name, value in (reading.of_file | reading.of_jobs).items() if name != "anonymise"}  # a key is a secret
    source = plain({"log": log, "reading": how})
    with progress_bar(settings.iterations * settings.together, "episodes") as progress:
        trained = learn(workload, out, seed=seed, task=task, settings=settings, minutes=training.minutes, source=source, progress=progress)
    last = trained.progress[-1]
    best = min((row["validation"] for row in trained.progress if "validation" in row), default=None)
    played, all_of_them = sum(row["decisions"] for row in trained.progress), trained.settings.iterations
    lines = [
        f"{trained.log}, seed {seed}: {'trained' if trained.is_finished else 'not finished (run the same command to continue)'}; "
        f"{trained.done:,} of {all_of_them:,} iterations, {played:,} decisions in {last['seconds'] / 60:.1f} minutes.",
        *([] if best is None else [f"On the validation windows, its cost is {best:.3f} times that of easy:order=saf."]),
        f"agent stored in {out}",
    ]
    found = {"log": trained.log, "jobs_sha256": trained.jobs_sha256, "seed": seed, "iterations": trained.done}
    found |= {"finished": trained.is_finished, "folder": out, "validation": best, "progress": list(trained.progress)}
    output.show(found, lines)


@app.command()
@manual(
    "guides/agents",
    ("Compare an agent with EASY and other orders on the held-out part of its log.", "learn evaluate agent"),
    ("Evaluate it on another log.", "learn evaluate agent --log KTH-SP2"),
)
def evaluate(
    folders: Annotated[list[Path], o.argument("The folders of the agents, which may differ only in their seeds.", "FOLDER")],
    *,
    log: Annotated[
        str | None, o.option("Evaluate on this log. Default: the log used for training.", "--log", group=o.INPUT, metavar="LOG")
    ] = None,
    own: o.OwnOption = None,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the cost of each window", *o.TABLE)] = None,
    output: PageOutput,
) -> None:
    """Compare agents with EASY and with other orders, on windows of a log that the agents have not seen."""
    _one_thread()
    from walltime.learn.evaluation import count_steps, evaluate as compare, learned_tables
    from walltime.learn.training import load as load_agent
    from walltime.provenance import jobs_sha256

    agents = [load_agent(folder) for folder in folders]
    given = log is not None
    if log is None:
        if reading != LogOptions():
            raise PolicyError("options for reading a log need --log; add --log LOG, or leave the others out")
        log, reading = _source(agents[0].source)
    workload = reading.load(Path(log))[0]
    if not given and jobs_sha256(workload) != agents[0].jobs_sha256:
        raise PolicyError(f"{log} has changed since the agent was trained; pass --log {log} to use it anyway")
    with progress_bar(count_steps(len(agents)), "schedulers and agents") as progress:
        evaluation = compare(agents, workload, progress=progress)
    if out is not None:
        write_rows(out, evaluation.table())
    blocks = [*learned_tables(evaluation), *evaluation.verdict, *caveats(evaluation.caveats)]
    title = f"{'A trained agent' if evaluation.trained_on else 'An agent'} on {evaluation.log}"
    output.write_blocks("learning", title, evaluation.verdict, blocks, workload)
    output.show(evaluation.as_dict(), blocks, **{f"{evaluation.windows} rows": out})


def _source(kept: Any) -> tuple[str, LogOptions]:
    """Return the log on which an agent was trained, and the options with which it was read."""
    if not kept:
        raise PolicyError("this agent was not trained on the command line, so its log is unknown; add --log LOG")
    given = dict(kept["reading"])
    given["mapping"] = None if given["mapping"] is None else Path(given["mapping"])
    return kept["log"], LogOptions(**given)
