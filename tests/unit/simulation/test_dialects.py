"""`walltime dialects`: what readings change on a log."""

import json

import numpy as np
import polars as pl
import pytest

import walltime as wt
from tests.cli import call, one_line
from walltime.dialects.dialects import compare_dialects, dialect_runs, interpretations_alone, matters
from walltime.policy import DIALECTS
from walltime.simulation.specification import Scheduler


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("dialects") / "log.swf"
    jobs = wt.workloads.Lublin99().generate(300, 32, 0.9, seed=3)
    requested = 60 * (1 + jobs.runtime // 60 * 2)
    user = np.arange(300) % 7
    columns = {"user": user}
    made = wt.Workload.from_arrays(
        submit=jobs.submit, runtime=jobs.runtime, requested=requested, procs=jobs.procs, machine_procs=32, columns=columns
    )
    wt.logs.write_swf(path, made)
    return path


def test_readings__each_value_alone():
    labels = [dialect.label for dialect in interpretations_alone()]
    assert {"papers:expiry=silent", "papers:shadow=kept", "papers:decisions=committed"} <= set(labels)
    assert len(labels) == len(set(labels))


@pytest.mark.parametrize(
    ("dialect", "scheduler", "is_so"),
    [
        ("papers:expiry=silent", "easy", False),
        ("papers:expiry=silent", "easy++", True),
        ("papers:backfill_order=fcfs", "easy:order=sjf", True),
        ("papers:backfill_order=fcfs", "easy", False),
        ("papers:compression=always", "easy", False),
        ("papers:compression=always", "conservative", True),
        ("pyss", "fcfs", True),
        ("batsched", "easy", True),
        ("batsched", "easy:backfill-order=sjf", False),
        ("batsched", "easy++", False),
    ],
)
def test_matters(dialect, scheduler, is_so):
    assert matters(wt.policy.Dialect.of(dialect), Scheduler.of(scheduler)) == is_so


@pytest.mark.slow
def test_table__has_what_simulations_give(log):
    jobs = wt.read(log)
    done = []
    found = compare_dialects(jobs, ["easy", "easy++"], copies=3, progress=done.append)
    assert max(done) == dialect_runs(["easy", "easy++"], copies=3) == len(found.rows) + 2 * 3
    for name in ("pyss", "predictsim", "mualem01-measured", "papers:shadow=kept"):
        row = found.find(name, "easy")
        schedule = wt.simulate(jobs, "easy", dialect=name)
        assert row.mean_bounded_slowdown == schedule.summary().mean_bounded_slowdown
        assert row.differs == np.mean(schedule.start != wt.simulate(jobs, "easy").start)
    assert found.find("papers:expiry=silent", "easy") is None
    papers = found.find("papers", "easy++")
    assert papers.has_band
    assert papers.low <= papers.high
    assert {row.dialect for row in found.rows} >= set(DIALECTS)


@pytest.mark.slow
def test_command__one_table(golden, capsys, log, tmp_path):
    status, out, _ = call(capsys, "dialects", log, "--copies", 2, "--out", tmp_path / "rows.csv")
    assert status == 0
    assert "predictsim" in out
    golden("compare", " ".join(out.split()))
    rows = pl.read_csv(tmp_path / "rows.csv")
    assert rows.height == dialect_runs(copies=0)
    status, out, _ = call(capsys, "dialects", log, "--dialect", "pyss", "--policy", "easy", "--copies", 0, "--json")
    assert [row["dialect"] for row in json.loads(out)["rows"]] == ["papers", "pyss"]


def test_command__without_a_log_lists_them(capsys):
    status, out, _ = call(capsys, "dialects")
    assert status == 0
    assert all(name in out for name in DIALECTS)
    listed = json.loads(call(capsys, "dialects", "--json")[1])
    assert set(listed["dialects"]) == set(DIALECTS)


def test_command__an_unknown_dialect_is_one_line(capsys, log):
    assert "unknown dialect 'french'" in one_line(*call(capsys, "dialects", log, "--dialect", "french"))


def test_command__leaves_out_the_default_that_needs_users(capsys, tmp_path):
    jobs = wt.Workload.from_arrays(submit=range(9), runtime=[30] * 9, requested=[60] * 9, procs=[2] * 9, machine_procs=4)
    wt.logs.write_swf(tmp_path / "log.swf", jobs)
    status, out, err = call(capsys, "dialects", tmp_path / "log.swf", "--dialect", "pyss", "--copies", 0, "--json")
    assert status == 0
    assert "EASY++ is left out" in err
    assert {row["scheduler"] for row in json.loads(out)["rows"]} == {"easy", "easy:backfill-order=sjf"}
