"""Interpretations of the points that the papers leave open, and their effects on the numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any, Literal

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates.fmodel import STREAM_F
from walltime.metrics.jobs import mean
from walltime.papers.items import item
from walltime.papers.printed import Printed
from walltime.papers.results import Claim, Entry, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject
from walltime.policy import Conservative, Easy, Policy
from walltime.schedule import Schedule
from walltime.simulation import simulate
from walltime.workload import Workload
from walltime.workload.cleaning import clean, published_filters
from walltime.workload.draws import uniforms

Array = np.ndarray
MILLI = 1000
"""Ticks per second if estimates are not rounded to seconds."""
_EASY, _CONSERVATIVE = Easy(), Conservative()


@dataclass(frozen=True)
class Reading:
    """One interpretation of an open point of a paper, and how to run it.

    `change` makes the simulated workload (`draw` with a seed, if estimates are drawn); a policy is None if the point does not
    concern it. `ticks`: units of time per second. `logged`: whether the averages use the runtimes of the log, not of the simulation.
    """

    id: str
    question: str
    name: str
    default: bool = False
    change: Callable[[Workload], Workload] | None = None
    draw: Callable[[Workload, int], Workload] | None = None
    easy: Policy | None = _EASY
    conservative: Policy | None = _CONSERVATIVE
    coincident: str = "batch"
    overrun: str = "kill"
    trim: str = "none"
    form: Literal["max", "p1"] = "p1"
    ticks: int = 1
    logged: bool = False
    month_of: str = "end"
    load: Literal["achieved", "submitted", "ended"] = "achieved"


@dataclass(frozen=True)
class Row:
    """The results of an interpretation; nan for missing numbers; `note`: the reason if it cannot be run."""

    id: str
    question: str
    reading: str
    default: bool
    easy_response: float = nan
    """mean response under EASY, s"""
    easy_slowdown: float = nan
    """mean bounded slowdown under EASY, in the form of feitelson98 and mualem01 unless the interpretation has another"""
    conservative_response: float = nan
    """mean response under conservative backfilling, s"""
    conservative_slowdown: float = nan
    """mean bounded slowdown under conservative backfilling"""
    jobs_off: float = nan
    """sum of the months' absolute differences in jobs under EASY from print, or, without print, from the default"""
    load_off: float = nan
    """mean absolute difference of the months' load, likewise"""
    slowdown_off: float = nan
    """mean absolute difference of the months' bounded slowdown under EASY, in percent, likewise"""
    note: str = ""


def requested_processors(workload: Workload) -> Workload:
    """Return the same jobs with the requested number of processors; raises WorkloadError if the log does not record it."""
    requested = workload.columns.get("requested_procs")
    if requested is None:
        raise WorkloadError(f"{workload.origin.name} does not record the requested processors", "missing_column")
    return replace(workload, procs=np.where(requested > 0, requested, workload.procs))


def cleaned(workload: Workload) -> Workload:
    """Return the log after the archive's published filters; raises PolicyError without any."""
    return clean(workload, published_filters(workload.origin.name)).after


def later_number_first(workload: Workload) -> Workload:
    """Return the same jobs with new numbers: jobs submitted in the same second are in descending order of their old numbers."""
    if workload.feedback:
        raise WorkloadError("jobs that name preceding jobs cannot be renumbered", "circular_dependency")
    turned = int(workload.job_id.max(initial=0)) + 1 - workload.job_id
    columns = {name: values for name, values in workload.columns.items() if name != "preceding_job"}
    return Workload.from_arrays(
        submit=workload.submit,
        runtime=workload.runtime,
        requested=workload.requested,
        planned=workload.planned,
        procs=workload.procs,
        machine_procs=workload.machine_procs,
        job_id=turned,
        columns=columns,
        origin=workload.origin.after("later job number first"),
    )


