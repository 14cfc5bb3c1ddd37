"""mualem01, Table 1: results for each month; where months begin, and when a log without a recorded start begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from walltime.metrics.months import Month, month_starts, monthly
from walltime.papers.item import Item
from walltime.papers.mualem01.experiment import NOTICEABLE, POLICIES, schedule_of
from walltime.papers.printed_numbers import PrintedTable
from walltime.papers.results import Claim, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import GENERATED, PAPER, Subject

Array = np.ndarray


def table_1(study: Study) -> list[Part]:
    """mualem01: results for each month."""
    printed = study.printed.tables["T1"]
    rows: list[list[Entry]] = []
    claims: list[Claim] = []
    notes: list[str] = []
    for subject in study.subjects:
        begin, note = start_of(subject, printed)
        notes += [note] if note else []
        months = {policy: months_of(subject, policy, begin) for policy in POLICIES}
        whole = {(m.year, m.month): m.load for m in months_of(subject, "easy", begin, "extend")}
        lines = [row for row in printed.rows if row["log"] == subject.name] if subject.kind == PAPER else []
        columns: dict[str, list[tuple[float, float]]] = {}
        worst = {"jobs": 0.0, "load": 0.0, "whole": 0.0}
        for easy, conservative in zip(*months.values(), strict=True):
            line = next((row for row in lines if (row["year"], row["month"]) == (easy.year, easy.month)), None)
            if lines and line is None:
                continue  # months at the ends that the paper leaves out
            ours = {
                "response_easy": easy.mean_response,
                "response_conservative": conservative.mean_response,
                "slowdown_easy": easy.mean_bounded_slowdown_p1,
                "slowdown_conservative": conservative.mean_bounded_slowdown_p1,
            }
            given = {name: float(line[name]) if line is not None else None for name in ("load", "jobs", *ours)}
            load, jobs = given["load"], given["jobs"]
            row: list[Entry] = [subject.name, f"{easy.year}-{easy.month:02d}"]
            row.append(Value(easy.load, load, study.printed.criteria["month_load"] / load if load else None, 3))
            in_full = whole.get((easy.year, easy.month), float("nan"))
            row.append(Value(in_full, load, study.printed.criteria["month_load"] / load if load else None, 3))
            row.append(Value(easy.jobs, jobs, study.printed.criteria["month_jobs"]))
            if load is not None and jobs is not None:
                away = {"jobs": easy.jobs / jobs - 1, "load": easy.load - load, "whole": in_full - load}
                worst = {name: max(worst[name], abs(value)) for name, value in away.items()}
            row += [Value(value, given[name], digits=0 if name.startswith("response") else 1) for name, value in ours.items()]
            for kind in ("response", "slowdown"):
                row.insert(len(row) - (2 if kind == "response" else 0), _difference(kind, ours, given))
            rows.append(row)
            for name, value in ours.items():
                number = given[name]
                if number is not None:
                    columns.setdefault(name, []).append((number, value))
        for name, found in columns.items():
            claims.append(
                correlated(f"{subject.name}, {name.replace('_', ', ')}: months", found, study.printed.criteria["month_correlation"])
            )
        if columns:
            limits = study.printed.criteria
            claims.append(
                (
                    f"{subject.name}: jobs of each month within 1 %",
                    worst["jobs"] <= limits["month_jobs"],
                    f"at most {100 * worst['jobs']:.1f} %",
                )
            )
            claims.append(
                (f"{subject.name}: load of each month within 0.02", worst["load"] <= limits["month_load"], f"at most {worst['load']:.3f}")
            )
            if not np.array_equal([m.load for m in months["easy"]], list(whole.values())):
                told = f"at most {worst['whole']:.3f} off if overrunning jobs run on, {worst['load']:.3f} if they are killed"
                claims.append(
                    (f"{subject.name}: the printed loads are those of jobs that nobody kills", worst["whole"] < worst["load"], told)
                )
            claims += _favourites(subject.name, columns)
    heads = [
        "log",
        "month",
        "load",
        "load, nobody killed",
        "jobs",
        "response, EASY",
        "response, conservative",
        "difference",
        "slowdown, EASY",
        "slowdown, conservative",
    ]
    return [
        Table("table1", printed.title, [*heads, "difference"], rows, "Single months are chaotic: response and slowdown have no criterion."),
        Claims(claims),
        Notes([*notes, "A job belongs to the calendar month of the site in which it ends in the simulation."]),
    ]


def _difference(kind: str, ours: Mapping[str, float], given: Mapping[str, float | None]) -> str:
    mine = 100 * (ours[f"{kind}_conservative"] / ours[f"{kind}_easy"] - 1)
    a, b = given[f"{kind}_easy"], given[f"{kind}_conservative"]
    return f"{mine:+.1f} %" + (f" ({100 * (b / a - 1):+.1f} %)" if a and b else "")


def _favourites(log: str, columns: Mapping[str, Sequence[tuple[float, float]]]) -> list[Claim]:
    """Over all months, whether conservative is worse or better than EASY on average, as in print."""
    claims = []
    for kind in ("response", "slowdown"):
        easy, conservative = columns[f"{kind}_easy"], columns[f"{kind}_conservative"]
        theirs, mine = (100 * float(np.mean([b[k] / a[k] - 1 for a, b in zip(easy, conservative, strict=True)])) for k in (0, 1))
        same = None if abs(theirs) < 100 * NOTICEABLE else (theirs > 0) == (mine > 0)
        claims.append((f"{log}, {kind}: mean monthly difference of conservative to EASY {theirs:+.1f} % in print", same, f"{mine:+.1f} %"))
    return claims


def correlated(what: str, pairs: Sequence[tuple[float, float]], least: float = 0.9) -> Claim:
    """Whether pairs of a printed number and ours rank alike."""
    value = rank_correlation(*np.array(pairs).T)
    return f"{what}: rank correlation with print over {least:g}", value > least, f"{value:.2f} over {len(pairs)} months"


def rank_correlation(a: Array, b: Array) -> float:
    """Spearman's rank correlation, equal values sharing their rank.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.5
    """
    return float(np.corrcoef(_ranks(a), _ranks(b))[0, 1])


def _ranks(values: Array) -> Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[place]


def months_of(subject: Subject, policy: str, begin: int | None, overrun: str = "kill") -> list[Month]:
    """The months of a schedule; `begin`: seconds since 1970 at which the log starts, where it does not say so itself."""
    schedule = schedule_of(subject, policy, overrun)
    w = schedule.workload
    start = begin if begin is not None else w.origin.unix_start_time
    return monthly(
        submit=w.submit,
        start=schedule.start,
        end=schedule.end,
        runtime=schedule.runtime,
        procs=w.procs,
        machine_procs=w.machine_procs,
        unix_start_time=start if start is not None else 0,
        tzinfo=_zone(subject),
    )


def _zone(subject: Subject) -> tzinfo:
    name = subject.facts.get("timezone")
    if subject.kind == PAPER and name and subject.workload.origin.unix_start_time is None:
        return ZoneInfo(str(name))
    return subject.workload.origin.tzinfo() if subject.workload.origin.unix_start_time is not None else UTC


def start_of(subject: Subject, printed: PrintedTable) -> tuple[int | None, str]:
    """When the log starts, and what to say of it: inferred from the printed numbers of jobs where the file does not say it."""
    if subject.workload.origin.unix_start_time is not None:
        return subject.workload.origin.unix_start_time, ""
    counts = [int(row["jobs"]) for row in printed.rows if row["log"] == subject.name]
    if subject.kind in (PAPER, GENERATED) and counts and "first_month" in subject.facts:
        begin, away = infer_start(schedule_of(subject, "easy").end, counts, tuple(subject.facts["first_month"]), _zone(subject))
        moment = datetime.fromtimestamp(begin, _zone(subject))
        told = (
            f"{subject.name}: the file does not say when it starts; {moment:%d %B %Y %H:%M} local time is inferred, at which the months' "
        )
        return begin, told + f"numbers of jobs come nearest to the printed ones ({away:,} jobs of {sum(counts):,} in other months)."
    return (
        0,
        f"{subject.name}: the file does not say when it starts; its months are counted from 1 January 1970.",
    )


def infer_start(end: Array, counts: Sequence[int], first: tuple[int, int], zone: tzinfo) -> tuple[int, int]:
    """The start of a log, s since 1970, for which the jobs by month of their end are closest to the `counts` from month `first`.

    `end`: int64 s from the start of the log. Every hour from 40 days before that month to its end is tried, then every minute
    around the best. Returns the start and the number of jobs that are in another month than printed.
    """
    begin = round(datetime(*first, 1, tzinfo=zone).timestamp())
    last = begin + len(counts) * 31 * 86_400
    bounds = np.array([moment for _, _, moment in month_starts(begin, last, zone)][: len(counts) + 1])
    ordered, wanted = np.sort(end), np.array(counts)

    def away(start: int) -> int:
        return int(np.abs(np.diff(np.searchsorted(ordered, bounds - start)) - wanted).sum())

    hour, day = int(timedelta(hours=1).total_seconds()), int(timedelta(days=1).total_seconds())
    coarse = min(range(begin - 40 * day, begin + 31 * day, hour), key=away)
    best = min(range(coarse - hour, coarse + hour, 60), key=away)
    return best, away(best) // 2


ITEMS = (Item("mualem01", "T1", "Table 1: results for each month", table_1),)
