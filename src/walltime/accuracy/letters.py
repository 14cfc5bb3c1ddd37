"""Write letters to users: advised requests by kind of job, their risk, and the waiting time that they would have saved."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any

import numpy as np

from walltime.accuracy.accuracy import dates
from walltime.accuracy.advice import ENOUGH, KindAdvice, UserAdvice
from walltime.accuracy.advice_gains import WEEK, AdviceGains, UserGain
from walltime.accuracy.page import kind_of as kind_words
from walltime.errors import OutputError, PolicyError
from walltime.files import whole_file
from walltime.metrics.right_size import WORDS
from walltime.tables import Cell, Row, Table, hours_cell, time_cell
from walltime.wording import UNDEFINED, counted, hours, human_percent, human_time, listed, numbered, printable, shown

MOST_LETTERS = 10
"""Default number of letters, which go to the users who gain the most."""
MAIL_WIDTH = 78
"""Characters in a line of a letter."""
FEW = 100
"""For kinds with fewer jobs, the letter gives an upper bound on the risk."""
PLACEHOLDERS: Mapping[str, str] = {
    "user": "name of the user in the log, or user and number; in letters to accounts, the account",
    "log": "the name of the machine, or of the log if the machine has none",
    "first": "date of the first simulated submission, or the log's first day",
    "last": "date of the last simulated submission",
    "jobs": "jobs of the user in the log",
    "asked_hours": "requested processor-hours of these jobs",
    "used_percent": "used share of these hours, in percent",
    "use": "used shares of memory and processors, and the idle share of GPUs, while jobs ran; empty if they are not recorded",
    "advice": "a line for each kind of job: the walltime (hours:minutes:seconds), memory, processors and GPUs to request, and the reason",
    "advised_jobs": "earlier jobs of the listed kinds",
    "failure": "consequence for a job that needs more than the advice",
    "killed": "earlier jobs that needed more than the advice",
    "killed_percent": "share of the earlier jobs that needed more, in percent",
    "risk": "largest accepted share of the earlier jobs of a kind that needed more than the advice, in percent",
    "wait_before": "mean wait with the user's own requests, simulated",
    "wait_after": "mean wait with the advised requests",
    "others": "effect on the mean wait of all other jobs if only this user follows the advice",
    "lost": "running time per job that would be lost if all jobs that needed more had failed",
    "needed_more": "number of earlier jobs that needed more, and the running time per job that would be lost, in sentences",
    "saved": "difference of the mean waits, averaged over the log and copies with slightly shifted submissions",
    "interval": "90 % prediction interval of the saved wait in one more copy of the log",
}
"""The placeholders of a template, without the dollar sign, and their meanings."""
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[A-Za-z%])|(?<=\d (?:h|d)) (?=\d)|(?<=\d min) (?=\d)")


def standard_template(by: str = "user") -> str:
    """Return the default template of a letter, to a user or (`by` group) to the principal investigator of an account."""
    return (files("walltime.accuracy") / ("letter.txt" if by == "user" else "letter_account.txt")).read_text(encoding="utf-8")


def read_template(path: Path | None, by: str = "user") -> str:
    """Return the template in a file, by default the standard one; raises PolicyError for an unreadable file or unknown placeholder."""
    if path is None:
        return standard_template(by)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", None) or "not UTF-8").lower()
        raise PolicyError(f"{printable(path)}: cannot read the template ({reason}); use a text file", "unreadable_file") from error
    template = Template(text)
    if not template.is_valid():
        raise PolicyError(f"{printable(path)}: the template has a dollar sign without a name; write $$ for a dollar sign", "wrong_template")
    unknown = [name for name in template.get_identifiers() if name not in PLACEHOLDERS]
    if unknown:
        raise PolicyError(
            f"{printable(path)}: unknown name {shown('$' + unknown[0])} in the template. Valid names: {', '.join(PLACEHOLDERS)}",
            "unknown_field",
        )
    return text


def clock(seconds: float) -> str:
    """Format a walltime as Slurm and PBS accept it.

    >>> clock(4500), clock(172_800), clock(754.5)
    ('1:15:00', '48:00:00', '0:12:34')
    """
    seconds = int(seconds)
    return f"{seconds // 3600}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}"


def letter(gains: AdviceGains, user: UserGain, template: str | None = None) -> str:
    """Return the letter to a user; `template`: the result of `read_template`, by default the standard template."""
    return wrapped(Template(standard_template(user.advice.by) if template is None else template).substitute(_values(gains, user)))


def wrapped(text: str) -> str:
    r"""Wrap long lines of a text to `MAIL_WIDTH` characters, but not before units; continuation lines of a list item are indented.

    >>> wrapped("* a: ask for 0:10:00\nshort")
    '* a: ask for 0:10:00\nshort'
    >>> wrapped("In a simulation, your jobs on cluster wait 34 min 39 s on average, not 1 h 06 min").split("\n")[1]
    '1 h 06 min'
    """
    text = _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)
    lines = []
    for line in map(str.rstrip, text.split("\n")):
        indent = "  " if line.startswith("* ") else ""
        broken = wrap(line, MAIL_WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += broken if len(line) > MAIL_WIDTH and not line.startswith("Subject:") else [line]
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


def write_letters(folder: str | Path, gains: AdviceGains, *, template: str | None = None, most: int = MOST_LETTERS) -> list[Path]:
    """Write a letter to each of the users who gain the most, `letters.csv` for a mail merge, and `kinds.csv` with the kinds of jobs.

    `folder`: is created if it does not exist, and must be empty. `most`: largest number of letters. Returns the paths of the letters.
    Raises OutputError for a folder that is not empty or cannot be written.
    """
    target = Path(folder)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(17, "it is not empty")
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{printable(target)}: cannot write letters ({(error.strerror or str(error)).lower()}); use a new folder", "unwritable_file"
        ) from error
    users = gains.helped[:most]
    paths = [target / name for name in _file_names([user.advice.user for user in users])]
    rows = []
    for user, path in zip(users, paths, strict=True):
        text = letter(gains, user, template)
        _write(path, text)
        rows.append(_merge_row(gains, user, path.name, text))
    by = BY[users[0].advice.by if users else "user"]
    _write(target / "letters.csv", _csv(rows, (by, *MERGED)))
    _write(target / "kinds.csv", _csv([_kind_row(user, kind) for user in users for kind in user.advice.advised], (by, *KIND_COLUMNS)))
    return paths


def letters_answer(gains: AdviceGains, written: int) -> str:
    """Return the result in a few sentences."""
    name, helped = gains.site, gains.helped
    if not helped:
        unit = BY[gains.users[0].advice.by] if gains.users else "user"
        return f"No {unit} of {name} would clearly wait less with smaller requests at this risk, so no letter was written."
    first = helped[0]
    before, change, scatter = gains.all_jobs
    effect = (
        f"becomes {human_time(abs(change))} {'shorter' if change < 0 else 'longer'}" if abs(change) > scatter else "does not clearly change"
    )
    unit = BY[first.advice.by]
    who = numbered(unit.capitalize(), first.advice.user)
    return (
        f"{counted(len(helped), unit)} of {name} would wait less with smaller requests. {who} "
        f"gains most: {human_time(-first.difference)} (±{human_time(first.scatter)}) per job. "
        f"{written:,} letter{'s were' if written != 1 else ' was'} written. "
        f"If all these {unit}s follow the advice, the mean wait of all jobs ({human_time(before)}) {effect}."
    )


def letters_table(gains: AdviceGains, most: int = MOST_LETTERS) -> Table:
    """Return a table of the users or accounts that gain, and of the analysed others, which get no letter."""
    rows: list[Row] = []
    unit = BY[gains.users[0].advice.by] if gains.users else "user"
    for user in [*gains.helped[:most], *(one for one in gains.users if not one.helps)]:
        advice = user.advice
        killed, jobs = _killed(advice.advised)
        resources = ", ".join(WORDS[name] for name in advice.resources) or "none"
        row = [advice.user, f"{advice.jobs:,}", f"{len(advice.advised):,}", resources, hours_cell(advice.less_hours)]
        row += [human_percent(100 * killed / max(jobs, 1)), time_cell(user.before)]
        saved = Cell(signed(-user.difference), [f"±{human_time(user.scatter)}"], value=-user.difference)
        rows.append([*row, saved, time_cell(user.lost), "yes" if user.helps else "no: no clear gain"])
    head = [unit, "jobs", "kinds of job", "advice on", "hours saved by walltimes", "needed more", "mean wait", "saved wait"]
    head += ["cost of failed runs", "letter"]
    copies = f"{gains.copies} {'copy' if gains.copies == 1 else 'copies'}"
    remark = (
        f"Waits are simulated under {gains.policy}, for each {unit} alone; in parentheses, the 90 % prediction interval for one more copy "
        f"of the log, with submissions shifted by up to 30 s ({copies}; fewer if no letter can result). In the simulation, jobs that "
        "needed more than the advice keep their requests; the cost of failed runs is the running time per job that would be lost if they "
        "failed. Advice on a resource is left out if it does not clearly shorten the waits. There is a letter if the saved wait clearly "
        f"exceeds this cost, by more than a minute and more than 2 % of the wait.{_share(gains)}"
    )
    return Table(head, rows, f"{unit.capitalize()}s that gain from smaller requests", remark)


def _share(gains: AdviceGains) -> str:
    """Return a sentence on the simulated share of the log; empty for the whole log."""
    if len(gains.workload) == gains.log_jobs:
        return ""
    weeks, by = (int(np.ptp(gains.workload.submit)) + WEEK) // WEEK, BY[gains.users[0].advice.by] if gains.users else "user"
    few = f" {counted(gains.few, by)} with fewer than {ENOUGH} of these jobs are left out." if gains.few else ""
    share = human_percent(100 * len(gains.workload) / gains.log_jobs)
    return f" Simulated: the last {counted(weeks, 'week')} ({share} of the jobs), because simulating individual nodes takes long.{few}"


def letters_record(gains: AdviceGains) -> dict[str, Any]:
    """Return the results for all analysed users as a dictionary for JSON; times in s."""
    users = [
        {**user.advice.as_dict(), "helps": user.helps, "lost": user.lost, "wait_before": user.before, "wait_after": user.after}
        | {"wait_difference": user.difference, "wait_scatter": user.scatter}
        | {"others_difference": user.others, "others_scatter": user.others_scatter}
        for user in gains.users
    ]
    all_jobs = dict(zip(("wait_before", "wait_difference", "wait_scatter"), gains.all_jobs, strict=True))
    simulated = {"simulated_jobs": len(gains.workload), "users_with_few_jobs": gains.few}
    return {"policy": gains.policy, "copies": gains.copies, **simulated, "users": users, "everybody": all_jobs}


def signed(seconds: float) -> str:
    """Format a saved wait, s, with a minus sign if the wait is longer; less than a second becomes 0 s."""
    return "0 s" if abs(seconds) < 1 else f"{'-' if seconds < 0 else ''}{human_time(abs(seconds))}"


def _killed(kinds: Sequence[KindAdvice]) -> tuple[int, int]:
    """Return the number of jobs of these kinds that needed more than advised, and the number of all their jobs."""
    return sum(kind.failing for kind in kinds), sum(kind.jobs for kind in kinds)


def _values(gains: AdviceGains, user: UserGain) -> dict[str, str]:
    advice, workload = user.advice, gains.workload
    killed, jobs = _killed(advice.advised)
    low, high = (human_time(-user.difference + sign * user.scatter) for sign in (-1, 1))
    span = "the same" if low == high else f"{low} to {high} less"
    begin, end = ends = workload.submit[[0, -1]]
    first, last = dates(workload, ends) or ["the first day of the log", f"day {(end - begin) // 86_400 + 1:,}"]
    return {
        "user": numbered("user", advice.user) if advice.by == "user" else advice.user,
        "log": gains.site,
        "first": first,
        "last": last,
        "jobs": f"{advice.jobs:,}",
        "asked_hours": hours(advice.asked_hours),
        "used_percent": human_percent(100 * (1 - advice.unused_hours / max(advice.asked_hours, 1e-9))),
        "use": _use(advice),
        "advice": "\n".join(f"* {_line(kind, advice.by == 'user')}" for kind in advice.advised),
        "failure": _failure(advice.resources),
        "others": _others(user),
        "advised_jobs": f"{jobs:,}",
        "killed": f"{killed:,}",
        "killed_percent": human_percent(100 * killed / max(jobs, 1)),
        "risk": human_percent(advice.risk),
        "wait_before": human_time(user.before),
        "wait_after": human_time(user.after),
        "lost": human_time(user.lost),
        "needed_more": _needed_more(user),
        "saved": human_time(-user.difference),
        "interval": f"{span} if submissions move by up to half a minute",
    }


def _line(kind: KindAdvice, own: bool) -> str:
    """Describe the advice for a kind, with its reason; times have the format of commands. `own`: whether the reader submitted the jobs."""
    mine = f"your {kind.jobs:,} such jobs" if own else f"these {kind.jobs:,} jobs"
    time = [] if kind.walltime is None else [(clock(kind.walltime), clock(kind.median_request), "requested" in kind.kind)]
    amounts = time + [(_amount(one.resource, one.amount), _amount(one.resource, one.median_request), False) for one in kind.requests]
    instead = [before for _, before, told in amounts if not told]
    medians = f" instead of {listed(instead)} ({'your' if own else 'the'} median{'s' if len(instead) > 1 else ''})" if instead else ""
    ran = [] if kind.walltime is None else [f"half of {mine} ran for at most {clock(kind.median_runtime)}"]
    share = human_percent(100 * kind.failing / kind.jobs)
    needed = "ran longer than the new walltime" if kind.resources == ["time"] else "needed more than this"
    of = "" if ran else f" of {mine}"
    reason = "; ".join([*ran, f"{'none' if kind.failing == 0 else share}{of} {needed}"])
    few = f"; with so few jobs, the risk for the next one may be up to {human_percent(kind.bound)}" if kind.jobs < FEW else ""
    jobs = kind_words(kind, clock)
    jobs = f"jobs on {jobs}" if next(iter(kind.kind), "") == "procs" else jobs
    return f"{jobs}: request {listed([new for new, _, _ in amounts])}{medians}; {reason}{few}"


def _amount(resource: str, amount: float) -> str:
    """Describe an amount of a resource; memory is in MB for the whole job, as in Slurm's --mem."""
    if resource == "memory":
        return f"{amount:.0f} MB of memory"
    one = {"cores": "processor", "gpus": "GPU"}[resource]
    return f"{amount:.0f} {one}{'' if round(amount) == 1 else 's'}" if round(amount) else f"no {one}"


