"""The regression that is learned on line: features and one step by hand, slopes against differences, what it is worth on a log."""

from __future__ import annotations

import math

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
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


def after_two_runs() -> g.User:
    """A user whose jobs of 1 and 2 processors ran from 0 to 40 and from 10 to 110, submitted when they started, and one of 4 since 120."""
    learner = wt.predictors.Gaussier15().begin()
    for index, start, end in ((0, 0, 40), (1, 10, 110)):
        learner.predict(submitted(index, start))
        learner.started(started(index, start))
        learner.observe(finished(index, start, end))
    learner.started(started(2, 120))
    return learner.users[7]


def test_features__take_the_time_since_the_submission_of_jobs_that_have_ended():
    base = g.features(submitted(3, 130), after_two_runs())
    assert base[1:5] == [50, 50, 50, 50]  # 120 s, then 130 s since the submissions, no more than the request of 50
    assert g.last_runs(submitted(3, 130), after_two_runs(), meant=False) == [120, 130]
    user = after_two_runs()
    user.last_ended = [g.Run(100, 100, 1, 3), g.Run(100, 100, 1, 12), g.Run(70, 70, 1, 80)]
    assert g.last_runs(submitted(3, 110), user, meant=False) == [10, 12, 80]  # the runtime of those submitted later than that ago
    assert g.features(submitted(3, 110), user)[4:7] == [50, 11, 0.33 * (10 + 12 + 50)]


def test_features__as_meant_take_the_runtimes_of_the_last_jobs_to_start():
    assert g.last_runs(submitted(3, 130), after_two_runs(), meant=True) == [10, 100, 40]
    base = g.features(submitted(3, 130), after_two_runs(), meant=True)
    assert base[1:7] == [10, 50, 40, 50, 30, 100 / 3]


def test_features__of_jobs_that_run_and_of_the_hour():
    quarter = 21_600  # a quarter of the day
    base = g.features(submitted(3, quarter), after_two_runs())
    assert base[7:10] == [70, quarter - 110, 8 / 1.5]
    assert base[10:14] == [4, quarter - 120, 1, quarter - 120]
    assert base[14:16] == [pytest.approx(0, abs=1e-12), 1]
    assert base[18] == 8
    assert g.features(submitted(3, 120), after_two_runs())[10:14] == [0, 0, 0, 0]  # it starts at this very instant


def test_all_features__are_the_base_the_pairs_of_1_to_16_and_the_squares_of_1_to_18():
    base = [1, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67]
    x = g.all_features(base)
    assert len(x) == g.FEATURES == 157
    assert x[:19] == base
    assert x[19:22] == [3 * 5, 3 * 7, 3 * 11]
    assert x[138] == 53 * 59
    assert x[139:] == [value * value for value in base[1:]]


def test_step__by_hand():
    # one feature x = 2, truth 10, w = 0: error -10, slope -1 (abs), gradient -2; s = 2, N = 1, G = 4, n = 1
    model = g.NormalizedGradient(wt.predictors.Gaussier15(under="abs", weight="one", eta=3.0, l2=0.0), 1)
    assert model.is_untaught
    assert (model.norm, model.steps, model.squares, model.largest) == (1e-9, 1, [1e-9], [1e-9])
    model.step([2.0], 10.0, 1.0)
    assert not model.is_untaught
    assert model.w == [pytest.approx(3.0 * 2 / (math.sqrt(1 * 4 / 1) * 2))]
    # the feature grows to 4: w is rescaled by 2 / 4 first, and N grows by (4 / 4)^2; n is 3
    before = model.w[0]
    model.step([4.0], 10.0, 1.0)
    gradient = -4.0
    expected = before / 2 + 3.0 * 4 / (math.sqrt(2 * (4 + gradient**2) / 3) * 4)
    assert model.w[0] == pytest.approx(expected)
    assert model.steps == 5


@pytest.mark.parametrize("curve", g.CURVES)
@pytest.mark.parametrize("error", [-500.0, -3.0, 2.0, 700.0])
def test_loss_slope__is_the_derivative_of_the_loss(curve, error):
    scheme = wt.predictors.Gaussier15(over=curve, under=curve, over_coefficient=0.01, under_coefficient=0.02, threshold=60.0)

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
    text = "gaussier15:over=abs,threshold=60,eta=100,features=meant,untaught=request,negative-weights=zero"
    assert wt.predictors.parse_predictor(text).label == text
    for wrong in ("over=cubic", "features=new", "untaught=nothing", "negative-weights=capped"):
        name, _, value = wrong.partition("=")
        with raises(PolicyError, "wrong_value", name, value):
            wt.predictors.parse_predictor(f"gaussier15:{wrong}")


