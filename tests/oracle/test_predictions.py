"""With predictions too, the compiled kernel equals the reference engine; and no prediction knows the future."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

import walltime as wt
from tests.strategies import (
    BITS,
    COINCIDENT,
    CORRECTIONS,
    OVERRUN,
    POLICY_KINDS,
    crowded,
    examples,
    policies,
    predictors,
    shrunk,
    with_users,
    workloads,
)
from tests.traces import trace_path
from walltime.engine.kernel.number import index
from walltime.predictors import Basis, Guess, PlainPredictor

COLUMNS = ("start", "kind", "reserved_start", "end")
RECORDS = ("predicted", "basis", "corrections")
ARRIVALS = ("papers:arrivals=fitting", "papers:arrivals=fitting,expiry=silent")


def assert_engines_agree(workload: wt.Workload, policy: wt.policy.Policy, **options) -> wt.Schedule:
    if len(workload) < 100:
        columns = {name: values.tolist() for name, values in workload.columns.items()}
        note(f"{shrunk(workload)} columns={columns}\n{policy!r} {options}")
    kernel, reference = (wt.simulate(workload, policy, engine=engine, **options) for engine in ("kernel", "reference"))
    for name in (*COLUMNS, *RECORDS):
        fast, slow = (getattr(s if name in COLUMNS else s.predictions, name) for s in (kernel, reference))
        assert np.array_equal(fast, slow), f"{name}: kernel {fast.tolist()}, reference {slow.tolist()}"
    return kernel


@pytest.mark.slow
@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("kind", POLICY_KINDS)
@examples(20)
@given(data=st.data())
def test_kernel__equals_reference_with_predictions(kind, coincident, data):
    workload = data.draw(with_users(data.draw(st.sampled_from((workloads(max_size=25), crowded())))), label="workload")
    history = data.draw(st.sampled_from(("simulation", "simulation", "simulation", "log")))
    assert_engines_agree(
        workload,
        data.draw(policies(kind), label="policy"),
        coincident=coincident,
        dialect=data.draw(st.sampled_from(("papers", "papers:expiry=silent", *ARRIVALS)), label="dialect"),
        overrun=data.draw(st.sampled_from(OVERRUN)),
        prediction=wt.Prediction(
            data.draw(predictors(again=history == "simulation"), label="predictor"),
            predictions_for=data.draw(st.sampled_from(BITS), label="predictions_for"),
            correction=data.draw(st.sampled_from(CORRECTIONS), label="correction"),
            learn_from=history,
        ),
    )


class Sees:
    """What it predicts depends on everything that it has been shown, and on the order of the ends."""

    def __init__(self):
        self.seen = 0

    def predict(self, job):
        told = (self.seen + 7 * job.submit + job.now + job.index + job.requested) % 61
        if told % 5 == 0:
            return None
        return Guess(told + 0.5, Basis.GENERAL) if told % 5 == 1 else told - 9

    def started(self, job):
        self.seen += 3 * job.start + job.submit

    def observe(self, job):
        self.seen = (31 * self.seen + 5 * job.runtime + job.end + job.submit + 2 * job.start) % 1_000_003


@pytest.mark.parametrize("machine", ["number", "pools"])
@pytest.mark.parametrize("coincident", COINCIDENT)
@examples(40)
@given(data=st.data())
def test_predictor_in_plain_python__called_by_the_kernel_equals_reference(coincident, machine, data):
    workload = data.draw(with_users(crowded()), label="workload")
    if machine == "number" and data.draw(st.booleans(), label="feedback"):
        place = [data.draw(st.integers(-1, i - 1)) for i in range(len(workload))]
        follows = {"preceding_job": [-1 if one < 0 else int(workload.job_id[one]) for one in place], "think_time": [9] * len(place)}
        workload = replace(workload, columns={**workload.columns, **{k: np.array(v, np.int64) for k, v in follows.items()}}, feedback=True)
    made = wt.Prediction(
        PlainPredictor(Sees),
        predictions_for=data.draw(st.sampled_from(BITS), label="predictions_for"),
        correction=data.draw(st.sampled_from([c for c in CORRECTIONS if c != "soft"]), label="correction"),
    )
    policy = data.draw(policies("easy" if machine == "pools" else data.draw(st.sampled_from(POLICY_KINDS))), label="policy")
    options = {"coincident": coincident, "prediction": made}
    if machine == "pools":
        half = max(workload.machine_procs // 2, 1)
        pools = (wt.machine.Pool("a", half, 1), wt.machine.Pool("b", half, 1))
        parts = (wt.machine.Partition("a", ("a",)), wt.machine.Partition("b", ("b", "a")))
        options["machine"] = wt.machine.Machine(pools, parts)
    try:
        called, reference = (wt.simulate(workload, policy, engine=engine, **options) for engine in ("auto", "reference"))
    except wt.PolicyError:
        return  # what does not run there, with any predictor
    for name in (*COLUMNS, *RECORDS):
        fast, slow = (getattr(s if name in COLUMNS else s.predictions, name) for s in (called, reference))
        assert np.array_equal(fast, slow), f"{name}: kernel {fast.tolist()}, reference {slow.tolist()}"


def test_predictor_in_plain_python__is_called_by_the_kernel_and_new_in_each_run():
    jobs = wt.workloads.Lublin99().generate(300, 32, 0.9, seed=1)
    predictor = PlainPredictor(Sees)
    first, again = (wt.simulate(jobs, "easy", prediction=predictor) for _ in range(2))
    assert (first.engine, again.engine) == ("kernel", "kernel")
    assert np.array_equal(first.start, again.start)
    cases = [wt.simulation.Case(wt.Easy(), prediction=wt.Prediction(predictor))] * 4
    assert {one.mean_wait for one in wt.simulation.simulate_many(jobs, cases, workers=2).summaries} == {first.summary().mean_wait}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_predictor_in_plain_python__that_raises_stops_the_kernel(error):
    class Raises(Sees):
        def observe(self, job):
            raise error("no more")

    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else wt.PolicyError, match="no more"):
        wt.simulate(wt.workloads.Lublin99().generate(300, 32, 0.9, seed=1), "easy", prediction=PlainPredictor(Raises))


@pytest.mark.parametrize("predictions_for", BITS)
@pytest.mark.parametrize("kind", ["easy", "conservative"])
@examples(20)
@given(data=st.data())
def test_kernel__equals_reference_with_short_predictions_of_crowded_machines(kind, predictions_for, data):
    # Predictions are mostly far too short, so they expire, are corrected, and break promises.
    workload = data.draw(with_users(crowded()), label="workload")
    predictor = data.draw(
        st.sampled_from((wt.predictors.LastRun(), wt.predictors.Tang13(key="all", statistic="p10", min_jobs=1, window=None)))
    )
    policy = data.draw(policies(kind), label="policy")
    correction = data.draw(st.sampled_from(CORRECTIONS), label="correction")
    dialect = data.draw(st.sampled_from(("papers", "predictsim", "papers:expiry=silent", *ARRIVALS)), label="dialect")
    assert_engines_agree(
        workload, policy, dialect=dialect, prediction=wt.Prediction(predictor, predictions_for=predictions_for, correction=correction)
    )


@pytest.mark.parametrize("kind", ["easy", "conservative", "hybrid:few"])
@examples(20)
@given(data=st.data())
def test_kernel__equals_reference_with_soft_walltimes(kind, data):
    # A soft walltime of a second is extended by a second, so only short requests are tried: the reference makes a pass for each.
    workload = data.draw(with_users(workloads(max_size=15)).filter(lambda w: len(w) == 0 or w.requested.max() <= 2000), label="workload")
    predictor = data.draw(st.sampled_from((wt.predictors.LastRun(), wt.predictors.Quantile(percent=10, min_jobs=1))))
    prediction = wt.Prediction(predictor, predictions_for=data.draw(st.sampled_from(BITS), label="predictions_for"), correction="soft")
    assert_engines_agree(workload, data.draw(policies(kind), label="policy"), prediction=prediction)


@pytest.mark.slow
@pytest.mark.parametrize("coincident", COINCIDENT)
@pytest.mark.parametrize("kind", ["easy", "conservative", "hybrid:few"])
@examples(30)
@given(data=st.data())
def test_kernel__equals_reference_with_waiting_jobs_predicted_again(kind, coincident, data):
    workload = data.draw(with_users(crowded()), label="workload")
    predictor = wt.predictors.Tsafrir07(k=1, key=data.draw(st.sampled_from(("all", "user"))), recompute=True)
    predictions_for = data.draw(st.sampled_from(("111", "110", "010", "011")), label="predictions_for")
    policy = data.draw(policies(kind), label="policy")
    with pytest.MonkeyPatch.context() as patch:  # the queue is indexed from a few jobs on, and has to be indexed anew
        patch.setattr(index, "LONG", 3)
        patch.setattr(index, "SHORT", 2)
        dialect = data.draw(st.sampled_from(("papers", "papers:expiry=silent")), label="dialect")
        prediction = wt.Prediction(predictor, predictions_for=predictions_for)
        assert_engines_agree(workload, policy, coincident=coincident, dialect=dialect, prediction=prediction)


@pytest.mark.parametrize("coincident", COINCIDENT)
@examples(50)
@given(data=st.data())
@pytest.mark.slow
def test_kernel__equals_reference_with_a_threshold_of_wfp(coincident, data):
    workload = data.draw(with_users(crowded()), label="workload")
    order = wt.policy.Wfp(exponent=data.draw(st.integers(1, 3)), threshold=data.draw(st.sampled_from((0.25, 0.75, 1.0))))
    backfill_order = data.draw(st.sampled_from((None, wt.SJF)))
    policy = wt.Hybrid(order=order, backfill_order=backfill_order, depth=data.draw(st.integers(0, 1)))
    predictions_for = data.draw(st.sampled_from(BITS))
    assert_engines_agree(
        workload, policy, coincident=coincident, prediction=wt.Prediction(data.draw(predictors()), predictions_for=predictions_for)
    )


@examples(50)
@given(data=st.data())
def test_simulation__without_their_use_is_the_one_without_predictions(data):
    workload = data.draw(with_users(workloads(max_size=25)), label="workload")
    policy = data.draw(policies(), label="policy")
    plain = wt.simulate(workload, policy)
    nowhere = wt.simulate(workload, policy, prediction=wt.Prediction(data.draw(predictors(), label="predictor"), predictions_for="none"))
    same = wt.simulate(workload, policy, prediction=wt.predictors.UserRequest())
    for name in COLUMNS:
        assert np.array_equal(getattr(plain, name), getattr(nowhere, name)), name
        if workload.planned is workload.requested:
            assert np.array_equal(getattr(plain, name), getattr(same, name)), name


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["kernel", "reference"])
@examples(100)
@given(data=st.data())
def test_predictions__do_not_know_the_future(engine, data):
    workload = data.draw(with_users(workloads(max_size=25, min_size=4)), label="workload")
    predictor = data.draw(predictors().filter(lambda p: p != wt.predictors.ExactRuntime()), label="predictor")
    options = {"prediction": wt.Prediction(predictor, data.draw(st.sampled_from(BITS))), "engine": engine}
    policy = data.draw(policies(), label="policy")
    before = wt.simulate(workload, policy, **options)
    moment = int(data.draw(st.sampled_from(before.end.tolist())))
    to_come = before.end > moment  # these have not ended by then, and end at other times, but not before
    longer = np.where(to_come, workload.runtime + data.draw(st.integers(1, 50)), workload.runtime)
    planted = replace(workload, runtime=longer)
    after = wt.simulate(planted, policy, **options)
    known = before.submit <= moment
    if predictor.again:
        known &= before.start <= moment
    assert np.array_equal(before.predictions.predicted[known], after.predictions.predicted[known])
    assert np.array_equal(before.start[before.start <= moment], after.start[before.start <= moment])


@pytest.mark.slow
@examples(100)
@given(data=st.data())
def test_replay__equals_its_plain_python(data):
    workload = data.draw(with_users(workloads(max_size=25)), label="workload")
    chosen = data.draw(st.lists(predictors(again=False), min_size=1, max_size=4), label="predictors")
    ends = data.draw(st.sampled_from(("log", "easy")))
    clip = data.draw(st.booleans())
    kernel, reference = (wt.predict(workload, chosen, ends, clip=clip, engine=e, workers=1) for e in ("kernel", "reference"))
    for fast, slow in zip(kernel, reference, strict=True):
        assert np.array_equal(fast.predicted, slow.predicted)
        assert np.array_equal(fast.basis, slow.basis)


PREDICTORS = ("tang13:window=all", "tang13:cobalt,key=user", "tsafrir07:recompute=yes", "mualem01-history:key=user", "last:key=double")


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("policy", [wt.Easy(backfill_order=wt.SJF), wt.Easy(order=wt.WFP), wt.Conservative()], ids=lambda p: p.label)
@pytest.mark.parametrize("name", PREDICTORS)
def test_kernel__equals_reference_on_the_first_part_of_the_kth_log(name, policy):
    jobs = wt.workloads.head(wt.read(trace_path("KTH-SP2-1996-2")), 1500)
    done = assert_engines_agree(jobs, policy, prediction=wt.predictors.parse_predictor(name))
    assert done.predictions.corrections.sum() > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kernel__equals_reference_with_long_queues_predicted_again(seed, monkeypatch):
    monkeypatch.setattr(index, "LONG", 100)
    monkeypatch.setattr(index, "SHORT", 20)
    draw = np.random.default_rng(seed)
    runtime = draw.choice([5, 20, 100, 400], 350)
    jobs = wt.Workload.from_arrays(
        submit=np.cumsum(draw.integers(0, 12, 350)),
        runtime=runtime,
        requested=runtime * draw.integers(1, 12, 350),
        procs=draw.integers(1, 9, 350),
        machine_procs=8,
        columns={"user": draw.integers(1, 40, 350)},
    )
    done = assert_engines_agree(
        jobs, wt.Easy(), prediction=wt.Prediction(wt.predictors.Tsafrir07(k=1, recompute=True), predictions_for="110")
    )
    waiting = np.searchsorted(np.sort(done.submit), done.start, "right") - np.arange(1, 351)
    assert waiting.max() > 150
