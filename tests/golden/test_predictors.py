"""Predictors worked out by hand: each rule by a few jobs."""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.metrics import AdjustmentClass, adjustment_classes, reservations

DAY, HOUR, MINUTE = 86400, 3600, 60
MONTH, WEEK = 30 * DAY, 7 * DAY
ENGINES = ("kernel", "reference")


def history(ends, runtimes, requested, at, *, ask=1000, now_user=1, users=None, engine="kernel", predictor):
    """What the predictor says at the time `at` of a job that asks for `ask`, after jobs that ended then and ran so long."""
    ends, runtimes = np.array(ends), np.array(runtimes)
    users = [1] * len(ends) if users is None else users
    jobs = wt.Workload.from_arrays(
        submit=[*(ends - runtimes - 1), at],
        runtime=[*runtimes, 1],
        requested=[*([requested] * len(ends) if np.isscalar(requested) else requested), ask],
        procs=[1] * (len(ends) + 1),
        machine_procs=100,
        columns={
            "wait": np.array([1] * (len(ends) + 1)),
            "user": np.array([*users, now_user]),
            "group": np.ones(len(ends) + 1, np.int64),
            "executable": np.ones(len(ends) + 1, np.int64),
        },
    )
    [replay] = wt.predict(jobs, [predictor], "log", engine=engine)
    asked = int(np.flatnonzero(jobs.submit == at)[-1])
    return int(replay.predicted[asked]), int(replay.basis[asked])


