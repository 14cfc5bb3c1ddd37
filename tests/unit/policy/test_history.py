"""Orders by what users, groups and queues have had: by hand, and the kernel beside the reference."""

from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.profiles import seeds

pytestmark = pytest.mark.slow  # compiles functions of its own

DAY = 86_400


@wt.order(last=100)
def by_wait(user_waited):
    return user_waited


@wt.order(last=60)
def of_last(user_waited, group_used, queue_started, user_used, procs, factor=0.5):
    return user_waited * factor + procs - 0.1 * group_used + 7 * queue_started - user_used


@wt.order(half_life=45)
def decaying(user_waited, group_used, queue_started, user_used, procs, factor=0.5):
    return user_waited * factor + procs - 0.1 * group_used + 7 * queue_started - user_used


@wt.order(last=60)
def patient(user_waited, seconds=40):
    return user_waited > seconds


@wt.order(last=60)
def short_of_patient(user_waited, planned, seconds=40):
    return (user_waited > seconds) / planned


def made(seed, jobs=80, procs=8, every=12):
    rng = np.random.default_rng(seed)
    runtime = rng.integers(0, 60, jobs)
    return wt.Workload.from_arrays(
        submit=np.sort(rng.integers(0, every * jobs, jobs)),
        runtime=runtime,
        requested=np.maximum(runtime + rng.integers(-10, 40, jobs), 1),
        procs=rng.integers(1, procs + 1, jobs),
        machine_procs=procs,
        columns={"user": rng.integers(0, 4, jobs), "group": rng.integers(0, 2, jobs), "queue": rng.integers(0, 2, jobs)},
    )


def test_history__by_hand():
    """User 1's first job waits 9 s and starts at 10 s. At 20 s jobs 3 (user 2) and 4 (user 1) wait: user 1 has waited more, until 110 s."""
    columns = {"user": np.array([0, 1, 2, 1])}
    jobs = wt.Workload.from_arrays(submit=[0, 1, 11, 12], runtime=[10, 10, 10, 10], procs=[4] * 4, machine_procs=4, columns=columns)
    assert wt.simulate(jobs, wt.Easy(order=by_wait)).start.tolist() == [0, 10, 30, 20]
    assert wt.simulate(jobs, wt.Easy(order=by_wait.but(last=9))).start.tolist() == [0, 10, 20, 30], "10 s ago is too long ago"
    assert wt.simulate(jobs, wt.Easy(order=by_wait.but(last=10))).start.tolist() == [0, 10, 30, 20]


def test_history__does_not_count_what_happens_now():
    """Job 2 starts at 10 s, where job 3 is ordered, too: the wait of 9 s counts from 11 s on."""
    columns = {"user": np.array([0, 1, 2, 1])}
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[10, 5, 5, 5], procs=[4, 2, 2, 2], machine_procs=4, columns=columns)
    assert wt.simulate(jobs, wt.Easy(order=by_wait)).start.tolist() == [0, 10, 10, 15]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", ["easy", "conservative", "fcfs", "hybrid:depth=2", "relaxed", "easy one by one"])
@pytest.mark.parametrize("order", [of_last, decaying, patient, short_of_patient], ids=["last", "half-life", "alike", "of the job, too"])
def test_history__kernel_equals_reference(policy, order):
    policy, _, one_by_one = policy.partition(" ")
    rules = {"coincident": "sequential"} if one_by_one else {}
    chosen = wt.simulation.parse_scheduler(policy).policy
    changed, moved = replace(chosen, order=order), 0
    for seed in seeds(6):
        jobs = made(seed)
        kernel, reference = (wt.simulate(jobs, changed, engine=engine, **rules) for engine in ("kernel", "reference"))
        assert np.array_equal(kernel.start, reference.start)
        moved += int((kernel.start != wt.simulate(jobs, chosen, **rules).start).sum())
    assert moved, "the order matters"


@pytest.mark.parametrize("predictor", ["tsafrir07", "gaussier15"])
def test_history__kernel_equals_reference_where_predictions_change(predictor):
    for seed in seeds(4):
        jobs, policy = made(seed), wt.Easy(order=short_of_patient, backfill_order=wt.SJF)
        kernel, reference = (wt.simulate(jobs, policy, prediction=predictor, engine=engine) for engine in ("kernel", "reference"))
        assert np.array_equal(kernel.start, reference.start)


