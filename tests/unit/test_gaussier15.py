"""The regression that is learned on line: features and one step by hand, slopes against differences, what it is worth on a log."""

from __future__ import annotations

import math

import numpy as np
import pytest

import walltime as wt
from tests.traces import trace_path
from walltime.errors import PolicyError
from walltime.predictors import gaussier15 as g

KNOWN = {name: [-1] * 4 for name in ("user", "group", "executable", "queue", "partition")} | {
    "job_id": [1, 2, 3, 4],
    "requested": [100, 200, 300, 50],
    "procs": [1, 2, 4, 8],
}
KNOWN["user"] = [7, 7, 7, 7]


def started(index: int, start: int) -> wt.predictors.StartedJob:
    return wt.predictors.StartedJob(KNOWN, index, start, start)


def submitted(index: int, now: int) -> wt.predictors.SubmittedJob:
    return wt.predictors.SubmittedJob(KNOWN, index, now, now)


def finished(index: int, start: int, end: int) -> wt.predictors.FinishedJob:
    return wt.predictors.FinishedJob(KNOWN, index, start, start, end)


def test_features__of_a_user_without_a_past_are_the_request_and_the_hour():
    base = g.features(submitted(0, 0), g.User())
    assert base == [1, 100, 100, 100, 100, 100, 100, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1]


def test_features__of_runs_that_have_ended_and_of_one_that_runs():
    learner = wt.Gaussier15().begin()
    for index, start, end in ((0, 0, 40), (1, 10, 110)):
        learner.predict(submitted(index, start))
        learner.started(started(index, start))
        if end:
            learner.observe(finished(index, start, end))
    learner.started(started(2, 120))
    quarter = 21_600  # a quarter of the day
    base = g.features(submitted(3, quarter), learner.users[7])
    assert base[1:4] == [50, 50, 40]  # the one that runs, then 100, neither longer than the request of 50, then 40
    assert base[4:7] == [50, 50, pytest.approx(140 / 3)]
    assert base[7:10] == [70, quarter - 110, 8 / 1.5]
    assert base[10:14] == [4, quarter - 120, quarter - 120, 1]
    assert base[14:16] == [pytest.approx(0, abs=1e-12), 1]
    assert base[18] == 8


def test_products__are_all_pairs_and_the_features_themselves():
    assert g.products([1.0, 2.0, 3.0]) == [1, 2, 3, 4, 6, 9]
    assert len(g.products([1.0] * g.BASE)) == g.PRODUCTS == 190


def test_step__by_hand():
    # one feature x = 2, truth 10, w = 0: error -10, slope -1 (abs), gradient -2; s = 2, N = 1, G = 4, t = 1
    model = g.NormalizedGradient(wt.Gaussier15(under="abs", weight="one", eta=3.0, l2=0.0), 1)
    model.step([2.0], 10.0, 1.0)
    assert model.w == [pytest.approx(3.0 * 2 / (math.sqrt(1 * 4 / 1) * 2))]
    # the feature grows to 4: w is rescaled by 2 / 4 first, and N grows by (4 / 4)^2
    before = model.w[0]
    model.step([4.0], 10.0, 1.0)
    gradient = -4.0
    expected = before / 2 + 3.0 * 4 / (math.sqrt(2 * (4 + gradient**2) / 2) * 4)
    assert model.w[0] == pytest.approx(expected)


@pytest.mark.parametrize("curve", g.CURVES)
@pytest.mark.parametrize("error", [-500.0, -3.0, 2.0, 700.0])
def test_loss_slope__is_the_derivative_of_the_loss(curve, error):
    scheme = wt.Gaussier15(over=curve, under=curve, over_coefficient=0.01, under_coefficient=0.02, threshold=60.0)

    def loss(at: float) -> float:
        beyond = at - 60.0
        c = 0.01 if beyond > 0 else 0.02
        size = abs(beyond)
        return {"abs": c * size, "square": c * size**2, "exp": math.exp(c * size)}[curve]

    step = 1e-4
    assert g.loss_slope(scheme, error) == pytest.approx((loss(error + step) - loss(error - step)) / (2 * step), rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("one", 1),
        ("log_rn", 1 + math.log(800)),
        ("log_r_over_n", 5 + math.log(100 / 8)),
        ("log_n_over_r", 5 + math.log(8 / 100)),
        ("log_one_over_rn", 11 + math.log(1 / 800)),
    ],
)
def test_weight(kind, value):
    assert g.weight(kind, 100, 8) == pytest.approx(value)


def test_parse__and_label_go_round():
    text = "gaussier15:over=abs,threshold=60.0,eta=100.0"
    assert wt.parse_predictor(text).label == text
    with pytest.raises(PolicyError, match="unknown over 'cubic'"):
        wt.parse_predictor("gaussier15:over=cubic")


def test_kernel__predicts_what_plain_python_does():
    random = np.random.default_rng(5)
    count = 300
    runtime = random.integers(0, 5000, count)
    jobs = wt.Workload.from_arrays(
        submit=np.sort(random.integers(0, 60_000, count)),
        runtime=runtime,
        requested=runtime + random.integers(1, 9000, count),
        procs=random.integers(1, 9, count),
        machine_procs=16,
        columns={"user": random.integers(1, 6, count)},
    )
    for options in ({}, {"over": "exp", "under": "square", "over_coefficient": 0.001, "l2": 0.0}):
        predictor = wt.Gaussier15(**options)
        kernel, plain = (wt.simulate(jobs, wt.Easy(), prediction=predictor, engine=engine) for engine in ("kernel", "reference"))
        assert np.array_equal(kernel.predictions.predicted, plain.predictions.predicted)
        assert np.array_equal(kernel.start, plain.start)
        assert len(np.unique(kernel.predictions.predicted)) > 20
        ends = wt.simulate(jobs, wt.Easy())
        fast, slow = (wt.replay_predictions(jobs, [predictor], ends=ends, engine=engine)[0] for engine in ("kernel", "reference"))
        assert np.array_equal(fast.predicted, slow.predicted)


def test_kth__with_shortest_backfilled_first_it_beats_easy():
    jobs = wt.read(trace_path("KTH-SP2-1996-2"))
    easy = wt.simulate(jobs, wt.Easy()).summary().mean_bounded_slowdown
    learned = wt.simulate(jobs, wt.Easy(backfill_order=wt.SJF), prediction=wt.Gaussier15())
    assert learned.summary().mean_bounded_slowdown < easy
