"""`walltime demo`: a complete example that needs no file."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, SchedulingOptions, make_up
from walltime.cli.output import Output
from walltime.cli.table import PARTS, module_of
from walltime.comparison.compare_command import as_object, comparison_blocks, spread_of
from walltime.comparison.simulate_command import run_record, write_run_page

if TYPE_CHECKING:
    from walltime.schedule import Schedule
    from walltime.workload import Workload

POLICIES = ("fcfs", "easy", "easy:backfill-order=sjf,predictor=tsafrir07")
"""No backfilling, the usual policy, and EASY++ (tsafrir07): three policies that differ clearly and compile fast."""
USERS = 60
LOG = "demo.swf.gz"
FEWEST_JOBS = 200
"""The modal model of estimates needs at least this many jobs."""


@manual(
    "tutorial/quickstart",
    ("Use the default workload, and write report.html.", "demo"),
    ("Use a smaller and busier machine.", "demo --procs 64 --load 0.9 --out busy.html"),
)
def demo(
    *,
    out: Annotated[Path, o.out("the report page", *o.PAGE)] = Path("report.html"),
    jobs: Annotated[int, o.option("Generate this many jobs.", group=o.INPUT, min=FEWEST_JOBS)] = 10_000,
    procs: Annotated[int, o.option("Set the processors of the generated machine.", group=o.INPUT, min=1)] = 128,
    load: Annotated[float, o.option("Set the offered load of the generated log, above 0 and up to 1.5.", group=o.INPUT)] = 0.7,
    seed: Annotated[int, o.option("Set the seed of all random draws.", group=o.RUNS, min=0)] = 1,
    output: Output,
) -> None:
    """Generate a log, compare three policies on it, and explain the longest wait; no files are needed.

    The users of the log overestimate their runtimes, as real users do. The log is written as demo.swf.gz next to the report page.
    """
    from walltime.comparison.caveats import caveats_of
    from walltime.report.page import Code
    from walltime.schedule.schedule import longest_waits

    log = out.with_name(LOG)
    o.check_output(log, (".swf.gz",))
    workload, run = write_log(log, jobs, procs, load, seed), SchedulingOptions(seed=seed)
    schedules = [run.run(workload, scheduler) for scheduler in run.schedulers(list(POLICIES))]
    spread = spread_of(schedules, "none")
    sentences = caveats_of(schedules, "none", spread=spread)
    easy = schedules[1]
    waits = longest_waits(easy, 1)
    why = module_of(PARTS["demo"])
    explanation = why.explain(easy, waits[0].job, sooner=False) if why is not None and waits else None
    commands = next_commands(log, easy, None if explanation is None else explanation.job)
    write_run_page(out, schedules, run, spread)
    record = as_object([run_record(schedule, run, log, 0.0)[0] for schedule in schedules], out, sentences, spread)
    record |= {"log": str(log), "explanation": None if explanation is None else explanation.as_dict(), "next": commands}
    blocks = comparison_blocks(schedules, "none", sentences, spread)
    if explanation is not None:
        blocks += [f"The longest wait under EASY, of job {explanation.job}:", explanation.facts]
    blocks += [f"Log written to {log}; report written to {out}", "Commands to try next:", Code("\n".join(f"  {one}" for one in commands))]
    output.show(record, blocks)


def write_log(path: Path, jobs: int, procs: int, load: float, seed: int) -> Workload:
    """Write a generated log with users and their estimates, and read it back, so that the file reproduces the rest."""
    from walltime.estimates import Tsafrir05
    from walltime.logs import write_swf
    from walltime.workload.models import MODELS

    made = make_up(MODELS["lublin99"], jobs, procs, load, seed, min(USERS, jobs)).with_estimates(Tsafrir05(), seed)
    write_swf(path, made, extra_header=[f"; Note: users drawn, requests drawn by the estimates tsafrir05, seed {seed}"])
    return LogOptions().load(path)[0]


def next_commands(log: Path, easy: Schedule, job: int | None) -> list[str]:
    """Return commands to try next with the log; `job`: the job with the longest wait, None if no job waited.

    The commands call the program in a way that works from the current folder.
    """
    name, program = shlex.quote(str(log)), program_here()
    commands = [f"{program} compare {name} --gains"]
    if job is not None:
        w = easy.workload
        user = int(w.columns["user"][w.job_id == job][0])
        commands = [f"{program} explain {name} --job {job} --figure job.svg", *commands, f"{program} suggest {name} --user {user}"]
    return commands


def program_here() -> str:
    """Return the command that calls the running program from the current folder: its name if the shell finds it, else its path."""
    own = Path(sys.argv[0])
    if not own.name.startswith("walltime") or shutil.which(own.name) == str(own.absolute()) or not own.is_file():
        return "walltime"
    own = own.absolute()
    return shlex.quote(str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else str(own))
