"""The benchmarks: the C++ program is EASY, a run stores its numbers, and the page shows them. No test asserts a time."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import compression, nodes, peers, run
from benchmarks.batches import worker_counts
from benchmarks.common import Options, kernel_run, take_turns
from benchmarks.limit import CompiledEasy, compare, compile_easy, compiler
from benchmarks.speed import mean_depth, steady_queue
from walltime.policy import Conservative, Easy
from walltime.simulation import simulate
from walltime.workload import Workload

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "validation/performance.md"
MARK = re.compile(r"^<!-- generated: performance (\S+) -->$", re.MULTILINE)


@pytest.fixture(scope="module")
def easy(tmp_path_factory) -> Path:
    if compiler() is None:
        pytest.skip("there is no C++ compiler here (g++ or c++)")
    return compile_easy(tmp_path_factory.mktemp("easy"))


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "generators")
    import performance_tables

    yield performance_tables
    for name in ("performance_tables", "performance_figures"):
        sys.modules.pop(name, None)


def small_workload(seed: int) -> Workload:
    """Jobs on a small machine, many of them coming and ending at the same instants, some of no length."""
    rng = np.random.default_rng(seed)
    jobs, procs = int(rng.integers(1, 400)), int(rng.integers(1, 20))
    step = int(rng.choice([1, 5, 60]))
    runtime = rng.integers(0, 12, jobs) * step
    return Workload.from_arrays(
        submit=np.sort(rng.integers(0, 6 * jobs, jobs)) // step * step,
        runtime=runtime,
        requested=np.maximum(runtime + rng.integers(-1, 6, jobs) * step, 1),
        procs=rng.integers(1, procs + 1, jobs),
        machine_procs=procs,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_cpp__starts_every_job_when_the_kernel_does(easy, seed):
    workload = small_workload(seed)
    with CompiledEasy(easy, workload) as program:
        assert program.run() >= 0
        assert program.run() >= 0
        starts = program.starts()
    assert starts.tolist() == kernel_run(workload, Easy()).start.tolist()


@pytest.mark.slow
def test_cpp__does_with_the_deepest_queue(easy):
    workload = steady_queue(Easy(), 2000, 500)
    assert compare(easy, workload, Options(runs=1))["jobs"] == len(workload)


@pytest.mark.slow
def test_cpp__a_different_schedule_is_an_error(easy, monkeypatch):
    monkeypatch.setattr(CompiledEasy, "starts", lambda self: np.full(self.jobs, -5))
    with pytest.raises(ValueError, match=r"C\+\+"):
        compare(easy, small_workload(1), Options(runs=1))


def test_limit__without_a_compiler_says_so(monkeypatch, tmp_path, tables):
    monkeypatch.setattr("shutil.which", lambda name: None)
    run.main(["--quick", "--only", "limit", "--out", str(tmp_path / "p.json")])
    assert "there is no C++ compiler" in tables.performance("limit", tmp_path / "p.json")


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Easy(), Conservative()], ids=["easy", "conservative"])
def test_steady_queue__keeps_its_depth(policy):
    workload = steady_queue(policy, 100, 5000)
    start = kernel_run(workload, policy).start
    for first in (1000, 2000, 3000, 4000):
        assert mean_depth(workload.submit, start, first, first + 1000) == pytest.approx(90, abs=25)


def test_mean_depth__counts_those_left_waiting_by_a_start():
    # three jobs at 0, one at 5; starts at 0, 4, 6, 8 leave 2, 1, 1 and 0 waiting
    assert mean_depth(np.array([0, 0, 0, 5]), np.array([0, 4, 6, 8]), 0, 4) == 1


def test_take_turns__runs_long_ones_less_often():
    taken = take_turns({"short": lambda: 0.5, "long": lambda: 100.0}, Options(runs=5, long_runs=2))
    assert taken["short"] == {"median": 0.5, "low": 0.5, "high": 0.5, "runs": 5}
    assert taken["long"]["runs"] == 2


@pytest.mark.parametrize(("cores", "counts"), [(1, [1]), (2, [1, 2]), (8, [*range(1, 9)]), (12, [*range(1, 9), 12])])
def test_worker_counts__end_with_all_cores(cores, counts):
    assert worker_counts(cores) == counts


def rendered(tables, file: Path) -> str:
    return MARK.sub(lambda mark: tables.performance(mark[1], file), PAGE.read_text())


def test_page__shows_what_a_run_stored(tmp_path, tables, capsys):
    file = tmp_path / "performance.json"
    run.main(["--quick", "--runs", "1", "--only", "making", "--out", str(file)])
    assert "generate lublin99" in capsys.readouterr().out
    numbers = json.loads(file.read_text())
    assert list(numbers) == ["making"]
    assert {"date", "cores", "cpu", "load_before", "python", "numba", "walltime"} <= set(numbers["making"]["environment"])
    page = rendered(tables, file)
    assert "generate lublin99" in page
    assert "Not measured: section `growth`" in page

    numbers["making"]["result"]["seconds"]["generate lublin99"]["median"] = 123.4
    file.write_text(json.dumps(numbers))
    changed = rendered(tables, file)
    assert "123" in changed
    assert changed != page


def test_run__keeps_the_sections_that_it_does_not_run(tmp_path):
    file = tmp_path / "performance.json"
    file.write_text(json.dumps({"start": {"kept": True}}))
    run.main(["--quick", "--runs", "1", "--only", "making", "--out", str(file)])
    numbers = json.loads(file.read_text())
    assert list(numbers) == ["making", "start"]
    assert numbers["start"] == {"kept": True}
    assert [path.name for path in tmp_path.iterdir()] == ["performance.json"]


def test_run__quick_leaves_the_real_numbers_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(run, "OUT", tmp_path / "performance.json")
    run.main(["--quick", "--runs", "1", "--only", "making"])
    assert not run.OUT.exists()


def test_page__says_that_nothing_was_measured(tmp_path, tables):
    page = rendered(tables, tmp_path / "none.json")
    assert "Nothing has been measured" in page
    assert page.count("Not measured") == len(tables.PARTS)


def test_page__shows_every_part_and_every_figure(tables):
    parts = MARK.findall(PAGE.read_text())
    assert sorted(parts) == sorted([*tables.PARTS, "runs"])
    import performance_figures

    assert re.findall(r"generated: performance-figure (\S+)", PAGE.read_text()) == list(performance_figures.FIGURES)


@pytest.mark.slow
def test_page__figures_follow_the_numbers(tmp_path, tables):
    import performance_figures

    file = tmp_path / "performance.json"
    about = {"quick": False}
    points = [{"workers": 1, "speedup": 1.0}, {"workers": 2, "speedup": 1.9}]
    drawn = []
    for speedup in (1.9, 1.5):
        points[1]["speedup"] = speedup
        file.write_text(json.dumps({"threads": {"environment": about, "result": {"points": points}}}))
        drawn.append(performance_figures.figures(file))
    assert [list(d) for d in drawn] == [["performance-threads.svg"]] * 2
    assert drawn[0] != drawn[1]
    assert "performance-threads.svg" in performance_figures.figure("threads", file)
    assert performance_figures.figure("growth", file) == ""


def test_several_pools__every_job_has_room_and_the_machine_is_as_large():
    log = small_workload(3)
    workload = replace(log, machine_procs=40, columns=log.columns | {"user": np.arange(len(log)) % 7})
    split, machine = nodes.several_pools(workload, 20, 2)
    assert sum(pool.nodes * pool.procs for pool in machine.pools) == 40
    room = {"1": 40, "2": 30, "3": 20}
    assert all(procs <= room[str(part)] for procs, part in zip(split.procs, split.columns["partition"], strict=True))
    assert (simulate(split, "easy", machine=machine).start >= split.submit).all()


def test_nodes__what_is_measured_is_on_the_page(tmp_path, tables, monkeypatch):
    monkeypatch.setattr(nodes, "CASES", {"small, 20 x 2": ("small", 20, 2)})
    monkeypatch.setattr(nodes, "find_log", lambda beginning: Path("small.swf"))
    monkeypatch.setattr(nodes, "read_log", lambda file: replace(small_workload(3), machine_procs=40))
    monkeypatch.setattr(nodes, "child", lambda *call: {"peak_bytes": 3_000_000, "bytes_per_job": 100.0, "bytes_per_node": 150_000.0})
    file = tmp_path / "performance.json"
    nodes.main(["--only", "small", "--policies", "easy", "slurm", "--runs", "1", "--out", str(file)])
    page = tables.performance("nodes", file)
    assert page.count("| small, 20 x 2 |") == 2
    assert "Compilation was not measured" in tables.performance("nodes-compilation", file)
    assert "| small, 20 x 2 | 3 | 100 | 150,000 |" in tables.performance("nodes-memory", file)


def test_compression__by_hand():
    """On two processors, the first job ends 50 s early, and two jobs move forward: each takes one step, which it begins and ends."""
    workload = Workload.from_arrays(submit=[0, 0, 0], runtime=[50, 10, 10], requested=[100, 10, 10], procs=[2, 2, 2], machine_procs=2)
    assert compression.moves(workload) == {"compressions": 1, "waiting": 2, "moves": 2, "steps": 6}


def test_peers__a_log_that_cannot_be_read_is_a_row_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "ours", lambda *options: lambda jobs, folder: peers.Run({}, 1, 2))
    (tmp_path / "small.swf").write_text("; MaxProcs: 4\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n")
    rows = list(peers.rows(["SDSC-SP3", str(tmp_path / "small.swf")], 5, {}))
    assert [row[:3] for row in rows] == [["SDSC-SP3", "", ""], ["small", "walltime", "1"]]
    assert "SDSC-SP3" in rows[0][3]
    assert "\n" not in rows[0][3]
