"""Stories of the jobs of random workloads: what they tell is what a simulation by other means shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.strategies import (
    COINCIDENT,
    CORRECTIONS,
    OVERRUN,
    PERFECT,
    crowded,
    examples,
    policies,
    predictors,
    shrunk,
    with_users,
    workloads,
)
from walltime.explanation.records import HELD_BACK, HOW
from walltime.explanation.waits import snapshots_by

ANY_WORKLOAD = st.one_of(workloads(max_size=20), crowded(max_size=30))


def some_jobs(data, schedule, most=3) -> list[int]:
    """Indices of jobs, those that waited before others."""
    waited = np.flatnonzero(schedule.wait).tolist() or list(range(len(schedule)))
    return data.draw(st.lists(st.sampled_from(waited), min_size=1, max_size=most, unique=True))


@pytest.mark.slow
@given(st.data(), ANY_WORKLOAD, policies(), st.sampled_from(COINCIDENT), st.sampled_from(OVERRUN))
@examples(150)
def test_snapshots__both_engines_show_the_same(data, workload, policy, coincident, overrun):
    schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun)
    for job in some_jobs(data, schedule):
        seen = [list(snapshots_by(engine, schedule, job)) for engine in ("kernel", "reference")]
        for kernel, reference in zip(*seen, strict=False):
            assert kernel == reference, shrunk(workload)
            if job in kernel.lengths:
                break


def test_snapshots__of_combinations_without_reservations():
    # Three jobs of 0 s start and free the machine at once; job 14 is backfilled before the head, which has no reservation.
    workload = wt.Workload.from_arrays(submit=[0] * 5, runtime=[0] * 5, requested=[1] * 5, procs=[1, 1, 1, 4, 1], machine_procs=4)
    schedule = wt.simulate(workload, "hybrid:depth=0,fit=greedy")
    kernel, reference = (list(snapshots_by(engine, schedule, 3)) for engine in ("kernel", "reference"))
    assert kernel == reference
    assert kernel[0].reserved == {}


def test_snapshots__a_corrected_prediction_does_not_forget_the_earliest_reservation_of_the_head():
    # Job 21 may start at 15 + 0.1 x 15 s by its earliest reservation, also after the predictions of others have been corrected.
    workload = wt.Workload.from_arrays(
        submit=[*[0] * 21, 13, 13],
        runtime=[*[0] * 19, 15, 0, 0, 2],
        requested=[*[1] * 19, 15, 1, 1, 3],
        procs=[*[4] * 19, 1, 4, 1, 1],
        machine_procs=4,
        columns={"user": [1] * 23},
    )
    schedule = wt.simulate(workload, "relaxed:omega=0.1", prediction=wt.Prediction("last:key=all", correction="estimate"))
    kernel, reference = (list(snapshots_by(engine, schedule, 20)) for engine in ("kernel", "reference"))
    for seen in (kernel, reference):
        assert {one.reserved[20] for one in seen if 20 in one.reserved} == {16}


@pytest.mark.slow
@given(
    st.data(),
    with_users(ANY_WORKLOAD),
    policies(own=False),
    predictors(),
    st.sampled_from(CORRECTIONS),
    st.sampled_from(("111", "101", "010", "001")),
)
@examples(80)
def test_snapshots__both_engines_show_the_same_with_predictions(data, workload, policy, predictor, correction, predictions_for):
    prediction = wt.Prediction(predictor, predictions_for=predictions_for, correction=correction)
    schedule = wt.simulate(workload, policy, prediction=prediction)
    for job in some_jobs(data, schedule, 2):
        seen = [list(snapshots_by(engine, schedule, job)) for engine in ("kernel", "reference")]
        for kernel, reference in zip(*seen, strict=False):
            assert kernel == reference, shrunk(workload)
            if job in kernel.lengths:
                break


REMEMBERING = (
    "easy:order=expr:-user_used-group_started,last=9",
    "easy:order=expr:wait-0.3*user_waited,half-life=20,max-wait-share=0.8",
    "easy:order=sjf:max-wait-share=0.6",
)
"""Orders that ask what has been so far."""


@pytest.mark.slow
@pytest.mark.parametrize("policy", REMEMBERING)
@given(st.data(), with_users(ANY_WORKLOAD))
@examples(40)
def test_snapshots__both_engines_rank_alike_by_what_has_been(policy, data, workload):
    schedule = wt.simulate(workload, policy)
    for job in some_jobs(data, schedule, 2):
        seen = [list(snapshots_by(engine, schedule, job)) for engine in ("kernel", "reference")]
        for kernel, reference in zip(*seen, strict=False):
            assert kernel == reference, shrunk(workload)
            if job in kernel.lengths:
                break


@pytest.mark.slow
@given(st.data(), ANY_WORKLOAD, policies(), st.sampled_from(COINCIDENT), st.sampled_from(OVERRUN))
@examples(150)
def test_story__agrees_with_the_schedule(data, workload, policy, coincident, overrun):
    schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun)
    submit, start, index = schedule.submit, schedule.start, np.arange(len(workload))
    for job in some_jobs(data, schedule):
        explanation = wt.explain(schedule, int(workload.job_id[job]), sooner=False)
        later = (submit > submit[job]) | ((submit == submit[job]) & (index > job))
        assert sorted(one.job for one in explanation.overtaken_by) == workload.job_id[later & (start < start[job])].tolist()
        assert all(one.how in HOW and one.delay >= 0 for one in explanation.overtaken_by)
        assert explanation.submission.held_back in HELD_BACK
        assert explanation.too_few + explanation.held == explanation.wait == schedule.wait[job]
        assert (explanation.submission.held_back == "nothing") or explanation.wait >= 0
        assert 0 <= explanation.submission.free <= workload.machine_procs
        if explanation.reservations:
            assert explanation.reservations[0].what == "made"
            delayed = explanation.reservations[0].start - schedule.reserved_start[job]
            # Relaxed backfilling tells how late it may start; a later newcomer of the same instant may take its place within its slack.
            passed = isinstance(policy, wt.policy.Slack) and np.count_nonzero(submit == submit[job]) > 1
            assert delayed == 0 or (delayed > 0 and (passed or isinstance(policy, wt.policy.Relaxed)))
        times = [change.time for change in explanation.reservations]
        assert times == sorted(times)
        assert str(explanation)


@pytest.mark.slow
@given(st.data(), st.one_of(workloads(PERFECT, max_size=20), crowded(PERFECT, max_size=30)), st.sampled_from((1, 2, 3, 40)))
@examples(80)
def test_reservations__with_exact_estimates_are_kept(data, workload, depth):
    for policy in (wt.Easy(), wt.Conservative(), wt.Conservative(variant="scratch"), wt.Hybrid(depth=depth)):
        schedule = wt.simulate(workload, policy)
        for job in some_jobs(data, schedule, 2):
            explanation = wt.explain(schedule, int(workload.job_id[job]), sooner=False)
            assert [change.what for change in explanation.reservations] in ([], ["made"]), shrunk(workload)
            if explanation.reservations and policy != wt.Hybrid(depth=depth):
                assert explanation.reservations[-1].start == explanation.start, shrunk(workload)


@given(st.data(), ANY_WORKLOAD)
@examples(80)
def test_delays__are_the_wild_backfills_of_the_dynamics(data, workload):
    schedule = wt.simulate(workload, wt.Easy(), dynamics=True)
    for job in some_jobs(data, schedule):
        explanation = wt.explain(schedule, int(workload.job_id[job]), sooner=False)
        assert len(explanation.delayed_by) == schedule.dynamics.suffered[job]
        wild = set(workload.job_id[schedule.dynamics.wild].tolist())
        assert {one.job for one in explanation.overtaken_by if one.delay > 0} == wild & {one.job for one in explanation.overtaken_by}


@given(st.data(), ANY_WORKLOAD)
@examples(80)
def test_how__follows_from_who_ran_and_when_each_was_expected_to_end(data, workload):
    schedule = wt.simulate(workload, wt.Easy())
    start, procs, planned = schedule.start, workload.procs, workload.planned
    index_of = {int(number): index for index, number in enumerate(workload.job_id)}
    for job in some_jobs(data, schedule):
        for one in wt.explain(schedule, int(workload.job_id[job]), sooner=False).overtaken_by:
            index, now = index_of[one.job], one.start
            if (schedule.runtime[start == now] == 0).any():
                continue  # what such jobs had becomes free within the second, in which others may start
            waiting = [i for i in range(len(workload)) if schedule.submit[i] <= now < start[i]]
            assert index_of[one.head] == waiting[0]
            before = [i for i in range(len(workload)) if start[i] < now or (start[i] == now and i < index)]
            running = [i for i in before if schedule.end[i] > now or start[i] == now]
            free, shadow = workload.machine_procs - procs[running].sum(), now
            for end, width in sorted((max(start[i] + planned[i], now), procs[i]) for i in running):
                if free >= procs[waiting[0]]:
                    break
                free, shadow = free + width, end
            assert one.how == ("in time" if now + planned[index] <= shadow else "extra"), shrunk(workload)


def changed(workload: wt.Workload, job: int, **values: int) -> wt.Workload:
    """The workload with one job's values replaced, made from its arrays anew."""
    arrays = {name: getattr(workload, name).tolist() for name in ("job_id", "submit", "runtime", "requested", "planned", "procs")}
    for name, value in values.items():
        arrays[name][job] = value
    return wt.Workload.from_arrays(
        **arrays, machine_procs=workload.machine_procs, columns=workload.columns, origin=workload.origin, feedback=workload.feedback
    )


