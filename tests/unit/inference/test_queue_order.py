"""The order of the queue as a rule: what a doubling of a job's processors or of its request is worth."""

from dataclasses import replace

import numpy as np
import pytest

from tests.sites import MACHINE, ONE_POOL, jobs_of, recorded_as
from walltime.inference import infer
from walltime.inference.candidate_rules import RecordedLog
from walltime.inference.inference import unmodelled
from walltime.inference.order_choice import recorded_choices
from walltime.inference.queue_order import compiled, contradiction, order_text, weighted
from walltime.inference.rule_trial import AtOnce, RuleTrial
from walltime.machine import Limit
from walltime.policy import parse_policy

DOUBLING = 4 * 3600


def long_log(machine, policy):
    """A log of some months, whose jobs run so long."""
    made = jobs_of(machine, 500)
    times = {name: getattr(made, name) * 20 for name in ("submit", "runtime", "requested", "planned")}
    return recorded_as(replace(made, **times), machine, policy)


def testweighted__moves_a_job_back_by_the_weight_for_each_doubling():
    order = weighted((DOUBLING, 0)).order
    assert order.score(wait=0, planned=60, procs=8, submit=0) == pytest.approx(-3 * DOUBLING, abs=2)
    assert order.score(wait=0, planned=60, procs=4, submit=DOUBLING) == pytest.approx(-3 * DOUBLING, abs=2)
    assert not order.reads_time  # so it is sorted once, and not at every pass


def testweighted__is_a_policy_that_a_file_can_name():
    for weights in ((DOUBLING, 0), (0, -DOUBLING), (DOUBLING, -DOUBLING)):
        assert parse_policy(weighted(weights).label) == weighted(weights)


def test_order_text__names_both_weights(golden):
    text = order_text((DOUBLING, -DOUBLING))
    golden("infer", text)


def test_compiled__leaves_out_orders_that_only_the_slow_engine_simulates():
    """A limit makes a machine of pools of one, where orders by the users' history are not compiled."""
    log = long_log(ONE_POOL, "easy")
    search = RuleTrial(log, ONE_POOL.procs, 1, None)
    orders = {parse_policy("easy:order=expr:-user_used,half-life=604800"): "", parse_policy("easy:order=sjf"): ""}
    assert compiled(search, orders) == orders
    assert search.notes == []
    search.rules = search.rules._replace(at_once=(AtOnce(1, 2, False),))
    assert list(compiled(search, orders)) == [parse_policy("easy:order=sjf")]
    assert len(search.notes) == 1


def test_unmodelled__names_partitions_and_resources_of_the_jobs():
    log = long_log(MACHINE, "easy")
    assert "partitions" in unmodelled(log)
    gpus = replace(log, columns={"wait": log.columns["wait"], "gpus": np.ones(len(log), np.int64)})
    assert "GPUs" in unmodelled(gpus)
    assert "partitions" not in unmodelled(gpus)
    assert unmodelled(replace(log, columns={"wait": log.columns["wait"]})) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("with_machine", [True, False])
def test_infer__of_a_log_with_gpus_and_partitions_ends_and_names_what_it_does_not_model(with_machine):
    log = long_log(MACHINE, "easy:order=sjf")
    log = replace(log, columns={**log.columns, "gpus": np.where(log.columns["partition"] == 2, 1, 0)})
    machine = replace(MACHINE, pools=(MACHINE.pools[0], replace(MACHINE.pools[1], second=4)), limits=(Limit(("user",), jobs=50),))
    found = infer(log, machine=machine if with_machine else None)
    assert (found.refused, found.stopped) == ("", "")
    assert any("GPUs" in note and "partitions" in note for note in found.notes)
    assert not any(rule.kind == "part" for rule in found.rules)


@pytest.mark.parametrize("policy", ["easy", "easy:order=sjf", "easy:order=saf"])
def test_contradiction__by_comparable_jobs_that_waited(policy):
    """Small jobs wait less here, as a partition of their own is emptier: only choices within a partition tell the orders apart."""
    log = long_log(MACHINE, policy)
    log = replace(log, columns={**log.columns, "user": np.zeros(len(log), np.int64)})
    recorded = RecordedLog.of(log, log.submit + log.recorded_wait)
    choices = recorded_choices(recorded, MACHINE.procs, recorded.known)
    rejected = {name for name in ("easy", "easy:order=sjf", "easy:order=saf") if contradiction(choices, log, parse_policy(name))}
    assert policy not in rejected
    assert policy != "easy" or rejected == {"easy:order=sjf", "easy:order=saf"}
