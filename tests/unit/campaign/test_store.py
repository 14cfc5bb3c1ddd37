"""What a campaign leaves: rows that equal single simulations, in files that any tool reads; and what a store refuses."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.campaign import SCHEMA, Store, Threads, plan_keys, read_plan, run_campaign, status
from walltime.errors import OutputError
from walltime.estimates import parse_estimates
from walltime.logs import write_swf
from walltime.policy import parse_policy
from walltime.schedule.groups import group_jobs
from walltime.workload.models import MODELS
from walltime.workload.scaling import scale_load, shake

PLAN = """
[campaign]
seeds = [3, 5]
trim = "tsafrir06"
dynamics = true
groups = ["month", "class", "user"]
[fixed]
trace = "log.swf"
[grid]
policy = ["easy", "conservative"]
estimates = ["user", "f:4"]
shake = [0, 600]
load = ["default", 0.9]
"""


def group_names(workload: wt.Workload, by: str, end: np.ndarray) -> np.ndarray:
    """The group of each job."""
    groups = group_jobs(workload, by, workload.submit, end)
    return np.array(groups.names)[groups.of]


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    """A log of 300 jobs with users, in two calendar months."""
    jobs = MODELS["lublin99"].generate(300, 64, 0.7, 1).with_estimates(wt.estimates.FModel(3), seed=2)
    users = {"user": np.arange(300) % 7 + 1}
    jobs = wt.Workload.from_arrays(
        submit=jobs.submit, runtime=jobs.runtime, requested=jobs.requested, procs=jobs.procs, machine_procs=64, columns=users
    )
    path = tmp_path_factory.mktemp("log") / "log.swf"
    write_swf(path, jobs)
    text = path.read_text()
    path.write_text("; UnixStartTime: 1000000\n" + text)
    return path


@pytest.fixture
def plan(tmp_path, log) -> Path:
    (tmp_path / "log.swf").write_bytes(log.read_bytes())
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory, log) -> Path:
    """A plan that has been run."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "log.swf").write_bytes(log.read_bytes())
    path = folder / "plan.toml"
    path.write_text(PLAN)
    run_campaign(read_plan(path), executor=Threads(2))
    return path


def single(log: Path, row: dict) -> wt.Schedule:
    """The simulation that a row stands for."""
    jobs = wt.read(log)
    if row["load"] is not None:
        jobs = scale_load(jobs, row["load"], "interarrival", row["seed"] or 0)
    if row["shake"]:
        jobs = shake(jobs, row["shake"], row["seed"])
    jobs = jobs.with_estimates(parse_estimates(row["estimates"]), row["seed"] or 0)
    return wt.simulate(jobs, parse_policy(row["policy"]), dynamics=True)


@pytest.mark.slow
def test_rows__equal_single_simulations(finished):
    table = Store(finished.parent / "plan.results").table()
    assert len(table) == len(read_plan(finished).cells) == 28  # 4 of 16 combinations have nothing random: one run each
    for row in table.iter_rows(named=True):
        schedule = single(finished.parent / "log.swf", row)
        for name, value in (schedule.summary("tsafrir06").as_dict() | schedule.dynamics_summary("tsafrir06").as_dict()).items():
            assert row[name] == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), name


@pytest.mark.slow
def test_group_rows__equal_averages_over_the_groups(finished):
    store = Store(finished.parent / "plan.results")
    cells = {row["cell"]: row for row in store.table().iter_rows(named=True)}
    groups = store.group_table()
    assert set(groups["by"]) == {"month", "class", "user"}
    assert set(groups["group"]) >= {"short narrow", "short wide", "heavy", "light", "1970-01"}
    for row in list(groups.iter_rows(named=True))[::7]:
        schedule = single(finished.parent / "log.swf", cells[row["cell"]])
        measured = wt.metrics.measured(schedule.end, schedule.last_submit, "tsafrir06")
        inside = (group_names(schedule.workload, row["by"], schedule.end) == row["group"]) & measured
        assert row["jobs"] == inside.sum()
        assert row["mean_wait"] == pytest.approx(schedule.wait[inside].mean(), rel=1e-12)
        assert row["max_wait"] == schedule.wait[inside].max()


def test_groups__are_what_their_names_say(log):
    jobs = wt.read(log)
    names = group_names(jobs, "class", jobs.submit)
    for job in range(0, len(jobs), 11):
        length = "long" if jobs.runtime[job] > 3600 else "short"
        assert names[job] == f"{length} {'wide' if jobs.procs[job] > 8 else 'narrow'}"
    area = jobs.procs * jobs.runtime
    classes = group_names(jobs, "user", jobs.submit)
    share = {name: area[classes == name].sum() / area.sum() for name in ("heavy", "medium", "light")}
    assert share["heavy"] >= 0.5
    assert share["heavy"] + share["medium"] >= 0.9
    assert all(len(set(classes[jobs.columns["user"] == user])) == 1 for user in range(1, 8))


