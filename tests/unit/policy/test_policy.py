"""Policies and orders as data, their names, and what is said about impossible ones."""

from __future__ import annotations

import dataclasses
from datetime import datetime

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from tests.strategies import CLOCKS_FORWARD
from walltime.policy import UserOrder

JOBS = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[9, 4, 3, 2], procs=[2, 2, 1, 1], machine_procs=3)


# -------------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("fcfs", wt.NoBackfilling()),
        ("easy", wt.Easy()),
        (" EASY ", wt.Easy()),
        ("conservative", wt.Conservative()),
        ("conservative-scratch", wt.Conservative(variant="scratch")),
        ("hybrid:0", wt.Hybrid(depth=0)),
        ("hybrid:12", wt.Hybrid(depth=12)),
        ("hybrid:depth=12", wt.Hybrid(depth=12)),
    ],
)
def test_parse_policy__knows_the_names(text, policy):
    assert wt.policy.parse_policy(text) == policy


@pytest.mark.parametrize(
    "policy", [wt.NoBackfilling(), wt.Easy(), wt.Conservative(), wt.Conservative(variant="scratch"), wt.Hybrid(depth=4)]
)
def test_parse_policy__reads_a_policys_own_name(policy):
    assert wt.policy.parse_policy(policy.label) == policy


def test_policies__take_defaults_of_options():
    parse = wt.policy.POLICIES.parse
    assert parse("easy", order=wt.WFP, backfill_order=wt.SJF) == wt.Easy(order=wt.WFP, backfill_order=wt.SJF)
    assert parse("hybrid:2,order=sjf", order=wt.WFP) == wt.Hybrid(depth=2, order=wt.SJF)
    assert parse("fcfs", order=wt.SJF) == wt.NoBackfilling(order=wt.SJF)


@pytest.mark.parametrize("text", ["", "sjf", "easy:1", "hybrid:-1", "hybrid:1.5", "hybrid:x", "fcfs:0", "conservative:9"])
def test_parse_policy__says_what_is_wrong(golden, text):
    with pytest.raises(wt.PolicyError) as caught:
        wt.policy.parse_policy(text)
    golden("simulate", str(caught.value))


@pytest.mark.parametrize(("text", "order"), [("fcfs", wt.FCFS), ("SJF", wt.SJF), (" wfp ", wt.WFP)])
def test_parse_order__knows_the_names(text, order):
    assert wt.policy.parse_order(text) == order


@pytest.mark.parametrize("text", ["", "orders.txt:mine", "unknown"])
def test_parse_order__lists_the_known_ones(golden, text):
    with pytest.raises(wt.PolicyError) as caught:
        wt.policy.parse_order(text)
    golden("simulate", str(caught.value))
    assert "fcfs, sjf, wfp" in str(caught.value)


@pytest.mark.slow
def test_parse_order__takes_a_function_from_a_file(tmp_path):
    file = tmp_path / "orders.py"
    file.write_text("import walltime\n@walltime.order\ndef marked(procs):\n    return procs\ndef plain(wait):\n    return -wait\n")
    marked, plain = wt.policy.parse_order(f"{file}:marked"), wt.policy.parse_order(f"{file}:plain")
    assert [marked.score(1, 2, 3, 4), plain.score(1, 2, 3, 4)] == [3.0, -1.0]
    assert [marked.name, plain.name] == ["marked", "plain"]
    # The one-wide job, not the two-wide one that arrived first, comes last when job 1 ends.
    assert (
        wt.simulate(JOBS, wt.NoBackfilling(order=marked)).start.tolist()
        == wt.simulate(JOBS, wt.NoBackfilling(order=marked), engine="reference").start.tolist()
    )


def test_parse_order__names_a_missing_file(golden, tmp_path):
    with pytest.raises(wt.PolicyError) as caught:
        wt.policy.parse_order(f"{tmp_path}/none.py:mine")
    golden("simulate", str(caught.value))


