"""Inference on machines with preemption: the starts of preempting jobs are no evidence for rules, and preempted runs use processors."""

from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.inference import infer
from walltime.inference.rule_trial import RuleTrial
from walltime.machine import Machine, Partition, Pool, Qos
from walltime.machine.placing import may_preempt
from walltime.workload import Workload

POOL = Pool("all", 64, 1)
LOW, HIGH = Partition("1", ("all",), preempt="requeue"), Partition("2", ("all",), tier=1)
TIERS = Machine((POOL,), (LOW, HIGH), name="site")


def runs_of(schedule: wt.Schedule) -> Workload:
    """A schedule as accounting records it: each run of a preempted job is a record, submitted when the job was put back."""
    w, (job, begin, end, *_) = schedule.workload, schedule.lost
    job, begin, end = (np.asarray(values, np.int64) for values in (job, begin, end))
    last = np.full(len(w), -1)
    np.maximum.at(last, job, end)
    submit = np.where(last >= 0, last, w.submit)
    before = np.full(len(job), -1)
    order = np.lexsort((begin, job))
    same = np.flatnonzero(np.diff(job[order]) == 0)
    before[order[same + 1]] = end[order[same]]
    owner = np.concatenate([np.arange(len(w)), job])
    columns = {name: values[owner] for name, values in w.columns.items()}
    submitted = np.concatenate([submit, np.where(before >= 0, before, w.submit[job])])
    start, stop = np.concatenate([schedule.start, begin]), np.concatenate([schedule.end, end])
    order = np.argsort(submitted, kind="stable")
    return Workload.from_arrays(
        submit=submitted[order], runtime=(stop - start)[order], requested=w.requested[owner][order], procs=w.procs[owner][order],
        machine_procs=w.machine_procs, columns={**{n: v[order] for n, v in columns.items()}, "wait": (start - submitted)[order]},
    )  # fmt: skip


@pytest.fixture(scope="module")
def record():
    """Three months of a site that starts jobs by Slurm's backfill, a sixth of which may preempt the others."""
    drawn = wt.workloads.Lublin99().generate(jobs=2_000, machine_procs=64, load=0.9, seed=3)
    times = {name: getattr(drawn, name) * 80 for name in ("submit", "runtime", "requested", "planned")}
    partition = np.where(np.random.default_rng(1).random(len(drawn)) < 1 / 6, 2, 1)
    jobs = replace(drawn, **times, columns={**drawn.columns, "partition": partition})
    schedule = wt.simulate(jobs, "slurm:priority_type=basic", machine=TIERS)
    assert len(schedule.lost[0]) > 100
    return runs_of(schedule)


@pytest.mark.slow
def test_infer__finds_no_wrong_rule_on_a_machine_with_preemption(record, golden):
    found = infer(record, machine=TIERS)
    assert found.refused == ""
    assert {rule.kind for rule in found.rules} <= {"overhead"}  # which Slurm has: it starts jobs some seconds after they fit
    assert found.misfits < 0.01
    judged = RuleTrial(record, 64, 1, None, may_preempt(record, TIERS)).judge
    assert found.before.jobs == judged.sum()
    assert set(record.columns["partition"][judged].tolist()) == {1}
    [note] = [one for one in found.notes if "preempt" in one and "ignores" not in one]
    golden("infer", note)


def test_may_preempt__by_a_higher_tier_on_the_same_nodes_or_by_quality_of_service():
    columns = {"partition": np.array([1, 2, 3]), "queue": np.array([2, 1, 1])}
    jobs = Workload.from_arrays(submit=[0, 1, 2], runtime=[9] * 3, procs=[1] * 3, machine_procs=65, columns=columns)
    elsewhere = Partition("3", ("other",), tier=2)
    machine = Machine((POOL, Pool("other", 1, 1)), (LOW, HIGH, elsewhere))
    assert may_preempt(jobs, machine).tolist() == [False, True, False]
    by_qos = replace(machine, partitions=(replace(LOW, preempt="off"), HIGH, elsewhere), qos=(Qos("1"), Qos("2", preempts=("1",))))
    assert may_preempt(jobs, by_qos).tolist() == [True, False, False]


def test_infer__needs_the_column_that_decides_which_jobs_preempt():
    jobs = Workload.from_arrays(submit=[0, 1], runtime=[10, 10], procs=[8, 8], machine_procs=64)
    with raises(WorkloadError, "missing_column", "partitions"):
        infer(jobs, machine=TIERS)
    with raises(WorkloadError, "missing_column", "qualities of service"):
        infer(jobs, machine=Machine((POOL,), (HIGH,), qos=(Qos("low"), Qos("high", preempts=("low",))), name="site"))
