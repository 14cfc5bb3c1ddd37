"""`walltime demo`: what the program is for, without any file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o

if TYPE_CHECKING:
    from walltime.schedule import Schedule
    from walltime.workload import Workload

POLICIES = ("fcfs", "easy", "easy:backfill-order=sjf,predictor=tsafrir07")
"""No backfilling, the usual one, and EASY++ (tsafrir07): they differ clearly, and compile fast."""
USERS = 60
LOG = "demo.swf.gz"
FEWEST_JOBS = 200
"""The modal model of estimates needs as many."""


def demo(
    out: Annotated[Path, typer.Option("--out", help=f"Where to write the HTML page; the log {LOG} goes beside it.")] = Path("report.html"),
    jobs: Annotated[int, typer.Option("--jobs", min=FEWEST_JOBS, help="Number of jobs to generate.")] = 10_000,
    procs: Annotated[int, typer.Option("--procs", min=1, help="Processors of the machine.")] = 128,
    load: Annotated[float, typer.Option("--load", help="Offered load, over 0 and up to 1.5.")] = 0.7,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the generated workload.")] = 1,
    as_json: o.JsonOption = False,
) -> None:
    """Generate a log whose users overestimate, replay it under three policies, and explain the longest wait; no files needed."""
    from walltime.cli import common
    from walltime.cli.compare import as_object, print_comparison, write_page
    from walltime.explanation import explain, longest_waits
    from walltime.report.caveats import caveats_of

    common.check_output(out, (".html", ".htm"))
    log = out.with_name(LOG)
    common.check_output(log, (".swf.gz",))
    workload = write_log(log, jobs, procs, load, seed)
    schedules = [common.run_policy(workload, name, overrun="kill") for name in POLICIES]
    spread = common.find_spread(schedules, "none")
    caveats = caveats_of(schedules, "none", spread=spread)
    easy = schedules[1]
    waits = longest_waits(easy, 1)
    story = explain(easy, waits[0].job, sooner=False) if waits else None
    commands = next_commands(log, easy, None if story is None else story.job)
    write_page(out, schedules, "none", spread, seed=seed)
    if as_json:
        records = [common.run_record(s, "none", trace=log, seconds_read=0.0, estimates="user", seed=seed)[0] for s in schedules]
        found = as_object(records, [], out, caveats, spread)
        common.print_json(found | {"log": str(log), "story": None if story is None else story.as_dict(), "next": commands})
        return
    print_comparison(schedules, "none", caveats, spread)
    if story is not None:
        typer.echo(f"\nThe longest wait under EASY, that of job {story.job}:\n")
        common.print_paragraphs(story.sentences)
    typer.echo(f"\nlog written to {log}, report written to {out}\nto go on:\n")
    for command in commands:
        typer.echo(f"  {command}")


def write_log(path: Path, jobs: int, procs: int, load: float, seed: int) -> Workload:
    """Write a generated log with users and their estimates, and read it: what follows can be repeated with the file."""
    from walltime.cli import common
    from walltime.estimates import Tsafrir05
    from walltime.logs import write_swf
    from walltime.workload.models import MODELS

    made = common.make_up(MODELS["lublin99"], jobs, procs, load, seed, min(USERS, jobs)).with_estimates(Tsafrir05(), seed)
    write_swf(path, made, extra_header=[f"; Note: users drawn, requests drawn by the estimates tsafrir05, seed {seed}"])
    return common.load(path)[0]


def next_commands(log: Path, easy: Schedule, job: int | None) -> list[str]:
    """What to try next with the log: the longest wait and what its user could have asked for, if any job waited, and who gains."""
    name = shlex.quote(str(log))
    commands = [f"walltime compare {name} --gains"]
    if job is not None:
        w = easy.workload
        user = int(w.columns["user"][w.job_id == job][0])
        commands = [f"walltime explain {name} --job {job} --figure job.svg", *commands, f"walltime suggest {name} --user {user}"]
    return commands