def _use(advice: UserAdvice) -> str:
    """Describe the used shares of memory and processors, and the idle share of GPUs, while jobs ran; empty if not recorded."""
    units = {"memory": (1024, "GB-hours"), "cores": (1, "processor-hours"), "gpus": (1, "GPU-hours")}
    known = {name: one for name, one in advice.used.items() if one[0] > 0 and (name != "gpus" or one[1] < 1)}
    amounts = {name: f"of their {WORDS[name]} ({hours / units[name][0]:,.0f} {units[name][1]})" for name, (hours, _) in known.items()}
    used = [f"{human_percent(100 * share)} {amounts[name]}" for name, (_, share) in known.items() if name != "gpus"]
    parts = [f"they used {listed(used)}"] if used else []
    parts += [f"{human_percent(100 - 100 * known['gpus'][1])} {amounts['gpus']} were idle"] if "gpus" in known else []
    return f"While the jobs ran, {'; '.join(parts)}." if parts else ""


def _failure(resources: Sequence[str]) -> str:
    """Describe what happens to jobs that need more than the advice."""
    fates = {
        "time": "a job that is still running at its limit is killed",
        "memory": "a job that needs more memory fails",
        "gpus": "a job that needs more GPUs may fail",
        "cores": "a job that can use more processors runs longer",
    }
    return listed([fate for name, fate in fates.items() if name in resources])


