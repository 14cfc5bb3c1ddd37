"""Return the tables on predictions that are judged by schedules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from walltime.benchmark.predictions import MEASURES, SCHEDULERS, SLURM, Gain, GainCorrelation, Judgement, PredictorScore, gain_correlations
from walltime.tables import Cell, Table
from walltime.wording import counted, human_percent, human_time

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
        bound = "" if exact is None else f"; exact runtimes change it by {exact.gains[0].mean_wait:+.1f} %"
        other = f"; the most accurate predictor, {accurate.predictor}, changes it by {_gain(accurate)}" if accurate is not best else ""
        clauses.append(
            f"on {log}, {best.predictor} gives the shortest mean wait under EASY, a change of {_gain(best)}, and "
            f"{human_percent(best.under_percent)} of the jobs run longer than predicted{other}{bound}"
        )
    correlations = [one for one in gain_correlations(judgement.rows) if one.buffer == least]
    if correlations:
        means = {name: float(np.nanmean([one.correlation for one in correlations if one.measure == name])) for name in MEASURES}
        measure = max(means, key=lambda name: means[name])
        name = measure.replace("_", " ")
        mean = f"mean rank correlation of {means[measure]:+.2f} over logs and schedulers; mean accuracy: {means['accuracy']:+.2f}"
        if means[measure] < MIN_CORRELATION:
            clauses.append(f"no measure of accuracy indicates which predictor shortens waits (the best, {name}, has a {mean})")
        else:
            clauses.append(f"the measure of accuracy that best indicates which predictor shortens waits is {name} ({mean})")
    return clauses


def _gain(row: PredictorScore) -> str:
    gain = row.gains[0]
    interval = "" if math.isnan(gain.low) else f", 90 % interval (sampling of weeks) {gain.low:+.0f} to {gain.high:+.0f} %"
    return f"{gain.mean_wait:+.1f} % (accuracy {row.accuracy['accuracy']:.2f}{interval})"