def test_weight__may_be_negative_and_then_teaches_the_opposite_or_nothing():
    assert g.weight("log_r_over_n", 1, 1000) == pytest.approx(5 - math.log(1000))
    known = KNOWN | {"procs": [1000, 1, 1, 1], "requested": [100] * 4}
    found = {}
    for reading in ("kept", "zero"):
        learner = wt.predictors.Gaussier15(weight="log_r_over_n", negative_weights=reading, over="abs", l2=0.0).begin()
        learner.predict(wt.predictors.SubmittedJob(known, 0, 0, 0))
        learner.observe(wt.predictors.FinishedJob(known, 0, 0, 0, 1))
        found[reading] = learner.model.w[0]
    assert found["zero"] == 0 > found["kept"]  # too short a prediction makes the next one shorter still


@pytest.mark.parametrize(("untaught", "seconds"), [("one", 1), ("request", 100)])
@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_prediction__before_any_job_has_ended(untaught, seconds, engine):
    jobs = wt.Workload.from_arrays(
        submit=[0, 1], runtime=[50, 50], requested=[100, 100], procs=[1, 1], machine_procs=2, columns={"user": np.array([1, 1])}
    )
    done = wt.simulate(jobs, wt.Easy(), prediction=wt.predictors.Gaussier15(untaught=untaught), engine=engine)
    assert done.predictions.predicted.tolist() == [seconds, seconds]


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_prediction__is_the_request_after_the_loss_has_overflowed(engine):
    count = 6
    jobs = wt.Workload.from_arrays(
        submit=np.arange(count) * 5000,
        runtime=np.full(count, 4000),
        requested=np.full(count, 4321),
        procs=np.ones(count, np.int64),
        machine_procs=4,
        columns={"user": np.full(count, 3)},
    )
    exploding = wt.predictors.Gaussier15(under="exp", under_coefficient=1.0)
    done = wt.simulate(jobs, wt.Easy(), prediction=exploding, engine=engine)
    assert done.predictions.predicted.tolist() == [1] + [4321] * 5
    assert done.predictions.basis.tolist() == [wt.predictors.Basis.GENERAL] + [wt.predictors.Basis.NOTHING] * 5
    assert done.prediction_summary().na_percent > 80


OPTIONS = (
    {},
    {"over": "exp", "under": "square", "over_coefficient": 0.001, "l2": 0.0},
    {"features": "meant", "untaught": "request"},
    {"weight": "log_r_over_n", "negative_weights": "zero", "threshold": 60.0},
    {"weight": "log_one_over_rn", "under": "exp", "under_coefficient": 0.0001},
)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dialect", ["papers", "predictsim"])
def test_kernel__predicts_what_plain_python_does(options, dialect):
    random = np.random.default_rng(5)
    count = 300
    runtime = random.integers(0, 5000, count)
    jobs = wt.Workload.from_arrays(
        submit=np.sort(random.integers(0, 60_000, count)) // 40 * 40,  # often several at one instant
        runtime=runtime // 40 * 40,
        requested=runtime + random.integers(1, 9000, count),
        procs=random.integers(1, 9, count),
        machine_procs=16,
        columns={"user": random.integers(1, 6, count)},
    )
    predictor = wt.predictors.Gaussier15(**options)
    assert wt.predictors.parse_predictor(predictor.label) == predictor
    kernel, plain = (
        wt.simulate(jobs, wt.Easy(), prediction=predictor, dialect=dialect, engine=engine) for engine in ("kernel", "reference")
    )
    assert np.array_equal(kernel.predictions.predicted, plain.predictions.predicted)
    assert np.array_equal(kernel.start, plain.start)
    assert len(np.unique(kernel.predictions.predicted)) > 20
    ends = wt.simulate(jobs, wt.Easy())
    fast, slow = (wt.predict(jobs, [predictor], ends=ends, dialect=dialect, engine=engine)[0] for engine in ("kernel", "reference"))
    assert np.array_equal(fast.predicted, slow.predicted)
    assert np.array_equal(fast.basis, slow.basis)


@pytest.mark.slow
def test_kth__with_shortest_backfilled_first_it_beats_easy():
    jobs = wt.read(trace_path("KTH-SP2-1996-2"))
    easy = wt.simulate(jobs, wt.Easy()).summary().mean_bounded_slowdown
    learned = wt.simulate(jobs, wt.Easy(backfill_order=wt.SJF), prediction=wt.predictors.Gaussier15())
    assert learned.summary().mean_bounded_slowdown < easy