@pytest.mark.slow
def test_cells_that_are_there__are_not_run_again(plan):
    first = run_campaign(read_plan(plan))
    assert (first.run, run_campaign(read_plan(plan)).run) == (28, 0)
    plan.write_text(PLAN.replace('"easy", "conservative"', '"easy", "conservative", "fcfs"'))
    assert run_campaign(read_plan(plan)).run == 14
    found = status(read_plan(plan))
    assert (found.cells, found.done, found.others) == (42, 42, 0)


@pytest.mark.slow
def test_two_plans__share_a_store(plan):
    run_campaign(read_plan(plan))
    other = plan.with_name("other.toml")
    other.write_text('[campaign]\nstore = "plan.results"\n[fixed]\ntrace = "log.swf"\npolicy = "fcfs"\n')
    assert run_campaign(read_plan(other)).run == 1
    assert status(read_plan(plan)).others == 1
    assert len(Store(plan.parent / "plan.results").table(plan_keys(read_plan(plan)))) == 28


def test_other_tools__read_the_files(finished):
    duckdb = pytest.importorskip("duckdb")
    files = str(finished.parent / "plan.results" / "cells" / "*.parquet")
    lazy = pl.scan_parquet(files).group_by("policy").agg(pl.len(), pl.col("mean_wait").mean()).sort("policy").collect()
    rows = duckdb.sql(f"SELECT policy, count(*), avg(mean_wait) FROM '{files}' GROUP BY policy ORDER BY policy").fetchall()
    assert [row[:2] for row in rows] == [row[:2] for row in lazy.rows()]
    assert [row[2] for row in rows] == pytest.approx(lazy["mean_wait"].to_list())


@pytest.mark.slow
def test_changed_log__is_refused(golden, capsys, plan):
    run_campaign(read_plan(plan))
    log = plan.with_name("log.swf")
    log.write_text(log.read_text() + "; one line more\n")
    found = call(capsys, "campaign", "run", plan)
    assert found[0] == 1
    golden("campaign", one_line(*found))


def test_another_schema__is_refused(golden, capsys, finished, tmp_path):
    (tmp_path / "plan.results").mkdir()
    (tmp_path / "plan.results" / "manifest.toml").write_text(f'schema = {SCHEMA + 1}\nwalltime = "99.1"\n')
    for command in ("run", "status", "report"):
        line = one_line(*call(capsys, "campaign", command, finished, "--store", tmp_path / "plan.results"))
        golden("campaign", line)


def test_manifest__names_logs_in_any_alphabet(tmp_path):
    store = Store(tmp_path)
    logs = {"größe.swf": "ab", "\U0001f600.swf": "cd", 'a "b"\x7f.swf': "ef"}
    store.open("plan", logs)
    assert store.manifest()["logs"] == logs


@pytest.mark.parametrize("text", ["what is this", "", 'schema = "one"\n'])
def test_strange_manifest__is_refused(capsys, finished, tmp_path, text):
    (tmp_path / "manifest.toml").write_text(text)
    assert "manifest.toml" in one_line(*call(capsys, "campaign", "run", finished, "--store", tmp_path))