def _needed_more(user: UserGain) -> str:
    """Return sentences on the earlier jobs that needed more than the advice, and on the cost of their failures."""
    killed, jobs = _killed(user.advice.advised)
    your, you = ("your", "you") if user.advice.by == "user" else ("the", "the account")
    earlier = f"{your} {jobs:,} earlier jobs of these kinds"
    if killed == 0:
        return f"None of {earlier} needed more than this."
    share, lost = human_percent(100 * killed / jobs), "less than 1 s" if user.lost < 1 else human_time(user.lost)
    cost = f"If all of these had failed, {you} would have lost {lost} of running time per job; the saved waiting time is longer."
    return f"{killed:,} of {earlier} ({share}) needed more than this. {cost}"


def _others(user: UserGain) -> str:
    """Describe the effect on the waits of all other jobs."""
    if abs(user.others) <= max(user.others_scatter, 1.0):
        return "about as long as before"
    return f"{human_time(abs(user.others))} {'less' if user.others < 0 else 'longer'} on average"


def _file_names(users: Sequence[str]) -> list[str]:
    """Return a distinct, portable file name for each user."""
    names: list[str] = []
    for user in users:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", user)[:80] or "_"
        name, k = f"{plain}.txt", 2
        while name.lower() in [other.lower() for other in names]:
            name, k = f"{plain}-{k}.txt", k + 1
        names.append(name)
    return names


