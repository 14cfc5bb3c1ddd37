"""The tables of which policy runs where, cell by cell: where one says yes it runs, where one says no it is refused with that reason."""

import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.auditor.passes.events import PASSES
from walltime.engine.interface.choice import FEATURES, LIMITED, MACHINES, PASS_KINDS, support
from walltime.engine.interface.load import PASS_OF
from walltime.machine import Limit, Machine, Outage, Overhead, Partition, Pool, Window
from walltime.policy.base import PassSpec
from walltime.policy.plain import PlainPolicy
from walltime.simulation.specification import Scheduler

TABLES = Path(__file__).resolve().parents[3] / "docs" / "generators" / "support_tables.py"
_spec = importlib.util.spec_from_file_location("support_tables", TABLES)
tables = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(tables)


class InTurn(PlainPolicy):
    """Starts what fits, in order of arrival."""

    def choose(self, now, waiting, running, free):
        for job in waiting:
            if job.procs > free:
                return
            free -= job.procs
            yield job


class Halved:
    """Half of what was asked for."""

    def predict(self, job):
        return job.requested / 2

    def observe(self, job):
        """It learns nothing."""


@wt.order(last=20)
def by_use(user_used):
    """Who has used least first."""
    return -user_used


COLUMNS = {"user": [1, 2, 1, 3, 2, 1, 3, 2], "partition": [1, 1, 2, 1, 1, 2, 1, 1]}
POOLS = (Pool("a", 4, 1, 1), Pool("b", 2, 1))
PARTS = (Partition("1", ("a",)), Partition("2", ("b",)))
MACHINE = Machine(POOLS, PARTS)
CHANGES = {
    "second": {},
    "outages": {"outages": (Outage("a", 15, 25, 1),)},
    "limits": {"limits": (Limit(("user",), jobs=1),)},
    "tiers": {"partitions": (PARTS[0], replace(PARTS[1], tier=1))},
    "windows": {"windows": (Window("08:00", "09:00"),)},
    "overheads": {"overhead": Overhead(end=1)},
}
ONLY_OF_MACHINES = tuple(CHANGES)
POLICIES = [*(policy for policy in tables.policies() if type(policy) is not PlainPolicy), InTurn()]


def called(policy, machine, feature):
    """How a policy is simulated on a kind of machine with a feature: the workload, the scheduler and the options."""
    columns = {name: np.array(values) for name, values in COLUMNS.items()}
    options = {}
    if feature == "second":
        columns["gpus"] = np.array([0, 1, 0, 1, 0, 0, 0, 0])
    if feature == "feedback":
        columns |= {"preceding_job": np.array([-1, -1, -1, -1, 2, 3, -1, 5]), "think_time": np.full(8, 2)}
    workload = wt.Workload.from_arrays(
        submit=[0, 1, 2, 3, 4, 6, 8, 9],
        runtime=[10, 10, 5, 4, 12, 3, 8, 2],
        requested=[12, 20, 5, 8, 12, 9, 9, 3],
        procs=[3, 4, 1, 1, 2, 2, 1, 3],
        machine_procs=4 if machine == "number" else 6,
        columns=columns,
        origin=wt.workload.Origin(unix_start_time=1_700_000_000, time_zone="UTC"),
        feedback=feature == "feedback",
    )
    if feature in ("history", "threshold"):
        policy = replace(policy, order=by_use if feature == "history" else wt.policy.Wfp(threshold=0.5))
    if machine != "number":
        options["machine"] = replace(MACHINE, by_node=machine == "nodes", **CHANGES.get(feature, {}))
    if feature in ("predictor", "plain"):
        options["prediction"] = wt.Prediction("last" if feature == "predictor" else wt.predictors.PlainPredictor(Halved))
    if feature == "events":
        options["coincident"] = "one-by-one"
    if feature == "dialect":
        options["coincident"] = "sequential"
    if feature == "effects":
        options["dynamics"] = True
    return workload, policy, options


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("feature", [None, *FEATURES])
@pytest.mark.parametrize("machine", MACHINES)
def test_table__each_cell_is_as_it_says(golden, machine, feature):
    if machine == "number" and feature in ONLY_OF_MACHINES:
        return
    for policy in POLICIES:
        if machine == "pools" and policy.plans_nodes:
            assert not support(policy, machine).engine, "a file of pools is one of nodes to it"
            continue
        found = support(policy, machine, {None: [], "plain": ["predictor", "plain"]}.get(feature, [feature]))
        workload, own, options = _called_or_none(policy, machine, feature) or (None, None, None)
        if own is None:
            assert not found.engine, f"{policy.label} takes no such order"
            continue
        if not found.engine:
            with pytest.raises(wt.PolicyError) as refused:
                wt.simulate(workload, own, **options)
            assert str(refused.value) == f"{own.label} cannot be simulated {found.why}"
            continue
        if feature == "steps":
            simulation = wt.Simulation(workload, own, **options)
            while simulation.step():
                pass
            assert simulation.finish().start.tolist() == wt.simulate(workload, own, **options).start.tolist()
        simulate = _step_by_step if (machine, feature) in LIMITED and feature == "plain" else wt.simulate
        schedule = simulate(workload, own, **options)
        assert (schedule.engine, schedule.simulated_on) == (found.engine, machine), own.label
        if found.engine == "reference":
            with pytest.raises(wt.PolicyError) as refused:
                simulate(workload, own, engine="kernel", **options)
            golden("simulate", str(refused.value))
        reference = wt.simulate(workload, own, engine="reference", **options)
        for name in ("start", "end", "kind", "reserved_start"):
            assert getattr(schedule, name).tolist() == getattr(reference, name).tolist(), (own.label, name)


def _step_by_step(workload, policy, **options):
    return wt.Simulation(workload, policy, **options).finish()


def test_a_predictor_in_plain_python__is_called_by_the_compiled_loop_in_one_go():
    workload, policy, options = called(wt.policy.Easy(), "number", "plain")
    compiled = wt.simulate(workload, policy, engine="kernel", **options)
    assert compiled.engine == wt.simulate(workload, policy, **options).engine == "kernel"
    assert compiled.start.tolist() == _step_by_step(workload, policy, **options).start.tolist()


def _called_or_none(policy, machine, feature):
    try:
        return called(policy, machine, feature)
    except wt.PolicyError:
        return None


def test_pages__have_both_tables():
    page = (TABLES.parents[1] / "reference" / "promises.md").read_text()
    assert "<!-- generated: supported machines -->" in page
    assert "<!-- generated: supported features -->" in page
    text = tables.supported("machines")
    assert "| `double` | compiled | plain Python |" in text
    assert "| has none |" in tables.supported("features")


def test_scheduler__with_everything_at_once_says_the_first_reason(golden):
    golden("simulate", support(Scheduler.of("los").policy, "pools", ["history"]).why)


@pytest.mark.parametrize("engine", ["auto", "kernel", "reference"])
def test_passes_of_an_unknown_kind__are_refused_in_one_line(engine):
    @dataclass(frozen=True)
    class Mine(wt.policy.Double):
        passes = PassSpec("mine", 1)

    jobs = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    with raises(wt.PolicyError, "unsupported_policy", "Mine", "'mine'", "head"):
        wt.simulate(jobs, Mine(), engine=engine)


def test_every_kind_of_passes__has_its_place_in_the_engines_and_the_auditor():
    apart = {"python", "oar", "slurm", "unknown"}  # which have loops of their own, or none
    assert set(PASS_OF) == set(PASSES) | {"particular"} == set(PASS_KINDS) - apart  # which has an auditor of its own
