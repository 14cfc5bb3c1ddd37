"""Varying a workload: exact loads, parts, other machines, shakes; what stays the same, and what cannot be done."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from scipy import stats

import walltime as wt
from tests.errors import raises
from tests.strategies import examples, workloads
from walltime.errors import PolicyError, WorkloadError
from walltime.workload.models import MODELS
from walltime.workload.scaling import HIGHEST_LOAD, WAYS, _with_resampled_users, head, held_until, resize, scale_load, shake, tail, window

LEVEL = 1e-3
"""Significance of every goodness-of-fit test here; seeds are fixed, so a test passes always or never."""
EACH_JOB = ("job_id", "submit", "runtime", "requested", "procs", "planned")
HOUR, WEEK = 3600, 7 * 86_400


@functools.cache
def generated(jobs: int, load: float, seed: int) -> wt.Workload:
    """Drawn once for all tests."""
    return MODELS["lublin99"].generate(jobs, 128, load, seed)


def made(jobs: int = 2000, load: float = 0.688, **options) -> wt.Workload:
    """A workload with users, of several weeks, whose requests and planned_runtimes differ from the runtimes."""
    base = generated(jobs, load, options.pop("seed", 3))
    user = np.arange(jobs) * 7919 % 23
    return wt.Workload.from_arrays(
        submit=base.submit,
        runtime=base.runtime,
        procs=base.procs,
        requested=base.runtime * 2 + 1,
        planned=base.runtime + 5,
        machine_procs=128,
        columns={"user": user},
        **options,
    )


def achieved(workload: wt.Workload) -> float:
    """The load that the last step says was achieved."""
    return float(re.fullmatch(r".*, achieved ([\d.]+)", workload.origin.steps[-1])[1])


# --------------------------------------------------------------------------------------------------------------- loads


def test_interarrival__multiplies_the_times_between_submissions_as_w20_says():
    # 1 processor, all busy: 688 s of work submitted over 1000 s make a load of 0.688; at 0.8 all gaps are 0.86 of theirs.
    jobs = wt.Workload.from_arrays(submit=[500, 600, 900, 1500], runtime=[100, 200, 388, 0], procs=[1] * 4, machine_procs=1)
    assert jobs.offered_load == 0.688
    scaled = scale_load(jobs, 0.8)
    assert scaled.submit.tolist() == [500, 500 + 86, 500 + 344, 500 + 860]
    assert scaled.offered_load == pytest.approx(0.8, rel=1e-12)
    assert scaled.origin.steps == ("load 0.8 by interarrival, achieved 0.8000",)


def test_interarrival__scales_down_as_w21_says():
    jobs = wt.Workload.from_arrays(submit=[0, 80, 100], runtime=[76, 0, 0], procs=[1] * 3, machine_procs=1)
    assert scale_load(jobs, 0.38).submit.tolist() == [0, 160, 200]


def test_interarrival__changes_submits_only():
    jobs = made()
    scaled = scale_load(jobs, 0.8)
    for name in EACH_JOB:
        if name != "submit":
            assert np.array_equal(getattr(scaled, name), getattr(jobs, name)), name
    assert np.array_equal(scaled.columns["user"], jobs.columns["user"])
    exact = jobs.submit[0] + (jobs.submit - jobs.submit[0]) * (jobs.offered_load / 0.8)
    assert np.abs(scaled.submit - exact).max() <= 0.5


@pytest.mark.parametrize("by", ["interarrival", "runtime"])
@pytest.mark.parametrize("load", [0.05, 0.3, 0.688, 0.8, 1.0, 1.5])
def test_load__is_reached_within_1_percent_and_said(by, load):
    scaled = scale_load(made(), load, by)
    assert scaled.offered_load == pytest.approx(load, rel=0.01)
    assert achieved(scaled) == pytest.approx(scaled.offered_load, abs=5e-5)
    assert scaled.origin.steps[-1].startswith(f"load {load:g} by {by}, ")


def test_runtime__scales_runtimes_requests_and_planned_runtimes():
    jobs = wt.Workload.from_arrays(
        submit=[0, 10, 10_000],
        runtime=[4000, 205, 0],
        requested=[5000, 605, 1],
        planned=[4400, 305, 1],
        procs=[1, 2, 1],
        machine_procs=2,
    )
    scaled = scale_load(jobs, 2 * jobs.offered_load, "runtime")
    assert scaled.runtime.tolist() == [8000, 410, 0]
    assert scaled.requested.tolist() == [10_000, 1210, 2]
    assert scaled.planned.tolist() == [8800, 610, 2]
    assert scaled.submit.tolist() == [0, 10, 10_000]
    less = scale_load(jobs, 0.1 * jobs.offered_load, "runtime")
    assert less.runtime.tolist() == [400, 21, 0], "halves go up"
    assert less.requested.tolist() == [500, 61, 1], "a request is at least 1 s"


def test_machine__changes_its_size_only():
    jobs = made(load=0.4)
    scaled = scale_load(jobs, 0.35, "machine")
    assert scaled.machine_procs == round(128 * jobs.offered_load / 0.35)
    assert np.array_equal(scaled.submit, jobs.submit)
    assert scaled.offered_load == pytest.approx(0.35, rel=0.01)


def test_machine__is_never_smaller_than_the_widest_job():
    jobs = made(load=0.4)
    with raises(WorkloadError, "unreachable_load", "1.5", "128"):
        scale_load(jobs, 1.5, "machine")


def test_size__scales_processors_within_the_machine():
    jobs = wt.Workload.from_arrays(submit=[0, 10, 100], runtime=[10, 10, 10], procs=[1, 3, 40], machine_procs=79)
    assert scale_load(jobs, jobs.offered_load / 2, "size").procs.tolist() == [1, 2, 20], "0.5 up to 1, 1.5 up to 2"
    assert scale_load(jobs, jobs.offered_load * 2, "size").procs.tolist() == [2, 6, 79]
    assert scale_load(jobs, jobs.offered_load / 2, "size").machine_procs == 79


def test_thin__leaves_out_jobs_and_keeps_the_rest_as_it_is():
    jobs = made(jobs=5000, load=0.8)
    scaled = scale_load(jobs, 0.4, "thin", seed=4)
    place = np.searchsorted(jobs.job_id, scaled.job_id)
    for name in EACH_JOB:
        assert np.array_equal(getattr(scaled, name), getattr(jobs, name)[place]), name
    assert np.array_equal(scaled.columns["user"], jobs.columns["user"][place])
    # Each job stays with probability 1/2: the number of those that stay is binomial.
    assert stats.binomtest(len(scaled), len(jobs), 0.5).pvalue > LEVEL
    assert scaled.submit[[0, -1]].tolist() == jobs.submit[[0, -1]].tolist(), "the span stays"
    assert achieved(scaled) == pytest.approx(scaled.offered_load, abs=5e-5)


def test_thin__repeats_jobs_later_under_new_ids():
    jobs = made(jobs=5000, load=0.5)
    scaled = scale_load(jobs, 0.75, "thin", seed=4)
    new = scaled.job_id > jobs.job_id.max()
    assert np.array_equal(np.sort(scaled.job_id[~new]), jobs.job_id), "every job is still there"
    assert stats.binomtest(int(new.sum()), len(jobs), 0.5).pvalue > LEVEL
    assert len(np.unique(scaled.job_id)) == len(scaled)
    assert scaled.submit[[0, -1]].tolist() == jobs.submit[[0, -1]].tolist()


def test_users__are_drawn_with_all_their_jobs_moved_by_whole_weeks():
    jobs = made(jobs=4000, load=0.6)
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    weeks = max(1, -(-(last - first) // WEEK))
    assert weeks >= 2, "the test means to move jobs"
    scaled = scale_load(jobs, 0.6, "users", seed=1)
    # Which job a copy is of can be seen from its runtime, where that is unique.
    runtimes, place, times = np.unique(jobs.runtime, return_index=True, return_counts=True)
    where = np.searchsorted(runtimes, scaled.runtime)
    original = place[where][times[where] == 1]
    copy = np.flatnonzero(times[where] == 1)
    assert len(copy) > 300
    moved = scaled.submit[copy] - jobs.submit[original]
    assert (moved % WEEK <= HOUR).all()
    assert (moved % WEEK == 0).mean() > 0.5
    assert (moved != 0).any()
    assert np.array_equal(scaled.columns["user"][copy], jobs.columns["user"][original])
    assert scaled.submit.min() >= first
    assert scaled.submit.max() <= last
    assert set(scaled.columns["user"].tolist()) <= set(jobs.columns["user"].tolist())
    assert scaled.job_id.min() > jobs.job_id.max()
    assert achieved(scaled) == pytest.approx(scaled.offered_load, abs=5e-5)


def test_users__need_a_log_that_names_them():
    jobs = wt.Workload.from_arrays(submit=[0, 9], runtime=[1, 1], procs=[1, 1], machine_procs=1)
    with raises(WorkloadError, "unreachable_load"):
        scale_load(jobs, 0.5, "users")


@pytest.mark.parametrize("by", ["thin", "users"])
def test_random_ways__depend_on_the_seed_and_on_nothing_else(by):
    jobs = made(jobs=1000)
    one, again, other = (scale_load(jobs, 0.9, by, seed=seed) for seed in (5, 5, 6))
    for name in EACH_JOB:
        assert np.array_equal(getattr(one, name), getattr(again, name))
    assert len(one) != len(other) or not np.array_equal(one.submit, other.submit)


@pytest.mark.parametrize("load", [0, -0.1, 1.6, 1e-300, 9e-7, float("nan"), float("inf")])
@pytest.mark.parametrize("by", WAYS)
def test_load__that_cannot_be_gets_one_line(by, load):
    with raises(PolicyError, "number_out_of_range", HIGHEST_LOAD, f"{load:g}", "0.000001"):
        scale_load(made(jobs=10), load, by)


def test_numbers__of_thousands_of_digits_get_one_line():
    for wrong in (
        lambda: scale_load(small(), 10**5000),
        lambda: shake(small(), 10**5000),
        lambda: shake(small(), 3, seed=10**5000),
        lambda: head(small(), 10**5000),
    ):
        with raises(PolicyError, "number_out_of_range"):
            wrong()


def test_way__that_is_not_known_gets_the_known_ones():
    with raises(PolicyError, "unknown_method", "'luck'", "interarrival", "runtime", "machine", "size", "thin", "users"):
        scale_load(made(jobs=10), 0.5, "luck")


@pytest.mark.parametrize(("submit", "runtime"), [([0, 5], [0, 0]), ([5, 5], [3, 3]), ([5], [3])])
def test_load__of_nothing_cannot_be_scaled(submit, runtime):
    jobs = wt.Workload.from_arrays(submit=submit, runtime=runtime, procs=[1] * len(submit), machine_procs=1)
    with raises(WorkloadError, "no_load"):
        scale_load(jobs, 0.5)


def test_steps__stand_in_the_order_in_which_they_were_made():
    jobs = shake(head(scale_load(made(jobs=100), 0.5), 50), 30, 7)
    assert [step.split(",")[0] for step in jobs.origin.steps] == ["load 0.5 by interarrival", "first 50 jobs", "shaken by up to 30 s"]


@given(workload=workloads(min_size=3), load=st.floats(0.01, 1.5))
@examples(200)
def test_interarrival__keeps_ids_and_order_of_any_workload(workload, load):
    now = workload.offered_load
    # Times must stretch far enough that whole seconds can tell them apart, else orders of equal submits are by id anyway.
    assume(now > 0 and load / now <= 1)
    error = 0.5 / (int(workload.submit[-1] - workload.submit[0]) * now / load)  # the last submission is rounded to a whole second
    try:
        scaled = scale_load(workload, load)
    except WorkloadError:
        assert error > 0.009, "whole seconds cannot come within 1 %"
        return
    assert scaled.job_id.tolist() == workload.job_id.tolist()
    assert scaled.runtime.tolist() == workload.runtime.tolist()
    assert scaled.planned.tolist() == workload.planned.tolist()
    assert abs(load / scaled.offered_load - 1) <= error + 1e-9


def test_requests_that_are_planned_with__stay_the_same_array():
    jobs = MODELS["lublin99"].generate(50, 128, 0.7, 1)
    for changed in (scale_load(jobs, 0.5), scale_load(jobs, 0.5, "runtime"), shake(jobs, 30), head(jobs, 20), tail(jobs, 20)):
        assert changed.planned is changed.requested


def sparse() -> wt.Workload:
    """Two jobs of a second in twelve days on 100 processors: no machine, size or rate makes a load of 1.5 of them."""
    return wt.Workload.from_arrays(submit=[0, 10**6], runtime=[1, 1], procs=[1, 1], machine_procs=100)


@pytest.mark.parametrize(
    ("by", "says"),
    [
        ("interarrival", "all jobs would be submitted at once; submit times are whole seconds; try runtime"),
        ("machine", "the result has a load of 2e-06; the highest load of this method is 2e-06"),
        ("size", "the result has a load of 2e-06; a job has from 1 to 100 processors; try interarrival"),
        ("thin", "this needs over 100 times the jobs of workload; try interarrival"),
        ("users", "this needs over 100 times the jobs of workload; try interarrival"),
    ],
)
def test_load__that_this_way_cannot_reach_gets_one_line(by, says):
    with raises(WorkloadError, "unreachable_load", by, says, "1.5"):
        scale_load(sparse(), 1.5, by)


def test_load__that_needs_times_beyond_all_schedules_gets_one_line():
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2**58], runtime=[2**50] * 3, procs=[100] * 3, machine_procs=100)
    with raises(WorkloadError, "unreachable_load", "1e-06", "3"):
        scale_load(jobs, 1e-6)


@pytest.mark.parametrize(("by", "near"), [("runtime", 0.01), ("size", 0.1), ("machine", 0.1)])
def test_load__that_is_only_nearly_reached_is_refused_beyond_a_share(by, near):
    """Three seconds, three processors: whole numbers come only so near."""
    jobs = wt.Workload.from_arrays(submit=[0, 100], runtime=[3, 3], procs=[3, 3], machine_procs=4)
    refused = []
    for load in np.linspace(0.5, 1.3, 41) * jobs.offered_load:
        try:
            assert scale_load(jobs, load, by).offered_load == pytest.approx(load, rel=near)
        except WorkloadError as error:
            refused.append(f"a load of {load:g} cannot be reached by {by!r}: " in str(error))
    assert all(refused)
    assert 0 < len(refused) < 41


def test_machine__says_the_highest_load_that_it_reaches():
    jobs = made(load=0.4)
    highest = jobs.offered_load * 128 / int(jobs.procs.max())
    with raises(WorkloadError, "unreachable_load", f"{highest:.4g}"):
        scale_load(jobs, 1.4, "machine")
    assert scale_load(jobs, highest * 0.9999, "machine").machine_procs == jobs.procs.max()


def test_thin__copies_of_a_job_are_apart_and_spread_over_the_span():
    # Over three days, most copies would be submitted after the end: they start anew at the first submission.
    jobs = wt.Workload.from_arrays(submit=np.arange(500) * 600, runtime=[6] * 500, procs=[1] * 500, machine_procs=1)
    scaled = scale_load(jobs, 0.2, "thin", seed=3)
    assert len(scaled) == pytest.approx(10_000, rel=0.06)
    new = scaled.submit[scaled.job_id > 500]
    assert (new == jobs.submit[-1]).mean() < 0.01
    assert stats.kstest(new / jobs.submit[-1], "uniform").pvalue > LEVEL
    assert np.unique(new).size > 0.95 * new.size, "each copy has a shift of its own"


def test_users__who_are_drawn_often_do_not_submit_everything_at_once():
    jobs = wt.Workload.from_arrays(
        submit=np.arange(500) * 600, runtime=[6] * 500, procs=[1] * 500, machine_procs=1, columns={"user": np.arange(500) % 5}
    )
    scaled = scale_load(jobs, 0.2, "users", seed=3)
    assert np.unique(scaled.submit).size > 0.9 * len(scaled)


def test_users__come_as_near_to_the_load_as_whole_users_can():
    # Each user makes a tenth of a load of 0.5; 0.27 is nearest to 5 of them, though they do not reach it.
    jobs = wt.Workload.from_arrays(
        submit=[*range(9), 1000], runtime=[50] * 10, procs=[1] * 10, machine_procs=1, columns={"user": np.arange(10)}
    )
    picked = [len(_with_resampled_users(jobs, 0.27 / 0.5, seed)) for seed in range(20)]
    assert set(picked) == {5}


# --------------------------------------------------------------------------------------------------------------- parts


def small() -> wt.Workload:
    return wt.Workload.from_arrays(
        submit=[10, 20, 30, 40],
        runtime=[1, 2, 3, 4],
        procs=[1, 4, 2, 8],
        machine_procs=8,
        planned=[9, 8, 7, 6],
        columns={"user": np.array([5, 6, 7, 8])},
    )


@pytest.mark.parametrize(
    ("part", "ids"),
    [
        (lambda w: head(w, 1), [1]),
        (lambda w: head(w, 4), [1, 2, 3, 4]),
        (lambda w: tail(w, 1), [4]),
        (lambda w: tail(w, 3), [2, 3, 4]),
        (lambda w: window(w, 10, 40), [1, 2, 3]),  # the end is outside
        (lambda w: window(w, 11, 41), [2, 3, 4]),
        (lambda w: window(w, 20, 21), [2]),
        (lambda w: window(w, 0, 10**9), [1, 2, 3, 4]),
    ],
)
def test_parts__hold_the_jobs_they_say_with_all_that_belongs_to_them(part, ids):
    jobs = part(small())
    assert jobs.job_id.tolist() == ids
    assert jobs.submit.tolist() == [10 * i for i in ids], "times are still those of the log"
    assert jobs.planned.tolist() == [10 - i for i in ids]
    assert jobs.columns["user"].tolist() == [4 + i for i in ids]
    assert len(jobs.origin.steps) == 1


@pytest.mark.parametrize("count", [0, -1, 5])
@pytest.mark.parametrize("part", [head, tail])
def test_parts__of_more_jobs_than_there_are_get_one_line(part, count):
    with raises(PolicyError, "number_out_of_range", count, "4", "1"):
        part(small(), count)


@pytest.mark.parametrize(("begin", "end"), [(11, 20), (41, 99), (0, 10), (30, 20), (20, 20)])
def test_window__without_jobs_gets_one_line(begin, end):
    with raises(WorkloadError, "empty_window", begin, end):
        window(small(), begin, end)


# ------------------------------------------------------------------------------------------------------------- machine


def test_resize__drops_or_clips_the_wider_jobs_and_counts_them(golden):
    dropped = resize(small(), 3)
    assert (dropped.job_id.tolist(), dropped.machine_procs) == ([1, 3], 3)
    golden("simulate", dropped.origin.steps)
    clipped = resize(small(), 3, "clip")
    assert (clipped.procs.tolist(), clipped.machine_procs) == ([1, 3, 2, 3], 3)
    golden("simulate", clipped.origin.steps)
    larger = resize(small(), 16)
    assert (len(larger), larger.machine_procs) == (4, 16)


@pytest.mark.parametrize("too_wide", ["drop", "clip"])
@pytest.mark.parametrize("size", [0, -3])
def test_resize__to_a_machine_that_cannot_be_gets_one_line(size, too_wide):
    with raises(WorkloadError, "no_job_fits", size):
        resize(small(), size, too_wide)


def test_resize__to_a_machine_that_no_job_fits_gets_one_line():
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[1, 1], procs=[4, 5], machine_procs=8)
    with raises(WorkloadError, "no_job_fits", "3"):
        resize(jobs, 3)


def test_resize__knows_two_ways():
    with raises(PolicyError, "unknown_rule_of_width", "'shrink'"):
        resize(small(), 3, "shrink")


# ------------------------------------------------------------------------------------------------------------- feedback


def chain(**options) -> wt.Workload:
    """Job 2 follows job 1, job 4 follows job 3."""
    columns = {"preceding_job": np.array([-1, 1, -1, 3]), "think_time": np.array([-1, 5, -1, 0])}
    return wt.Workload.from_arrays(
        submit=[0, 105, 300, 420], runtime=[100, 50, 120, 10], procs=[1, 2, 2, 1], machine_procs=2, columns=columns, **options
    )


@pytest.mark.parametrize("by", ["interarrival", "runtime", "machine", "size"])
def test_load__keeps_who_waits_for_whom(by):
    scaled = scale_load(chain(feedback=True), 0.5 if by != "machine" else 0.27, by)
    assert scaled.feedback
    after, think = scaled.dependencies()
    assert after.tolist() == [-1, 0, -1, 2]
    assert think.tolist() == [0, 5, 0, 0]


def test_parts__keep_feedback_and_forget_jobs_that_are_not_there():
    part = tail(chain(feedback=True), 3)
    assert part.feedback
    assert part.dependencies()[0].tolist() == [-1, -1, 1]


@pytest.mark.parametrize("by", ["thin", "users"])
def test_random_ways__keep_feedback(by):
    jobs = chain(feedback=True)
    jobs = wt.Workload.from_arrays(
        **{name: getattr(jobs, name) for name in EACH_JOB}, machine_procs=2, columns=jobs.columns | {"user": np.ones(4, int)}, feedback=True
    )
    assert scale_load(jobs, 0.99 * jobs.offered_load, by, seed=1).feedback


def stories(jobs: wt.Workload) -> tuple[wt.Workload, list[tuple[tuple[int, int], ...]]]:
    """The workload with a tag on each job; and its chains, as tags and times since the first of the chain."""
    after, _ = jobs.dependencies()
    first = np.arange(len(jobs))
    for i in range(len(jobs)):
        if after[i] >= 0:
            first[i] = first[after[i]]
    tag = jobs.columns["tag"]
    chains: dict[int, list[tuple[int, int]]] = {}
    for i in range(len(jobs)):
        chains.setdefault(int(first[i]), []).append((int(tag[i]), int(jobs.submit[i] - jobs.submit[first[i]])))
    return jobs, [tuple(sorted(chain)) for chain in chains.values()]


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("load", [0.4, 1.2])
@pytest.mark.parametrize("by", ["thin", "users"])
def test_random_ways__take_whole_chains_with_their_times_between_them(by, load, feedback):
    base = MODELS["feitelson96"].generate(3000, 64, 0.7, 2)
    columns = dict(base.columns) | {"tag": np.arange(3000), "user": np.arange(3000) % 31}
    same = {name: getattr(base, name) for name in EACH_JOB}
    jobs = wt.Workload.from_arrays(**same, machine_procs=64, columns=columns, feedback=feedback)
    _, before = stories(jobs)
    assert max(map(len, before)) > 5
    for seed in range(20):  # one of them reaches it
        try:
            scaled = scale_load(jobs, load, by, seed=seed)
            break
        except WorkloadError:
            continue
    assert scaled.feedback == feedback
    assert scaled.with_feedback().feedback, "nobody comes before the job that it follows"
    assert scaled.planned is not jobs.planned
    _, chains = stories(scaled)
    if by == "thin":
        assert set(chains) <= set(before)
    else:  # a chain that would pass the end of the log is cut there
        whole = {chain[0][0]: chain for chain in before}
        assert all(set(chain) <= set(whole[chain[0][0]]) for chain in chains)
        assert np.mean([chain in before for chain in chains]) > 0.9
    known = set(scaled.job_id.tolist())
    assert {int(i) for i in scaled.columns["preceding_job"] if i > 0} <= known, "nobody follows a job that was left out"


def test_thin__gives_no_job_the_number_that_a_missing_one_had():
    columns = {"preceding_job": np.array([-1, -1, 5, -1])}
    jobs = wt.Workload.from_arrays(submit=[0, 10, 20, 1000], runtime=[10] * 4, procs=[1] * 4, machine_procs=1, columns=columns)
    scaled = scale_load(jobs, 10 * jobs.offered_load, "thin", seed=1)
    assert (scaled.dependencies()[0] == -1).all()


def test_held_until__moves_submissions_and_takes_the_time_off_recorded_waits():
    jobs = wt.Workload.from_arrays(
        submit=[0, 10, 20, 30], runtime=[5] * 4, procs=[1] * 4, machine_procs=2, columns={"wait": [50, 7, -1, 0], "held": [0, 3, 0, 0]}
    )
    late = held_until(jobs, np.array([40, 0, 25, 30]))
    assert late.job_id.tolist() == [2, 3, 4, 1]
    assert late.submit.tolist() == [10, 25, 30, 40]
    assert late.columns["held"].tolist() == [3, 5, 0, 40]
    assert late.columns["wait"].tolist() == [7, -1, 0, 10]
    assert "2 jobs" in late.origin.steps[-1]
    assert "hindsight" in late.origin.steps[-1]