BY = {"user": "user", "group": "account"}
"""The column by which letters are written, and its name in sentences and files."""
MERGED: tuple[str, ...] = ("file", "jobs", "asked_hours", "unused_hours", "less_hours", "advice", "risk_percent", "outran_percent")
MERGED += ("wait_before_s", "wait_after_s", "saved_s", "saved_low_s", "saved_high_s", "lost_s", "saved", "wait_before", "wait_after")
MERGED += ("subject", "text")
KIND_COLUMNS: tuple[str, ...] = ("kind", "jobs", "median_runtime_s", "median_request_s", "ask_for_s", "ask_for", "outran_percent")
KIND_COLUMNS += ("needed_more_percent", "risk_at_most_percent", "killed_in_hindsight_percent", "less_hours")
KIND_COLUMNS += ("memory_mb", "cores", "gpus", "median_memory_mb", "median_cores", "median_gpus")


def _merge_row(gains: AdviceGains, user: UserGain, name: str, text: str) -> dict[str, Any]:
    """Return the row of a user in letters.csv; `name`: file name of the letter."""
    values, advice = _values(gains, user), user.advice
    killed, jobs = _killed(advice.advised)
    row: dict[str, Any] = {key: values[key] for key in ("advice", "saved", "wait_before", "wait_after")}
    row[BY[advice.by]] = advice.user
    row |= {"file": name, "jobs": advice.jobs, "risk_percent": advice.risk, "outran_percent": round(100 * killed / max(jobs, 1), 2)}
    row |= {key: round(getattr(advice, key), 1) for key in ("asked_hours", "unused_hours", "less_hours")}
    row |= {"wait_before_s": round(user.before), "wait_after_s": round(user.after)}
    low, high = (round(-user.difference + sign * user.scatter) for sign in (-1, 1))
    row |= {"saved_s": round(-user.difference), "saved_low_s": low, "saved_high_s": high, "lost_s": round(user.lost)}
    head, _, rest = text.partition("\n")
    return row | {"subject": head.removeprefix("Subject: "), "text": rest.strip()}