def test_parse_order__names_a_missing_function(tmp_path):
    file = tmp_path / "orders.py"
    file.write_text("other = 3\n")
    for name, words in (("mine", f"{file} has no order named 'mine'"), ("other", f"{file}:other is not an order; make it a function")):
        with pytest.raises(wt.PolicyError) as caught:
            wt.policy.parse_order(f"{file}:{name}")
        assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("text", "kind"), [("def mine(:", "SyntaxError"), ("1 / 0", "ZeroDivisionError"), ("import no_such", "ModuleNotFoundError")]
)
def test_parse_order__says_why_a_file_cannot_be_loaded(tmp_path, text, kind):
    file = tmp_path / "orders.py"
    file.write_text(text)
    with pytest.raises(wt.PolicyError) as caught:
        wt.policy.parse_order(f"{file}:mine")
    assert str(caught.value).startswith(f"{file}:1: cannot be loaded: {kind}: ")


def test_labels__say_what_differs_from_first_come_first_served():
    labels = {
        wt.Easy(): "easy",
        wt.Easy(order=wt.SJF): "easy:order=sjf",
        wt.Easy(order=wt.SJF, backfill_order=wt.SJF): "easy:order=sjf",
        wt.Easy(backfill_order=wt.SJF): "easy:backfill-order=sjf",
        wt.Hybrid(depth=3, order=wt.WFP, backfill_order=wt.FCFS): "hybrid:order=wfp,backfill-order=fcfs,depth=3",
        wt.Conservative(variant="scratch", order=wt.WFP): "conservative-scratch:order=wfp",
    }
    assert {policy: policy.label for policy in labels} == labels
    for label in labels.values():
        assert wt.policy.parse_policy(label).label == label


# ------------------------------------------------------------------------------------------------------- impossible policies


@pytest.mark.parametrize("depth", [-1, 1.0, "3", None, True])
def test_hybrid__refuses_a_bad_depth(golden, depth):
    with pytest.raises(wt.PolicyError) as caught:
        wt.Hybrid(depth=depth)
    golden("simulate", str(caught.value))


@pytest.mark.parametrize("exponent", [0, -1, 2.0, "3"])
def test_wfp__refuses_a_bad_exponent(golden, exponent):
    with pytest.raises(wt.PolicyError) as caught:
        wt.policy.Wfp(exponent=exponent)
    golden("simulate", str(caught.value))


def test_conservative__refuses_an_unknown_variant():
    with raises(wt.PolicyError, "wrong_value", "variant", "'fixpoint'"):
        wt.Conservative(variant="fixpoint")


@pytest.mark.parametrize("policy", [wt.NoBackfilling, wt.Easy, wt.Conservative, wt.Hybrid])
def test_policy__takes_the_specification_of_an_order(policy):
    assert policy(order="sjf") == policy(order=wt.SJF)
    with raises(wt.PolicyError, "wrong_value", "7"):
        policy(order=7)


@pytest.mark.parametrize("policy", [wt.Easy, wt.Hybrid])
def test_policy__takes_the_specification_of_a_backfill_order(policy):
    assert policy(backfill_order="wfp:exponent=2") == policy(backfill_order=wt.policy.Wfp(exponent=2))
    with raises(wt.PolicyError, "wrong_value", "7"):
        policy(backfill_order=7)


# ------------------------------------------------------------------------------------------------------------ a user's order


def test_user_order__gets_what_it_asks_for():
    @wt.order
    def all_four(submit, procs, planned, wait):
        return submit * 1000 + procs * 100 + planned * 10 + wait

    assert all_four.score(wait=1, planned=2, procs=3, submit=4) == 4321.0
    assert all_four(4, 3, 2, 1) == 4321
    assert isinstance(all_four, UserOrder)


