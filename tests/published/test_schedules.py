"""The published schedules of gaussier15, simulated again: the same start of every job."""

import numpy as np
import pytest

import walltime as wt
from tests.traces import published_path, trace_path

LOGS = {"KTH-SP2": "KTH-SP2-1996-2.sc15.recon", "SDSC-SP2": "SDSC-SP2-1998-4.x-cln.recon"}
SCHEDULES = {
    "easy": ("easy", False),
    "easy-clairvoyant": ("easy", True),
    "easy-sjbf-clairvoyant": ("easy:backfill-order=sjf", True),
    "easypp": ("easy++", False),
}
"""File names; the scheduler, and whether it knows the exact runtimes."""


def both(log: str, name: str) -> tuple[wt.Workload, wt.Workload]:
    """A log, and the published schedule of its jobs."""
    published = wt.read(published_path(f"sc15/{log}.{name}.swf.gz"))
    workload = wt.read(trace_path(LOGS[log]))
    assert np.array_equal(workload.job_id, published.job_id)
    return workload, published


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("log", LOGS)
def test_predictsim__equals_published_schedules_job_for_job(log, name):
    workload, published = both(log, name)
    scheduler, exact = SCHEDULES[name]
    if exact:
        workload = workload.with_estimates(wt.estimates.ExactEstimates(), 0)
    schedule = wt.simulate(workload, scheduler, dialect="predictsim")
    assert schedule.engine == "kernel"
    assert np.array_equal(schedule.start - workload.submit, published.columns["wait"])


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.nightly if name == "easypp" else ()) for name in SCHEDULES])
@pytest.mark.parametrize("log", [log if log == "KTH-SP2" else pytest.param(log, marks=pytest.mark.nightly) for log in LOGS])
def test_audit__of_published_schedules_raises_no_alarm(log, name):
    workload, _ = both(log, name)
    text, exact = SCHEDULES[name]
    if exact:
        workload = workload.with_estimates(wt.estimates.ExactEstimates(), 0)
    scheduler, columns = wt.simulation.parse_scheduler(text), wt.read_schedule(published_path(f"sc15/{log}.{name}.swf.gz"))
    rules = {"dialect": "predictsim", "prediction": scheduler.prediction}
    report = wt.audit(workload, columns, scheduler.policy, **rules)
    assert report.ok, report
    assert {"head_waits", "left_waiting", "reservation_delayed"} <= set(report.checked)
    columns["start"], columns["end"] = columns["start"].copy(), columns["end"].copy()
    late = int(np.argmax(columns["start"] - columns["submit"]))
    columns["start"][late] += 1
    columns["end"][late] += 1
    assert not wt.audit(workload, columns, scheduler.policy, **rules).ok, "one second later"


def test_pass_at_expiry__is_what_differs_under_easy_plus_plus():
    workload, published = both("KTH-SP2", "easypp")
    schedule = wt.simulate(workload, "easy++", dialect="pyss")
    same = np.mean(schedule.start - workload.submit == published.columns["wait"])
    assert 0.6 < same < 0.7
    assert schedule.summary().mean_bounded_slowdown == pytest.approx(68.7, abs=0.1)
