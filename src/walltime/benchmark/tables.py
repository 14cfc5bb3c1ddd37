"""Return the tables of leaderboards, and of predictions that are judged by schedules."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from walltime.benchmark.predictions import MEASURES, SCHEDULERS, SLURM, Gain, GainCorrelation, Judgement, PredictorScore, gain_correlations
from walltime.benchmark.standings import BEST, LOWEST, Standing
from walltime.benchmark.suite import read_suite
from walltime.report.changes import metric_name, metric_value
from walltime.tables import Cell, Row, Table
from walltime.wording import counted, human_percent, human_time, listed, shown_change

SHORT = {"easy": "EASY", "easy:backfill-order=sjf": "EASY-SJBF", "conservative": "conservative", SLURM: "Slurm"}
HEAD = ("predictor", "buffer", "accuracy", "under", "killed", "work lost", *SHORT.values())
MIN_CORRELATION = 0.3
"""The smallest rank correlation that makes a measure informative."""
NOTE = (
    "Under: share of jobs that run longer than predicted. Killed, work lost: jobs killed and work lost if the prediction were the limit. "
    "Other columns: change of the mean wait from the same scheduler with the users' requests; in parentheses, its 90 % interval (sampling "
    "of weeks) and the prediction interval for one more shaken copy."
)


def predictions_tables(judgement: Judgement) -> Iterator[Table]:
    """Yield a table for each log, and one with the correlations between accuracy and gain."""
    for log in judgement.logs:
        rows = [row for row in judgement.rows if row.log == log]
        if rows:
            yield _log_table(log, rows, judgement.waits)
    if correlations := gain_correlations(judgement.rows):
        yield correlations_table(correlations)


def _log_table(log: str, rows: Sequence[PredictorScore], waits: Mapping[tuple[str, str], float]) -> Table:
    cells = [
        [
            row.predictor,
            Cell(f"{row.buffer:g}", value=row.buffer),
            Cell(f"{row.accuracy['accuracy']:.2f}", value=row.accuracy["accuracy"]),
            Cell(f"{row.under_percent:.0f} %", value=row.under_percent),
            Cell(f"{row.killed:,}", value=row.killed),
            Cell(f"{row.lost_percent:.0f} %", value=row.lost_percent),
            *(Cell(f"{gain.mean_wait:+.1f} %", small=_ends(gain), value=gain.mean_wait) for gain in row.gains),
        ]
        for row in rows
    ]
    means = ", ".join(f"{SHORT[name]} {human_time(waits[log, name])}" for name in SCHEDULERS)
    return Table(HEAD, cells, f"{log}: {counted(rows[0].jobs, 'job')}; mean waits with the requests: {means}", NOTE)


def _ends(gain: Gain) -> list[str]:
    intervals = {"weeks": (gain.low, gain.high), "copies": (gain.copies_low, gain.copies_high)}
    return [f"{name} {low:+.0f} to {high:+.0f}" for name, (low, high) in intervals.items() if not math.isnan(low)]


def correlations_table(correlations: Sequence[GainCorrelation]) -> Table:
    """Return a table of the rank correlations between accuracy and gain over predictors, for the smallest buffer."""
    least = min(one.buffer for one in correlations)
    logs = list(dict.fromkeys(one.log for one in correlations))
    by = {(one.measure, one.scheduler, one.log): one.correlation for one in correlations if one.buffer == least}
    rows = []
    for measure in MEASURES:
        for scheduler in SCHEDULERS:
            values = [by[measure, scheduler, log] for log in logs]
            rows.append([measure.replace("_", " "), SHORT[scheduler], *map(_number, (*values, float(np.mean(values))))])
    title = f"Accuracy and gain: rank correlation over {correlations[0].predictors} predictors, buffer {least:g}"
    words = "; ".join(f"{name.replace('_', ' ')}: {about}" for name, about in MEASURES.items())
    return Table(["measure", "scheduler", *logs, "mean"], rows, title, f"1: gains and accuracies have the same order. {words}.", texts=2)


def _number(value: float) -> Cell:
    return Cell("n/a" if math.isnan(value) else f"{value:+.2f}", value=None if math.isnan(value) else value)


def answers(judgement: Judgement) -> list[str]:
    """Return the results for the smallest buffer as clauses."""
    clauses = []
    least = min((row.buffer for row in judgement.rows), default=0.0)
    for log in judgement.logs:
        rows = {row.predictor: row for row in judgement.rows if row.log == log and row.buffer == least}
        exact = rows.pop("exact", None)
        if len(rows) < 2:
            continue
        best = min(rows.values(), key=lambda row: row.gains[0].mean_wait)
        accurate = max(rows.values(), key=lambda row: row.accuracy["accuracy"])
        bound = "" if exact is None else f"; with exact runtimes, it is {_change(exact)}"
        other = f"; with the most accurate predictor, {accurate.predictor}, it is {_gain(accurate)}" if accurate is not best else ""
        clauses.append(
            f"on {log}, {best.predictor} gives the shortest mean wait under EASY: it is {_gain(best)} than with the requests, and "
            f"{human_percent(best.under_percent)} of the jobs run longer than predicted{other}{bound}"
        )
    correlations = [one for one in gain_correlations(judgement.rows) if one.buffer == least]
    if correlations:
        means = {name: float(np.nanmean([one.correlation for one in correlations if one.measure == name])) for name in MEASURES}
        measure = max(means, key=lambda name: means[name])
        name = measure.replace("_", " ")
        mean = f"mean rank correlation of {means[measure]:+.2f} over logs and schedulers; mean accuracy: {means['accuracy']:+.2f}"
        if means[measure] < MIN_CORRELATION:
            clauses.append(f"no accuracy measure predicts which predictor shortens waits (the best, {name}, has a {mean})")
        else:
            clauses.append(f"the accuracy measure that best predicts which predictor shortens waits is {name} ({mean})")
    return clauses


def _gain(row: PredictorScore) -> str:
    gain = row.gains[0]
    interval = "" if math.isnan(gain.low) else f", 90 % interval (sampling of weeks) {gain.low:+.0f} to {gain.high:+.0f} %"
    return f"{_change(row)} (accuracy {row.accuracy['accuracy']:.2f}{interval})"


def _change(row: PredictorScore) -> str:
    change = row.gains[0].mean_wait
    return f"{abs(change):.1f} % {'longer' if change > 0 else 'shorter'}"


LEADERBOARD_CAVEATS = (
    "The intervals cover the sampling of windows of these subjects; on other machines the order may differ.",
    "The intervals behind the best hold for all schedulers at once, including the selection of the best. They are therefore wide; two "
    "schedulers chosen beforehand may differ clearly.",
    "A mean hides individual jobs: check the longest waits as well.",
)


def leaderboard_answer(rows: Sequence[Standing]) -> str:
    """Return a sentence on the best scheduler of a suite or, if it is not clear, on all that may be the best."""
    lowest, *others = rows
    name = metric_name(read_suite(lowest.suite).metrics[0])
    if not others:
        return f"{lowest.suite}: {lowest.scheduler} is the only scheduler."
    near = [one.scheduler for one in others if not one.is_clear]
    if not near:
        return f"{lowest.suite}: {lowest.scheduler} is best in {name}; all others are behind."
    rest = "" if len(near) == len(others) else "; all others are behind"
    names = listed(near if len(near) <= 6 else [*near[:5], f"{len(near) - 5} more"])
    return f"{lowest.suite}: {lowest.scheduler} is lowest in {name}, but {names} may also be the best{rest}."


def leaderboard_table(name: str, rows: Sequence[Standing]) -> Table:
    """Return a table with a row for each scheduler of a suite."""
    suite = read_suite(name)
    first, *others = suite.metrics
    lines: list[Row] = []
    for one in rows:
        mean, low, high = (metric_value(first, value) for value in (one.total.mean, one.total.low, one.total.high))
        further = [Cell(metric_value(metric, one.totals[metric]), value=one.totals[metric]) for metric in others]
        total = Cell(mean, value=one.total.mean)
        lines.append([one.scheduler, total, f"{low} to {high}", *behind_cells(one), one.remark, str(one.wins), *further])
    head = ["scheduler", metric_name(first), "90 % interval", "above the lowest", "behind the best, 90 %", "verdict", "windows won"]
    return Table([*head, *map(metric_name, others)], lines, f"{name} {suite.version}: {counted(rows[0].windows, 'window')}")


def behind_cells(one: Standing) -> tuple[str, str]:
    """Return cells with a scheduler's difference from the lowest result and the interval of its distance from the best."""
    if one.behind is None:
        return "", ""
    mean, low, high = (shown_change(value, one.behind.low, one.behind.high) for value in (one.behind.mean, one.behind.low, one.behind.high))
    within = f"{low} to {high}" if one.is_clear else f"up to {high}" if one.behind.high > 0 else "0"
    return ("" if one.remark in (BEST, LOWEST) else mean), within
