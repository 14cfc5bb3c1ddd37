"""Audits of a recorded schedule, without a schedule file, on a machine with partitions and GPUs; and of schedules that lack jobs."""

import json
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.auditor import audit
from walltime.checking.audit_command import allow_kill_wait, recorded_jobs, recorded_schedule
from walltime.errors import PolicyError
from walltime.machine import Limit, Machine, Partition, Pool, write_machine
from walltime.simulation.run import placed_under
from walltime.workload import Origin

MACHINE = Machine(
    (Pool("c", 1, 8), Pool("g", 1, 8, 4)), (Partition("cpu", ("c",)), Partition("gpu", ("g",))), limits=(Limit(("user",), jobs=2),)
)


def log(wait, runtime=(100, 100, 100), gpus=(2, 2, 2), user=(1, 2, 3)):
    return wt.Workload.from_arrays(
        submit=[0, 1, 2], runtime=runtime, requested=[100] * 3, procs=[1] * 3, machine_procs=16,
        columns={"wait": np.array(wait), "gpus": np.array(gpus), "partition": np.array([2] * 3), "user": np.array(user)},
        origin=Origin("site", names={"partition": ("cpu", "gpu")}),
    )  # fmt: skip


def report_of(jobs, machine=MACHINE):
    jobs, remarks = recorded_jobs(jobs)
    placed, placement = placed_under(jobs, machine, None)
    placed, slack = allow_kill_wait(placed)
    return audit(placed, recorded_schedule(placed), None, placement=placement), [*remarks, *slack]


def test_recorded__a_schedule_within_its_machine():
    found, remarks = report_of(log([0, 0, 99]))
    assert (found.ok, remarks) == (True, [])
    assert {"pool_capacity", "limit_exceeded", "over_limit"} <= set(found.checked)


def test_recorded__more_gpus_than_there_are_and_a_limit():
    assert report_of(log([0, 0, 5]))[0].counts == {"pool_capacity": 1}
    assert report_of(log([0, 0, 5], gpus=(1, 1, 1), user=(1, 1, 1)))[0].counts == {"limit_exceeded": 1}


@pytest.mark.parametrize(("over", "broken"), [(60, {}), (61, {"over_limit": 1})])
def test_recorded__up_to_a_minute_over_the_limit_is_no_breach(over, broken):
    found, remarks = report_of(log([0, 0, 200], runtime=(100 + over, 100, 100)))
    assert found.counts == broken
    assert bool(remarks) == (not broken)
    shorter = replace(MACHINE, partitions=(MACHINE.partitions[0], Partition("gpu", ("g",), max_time=90)))
    found, _ = report_of(log([0, 0, 200], runtime=(90 + over, 80, 80)), shorter)
    assert found.counts == broken, "over the limit of the partition"


def test_recorded__jobs_without_a_start_are_counted():
    found, remarks = report_of(log([0, -1, 99]))
    assert (found.ok, found.jobs) == (True, 2)
    assert remarks[0].startswith("1 job without a recorded start")
    with raises(PolicyError, "missing_schedule", "site"):
        recorded_jobs(log([0, 0, 0]))


def test_missing_job__leaves_the_checks_of_the_others_on():
    placed, placement = placed_under(log([0, 0, 5]), MACHINE, None)
    whole = recorded_schedule(placed)
    some = {name: values[1:] for name, values in whole.items()}
    found = audit(placed, some, None, placement=placement)
    assert found.counts == {"missing_job": 1}
    assert {"pool_capacity", "limit_exceeded"} <= set(found.checked)
    over = log([0, 0, 5], gpus=(1, 3, 3))
    placed, placement = placed_under(over, MACHINE, None)
    some = {name: values[1:] for name, values in recorded_schedule(placed).items()}
    assert audit(placed, some, None, placement=placement).counts == {"missing_job": 1, "pool_capacity": 1}


def test_command__without_a_schedule(capsys, tmp_path):
    rows = [f"{k} {k} {90 * (k > 8)} 50 1 -1 -1 1 45 -1 1 {k} -1 -1 -1 1 -1 -1" for k in range(1, 12)]
    (tmp_path / "log.swf").write_text("\n".join(["; MaxProcs: 8", *rows]) + "\n")
    machine = Machine((Pool("c", 8, 1),), (Partition("1", ("c",)),), policy="easy")
    (tmp_path / "m.toml").write_text(write_machine(machine))
    status, out, _ = call(capsys, "audit", tmp_path / "log.swf", "--machine", tmp_path / "m.toml", "--json")
    found = json.loads(out)
    assert (status, found["ok"], found["schedule"], found["jobs"]) == (0, True, None, 11)
    assert any("over their limit (KillWait, OverTimeLimit), as 11 jobs did" in one for one in found["assumed"])
    text = call(capsys, "audit", tmp_path / "log.swf", "--machine", tmp_path / "m.toml")[1]
    assert text.count("Not checked") == 1
    assert len({why for why in found["skipped"].values() if why in text}) == len(set(found["skipped"].values())) > 2
