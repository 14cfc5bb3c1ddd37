"""Replications with a page, and lists of loads and of estimates, in `simulate` and `compare`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.unit.report.test_report import Page
from walltime.comparison import replicated_page
from walltime.comparison.many_runs_page import SLOWDOWNS, WAITS, compare_replications, curves
from walltime.report import write_page
from walltime.wording import human_time
from walltime.workload.models import MODELS


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "made.swf"
    wt.logs.write_swf(path, MODELS["lublin99"].generate(400, 64, 0.7, 1))
    return path


def shaken(log: Path, load: float | None, seed: int) -> wt.Workload:
    jobs = wt.read(log)
    return wt.workloads.shake(jobs if load is None else wt.workloads.scale_load(jobs, load), 60, seed)


def result(capsys, *arguments: object) -> dict:
    status, out, errors = call(capsys, *arguments, "--json")
    assert (status, errors) == (0, "")
    return json.loads(out)


# ------------------------------------------------------------------------------------------------------- replications


@pytest.mark.slow
def test_level__widens_the_intervals(capsys, log):
    """Of a further copy with 5 copies and the log, and of a mean over 4 seeds; a run without intervals takes no level."""
    usual, wide = (
        result(capsys, "compare", log, "--policy", "easy", "--policy", "fcfs", *more)["spread"] for more in ((), ("--level", "99"))
    )
    ratio = wide["scatter"][1]["mean_wait"] / usual["scatter"][1]["mean_wait"]
    assert (wide["level"], ratio) == (0.99, pytest.approx(stats.t.ppf(0.995, 5) / stats.t.ppf(0.95, 5)))
    of_seeds = ("compare", log, "--policy", "easy", "--policy", "fcfs", "--shake", 60, "--replications", 4)
    usual, wide = (result(capsys, *of_seeds, *more)["replications"][1]["mean_wait"]["difference"] for more in ((), ("--level", "95")))
    ratio = (wide["high"] - wide["mean"]) / (usual["high"] - usual["mean"])
    assert ratio == pytest.approx(stats.t.ppf(0.975, 3) / stats.t.ppf(0.95, 3))
    for options in (("simulate", log), ("compare", log, "--no-spread")):
        status, _, errors = call(capsys, *options, "--level", "95")
        assert (status, errors.count("\n"), "--level" in errors) == (2, 1, True)


@pytest.mark.slow
def test_replications__with_a_page(capsys, log, tmp_path):
    path = tmp_path / "page.html"
    options = ("--policy", "easy", "--policy", "fcfs", "--shake", 60, "--replications", 4)
    status, out, _ = call(capsys, "compare", log, *options, "--report", path)
    assert status == 0
    assert "report written to" in out
    assert "vs easy" in out
    page = path.read_text()
    found = Page(page)
    assert len(found.ids) == len(set(found.ids))
    assert "://" not in page
    waits = {name: np.array([wt.simulate(shaken(log, None, k), name).summary().mean_wait for k in range(4)]) for name in ("easy", "fcfs")}
    half = stats.t.ppf(0.95, 3) / 2
    show = human_time
    assert f"± {show(half * waits['easy'].std(ddof=1))}" in page
    change = waits["fcfs"] - waits["easy"]
    assert f"+{show(change.mean())}<small>± {show(half * change.std(ddof=1))}" in page
    for words in ("2 policies on made, 4 replications", "All measures", "Distribution of waits", "90 % confidence"):
        assert words in page, words
    record = result(capsys, "compare", log, *options, "--report", path)
    assert record["report"] == str(path)
    assert [run["policy"] for run in record["replications"]] == ["easy", "fcfs"]
    assert record["replications"][0]["mean_wait"]["mean"] == pytest.approx(waits["easy"].mean())


@pytest.mark.slow
def test_replications__of_one_policy_and_of_random_estimates(capsys, log, tmp_path):
    path = tmp_path / "page.html"
    assert call(capsys, "simulate", log, "--estimates", "f:4", "--replications", 3, "--report", path)[0] == 0
    page = path.read_text()
    Page(page)
    assert "easy on made, 3 replications" in page
    assert "difference to" not in page
    assert "Vanilla f-model" in page


@pytest.mark.slow
def test_simulate__writes_a_page_of_one_run(capsys, log, tmp_path):
    path = tmp_path / "page.html"
    status, out, _ = call(capsys, "simulate", log, "--report", path)
    assert status == 0
    assert "report written to" in out
    assert "EASY on made" in path.read_text()


def test_curves__are_shares_worked_by_hand():
    """Waits of 0, 10 and 100 s; bounded slowdowns of jobs of 10 s: 1, 2 and 11."""
    one = np.ones(3, np.int64)
    jobs = wt.Workload.from_arrays(submit=[0, 0, 0], runtime=10 * one, procs=one, machine_procs=3)
    start = np.array([0, 10, 100])
    schedule = wt.Schedule(jobs, wt.Easy(), start, start + 10, 10 * one, one.astype(np.uint8), -one)
    wait, slowdown = curves()(schedule)
    assert wait[0] == pytest.approx(100 / 3)
    assert wait[np.searchsorted(WAITS, 50)] == pytest.approx(200 / 3)
    assert wait[-1] == 100
    assert [slowdown[np.searchsorted(SLOWDOWNS, value, "right") - 1] for value in (1.5, 5, 20)] == pytest.approx([100 / 3, 200 / 3, 100])


@pytest.mark.slow
def test_page__from_python_gives_the_same_bytes_and_names_repeated_policies(log, tmp_path):
    jobs = wt.read(log)
    results = [wt.replicate(lambda seed: shaken(log, None, seed), name, range(3), keep=curves()) for name in ("easy", "easy", "fcfs")]
    files = [write_page(tmp_path / f"{k}.html", replicated_page(results, jobs, notes=["Made <for> a test."])) for k in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()
    page = files[0].read_text()
    assert "easy (2)" in page
    assert "Made &lt;for&gt; a test." in page
    lines, baseline = compare_replications(results)
    assert baseline == {"policy": "easy"}
    same = next(line for line in lines if line.combination["policy"] == "easy (2)")
    assert same.clear is False, "the same policy with the same seeds"
    with raises(wt.WorkloadError, "different_seeds"):
        replicated_page([], jobs)


# -------------------------------------------------------------------------------------------------- loads and estimates


def test_loads__are_compared(capsys, log):
    found = result(capsys, "compare", log, "--policy", "easy", "--policy", "fcfs", "--load", 0.5, "--load", 0.8)
    assert (found["load"], found["policy"], found["baseline"]) == ([0.5, 0.8], ["easy", "fcfs"], {"policy": "easy"})
    lines = [line for line in found["lines"] if line["metric"] == "mean_wait"]
    assert [(line["load"], line["policy"]) for line in lines] == [(0.5, "easy"), (0.5, "fcfs"), (0.8, "easy"), (0.8, "fcfs")]
    for line in lines:
        alone = result(capsys, "simulate", log, "--policy", line["policy"], "--load", line["load"])
        assert line["mean"] == alone["mean_wait"]
    assert "interval" not in lines[0]
    assert any(caveat.startswith("Single runs") for caveat in found["caveats"])


@pytest.mark.slow
def test_loads__with_replications_and_a_page(golden, capsys, log, tmp_path):
    path = tmp_path / "page.html"
    options = ("--policy", "easy", "--policy", "fcfs", "--load", 0.5, "--load", 0.8, "--shake", 60, "--replications", 3)
    status, out, _ = call(capsys, "compare", log, *options, "--report", path)
    assert status == 0
    golden("simulate", out)
    page = path.read_text()
    Page(page)
    assert "Over the load" in page
    lines = [line for line in result(capsys, "compare", log, *options)["lines"] if line["metric"] == "mean_wait"]
    for line in lines:
        mine = np.array([wt.simulate(shaken(log, line["load"], k), line["policy"]).summary().mean_wait for k in range(3)])
        assert line["mean"] == pytest.approx(mine.mean())
        assert line["interval"]["high"] == pytest.approx(mine.mean() + stats.t.ppf(0.95, 2) * mine.std(ddof=1) / np.sqrt(3))
    assert [("difference" in line, line["policy"]) for line in lines] == [(False, "easy"), (True, "fcfs")] * 2


def test_out__has_a_row_for_each_run(capsys, log, tmp_path):
    path = tmp_path / "runs.csv"
    policies = ("--policy", "easy", "--policy", "fcfs")
    assert "2 rows written to" in call(capsys, "compare", log, *policies, "--out", path)[1]
    rows = pl.read_csv(path)
    assert rows["policy"].to_list() == ["easy", "fcfs"]
    assert rows["mean_wait"][0] == wt.simulate(wt.read(log), "easy").summary().mean_wait
    options = ("--load", 0.5, "--load", 0.8, "--shake", 60, "--replications", 3)
    assert call(capsys, "compare", log, *policies, *options, "--out", path)[0] == 0
    rows = pl.read_csv(path)
    assert rows.select("load", "policy", "seed").rows() == [(a, b, c) for a in (0.5, 0.8) for b in ("easy", "fcfs") for c in range(3)]
    assert rows["mean_wait"][-1] == wt.simulate(shaken(log, 0.8, 2), "fcfs").summary().mean_wait


@pytest.mark.slow
@pytest.mark.drawn
def test_estimates__are_compared_and_swept(capsys, log, tmp_path):
    path = tmp_path / "page.html"
    options = [word for name in ("user", "f:1", "f:4", "f:10") for word in ("--estimates", name)]
    assert call(capsys, "simulate", log, *options, "--report", path)[0] == 0
    page = path.read_text()
    assert "Over the estimates" in page
    assert "estimates f:N" in page
    found = result(capsys, "simulate", log, *options)
    assert [line["estimates"] for line in found["lines"] if line["metric"] == "mean_wait"] == ["user", "f:1", "f:4", "f:10"]
    assert found["baseline"] is None


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("simulate", ["--load", 0.5, "--load", 0.6, "--out", "s.csv"]),
        ("compare", ["--load", 0.5, "--load", 0.6, "--gains", "--monthly"]),
        ("compare", ["--load", 0.5, "--load", 1.6]),
        ("compare", ["--load", 0.5, "--load", 0.6, "--replications", 3]),
        ("compare", ["--estimates", "user", "--estimates", "f4"]),
        ("compare", ["--load", 0.5, "--load", 0.6, "--report", "page.txt"]),
        ("clean", ["--load", 0.5, "--load", 0.6]),
        ("explain", ["--job", 3, "--estimates", "user", "--estimates", "exact"]),
    ],
)
def test_lists__are_refused_where_one_run_is_shown(golden, capsys, log, monkeypatch, tmp_path, command, options):
    monkeypatch.chdir(tmp_path)
    golden(command, one_line(*call(capsys, command, log, *options)))
    assert list(tmp_path.iterdir()) == []


def test_figure__of_replications_is_of_bands(capsys, log, tmp_path):
    many = ["compare", log, "--policy", "easy", "--shake", 30, "--replications", 3]
    status, out, errors = call(capsys, *many, "--figure", tmp_path / "wait.svg", "--size", "ieee-column")
    assert (status, errors) == (0, "")
    assert "figure of wait written" in out
    assert 'width="252pt"' in (tmp_path / "wait.svg").read_text()  # 3.5 inches
    assert "shows a single run" in one_line(*call(capsys, *many, "--figure", tmp_path / "gantt.svg"))
    assert "one load" in one_line(*call(capsys, *many, "--load", 0.5, "--load", 0.6, "--figure", tmp_path / "wait.svg"))


def test_compare__is_one_table_at_100_columns(capsys, log, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    status, out, _ = call(capsys, "compare", log)
    assert status == 0
    assert [line.split()[:3] for line in out.splitlines()].count(["policy", "mean", "wait"]) == 1
    assert max(map(len, out.splitlines())) <= 100
    assert "backfilled" in next(line for line in out.splitlines() if line.startswith("policy"))
    status, out, _ = call(capsys, "compare", log, "--load", 0.5, "--load", 0.6)
    assert status == 0
    assert "(single run" not in out
    assert sum(line.split()[:1] == ["load"] for line in out.splitlines()) == 1