@pytest.mark.slow
def test_damaged_file__is_named(capsys, plan):
    run_campaign(read_plan(plan))
    file = next((plan.parent / "plan.results" / "cells").glob("*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    for command in ("run", "status", "report"):
        assert file.name in one_line(*call(capsys, "campaign", command, plan))


@pytest.mark.slow
def test_second_run_into_a_store__is_refused_while_the_first_lasts(golden, capsys, plan):
    store = Store(plan.parent / "plan.results")
    store.open("plan", {})
    with store.locked():
        golden("campaign", one_line(*call(capsys, "campaign", "run", plan)))
    assert call(capsys, "campaign", "run", plan)[0] == 0


@pytest.mark.slow
def test_left_over_parts__are_removed(plan):
    store = Store(plan.parent / "plan.results")
    store.open("plan", {})
    part = store.cells / ".walltime-0123456789ab.part"
    part.write_text("half")
    run_campaign(read_plan(plan))
    assert not part.exists()


@pytest.mark.slow
def test_order_of_ones_own__makes_new_cells_when_it_is_edited(plan):
    own = plan.with_name("orders.py")
    plan.write_text('[fixed]\nmodel = "lublin99"\njobs = 200\norder = "orders.py:mine"\n')
    for body in ("-requested", "procs * 1.0"):
        own.write_text(f"import walltime as wt\n@wt.order\ndef mine(requested, procs):\n    return {body}\n")
        assert run_campaign(read_plan(plan, own=[own]), executor=Threads(1)).run == 1
        seen = Store(plan.parent / "plan.results").table()["mean_wait"].to_list()
    assert len(set(seen)) == 2


@pytest.mark.slow
def test_order_of_ones_own__reads_columns_and_the_clock_in_a_campaign(plan):
    own = plan.with_name("orders.py")
    own.write_text("def mine(user, hour, requested):\n    return user if hour < 12 else -requested\n")
    plan.write_text('[campaign]\nseeds = 2\n[fixed]\ntrace = "log.swf"\norder = "orders.py:mine"\n[grid]\nestimates = ["user", "f:4"]\n')
    run_campaign(read_plan(plan, own=[own]), executor=Threads(1))
    table = Store(plan.parent / "plan.results").table()
    jobs, policy = wt.read(plan.with_name("log.swf")), wt.Easy(order=wt.policy.parse_order(f"{own}:mine"))
    for row in table.iter_rows(named=True):
        estimated = jobs.with_estimates(parse_estimates(row["estimates"]), row["seed"] or 0)
        assert row["mean_wait"] == wt.simulate(estimated, policy).summary().mean_wait
    assert len(set(table["mean_wait"])) > 1


@pytest.mark.slow
def test_module_that_ones_own_file_imports__makes_new_cells_when_it_is_edited(plan):
    own, helper = plan.with_name("orders.py"), plan.with_name("helping.py")
    own.write_text("import helping\ndef mine(requested, procs):\n    return helping.SIGN * requested\n")
    plan.write_text('[fixed]\nmodel = "lublin99"\njobs = 200\norder = "orders.py:mine"\n')
    for k, sign in enumerate(("-1", "+1")):
        helper.write_text(f"SIGN = {sign}\n")
        os.utime(helper, ns=(1_700_000_000_000_000_000 + k,) * 2)  # both in one second, the resolution of Python's compiled files
        assert run_campaign(read_plan(plan, own=[own]), executor=Threads(1)).run == 1
        assert run_campaign(read_plan(plan, own=[own]), executor=Threads(1)).run == 0
    assert Store(plan.parent / "plan.results").table()["mean_wait"].n_unique() == 2


def test_declared_file__makes_new_cells_when_it_is_edited(plan):
    own, model = plan.with_name("own.py"), plan.with_name("model.json")
    own.write_text(
        "import json, pathlib\n"
        "class Constant:\n"
        '    files = ["model.json"]\n'
        "    def __init__(self):\n"
        '        self.seconds = json.loads(pathlib.Path(__file__).with_name("model.json").read_text())\n'
        "    def predict(self, job):\n"
        "        return self.seconds\n"
        "    def observe(self, job):\n"
        "        pass\n"
    )
    plan.write_text('[fixed]\nmodel = "lublin99"\njobs = 200\npredictor = "own.py:Constant"\n')
    for seconds in (60, 90_000):
        model.write_text(f"{seconds}")
        assert run_campaign(read_plan(plan, own=[own]), executor=Threads(1)).run == 1
    model.unlink()
    with raises(wt.PolicyError, "missing_file", "model.json"):
        run_campaign(read_plan(plan, own=[own]))


@pytest.mark.slow
def test_two_results_of_a_cell__are_an_error_if_they_differ(plan):
    run_campaign(read_plan(plan), executor=Threads(2))
    store = Store(plan.parent / "plan.results")
    file = next(store.cells.glob("*.parquet"))
    row = pl.read_parquet(file)
    row.write_parquet(store.cells / "again.parquet")
    assert len(store.table()) == 28
    row.with_columns(pl.col("mean_wait") + 1).write_parquet(store.cells / "other.parquet")
    with raises(OutputError, "different_results"):
        store.table()


@pytest.mark.slow
def test_undeclared_file__makes_a_cell_run_in_every_run_and_is_reported(plan):
    own, model = plan.with_name("undeclared_own.py"), plan.with_name("model.json")
    text = (
        "import functools, pathlib\n"
        "@functools.cache\n"
        "def seconds():\n"
        '    return int(pathlib.Path(__file__).with_name("model.json").read_text())\n'
        "class Constant:\n"
        "    def predict(self, job):\n"
        "        return seconds()\n"
        "    def observe(self, job):\n"
        "        pass\n"
    )
    own.write_text(text)
    model.write_text("60")
    plan.write_text('[fixed]\nmodel = "lublin99"\njobs = 200\n[grid]\npredictor = ["undeclared_own.py:Constant", "user"]\n')
    for expected in (2, 1):
        assert run_campaign(read_plan(plan, own=[own]), executor=Threads(1)).run == expected
    table = Store(plan.parent / "plan.results").table()
    assert len(table) == 2
    (line,) = status(read_plan(plan, own=[own])).unkept
    assert line.startswith("1 cell ")
    assert str(model) in line
    own.write_text(text.replace("class Constant:\n", 'class Constant:\n    files = ["model.json"]\n'))
    for expected in (1, 0):
        assert run_campaign(read_plan(plan, own=[own]), executor=Threads(1)).run == expected
    assert not status(read_plan(plan, own=[own])).unkept
