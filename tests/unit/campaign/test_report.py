"""What `campaign report` says: means, bands and paired differences as numpy finds them, and words of caveat where they belong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.campaign import Store, plan_keys, read_plan, read_results, run_campaign
from walltime.campaign.results import campaign_caveats
from walltime.comparison.cell_caveats import cell_caveats
from walltime.comparison.combination_means import compare_cells
from walltime.comparison.runs import pivot_tables

PLAN = """
[campaign]
seeds = 6
trim = "tsafrir06"
groups = ["class"]
[fixed]
model = "lublin99"
jobs = 300
procs = 64
load = 0.7
[grid]
policy = ["easy", "fcfs"]
estimates = ["exact", "tsafrir05:emax=200000"]
"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "plan.toml"
    path.write_text(PLAN)
    run_campaign(read_plan(path))
    return path


def cells_of(plan: Path) -> pl.DataFrame:
    return Store(plan.parent / "plan.results").table(plan_keys(read_plan(plan, run_files=False)))


def values(cells: pl.DataFrame, metric: str, **words: str) -> np.ndarray:
    for name, value in words.items():
        cells = cells.filter(pl.col(name) == value)
    return cells.sort("seed")[metric].to_numpy()


@pytest.mark.slow
def test_report__means_bands_and_paired_differences(capsys, plan):
    status, out, _ = call(capsys, "campaign", "report", plan, "--json", "--metric", "mean_wait", "--baseline", "policy=easy")
    found = json.loads(out)
    assert (status, found["cells"], found["baseline"]) == (0, 24, {"policy": "easy"})
    assert len(found["lines"]) == 4
    cells = cells_of(plan)
    for line in found["lines"]:
        mine = values(cells, "mean_wait", policy=line["policy"], estimates=line["estimates"])
        assert line["runs"] == len(mine) == 6
        assert [line["mean"], line["low"], line["high"]] == pytest.approx([mine.mean(), mine.min(), mine.max()])
        assert line["relative_spread"] == pytest.approx(mine.std(ddof=1) / mine.mean())
        if line["policy"] == "easy":
            assert "difference" not in line
            continue
        change = mine - values(cells, "mean_wait", policy="easy", estimates=line["estimates"])
        width = stats.t.ppf(0.95, 5) * change.std(ddof=1) / np.sqrt(6)
        got = line["difference"]
        assert [got["mean"], got["low"], got["high"]] == pytest.approx([change.mean(), change.mean() - width, change.mean() + width])


@pytest.mark.slow
def test_report__level_of_the_plan_and_of_the_option(capsys, plan, tmp_path):
    change = [values(cells_of(plan), "mean_wait", policy=policy, estimates="exact") for policy in ("fcfs", "easy")]
    change = change[0] - change[1]
    shifted = tmp_path / "plan.toml"
    shifted.write_text(PLAN.replace("seeds", f'store = "{plan.parent / "plan.results"}"\nlevel = 99\nseeds'))
    for path, options, level in (
        (plan, (), 0.90),
        (plan, ("--level", "95"), 0.95),
        (shifted, (), 0.99),
        (shifted, ("--level", "95"), 0.95),
    ):
        status, out, _ = call(capsys, "campaign", "report", path, "--json", "--metric", "mean_wait", *options)
        line = next(line for line in json.loads(out)["lines"] if line["policy"] == "fcfs" and line["estimates"] == "exact")
        width = stats.t.ppf(0.5 + level / 2, 5) * change.std(ddof=1) / np.sqrt(6)
        assert (status, line["difference"]["high"] - line["difference"]["mean"]) == (0, pytest.approx(width))
        status, out, _ = call(capsys, "campaign", "report", path, *options)
        assert f"{100 * level:g} % confidence interval" in out
    path = tmp_path / "page.html"
    assert call(capsys, "campaign", "report", plan, "--report", path, "--level", "95")[0] == 0
    text = path.read_text()
    assert "95 % confidence" in text
    assert "90 % confidence" not in text
    assert call(capsys, "campaign", "report", plan, "--level", "40")[0] == 2
    with pytest.raises(wt.errors.PolicyError) as error:
        read_results(read_plan(plan)).means(level=95)
    assert error.value.code == "number_out_of_range"


