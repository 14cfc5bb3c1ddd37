"""P1's Tables 1 and 2, and P2's Tables 1, 3 and 4: EASY against conservative backfilling on logs, with all sorts of estimates."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

from walltime.estimates import parse_estimates
from walltime.metrics.months import Month, month_starts, monthly
from walltime.papers.item import Item
from walltime.papers.printed_numbers import PrintedTable
from walltime.papers.results import Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import GENERATED, PAPER, Subject
from walltime.policy import Conservative, Easy
from walltime.schedule import Schedule, simulate

if TYPE_CHECKING:
    import polars as pl

Array = np.ndarray
Claim = tuple[str, bool | None, str]

POLICIES = {"easy": Easy(), "conservative": Conservative()}
METRICS = {"response": "mean_response", "slowdown": "mean_bounded_slowdown_p1"}
DIGITS = {"response": 0, "slowdown": 1}
FACTORS = (1, 2, 4, 11, 31, 101, 301)
P1_FACTORS = (1, 4, 11, 31, 101, 301)
SEEDS, FEW_SEEDS = 10, 3
SHAKES, FEW_SHAKES = 20, 5
SHAKE = 30
"""Seconds by which submissions are shaken, up or down, to see how chaotic a number is (SPEC L-33)."""
NOTICEABLE = 0.05
"""Printed differences over this must be found with their sign (SPEC section 7)."""
CHAOS_NOTE = (
    f"Where a number is beyond the accepted deviation, the small print says how far ours spreads: for one run, from the 5th to the 95th "
    f"percentile of runs whose submit times are shaken by up to {SHAKE} s; for a mean over seeds, the range in which two such means "
    "would differ by chance 9 times in 10. A printed number inside is marked ~, one outside !."
)


def sweep_cells(study: Study, subject: Subject, estimates: Sequence[str], seeds: int) -> pl.DataFrame:
    """Both policies with these estimates; random ones with `seeds` seeds."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates]
    return study.cells(f"{subject.name}: EASY and conservative", subject, *axes, seeds=seeds)


def shaken_cells(study: Study, subject: Subject, estimates: Sequence[str]) -> pl.DataFrame:
    """The same with shaken submissions, for estimates without chance."""
    axes = [{"policy": policy} for policy in POLICIES], [{"estimates": name} for name in estimates], [{"shake": SHAKE}]
    return study.cells(f"{subject.name}: shaken", subject, *axes, seeds=FEW_SHAKES if study.quick else SHAKES)


def values_of(table: pl.DataFrame, policy: str, estimates: str, metric: str) -> Array:
    """The results of all seeds."""
    import polars as pl

    part = table.filter((pl.col("policy") == policy) & (pl.col("estimates") == estimates))
    return part[METRICS[metric]].to_numpy()


def chaos(cells: Array, shaken: Array | None) -> tuple[float, float] | None:
    """The range in which a printed number may lie by chaos: see `CHAOS_NOTE`."""
    if len(cells) > 1:
        half = 1.645 * float(np.std(cells, ddof=1)) * float(np.sqrt(2 / len(cells)))
        return float(cells.mean()) - half, float(cells.mean()) + half
    if shaken is None or len(shaken) < 2:
        return None
    low, high = np.percentile(shaken, [5, 95])
    return float(low), float(high)


def table_3(study: Study) -> list[Part]:
    """The effect of the quality of the estimates."""
    names = [f"f:{factor}" for factor in FACTORS]
    return _quality(study, "T3", "table3", names, METRICS, [s for s in study.subjects if s.has_estimates], study.printed.criteria)


def table_4(study: Study) -> list[Part]:
    """The effect of doubling the users' estimates."""
    subjects = [s for s in study.subjects if s.has_estimates]
    return _quality(study, "T4", "table4", ["double"], METRICS, subjects, study.printed.criteria)


