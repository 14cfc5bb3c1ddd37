"""gaussier15: runtimes learned online, and the best of 5,774 ways to use the predictions (2015).

First come the triples of scheduler, correction and predictor, and their simulation; then every triple next to the authors' metrics, where
their file is available, and the best triples and their gains. The printed numbers are in printed.toml.
"""

import csv
import gzip
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.metrics import jobs as per_job
from walltime.papers import drawing
from walltime.papers.items import item
from walltime.papers.results import Claim, Entry, Parts, Rows, Table, Value, by_column
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject
from walltime.predictors import Prediction, parse_predictor
from walltime.predictors.gaussier15 import WEIGHTS, Gaussier15
from walltime.simulation import simulate
from walltime.simulation.specification import Scheduler

DIALECT = "predictsim"
MEASURES = {
    "avgft": "mean response (s)",
    "avgbsld": "mean bounded slowdown",
    "maxbsld": "largest bounded slowdown",
    "RMSBSLD": "root mean square of the bounded slowdown",
}
"""The published columns, with their titles."""
SJBF, FCFS = "easy:backfill-order=sjf", "easy"
SCHEDULERS = {"easy_plus_plus_scheduler": SJBF, "easy_prediction_backfill_scheduler": FCFS}
WITHOUT_PREDICTIONS = {"easy_sjbf_scheduler": SJBF, "easy_backfill_scheduler": FCFS}
CORRECTORS = {"tsafrir": "tsafrir07", "reqtime": "estimate", "recursive_doubling": "double:uncapped"}
NEVER_WRONG = {"predictor_clairvoyant": "exact", "predictor_reqtime": "user", "predictor_double_reqtime": "user:factor=2"}
"""Our names of the published predictors that need no correction, because their predictions are never too short."""
CURVES = (*itertools.product(("abs", "square"), (1.0, 100.0, 10_000.0)), *itertools.product(("exp",), (1e-4, 1e-5)))
THRESHOLDS = (0.0, 60.0, 600.0)
WEIGHT_NAMES = dict(zip(WEIGHTS, ("1", "5+log(r/m)", "5+log(m/r)", "11+log(1/(r*m))", "1+log(m*r)"), strict=True))


@dataclass(frozen=True)
class Triple:
    """A scheduler with the predictor and the correction that it uses, both None without predictions."""

    key: tuple[str, ...]
    """its names in the published file: scheduler, corrector and predictor, then the six parameters of a learned predictor, NA for others"""
    policy: str
    prediction: Prediction | None

    @property
    def label(self) -> str:
        """Return the specification of the scheduler."""
        return Scheduler.of(self.policy, self.prediction).label

    @property
    def is_learned(self) -> bool:
        """Return whether its predictions come from a regression."""
        return self.prediction is not None and isinstance(self.prediction.predictor, Gaussier15)

    @property
    def words(self) -> dict[str, Any]:
        """Return the campaign parameters that describe this triple."""
        words: dict[str, Any] = {"dialect": DIALECT} | ({"backfill_order": "sjf"} if self.policy == SJBF else {})
        if self.prediction is not None:
            words |= {"predictor": self.prediction.predictor.label, "correction": self.prediction.correction.label}
        return words


def _triple(scheduler: str, corrector: str, name: str, predictor: str, parameters: Sequence[str] = ("NA",) * 6) -> Triple:
    prediction = Prediction(parse_predictor(predictor), correction=CORRECTORS.get(corrector, "none"))
    return Triple((scheduler, corrector, name, *parameters), SCHEDULERS[scheduler], prediction)


def learned(scheduler: str, corrector: str, scheme: Gaussier15) -> Triple:
    """Return the triple that predicts with this regression under the given scheduler and corrector."""
    sides = ((scheme.over, scheme.over_coefficient), (scheme.under, scheme.under_coefficient))
    parameters = [text for curve, coefficient in sides for text in (curve, f"{coefficient:g}")]
    parameters += [f"{scheme.threshold:g}", WEIGHT_NAMES[scheme.weight]]
    return _triple(scheduler, corrector, "predictor_sgdlinear", scheme.label, parameters)