def uniform_estimates(rounding: str, f: float = 4.0) -> Callable[[Workload, int], Workload]:
    """Return a function that draws estimates uniform in [r, f r], rounded `nearest`, `up`, `down`, or to a millisecond (`none`).

    With `none` all times of the workload are in milliseconds. Estimates are at least the runtime and at least 1 s.
    """
    ways: dict[str, Callable[[Array], Array]] = {"up": np.ceil, "down": np.floor}
    rounded = ways.get(rounding, lambda exact: np.floor(exact + 0.5))
    ticks = MILLI if rounding == "none" else 1

    def draw(workload: Workload, seed: int) -> Workload:
        share, _ = uniforms(seed, workload.job_id, STREAM_F)
        runtime = ticks * workload.runtime
        estimates = np.maximum(rounded(runtime * (1 + (f - 1) * share)).astype(np.int64), np.maximum(runtime, ticks))
        return replace(workload, submit=ticks * workload.submit, runtime=runtime, requested=estimates, planned=estimates)

    return draw


_KEPT = Easy(extra="literal", shadow="kept")
_INSTANT, _OVERRUN, _EXTRA = "simultaneous events", "jobs that run longer than requested", "shadow time and extra processors"
_COMPRESSION, _ROUNDING = "compression", "rounding of the f-model, f = 4"
_MONTH, _LOAD = "month of a job", "load of a month"

READINGS: tuple[Reading, ...] = (
    Reading("events", _INSTANT, "terminations, arrivals, one pass", default=True),
    Reading("events", _INSTANT, "a pass after each, arrivals first", coincident="sequential"),
    Reading("events", _INSTANT, "a pass after each, terminations first", coincident="one-by-one"),
    *(
        Reading("rounding", _ROUNDING, name, default=name == "nearest", draw=uniform_estimates(name), ticks=MILLI if name == "none" else 1)
        for name in ("nearest", "up", "down", "none")
    ),
    *(
        Reading("month", _MONTH, name, default=event == "end", month_of=event, conservative=None)
        for event, name in (("end", "it ends then"), ("start", "it starts then"), ("submit", "it is submitted then"))
    ),
    Reading("month", _MONTH, "submitted then, each month simulated alone", month_of="alone", conservative=None),
    Reading("load", _LOAD, "busy share of the machine", default=True, conservative=None),
    Reading("load", _LOAD, "work of the jobs submitted in it", load="submitted", conservative=None),
    Reading("load", _LOAD, "work of the jobs that end in it", load="ended", conservative=None),
    Reading("overrun", _OVERRUN, "killed at their estimate", default=True),
    Reading("overrun", _OVERRUN, "estimate raised to the runtime", overrun="extend"),
    Reading("overrun", _OVERRUN, "run on, overdue", overrun="continue"),
    Reading("runtime", "runtime in the averages", "simulated", default=True),
    Reading("runtime", "runtime in the averages", "recorded", logged=True),
    Reading("extra", _EXTRA, "all that are free at the shadow time", default=True, conservative=None),
    Reading("extra", _EXTRA, "counting stops at the first sufficient job", easy=Easy(extra="literal"), conservative=None),
    Reading("extra", _EXTRA, "all, kept until a termination", easy=Easy(shadow="kept"), conservative=None),
    Reading("extra", _EXTRA, "first sufficient, kept until a termination", easy=_KEPT, conservative=None),
    Reading("compression", _COMPRESSION, "once, after an early end", default=True, easy=None),
    Reading("compression", _COMPRESSION, "until no job moves", easy=None, conservative=Conservative(compression="fixpoint")),
    Reading("compression", _COMPRESSION, "none: reservations recomputed", easy=None, conservative=Conservative(variant="scratch")),
    Reading("trigger", _COMPRESSION, "once, at every event", easy=None, conservative=Conservative(compression="always")),
    Reading("slowdown", "bounded slowdown", "may be below 1 (feitelson98, mualem01)", default=True),
    Reading("slowdown", "bounded slowdown", "at least 1 (tsafrir06)", form="max"),
    Reading("ties", "jobs submitted in the same second", "in order of job number", default=True),
    Reading("ties", "jobs submitted in the same second", "later job number first", change=later_number_first),
    Reading("procs", "processors", "allocated", default=True),
    Reading("procs", "processors", "requested", change=requested_processors),
    Reading("version", "version of the log", "as archived", default=True),
    Reading("version", "version of the log", "cleaned", change=cleaned),
    Reading("measured", "jobs measured", "all", default=True),
    Reading("measured", "jobs measured", "without warm-up and cool-down (tsafrir06)", trim="tsafrir06"),
    Reading(
        "together",
        "events, overruns, extra processors, slowdown and ties together",
        "as the EASY of mualem01 seems to have run",
        change=later_number_first,
        easy=_KEPT,
        coincident="one-by-one",
        overrun="extend",
        form="max",
    ),
)
"""All interpretations that change numbers; one for each open point is the default."""


