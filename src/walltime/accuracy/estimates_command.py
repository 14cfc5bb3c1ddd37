"""`walltime estimates`: show the quality of the users' estimates or of modelled estimates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, machine_in, used_by
from walltime.cli.output import Output, PageOutput, caveats, note, progress_bar
from walltime.errors import PolicyError, WorkloadError
from walltime.tables import Cell, Facts, Table, hours_cell, time_cell
from walltime.wording import counted, human_percent, human_time, percent

if TYPE_CHECKING:
    import numpy as np

    from walltime.accuracy.accuracy import WalltimeAccuracy
    from walltime.report.page import Part
    from walltime.schedule.groups import Edges
    from walltime.workload import Workload

LISTED = 10
"""Number of most frequent values in the table; `--json` has twice as many."""


@dataclass(frozen=True)
class EstimateOptions:
    """Options that select the estimates to analyse."""

    model: str = o.field(
        "user",
        "Analyse the users' requests (user), or estimates drawn by a model: f:4, mualem01, tsafrir05, ...; walltime list estimates "
        "shows all.",
        "--estimates",
        group=o.INPUT,
    )
    seed: o.SeedOption = 0


@dataclass(frozen=True)
class TableOptions:
    """Options for tables by groups, and for the figure."""

    groupings: o.BreakdownOption = None
    figure: o.OneFigureOption = None
    size: o.SizeOption = ""


@dataclass(frozen=True)
class AdjustmentOptions:
    """Options for the simulations with adjusted walltimes."""

    adjusted: bool = o.field(
        False,
        "Add simulations with walltimes shortened to predictions, and suggest limits for the users who request the most hours; implied "
        "by --report.",
        group=o.RUNS,
    )
    machine_file: o.MachineOption = None
    replications: int | None = o.field(
        None,
        "Simulate N copies of the log with slightly shifted submissions. Default: up to 5, fewer for long logs.",
        group=o.RUNS,
        min=1,
    )


@dataclass(frozen=True)
class Letters:
    """Options for letters to users."""

    letters: Path | None = o.field(
        None,
        "Write letters to the users who would wait less if they requested less, and tables for a mail merge, into this folder.",
        metavar="FOLDER",
        callback=o.written,
    )
    use: o.UseOption = None
    max_letters: int = o.field(10, "Write at most N letters, to the users who gain most.", min=1)
    risk: float = o.field(
        5.0,
        "Suggest in letters only walltimes whose risk of killing the job is below this percentage, up to 50.",
        advanced=True,
        min=0,
        max=50,
        metavar="PERCENT",
    )
    letters_to: Literal["users", "accounts"] = o.field(
        "users", "Write letters to users, or to the principal investigators of accounts, with advice by user and kind of job."
    )
    template: Path | None = o.field(
        None, "Use the text of this file for the letters, with placeholders such as $user.", advanced=True, metavar="FILE"
    )


@manual(
    "guides/walltime-advice",
    ("Show how well users estimate their runtimes.", "estimates KTH-SP2"),
    ("Estimate the gain from adjusted walltimes, and write a page.", "estimates KTH-SP2 --report page.html"),
)
def estimates(
    trace: o.TraceArgument,
    *,
    estimated: EstimateOptions,
    reading: LogOptions,
    part: RecordedWindow,
    shown: TableOptions,
    adjusting: AdjustmentOptions,
    mail: Letters,
    output: PageOutput,
) -> None:
    """Show the quality of runtime estimates: accuracy, popular values, unused hours, and the users who could save most."""
    from walltime.accuracy.accuracy import estimate_accuracy
    from walltime.accuracy.page import accuracy_page, answer as accuracy_answer, as_record, judged_table
    from walltime.accuracy.requests import judge_requests
    from walltime.estimates import parse_estimates
    from walltime.provenance import version
    from walltime.schedule.groups import parse_grouping

    parse_estimates(estimated.model)
    wanted = {text: parse_grouping(text) for text in shown.groupings or ()}
    if mail.letters is not None:
        others = [name for name, value in (("--report", output.report), ("--figure", shown.figure), ("--by", shown.groupings)) if value]
        if others or adjusting.adjusted or not is_users(estimated.model):
            raise PolicyError(f"--letters writes letters only; leave out {' and '.join(others) or '--adjusted and --estimates'}")
        _write_letters(mail.letters, trace, reading, part, adjusting, mail, output)
        return
    for name, used in (("--template", mail.template), ("--use", mail.use), ("--letters-to", mail.letters_to != "users")):
        if used:
            raise PolicyError(f"{name} is for letters; add --letters FOLDER")
    simulated = output.report is not None or adjusting.adjusted
    if simulated and not is_users(estimated.model):
        raise PolicyError("--report and --adjusted cannot be combined with --estimates; leave out --estimates")
    given = [
        name for name, value in (("--machine", adjusting.machine_file), ("--replications", adjusting.replications)) if value is not None
    ]
    if given and not simulated:
        raise PolicyError(f"{' and '.join(given)} {'requires' if len(given) == 1 else 'require'} simulations; add --adjusted or --report")
    machine = machine_in(adjusting.machine_file)
    workload, seconds = reading.load(trace, machine, any_size=not simulated)
    workload = part.alone(workload)
    accuracy = (
        estimate_accuracy(workload, machine=machine, replications=adjusting.replications, progress=progress_bar) if simulated else None
    )
    seen = look_at(workload, estimated.model, estimated.seed)
    record = analyse(workload, seen) | {"by": {text: _by_group(workload, seen, *parsed) for text, parsed in wanted.items()}}
    judged = judge_requests(workload)
    hours = None if seen is None else hours_of(seen.runtime, seen.requested, workload.procs, seen.killed)
    drawn = shown.figure if record["table"] is not None else None
    if drawn is not None:
        _draw(drawn, workload, seen, record, estimated.model, shown.size)
    if output.report is not None and accuracy is not None:
        procs = ["--procs", str(machine.procs)] if machine is not None and reading.procs is None else []
        log = [str(trace), *reading.words, *procs]
        output.write(accuracy_page(accuracy, settings={"command": command_line()}, log=log))
    for line in () if output.as_json else record["notes"]:
        note(f"{workload.origin.name}: {line}")
    head = {"trace": str(trace), "sha256": workload.origin.sha256, "procs": workload.machine_procs, "jobs": len(workload)}
    head |= {"dropped": dict(workload.origin.dropped), "estimates": estimated.model}
    head["seed"] = None if estimated.model == "user" else estimated.seed
    tail = {
        "hours": hours,
        "requests": [asdict(one) for one in judged],
        "accuracy": None if accuracy is None else as_record(accuracy),
        "figure": drawn,
        "report": output.report,
    }
    blocks: list[Part] = [*_hours(workload.origin.site, hours, estimated.model), *_blocks(record, estimated.model)]
    blocks += [*_group_tables(record["by"]), *filter(None, [judged_table(judged)]), *_simulated(accuracy)]
    if accuracy is not None:
        blocks[: 0 if hours is None else 1] = [accuracy_answer(accuracy)]
    output.show({**head, **record, **tail, "seconds": {"read": seconds}, "version": version()}, blocks, figure=drawn)


CANDIDATES = 3
"""Number of users who are analysed for each letter."""


def _write_letters(
    folder: Path, trace: Path, reading: LogOptions, part: RecordedWindow, adjusting: AdjustmentOptions, mail: Letters, output: Output
) -> None:
    from walltime.accuracy.accuracy import check_requests
    from walltime.accuracy.adjusted import has_column
    from walltime.accuracy.advice import advise_users
    from walltime.accuracy.advice_gains import COPIES, simulate_advice
    from walltime.accuracy.letters import letters_answer, letters_record, letters_table, read_template, write_letters
    from walltime.provenance import version

    by: Literal["user", "group"] = "user" if mail.letters_to == "users" else "group"
    text = read_template(mail.template, by)
    machine = machine_in(adjusting.machine_file)
    workload = part.alone(used_by(reading.load(trace, machine)[0], mail.use))
    limited = check_requests(workload)
    if by == "group" and not has_column(workload, by):
        raise WorkloadError(f"{workload.origin.name} does not record the accounts of its jobs; write letters to users", "accounts_unknown")
    others = ["cores"]
    if machine is not None:
        others += ["memory"] if any(pool.memory for pool in machine.pools) else []
        others += ["gpus"] if machine.second == "gpus" and any(pool.second for pool in machine.pools) else []
    advice = advise_users(workload, limited, CANDIDATES * mail.max_letters, progress_bar, mail.risk, by=by, others=others)
    gains = simulate_advice(workload, advice, machine=machine, copies=adjusting.replications or COPIES, progress=progress_bar)
    paths = write_letters(folder, gains, template=text, most=mail.max_letters)
    head = {"trace": str(trace), "sha256": workload.origin.sha256, "procs": workload.machine_procs, "jobs": len(workload)}
    record = {**head, **letters_record(gains), "letters": [str(path) for path in paths], "version": version()}
    written = "letters" if paths else "empty tables"
    table: list[Part] = ["", letters_table(gains, mail.max_letters)] if gains.users else []
    output.show(record, [letters_answer(gains, len(paths)), *table], **{written: folder})


@dataclass(frozen=True)
class EstimateData:
    """The data to analyse, with one entry per job: `runtime` and `requested`, int64 s, and `killed`, bool; also notes on the data.

    `cut_short`: number of jobs that reach an estimate drawn by a model.
    """

    runtime: np.ndarray
    requested: np.ndarray
    killed: np.ndarray | None
    cut_short: int
    notes: tuple[str, ...]


def look_at(workload: Workload, model: str, seed: int) -> EstimateData | None:
    """Return the users' estimates or a model's estimates; None if the log has no users' estimates.

    If the model also sets the kill limit, jobs end at their estimates at the latest, as in a log, and then count as killed.
    """
    import numpy as np

    from walltime.estimates import parse_estimates
    from walltime.metrics.estimates import FAILED

    chosen = parse_estimates(model)
    notes = []
    if model.strip().lower() == "user" or chosen.limit == "user":
        missing = workload.origin.changed.get("runtime_as_estimate", 0)
        if np.array_equal(workload.requested, np.maximum(workload.runtime, 1)):
            return None
        if missing:
            of = f"{missing:,} of {counted(len(workload), 'job')} {'has' if missing == 1 else 'have'} no estimate in the log"
            notes.append(f"{of}; the runtime is used instead, which adds to the peak at 100 %")
    drawn = workload.with_estimates(chosen, seed)
    if chosen.limit == "model":
        killed = workload.runtime > drawn.planned
        return EstimateData(np.minimum(workload.runtime, drawn.planned), drawn.planned, killed, int(killed.sum()), tuple(notes))
    status = workload.columns.get("status")
    failed = None if status is None else status == FAILED
    if failed is None or not failed.any():
        failed = None
        notes.append("no job of the log has status 0 (failed), so killed jobs cannot be identified")
    if "recon" in workload.origin.name:
        notes.append("the log is a reconstruction: runtimes end at the estimate, and jobs with runtime 0 are missing")
    return EstimateData(workload.runtime, drawn.planned, failed, 0, tuple(notes))


def analyse(workload: Workload, seen: EstimateData | None) -> dict[str, Any]:
    """Return the entries of `--json` on the estimates; all are None for a log without estimates."""
    from walltime.estimates import largest_estimate
    from walltime.metrics import estimates as e
    from walltime.metrics.jobs import accuracy

    names = ("table", "percent", "distinct", "top", "top20_percent", "emax", "emax_rank", "emax_percent", "largest")
    if seen is None:
        note = "the log has no users' estimates: each equals the runtime; analyse estimates of a model with --estimates f:4"
        rest = dict.fromkeys((*names, "mean_accuracy", "over_estimate", "cut_short", "histogram", "accuracy_by_runtime"))
        return {**rest, "notes": [note]}
    r, q = seen.runtime, seen.requested
    table = e.estimate_use_table(r, q, seen.killed)
    values, counts = e.popular_values(q)
    emax = largest_estimate(q)
    rank, percent = e.rank_of(emax, q)
    mean_runtime, ratio = e.accuracy_by_runtime(r, q)
    top = zip(values[: 2 * LISTED].tolist(), counts[: 2 * LISTED].tolist(), strict=True)
    return {
        "table": table.as_dict(),
        "percent": {name: table.percent(name) for name in table.as_dict()},
        "distinct": len(values),
        "top": [{"seconds": t, "jobs": n, "percent": 100 * n / len(q)} for t, n in top],
        "top20_percent": e.top_share(q),
        "emax": emax,
        "emax_rank": rank,
        "emax_percent": percent,
        "largest": int(q.max()),
        "mean_accuracy": float(accuracy(r, q).mean()),
        "over_estimate": int((r > q).sum()),
        "cut_short": seen.cut_short,
        "histogram": e.use_histogram(r, q).tolist(),
        "accuracy_by_runtime": {"mean_runtime": mean_runtime.tolist(), "accuracy": ratio.tolist()},
        "notes": list(seen.notes),
    }


def _by_group(workload: Workload, seen: EstimateData | None, by: str, edges: Edges) -> list[dict[str, Any]]:
    """Return the use of the estimates by groups of jobs; empty without estimates."""
    import numpy as np

    from walltime.metrics.estimates import use_by_group
    from walltime.schedule.groups import check_known, group_jobs

    if seen is None:
        return []
    groups = group_jobs(workload, by, workload.submit, workload.submit, edges)
    check_known(workload, by, groups)
    return use_by_group(groups.members(np.ones(len(workload), bool)), seen.runtime, seen.requested, workload.procs)


def _group_tables(groups: dict[str, list[dict[str, Any]]]) -> Iterator[Table]:
    from walltime.schedule.groups import TITLES

    columns = ["", "jobs", "of all work", "median runtime", "median estimate", "mean use", "use under 10 %", "use 99 % or more"]
    for text, rows in groups.items():
        lines = []
        for row in rows:
            times = [Cell(human_time(row[name]), value=row[name]) for name in ("median_runtime", "median_request")]
            shares = [Cell(percent(row[name]), value=row[name]) for name in ("mean_use", "under_tenth", "full")]
            lines.append([row["group"], f"{row['jobs']:,}", percent(row["share_of_use"]), *times, *shares])
        if rows:
            by = text.partition(":")[0]
            yield Table(columns, lines, f"Estimates by {TITLES.get(by, by)} (use: runtime divided by estimate, at most 100 %)")


def _draw(path: Path, workload: Workload, seen: EstimateData | None, record: dict[str, Any], model: str, size: str) -> None:
    from walltime.accuracy.estimate_figures import estimates_figure
    from walltime.report.figure_files import write_figure

    if seen is not None:
        title = workload.origin.name if model == "user" else f"{workload.origin.name}, estimates {model}"
        figure = estimates_figure(seen.runtime, seen.requested, killed=seen.killed, emax=record["emax"], title=title)
        write_figure(path, figure, size)


def _blocks(record: dict[str, Any], model: str) -> Iterator[Table | Facts | str]:
    """Yield a table of the most frequent estimates, and facts on all estimates."""
    if record["table"] is None:
        return
    top = record["top"][:LISTED]
    rows = [[time_cell(t["seconds"]), f"{t['jobs']:,}", Cell(f"{t['percent']:.1f} %", value=t["percent"])] for t in top]
    yield Table(
        ["estimate", "jobs", "of all jobs"], rows, f"Most frequent estimates ({len(rows)} of {counted(record['distinct'], 'value')})"
    )
    share = f"{record['emax_percent']:.1f} % of the jobs"
    rank = f"rank {record['emax_rank']:,} by number of jobs, {share}" if record["emax_rank"] else "used by no job"
    if record["largest"] > record["emax"]:
        rank += f"; outliers up to {human_time(record['largest'])} left out"
    longer = ("ran longer than estimated", f"{record['over_estimate']:,}", "jobs")
    if model != "user":
        longer = ("killed at the estimate", f"{record['cut_short']:,}", "jobs whose estimate is shorter than the runtime")
    facts = [
        ("the 20 most frequent", f"{record['top20_percent']:.1f} %", "of the jobs"),
        ("largest estimate", human_time(record["emax"]), rank),
        ("mean accuracy", f"{record['mean_accuracy']:.2f}", "1 is perfect"),
        longer,
    ]
    yield Facts("", facts)


# ---------------------------------------------------------------------- hours, and adjusted walltimes


def is_users(model: str) -> bool:
    """Return whether the users' own estimates are analysed."""
    return model.strip().lower() == "user"