TEN = [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]
"""Runtimes of ten jobs that asked for 1000 s each: R = 0.1, 0.2, ..., 1."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("statistic", "expected"),
    # nearest rank: the ceil(p 10)-th of 0.1 ... 1.0
    [("max", 1000), ("p95", 1000), ("p90", 900), ("p85", 900), ("p80", 800), ("p70", 700), ("median", 500), ("p1", 100)],
)
def test_tang13__takes_the_percentile_by_nearest_rank(engine, statistic, expected):
    ends = [5000 + 10 * k for k in range(10)]
    predictor = wt.predictors.Tang13(statistic=statistic, window=None)
    assert history(ends, TEN[::-1], 1000, 6000, engine=engine, predictor=predictor) == (expected, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_tang13__needs_ten_jobs_exactly(engine):
    ends = [5000 + 10 * k for k in range(10)]
    predictor = wt.predictors.Tang13(window=None)
    assert history(ends[1:], TEN[1:], 1000, 6000, engine=engine, predictor=predictor) == (1000, 0)
    assert history(ends, TEN, 1000, 6000, engine=engine, predictor=predictor) == (900, 1)
    # The tenth ends at the very instant of the submission, which counts; a second later it does not.
    assert history([*ends[:9], 6000], TEN, 1000, 6000, engine=engine, predictor=predictor) == (900, 1)
    assert history([*ends[:9], 6001], TEN, 1000, 6000, engine=engine, predictor=predictor) == (1000, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_tang13__window_is_open_at_its_beginning(engine):
    at = 2 * MONTH
    predictor = wt.predictors.Tang13(window=1)
    recent = [at - DAY] * 9
    assert history([at - MONTH + 1, *recent], TEN, 1000, at, engine=engine, predictor=predictor) == (900, 1)
    assert history([at - MONTH, *recent], TEN, 1000, at, engine=engine, predictor=predictor) == (1000, 0)  # nine are left
    assert history([at - MONTH, *recent], TEN, 1000, at, engine=engine, predictor=wt.predictors.Tang13(window=2)) == (900, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_tang13__keys_say_who_is_alike(engine):
    ends = [5000 + 10 * k for k in range(10)]
    users = [1] * 5 + [2] * 5
    assert history(ends, TEN, 1000, 6000, users=users, engine=engine, predictor=wt.predictors.Tang13(key="double")) == (1000, 0)
    assert history(ends, TEN, 1000, 6000, users=users, engine=engine, predictor=wt.predictors.Tang13(key="project")) == (900, 1)
    assert history(ends, TEN, 1000, 6000, ask=2000, engine=engine, predictor=wt.predictors.Tang13(key="triple")) == (2000, 0)
    assert history(ends, TEN, 1000, 6000, ask=2000, engine=engine, predictor=wt.predictors.Tang13(key="double")) == (1800, 1)
    assert history(ends, TEN, 1000, 6000, users=[-1] * 10, now_user=-1, engine=engine, predictor=wt.predictors.Tang13(key="user")) == (
        1000,
        0,
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_tang13__threshold_and_r_over_one(engine):
    ends = [5000 + 10 * k for k in range(10)]
    short = [100] * 10
    assert history(ends, short, 1000, 6000, engine=engine, predictor=wt.predictors.Tang13()) == (100, 1)
    assert history(ends, short, 1000, 6000, engine=engine, predictor=wt.predictors.Tang13(threshold=0.5)) == (500, 1)
    assert history(ends, [1200] * 10, 1000, 6000, engine=engine, predictor=wt.predictors.Tang13()) == (1000, 1)  # R is 1, not 1.2


@pytest.mark.parametrize("engine", ENGINES)
def test_tang13__as_in_cobalt(engine):
    at = 1800 * 10
    ends = [1800 * 9 - 10 * k for k in range(11)]
    runtimes = [100 * k for k in range(1, 11)] + [1000]
    cobalt = wt.predictors.parse_predictor("tang13:cobalt")
    # 11 jobs, the least for "more than 10"; sorted[int(0.8 * 11)] = sorted[8] = 0.9
    assert history(ends, runtimes, 1000, at, engine=engine, predictor=cobalt) == (900, 1)
    assert history(ends[1:], runtimes[1:], 1000, at, engine=engine, predictor=cobalt) == (1000, 0)
    # A job that has ended since the last half hour is not known yet.
    assert history([at - 900, *ends[1:]], runtimes, 1000, at - 1, engine=engine, predictor=cobalt) == (1000, 0)
    assert history([at - 900, *ends[1:]], runtimes, 1000, at, engine=engine, predictor=cobalt) == (900, 1)
    assert history(ends, [200] * 11, 1000, at, engine=engine, predictor=cobalt) == (500, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_tsafrir07__is_the_mean_of_the_last_two(engine):
    ends, runtimes = [1000, 2000, 3000], [500, 100, 201]
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=wt.predictors.Tsafrir07()) == (150, 1)  # 150.5, cut off
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=wt.predictors.Tsafrir07(k=3)) == (267, 1)
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=wt.predictors.LastRun()) == (201, 1)
    assert history(ends, runtimes, 900, 4000, ask=120, engine=engine, predictor=wt.predictors.Tsafrir07()) == (120, 1)  # the user's limit
    assert history(ends[:1], runtimes[:1], 900, 4000, engine=engine, predictor=wt.predictors.Tsafrir07()) == (1000, 0)
    # The last to end counts, not the last to be submitted.
    assert history([3000, 2000, 1000], [100, 300, 700], 900, 4000, engine=engine, predictor=wt.predictors.LastRun()) == (100, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_mualem01__adds_deviations_to_the_mean(engine):
    ends, runtimes = [1000, 2000], [100, 300]  # mean 200, population's deviation 100, sample's 141.4
    assert history(ends, runtimes, 900, 3000, engine=engine, predictor=wt.predictors.Mualem01History()) == (350, 1)
    assert history(ends, runtimes, 900, 3000, engine=engine, predictor=wt.predictors.Mualem01History(deviations=3.0)) == (500, 1)
    assert history(ends, runtimes, 900, 3000, engine=engine, predictor=wt.predictors.Mualem01History(sample=True)) == (412, 1)
    assert history(ends[:1], runtimes[:1], 900, 3000, engine=engine, predictor=wt.predictors.Mualem01History(sample=True)) == (100, 1)
    # Another user has run nothing: then all jobs count.
    assert history(ends, runtimes, 900, 3000, now_user=2, engine=engine, predictor=wt.predictors.Mualem01History()) == (350, 2)
    assert history(ends[:1], runtimes[:1], 900, 3000, engine=engine, predictor=wt.predictors.Mualem01History(min_jobs=2)) == (1000, 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("week", "exactly", "later"),
    # Records at day 8 and day 10, of 100 s and 300 s; asked exactly a week after the last one, and a second later.
    [("key", (350, 1), (1000, 0)), ("sliding", (300, 1), (1000, 0)), ("none", (350, 1), (350, 1)), ("global", (1000, 0), (1000, 0))],
)
def test_mualem01__forgets_after_a_week(engine, week, exactly, later):
    predictor = wt.predictors.Mualem01History(week=week)
    ends = [8 * DAY, 10 * DAY]
    assert history(ends, [100, 300], 900, 10 * DAY + WEEK, engine=engine, predictor=predictor) == exactly
    assert history(ends, [100, 300], 900, 10 * DAY + WEEK + 1, engine=engine, predictor=predictor) == later


@pytest.mark.parametrize("engine", ENGINES)
def test_similar15__takes_the_most_similar_jobs_that_there_are(engine):
    ends, runtimes = [1000, 2000, 3000], [100, 201, 600]
    similar = wt.predictors.Similar15
    # Jobs of one user, all with the request and the size of the one that is predicted: the mean of all, or of the last two.
    assert history(ends, runtimes, 900, 4000, ask=900, engine=engine, predictor=similar()) == (300, 1)
    assert history(ends, runtimes, 900, 4000, ask=900, engine=engine, predictor=similar(last=2)) == (400, 1)
    # Another request: those of equal size, which is less similar.
    assert history(ends, runtimes, 900, 4000, ask=1000, engine=engine, predictor=similar()) == (300, 2)
    assert history(ends, runtimes, 900, 4000, ask=1000, engine=engine, predictor=similar(min_jobs=4)) == (1000, 0)
    assert history(ends, runtimes, 900, 4000, users=[2, 1, 2], engine=engine, predictor=similar()) == (201, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_quantile__is_the_nearest_rank_of_the_last_jobs(engine):
    ends, runtimes = [1000 + 100 * i for i in range(10)], [90, 10, 80, 20, 70, 30, 60, 40, 50, 100]
    quantile = wt.predictors.Quantile
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=quantile()) == (90, 1)
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=quantile(percent=91)) == (100, 1)
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=quantile(percent=50)) == (50, 1)
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=quantile(percent=1)) == (10, 1)
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=quantile(percent=50, last=5)) == (50, 1)  # 30 60 40 50 100
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=quantile(percent=20, last=4, min_jobs=1)) == (40, 1)
    assert history(ends, runtimes, 900, 4000, engine=engine, predictor=quantile(min_jobs=11)) == (1000, 0)


def expiring(correction, *, requested=100 * HOUR, runtime=100 * HOUR, engine="kernel", policy=None):
    """A first job of 10 min, then one of the same user that is predicted 10 min and runs for long; a wide job waits for it."""
    jobs = wt.Workload.from_arrays(
        submit=[0, 1000, 1001],
        runtime=[600, runtime, 10],
        requested=[3600, requested, 60],
        procs=[1, 1, 4],
        machine_procs=4,
        columns={"user": np.array([1, 1, 2])},
    )
    return wt.simulate(jobs, policy or wt.Easy(), prediction=wt.Prediction(wt.predictors.LastRun(), correction=correction), engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("correction", "runtime", "count"),
    [
        # ends expected after 10 min, then 10 min + 1, 5, 15, 30 min, 1, 2, 5, 10, 20, 50, 100 h
        ("tsafrir07", 10 * MINUTE, 0),
        ("tsafrir07", 10 * MINUTE + 1, 1),
        ("tsafrir07", 11 * MINUTE, 1),
        ("tsafrir07", 11 * MINUTE + 1, 2),
        ("tsafrir07", 15 * MINUTE + 1, 3),
        ("tsafrir07", 25 * MINUTE + 1, 4),
        ("tsafrir07", 40 * MINUTE + 1, 5),
        ("tsafrir07", 10 * MINUTE + 50 * HOUR + 1, 11),
        ("tsafrir07", 100 * HOUR, 11),  # 10 min + 100 h is over the user's estimate, which was 100 h
        # 10 min, 11, 16, 31, 61 min, ...
        ("tsafrir07:elapsed", 16 * MINUTE, 2),
        ("tsafrir07:elapsed", 16 * MINUTE + 1, 3),
        ("tsafrir07:elapsed", 31 * MINUTE + 1, 4),
        ("estimate", 50 * HOUR, 1),
        # 10, 20, 40, 80 min
        ("double", 40 * MINUTE + 1, 3),
        # of the 359,400 s left at 10 min half is waited for, then half of the 179,700 s, ... 3, 2, 1
        ("half", 180_300, 1),
        ("half", 180_301, 2),
        ("half", 270_151, 3),
        ("half", 100 * HOUR, 20),
        # 10, 20, 30 min, ...: 100 h are 600 times 10 min
        ("soft", 20 * MINUTE, 1),
        ("soft", 20 * MINUTE + 1, 2),
        ("soft", 100 * HOUR, 599),
        ("double:uncapped", 40 * MINUTE + 1, 3),
        ("none", 50 * HOUR, 0),
    ],
)
def test_corrections__come_one_after_the_other(engine, correction, runtime, count):
    done = expiring(correction, runtime=runtime, engine=engine)
    assert done.predictions.predicted.tolist() == [3600, 600, 60]
    assert done.predictions.corrections.tolist() == [0, count, 0]
    assert done.start.tolist() == [0, 1000, 1000 + runtime]
    # The wide job had its reserved start at the predicted end, and had to wait for longer if that was wrong.
    assert done.reserved_start.tolist() == [-1, -1, 1600]
    kept = reservations(done.start, done.reserved_start)
    assert (kept.reserved, kept.missed) == (1, int(runtime > 600))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("policy", [wt.Easy(), wt.Conservative()], ids=lambda p: p.name)
def test_corrections__move_the_reservation(engine, policy):
    # The second job is predicted 10 min and runs for 16; the wide one waits for it. A job of 200 s comes at 1500 and would end
    # after 1600, so it must wait; at 1600 the reservation is moved to 1660, and still it does not fit; at 1660 it is moved to
    # 1900, where it fits.
    jobs = wt.Workload.from_arrays(
        submit=[0, 1000, 1001, 1500],
        runtime=[600, 960, 10, 200],
        requested=[3600, 3600, 60, 200],
        procs=[1, 1, 4, 3],
        machine_procs=4,
        columns={"user": np.array([1, 1, 2, 3])},
    )
    done = wt.simulate(jobs, policy, prediction=wt.predictors.LastRun(), engine=engine)
    assert done.start.tolist() == [0, 1000, 1960, 1660]
    assert done.predictions.corrections.tolist() == [0, 3, 0, 0]


# tang13, Fig. 12: job 1 runs, job 2 is at the head of the queue and has a reservation, jobs 3, 4 and 5 wait behind it. The figure has
# no numbers; these have its proportions. A machine of 10; job 1 takes 6 until 100, so job 2, which needs 8, gets 100.
#
#         user's estimate   adjusted   real
#   1           100            60        80     (left: not adjusted; right: adjusted, and an underestimate)
#   3           150            90        80     an overestimate, closer to the truth
#   4           150            90       130     an underestimate
#   5            50            50        40     fits in any case


class FigureTwelve:
    """The adjusted walltimes of the figure, known beforehand; executables tell the jobs apart."""

    def __init__(self):
        self.adjusted = {1: 60, 2: 100, 3: 90, 4: 90, 5: 50}

    def predict(self, job):
        return self.adjusted[job.executable]

    def observe(self, job):
        pass


def figure_12(waiting: int, predictions_for: str) -> tuple[list[int], list[int]]:
    """Starts and reserved starts of job 1, of job 2, and of one of the jobs behind it."""
    estimates, real = {3: 150, 4: 150, 5: 50}, {3: 80, 4: 130, 5: 40}
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 2],
        runtime=[80, 50, real[waiting]],
        requested=[100, 100, estimates[waiting]],
        procs=[6, 8, 4],
        machine_procs=10,
        columns={"executable": np.array([1, 2, waiting])},
    )
    done = wt.simulate(
        jobs, wt.Easy(), prediction=wt.Prediction(wt.predictor(FigureTwelve), predictions_for=predictions_for, correction="estimate")
    )
    return done.start.tolist(), done.reserved_start.tolist()


@pytest.mark.parametrize(
    ("waiting", "predictions_for", "start", "promise"),
    [
        # Without walltime adjustment, only job 5 can be backfilled.
        (3, "none", [0, 80, 130], 100),
        (4, "none", [0, 80, 130], 100),
        (5, "none", [0, 80, 2], 100),
        # Left: waiting jobs adjusted. Job 3 can be backfilled, and does not delay job 2 beyond its reservation; job 4 can be
        # backfilled too, but it delays job 2, since it finishes later than job 1.
        (3, "selective", [0, 82, 2], 100),
        (4, "selective", [0, 132, 2], 100),
        (5, "selective", [0, 80, 2], 100),
        # Right: the running job adjusted too. The window is shorter, so neither 3 nor 4 fits; and as job 1 is underestimated, job
        # 2 misses its reservation at 60.
        (3, "regular", [0, 80, 130], 60),
        (4, "regular", [0, 80, 130], 60),
        (5, "regular", [0, 80, 2], 60),
    ],
)
def test_p4_figure_12(waiting, predictions_for, start, promise):
    starts, reserved_start = figure_12(waiting, predictions_for)
    assert (starts, reserved_start[1]) == (start, promise)


def test_classes__at_half_an_hour():
    requested = np.full(5, 7200)
    runtime = np.array([3600, 3600, 3600, 3600, 9000])
    predicted = np.array([3600, 3599, 1801, 1800, 7200])
    expected = [AdjustmentClass.OE, AdjustmentClass.UE, AdjustmentClass.UE, AdjustmentClass.BE, AdjustmentClass.OE]
    assert adjustment_classes(runtime, requested, predicted, np.ones(5, np.uint8)).tolist() == expected


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("correction", "reserved"), [("double", 1900), ("double:uncapped", 2200)])
def test_corrections__by_doubling_are_capped_by_the_request_or_not(engine, correction, reserved):
    # The second job starts at 1000, is predicted to run for 600 s, and asked for 900; at 1600 it is expected to run for 900 s or 1200 s.
    # A job of 500 s that came at 1650 fits before the wide job's reservation only if nobody caps.
    jobs = wt.Workload.from_arrays(
        submit=[0, 1000, 1001, 1650],
        runtime=[600, 850, 10, 500],
        requested=[3600, 900, 60, 500],
        procs=[1, 1, 4, 3],
        machine_procs=4,
        columns={"user": np.array([1, 1, 2, 3])},
    )
    prediction = wt.Prediction("last", correction=correction)
    done = wt.simulate(jobs, wt.Easy(), prediction=prediction, engine=engine)
    assert done.predictions.corrections.tolist() == [0, 1, 0, 0]
    backfilled = reserved >= 1650 + 500
    assert done.start.tolist() == ([0, 1000, 2150, 1650] if backfilled else [0, 1000, 1850, 1860])


@pytest.mark.parametrize("engine", ENGINES)
def test_user__times_two_exceeds_the_request(engine):
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[50, 10, 90], requested=[60, 10, 100], procs=[2, 4, 2], machine_procs=4)
    done = {factor: wt.simulate(jobs, f"easy:predictor=user:factor={factor}", engine=engine) for factor in (1, 2)}
    assert done[2].predictions.predicted.tolist() == [120, 20, 200]
    assert [done[factor].reserved_start.tolist() for factor in (1, 2)] == [[-1, 60, 60], [-1, 120, 70]]
    with raises(wt.PolicyError, "wrong_value", "factor", "1"):
        wt.predictors.UserRequest(factor=0)