Months = dict[tuple[int, int], tuple[float, float, float]]
"""Jobs, load and EASY's bounded slowdown by (year, month)."""


def readings_table(
    workload: Workload,
    *,
    printed: Mapping[str, Mapping[str, float]] | None = None,
    months: Months | None = None,
    readings: Sequence[Reading] = READINGS,
    seeds: int = 3,
) -> list[Row]:
    """Return the results of each interpretation on a workload, computed in one thread, after rows with the printed numbers.

    `printed`: the `AVERAGES` that are printed, by the title of their row. `months`: printed months, with which EASY's are compared; by
    default the months under the default interpretations. `printed_of` finds both. Rows with drawn estimates are means over `seeds`
    seeds. An interpretation that does not apply to the workload has a row with a note. Raises PolicyError for less than 1 seed.

    >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[90, 10], requested=[60, 10], procs=[4, 4], machine_procs=4)
    >>> [(row.reading, row.easy_response) for row in readings_table(jobs) if row.id == "overrun"][:2]
    [('killed at their estimate', 64.5), ('estimate raised to the runtime', 94.5)]
    """
    if seeds < 1:
        raise PolicyError(f"seeds must be at least 1, not {seeds}", "number_out_of_range")
    rows = [replace(Row("", "", title, False), **averages) for title, averages in (printed or {}).items()]  # type: ignore[arg-type]
    usual = Reading("", "", "")
    compared = months or _months(usual, _simulate(usual, workload, _EASY))
    return rows + [_row(reading, workload, compared, seeds) for reading in readings]


AVERAGES = ("easy_response", "easy_slowdown", "conservative_response", "conservative_slowdown")


def printed_of(given: Printed, log: str) -> tuple[dict[str, dict[str, float]], Months]:
    """Return the printed numbers for `readings_table`, from mualem01's Tables 1 and 3; empty for a log that is not in them."""
    printed: dict[str, dict[str, float]] = {}
    for title, estimates in (("in print", "user"), ("in print, f = 4", "f:4")):
        for name in AVERAGES:
            policy, metric = name.split("_")
            value = given.tables["T3"].value("value", log=log, policy=policy, estimates=estimates, metric=metric)
            if value is not None:
                printed.setdefault(title, {})[name] = value
    rows = [row for row in given.tables["T1"].rows if row["log"] == log]
    return printed, {(row["year"], row["month"]): (row["jobs"], row["load"], row["slowdown_easy"]) for row in rows}


