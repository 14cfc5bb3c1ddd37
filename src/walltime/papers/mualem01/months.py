"""mualem01, Table 1: compute results for each month, and infer the start of a log that does not record it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from walltime.metrics import rank_correlation
from walltime.metrics.months import Month, month_starts, monthly
from walltime.papers.items import item
from walltime.papers.mualem01.experiment import DIGITS, METRICS, NOTICEABLE, POLICIES, schedule_of
from walltime.papers.printed import PrintedTable
from walltime.papers.results import Claim, Entry, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import GENERATED, PAPER, Subject

Array = np.ndarray


@item("T1")
def table_1(study: Study) -> Parts:
    """Table 1: results for each month."""
    printed, limits = study.printed.tables["T1"], study.printed.criteria
    rows: Rows = []
    for subject in study.subjects:
        begin, note = start_of(subject, printed)
        if note:
            yield note
        months = {policy: months_of(subject, policy, begin) for policy in POLICIES}
        whole = {(m.year, m.month): m.load for m in months_of(subject, "easy", begin, "extend")}
        lines = [row for row in printed.rows if row["log"] == subject.name] if subject.kind == PAPER else []
        columns: dict[str, list[tuple[float, float]]] = {}
        worst = {"jobs": 0.0, "load": 0.0, "whole": 0.0}
        for both in zip(*months.values(), strict=True):
            easy, log = both[0], subject.name
            line = next((row for row in lines if (row["year"], row["month"]) == (easy.year, easy.month)), None)
            if lines and line is None:
                continue  # months at the ends that the paper leaves out
            ours = {f"{kind}_{name}": getattr(m, METRICS[kind]) for kind in METRICS for name, m in zip(POLICIES, both, strict=True)}
            theirs = {name: float(line[name]) if line is not None else None for name in ("load", "jobs", *ours)}
            load, jobs = theirs["load"], theirs["jobs"]
            in_full = whole.get((easy.year, easy.month), float("nan"))
            loads = [Value(one, load, limits["month_load"] / load if load else None, 3) for one in (easy.load, in_full)]
            row: list[Entry] = [log, f"{easy.year}-{easy.month:02d}", *loads, Value(easy.jobs, jobs, limits["month_jobs"])]
            for kind, digits in DIGITS.items():
                row += [Value(ours[f"{kind}_{policy}"], theirs[f"{kind}_{policy}"], digits=digits) for policy in POLICIES]
                row.append(_difference(kind, ours, theirs))
            rows.append(row)
            if load is not None and jobs is not None:
                off = {"jobs": easy.jobs / jobs - 1, "load": easy.load - load, "whole": in_full - load}
                worst = {name: max(worst[name], abs(value)) for name, value in off.items()}
            for name, value in ours.items():
                number = theirs[name]
                if number is not None:
                    columns.setdefault(name, []).append((number, value))
        for name, pairs in columns.items():
            yield correlated(f"{subject.name}, {name.replace('_', ', ')}: months", pairs, limits["month_correlation"])
        if columns:
            away = worst["jobs"]
            yield Claim(f"{subject.name}: jobs of each month within 1 %", away <= limits["month_jobs"], f"at most {100 * away:.1f} %")
            away = worst["load"]
            yield Claim(f"{subject.name}: load of each month within 0.02", away <= limits["month_load"], f"at most {away:.3f}")
            if not np.array_equal([m.load for m in months["easy"]], list(whole.values())):
                evidence = f"at most {worst['whole']:.3f} off if overrunning jobs run on, {worst['load']:.3f} if they are killed"
                yield Claim(f"{subject.name}: the printed loads are those without kills", worst["whole"] < worst["load"], evidence)
            yield from _compare_policies(subject.name, columns)
    heads = ["log", "month", "load", "load, no kills", "jobs"]
    heads += [head for kind in METRICS for head in (f"{kind}, EASY", f"{kind}, conservative", "difference")]
    yield Table("table1", printed.title, heads, rows, "Single months are chaotic: response and slowdown have no criterion.")
    yield "A job belongs to the calendar month of the site in which it ends in the simulation."


def _difference(kind: str, ours: Mapping[str, float], printed: Mapping[str, float | None]) -> str:
    mine = 100 * (ours[f"{kind}_conservative"] / ours[f"{kind}_easy"] - 1)
    a, b = printed[f"{kind}_easy"], printed[f"{kind}_conservative"]
    return f"{mine:+.1f} %" + (f" ({100 * (b / a - 1):+.1f} %)" if a and b else "")


def _compare_policies(log: str, columns: Mapping[str, Sequence[tuple[float, float]]]) -> Iterator[Claim]:
    """Yield the claims that conservative is worse or better than EASY, on average over all months, as in print."""
    for kind in METRICS:
        easy, conservative = columns[f"{kind}_easy"], columns[f"{kind}_conservative"]
        theirs, mine = (100 * float(np.mean([b[k] / a[k] - 1 for a, b in zip(easy, conservative, strict=True)])) for k in (0, 1))
        same = None if abs(theirs) < 100 * NOTICEABLE else (theirs > 0) == (mine > 0)
        yield Claim(f"{log}, {kind}: mean monthly difference of conservative to EASY {theirs:+.1f} % in print", same, f"{mine:+.1f} %")


def correlated(name: str, pairs: Sequence[tuple[float, float]], least: float = 0.9) -> Claim:
    """Return the claim that our numbers have the same ranking as the printed numbers with which they are paired."""
    value = rank_correlation(*np.array(pairs).T)
    return Claim(f"{name}: rank correlation with print over {least:g}", value > least, f"{value:.2f} over {len(pairs)} months")


def months_of(subject: Subject, policy: str, begin: int | None, overrun: str = "kill") -> list[Month]:
    """Return the months of a schedule; `begin`: start of the log, s since 1970, if it is not recorded."""
    schedule = schedule_of(subject, policy, overrun)
    w = schedule.workload
    return monthly(
        submit=w.submit,
        start=schedule.start,
        runtime=schedule.runtime,
        procs=w.procs,
        machine_procs=w.machine_procs,
        unix_start_time=begin or w.origin.unix_start_time or 0,
        tzinfo=_zone(subject),
    )


def _zone(subject: Subject) -> tzinfo:
    """Return the time zone of the log; if its start is not recorded, the paper's."""
    if subject.unix_start_time is not None:
        return subject.workload.origin.tzinfo()
    name = subject.facts.get("timezone")
    return ZoneInfo(str(name)) if subject.kind == PAPER and name else UTC