def test_user_order__gets_columns_and_the_calendar():
    @wt.order
    def many(requested, user, hour):
        return requested * 10000 + user * 100 + hour

    assert many.score(1, 2, 3, 4, requested=9, user=8, hour=7) == 90807.0
    assert many.score(1, 2, 3, 4, hour=7) == 19907.0  # unknown columns are -1, the request is what is planned
    with raises(wt.PolicyError, "unknown_start_time", "hour", "'many'"):
        many.score(1, 2, 3, 4, user=8)


def test_user_order__refuses_an_unknown_argument():
    with pytest.raises(wt.PolicyError) as caught:
        wt.order(lambda wait, user, memory, runtime: wait)
    expected = (
        "the order '<lambda>' has unknown parameters: memory, runtime. Valid parameters: wait, planned, procs, submit, elapsed, "
        "requested, user, group, executable, queue, partition, job_id, hour, weekday, longest, waiting, queued, free, machine, random, "
        "user_waited, user_used, user_started, or the same of group, queue and partition, and other columns of the log that are known at "
        "submission"
    )
    assert str(caught.value).endswith(f": {expected}")
    assert "test_policy.py:" in str(caught.value)


def test_user_order__refuses_a_function_without_parameters():
    with raises(wt.PolicyError, "unknown_parameter", "test_policy.py", "nothing"):

        @wt.order
        def nothing():
            return 1


def test_user_order__that_cannot_be_compiled_is_named_in_one_line():
    @wt.order
    def says_nothing(wait):
        return None

    with raises(wt.PolicyError, "own_code_failure", "test_policy.py", "'says_nothing'", None):
        wt.simulate(JOBS, wt.Easy(order=says_nothing))


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        ("return {}[wait]", 2, "it raises KeyError: 1"),
        ("return 'long'", 1, "it returns 'long', which is no number"),
        ("raise ValueError('no')", 2, "it raises ValueError: no"),
        ("return unknown * wait", 2, "it raises NameError: name 'unknown' is not defined"),
        ("wait += 1; return len({wait: set()})", 2, "it may use numbers, other such functions and the module math, and no more"),
    ],
)
@pytest.mark.slow
def test_user_order__that_cannot_be_compiled_says_what_it_does(golden, tmp_path, code, line, said):
    file = tmp_path / "own.py"
    file.write_text(f"def mine(wait):\n    {code}\n")
    with pytest.raises(wt.PolicyError) as caught:
        wt.simulate(JOBS, f"easy:order={file}:mine")
    golden("simulate", str(caught.value))


@pytest.mark.parametrize(("role", "start"), [("order", [0, 13, 10, 4, 2]), ("backfill_order", [0, 10, 15, 4, 2])])
@pytest.mark.slow
def test_user_order__works_in_both_roles(role, start):
    # 3 processors; 1 has two of them until 10; 2 and 3 need all three for 5 and 3; 4 (4 long) and 5 (2 long) need one.
    # All but 1 arrive at 2; the shortest is first by the user's order.
    #   as the order           5 starts at 2 on the free processor; 3 is the head then, shadow time 10. 4 fits at 4, when 5 ends.
    #                          At 10 3 starts, and 2 at 13.
    #   as the backfill order  2 is the head, shadow time 10; 5 is tried first, 2-4, then 4, 4-8. At 10 2 starts, and 3 at 15.
    # First come, first served in both roles would start 4 at 2 and 5 at 6.
    @wt.order
    def shortest(requested):
        return -requested

    jobs = wt.Workload.from_arrays(submit=[0, 2, 2, 2, 2], runtime=[10, 5, 3, 4, 2], procs=[2, 3, 3, 1, 1], machine_procs=3)
    for engine in ("kernel", "reference"):
        assert wt.simulate(jobs, wt.Easy(**{role: shortest}), engine=engine).start.tolist() == start


# Found while writing these tests.