def _row(reading: Reading, workload: Workload, months: Months, seeds: int) -> Row:
    row = Row(reading.id, reading.question, reading.name, reading.default)
    try:
        workload = workload if reading.change is None else reading.change(workload)
    except (PolicyError, WorkloadError) as error:
        return replace(row, note=str(error))
    if reading.month_of == "alone":
        return replace(row, **_differences(_months_alone(reading, workload), months))
    drawn = [workload] if reading.draw is None else [reading.draw(workload, seed) for seed in range(seeds)]
    for name, policy in (("easy", reading.easy), ("conservative", reading.conservative)):
        if policy is None:
            continue
        schedules = [_simulate(reading, one, policy) for one in drawn]
        response, slowdown = np.mean([_averages(reading, schedule) for schedule in schedules], axis=0).tolist()
        averages: dict[str, Any] = {f"{name}_response": response, f"{name}_slowdown": slowdown}
        row = replace(row, **averages)
        if name == "easy" and reading.draw is None:
            row = replace(row, **_differences(_months(reading, schedules[0]), months))
    return row


def _differences(mine: Months, months: Months) -> dict[str, Any]:
    """Return the differences of months from the months that they are compared with."""
    common = [month for month in months if month in mine]
    if not common:
        return {}
    there, here = (np.array([by_month[month] for month in common], np.float64) for by_month in (months, mine))
    jobs, load, slowdown = np.abs(here - there).T
    return {"jobs_off": float(jobs.sum()), "load_off": float(load.mean()), "slowdown_off": float(100 * (slowdown / there[:, 2]).mean())}


def _simulate(reading: Reading, workload: Workload, policy: Policy) -> Schedule:
    return simulate(workload, policy, coincident=reading.coincident, overrun=reading.overrun)


def _averages(reading: Reading, schedule: Schedule) -> tuple[float, float]:
    """Return the mean response in s, and the mean bounded slowdown."""
    runtime = (schedule.workload.runtime if reading.logged else schedule.runtime) / reading.ticks
    wait = schedule.wait / reading.ticks
    mask = metrics.measured(schedule.end, schedule.last_submit, reading.trim)
    slowdown = metrics.bounded_slowdown(wait, runtime, form=reading.form)
    return mean((wait + runtime)[mask]), mean(slowdown[mask])


def _months(reading: Reading, schedule: Schedule) -> Months:
    """Return the months of a schedule; none if the log's start is not recorded."""
    workload = schedule.workload
    if workload.origin.unix_start_time is None or not len(workload):
        return {}
    rows = schedule.monthly(by=reading.month_of)
    form = "mean_bounded_slowdown" if reading.form == "max" else "mean_bounded_slowdown_p1"
    months = {(row.year, row.month): (float(row.jobs), row.load, float(getattr(row, form))) for row in rows}
    if reading.load == "achieved":
        return months
    event = schedule.submit if reading.load == "submitted" else schedule.end
    for year, month, begin, end in _bounds(workload, int(schedule.end.max())):
        mine = (event >= begin) & (event < end)
        work = float((workload.procs * schedule.runtime)[mine].sum())
        jobs, _, slowdown = months[year, month]
        months[year, month] = (jobs, work / (workload.machine_procs * (end - begin)), slowdown)
    return months


def _months_alone(reading: Reading, workload: Workload) -> Months:
    """Simulate each month's jobs, by submission, on an empty machine."""
    if workload.origin.unix_start_time is None or not len(workload):
        return {}
    months = {}
    for year, month, begin, end in _bounds(workload, int(workload.submit[-1])):
        mine = np.flatnonzero((workload.submit >= begin) & (workload.submit < end))
        if len(mine) and reading.easy is not None:
            s = _simulate(reading, workload.take(mine, "one month"), reading.easy)
            load = metrics.utilization(s.start, s.end, s.workload.procs, workload.machine_procs, begin, end)
            months[year, month] = (float(len(mine)), load, _averages(reading, s)[1])
    return months


def _bounds(workload: Workload, last: int) -> list[tuple[int, int, int, int]]:
    """Return year, month, begin and end (s of the log) of each calendar month up to the month of `last`."""
    zero = workload.origin.unix_start_time or 0
    starts = metrics.month_starts(zero + int(workload.submit[0]), zero + last, workload.origin.tzinfo())
    return [(year, month, begin - zero, end - zero) for (year, month, begin), (*_, end) in itertools.pairwise(starts)]


