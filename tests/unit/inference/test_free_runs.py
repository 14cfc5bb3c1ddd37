"""A simulation that runs freely, and one with the eligible times, in hindsight."""

from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from walltime.inference.free_runs import BY_HINDSIGHT, free_runs
from walltime.machine import Machine, Partition, Pool
from walltime.workload.models import MODELS
from walltime.workload.scaling import held_until

PROCS = 16


def test_the_last_run__is_the_record_where_nothing_but_holds_kept_jobs_from_plain_easy():
    jobs = MODELS["lublin99"].generate(300, PROCS, 0.8, 3)
    eligible = jobs.submit + np.where(np.arange(len(jobs)) % 5 == 0, 20_000, 0)
    late = wt.simulate(held_until(jobs, eligible), "easy")
    start = dict(zip(late.workload.job_id.tolist(), late.start.tolist(), strict=True))
    wait = np.array([start[job] for job in jobs.job_id.tolist()]) - jobs.submit
    recorded = replace(jobs, columns={**jobs.columns, "wait": wait})
    machine = Machine((Pool("all", PROCS, 1),), (Partition("all", ("all",)),))
    runs = list(free_runs(recorded, np.ones(len(jobs), bool), machine, machine, eligible))
    known = runs[-1]
    assert known.machine == BY_HINDSIGHT
    assert known.mean_simulated == known.mean_recorded == pytest.approx(wait.mean())
    assert known.within == 1
    assert runs[1].mean_simulated < known.mean_recorded
    assert runs[1].within < 1