def test_user_order__with_a_statement_that_numba_does_not_know_is_named_in_one_line():
    @wt.order
    def reads_a_file(wait):
        with open("priorities") as file:  # noqa: PTH123
            return float(file.read())

    with raises(wt.PolicyError, "own_code_failure", "test_policy.py", "'reads_a_file'"):
        wt.simulate(JOBS, wt.Easy(order=reads_a_file))


def test_user_order__that_returns_nothing_is_a_policy_error_in_the_reference_too():
    @wt.order
    def nothing_comes_back(wait):
        return None

    with pytest.raises(wt.PolicyError):
        wt.simulate(JOBS, wt.Easy(order=nothing_comes_back), engine="reference")


def test_user_order__refuses_a_builtin_without_a_signature():
    with pytest.raises(wt.PolicyError):
        wt.order(max)


def test_hybrid__of_any_depth_can_be_run_or_is_refused():
    try:
        policy = wt.policy.parse_policy("hybrid:99999999999999999999")
    except wt.PolicyError:
        return
    assert wt.simulate(JOBS, policy).start.tolist() == wt.simulate(JOBS, wt.Hybrid(depth=4)).start.tolist()


def test_parse_order__reads_the_options_of_wfp():
    assert wt.policy.parse_order("wfp:exponent=2,threshold=0.75") == wt.policy.Wfp(exponent=2, threshold=0.75)
    for text, words in (
        ("wfp:power=2", ("unknown_option", "'power'")),
        ("wfp:exponent=2,exponent=3", ("repeated_option", "exponent")),
        ("wfp:exponent=x", ("wrong_value", "exponent", 1)),
        ("wfp:threshold=2", ("wrong_value", "threshold", 0, 1)),
    ):
        with raises(wt.PolicyError, *words):
            wt.policy.parse_order(text)


# -------------------------------------------------------------------------------------------- what a user's order may read

# 2 processors. 1 has both of them until 10; 2 to 5, which are 1 s long, wait for it, two wide, so that one starts after the other.
FIVE = {"submit": [0, 1, 1, 1, 1], "runtime": [10, 1, 1, 1, 1], "requested": [10, 4, 3, 2, 1], "procs": [2] * 5, "machine_procs": 2}
STOCKHOLM = wt.workload.Origin(unix_start_time=CLOCKS_FORWARD - 7200, time_zone="Europe/Stockholm")  # a Sunday, 0:00 local time
ENGINES = ("kernel", "reference")


@wt.order
def by_user(user):
    return user


@wt.order
def by_request(requested):
    return -requested


@wt.order
def by_planned(believed):  # the former name of planned
    return -believed


@wt.order
def turned_round_at_three(hour, job_id):
    return -job_id if hour >= 3 else job_id


@wt.order
def turned_round_on_mondays(weekday, job_id):
    return -job_id if weekday == 0 else job_id


@pytest.mark.parametrize("engine", ENGINES)
def test_user_order__reads_a_column(engine):
    known = wt.Workload.from_arrays(**FIVE, columns={"user": np.array([1, 3, 9, -1, 3])})
    assert wt.simulate(known, wt.Easy(order=by_user), engine=engine).start.tolist() == [0, 11, 10, 13, 12]
    unknown = wt.Workload.from_arrays(**FIVE)  # equal scores leave the order of arrival
    assert wt.simulate(unknown, wt.Easy(order=by_user), engine=engine).start.tolist() == [0, 10, 11, 12, 13]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_user_order__requested_is_the_users_request_and_planned_the_schedulers(engine):
    jobs = wt.Workload.from_arrays(**FIVE).with_planned([10, 1, 2, 3, 4])
    assert wt.simulate(jobs, wt.Easy(order=by_request), engine=engine).start.tolist() == [0, 13, 12, 11, 10]
    assert wt.simulate(jobs, wt.Easy(order=by_planned), engine=engine).start.tolist() == [0, 10, 11, 12, 13]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("begin", "start"), [(0, [0, 13, 12, 11, 10]), (7200 - 12, [0, 12, 13, 11, 10]), (7200 - 10, [0, 10, 11, 12, 13])])
