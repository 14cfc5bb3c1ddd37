"""Predictors: names, one-line errors, what a predictor of one's own may see, replays, batches and measures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.traces import trace_path
from walltime import metrics
from walltime.predictors import STATISTICS, WINDOWS


def some_jobs(count: int = 300, seed: int = 1) -> wt.Workload:
    draw = np.random.default_rng(seed)
    runtime = draw.integers(0, 4000, count)
    return wt.Workload.from_arrays(
        submit=np.cumsum(draw.integers(0, 600, count)),
        runtime=runtime,
        requested=np.maximum(runtime + draw.choice([0, 100, 3600], count), 1),
        procs=draw.integers(1, 9, count),
        machine_procs=16,
        columns={name: draw.integers(1, 4, count) for name in ("user", "group", "executable")} | {"wait": draw.integers(0, 5000, count)},
    )


JOBS = some_jobs()


@pytest.mark.parametrize(
    "name", [*list(wt.predictors.PREDICTORS.variants)[:-2], "tang13:cobalt", "column:soft", "file:Made.csv,column=P90"]
)
def test_parse_predictor__reads_what_labels_say(name):
    predictor = wt.predictors.parse_predictor(name)
    assert wt.predictors.parse_predictor(predictor.label) == predictor


def test_parse_predictor__takes_options():
    assert wt.predictors.parse_predictor(" Tang13:key=user,statistic=max,window=12,min-jobs=5 ") == wt.predictors.Tang13(
        "user", "max", 12, min_jobs=5
    )
    scheme = wt.predictors.Tang13("double", "p80", 2, threshold=0.5, min_jobs=11, rank="cobalt", refresh=1800)
    assert wt.predictors.parse_predictor("tang13:cobalt,key=double") == scheme
    assert wt.predictors.parse_predictor("mualem01-history:deviations=3,week=sliding,sample=yes") == wt.predictors.Mualem01History(
        deviations=3.0, week="sliding", sample=True
    )


@pytest.mark.parametrize(
    "text",
    [
        "oracle",
        "tang13:colour=red",
        "tang13:key=user,key=user",
        "tang13:key=",
        "tang13:key=nobody",
        "tang13:statistic=p101",
        "tang13:statistic=85",
        "tang13:window=0",
        "tang13:window=long",
        "tang13:threshold=2",
        "tang13:rank=first",
        "tang13:refresh=0",
        "tsafrir07:k=0",
        "tsafrir07:recompute=1",
        "tsafrir07:cobalt",
        "mualem01-history:week=day",
        "mualem01-history:deviations=-1",
        "exact:key=user",
    ],
)
def test_parse_predictor__says_what_is_wrong_in_one_line(golden, text):
    with pytest.raises(wt.PolicyError) as caught:
        wt.predictors.parse_predictor(text)
    golden("predict", str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"predictor": 7},
        {"predictions_for": "often"},
        {"predictions_for": "12"},
        {"correction": "never"},
        {"correction": "estimate:uncapped"},
        {"correction": "double:elapsed"},
        {"learn_from": "dreams"},
        {"predictor": wt.predictors.Tsafrir07(recompute=True), "learn_from": "log"},
    ],
)
def test_simulate__refuses_unknown_options(golden, options):
    with pytest.raises(wt.PolicyError) as caught:
        wt.Prediction(**({"predictor": wt.predictors.LastRun()} | options))
    golden("predict", str(caught.value))


def test_quantile__needs_what_it_keeps():
    with raises(wt.PolicyError, "too_few_jobs", 4, 5):
        wt.predictors.parse_predictor("quantile:last=4")
    with raises(wt.PolicyError, "wrong_value", "100"):
        wt.predictors.parse_predictor("quantile:percent=101")


def test_correction__must_rise():
    with raises(wt.PolicyError, "number_out_of_range"):
        wt.predictors.Correction(increments=(60, 60))
    with raises(wt.PolicyError, "wrong_value", "kind"):
        wt.predictors.Correction("often")
    with raises(wt.PolicyError, "wrong_value", "relative", "prediction", "elapsed"):
        wt.predictors.Correction(relative="moon")


def test_wfp__threshold_needs_a_policy_with_one_reservation():
    order = wt.policy.Wfp(exponent=2, threshold=0.75)
    with raises(wt.PolicyError, "unsupported_policy", "threshold"):
        wt.simulate(JOBS, wt.Conservative(order=order))
    with raises(wt.PolicyError, "wrong_value", "0"):
        wt.policy.Wfp(threshold=1.5)
    freer, stricter = (wt.simulate(JOBS, wt.Easy(order=wt.policy.Wfp(threshold=value))) for value in (0.0, 1.0))
    assert (freer.kind == 2).sum() > (stricter.kind == 2).sum()


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_predictor__needs_its_columns(engine):
    bare = dataclasses.replace(JOBS, columns={"user": JOBS.columns["user"]})
    with raises(wt.WorkloadError, "missing_column", "group"):
        wt.simulate(bare, wt.Easy(), prediction=wt.predictors.Tang13(), engine=engine)
    with raises(wt.WorkloadError, "missing_waits"):
        wt.simulate(bare, wt.Easy(), prediction=wt.Prediction(wt.predictors.LastRun(), learn_from="log"), engine=engine)
    feedback = JOBS.with_feedback()
    with raises(wt.WorkloadError, "feedback"):
        wt.simulate(feedback, wt.Easy(), prediction=wt.Prediction(wt.predictors.LastRun(), learn_from="log"), engine=engine)


class Curious:
    """Tries to look into the future."""

    def predict(self, job):
        for name in ("runtime", "start", "end"):
            with pytest.raises(AttributeError, match=name):
                getattr(job, name)
        with pytest.raises(AttributeError, match="jobs have no 'colour'"):
            _ = job.colour
        assert job.now >= job.submit
        return 60 + job.user

    def observe(self, job):
        assert job.end - job.start == job.runtime
        assert job.now == job.end
        assert job.procs > 0


def test_plain_predictor__sees_nothing_of_the_future():
    done = wt.simulate(JOBS, wt.Easy(), prediction=wt.predictor(Curious))
    assert (done.predictions.predicted == np.minimum(60 + JOBS.columns["user"], JOBS.requested)).all()
    assert (done.predictions.basis == 1).all()


def test_plain_predictor__begins_again_each_time_and_runs_on_the_log_compiled():
    class Counting:
        def __init__(self):
            self.seen = 0

        def predict(self, job):
            return None if self.seen == 0 else self.seen

        def observe(self, job):
            self.seen += 1

    predictor = wt.predictor(Counting)
    first, second = (wt.simulate(JOBS, wt.Easy(), prediction=predictor) for _ in range(2))
    assert (first.predictions.predicted == second.predictions.predicted).all()
    assert first.predictions.basis[0] == 0
    logs = [
        wt.simulate(JOBS, wt.Easy(), prediction=wt.Prediction(predictor, learn_from="log"), engine=engine)
        for engine in ("kernel", "reference")
    ]
    assert (logs[0].start == logs[1].start).all()
    assert (logs[0].predictions.predicted == logs[1].predictions.predicted).all()
    [replay] = wt.predict(JOBS, [predictor], "log")
    assert (replay.predicted == logs[0].predictions.predicted).all()


@pytest.mark.parametrize("value", [float("nan"), "soon"])
def test_plain_predictor__must_give_a_number(value):
    class Vague:
        def predict(self, job):
            return value

        def observe(self, job):
            pass

    with raises(wt.PolicyError, "wrong_prediction", "Vague", "1"):
        wt.simulate(JOBS, wt.Easy(), prediction=wt.predictor(Vague))
    with raises(wt.PolicyError, "missing_method"):
        wt.simulate(JOBS, wt.Easy(), prediction=wt.predictor(list))


def test_replay__of_a_simulations_ends_gives_the_simulations_predictions():
    chosen = [wt.predictors.LastRun(), wt.predictors.Tang13(key="user"), wt.predictors.Mualem01History()]
    for predictor, replay in zip(chosen, wt.predict(JOBS, chosen, wt.simulate(JOBS, wt.Easy())), strict=True):
        done = wt.simulate(JOBS, wt.Easy(), prediction=wt.Prediction(predictor, predictions_for="none"))
        assert (done.predictions.predicted == replay.predicted).all()
        assert replay.ends == "easy"
        assert replay.summary().mean_accuracy == done.prediction_summary().mean_accuracy


def test_replay__says_whose_ends_it_took():
    assert wt.predict(JOBS, [wt.predictors.LastRun()])[0].ends == "log"
    zero = dataclasses.replace(JOBS, columns=JOBS.columns | {"wait": np.zeros(len(JOBS), np.int64)})
    assert wt.predict(zero, [wt.predictors.LastRun()])[0].ends == "easy"
    with raises(wt.WorkloadError, "missing_waits", "0"):
        wt.predict(zero, [wt.predictors.LastRun()], "log")
    partly = dataclasses.replace(JOBS, columns=JOBS.columns | {"wait": np.where(np.arange(len(JOBS)) < 3, -1, 5)})
    assert wt.predict(partly, [wt.predictors.LastRun()])[0].unknown_ends == 3
    for options, code in (({"ends": "never"}, "unknown_ends"), ({"engine": "steam"}, "unknown_engine")):
        with raises(wt.PolicyError, code):
            wt.predict(JOBS, [wt.predictors.LastRun()], **options)
    with raises(wt.PolicyError, "unsupported_predictor"):
        wt.predict(JOBS, [wt.predictors.Tsafrir07(recompute=True)])
    with raises(wt.WorkloadError, "other_jobs"):
        wt.predict(JOBS, [wt.predictors.LastRun()], wt.simulate(some_jobs(20), wt.Easy()))


@pytest.mark.slow
def test_replay__of_p4_on_kth_shows_its_trends():
    # KTH has no projects beside groups, but users whose requests differ: more keys and lower percentiles are more accurate.
    jobs = wt.read(trace_path("KTH-SP2-1996-2"))
    schemes = {(k, s): wt.predictors.Tang13(k, s, window=None) for k in ("user", "triple") for s in STATISTICS}
    found = dict(zip(schemes, (r.summary() for r in wt.predict(jobs, list(schemes.values()), "log")), strict=True))
    base = found["user", "max"].mean_accuracy_of_requests
    assert all(summary.mean_accuracy > base for summary in found.values())
    assert found["user", "p80"].mean_accuracy < found["triple", "p80"].mean_accuracy
    for key in ("user", "triple"):
        under = [found[key, s].ue_percent + found[key, s].be_percent for s in STATISTICS]
        assert under == sorted(under)
        accuracy = [found[key, s].mean_accuracy for s in STATISTICS[:-1]]
        assert accuracy == sorted(accuracy)
        assert len({found[key, s].na_percent for s in STATISTICS}) == 1
    threshold = wt.predict(jobs, [wt.predictors.Tang13("triple", "p80", None, 0.5)], "log")[0].summary()
    plain = found["triple", "p80"]
    assert threshold.ue_percent + threshold.be_percent < plain.ue_percent + plain.be_percent
    assert threshold.na_percent == plain.na_percent
    assert len(WINDOWS) == 6


CASES = [
    wt.simulation.Case(),
    wt.simulation.Case(prediction=wt.predictors.Tang13(key="user")),
    wt.simulation.Case(prediction=wt.Prediction(wt.predictors.Tang13(key="user"), predictions_for="selective")),
    wt.simulation.Case(estimates=wt.estimates.FModel(4), seed=2, prediction=wt.predictors.Tang13(key="triple", min_jobs=2)),
    wt.simulation.Case(estimates=wt.estimates.FModel(4), seed=3, prediction=wt.predictors.Tang13(key="triple", min_jobs=2)),
    wt.simulation.Case(wt.Easy(backfill_order=wt.SJF), prediction=wt.predictors.Tsafrir07(recompute=True)),
    wt.simulation.Case(
        wt.Easy(backfill_order=wt.SJF), prediction=wt.Prediction(wt.predictors.Tsafrir07(recompute=True), correction="double")
    ),
    wt.simulation.Case(wt.Conservative(), prediction=wt.predictors.Mualem01History()),
    wt.simulation.Case(
        wt.Conservative(), estimates=JOBS.requested + 100, prediction=wt.Prediction(wt.predictors.ExactRuntime(), predictions_for="001")
    ),
    wt.simulation.Case(prediction=wt.Prediction(wt.predictors.LastRun(), learn_from="log")),
    wt.simulation.Case(prediction=wt.predictors.Tang13(key="user")),
]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("overrun", ["kill", "extend"])
def test_simulate_many__equals_simulate_with_predictions(workers, overrun):
    batch = wt.simulate_many(JOBS, CASES, workers=workers, overrun=overrun)
    for number, case in enumerate(CASES):
        jobs = JOBS
        if isinstance(case.estimates, np.ndarray):
            jobs = jobs.with_planned(case.estimates)
        elif case.estimates is not None:
            jobs = jobs.with_estimates(case.estimates, case.seed)
        alone = wt.simulate(jobs, case.policy, overrun=overrun, prediction=case.prediction)
        assert batch.summaries[number].mean_wait == alone.summary().mean_wait
        if case.prediction is None:
            assert batch.predictions[number] is None
        else:
            assert batch.predictions[number].as_dict() == alone.prediction_summary().as_dict()
    assert np.isnan(batch.values("mean_accuracy")[0])
    table = batch.table()
    spelled = ["easy", "easy:predictor=tang13:key=user", "easy:predictor=tang13:key=user,predictions-for=selective"]
    assert table["policy"].to_list()[:3] == spelled
    assert table["mean_accuracy"][1] == batch.predictions[1].mean_accuracy


def test_simulate_many__runs_predictors_and_policies_in_plain_python_too():
    cases = [
        wt.simulation.Case(prediction=wt.predictor(Curious)),
        wt.simulation.Case(wt.Easy(extra="literal"), wt.estimates.FModel(4), 1),
        wt.simulation.Case(),
    ]
    batch = wt.simulate_many(JOBS, cases)
    alone = wt.simulate(JOBS, wt.Easy(), prediction=wt.predictor(Curious))
    assert batch.summaries[0] == alone.summary()
    assert batch.predictions[0] == alone.prediction_summary()
    assert batch.summaries[1] == wt.simulate(JOBS.with_estimates(wt.estimates.FModel(4), 1), cases[1].policy).summary()
    assert batch.summaries[2].mean_wait == wt.simulate(JOBS, "easy").summary().mean_wait


def test_simulate_many__refuses_what_it_does_not_know():
    with raises(wt.PolicyError, "unknown_name", "use of predictions"):
        wt.simulate_many(JOBS, [wt.simulation.Case(prediction=wt.Prediction(wt.predictors.LastRun(), predictions_for="often"))])
    with raises(wt.PolicyError, "no_predictions"):
        wt.simulate(JOBS, wt.Easy()).prediction_summary()


@pytest.mark.parametrize("policy", [wt.Easy(), wt.Conservative(), wt.NoBackfilling()], ids=lambda p: p.name)
def test_audit__of_a_schedule_with_predictions_finds_nothing(policy):
    report = wt.simulate(JOBS, policy, prediction=wt.predictors.LastRun()).audit()
    assert report.ok, report
    assert not report.skipped


def test_metrics__of_months_and_groups():
    assert metrics.mean_gain(np.array([90.0]), np.array([100.0])) == pytest.approx(10)
    with raises(wt.PolicyError, "unknown_average"):
        metrics.mean_gain(np.array([1.0]), np.array([1.0]), of="years")
    with raises(wt.WorkloadError, "different_lengths"):
        metrics.mean_gain(np.array([1.0]), np.array([1.0, 2.0]))
    submit, start, one = np.array([0, 0]), np.array([10, 20]), np.array([10, 10])
    assert metrics.priority_at_start(wt.WFP, submit, start, one, one).tolist() == [10.0, 80.0]
    assert metrics.priority_at_start(wt.SJF, submit, start, one, one).tolist() == [-10.0, -10.0]
    assert wt.simulate(JOBS, wt.Easy()).weighted_wait() > 0
    values, count = metrics.spread_within_groups(np.ones(9), np.zeros(9, np.int64))
    assert np.isnan(values)
    assert count == 0