@pytest.mark.parametrize("asked", ["user_waited > 400", "(user_waited > 400) / planned", "user_used - group_started"])
def test_history__kept_ranks_equal_those_made_anew_in_each_pass(asked):
    """Who asks for the wait, too, has all jobs ranked in each pass; the queue is long enough for an index, and is moved."""
    names = [name for name in ("user_waited", "planned", "user_used", "group_started") if name in asked]
    kept, anew = (wt.order(last=900)(eval(f"lambda {', '.join(given)}: 1.0 * ({asked})")) for given in (names, [*names, "wait"]))
    moved = 0
    for seed in seeds(3):
        jobs = made(seed, jobs=3000, every=6)
        starts = [wt.simulate(jobs, wt.Easy(order=order)).start for order in (kept, anew, wt.FCFS)]
        assert np.array_equal(starts[0], starts[1])
        moved += int((starts[0] != starts[2]).sum())
    assert moved, "the order matters"


def test_history__starts_anew_in_each_run():
    jobs = made(1)
    first = wt.simulate(jobs, wt.Easy(order=by_wait))
    assert np.array_equal(first.start, wt.simulate(jobs, wt.Easy(order=by_wait)).start)
    cases = [wt.simulation.Case(wt.Easy(order=by_wait)), wt.simulation.Case(wt.Easy(order=by_wait))]
    waits = {summary.mean_wait for summary in wt.simulate_many(jobs, cases, workers=1).summaries}
    assert waits == {first.summary().mean_wait}


def test_history__of_a_column_that_the_log_lacks_is_that_of_all_jobs():
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 10], procs=[4, 4, 4], machine_procs=4)
    assert wt.simulate(jobs, wt.Easy(order=by_wait)).start.tolist() == wt.simulate(jobs, wt.Easy()).start.tolist()


def test_order__takes_options_from_its_spelling(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import walltime as wt\n\n\n@wt.order(last=7 * 86400)\ndef weekly(user_waited, hours=24):\n"
        "    return user_waited > hours * 3600\n\n\ndef plain(procs, factor=1):\n    return factor * procs\n"
    )
    scheduler = wt.simulation.parse_scheduler(f"easy:order={file}:weekly,hours=12,last=86400,backfill-order=sjf")
    order = scheduler.policy.order
    assert (order.label, order.last, order.parameters) == ("weekly:hours=12", DAY, (12.0,))
    assert scheduler.policy.backfill_order == wt.SJF
    jobs = made(2)
    backwards = wt.simulate(jobs, f"easy:order={file}:plain,factor=-1")
    assert np.array_equal(backwards.start, wt.simulate(jobs, wt.Easy(order=wt.policy.parse_order("sqf"))).start)


def test_order__says_what_is_wrong_with_it_in_one_line(tmp_path, capsys):
    with raises(wt.PolicyError, "missing_period", "user_used"):
        wt.order(lambda user_used: user_used)
    with raises(wt.PolicyError, "wrong_period"):
        wt.order(last=0.5)(lambda user_used: user_used)
    with raises(wt.PolicyError, "wrong_default"):
        wt.order(lambda procs, how="fast": procs)
    (tmp_path / "own.py").write_text("def widest(procs, factor=1):\n    return procs * factor\n")
    wt.logs.write_swf(tmp_path / "log.swf", made(1))
    for options, said in (
        ("most=3", "unknown option 'most' of the order"),
        ("factor=x", "factor of the order"),
        ("factor=1,factor=2", "given twice"),
    ):
        err = one_line(*call(capsys, "simulate", tmp_path / "log.swf", "--order", f"{tmp_path}/own.py:widest,{options}"))
        assert said in err


def test_history__is_not_audited_beyond_the_rules_for_all(golden):
    schedule = wt.simulate(made(3), wt.Easy(order=by_wait))
    report = schedule.audit()
    assert (report.violations, report.ok) == ((), True)
    golden("simulate", report.skipped["head_waits"])


@pytest.mark.parametrize("order", [of_last, decaying, by_wait], ids=["last", "half-life", "wait"])
@pytest.mark.parametrize("policy", [wt.Easy, wt.Conservative])
def test_history__goes_on_in_copies_of_a_simulation(policy, order):
    jobs = made(3)
    expected = wt.simulate(jobs, policy(order=order)).start
    simulation = wt.Simulation(jobs, policy(order=order))
    for time in (50, 90, 200):
        simulation.run_until(time)
        ahead = simulation.copy()
        assert np.array_equal(ahead.finish().start, expected)
    assert np.array_equal(simulation.finish().start, expected)