def test_user_order__reads_the_hour_at_the_site(engine, begin, start):
    # The clocks go from 2:00 to 3:00 two hours after midnight. The jobs start in turn from 10 s on.
    origin = dataclasses.replace(STOCKHOLM, unix_start_time=STOCKHOLM.unix_start_time + begin)
    jobs = wt.Workload.from_arrays(**FIVE, origin=origin)
    assert wt.simulate(jobs, wt.Easy(order=turned_round_at_three), engine=engine).start.tolist() == start


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("zone", ["Europe/Stockholm", "7200", "Asia/Kolkata"])
def test_user_order__reads_the_weekday_at_the_site(engine, zone):
    midnight = int(datetime(2023, 3, 27, tzinfo=wt.workload.Origin(time_zone=zone).tzinfo()).timestamp())  # from Sunday to Monday
    jobs = wt.Workload.from_arrays(**FIVE, origin=wt.workload.Origin(unix_start_time=midnight - 12, time_zone=zone))
    assert wt.simulate(jobs, wt.Easy(order=turned_round_on_mondays), engine=engine).start.tolist() == [0, 12, 13, 11, 10]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("role", ["order", "backfill_order"])
def test_user_order__that_reads_the_clock_of_a_log_without_dates(golden, engine, role):
    with pytest.raises(wt.PolicyError) as caught:
        wt.simulate(JOBS, wt.Easy(**{role: turned_round_on_mondays}), engine=engine)
    golden("simulate", str(caught.value))


@pytest.mark.slow
def test_user_order__reads_columns_and_clock_in_a_batch():
    # Estimates that are the kill limit too change what is requested from case to case, in one and the same memory.
    columns = {"user": np.array([1, 3, 9, -1, 3])}
    jobs = wt.Workload.from_arrays(**FIVE | {"runtime": [10, 1, 2, 3, 4], "requested": [10, 4, 4, 3, 4]}, columns=columns, origin=STOCKHOLM)
    orders = (by_request, by_user, turned_round_at_three, turned_round_on_mondays)
    cases = [wt.simulation.Case(wt.Easy(order=order), wt.estimates.FModel(9), seed) for order in orders for seed in range(6)]
    cases += [
        wt.simulation.Case(wt.Easy(order=by_request), wt.estimates.FModel(3, limit="user")),
        wt.simulation.Case(wt.Easy(order=by_request), wt.estimates.UserEstimates()),
    ]
    batch = wt.simulate_many(jobs, cases, workers=1)
    for case, summary in zip(cases, batch.summaries, strict=True):
        alone = wt.simulate(jobs.with_estimates(case.estimates, case.seed), case.policy)
        assert summary.as_dict() == alone.summary().as_dict(), case
    assert len({summary.mean_wait for summary in batch.summaries[:6]}) > 1


@pytest.mark.slow
def test_weighted_wait__under_an_order_that_reads_columns_and_the_clock():
    jobs = wt.Workload.from_arrays(**FIVE, columns={"user": np.array([1, 3, 9, -1, 3])}, origin=STOCKHOLM)

    @wt.order
    def weight(user, hour, requested):
        return (user + 1) * (hour + 1) + requested * 0

    schedule = wt.simulate(jobs, wt.Easy(order=weight))
    assert schedule.start.tolist() == [0, 11, 10, 13, 12]
    assert schedule.weighted_wait() == pytest.approx((4 * 10 + 10 * 9 + 0 * 12 + 4 * 11) / (2 + 4 + 10 + 0 + 4))


def test_on_pools__a_kind_of_passes_that_the_engine_for_pools_has_not_is_refused_there():
    class Widest(wt.Easy):
        """A policy of a kind of its own, which says nothing of pools."""

        @property
        def passes(self):
            return super().passes._replace(kind="widest")

    assert wt.Easy().on_pools.engine == "kernel"
    assert not Widest().on_pools.engine
