"""Predictions judged by schedules, as tables and a page: accuracy, kills and lost work beside waits, and which accuracy tells the gain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from walltime.benchmark.predictions import MEASURES, SCHEDULERS, SLURM, Gain, Judgement, PredictorScore, Tells, tells
from walltime.provenance import provenance
from walltime.report.figures import look, panel
from walltime.report.page import Drawing, Items, Page, Section, note
from walltime.tables import Cell, Table
from walltime.wording import human_percent, human_time
from walltime.workload import Workload

SHORT = {"easy": "EASY", "easy:backfill-order=sjf": "EASY-SJBF", "conservative": "conservative", SLURM: "Slurm"}
HEAD = ("predictor", "buffer", "accuracy", "under", "killed", "work lost", *SHORT.values())
TELLS = 0.3
"""A rank correlation below which a measure tells nothing."""
NOTE = (
    "Under: jobs that run longer than predicted. Killed, work lost: if the prediction were the limit. The last columns: change of the mean "
    "wait against the same scheduler with the users' requests, in brackets its 90 % interval over such weeks of the log, and where a copy "
    "with shaken submissions would lie."
)


def predictions_tables(judgement: Judgement) -> Iterator[Table]:
    """A table for each log, and one of what tells the gain."""
    for log in judgement.logs:
        rows = [row for row in judgement.rows if row.log == log]
        if rows:
            yield _of_log(log, rows, judgement.waits)
    if several := tells(judgement.rows):
        yield tells_table(several)


def _of_log(log: str, rows: Sequence[PredictorScore], waits: Mapping[tuple[str, str], float]) -> Table:
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
    return Table(HEAD, cells, f"{log}: {rows[0].jobs:,} jobs; mean waits with the requests: {means}", NOTE)


def _ends(gain: Gain) -> list[str]:
    said = []
    if not math.isnan(gain.low):
        said.append(f"weeks {gain.low:+.0f} to {gain.high:+.0f}")
    if not math.isnan(gain.copies_low):
        said.append(f"copies {gain.copies_low:+.0f} to {gain.copies_high:+.0f}")
    return said


def tells_table(several: Sequence[Tells]) -> Table:
    """The rank correlations of accuracy and gain over predictors, with the smallest buffer."""
    least = min(one.buffer for one in several)
    logs = list(dict.fromkeys(one.log for one in several))
    by = {(one.measure, one.scheduler, one.log): one.correlation for one in several if one.buffer == least}
    rows = []
    for measure in MEASURES:
        for scheduler in SCHEDULERS:
            values = [by[measure, scheduler, log] for log in logs]
            rows.append(
                [measure.replace("_", " "), SHORT[scheduler], *(_number(value) for value in values), _number(float(np.mean(values)))]
            )
    title = f"Which accuracy tells the gain: rank correlation over {several[0].predictors} predictors, buffer {least:g}"
    words = "; ".join(f"{name.replace('_', ' ')}: {about}" for name, about in MEASURES.items())
    return Table(
        ["measure", "scheduler", *logs, "mean"], rows, title, f"1: the order of the gains is that of the accuracy. {words}.", texts=2
    )


def _number(value: float) -> Cell:
    return Cell("n/a" if math.isnan(value) else f"{value:+.2f}", value=None if math.isnan(value) else value)


def _best(judgement: Judgement, log: str) -> tuple[PredictorScore, PredictorScore, PredictorScore | None] | None:
    """With the smallest buffer: who shortens waits under EASY most, who is most accurate, and what knowing all runtimes comes to."""
    least = min(row.buffer for row in judgement.rows)
    rows = [row for row in judgement.rows if row.log == log and row.buffer == least]
    real = [row for row in rows if row.predictor != "exact"]
    if len(real) < 2:
        return None
    exact = next((row for row in rows if row.predictor == "exact"), None)
    return min(real, key=lambda row: row.gains[0].mean_wait), max(real, key=lambda row: row.accuracy["accuracy"]), exact


def answers(judgement: Judgement) -> list[str]:
    """What it comes to, in sentences."""
    said = []
    for log in judgement.logs:
        of_log = _best(judgement, log)
        if of_log is None:
            continue
        best, accurate, exact = of_log
        known = "" if exact is None else f"; knowing every runtime comes to {exact.gains[0].mean_wait:+.1f} %"
        other = f"; the most accurate one, {accurate.predictor}, comes to {_gain(accurate)}" if accurate is not best else ""
        said.append(
            f"on {log}, {best.predictor} changes the mean wait under EASY most for the better, by {_gain(best)}, and "
            f"{human_percent(best.under_percent)} of its jobs run longer than predicted{other}{known}"
        )
    several = tells(judgement.rows)
    if several:
        least = min(one.buffer for one in several)
        means = {
            measure: float(np.nanmean([one.correlation for one in several if one.measure == measure and one.buffer == least]))
            for measure in MEASURES
        }
        best_measure = max(means, key=lambda name: means[name])
        name = best_measure.replace("_", " ")
        told = f"rank correlation {means[best_measure]:+.2f}, the mean over logs and schedulers; mean accuracy: {means['accuracy']:+.2f}"
        if means[best_measure] < TELLS:
            said.append(f"no measure of accuracy tells which predictor shortens waits (the best one, {name}: {told})")
        else:
            said.append(f"the measure of accuracy that tells best which predictor shortens waits is {name} ({told})")
    return said


def _alone(judgement: Judgement) -> str:
    """What one predictor comes to, where no other is judged beside it."""
    row = min(judgement.rows, key=lambda one: one.buffer)
    return (
        f"On {row.log}, predictions by {row.predictor} change the mean wait under EASY by {_gain(row)}, and "
        f"{human_percent(row.under_percent)} of the jobs run longer than predicted; no other predictor was judged."
    )


def _gain(row: PredictorScore) -> str:
    gain = row.gains[0]
    sure = "" if math.isnan(gain.low) else f", 90 % interval of such weeks {gain.low:+.0f} to {gain.high:+.0f} %"
    return f"{gain.mean_wait:+.1f} % (accuracy {row.accuracy['accuracy']:.2f}{sure})"


def _numbers(judgement: Judgement) -> list[tuple[str, str]]:
    """The three numbers of the first log."""
    log = next(iter(judgement.logs))
    of_log = _best(judgement, log)
    if of_log is None:
        row = min(judgement.rows, key=lambda one: one.buffer)
        return [
            (f"mean wait with {row.predictor}", f"{row.gains[0].mean_wait:+.1f} %"),
            ("mean accuracy", f"{row.accuracy['accuracy']:.2f}"),
            ("run longer than predicted", human_percent(row.under_percent)),
        ]
    best, accurate, exact = of_log
    rows = [(f"mean wait with {best.predictor}", best), (f"with {accurate.predictor}, the most accurate", accurate)]
    rows += [] if exact is None else [("with exact runtimes", exact)]
    on = f", {log}" if len(judgement.logs) > 1 else ""
    return [(f"{what}{on}", f"{row.gains[0].mean_wait:+.1f} %") for what, row in rows]


def _figure(judgement: Judgement) -> Figure:
    """Accuracy against the change of the mean wait under EASY, a mark for each predictor."""
    least = min(row.buffer for row in judgement.rows)
    with panel(3.6) as (figure, axes):
        for k, log in enumerate(judgement.logs):
            rows = [row for row in judgement.rows if row.log == log and row.buffer == least]
            style = look(k) | {"linestyle": "none", "marker": "osD^v<>"[k % 7]}
            axes.plot([row.accuracy["accuracy"] for row in rows], [row.gains[0].mean_wait for row in rows], label=log, **style)
        axes.axhline(0, color="#8A9099", linewidth=0.8)
        axes.set_xlabel("mean accuracy of the predictions")
        axes.set_ylabel("change of the mean wait, %")
        if len(judgement.logs) > 1:
            axes.legend()
    return figure


def predictions_page(judgement: Judgement, logs: Mapping[str, Workload], command: Sequence[Any]) -> Page:
    """The page of a judgement."""
    first = next(iter(logs.values()))
    by_log = [table for table in predictions_tables(judgement) if not table.title.startswith("Which")]
    several = tells(judgement.rows)
    sections = [Section(table.title.partition(":")[0], [table]) for table in by_log]
    sections += [Section("Which accuracy tells the gain", [tells_table(several)])] if several else []
    caption = "Each mark is a predictor, with the smallest buffer, under EASY; below 0 jobs wait less than with the users' requests."
    picture = Drawing(_figure(judgement), "accuracy", "Accuracy of predictions against the change of the mean wait under EASY.", caption)
    skipped = [Section("Left out", [Items(judgement.skipped)])] if judgement.skipped else []
    skipped += [Section("Predictions from elsewhere", [Items(judgement.caveats)])] if judgement.caveats else []
    return Page(
        kind="predictions",
        title="Predictions judged by schedules",
        answer=[f"{sentence[:1].upper()}{sentence[1:]}." for sentence in answers(judgement)] or [_alone(judgement)],
        sections=[
            *sections,
            *skipped,
            Section("How it is judged", [note("Predictions are made once, at submission, along EASY's schedule.")]),
        ],
        facts=[("logs", str(len(logs))), ("rows", str(len(judgement.rows)))],
        numbers=_numbers(judgement),
        picture=picture,
        record=provenance(first, command=list(command)),
        data=judgement.as_dict(),
    )