NUMBERS = (
    ("easy_response", "response, EASY", 0),
    ("easy_slowdown", "slowdown, EASY", 1),
    ("conservative_response", "response, conservative", 0),
    ("conservative_slowdown", "slowdown, conservative", 1),
    ("jobs_off", "jobs in other months", 0),
    ("load_off", "load off by", 4),
    ("slowdown_off", "EASY's months off by (%)", 1),
)
SEEDS, FEW_SEEDS = 3, 1
EXACT = 0.0015
"""Relative difference up to which a month counts as equal to the printed digit."""


@item("readings")
def readings(study: Study) -> Parts:
    """Interpretations of open points of the paper."""
    subject = next((s for s in study.subjects if s.name == "KTH"), study.subjects[0])
    printed, months = printed_of(study.printed, subject.name) if subject.kind == PAPER else ({}, {})
    rows = readings_table(subject.workload, printed=printed, months=months, seeds=FEW_SEEDS if study.quick else SEEDS)
    lines: Rows = []
    for row in rows:
        line: list[Entry] = [row.question, f"{row.reading}{' *' if row.default else ''}"]
        for field, _, digits in NUMBERS:
            value = float(getattr(row, field))
            line.append(None if math.isnan(value) else Value(value, digits=digits))
        lines.append([*line, row.note])
    columns = ["open point", "interpretation", *(name for _, name, _ in NUMBERS), ""]
    note = (
        "The default comes first within each open point, marked *. The last three columns of numbers compare EASY's months with print, or "
        "with the default where nothing is printed. Interpretations without a compiled engine run on the reference engine."
    )
    yield Table("readings", f"Interpretations on {subject.label}", columns, lines, note)
    yield from _printed_months(study, subject)
    yield CONCLUSION


CONCLUSION = (
    "The last interpretation was found by searching some 20,000 combinations on KTH, so the fit alone proves nothing. Two facts support "
    "it: months agree to the last printed digit, and CTC's slowdowns are closer to print too. Under it, jobs backfilled into extra "
    "processors do not use these up, and jobs that exceed their request run on. The extra processors and the shadow time are computed "
    "only at a termination or for a new head. It breaks mualem01's own Property 2, that the first job of the queue is not delayed; so "
    "the default follows the text of mualem01."
)


def _printed_months(study: Study, subject: Subject) -> Parts:
    """Yield EASY's months under the last interpretation, compared with print."""
    reading: Reading = READINGS[-1]
    assert reading.change is not None
    assert reading.easy is not None
    if subject.kind != PAPER or subject.unix_start_time is None:
        return
    printed, criteria = study.printed.tables["T1"], study.printed.criteria
    schedule = _simulate(reading, reading.change(subject.workload), reading.easy)
    rows: Rows = []
    exact = loads = 0
    for month in schedule.monthly():
        line = printed.find(log=subject.name, year=month.year, month=month.month)
        if line is None:
            continue
        response = Value(month.mean_response, line["response_easy"], EXACT)
        load = Value(month.load, line["load"], criteria["month_load"] / line["load"], 3)
        jobs = Value(month.jobs, line["jobs"], criteria["month_jobs"])
        slowdown = Value(month.mean_bounded_slowdown, line["slowdown_easy"], EXACT, 1)
        rows.append([f"{month.year}-{month.month:02d}", load, jobs, response, slowdown])
        exact += response.verdict == "reproduced"
        loads += round(month.load, 3) == line["load"]
    if rows:
        head = ["month", "load", "jobs", "response, EASY", "slowdown, EASY"]
        yield Table("readings-months", f"EASY's months, {reading.name}", head, rows, f"Green: within {100 * EXACT:g} % of print.")
        count, half = len(rows), "half of the months have the printed response, to a tenth of a percent"
        yield Claim(half, exact >= count / 2, f"{exact} of {count}")
        yield Claim("all months have the printed load, to its last digit", loads == count, f"{loads} of {count}")
