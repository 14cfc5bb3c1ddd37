"""Starts at random are no rules: what `infer` says of a record that no scheduler made."""

from dataclasses import replace

import pytest

import walltime as wt
from tests.unit.inference.test_one_step import planted, site
from validation.planted_rules import at_random
from walltime.inference import infer, rule_search
from walltime.inference.candidate_rules import InferredPool
from walltime.inference.page import inference_page, tables_of, verdict
from walltime.inference.rule_trial import RuleProposal, RuleTrial
from walltime.machine import Outage
from walltime.policy import parse_policy

DAY = 86_400


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("two hours", marks=pytest.mark.nightly),
        "half an hour",
        pytest.param("ten minutes", marks=pytest.mark.nightly),
        pytest.param("by number", marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("procs", [16, pytest.param(64, marks=pytest.mark.nightly)])
def test_infer__refuses_a_record_whose_starts_are_random(kind, procs):
    log = at_random(kind, 2_000, procs, seed=1)
    found = infer(log)
    assert found.rules == []
    assert dict(inference_page(found, log).numbers)["agreement of EASY"] == f"{found.after.prompt_f1:.2f}"
    assert "nothing is inferred" in found.refused
    assert found.after == found.before
    assert found.after.followed > 0.98
    assert found.after.followed_promptly < 0.15
    assert found.machine.overhead.start == found.machine.overhead.end == 0
    assert found.as_dict()["after"]["followed_promptly"] == pytest.approx(found.after.prompt / found.after.proposals)


@pytest.mark.nightly
def test_infer__reports_both_shares_where_half_the_jobs_start_at_random(golden):
    log = at_random("half at once", 2_000, 16, seed=2)
    found = infer(log)
    assert found.rules == []
    assert found.refused == ""
    assert found.after.followed > 0.95
    assert 0.4 < found.after.followed_promptly < 0.6
    said = verdict(found)[0]
    golden("infer", said)
    groups = tables_of(found)[-1]
    assert {"proposals followed", "followed promptly"} <= {str(head) for head in groups.columns}
    assert "followed promptly" in str(dict(inference_page(found, log).numbers))


@pytest.mark.slow
def test_outages__of_one_held_out_week_are_within_the_noise():
    """Outages are judged like other rules: two of them gain in a single held-out week and lose in none, within two standard errors."""
    every_ten_days, two = (RuleTrial(planted(site(outages=days_off(*days))), 64, 1, None) for days in ((10, 20, 30, 40, 50), (20, 45)))
    for search in (every_ten_days, two):
        rule_search._outages(search)
    assert [(rule.kind, rule.gain > 2 * rule.error) for rule in every_ten_days.kept] == [("outage", True)]
    assert two.kept == []
    assert "better in 1 week, worse in 0" in two.notes[-1]


def days_off(*days: int) -> tuple[Outage, ...]:
    return tuple(Outage("all", day * DAY, day * DAY + DAY // 2, announced=0) for day in days)


@pytest.mark.slow
def test_free_runs__leave_out_a_rule_with_which_they_agree_less(monkeypatch):
    """A site that starts jobs in order of arrival, and an order that one-step agreement is made to prefer."""
    drawn = wt.workloads.Lublin99().generate(jobs=2_000, machine_procs=64, load=0.9, seed=3)
    times = {name: getattr(drawn, name) * 80 for name in ("submit", "runtime", "requested", "planned")}
    log = replace(drawn, **times)
    log = replace(log, columns={**log.columns, "wait": wt.simulate(log, "fcfs").wait})
    search = RuleTrial(log, 64, 1, None)
    fcfs = search.rules._replace(policy=parse_policy("fcfs"))
    assert search.keep(RuleProposal("policy", "in order", "", fcfs), search.ask(fcfs))
    monkeypatch.setattr(RuleTrial, "is_sure", lambda *_, **__: True)
    largest = search.rules._replace(policy=parse_policy("easy:order=ljf"))
    assert not search.keep(RuleProposal("policy", "the longest first", "", largest), search.ask(largest))
    assert search.rules == fcfs
    assert "changes from 1.00 to" in search.notes[-1]


def test_free_runs__leave_out_a_rule_with_which_waits_are_much_longer(monkeypatch):
    """A part of the machine that is too small keeps the ranks of waits about as they are, and makes them many times as long."""
    drawn = wt.workloads.Lublin99().generate(jobs=2_000, machine_procs=64, load=0.6, seed=3)
    times = {name: getattr(drawn, name) * 80 for name in ("submit", "runtime", "requested", "planned")}
    log = replace(drawn, **times)
    log = replace(log, columns={**log.columns, "wait": wt.simulate(log, "easy").wait})
    search = RuleTrial(log, 64, 1, None)
    monkeypatch.setattr(RuleTrial, "is_sure", lambda *_, **__: True)
    monkeypatch.setattr("walltime.inference.rule_trial.RANKS", 2.0)
    small = search.rules._replace(parts=(InferredPool(4, int(log.requested.max()), 4),))
    assert not search.keep(RuleProposal("part", "a small part", "", small), search.ask(small))
    assert search.kept == []
    assert "the mean error of a wait" in search.notes[-1]