@given(st.data(), ANY_WORKLOAD, policies(), st.sampled_from(COINCIDENT), st.sampled_from(OVERRUN), st.sampled_from((1, 60, 900)))
@examples(60)
@pytest.mark.slow
def test_alternatives__are_what_a_simulation_with_the_change_gives(data, workload, policy, coincident, overrun, unit):
    times = {name: getattr(workload, name) * unit for name in ("submit", "runtime", "requested", "planned")}
    workload = replace(workload, **times)
    rules = {"coincident": coincident, "overrun": overrun}
    schedule = wt.simulate(workload, policy, **rules)
    (job,) = some_jobs(data, schedule, 1)
    explanation = wt.explain(schedule, int(workload.job_id[job]))
    for one in explanation.alternatives:
        other, scheduler = workload, policy
        match one.what:
            case "request":
                assert max(explanation.runtime, 1) <= one.value < explanation.requested
                other = changed(workload, job, requested=one.value, planned=min(one.value, int(workload.planned[job])))
            case "procs":
                assert 1 <= one.value < explanation.procs
                other = changed(workload, job, procs=one.value)
            case "policy":
                scheduler = one.value
        again = wt.simulate(other, scheduler, **rules)
        assert again.start[job] == one.start
        assert again.runtime[job] == schedule.runtime[job]
        assert one.gain == explanation.start - one.start
    assert all(one.gain > 0 for one in explanation.sooner)
    assert explanation.wait > 0 or not explanation.alternatives


@pytest.mark.parametrize("policy", ["easy", "conservative", "hybrid:2"])
def test_story__with_feedback_follows_the_real_submissions(policy):
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 20, 21, 22],
        runtime=[30, 20, 10, 5, 5],
        requested=[40, 20, 10, 9, 9],
        procs=[3, 4, 2, 4, 1],
        machine_procs=4,
        columns={"preceding_job": np.array([-1, -1, 1, 2, -1]), "think_time": np.array([-1, -1, 3, 4, -1])},
        feedback=True,
    )
    schedule = wt.simulate(jobs, policy)
    for job in range(5):
        explanation = wt.explain(schedule, job + 1)
        assert (explanation.submit, explanation.start) == (schedule.submit[job], schedule.start[job])
