"""What a side-car that sets TimeMin would do, as a change of a what-if."""

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.machine import Machine, Partition, Pool
from walltime.slurm.sidecar.selection import time_min_of
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.whatif.adjustment import Adjustment, parse_adjustment
from walltime.whatif.change import parse_change
from walltime.whatif.changes import apply_change
from walltime.whatif.setting import Setting

POOLS = (Pool("all", 4, 1),), (Partition("main", ("all",)),)
EASY = Machine(*POOLS, policy="easy")
SLURM = Machine(*POOLS, policy="slurm")
SOFT = {"SchedulerParameters": "time_min_as_soft_limit", "SLURM_VERSION": "25.11.0"}


def hole(runtime: int) -> wt.Workload:
    """A on three of four processors for 1,000 s, B that needs all, and C that asks for 2 h and, by its user's last jobs, takes 600 s."""
    submit, procs = [0, 700, 10_000, 10_100, 10_200], [1, 1, 3, 4, 1]
    return wt.Workload.from_arrays(
        submit=submit,
        runtime=[600, 600, 1000, 100, runtime],
        requested=[7200, 7200, 1020, 600, 7200],
        procs=procs,
        machine_procs=4,
        columns={"user": np.array([1, 1, 2, 3, 1]), "wait": np.array([0, 5, 0, 1000, 0])},
    )


@pytest.mark.parametrize("machine", [EASY, SLURM], ids=["easy", "slurm"])
def test_an_adjusted_job_is_backfilled_and_not_cut(machine):
    jobs = hole(runtime=650)
    before, after = (Setting(machine, machine.policy, adjustment=found).run(jobs) for found in (None, parse_adjustment("last:gain=0.9")))
    assert before.start[4] > before.start[3]
    assert after.start[4] - jobs.submit[4] <= 30  # Slurm's backfill looks every so often
    assert after.start[3] <= before.start[3] + 60
    assert after.runtime.tolist() == jobs.runtime.tolist()


@pytest.mark.parametrize(("policy", "settings"), [("easy", {}), ("slurm", {}), ("easy", SOFT), ("slurm", SOFT)])
def test_who_waits_for_a_job_that_outlives_its_time_min(policy, settings):
    machine = Machine(*POOLS, policy=policy, slurm=settings)
    adjusted = Setting(machine, policy, adjustment=parse_adjustment("last"))
    scheduler = adjusted.scheduler()
    if policy == "slurm":
        found = scheduler.policy.settings(settings)
        assert found["time_min_as_soft_limit"]
        assert found["soft_limit_running"] == ("half" if settings else "limit")
    else:
        assert scheduler.label == "easy:predictor=time_min," + (
            "predictions-for=011,correction=half" if settings else "predictions-for=010"
        )
    done = adjusted.run(hole(runtime=3000))
    assert done.start[3] >= done.end[4]  # the head has to wait for it
    assert done.runtime[4] == 3000


def test_time_min_is_that_of_the_side_car():
    rng = np.random.default_rng(1)
    count = 300
    requested = rng.integers(1, 200, count) * 60
    jobs = wt.Workload.from_arrays(
        submit=np.arange(count) * 1000,
        runtime=rng.integers(1, 6000, count),
        requested=requested,
        procs=np.ones(count, int),
        machine_procs=4,
        columns={"user": np.zeros(count, int), "wait": np.ones(count, int)},
    )
    predicted = np.minimum(wt.predict(jobs, [wt.predictors.LastRun()])[0].predicted, requested)
    found = Adjustment(wt.predictors.parse_predictor("last"), 20, 0.5).apply(jobs).columns["time_min"].tolist()
    wanted = [
        time_min_of(float(s), int(limit) // 60, SidecarSettings(floor=20, gain=0.5)) for s, limit in zip(predicted, requested, strict=True)
    ]
    assert found == [-1 if minutes is None else 60 * minutes for minutes in wanted]
    assert sum(one > 0 for one in found) > 20


def test_a_users_own_time_min_stays():
    jobs = hole(650)
    own = wt.Workload.from_arrays(
        submit=jobs.submit,
        runtime=jobs.runtime,
        requested=jobs.requested,
        procs=jobs.procs,
        machine_procs=4,
        columns={**jobs.columns, "time_min": np.array([-1, -1, -1, -1, 1200])},
    )
    assert parse_adjustment("last").apply(own).columns["time_min"].tolist() == [-1, 600, -1, -1, 1200]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nothing", ("unknown_name", "nothing")),
        ("last:floor=x", ("wrong_value",)),
        ("last:floor=0", ("wrong_value", "1")),
        ("last:gain=2", ("wrong_value", "gain")),
        ("tang13:key=x", ("wrong_value", "key")),
    ],
)
def test_what_is_no_adjustment(text, told):
    with raises(wt.PolicyError, *told):
        parse_adjustment(text)


def test_in_a_what_if():
    jobs = hole(650)
    found = wt.what_if(jobs, EASY, ["adjust=last:floor=5"], replications=0, trim="none")
    assert found.effects[0].differences["mean_wait"].difference < 0
    assert "user's limit" in found.effects[0].became[0]
    with raises(wt.PolicyError, "unsupported_predictor", "already"):
        wt.what_if(jobs, EASY, ["adjust=last"], policy="easy++", replications=0, trim="none")
    with raises(wt.WorkloadError, "missing_waits"):
        wt.what_if(
            wt.workloads.Lublin99().generate(jobs=20, machine_procs=4, load=0.5, seed=1), EASY, ["adjust=last"], replications=0, trim="none"
        )


def test_soft_walltimes__plan_by_predictions_and_kill_at_the_limit():
    """B needs all processors from 11,000 s on. C's soft walltime is 600 s: it is let in, extended to 1,200 s, and delays B."""
    jobs, change = hole(runtime=650), parse_change("soft=last")
    setting, told = apply_change(change, Setting(EASY, "easy"))
    assert setting.scheduler().label == "easy:predictor=last,correction=soft"
    assert "killed as before" in told[0]
    schedule = setting.run(jobs)
    assert schedule.start.tolist() == [0, 700, 10_000, 11_000, 10_200]
    late = setting.run(hole(runtime=900))
    assert late.start.tolist() == [0, 700, 10_000, 11_100, 10_200]
    assert late.predictions.corrections.tolist()[4] == 1
    with raises(wt.PolicyError, "wrong_change", "adjust=PREDICTOR"):
        apply_change(change, Setting(SLURM, "slurm"))
    found = wt.what_if(jobs, EASY, ["soft=last"], replications=0, trim="none")
    assert found.effects[0].differences["mean_wait"].difference < 0
