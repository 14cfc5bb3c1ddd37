"""Failing cells: the others run, and run, status, report and page give the cause, until they are tried again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.campaign.plans import dask_cluster
from tests.cli import call
from walltime.campaign import Dask, Executor, Plan, Store, Threads, campaign_page, read_plan, read_results, run_campaign, status
from walltime.report.html import render

OWN = """
class Late:
    def choose(self, now, waiting, running, free):
        if now > 20000:
            raise RuntimeError("no more")
        return [job for job in waiting if job.procs <= free][:1]
"""
PLAN = """
[campaign]
seeds = 2
[fixed]
model = "lublin99"
jobs = 60
procs = 64
[grid]
policy = ["own.py:Late", "easy", "fcfs"]
load = [0.6, 0.7]
"""


@pytest.fixture
def plan(tmp_path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def opened(plan: Path) -> Plan:
    """The plan, which may run its file."""
    return read_plan(plan, own=[plan.with_name("own.py")])


def check_run(plan: Path, executor: Executor) -> None:
    """Run the plan: 8 of 12 cells have results, and 4 a cause."""
    done = run_campaign(opened(plan), executor=executor)
    assert (done.cells, done.done, done.run, done.failed) == (12, 8, 8, 4)
    (failures,) = status(opened(plan)).failures
    assert failures.cells == 4
    assert "own.py:5: choose of Late raises RuntimeError: no more" in failures.cause
    assert "\n" not in str(failures)


@pytest.mark.slow
def test_failing_cell__does_not_stop_the_others(plan):
    check_run(plan, Threads(2))
    again = run_campaign(opened(plan))
    assert (again.run, again.failed) == (0, 4)


@pytest.mark.nightly
def test_failing_cell__does_not_stop_the_others_on_dask(plan):
    with dask_cluster(2) as cluster:
        executor = Dask(cluster)
        check_run(plan, executor)
        executor.close()


@pytest.mark.slow
def test_failures__are_in_every_output(capsys, plan):
    own = ("--own", plan.with_name("own.py"))
    code, out, err = call(capsys, "campaign", "run", plan, *own)
    assert code == 1
    assert "4 cells failed: " in out
    assert "--retry-failed" in err
    assert call(capsys, "campaign", "run", plan, *own)[0] == 1  # also when nothing is left to run
    assert "4 cells failed: " in call(capsys, "campaign", "status", plan)[1]
    (failed,) = json.loads(call(capsys, "campaign", "status", plan, "--json")[1])["failed"]
    assert failed["cells"] == 4
    assert failed["first"] == "lublin99 (load=0.6, policy=own.py:Late, order=fcfs, estimates=user, seed 0)"
    _, out, err = call(capsys, "campaign", "report", plan)
    assert "choose of Late raises RuntimeError" in out
    assert err == ""  # no cell is missing but those that failed
    assert json.loads(call(capsys, "campaign", "report", plan, "--json")[1])["failed"] == [failed]
    assert "choose of Late raises RuntimeError" in render(campaign_page(read_results(opened(plan))))


@pytest.mark.slow
def test_retry__runs_only_the_failed_cells(plan):
    run_campaign(opened(plan))
    assert run_campaign(opened(plan), retry_failed=True).failed == 4
    store = Store(plan.with_name("plan.results"))
    assert len(store.causes()) == 4
    plan.with_name("own.py").write_text(OWN.replace("now > 20000", "False"))
    done = run_campaign(opened(plan))  # another file: other cells
    assert (done.run, done.failed, status(opened(plan)).failures) == (4, 0, [])