def p1_table_2(study: Study) -> list[Part]:
    """P1: the whole log with estimates of the f-model."""
    printed = study.printed.tables["T2"]
    names = [*(f"f:{factor}" for factor in P1_FACTORS), "user"]
    rows: list[list[Entry]] = []
    claims: list[Claim] = []
    for subject in study.subjects:
        table = sweep_cells(study, subject, names, FEW_SEEDS if study.quick else SEEDS)
        shaken = shaken_cells(study, subject, ["user", "f:1"])
        for name in names:
            row: list[Entry] = [subject.name, _label(name)]
            seen, print_ = [], []
            for policy in POLICIES:
                cells = values_of(table, policy, name, "slowdown")
                band = chaos(cells, values_of(shaken, policy, name, "slowdown"))
                value = printed.value(policy, estimates=name) if subject.kind == PAPER else None
                row.append(Value(float(cells.mean()), value, study.printed.criteria["slowdown"], 1, band))
                seen.append(float(cells.mean()))
                print_.append(value)
            rows.append(row)
            claims += _compared(f"{subject.name}, {_label(name)}: conservative against EASY", print_, seen)
    table_part = Table("table2", printed.title, ["log", "estimates", "EASY", "conservative"], rows)
    return [table_part, Claims(claims), Notes(["P1 seems to have run each once; ours are means of 10 seeds.", CHAOS_NOTE])]


def _quality(
    study: Study,
    item: str,
    name: str,
    models: Sequence[str],
    metrics: Iterable[str],
    subjects: Sequence[Subject],
    criteria: Mapping[str, float],
) -> list[Part]:
    """A table of P2 with one row per log, policy and metric, one column per kind of estimates."""
    printed = study.printed.tables[item]
    names = ["user", *models]
    seeds = FEW_SEEDS if study.quick else SEEDS
    rows: list[list[Entry]] = []
    claims: list[Claim] = []
    for subject in subjects:
        table = sweep_cells(study, subject, names, seeds)
        shaken = shaken_cells(study, subject, [model for model in names if not parse_estimates(model).random])
        found: dict[tuple[str, str, str], tuple[float, float | None]] = {}
        for metric in metrics:
            for policy in POLICIES:
                row: list[Entry] = [subject.name, metric, policy]
                for model in names:
                    cells = values_of(table, policy, model, metric)
                    value = _printed(printed, subject, policy, model, metric)
                    band = chaos(cells, values_of(shaken, policy, model, metric))
                    row.append(Value(float(cells.mean()), value, criteria[metric], DIGITS[metric], band))
                    found[metric, policy, model] = float(cells.mean()), value
                rows.append(row)
        claims += _orders(subject.name, found, list(metrics), names)
    return [
        Table(name, printed.title, ["log", "metric", "policy", *(_label(model) for model in names)], rows),
        Claims(claims),
        Notes([f"Means over {seeds} seeds, the same for all; response in seconds, bounded slowdown in the form of P1 and P2.", CHAOS_NOTE]),
    ]


def _printed(table: PrintedTable, subject: Subject, policy: str, estimates: str, metric: str) -> float | None:
    if subject.kind != PAPER:
        return None
    return table.value("value", log=subject.name, policy=policy, estimates=estimates, metric=metric)


def _label(estimates: str) -> str:
    return {"user": "original", "double": "x2"}.get(estimates, estimates.replace("f:", "f = "))


def _orders(
    log: str, found: Mapping[tuple[str, str, str], tuple[float, float | None]], metrics: list[str], names: list[str]
) -> list[Claim]:
    """Every comparison whose printed difference is noticeable.

    Compared are the policies with the same estimates, and each kind of estimates with the original ones and with the next kind.
    """
    claims: list[Claim] = []
    for metric in metrics:
        for model in names:
            (easy, easy_print), (conservative, conservative_print) = (found[metric, policy, model] for policy in POLICIES)
            what = f"{log}, {metric}, {_label(model)}: conservative against EASY"
            claims += _compared(what, [easy_print, conservative_print], [easy, conservative])
        for policy in POLICIES:
            pairs = list(dict.fromkeys([("user", other) for other in names[1:]] + list(itertools.pairwise(names[1:]))))
            for first, second in pairs:
                a, b = found[metric, policy, first], found[metric, policy, second]
                claims += _compared(f"{log}, {metric}, {policy}: {_label(second)} against {_label(first)}", [a[1], b[1]], [a[0], b[0]])
    return claims


