"""`walltime suggest`: suggest walltimes for a user's next job, with the risk that the job is killed."""

from __future__ import annotations

import getpass
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow, used_by
from walltime.cli.output import PageOutput, caveats
from walltime.declared import nearest
from walltime.errors import WorkloadError
from walltime.tables import Cell, Row, Table
from walltime.wording import UNDEFINED, counted, human_percent, human_time, listed, numbered, shown

if TYPE_CHECKING:
    from walltime.accuracy.requests import RequestAdvice
    from walltime.estimates.suggestion import Advice, Suggestion
    from walltime.report.page import Part
    from walltime.workload import Array, Workload


MOST_NAMES = 3
"""Number of job names that the warning about varied jobs lists."""
KIND_NAMES = {"partition": "partition", "executable": "job name"}
"""The columns by which kinds of job differ, and their names."""
MOST_KINDS = 5
"""Number of the most frequent kinds of job in the table."""
DIFFERENT = 2
"""Requests of kinds of job are listed if the largest exceeds the smallest by more than this factor."""
VARIED = 10
"""If the suggestions for the lowest and the highest risk differ by more than this factor, jobs vary too much for one walltime."""


@dataclass(frozen=True)
class JobKind:
    """Options for the known properties of the next job."""

    job_procs: int | None = o.field(None, "Suggest walltimes for jobs with this many processors.", group=o.JOBS, min=1)
    requested: int | None = o.field(
        None, "Suggest walltimes for jobs that usually request this walltime.", group=o.JOBS, min=1, metavar="SECONDS"
    )
    group: str | None = o.field(None, "Suggest walltimes for jobs of this group or project, by name or number.", group=o.JOBS)
    executable: str | None = o.field(
        None, "Suggest walltimes for jobs with this program or job name, by name or number.", "--executable", "--job-name", group=o.JOBS
    )


@dataclass(frozen=True)
class AdviceOptions:
    """Options for the data and the risks on which the advice is based."""

    risk: list[float] | None = o.field(
        None,
        "Suggest a walltime at which the job is killed with this risk, in percent. Default: 50, 25, 10, 5, 2 and 1.",
        min=0,
        max=99.9,
        metavar="PERCENT",
    )
    months: int | None = o.field(None, "Use only jobs of the last N months of 30 days. Default: all.", group=o.JOBS, advanced=True, min=1)
    min_jobs: int = o.field(
        10,
        "Require at least N similar earlier jobs; with fewer, ignore properties of the next job, the least important first.",
        group=o.JOBS,
        advanced=True,
        min=2,
    )


@manual(
    "guides/walltime-advice",
    ("Suggest walltimes for the next job of a user.", "suggest KTH-SP2 --user 7"),
    ("Use only jobs on 8 processors, for risks of 5 % and 1 %.", "suggest KTH-SP2 --user 7 --job-procs 8 --risk 5 --risk 1"),
)
def suggest(
    trace: o.TraceArgument,
    user: Annotated[
        str, o.option("Suggest for this user, by name if the log has names, else by number; me is the current user.", group=o.JOBS)
    ],
    *,
    asked: JobKind,
    advising: AdviceOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    use: o.UseOption = None,
    output: PageOutput,
) -> None:
    """Suggest a walltime, memory, processors and GPUs for a user's next job, with the risk that each is too low."""
    from walltime.accuracy.requests import suggest_requests
    from walltime.estimates.suggestion import KIND, RISKS, alike_jobs, suggest as find
    from walltime.provenance import version

    workload = stretch.alone(used_by(reading.load(trace, any_size=True)[0], use))
    user = getpass.getuser() if user == "me" and workload.origin.number_of("user", user) < 0 else user
    number, named = _number(workload, "user", user), {"group": asked.group, "executable": asked.executable}
    kind = {name: value for name, value in (("procs", asked.job_procs), ("requested", asked.requested)) if value is not None}
    kind |= {name: _number(workload, name, text) for name, text in named.items() if text is not None}
    advice = find(workload, user=number, kind=kind, risks=advising.risk or RISKS, months=advising.months, min_jobs=advising.min_jobs)
    wanted = {"user": number} | {name: kind[name] for name in KIND if name in kind}
    jobs, _ = alike_jobs(workload, wanted, advising.months, advising.min_jobs)
    usual = _usual(advice)
    requests = suggest_requests(workload, jobs, usual.risk)
    kinds = _kinds(workload, jobs, usual.risk, advising.min_jobs)
    record = {"trace": str(trace), "sha256": workload.origin.sha256, "user": number, **asdict(advice)}
    record |= {"requests": [asdict(one) for one in requests], "kinds": kinds, "version": version()}
    called = numbered("user", workload.origin.name_of("user", number))
    names = _job_names(workload, number, advising.min_jobs) if "executable" not in advice.like else []
    answer, blocks = _answer(called, workload.origin.site, advice, names, kinds), list(_blocks(kind, advice))
    if requests:
        blocks = [_request_table(requests), *blocks]
    if kinds:
        blocks = [_kinds_table(kinds, usual.risk), *blocks]
    elif requests:
        line = _line(workload, jobs, usual.walltime, requests)
        answer += [line, *_remarks(requests, line)]
    if output.report is not None:
        from walltime.accuracy.prediction_pages import advice_page

        output.write(advice_page(workload, called, advice, answer, blocks, command_line()))
    output.show(record, [*answer, *blocks])


