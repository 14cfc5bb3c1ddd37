"""The auditor judges perturbed schedules on machines as the reference engines do, and faults planted in it are found by that trial."""

import numpy as np
import pytest

from validation import mutations_machines
from validation.mutations_machines import trial
from walltime.auditor import pool_decisions, pool_flows, slurm_decisions

SAMPLE = {"pools": 150, "nodes": 60}
"""Mutants that are judged in every run of the tests."""


def judged(kind: str, mutants: int, seed: int = 0):
    return trial(mutants, seed, (kind,))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLE)
def test_a_fixed_sample__no_miss_and_no_false_alarm(kind):
    found = judged(kind, SAMPLE[kind])
    assert found.total("mutants") == SAMPLE[kind]
    assert 0 < found.total("valid") < SAMPLE[kind] // 2
    assert (found.total("misses"), found.total("false_alarms"), found.total("not_decided")) == (0, 0, 0), found.misjudged


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "mutants", "seed"), [("pools", 10_000, 10_000), *(("nodes", 500, 10_000 * k) for k in range(1, 5))])
def test_many__no_miss_and_no_false_alarm(kind, mutants, seed):
    found = judged(kind, mutants, seed)
    assert (found.total("misses"), found.total("false_alarms"), found.total("not_decided")) == (0, 0, 0), found.misjudged


def replaced(module, name, make):
    """A fault: what a function of the auditor gives is changed by `make(the function)`."""
    return lambda patch: patch.setattr(module, name, make(getattr(module, name)))


def by_method(owner, name, make):
    return lambda patch: patch.setattr(owner, name, make(getattr(owner, name)))


def never(function):
    return lambda *args, **kwargs: None


def nothing(function):
    return lambda *args, **kwargs: iter(())


def without_the_first(function):
    """Differences but for the first one."""

    def changed(*args, **kwargs):
        found = function(*args, **kwargs)
        next(found, None)
        yield from found

    return changed


def not_summed_up(function):
    """Periods that pass without use, and without new priorities."""

    def changed(self):
        self._next_sum += self.settings["priority_calc_period"]

    return changed


def changed_field(field, **changes):
    """The fields of a problem, but for some columns of one."""

    def make(function):
        def changed(*args):
            fields = function(*args)
            columns = {name: change(getattr(fields[field], name)) for name, change in changes.items()}
            return fields | {field: fields[field]._replace(**columns)}

        return changed

    return make


POOLS, NODES = pool_decisions.PoolsWalk, slurm_decisions.SlurmWalk
FAULTS = {
    "decisions are not compared": ("pools", by_method(POOLS, "run", nothing)),
    "the first difference is dropped": ("pools", by_method(POOLS, "run", without_the_first)),
    "capacity does not change": ("pools", by_method(POOLS, "_change_capacity", never)),
    "limits do not count": ("pools", by_method(POOLS, "_count", never)),
    "predictions are not used": ("pools", by_method(POOLS, "_predict", never)),
    "scores are all alike": ("pools", by_method(POOLS, "_score", lambda one: lambda *args: 0.0)),
    "which pools jobs have is not looked at": ("pools", by_method(POOLS, "_check_given", nothing)),
    "starts that are too late are passed over": ("pools", by_method(POOLS, "_too_late", lambda one: lambda self, job: None)),
    "a head reserves nothing": ("pools", replaced(pool_decisions, "_depth", lambda one: lambda policy: (0, one(policy)[1]))),
    "tiers do not count": ("pools", by_method(POOLS, "_sorted", lambda one: lambda self, order, tiers: one(self, order, False))),
    "Slurm's decisions are not compared": ("nodes", by_method(NODES, "run", nothing)),
    "ends and limits under Slurm are not looked at": ("nodes", by_method(NODES, "_check", nothing)),
    "priorities are all alike": ("nodes", by_method(NODES, "priority", lambda one: lambda *args: 1)),
    "use is not summed up": ("nodes", by_method(NODES, "_compute_priorities", not_summed_up)),
    "outages take no nodes": ("nodes", replaced(slurm_decisions, "problem_fields", changed_field("machine", outages=lambda own: []))),
    "jobs take any nodes": ("nodes", replaced(slurm_decisions, "problem_fields", changed_field("demands", nodes=np.ones_like))),
}
"""Faults of the auditor, and the kind of machine on which each shows."""


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, monkeypatch):
    kind, plant = FAULTS[fault]
    plant(monkeypatch)
    found, seed = 0, 0
    while found == 0 and seed < 4000:
        try:
            one = judged(kind, 200, seed)
        except Exception:  # a fault may be so bad that nothing can be audited
            return
        found, seed = one.total("misses") + one.total("false_alarms"), seed + 40
    assert found > 0, f"nothing was misjudged: {fault}"


def test_the_sources_of_the_trial_have_every_policy_on_machines():
    labels = {policy for policy, _, _ in mutations_machines.schedules_on_pools(3)}
    assert len(labels) > 8
    assert {policy for policy, _, _ in mutations_machines.schedules_on_nodes(3)}
    assert pool_flows.MOST_PARTITIONS >= 3
