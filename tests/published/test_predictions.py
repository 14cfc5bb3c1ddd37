"""The published predictions of gaussier15, made again beside its published schedules."""

import numpy as np
import pytest

import walltime as wt
from tests.published.test_schedules import LOGS, both

LEARNED = "sjbf-learned-square100-square1-t0-5logmr-reqtime"
PREDICTOR = "gaussier15:under=square,over_coefficient=100,weight=log_n_over_r"
"""The same in words: square with 100 for too long predictions, square with 1 for too short ones, threshold 0, 5 + log(m / r)."""


@pytest.mark.parametrize("log", LOGS)
def test_replay__beside_the_published_schedule_gives_its_predictions(log):
    _, published = both(log, LEARNED)
    [replay] = wt.predict(published, [wt.predictors.parse_predictor(PREDICTOR)], ends="log", dialect="predictsim")
    away = np.abs(replay.predicted - published.columns["think_time"])
    assert np.mean(away == 0) >= 0.99
    assert away.max() <= 10  # where several jobs start and end together, the schedule does not tell the order in which they were learned


@pytest.mark.parametrize("log", LOGS)
def test_simulation__gives_the_published_schedule_and_predictions_job_for_job(log):
    workload, published = both(log, LEARNED)
    done = wt.simulate(workload, f"easy:backfill-order=sjf,predictor={PREDICTOR},correction=estimate", dialect="predictsim")
    assert done.engine == "kernel"
    assert np.array_equal(done.start - workload.submit, published.columns["wait"])
    assert np.array_equal(done.predictions.predicted, published.columns["think_time"])