def _kind_row(user: UserGain, kind: KindAdvice) -> dict[str, Any]:
    row: dict[str, Any] = {BY[user.advice.by]: user.advice.user, "kind": kind_words(kind), "jobs": kind.jobs}
    if kind.walltime is not None:
        row |= {"ask_for_s": kind.walltime, "ask_for": clock(kind.walltime), "outran_percent": round(kind.killed, 2)}
        row |= {"killed_in_hindsight_percent": "" if math.isnan(kind.hindsight) else round(kind.hindsight, 2)}
    row |= {"median_runtime_s": round(kind.median_runtime), "median_request_s": round(kind.median_request)}
    row |= {"needed_more_percent": round(100 * kind.failing / kind.jobs, 2), "risk_at_most_percent": round(kind.bound, 2)}
    names = {one.resource: "memory_mb" if one.resource == "memory" else one.resource for one in kind.requests}
    row |= {names[one.resource]: one.amount for one in kind.requests}
    row |= {f"median_{names[one.resource]}": round(one.median_request) for one in kind.requests}
    return row | {"less_hours": round(kind.less_hours, 1)}


def _csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    sink = io.StringIO()
    writer = csv.DictWriter(sink, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{name: _escape_formula(value) for name, value in row.items()} for row in rows])
    return sink.getvalue()


def _escape_formula(value: Any) -> Any:
    """Escape a text that spreadsheets would read as a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") and value != UNDEFINED else value


def _write(path: Path, text: str) -> None:
    with whole_file(path) as sink:
        sink.write(text.encode())
