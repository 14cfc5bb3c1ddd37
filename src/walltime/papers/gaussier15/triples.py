"""gaussier15: define the triples of scheduler, correction and predictor, and simulate them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walltime.metrics import jobs as per_job
from walltime.papers.study import Study
from walltime.papers.subjects import Subject
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
