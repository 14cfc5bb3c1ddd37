"""Plans of campaigns: what is wrong with one is said in one line, and what a good one means is spelled out as cells."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from walltime.campaign import DIMENSIONS, Plan, plan_keys, read_plan
from walltime.errors import PolicyError

MODEL = 'model = "lublin99"\njobs = 50\nprocs = 16\n'
LOG = HEADER + record(1, 0, 10, 3, 10) + record(2, 1, 10, 4, 12) + record(3, 2, 5, 1, 6) + record(4, 3, 4, 2, 8)


def fixed(text: str, model: str = MODEL) -> str:
    return f"[fixed]\n{model}{text}\n"


def campaign(text: str) -> str:
    return f"[campaign]\n{text}\n{fixed('')}"


def grid(text: str) -> str:
    return f"{fixed('')}[grid]\n{text}\n"


def zipped(text: str) -> str:
    return f"{fixed('')}[zip]\n{text}\n"


BAD: dict[str, tuple[str, list[str]]] = {
    "no TOML": ("[campaign\n", ["not a valid TOML file", "line 1"]),
    "a key twice": (fixed("jobs = 3"), ["not a valid TOML file"]),
    "empty": ("", ["a trace or a model", "put one of them into"]),
    "unknown table": (
        f"{fixed('')}[gird]\npolicy = ['easy']\n",
        ["unknown table 'gird'", "Did you mean 'grid'", "Valid options: campaign"],
    ),
    "unknown table without a near one": (f"{fixed('')}[wxyz]\n", ["unknown table 'wxyz'", "Valid options: campaign"]),
    "table is no table": ("grid = 3\n", ["grid must be a table", "[grid]"]),
    "campaign is no table": ("campaign = 'a'\n", ["campaign must be a table"]),
    "zip is a number": (f"zip = 3\n{fixed('')}", ["zip"]),
    "zip is a list of numbers": (f"zip = [3]\n{fixed('')}", ["zip number 1 must be a table"]),
    "grid is many tables": (f"{fixed('')}[[grid]]\npolicy = ['easy']\n", ["grid must be a table"]),
    "unknown key of campaign": (campaign("seed = 3"), ["unknown key 'seed' in campaign", "Did you mean 'seeds'", "Valid options:"]),
    "unknown key of fixed": (
        fixed("polcy = 'easy'"),
        ["unknown key 'polcy' in fixed", "Did you mean 'policy'", "Valid options: trace, model"],
    ),
    "unknown key of grid": (grid("estimate = ['user']"), ["unknown key 'estimate' in grid", "Did you mean 'estimates'"]),
    "unknown key of zip": (zipped("lod = [0.5]"), ["unknown key 'lod' in zip", "Did you mean 'load'"]),
    "name is no text": (campaign("name = 3"), ["campaign.name must be a string, not 3"]),
    "store is no text": (campaign("store = 3"), ["campaign.store must be a string"]),
    "dynamics is no yes or no": (campaign("dynamics = 1"), ["campaign.dynamics must be true or false, not 1"]),
    "groups is no list": (campaign("groups = 'month'"), ["campaign.groups must be a list"]),
    "unknown grouping": (
        campaign("groups = ['months']"),
        ["campaign.groups", "'months'", "Did you mean 'month'", "Valid options: month, class"],
    ),
    "grouping is no text": (campaign("groups = [['month']]"), ["campaign.groups must be one of month, class"]),
    "grouping twice": (campaign("groups = ['month', 'month']"), ["campaign.groups", "twice"]),
    "unknown trim": (campaign("trim = 'p4'"), ["campaign.trim", "unknown trim 'p4'", "Valid options: none, tsafrir06"]),
    "trim is no text": (campaign("trim = 3"), ["campaign.trim must be a string"]),
    "seeds below 1": (campaign("seeds = 0"), ["campaign.seeds must be from 1 to"]),
    "seeds are text": (campaign("seeds = 'all'"), ["campaign.seeds must be"]),
    "seeds are yes": (campaign("seeds = true"), ["campaign.seeds must be"]),
    "no seeds": (campaign("seeds = []"), ["campaign.seeds must be"]),
    "negative seed": (campaign("seeds = [1, -1]"), ["campaign.seeds must be"]),
    "seed is no whole number": (campaign("seeds = [1.5]"), ["campaign.seeds must be"]),
    "seed too large": (campaign(f"seeds = [{2**63}]"), ["campaign.seeds must be"]),
    "seed twice": (campaign("seeds = [3, 4, 3]"), ["campaign.seeds: contains 3 twice"]),
    "too many seeds": (campaign(f"seeds = {10**17}"), ["campaign.seeds must be from 1 to 10,000,000", "make several plans"]),
    "far too many seeds": (campaign(f"seeds = {10**30}"), ["campaign.seeds must be from 1 to"]),
    "too many cells": (
        "[campaign]\nseeds = 100_000\n" + grid(f"shake = {list(range(200))}"),
        ["20,000,000 cells", "more than the maximum of 10,000,000", "into several plans"],
    ),
    "grid without a list": (grid("policy = 'easy'"), ["grid.policy must be a list (a single value goes into the table fixed), not 'easy'"]),
    "empty list": (grid("policy = []"), ["grid.policy is an empty list"]),
    "empty list in zip": (zipped("policy = []"), ["zip.policy is an empty list"]),
    "grid names a value twice": (grid("estimates = ['f:2', 'f:2']"), ["grid.estimates: contains 'f:2' twice"]),
    "grid names a default twice": (grid("policy = ['easy', 'default']"), ["grid.policy: contains 'easy' twice"]),
    "lists of other lengths": (
        zipped("load = [0.5, 0.6, 0.7]\nshake = [0, 30]"),
        ["zip", "must have the same length", "load has 3", "shake has 2"],
    ),
    "lists of other lengths in the second zip": (
        fixed("") + "[[zip]]\nload = [0.5]\n[[zip]]\nshake = [0, 30]\nhead = [1]\n",
        ["zip number 2", "shake has 2"],
    ),
    "fixed and grid": (fixed("policy = 'easy'") + "[grid]\npolicy = ['fcfs']\n", ["policy is in the tables fixed and grid"]),
    "grid and zip": (grid("load = [0.5]") + "[zip]\nload = [0.6]\n", ["load is in the tables grid and zip"]),
    "two zips": (fixed("") + "[[zip]]\nload = [0.5]\n[[zip]]\nload = [0.6]\n", ["load is in the tables zip number 1 and zip number 2"]),
    "whole number as text": (fixed("shake = '30'"), ["fixed.shake must be a whole number of 0 or more, not '30'"]),
    "whole number with a point": (fixed("head = 3.0"), ["fixed.head must be a whole number of 1 or more, not 3.0"]),
    "whole number as yes": (fixed("head = true"), ["fixed.head must be a whole number of 1 or more, not True"]),
    "text as a number": (grid("policy = ['easy', 3]"), ["grid.policy must be a string, not 3"]),
    "yes or no as text": (fixed("feedback = 'yes'"), ["fixed.feedback must be true or false, not 'yes'"]),
    "list in fixed": (fixed("policy = ['easy']"), ["fixed.policy must be a string, not ['easy']"]),
    "table in grid": (grid("policy = [{a = 1}]"), ["grid.policy must be a string"]),
    "neither trace nor model": (fixed("policy = 'easy'", ""), ["a trace or a model"]),
    "trace and model": (fixed("trace = 'small.swf'"), ["either a trace or a model"]),
    "trace and model in some cells": (
        fixed("", "") + "[zip]\ntrace = ['small.swf', 'default']\nmodel = ['default', 'default']\n",
        ["a trace or a model"],
    ),
    "jobs with a trace": (fixed("jobs = 10", 'trace = "small.swf"\n'), ["jobs is the number of jobs of a model", "head"]),
    "unknown model": (fixed("", 'model = "lublin98"\n'), ["fixed.model", "'lublin98'", "Valid options: lublin99"]),
    "unknown parameter of a model": (fixed("", 'model = "downey97:gap=3"\n'), ["fixed.model", "unknown option 'gap'"]),
    "unknown policy": (grid("policy = ['easy', 'esay']"), ["grid.policy", "unknown policy 'esay'", "Valid options: fcfs, easy"]),
    "hybrid without a depth": (fixed("policy = 'hybrid:depth=x'"), ["fixed.policy", "option depth of the policy 'hybrid:depth=x' must be"]),
    "unknown order": (fixed("order = 'lifo'"), ["fixed.order", "unknown order 'lifo'", "Valid options: fcfs"]),
    "order of a file that is not there": (fixed("order = 'none.py:mine'"), ["none.py", "is not allowed to run"]),
    "unknown backfill order": (fixed("backfill_order = 'lifo'"), ["fixed.backfill_order", "unknown order 'lifo'"]),
    "backfill order without backfilling": (
        grid("policy = ['easy', 'fcfs']\nbackfill_order = ['sjf']"),
        ["backfill_order", "fcfs has no backfill order", "leave it out"],
    ),
    "unknown estimates": (
        grid("estimates = ['exakt']"),
        ["grid.estimates", "unknown estimates 'exakt'", "Valid options: user, exact, double"],
    ),
    "estimates without a number": (grid("estimates = ['f:many']"), ["grid.estimates", "'many'", "must be a number"]),
    "estimates below the runtime": (grid("estimates = ['f:0.5']"), ["grid.estimates"]),
    "unknown overrun": (fixed("overrun = 'die'"), ["fixed.overrun", "unknown value 'die'", "Valid options: kill"]),
    "unknown coincident": (fixed("coincident = 'both'"), ["fixed.coincident", "Valid options: batch, sequential"]),
    "unknown too_wide": (fixed("too_wide = 'cut'"), ["fixed.too_wide", "Valid options: drop, clip, error"]),
    "unknown partial": (fixed("partial = 'all'"), ["fixed.partial", "Valid options: summary, parts"]),
    "load of 0": (grid("load = [0.5, 0]"), ["grid.load must be a number over 0 and up to 1.5, not 0"]),
    "load too high": (grid("load = [1.6]"), ["grid.load must be a number over 0 and up to 1.5, not 1.6"]),
    "load is no number": (grid("load = [nan]"), ["grid.load must be a number"]),
    "load as text": (grid("load = ['0.5']"), ["grid.load must be a number over 0 and up to 1.5, not '0.5'"]),
    "unknown way of scaling": (fixed("load = 0.5\nscale_by = 'jobs'"), ["fixed.scale_by", "Valid options: interarrival"]),
    "scaling without a load": (fixed("scale_by = 'size'"), ["scale_by needs a load", "leave scale_by out"]),
    "negative shake": (fixed("shake = -1"), ["fixed.shake", "0 or more"]),
    "no procs": (fixed("", 'model = "lublin99"\nprocs = 0\n'), ["fixed.procs", "1 or more"]),
    "no jobs": (fixed("", 'model = "lublin99"\njobs = 0\n'), ["fixed.jobs", "1 or more"]),
    "window is no span": (fixed("window = '30d'"), ["fixed.window", "BEGIN:END"]),
    "seeds for nothing": ("[campaign]\nseeds = 5\n" + fixed("", 'trace = "small.swf"\n'), ["no randomness", "leave seeds out"]),
    "remove is no filter": (fixed("remove = 'user=='"), ["remove"]),
}


def run_bad(capsys, folder: Path, content: str | bytes, *beside: str) -> tuple[int, str]:
    """Exit status and the line, after a look that nothing is left in the folder but the plan and what was there."""
    plan = folder / "plan.toml"
    plan.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = call(capsys, "campaign", "run", plan)
    line = one_line(*result)
    assert sorted(path.name for path in folder.iterdir()) == sorted(["plan.toml", *beside])
    assert str(plan) in line
    return result[0], line


@pytest.mark.parametrize("kind", BAD)
def test_run__refuses_a_bad_plan_in_one_line(capsys, tmp_path, kind):
    (tmp_path / "small.swf").write_text(LOG)
    text, words = BAD[kind]
    status, line = run_bad(capsys, tmp_path, text, "small.swf")
    assert status == 2
    for word in words:
        assert word in line


def test_run__refuses_a_plan_that_is_not_there(capsys, tmp_path):
    for plan, word in ((tmp_path / "none.toml", "no such file"), (tmp_path, "is a directory")):
        line = one_line(*call(capsys, "campaign", "run", plan))
        assert f"{plan}: cannot be read ({word}" in line
        assert list(tmp_path.iterdir()) == []


def test_run__refuses_a_plan_that_is_no_text(capsys, tmp_path):
    status, line = run_bad(capsys, tmp_path, b"name = '\xff\xfe'\n")
    assert status == 2
    assert "UTF-8" in line


@pytest.mark.parametrize("action", ["run", "status", "report"])
def test_missing_log__is_named_with_the_plan(golden, capsys, tmp_path, action):
    plan = tmp_path / "plan.toml"
    plan.write_text(fixed("", 'trace = "none.swf"\n'))
    status, out, err = call(capsys, "campaign", action, plan)
    line = one_line(status, out, err)
    assert status == 1
    golden("campaign", line)
    assert str(plan) in line
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


def test_log_of_the_catalogue__that_was_not_fetched(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("WALLTIME_TRACES", raising=False)
    monkeypatch.setenv("WALLTIME_LOGS", str(tmp_path))
    plan = tmp_path / "plan.toml"
    plan.write_text(fixed("", 'trace = "KTH-SP2"\n'))
    status, out, err = call(capsys, "campaign", "run", plan)
    assert status == 1
    assert "walltime fetch" in one_line(status, out, err)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "word"),
    [(HEADER + "1 2 three\n", "bad.swf:5"), (HEADER, "bad.swf"), ("", "bad.swf"), (HEADER + record(1, 0, 10, 9, 10), "bad.swf")],
)
def test_bad_log__is_named_with_its_line(capsys, tmp_path, content, word):
    (tmp_path / "bad.swf").write_text(content)
    plan = tmp_path / "plan.toml"
    plan.write_text(fixed("", 'trace = "bad.swf"\n'))
    status, out, err = call(capsys, "campaign", "run", plan)
    assert status == 1
    (line,) = [line for line in out.splitlines() if "1 cell failed" in line]
    assert word in line
    assert err.count("\n") == 1
    assert list((tmp_path / "plan.results").glob("cells/*")) == []


def test_options__that_exclude_each_other(capsys, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(fixed(""))
    assert "--workers" in one_line(*call(capsys, "campaign", "run", plan, "--workers", 1, "--dask", "tcp://127.0.0.1:1"))
    assert "--workers" in one_line(*call(capsys, "campaign", "run", plan, "--workers", 0))
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


# --------------------------------------------------------------------------------------------------------- what it means


def read(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return read_plan(path)


def test_read_plan__raises_one_kind_of_error(tmp_path):
    with raises(PolicyError, "not_toml", "plan.toml"):
        read(tmp_path, "=")


@pytest.mark.slow
def test_cells__are_grid_times_zip_times_fixed_times_seeds(tmp_path):
    plan = read(
        tmp_path,
        """
        [campaign]
        seeds = [4, 7]
        trim = "tsafrir06"
        dynamics = true
        groups = ["class", "user"]
        [fixed]
        model = "lublin99"
        jobs = 50
        overrun = "extend"
        [grid]
        policy = ["fcfs", "easy"]
        estimates = ["exact", "f:3", "default"]
        [[zip]]
        procs = [16, 64]
        load = [0.5, 0.8]
        [[zip]]
        shake = [0, 30]
        """,
    )
    expected = {
        (policy, estimates, procs, load, shake, seed)
        for policy, estimates, (procs, load), shake, seed in itertools.product(
            ["fcfs", "easy"], ["exact", "f:3", "user"], [(16, 0.5), (64, 0.8)], [0, 30], [4, 7]
        )
    }
    found = [(*(cell.settings[w] for w in ("policy", "estimates", "procs", "load", "shake")), cell.seed) for cell in plan.cells]
    assert len(found) == len(set(found)) == 48
    assert set(found) == expected
    for cell in plan.cells:
        assert (cell.trim, cell.dynamics, cell.groups) == ("tsafrir06", True, ("class", "user"))
        rest = {name: value for name, value in cell.settings.items() if name not in ("policy", "estimates", "procs", "load", "shake")}
        own = {"model": "lublin99", "jobs": 50, "overrun": "extend"}
        assert rest == {name: own.get(name, DIMENSIONS[name].default) for name in rest}
    assert plan.varied == ["procs", "load", "shake", "policy", "estimates"]
    assert len(set(plan_keys(plan))) == 48


def test_cells__in_which_nothing_is_random_are_run_once(tmp_path):
    (tmp_path / "small.swf").write_text(LOG)
    plan = read(
        tmp_path,
        """
        [campaign]
        seeds = 3
        [fixed]
        trace = "small.swf"
        [grid]
        policy = ["fcfs", "easy"]
        estimates = ["user", "exact", "double", "f:3,deterministic=yes", "f:3"]
        """,
    )
    found = sorted((cell.settings["estimates"], cell.settings["policy"], cell.seed) for cell in plan.cells if cell.seed is not None)
    assert found == [("f:3", policy, seed) for policy in ("easy", "fcfs") for seed in range(3)]
    once = [cell for cell in plan.cells if cell.seed is None]
    assert len(once) == 8
    assert plan.varied == ["policy", "estimates"]


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ('trace = "small.swf"', 1),
        ('trace = "small.swf"\nload = 0.5', 1),
        ('trace = "small.swf"\nload = 0.5\nscale_by = "runtime"', 1),
        ('trace = "small.swf"\nload = 0.5\nscale_by = "thin"', 4),
        ('trace = "small.swf"\nshake = 30', 4),
        ('trace = "small.swf"\nestimates = "tsafrir05"', 4),
        ('trace = "small.swf"\nestimates = "mualem01"', 4),
        ('model = "lublin99"', 4),
    ],
)
def test_cells__are_repeated_where_something_is_random(tmp_path, words, runs):
    """A second workload, which is random, keeps the plan from being refused."""
    (tmp_path / "small.swf").write_text(LOG)
    name, value = words.split("\n")[0].split(" = ")
    rest = "\n".join(words.split("\n")[1:])
    other = 'trace = ["default"]' if name == "model" else 'model = ["default"]'
    wide = f"[zip]\n{name} = [{value}]\n{other}\n" if name == "model" else f"[zip]\n{name} = [{value}]\n"
    seeds = 4 if runs == 4 else 1
    plan = read(tmp_path, f"[campaign]\nseeds = {seeds}\n[fixed]\n{rest}\n{wide}")
    assert [cell.seed for cell in plan.cells] == (list(range(4)) if runs == 4 else [None])


def test_default__stands_for_what_a_word_is_without_being_named(tmp_path):
    (tmp_path / "small.swf").write_text(LOG)
    plan = read(
        tmp_path,
        """
        [zip]
        trace = ["small.swf", "default"]
        model = ["default", "lublin99"]
        jobs = ["default", 70]
        load = ["default", 0.7]
        backfill_order = ["sjf", "default"]
        """,
    )
    found = {tuple(cell.settings[w] for w in ("trace", "model", "load", "backfill_order")) for cell in plan.cells}
    assert found == {("small.swf", None, None, "sjf"), (None, "lublin99", 0.7, None)}
    assert [cell.settings["jobs"] for cell in plan.cells if cell.settings["model"]] == [70]


def test_backfill_order__goes_with_the_policies_that_have_one(tmp_path):
    plan = read(tmp_path, fixed("") + "[zip]\npolicy = ['fcfs', 'easy']\nbackfill_order = ['default', 'sjf']\n")
    assert [(c.settings["policy"], c.settings["backfill_order"]) for c in plan.cells] == [("easy", "sjf"), ("fcfs", None)]


def test_same_seed__means_the_same_workload_for_all_that_is_compared(tmp_path):
    plan = read(tmp_path, "[campaign]\nseeds = 3\n" + grid("policy = ['fcfs', 'easy']\nestimates = ['f:2', 'exact']"))
    of_seed: dict[int | None, set[object]] = {}
    for cell in plan.cells:
        of_seed.setdefault(cell.seed, set()).add(cell.workload)
    assert sorted(of_seed, key=str) == [0, 1, 2]
    assert [len(workloads) for workloads in of_seed.values()] == [1, 1, 1]
    assert len(set.union(*of_seed.values())) == 3


def test_cells__that_share_a_workload_are_neighbours(tmp_path):
    plan = read(tmp_path, "[campaign]\nseeds = 12\n" + grid("policy = ['fcfs', 'easy']\nestimates = ['f:2', 'exact']\nload = [0.5, 0.9]"))
    changes = sum(a.workload != b.workload for a, b in itertools.pairwise(plan.cells))
    assert changes == len({cell.workload for cell in plan.cells}) - 1 == 23


def test_varied__names_what_differs_and_no_more(tmp_path):
    plan = read(tmp_path, grid("policy = ['easy']\nload = [0.5, 0.6]") + "[zip]\nshake = [0, 0]\nestimates = ['f:2', 'f:3']\n")
    assert plan.varied == ["load", "estimates"]


@pytest.mark.slow
def test_keys__tell_apart_what_is_computed_differently(tmp_path):
    (tmp_path / "small.swf").write_text(LOG)
    (tmp_path / "same.swf").write_text(LOG)
    (tmp_path / "other.swf").write_text(LOG + record(5, 4, 4, 2, 8))

    def keys(text: str) -> list[str]:
        return plan_keys(read(tmp_path, text))

    base = fixed("", 'trace = "small.swf"\n')
    assert keys(base) == keys(base) == keys(fixed("policy = 'easy'", 'trace = "same.swf"\n'))  # the log's name does not count
    assert keys(base) == keys(f"[campaign]\nname = 'x'\nstore = 'y'\n{base}")
    others = [
        fixed("", 'trace = "other.swf"\n'),
        fixed("policy = 'fcfs'", 'trace = "small.swf"\n'),
        fixed("shake = 3", 'trace = "small.swf"\n'),
        fixed("head = 3", 'trace = "small.swf"\n'),
        f"[campaign]\ntrim = 'tsafrir06'\n{base}",
        f"[campaign]\ndynamics = true\n{base}",
        f"[campaign]\ngroups = ['class']\n{base}",
        fixed(""),
        "[campaign]\nseeds = [9]\n" + fixed(""),
    ]
    found = [key for text in [base, *others] for key in keys(text)]
    assert len(set(found)) == len(found) == 10


@pytest.mark.nightly
def test_dask__processes_of_this_machine_give_the_same_results(tmp_path):
    from walltime.campaign import Dask, Store, Threads, read_plan, run_campaign

    plan = tmp_path / "plan.toml"
    plan.write_text('[campaign]\nseeds = 2\n[fixed]\nmodel = "lublin99"\njobs = 100\nprocs = 64\n[grid]\npolicy = ["easy"]\n')
    executor = Dask("local:workers=1")
    try:
        run_campaign(read_plan(plan), Store(tmp_path / "a"), executor)
    finally:
        executor.close()
    run_campaign(read_plan(plan), Store(tmp_path / "b"), Threads(1))
    tables = [Store(tmp_path / name).table().sort("cell") for name in "ab"]
    assert tables[0].select("cell", "mean_wait").equals(tables[1].select("cell", "mean_wait"))