def _compared(what: str, printed: Sequence[float | None], ours: Sequence[float]) -> list[Claim]:
    """The sign of a printed difference over `NOTICEABLE`, and ours; nothing where nothing is printed or the difference is small."""
    first, second = printed
    if first is None or second is None or abs(second / first - 1) <= NOTICEABLE:
        return []
    theirs, mine = second / first - 1, ours[1] / ours[0] - 1
    return [(f"{what}: {100 * theirs:+.0f} % in print", (theirs > 0) == (mine > 0), f"{100 * mine:+.1f} %")]


# ---------------------------------------------------------------------------------------------------------- by month


def p1_table_1(study: Study) -> list[Part]:
    """P1: bounded slowdown by month."""
    printed = study.printed.tables["T1b"]
    record = study.printed.tables["T1a"]
    rows: list[list[Entry]] = []
    correlations: list[Claim] = []
    for subject in study.subjects:
        months = {policy: months_of(subject, policy, None) for policy in POLICIES}
        pairs: dict[str, list[tuple[float, float]]] = {policy: [] for policy in POLICIES}
        for easy, conservative in zip(*months.values(), strict=True):
            row: list[Entry] = [subject.name, f"{easy.year}-{easy.month:02d}", Value(easy.jobs)]
            for policy, month in zip(POLICIES, (easy, conservative), strict=True):
                value = printed.value(policy, year=month.year, month=month.month) if subject.kind == PAPER else None
                row.append(Value(month.mean_bounded_slowdown_p1, value, digits=1))
                if value is not None:
                    pairs[policy].append((value, month.mean_bounded_slowdown_p1))
            rows.append(row)
        correlations += [
            _correlated(f"{subject.name}, {policy}: monthly slowdowns", found) for policy, found in pairs.items() if len(found) > 2
        ]
    lost: list[list[Entry]] = [[str(row["month"]), *(Value(float(row[c])) for c in list(row)[1:])] for row in record.rows]
    heads = ["month", *(f"{c[:2]} nodes, {'EASY' if c.endswith('easy') else 'conservative'}" for c in list(record.rows[0])[1:])]
    return [
        Table("table1b", printed.title, ["log", "month", "jobs", "EASY", "conservative"], rows, "Single months are chaotic: no criterion."),
        Claims(correlations),
        Table("table1a-printed", f"{record.title}: printed numbers only", heads, lost, record.note),
        Notes(["P1's months start with September 1996, of which today's log has eight days."]),
    ]


def table_1(study: Study) -> list[Part]:
    """P2: results for each month."""
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
                _correlated(f"{subject.name}, {name.replace('_', ', ')}: months", found, study.printed.criteria["month_correlation"])
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
        Notes([*notes, "A job belongs to the calendar month of the site in which it ends in the simulation (SPEC Q-03)."]),
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


def _correlated(what: str, pairs: Sequence[tuple[float, float]], least: float = 0.9) -> Claim:
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


def schedule_of(subject: Subject, policy: str, overrun: str = "kill") -> Schedule:
    """The log under a policy, with the paper's original estimates."""
    return simulate(subject.workload.with_estimates(parse_estimates(subject.estimates)), POLICIES[policy], overrun=overrun)


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
    """The start of a log, s since 1970, at which jobs by month of their end come nearest to the `counts` from month `first` on.

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


P1_ITEMS = (
    Item("P1", "T1", "Table 1: bounded slowdown by month", p1_table_1),
    Item("P1", "T2", "Table 2: the quality of the estimates", p1_table_2),
)
ITEMS = (
    Item("P2", "T1", "Table 1: results for each month", table_1),
    Item("P2", "T3", "Table 3: the quality of the estimates", table_3),
    Item("P2", "T4", "Table 4: doubled estimates", table_4),
)