@pytest.mark.slow
def test_report__pivot_has_policies_as_columns(capsys, plan, tmp_path):
    file = tmp_path / "waits.tex"
    options = ("--pivot", "policy", "--metric", "mean_wait")
    assert call(capsys, "campaign", "report", plan, *options, "--tables", file)[0] == 0
    text = file.read_text()
    assert next(line for line in text.splitlines() if "&" in line) == "estimates & easy & fcfs \\\\"
    assert text.count(r"$\pm$") == 5  # four cells, and the title
    table = json.loads(call(capsys, "campaign", "report", plan, *options, "--format", "json")[1])
    cells = cells_of(plan)
    for row in table["rows"]:
        for policy in ("easy", "fcfs"):
            name = next(one for one in ("exact", "tsafrir05:emax=200000") if one.endswith(row["estimates"].split(":")[-1]))
            assert row[policy] == pytest.approx(values(cells, "mean_wait", policy=policy, estimates=name).mean())
    by = call(capsys, "campaign", "report", plan, *options, "--by", "class", "--format", "csv")[1]
    assert by.splitlines()[0] == "estimates,class,easy,fcfs"
    with raises(wt.errors.PolicyError, "unknown_parameter", "load"):
        pivot_tables(read_results(read_plan(plan)).means(), "load", None)
    assert "estimates" in one_line(*call(capsys, "campaign", "report", plan, "--pivot", "load"))


def test_pivot__counts_the_runs_of_means_over_fewer_of_them():
    seeds = [*range(4), *range(3)]
    cells = pl.DataFrame({"policy": ["easy"] * 4 + ["own"] * 3, "seed": seeds, "mean_wait": [float(60 + 9 * seed) for seed in seeds]})
    (table,) = pivot_tables(compare_cells(cells, ["policy"], metrics=["mean_wait"]), "policy", None)
    easy, own = table.rows[0]
    assert "runs" not in easy.text
    assert own.text.endswith(" (3 runs)")


def test_compare_cells__verdicts_are_corrected_for_the_number_of_comparisons():
    """Twenty policies without any effect, thirty seeds: single tests find some; with Holm's correction none is left."""
    random = np.random.default_rng(18)
    rows = [{"policy": f"p{k}", "seed": seed, "mean_wait": random.normal()} for k in range(21) for seed in range(30)]
    rows += [{"policy": "better", "seed": seed, "mean_wait": random.normal() - 3} for seed in range(30)]
    lines = compare_cells(pl.DataFrame(rows), ["policy"], metrics=["mean_wait"], baseline={"policy": "p0"})
    alone = [line for line in lines if line.difference is not None and not line.difference.low <= 0 <= line.difference.high]
    assert len(alone) == 9
    assert [line.combination["policy"] for line in lines if line.clear] == ["better"]
    p = {line.combination["policy"]: line.probability for line in lines if line.difference is not None}
    by = {name: np.array([row["mean_wait"] for row in rows if row["policy"] == name]) for name in [*p, "p0"]}
    single = sorted((float(stats.ttest_rel(by[name], by["p0"]).pvalue), name) for name in p)
    largest = 0.0
    for rank, (value, name) in enumerate(single):
        largest = max(largest, min(1.0, (len(single) - rank) * value))
        assert p[name] == pytest.approx(largest)


def test_report__run_without_chance_stands_for_every_seed(tmp_path):
    path = tmp_path / "plan.toml"
    log = tmp_path / "log.swf"
    wt.logs.write_swf(log, wt.workloads.Lublin99().generate(300, 64, 0.7, 1))
    path.write_text('[campaign]\nseeds = 4\n[fixed]\ntrace = "log.swf"\n[grid]\nestimates = ["exact", "f:5"]\n')
    run_campaign(read_plan(path))
    cells = cells_of(path)
    lines = compare_cells(cells, ["estimates"], metrics=["mean_wait"], baseline={"estimates": "exact"})
    exact, random = values(cells, "mean_wait", estimates="exact"), values(cells, "mean_wait", estimates="f:5")
    assert (len(exact), len(random)) == (1, 4)
    line = next(line for line in lines if line.combination["estimates"] == "f:5")
    assert line.difference is not None
    assert line.difference.mean == pytest.approx((random - exact[0]).mean())


@pytest.mark.slow
def test_report__by_groups(capsys, plan):
    status, out, _ = call(capsys, "campaign", "report", plan, "--by", "class", "--json", "--metric", "mean_wait")
    found = json.loads(out)["lines"]
    assert status == 0
    assert {line["group"] for line in found} == {"long narrow", "long wide", "short narrow", "short wide"}
    groups = Store(plan.parent / "plan.results").group_table().join(cells_of(plan).select("cell", "policy", "estimates"), on="cell")
    for line in found:
        mine = groups.filter(
            (pl.col("policy") == line["policy"]) & (pl.col("estimates") == line["estimates"]) & (pl.col("group") == line["group"])
        )
        assert line["mean"] == pytest.approx(mine["mean_wait"].mean())


@pytest.mark.slow
def test_report__as_text_and_files(capsys, plan, tmp_path):
    for name, read in (("out.csv", pl.read_csv), ("out.parquet", pl.read_parquet)):
        status, out, _ = call(capsys, "campaign", "report", plan, "--out", tmp_path / name)
        assert status == 0
        assert "vs easy" in out
        assert "24 cells written to" in out
        assert read(tmp_path / name)["mean_wait"].to_list() == cells_of(plan)["mean_wait"].to_list()