def deterministic() -> list[Triple]:
    """Return the 14 triples without regression, among them EASY, EASY++ and the bounds."""
    triples = [Triple((name, *("NA",) * 8), policy, None) for name, policy in WITHOUT_PREDICTIONS.items()]
    for scheduler in SCHEDULERS:
        triples += [_triple(scheduler, "throw_an_error", name, ours) for name, ours in NEVER_WRONG.items()]
        triples += [_triple(scheduler, corrector, "predictor_tsafrir", "tsafrir07") for corrector in CORRECTORS]
    return triples


EASY = deterministic()[1]
EASY_PP = _triple("easy_plus_plus_scheduler", "tsafrir", "predictor_tsafrir", "tsafrir07")
E_LOSS = learned("easy_plus_plus_scheduler", "tsafrir", Gaussier15())
"""The paper's choice: E-Loss, increments, shortest backfilled first."""


def triples(quick: bool = False) -> list[Triple]:
    """Return all 5,774 triples, or, if `quick`, the deterministic ones and a few learned ones."""
    schemes = [
        Gaussier15(over=over, over_coefficient=steep, under=under, under_coefficient=flat, threshold=threshold, weight=weight)  # type: ignore[arg-type]
        for (over, steep), (under, flat), threshold, weight in itertools.product(CURVES, CURVES, THRESHOLDS, WEIGHTS)
    ]
    if quick:
        schemes = [Gaussier15(), Gaussier15(under="square", over_coefficient=100.0, weight="log_n_over_r")]
    return [*deterministic(), *itertools.starmap(learned, itertools.product(SCHEDULERS, CORRECTORS, schemes))]


Measured = Mapping[str, float]
"""The `MEASURES` of a triple, the mean accuracy of its predictions, and the percentage of jobs without any history."""


def measure(study: Study, subject: Subject, chosen: Sequence[Triple]) -> list[Measured]:
    """Simulate the triples on the subject and store the results; stored triples are not simulated again."""
    workload = subject.workload
    by_label = {triple.label: triple for triple in chosen}
    head = {"sha256": workload.origin.sha256, "procs": workload.machine_procs, "dialect": DIALECT}

    def compute(task: Mapping[str, Any], check: Callable[[int], None]) -> Measured:
        triple = by_label[task["triple"]]
        schedule = simulate(workload, triple.policy, prediction=triple.prediction, dialect=DIALECT, progress=check)
        summary, slowdown = schedule.summary(), per_job.bounded_slowdown(schedule.wait, schedule.runtime)
        predictions = None if schedule.predictions is None else schedule.prediction_summary()
        known = {} if predictions is None else {"mean_accuracy": predictions.mean_accuracy, "na_percent": predictions.na_percent}
        return {
            "avgft": summary.mean_response,
            "avgbsld": summary.mean_bounded_slowdown,
            "maxbsld": float(slowdown.max()),
            "RMSBSLD": float(np.sqrt(np.mean(slowdown * slowdown))),
            **known,
        }

    return study.kept(f"{subject.name}: triples", [{**head, "triple": label} for label in by_label], compute)


Array = np.ndarray
EQUAL = 1e-9
WITHIN = (0.001, 0.01, 0.05)
"""Relative deviations from print for which the table counts the triples."""
Published = Mapping[tuple[str, ...], Mapping[str, float]]
SHOWN = 10
"""Number of triples, best first, that the table shows."""
Slowdowns = Mapping[tuple[str, ...], float]


