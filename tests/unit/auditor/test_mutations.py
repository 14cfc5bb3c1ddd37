"""The auditor on schedules in which one thing was made wrong: no miss, no false alarm; and what is planted in the auditor is found so."""

import ast

import pytest

import walltime as wt
from validation.faults import AUDITOR, FAULTS, faulty, in_a_process
from validation.mutations import EVERY, POLICIES, scores


def test_every_policy_of_the_registry__is_on_trial():
    of_numbers = {variant.loaded for variant in wt.policy.POLICIES.variants.values() if variant.loaded().machines["number"].engine}
    assert {type(wt.policy.parse_policy(policy)) for policy in POLICIES} == of_numbers


@pytest.mark.slow
def test_auditor__misses_nothing_and_raises_no_false_alarm():
    found = scores(1_500, 102)
    wrong = {name: score.examples for name, score in found.items() if score.misses or score.false_alarms}
    assert not wrong
    assert {name.removesuffix(" with predictions") for name in found} == {policy.partition(":")[0] for policy in POLICIES} | {EVERY}
    assert all(score.broken for score in found.values())


@pytest.mark.nightly
def test_auditor__misses_nothing_in_many():
    found = scores(40_000, 103)
    assert not {name: score.examples for name, score in found.items() if score.misses or score.false_alarms}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_faults__stand_where_the_auditor_can_have_them(name):
    fault = FAULTS[name]
    assert ast.dump(faulty(name)) != ast.dump(ast.parse((AUDITOR / fault["file"]).read_text()))
    assert [policy for policy in POLICIES if policy.startswith(fault["policies"])]


@pytest.mark.parametrize(
    ("right", "times"), [("( used >\n self.workload.machine_procs )", 1), ("used > self.workload.procs", 0), ("used", 2)]
)
def test_faulty__finds_an_expression_by_its_syntax_and_needs_it_once(monkeypatch, right, times):
    monkeypatch.setitem(FAULTS, "one", {"file": "rows.py", "function": "Rows.over_capacity", "right": right, "wrong": "0 > 1"})
    if times == 1:
        assert "over = 0 > 1" in ast.unparse(faulty("one"))
    else:
        with pytest.raises(ValueError, match=f"{times} times"):
            faulty("one")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["the head needs more than is free"])
def test_some_planted_faults__are_found(name):
    assert in_a_process(name) is not None


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_every_planted_fault__is_found(name):
    assert in_a_process(name) is not None