@pytest.mark.slow
def test_status__and_a_plan_that_is_half_done(golden, capsys, plan):
    status, out, _ = call(capsys, "campaign", "status", plan, "--json")
    assert (status, {k: v for k, v in json.loads(out).items() if k in ("cells", "done", "others")}) == (
        0,
        {"cells": 24, "done": 24, "others": 0},
    )
    more = plan.with_name("more.toml")
    more.write_text(PLAN.replace("seeds = 6", 'seeds = 8\nstore = "plan.results"'))
    golden("campaign", call(capsys, "campaign", "status", more)[1])
    status, _, err = call(capsys, "campaign", "report", more)
    assert status == 0
    assert "8 of 32 cells are missing" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ["--metric", "mean_joy"],
        ["--baseline", "policy"],
        ["--baseline", "polcy=easy"],
        ["--baseline", "policy=lifo"],
        ["--baseline", "load=0.7"],
        ["--baseline", "load=much"],
        ["--by", "month"],
        ["--out", "cells.txt"],
    ],
)
def test_report__refuses_what_it_does_not_know(golden, capsys, plan, options):
    golden("campaign", one_line(*call(capsys, "campaign", "report", plan, *options)))


def test_report__of_nothing(golden, capsys, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    golden("campaign", one_line(*call(capsys, "campaign", "report", path)))


# ------------------------------------------------------------------- caveats


def caveats_of(folder: Path, text: str, flurries: dict[str, int] | None = None) -> list[str]:
    path = folder / "plan.toml"
    path.write_text(text)
    run_campaign(read_plan(path))
    return [caveat.partition(":")[0] for caveat in campaign_caveats(read_plan(path), cells_of(path), flurries)]


def model(load: float, more: str = "", campaign: str = "") -> str:
    return f'[campaign]\n{campaign}\n[fixed]\nmodel = "lublin99"\njobs = 2000\nprocs = 64\nload = {load}\n{more}\n'


def test_caveats__none_where_all_is_well(tmp_path):
    assert caveats_of(tmp_path, model(0.5, 'estimates = "exact"', 'seeds = 3\ntrim = "tsafrir06"')) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (model(1.4, "", 'seeds = 2\ntrim = "tsafrir06"'), "Saturated"),
        (model(0.5, "", "seeds = 2"), "Averages include the beginning and end of each run"),
        (model(0.5, 'estimates = "f:4"', 'seeds = 2\ntrim = "tsafrir06"'), "Vanilla f-model"),
    ],
)
def test_caveats__one_for_each_reason(tmp_path, text, word):
    (found,) = caveats_of(tmp_path, text)
    assert found.startswith(word)


def test_caveats__near_saturation(golden):
    runs = {"makespan": 1000.0, "mean_wait": 1.0, "offered_load": [0.89, 0.9, 0.99], "utilization": [0.89, 0.9, 0.99], "jobs": 5}
    (found,) = (line for line in cell_caveats(pl.DataFrame(runs), [], "tsafrir06") if "aturation" in line or "aturated" in line)
    golden("campaign", found)


def test_caveats__on_missing_runs():
    cells = {"makespan": 1000.0, "mean_wait": 1.0, "offered_load": 0.5, "utilization": 0.5, "jobs": 5, "seed": [0, 1, 0, None]}
    table = pl.DataFrame(cells | {"policy": ["easy", "easy", "own", "fcfs"], "load": None})
    (found,) = cell_caveats(table, ["policy", "load"], "tsafrir06")
    assert found.startswith("Missing runs: 1 combination of 3")
    assert "policy=own" in found
    assert cell_caveats(table.filter(pl.col("policy") != "own"), ["policy", "load"], "tsafrir06") == []


def test_report__of_varied_jobs_pairs_runs_that_leave_different_numbers_out(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        '[campaign]\nseeds = 3\n[fixed]\nmodel = "lublin99"\nprocs = 64\nload = 0.7\nremove = "procs>16"\n[grid]\njobs = [60, 90]\n'
    )
    run_campaign(read_plan(path))
    lines = read_results(read_plan(path)).means(["mean_wait"])
    assert [(line.combination, line.runs) for line in lines] == [({"jobs": 60}, 3), ({"jobs": 90}, 3)]


def test_caveats__on_single_runs(tmp_path):
    assert caveats_of(tmp_path, model(0.5, "", 'trim = "tsafrir06"')) == ["Single runs"]