@item("triples")
def agreement(study: Study) -> Parts:
    """All triples next to the published metrics."""
    chosen = triples(study.quick)
    rows: Rows = []
    counts: Rows = []
    bounded: dict[str, dict[str, Array]] = {}
    lines: list[tuple[object, ...]] = []
    for subject in study.with_users:
        ours, published = measure(study, subject, chosen), published_metrics(subject)
        for triple, mine in zip(chosen, ours, strict=True):
            printed = published.get(triple.key, {})
            if not triple.is_learned:
                rows.append([subject.name, triple.label, *(Value(mine[name], printed.get(name), EQUAL, digits=2) for name in MEASURES)])
            both = [*(mine[name] for name in MEASURES), *(printed.get(name) for name in MEASURES)]
            lines.append((subject.name, *triple.key, *both, mine.get("mean_accuracy")))
        for kind, regression in (("deterministic", False), ("learned", True)):
            for name, title in MEASURES.items():
                away = deviations(chosen, ours, published, name, regression)
                if len(away):
                    counts.append([subject.name, kind, title, len(away), *(int((away <= limit).sum()) for limit in (EQUAL, *WITHIN))])
        if published:
            fixed, equal = (deviations(chosen, ours, published, "avgbsld", kind) <= EQUAL for kind in (False, True))
            yield Claim(f"{subject.name}: every deterministic triple equals the published one", bool(fixed.all()), f"{len(fixed)} triples")
            within = int((deviations(chosen, ours, published, "avgbsld", True) <= 0.01).sum())
            evidence = f"{int(equal.sum())} of {len(equal)} equal to 9 digits, {within} within 1 %"
            yield Claim(f"{subject.name}: nearly all learned ones (99 %) do", bool(np.mean(equal) >= 0.99), evidence)
        mine_by = bounded[subject.name] = {}
        for name, policy in (("shortest first", SJBF), ("in order", FCFS)):
            mine_by[name] = np.sort([row["avgbsld"] for t, row in zip(chosen, ours, strict=True) if t.policy == policy])
            theirs = [published[t.key]["avgbsld"] for t in chosen if t.policy == policy and t.key in published]
            mine_by[f"{name}, published"] = np.sort(theirs)

    def draw(axes: Axes, by_name: dict[str, Array], _row: str) -> None:
        drawing.lines(axes, by_name)

    columns = ["log", "triples", "measure", "compared", "equal to 9 digits", *(f"within {100 * limit:g} %" for limit in WITHIN)]
    data = by_column(["log", *NAMES, *MEASURES, *(f"published {name}" for name in MEASURES), "accuracy"], lines)
    caption = "Mean bounded slowdown of all triples, by the order in which jobs are backfilled."
    yield drawing.chart("triples", caption, data, bounded, "mean bounded slowdown", draw, x="triples, from the best")
    yield Table(
        "triples-deterministic", "Triples in which nothing is learned by regression", ["log", "scheduler", *MEASURES.values()], rows
    )
    title = "Triples whose average equals the published one"
    yield Table("triples-equal", title, columns, counts, "Each column contains the one before it.")


def deviations(chosen: Sequence[Triple], ours: Sequence[Measured], published: Published, name: str, learned: bool) -> Array:
    """Return the relative deviations (float64, at least 0) of this measure, over the triples that have a published value."""
    pairs = [(mine[name], published.get(t.key, {}).get(name)) for t, mine in zip(chosen, ours, strict=True) if t.is_learned == learned]
    return np.array([abs(mine / printed - 1) for mine, printed in pairs if printed], np.float64)


NAMES = ("scheduler", "corrector", "predictor", "prightside", "prightparam", "pleftside", "pleftparam", "pthreshold", "pweight")
"""Columns that name a triple; in their names, right stands for predictions that are too long, and left for too short ones."""


def published_metrics(subject: Subject) -> dict[tuple[str, ...], Mapping[str, float]]:
    """Return the published values by triple (`Triple.key`), from the rows for as many jobs as the subject has, without missing values.

    The file may be next to the log, in the folder `WALLTIME_PUBLISHED` (if set), or in its subfolder `sc15`. Without a file, the result is
    empty.
    """
    name = subject.facts.get("metrics")
    if name is None or subject.kind != PAPER:
        return {}
    published = os.environ.get("WALLTIME_PUBLISHED")
    folders = [subject.file.parent, *([Path(published), Path(published) / "sc15"] if published else [])]
    file = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if file is None:
        return {}
    metrics: dict[tuple[str, ...], Mapping[str, float]] = {}
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["length"] == str(len(subject.workload)):
                values = {name: float(row[name]) for name in MEASURES if row[name] != "NA"}
                if values:
                    metrics[tuple(row[name] for name in NAMES)] = values
    return metrics


def slowdowns(study: Study, subject: Subject, chosen: Sequence[Triple]) -> dict[tuple[str, ...], float]:
    """Return the mean bounded slowdown by triple."""
    return {triple.key: one["avgbsld"] for triple, one in zip(chosen, measure(study, subject, chosen), strict=True)}