def start_of(subject: Subject, printed: PrintedTable) -> tuple[int, str]:
    """Return the start of the log, s since 1970, and a note; a start that is not recorded is inferred from the printed jobs by month."""
    if subject.unix_start_time is not None:
        return subject.unix_start_time, ""
    counts = [int(row["jobs"]) for row in printed.rows if row["log"] == subject.name]
    if subject.kind in (PAPER, GENERATED) and counts and "first_month" in subject.facts:
        begin, away = infer_start(schedule_of(subject, "easy").end, counts, tuple(subject.facts["first_month"]), _zone(subject))
        moment = datetime.fromtimestamp(begin, _zone(subject))
        return begin, (
            f"{subject.name}: the file does not record its start; {moment:%d %B %Y %H:%M} local time is inferred: there the months' "
            f"numbers of jobs are nearest to the printed ones ({away:,} jobs of {sum(counts):,} in other months)."
        )
    return 0, f"{subject.name}: the file does not record its start; its months are counted from 1 January 1970."


def infer_start(end: Array, counts: Sequence[int], first: tuple[int, int], zone: tzinfo) -> tuple[int, int]:
    """Return the start of a log, s since 1970, for which the jobs by month are closest to print, and the number of jobs in other months.

    `end`: the ends of the jobs, int64 s from the start of the log. `counts`: the printed numbers of jobs that end in each month, from month
    `first` on. Every hour from 40 days before that month to its end is tried, then every minute around the best.
    """
    begin = round(datetime(*first, 1, tzinfo=zone).timestamp())
    last = begin + len(counts) * 31 * 86_400
    bounds = np.array([moment for _, _, moment in month_starts(begin, last, zone)][: len(counts) + 1])
    ordered, wanted = np.sort(end), np.array(counts)

    def away(start: int) -> int:
        return int(np.abs(np.diff(np.searchsorted(ordered, bounds - start)) - wanted).sum())

    hour, day = 3600, 86_400
    coarse = min(range(begin - 40 * day, begin + 31 * day, hour), key=away)
    best = min(range(coarse - hour, coarse + hour, 60), key=away)
    return best, away(best) // 2