def test_caveats__on_flurries(tmp_path):
    assert caveats_of(tmp_path, model(0.5, "", 'seeds = 2\ntrim = "tsafrir06"'), {"log.swf": 2}) == ["Uncleaned"]
    assert caveats_of(tmp_path, model(0.5, 'estimates = "f:4,truncated=100000"', 'seeds = 2\ntrim = "tsafrir06"')) == []


SACCT = """JobID|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|State
1|anna|p|2025-01-01T00:00:00|2025-01-01T00:00:00|2025-01-01T00:10:00|600|20|4|COMPLETED
2|bert|p|2025-01-01T00:01:00|2025-01-01T00:10:00|2025-01-01T00:20:00|600|20|4|COMPLETED
"""
SWF = "".join(f"{k} {60 * k} -1 600 2 -1 -1 2 1200 -1 1 {k % 3} -1 -1 -1 -1 -1 -1\n" for k in range(1, 6))
WITHOUT_USERS = "".join(f"{k} {60 * k} -1 600 2 -1 -1 2 1200 -1 1 -1 -1 -1 -1 -1 -1 -1\n" for k in range(1, 6))
PBS = "".join(
    f"01/01/2025 00:{k}0:00;E;{k}.s;user=u{k} queue=q ctime={1735689600 + 60 * k} qtime={1735689600 + 60 * k} etime={1735689600 + 60 * k} "
    f"start={1735689600 + 60 * k} end={1735690200 + 60 * k} Resource_List.ncpus=2 Resource_List.walltime=00:20:00 "
    "resources_used.walltime=00:10:00 Exit_status=0\n"
    for k in range(1, 5)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"), [("a.swf", SWF), ("b.swf", WITHOUT_USERS), ("c.txt", SACCT), ("d.pbs", PBS)], ids=["swf", "no users", "sacct", "pbs"]
)
def test_report__of_a_log_that_does_not_give_the_size(capsys, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    path = tmp_path / "plan.toml"
    path.write_text(f"[fixed]\ntrace = '{name}'\nprocs = 4\n[grid]\npolicy = ['easy', 'fcfs']\n")
    assert call(capsys, "campaign", "run", path)[0] == 0
    assert call(capsys, "campaign", "status", path)[0] == 0
    status, out, err = call(capsys, "campaign", "report", path, "--report", tmp_path / "page.html", "--baseline", "policy=fcfs")
    assert (status, err) == (0, "")
    assert "mean_wait" in out or "mean wait" in out
    assert (tmp_path / "page.html").stat().st_size > 1000


@pytest.mark.slow
def test_status__does_not_run_the_plans_own_code(capsys, tmp_path):
    ran = tmp_path / "ran"
    (tmp_path / "own.py").write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\ndef widest(procs):\n    return procs\n")
    path = tmp_path / "plan.toml"
    path.write_text("[fixed]\nmodel = 'lublin99'\njobs = 20\nprocs = 64\n[grid]\npolicy = ['easy', 'easy:order=own.py:widest']\n")
    status, out, _ = call(capsys, "campaign", "status", path)
    assert (status, "0 of 2 cells are done" in out, ran.exists()) == (0, True, False)
    assert str(tmp_path / "own.py") in out, "what will run is said before it does"
    assert call(capsys, "campaign", "run", path)[0] == 2
    assert not ran.exists()
    status, _, err = call(capsys, "campaign", "run", path, "--own", tmp_path / "own.py")
    assert (status, str(tmp_path / "own.py") in err) == (0, True)
    assert ran.exists()
    ran.unlink()
    assert "2 of 2 cells are done" in call(capsys, "campaign", "status", path)[1]
    assert not ran.exists()


def test_caveats__count_predictions_below_zero(golden, tmp_path):
    (tmp_path / "below.py").write_text(
        "class Below:\n    def predict(self, job):\n        return -5 if job.job_id % 7 == 0 else 60\n"
        "    def observe(self, job):\n        pass\n"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[campaign]\nseeds = 1\n[fixed]\nmodel = "lublin99"\njobs = 70\nprocs = 64\nload = 0.7\npolicy = "easy"\n'
        '[grid]\npredictor = ["below.py:Below", "exact"]\n'
    )
    run_campaign(read_plan(plan, own=[tmp_path / "below.py"]))
    [said] = [line for line in campaign_caveats(read_plan(plan, run_files=False), cells_of(plan)) if "below 0" in line]
    golden("campaign", said)


def test_pivot__keeps_the_name_of_a_metric_of_ones_own():
    cells = pl.DataFrame({"policy": ["easy", "fcfs"], "seed": [0, 0], "mean_wait": [60.0, 90.0]})
    lines = compare_cells(cells, ["policy"], metrics=["mean_wait"])
    titles = [table.title for table in pivot_tables([*lines, *(replace(line, metric="parts.py:p99") for line in lines)], "policy", None)]
    assert titles == ["Mean wait (min)", "parts.py:p99"]