def hours_of(runtime: np.ndarray, requested: np.ndarray, procs: np.ndarray, killed: np.ndarray | None) -> dict[str, Any] | None:
    """Return the requested and used hours of the jobs with a limit, in total and by the jobs' endings; None if no job has a limit."""
    from walltime.metrics.estimates import YEAR, jobs_by_use, requested_time

    limited = requested < YEAR
    if not limited.any():
        return None
    three = (runtime[limited], requested[limited], procs[limited])
    return {"total": requested_time(*three).as_dict(), "ends": jobs_by_use(*three, None if killed is None else killed[limited])}


def _hours(name: str, record: dict[str, Any] | None, model: str) -> Iterator[Table | str]:
    """Yield a sentence on the use of the requested hours, and a table of the unused hours by the jobs' endings."""
    if record is None:
        return
    t = record["total"]
    asked, unused = (hours_cell(t[f"{what}_hours"]).text for what in ("asked", "unused"))
    whose = "The users" if is_users(model) else f"Estimates by {model} for the jobs"
    yield f"{whose} of {name} request {asked} processor-hours and use {percent(t['used_share'])} of them; {unused} are not used."
    rows = []
    for row in record["ends"]:
        hours = (hours_cell(row[f"{what}_hours"]) for what in ("asked", "unused"))
        rows.append([row["group"], f"{row['jobs']:,}", human_percent(100 * row["jobs"] / t["jobs"]), *hours])
    yield Table(["", "jobs", "of all jobs", "requested", "not used"], rows, "Unused processor-hours by job outcome")


def _simulated(simulated: WalltimeAccuracy | None) -> Iterator[Part]:
    """Yield the hours by user, the gain of adjusted walltimes, the advice, and the caveats."""
    from walltime.accuracy import page as accuracy
    from walltime.accuracy.adjusted import MEANINGS

    if simulated is None:
        return
    for by, words in accuracy.groupings(simulated).items():
        yield accuracy.use_table(simulated.groups[by], f"By {words}", "")
    yield accuracy.MEANING
    if simulated.adjusted is not None:
        yield accuracy.adjusted_table(simulated.adjusted)
        for row in simulated.adjusted.rows():
            meaning = MEANINGS.get(row["what"])
            yield f"{row['what']}: {row['policy']}" + ("" if meaning is None else f"; {meaning}")
    if simulated.advice:
        yield accuracy.advice_table(simulated)
        yield "For more on one user: walltime suggest LOG --user NAME [--job-name NAME] [--job-procs N]."
    yield from caveats(accuracy.caveats(simulated))