@item("best")
def best(study: Study) -> Parts:
    """The best triples and their gains."""
    chosen = triples(study.quick)
    rows: Rows = []
    gains: Rows = []
    for subject in study.with_users:
        ours = slowdowns(study, subject, chosen)
        theirs = {key: values["avgbsld"] for key, values in published_metrics(subject).items() if "avgbsld" in values}
        learned = [triple for triple in chosen if triple.is_learned]
        ranked = sorted(learned, key=lambda triple: ours[triple.key])
        ranks = _ranks(ours, chosen)
        printed_ranks = _ranks(theirs, [triple for triple in chosen if triple.key in theirs])
        for triple in dict.fromkeys((EASY, EASY_PP, E_LOSS, *ranked[:SHOWN])):
            mine = Value(ours[triple.key], theirs.get(triple.key), EQUAL, digits=2)
            rows.append([subject.name, triple.label, mine, ranks[triple.key], printed_ranks.get(triple.key)])
        winner = ranked[0]
        for name, triple in (("the paper's choice", E_LOSS), (f"our best: {winner.label}", winner)):
            line: list[Entry] = [subject.name, name]
            for baseline in (EASY, EASY_PP):
                known = triple.key in theirs and baseline.key in theirs
                line.append(Value(gain(ours, triple, baseline), gain(theirs, triple, baseline) if known else None, 0.01, digits=1))
            gains.append(line)
        yield from _claims(subject.name, ours, theirs, learned, winner)
    columns = ["log", "scheduler", "mean bounded slowdown", "rank", "published rank"]
    printed = study.printed.tables["gains"]
    in_print = ", ".join(f"{row['percent']} % below {row['than']}" for row in printed.rows)
    note = "Ranks are among the learned triples, EASY, EASY++ and the other deterministic ones."
    yield Table("best", f"EASY, EASY++, the paper's choice, and our best {SHOWN}", columns, rows, note)
    yield Table("best-gains", "Reduction of the mean bounded slowdown (%)", ["log", "scheduler", "from EASY, %", "from EASY++, %"], gains)
    yield f"The paper's choice is the E-Loss with increments and the shortest first; printed: {in_print} ({printed.source})."


def _ranks(values: Slowdowns, chosen: Sequence[Triple]) -> dict[tuple[str, ...], int]:
    """Return the rank of each triple by slowdown, from 1."""
    in_order = sorted((triple.key for triple in chosen), key=values.__getitem__)
    return {key: place for place, key in enumerate(in_order, 1)}


def gain(values: Slowdowns, triple: Triple, baseline: Triple) -> float:
    """Return the reduction of the slowdown by a triple, relative to the baseline, in percent."""
    return 100 * (1 - values[triple.key] / values[baseline.key])


def _claims(log: str, ours: Slowdowns, theirs: Slowdowns, learned: Sequence[Triple], winner: Triple) -> Iterator[Claim]:
    """Yield the claims on one log: the paper's choice, the order of backfilling, and the published best triple."""
    for name, baseline in (("EASY", EASY), ("EASY++", EASY_PP)):
        percent = gain(ours, E_LOSS, baseline)
        yield Claim(f"{log}: the paper's choice beats {name}", percent > 0, f"by {percent:.1f} %")
    yield Claim(f"{log}: the best triple backfills the shortest first", winner.policy == SJBF, winner.label)
    pairs = [(triple.key, ("easy_prediction_backfill_scheduler", *triple.key[1:])) for triple in learned if triple.policy == SJBF]
    better = sum(ours[shortest] < ours[in_order] for shortest, in_order in pairs)
    evidence = f"for {better} of {len(pairs)} pairs of correction and predictor"
    yield Claim(f"{log}: backfilling the shortest first is better than in order", better > len(pairs) / 2, evidence)
    if theirs:
        known = [triple for triple in learned if triple.key in theirs]
        first = min(known, key=lambda triple: theirs[triple.key])
        evidence = f"published best {first.label}: {theirs[first.key]:.2f}, ours {ours[first.key]:.2f}; our best {ours[winner.key]:.2f}"
        yield Claim(f"{log}: the published best triple is our best", first == winner, evidence)