def _number(workload: Workload, column: str, text: str) -> int:
    """Return the number of a name in the log; raises WorkloadError if the log does not contain the name."""
    number = workload.origin.number_of(column, text)
    if number < 0:
        what = "job name or program" if column == "executable" else column
        names = workload.origin.names.get(column, ())
        close = nearest(text, names) or f"; give a {'name' if names else 'number'} that occurs in the log"
        raise WorkloadError(f"{workload.origin.name} has no {what} {shown(text)}{close}")
    return number


def _job_names(workload: Workload, user: int, least: int) -> list[str]:
    """Return the user's most frequent job names with enough jobs for a suggestion; empty if the log has no names."""
    if "executable" not in workload.origin.names:
        return []
    counts = Counter(workload.columns["executable"][workload.columns["user"] == user].tolist())
    return [workload.origin.name_of("executable", name) for name, jobs in counts.most_common(MOST_NAMES) if jobs >= least]


def _kinds(workload: Workload, jobs: Array, risk: float, least: int) -> list[dict[str, Any]]:
    """Return suggestions for the most frequent kinds of these jobs (indices), by partition and job name as far as recorded.

    The list is empty if there are fewer than two kinds with `least` jobs each, or if their requests differ by less than `DIFFERENT`.
    """
    import numpy as np

    from walltime.accuracy.requests import suggest_requests
    from walltime.distinct import distinct_rows
    from walltime.estimates.suggestion import suggestion_from

    columns = [name for name in KIND_NAMES if name in workload.columns]
    if not columns:
        return []
    alike, place = distinct_rows([workload.columns[name][jobs] for name in columns])
    counts = np.bincount(place)
    found, amounts = list[dict[str, Any]](), defaultdict[str, list[int]](list)
    for k in np.argsort(-counts, kind="stable").tolist()[:MOST_KINDS]:
        if counts[k] < least:
            continue
        mine = jobs[place == k]
        walltime, requests = suggestion_from(workload, mine, risk, least).walltime, suggest_requests(workload, mine, risk)
        names = {
            name: workload.origin.name_of(name, number) for name, number in zip(columns, alike[k].tolist(), strict=True) if number >= 0
        }
        line = _line(workload, mine, walltime, requests)
        found.append(
            {"kind": names, "jobs": len(mine), "walltime": walltime, "requests": [asdict(one) for one in requests], "command": line}
        )
        for resource, amount in (("time", walltime), *((one.resource, one.amount) for one in requests if one.helps)):
            amounts[resource].append(amount)
    differ = any(max(one) > DIFFERENT * min(one) for one in amounts.values())
    return found if differ else []


def _line(workload: Workload, jobs: Array, walltime: int, requests: Sequence[RequestAdvice]) -> str:
    """Return the command line for jobs like these (indices), with the walltime and the suggestions that help."""
    from walltime.accuracy.letters import clock
    from walltime.accuracy.requests import sbatch_line

    helping, nodes, sizes = [one for one in requests if one.helps], workload.columns.get("nodes"), set(workload.procs[jobs].tolist())
    one_node = nodes is not None and bool((nodes[jobs] == 1).all())
    return sbatch_line(clock(walltime), helping, one_node, sizes.pop() if len(sizes) == 1 else None)


def _kinds_table(kinds: Sequence[dict[str, Any]], risk: float) -> Table:
    """Return a table with a command line for each kind of job."""
    columns = [name for name in KIND_NAMES if len({one["kind"].get(name) for one in kinds}) > 1]
    rows: list[Row] = []
    for one in kinds:
        none = any(other["resource"] == "gpus" and other["amount"] == 0 for other in one["requests"])
        names = [one["kind"].get(name, UNDEFINED) for name in columns]
        rows.append([*names, one["command"] + (" (no GPUs)" if none else ""), Cell(f"{one['jobs']:,}", value=one["jobs"])])
    title, note = f"Requests by kind of job at a risk of {risk:g} %", "Keep the current request for resources that a line does not name."
    return Table([*(KIND_NAMES[name] for name in columns), "request", "jobs"], rows, title, note, texts=len(columns) + 1)


