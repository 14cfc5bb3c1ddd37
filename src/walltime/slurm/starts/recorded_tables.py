"""`walltime calibrate --starts`: tables of predicted and recorded start times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from walltime.cli.output import PageOutput, caveats, paragraphs, progress_bar
from walltime.slurm.starts.forecast import Draws
from walltime.slurm.starts.recorded import METHODS, REPLAYED, RecordedStarts, StartScore, calibrate_starts
from walltime.tables import Cell, Row, Table
from walltime.wording import UNDEFINED, human_percent, human_time, listed, on_log
from walltime.workload import Workload

if TYPE_CHECKING:
    from walltime.machine import Machine

NAMES = {"prediction": "predicted", "simulation": "simulation alone", "limits": "by limits", "qbets": "QBETS", "no_model": "past waits"}
AT_LEAST = 100
"""Classes need more predictions than this to be judged."""
GOOD = (0.85, 0.95)
MEASURES = {
    "started within the interval": "inside",
    "median width of the interval": "width",
    "mean interval score: the width, and 20 times the distance of starts outside": "interval_score",
    "median error": "error",
    "half of the waits, as multiples of the prediction": "least_ratio",
}
"""Titles of the tables, and the measure in each."""
HOW = (
    "At random moments in the last three quarters of the log, the start of each waiting job was predicted with only earlier information: "
    "the log until then, and the outcomes of predictions at four times as many earlier moments. Predictions of one moment are correlated, "
    "so they are weaker evidence than as many independent ones."
)


def calibrate_starts_command(
    workload: Workload, machine: Machine | None, policy: str | None, drawn: Mapping[str, Any], output: PageOutput
) -> None:
    """Predict start times at moments of the log, and show how many recorded ones lie within their intervals.

    `drawn`: the values of the options.
    """
    moments = drawn["moments"]
    with progress_bar((REPLAYED + 1) * moments, "simulating", "moments") as progress:
        learning = partial(progress, description="learning")
        draws = Draws(drawn["samples"], seed=drawn["seed"])
        starts = calibrate_starts(
            workload, machine, policy, predictor=drawn["predictor"], moments=moments, draws=draws, progress=progress, learning=learning
        )
    blocks, title = tables_of(starts), f"Predicted and recorded start times on {starts.machine}"
    methods = Table(["method", "meaning"], [[NAMES[name], meaning] for name, meaning in METHODS.items()], "Methods compared", texts=-1)
    output.write_blocks("recorded and predicted start times", title, verdict(starts), [*blocks, methods, HOW, *starts.caveats], workload)
    output.show(starts.as_dict(), [*paragraphs(verdict(starts)), "", *blocks, *caveats(starts.caveats)])


def verdict(starts: RecordedStarts) -> list[str]:
    """Return the results in sentences."""
    count, scores = starts.classes["all"]
    own = scores["prediction"]
    large = {name: one["prediction"].inside for name, (jobs, one) in starts.classes.items() if name != "all" and jobs > AT_LEAST}
    off = [f"{human_percent(100 * part)} {name}" for name, part in large.items() if not GOOD[0] <= part <= GOOD[1]]
    holds = f"In each class with more than {AT_LEAST} predictions, this share is 85 to 95 %."
    if off:
        holds = f"By the time until the predicted start, this share is {listed(off)}; it should be 85 to 95 %."
    if not large:
        holds = f"No class has more than {AT_LEAST} predictions, so this is weak evidence."
    better = [NAMES[name] for name, one in scores.items() if name != "prediction" and not own.error < one.error]
    errors = (
        f"Other methods with at most this median error: {', '.join(better)}" if better else "All other methods have larger median errors"
    )
    best = min((name for name in scores if name != "prediction"), key=lambda name: scores[name].interval_score)
    return [
        f"{on_log(starts.log)}, {human_percent(100 * own.inside)} of {count:,} waiting jobs started within the 90 % intervals "
        f"predicted for them (median width {human_time(own.width)}); the median error of the likely time was {human_time(own.error)}.",
        f"{holds} {errors}.",
        f"Half of the waits were {_ratios(own)} times the predicted ones. The mean interval score was "
        f"{human_time(own.interval_score)}, and {human_time(scores[best].interval_score)} for the best other method ({NAMES[best]}).",
    ]


def tables_of(starts: RecordedStarts) -> list[Table]:
    """Return tables of all methods' scores, by the distance of the predicted start and by the share of the machine."""
    tables = []
    for head, classes in {"start predicted in": starts.classes, "part of the machine": starts.sizes}.items():
        which = "" if classes is starts.classes else ", by size"
        for title, measure in MEASURES.items():
            rows: list[Row] = []
            for name, (jobs, scores) in classes.items():
                cells = [Cell(_text(measure, one), value=float(getattr(one, measure))) for one in scores.values()]
                rows.append([name, Cell(f"{jobs:,}", value=jobs), *cells])
            tables.append(Table([head, "predictions", *(NAMES[name] for name in METHODS)], rows, f"{title}{which}", look="months"))
    return tables


def _text(measure: str, score: StartScore) -> str:
    value = float(getattr(score, measure))
    if value != value:
        return UNDEFINED
    if measure == "least_ratio":
        return _ratios(score)
    return human_percent(100 * value) if measure == "inside" else human_time(value)


def _ratios(score: StartScore) -> str:
    return " to ".join(f"{float(f'{ratio:.2g}'):,.12g}" for ratio in (score.least_ratio, score.largest_ratio))
