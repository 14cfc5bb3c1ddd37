"""Further columns of a log, and random numbers of a run, in orders, policies and predictors of one's own."""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.campaign import Store, Threads, read_plan, run_campaign
from walltime.policy.log_view import LATER
from walltime.simulation import replicate
from walltime.workload.columns import BATCH_COLUMNS, INTERRUPTED, LIMIT, SCHEDULE_COLUMNS, SWF_COLUMNS

BASE = wt.workloads.Lublin99().generate(300, 64, 1.3, 1)
DRAW = np.random.default_rng(3)
JOBS = wt.Workload.from_arrays(
    submit=BASE.submit,
    runtime=BASE.runtime,
    procs=BASE.procs,
    requested=BASE.requested,
    machine_procs=64,
    columns={"deadline": BASE.submit + DRAW.integers(1, 90_000, 300), "value": DRAW.random(300) * 9, "energy": np.ones(300)},
)


@wt.order
def urgent(deadline, value, wait):
    return value * wait - deadline


@wt.order
def lottery(random):
    return random


@wt.order
def misspelled(deadlin):
    return deadlin


class Dearest:
    def choose(self, now, waiting, running, free):
        for job in sorted(waiting, key=lambda job: (-job.value, job.deadline)):
            if job.procs <= free:
                free -= job.procs
                yield job


class Valued:
    def predict(self, job):
        return 60 * job.value

    def observe(self, job):
        assert job.deadline > job.submit


@pytest.mark.slow
def test_further_columns__reach_orders_on_both_engines_and_the_auditor():
    kernel, reference = (wt.simulate(JOBS, wt.Easy(order=urgent), engine=engine) for engine in ("kernel", "reference"))
    assert kernel.start.tolist() == reference.start.tolist() != wt.simulate(JOBS, "easy").start.tolist()
    assert not kernel.audit().violations


def test_further_columns__reach_policies_and_predictors():
    assert wt.simulate(JOBS, Dearest).summary().jobs == 300
    valued = wt.simulate(JOBS, "easy", prediction=Valued)
    assert valued.predictions.predicted.tolist() != wt.simulate(JOBS, "easy", prediction="user").predictions.predicted.tolist()


def test_further_columns__missing_or_of_the_future_are_errors():
    with raises(wt.PolicyError, "missing_column", "deadlin"):
        wt.simulate(JOBS, wt.Easy(order=misspelled))
    with raises(wt.PolicyError, "unknown_parameter", "energy"):
        wt.order(lambda energy: energy)
    with raises(wt.PolicyError, "own_code_failure", "energy"):
        wt.simulate(JOBS, type("Peeking", (), {"choose": lambda self, now, waiting, running, free: [job for job in waiting if job.energy]}))


@pytest.mark.slow
def test_seed__reaches_orders():
    policy = wt.Easy(order=lottery)
    runs = [wt.simulate(JOBS, policy, seed=seed) for seed in (0, 0, 1)]
    assert runs[0].start.tolist() == runs[1].start.tolist() != runs[2].start.tolist()
    assert runs[2].start.tolist() == wt.simulate(JOBS, policy, seed=1, engine="reference").start.tolist()
    assert not runs[2].audit().violations
    assert len(set(replicate(lambda seed: JOBS, policy, range(3)).values("mean_wait"))) == 3


@pytest.mark.slow
def test_order_that_draws__makes_a_cell_for_each_seed(tmp_path):
    (tmp_path / "own.py").write_text("def lottery(random):\n    return random\n")
    (tmp_path / "plan.toml").write_text(
        '[campaign]\nseeds = 2\n[fixed]\ntrace = "log.swf"\norder = "own.py:lottery"\n[grid]\npolicy = ["easy", "conservative"]\n'
    )
    wt.logs.write_swf(tmp_path / "log.swf", BASE)
    plan = read_plan(tmp_path / "plan.toml", own=[tmp_path / "own.py"])
    assert run_campaign(plan, executor=Threads(1)).run == 4
    assert Store(plan.store).table()["mean_wait"].n_unique() > 2


def test_columns__that_are_known_later_are_declared():
    at_submission = {
        *("job_id", "submit", "requested", "requested_procs", "requested_memory", "user", "group", "executable", "queue", "partition"),
        *("preceding_job", "think_time", "requested_nodes", "most_nodes", "cpus_per_task", "tasks_per_node", "requested_gpus"),
        *("gpus_per_node", "gpus_per_task", "requested_gpu_type", "requested_mem_mb", "mem_mb_per_node", "mem_mb_per_cpu", "array_job"),
        *("array_task", "array_limit", "het_job", "nice", "site_factor", "time_min", "exclusive", "spread", "reservation", "constraints"),
        *("licences", "cluster", "procs", "planned"),
    }
    declared = {column.name for column in (*SWF_COLUMNS, *BATCH_COLUMNS, *SCHEDULE_COLUMNS, LIMIT, INTERRUPTED)}
    assert declared == at_submission | LATER
    assert not at_submission & LATER