def _answer(user: str, site: str, advice: Advice, names: Sequence[str], kinds: Sequence[object]) -> list[str]:
    """Return the suggestion for a risk of about 5 %, and a warning if the jobs vary too much for one walltime.

    `names`: names of the user's jobs. `kinds`: suggestions by kind of job, to which the answer refers.
    """
    from walltime.accuracy.letters import clock

    one = _usual(advice)
    past = f"{counted(advice.jobs, 'similar earlier job')} on {site}"
    medians = f"median runtime {human_time(advice.median_runtime)}, median request {human_time(advice.median_request)}"
    answer = [
        f"Request a walltime of {clock(one.walltime)} for the next job of {user}: the risk that it is killed is about {one.risk:g} %, and "
        f"at most {human_percent(one.upper)} with 95 % confidence ({past}: {medians})."
    ]
    walltimes = [s.walltime for s in advice.suggestions]
    if kinds:
        answer.append("These jobs are of different kinds: use the request for the job's kind in the next table.")
    elif max(walltimes) > VARIED * min(walltimes):
        of = f" (such as {listed(list(map(shown, names)))})" if names else ""
        answer.append(f"The runtimes of these jobs vary too much for one walltime; select similar jobs with --job-name{of} or --job-procs.")
    return answer


def _usual(advice: Advice) -> Suggestion:
    """Return the suggestion for a risk of about 5 %."""
    return min(advice.suggestions, key=lambda s: abs(s.risk - 5))


_OTHERS = {"memory": "memory", "cores": "processors", "gpus": "GPUs"}


def _remarks(requests: Sequence[RequestAdvice], line: str) -> list[str]:
    """Return sentences on suggestions that the command line lacks, such as suggestions that are worse than the jobs' own requests."""
    worse = [_OTHERS[one.resource] for one in requests if not one.helps]
    helping = {one.resource: one.amount for one in requests if one.helps}
    reason = "with the suggestions, these jobs would have been allocated at least as much."
    keep = f"For {listed(worse or [''])}, keep the current request: {reason}"
    divide = f"In addition, request {helping.get('memory', 0):,} MB of memory for the whole job, divided among its nodes."
    cores = counted(helping.get("cores", 0), "processor")
    check = f"Before you request {cores}, check that the recorded CPU time includes all nodes of a job."
    holds = {keep: bool(worse), divide: "memory" in helping and "--mem" not in line, check: "cores" in helping and "--cpus" not in line}
    holds["Request no GPUs: these jobs did not use theirs."] = helping.get("gpus") == 0
    return [sentence for sentence, value in holds.items() if value]


def _request_table(requests: Sequence[RequestAdvice]) -> Table:
    """Return a table of the suggested amounts of other resources."""
    from walltime.accuracy.page import ratio_percent

    rows = []
    for one in requests:
        values = (one.upper, one.short, one.short_twice, one.over, one.over_requests, one.saved)
        shares = (Cell(ratio_percent(value), value=value) for value in values)
        amounts = (Cell(f"{value:,.0f}", value=value) for value in (one.amount, one.median_request, one.jobs))
        name = "memory, MB" if one.resource == "memory" else _OTHERS[one.resource]
        rows.append([name, *amounts, *shares, Cell(UNDEFINED if math.isnan(one.lost) else f"{one.lost:,.0f}", value=one.lost)])
    note = (
        "Risk at most: 95 % upper bound on the risk that the job needs more. Backtest: share of jobs that needed more than the "
        "suggestion from earlier jobs; jobs that ran out of memory needed more than they had. At double: share of jobs that needed "
        "more than twice this memory. Over-allocated: allocated but not needed, by the suggestions and by the requests. Saved: share "
        "of the allocated hours; a job that fails runs again with twice the memory, then with its request. Lost: hours of failed runs."
    )
    head = ["", "request", "median request", "jobs", "risk at most", "backtest", "backtest at double", "over-allocated"]
    head += ["requests over-allocated", "saved", "core-hours lost"]
    return Table(head, rows, f"Other resources at a risk of {requests[0].risk:g} %", note)


def _blocks(kind: dict[str, int], advice: Advice) -> Iterator[Part]:
    from walltime.accuracy.letters import clock

    rows = []
    for s in advice.suggestions:
        shares = (s.upper, s.backtest, 100 * s.slack)
        upper, tested, used = (Cell(human_percent(value), value=value) for value in shares)
        killed = Cell(f"{s.killed_before:,} of {advice.jobs:,}", value=s.killed_before)
        rows.append([Cell(clock(s.walltime), value=s.walltime), Cell(f"{s.risk:g} %", value=s.risk), killed, upper, tested, used])
    title = "Walltimes by the risk that the job is killed"
    yield Table(["request", "target risk", "killed so far", "risk at most", "backtest", "median use"], rows, title)
    notes = [
        "Killed so far: earlier jobs that ran longer than this request. Risk at most: 95 % upper bound on the risk.",
        "Backtest: share of jobs killed if each had requested the walltime suggested by the jobs before it.",
        "Median use: the median share of this walltime that the earlier jobs used.",
        "A killed job loses its results unless it has saved its state.",
    ]
    if advice.like != ["user"]:
        notes.insert(0, f"The earlier jobs have the same {listed(advice.like)}.")
    dropped = [name for name in kind if name not in advice.like]
    if dropped:
        notes.insert(0, f"Ignored, because too few earlier jobs have the same value: {', '.join(dropped)}.")
    if advice.killed:
        notes.append(
            f"{counted(advice.killed, 'earlier job')} used the whole request and may have needed more: counted as longer than the request."
        )
    yield from caveats(notes)
