"""Benchmark suites: their windows are frozen, results can be checked, and leaderboards say what is clear."""

import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from tests.traces import trace_folder
from walltime.benchmark import SUITES, leaderboard, parse_suite, read_suite, result, run_suite, verify_result
from walltime.errors import OutputError, PolicyError, WorkloadError

DEFINITION = """
name = "classic"
version = 1
title = "Small."
metrics = ["mean_bounded_slowdown", "mean_wait"]
overrun = "kill"
baselines = ["fcfs"]

[[subject]]
name = "small"
windows = [{}]
model = "lublin99"
jobs = 200
procs = 32
load = 0.8
first_seed = 1
seeds = 3
warm_jobs = 20
users = 5
estimates = "f:4"
"""


@pytest.fixture
def suite(monkeypatch):
    """A small suite in the place of all others."""
    loose = parse_suite(DEFINITION.format("").encode())
    sums = ", ".join(f'"{one.checksum}"' for one in loose.subjects[0].windows(check=False))
    small = parse_suite(DEFINITION.format(sums).encode())
    for module in ("result", "standings"):
        monkeypatch.setattr(f"walltime.benchmark.{module}.read_suite", lambda name: small)
    monkeypatch.setattr("walltime.benchmark.tables.read_suite", lambda name: small)
    return small


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SUITES if name != "archive"])
def test_suites__generate_the_jobs_that_were_frozen(name):
    for subject in read_suite(name).subjects:
        assert len(subject.windows()) == len(set(subject.checksums)) == 5


def test_suites__have_subjects_and_readable_baselines():
    for name in SUITES:
        suite = read_suite(name)
        assert suite.name == name
        assert all(subject.checksums for subject in suite.subjects)
        assert [wt.Scheduler.of(text) for text in suite.baselines]
    with raises(PolicyError, "unknown_suite", "classic"):
        read_suite("modern")


def test_suite__refuses_other_jobs():
    other = parse_suite(DEFINITION.format('"0"').encode())
    with raises(WorkloadError, "other_jobs"):
        other.subjects[0].windows()


@pytest.mark.slow
def test_run__result_holds_and_goes_on(suite, tmp_path):
    path = run_suite(suite, "easy", tmp_path / "a", workers=1)
    found = json.loads(path.read_text())
    assert found["definition"] == suite.definition
    assert len(found["windows"]) == 3
    window = suite.subjects[0].windows()[1]
    schedule = wt.simulate(window.jobs, "easy")
    chosen = np.isin(schedule.workload.job_id, window.measured)
    row = found["windows"][1]
    assert row["measured"] == 160
    assert row["mean_wait"] == pytest.approx(schedule.wait[chosen].mean())
    assert row["schedule"] == hashlib.sha256(schedule.start.tobytes()).hexdigest()
    assert found["totals"]["mean_bounded_slowdown"]["mean"] == pytest.approx(
        np.prod([one["mean_bounded_slowdown"] for one in found["windows"]]) ** (1 / 3)
    )
    assert verify_result(path, sample=None, workers=1) == []
    # interrupted after a window and a half
    header = {name: value for name, value in found.items() if name not in ("totals", "windows")}
    begun = tmp_path / "b" / path.with_suffix(".part").name
    begun.parent.mkdir()
    begun.write_text("\n".join([json.dumps(header), json.dumps(found["windows"][0]), json.dumps(found["windows"][1])[:30]]))
    told = []
    assert run_suite(suite, "easy", tmp_path / "b", workers=1, progress=told.append).read_bytes() == path.read_bytes()
    assert min(told) >= 1
    assert not begun.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found["windows"][2].update(mean_wait=1.0), "totals differ"),
        (lambda found: found["windows"][2].update(schedule="0"), "small, window 2: schedule"),
        (lambda found: found["windows"][0].update(jobs="0"), "windows differ"),
        (lambda found: found["windows"].pop(), "windows differ"),
        (lambda found: found["windows"][0].pop("mean_wait"), "metric of a window is missing"),
        (lambda found: found.update(definition="0"), "definition differs"),
        (lambda found: found.update(policy="fcfs"), "window 0: schedule"),
    ],
)
def test_verify__finds_what_was_changed(suite, tmp_path, change, message):
    path = run_suite(suite, "easy", tmp_path, workers=1)
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    assert any(message in fault for fault in verify_result(path, sample=None, workers=1))


@pytest.mark.slow
def test_verify__of_a_policy_of_ones_own_wants_the_same_file(golden, suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "own.py"
    own.write_text("def widest(procs):\n    return procs\n")
    path = run_suite(suite, "easy:order=own.py:widest", tmp_path / "r", workers=1)
    assert list(json.loads(path.read_text())["files"]) == ["own.py"]
    with raises(PolicyError, "python_file", "own.py"):
        verify_result(path, workers=1)
    assert verify_result(path, own=[own], workers=1) == []
    own.write_text("def widest(procs):\n    return 2 * procs\n")
    golden("benchmark", verify_result(path, own=[own], workers=1))


@pytest.mark.slow
@pytest.mark.parametrize("spelled", ["{}:Day", "easy:order={}:widest", "x:{}:Day", " {}:Day", "hybrid:1,order={}:widest"])
@pytest.mark.parametrize("files", [{}, {"theirs.py": "0"}])
def test_verify__never_runs_a_file_that_only_the_result_names(suite, tmp_path, capsys, monkeypatch, spelled, files):
    monkeypatch.setattr("walltime.benchmark.read_suite", lambda name: suite)
    theirs, ran = tmp_path / "theirs.py", tmp_path / "ran"
    theirs.write_text(f"import pathlib\npathlib.Path({str(ran)!r}).touch()\ndef widest(procs):\n    return procs\n")
    path = run_suite(suite, "easy", tmp_path / "r", workers=1)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"policy": spelled.format(theirs), "files": files}))
    for command in ("verify", "leaderboard"):
        status, _, err = call(capsys, "benchmark", command, path)
        assert (status in (1, 2) and err.count("\n") == 1) or command == "leaderboard"
        assert not ran.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.update(suite=["classic"]),
        lambda found: found.update(policy={"a": 1}),
        lambda found: found.update(windows=[1, 2]),
        lambda found: found["windows"][0].update(mean_wait="x", mean_bounded_slowdown=[]),
        lambda found: found.update(totals=[]),
        lambda found: found["windows"][0].update(mean_wait=1e99, mean_bounded_slowdown=1e99),
        lambda found: found["totals"].update(mean_wait={"mean": None}),
        lambda found: found.pop("version"),
        lambda found: found["windows"].pop(),
        lambda found: found["windows"][0].update(subject={"a": 1}),
    ],
)
def test_leaderboard__of_a_damaged_result_is_one_line(suite, tmp_path, capsys, change):
    path = run_suite(suite, "easy", tmp_path, workers=1)
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))
    one_line(*call(capsys, "benchmark", "leaderboard", path))
    status, out, err = call(capsys, "benchmark", "verify", path, "--workers", 1)
    assert status in (1, 2)
    assert ": wrong" in out or err.count("\n") == 1
    path.write_text("[" * 5000 + "]" * 5000)
    one_line(*call(capsys, "benchmark", "leaderboard", path))


def test_read_result__of_another_file(tmp_path):
    for text in ("{}", "no", "[1]"):
        (tmp_path / "x.json").write_text(text)
        with raises(OutputError, "not_a_result"):
            result.read_result(tmp_path / "x.json")
    (tmp_path / "x.json").unlink()
    with raises(PolicyError, "no_results"):
        result.result_files(tmp_path)


@pytest.mark.slow
def test_leaderboard__pairs_windows_and_says_what_is_not_clear(suite, tmp_path):
    results = [result.read_result(run_suite(suite, text, tmp_path, workers=1)) for text in ("fcfs", "easy", "easy")]
    with raises(PolicyError, "repeated_result"):
        leaderboard(results)
    best, other = leaderboard(results[:2])["classic"]
    assert best.scheduler == "easy"
    logs = [np.log([row["mean_bounded_slowdown"] for row in one["windows"]]) for one in results[:2]]
    assert other.behind.mean == pytest.approx(100 * np.expm1((logs[0] - logs[1]).mean()))
    assert (best.remark, other.remark) == (("best", "behind") if other.behind.low > 0 else ("lowest", "may be the best"))
    assert (best.behind.mean, best.behind.low) == (0, 0)
    assert leaderboard(results[:1])["classic"][0].behind is None


def board(costs, subjects) -> list:
    """The standings of results with these costs."""
    first, other = SUITE.metrics
    found = []
    for k, row in enumerate(costs.tolist()):
        windows = [{"subject": name, first: cost, other: 1.0} for name, cost in zip(subjects, row, strict=True)]
        header = {"suite": "classic", "version": 1, "definition": SUITE.definition, "policy": f"p{k}"}
        found.append(header | {"windows": windows, "totals": result.totals(windows, SUITE.metrics)})
    return leaderboard(found)["classic"]


SUITE = parse_suite(DEFINITION.format("").encode())


def test_leaderboard__calls_the_lowest_best_only_where_that_is_shown(monkeypatch):
    subjects = [SimpleNamespace(name=name, checksums=range(10)) for name in "ab"]
    suite = SimpleNamespace(version=1, definition=SUITE.definition, metrics=SUITE.metrics, subjects=subjects)
    monkeypatch.setattr("walltime.benchmark.standings.read_suite", lambda name: suite)
    random, subjects = np.random.default_rng(1), ["a"] * 10 + ["b"] * 10
    jobs = random.normal(2, 1, 20)
    equal = board(np.exp(jobs + random.normal(0, 0.3, (12, 20))), subjects)
    assert [one.remark for one in equal] == ["lowest"] + ["may be the best"] * 11
    apart = board(np.exp(jobs + random.normal(0, 0.1, (4, 20)) + np.array([[1.0], [0.0], [1.0], [2.0]])), subjects)
    assert [one.remark for one in apart] == ["best", "behind", "behind", "behind"]
    assert apart[0].scheduler == "p1"


def test_totals__take_the_subjects_for_fixed():
    rows = [{"subject": name, "mean_wait": wait} for name, wait in (("a", 9.0), ("a", 11.0), ("b", 990.0), ("b", 1010.0))]
    found = result.totals(rows, ["mean_wait"])["mean_wait"]
    assert found["low"] < found["mean"] < found["high"]
    assert found["high"] < 1.5 * found["mean"], "how far the subjects are apart is no chance"


@pytest.mark.slow
def test_command__runs_verifies_and_compares(suite, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("walltime.benchmark.read_suite", lambda name: suite)
    status, out, _ = call(capsys, "benchmark", "run", "classic", "--policy", "easy", "--policy", "fcfs", "--out", tmp_path, "--workers", 1)
    assert status == 0
    assert "geometric mean" in out
    files = sorted(tmp_path.glob("*.json"))
    assert len(files) == 2
    assert call(capsys, "benchmark", "verify", files[0], "--all", "--workers", 1)[0] == 0
    page = tmp_path / "board.html"
    status, out, _ = call(capsys, "benchmark", "leaderboard", tmp_path, "--report", page)
    assert status == 0
    assert "Leaderboard" in page.read_text()
    files[0].write_text(files[0].read_text().replace('"measured": 160', '"measured": 161'))
    status, out, _ = call(capsys, "benchmark", "verify", files[0], "--all", "--workers", 1)
    assert status == 1
    assert ": wrong" in out
    assert "classic 1" in call(capsys, "benchmark", "list")[1]


@pytest.mark.slow
def test_command__takes_files_and_folders(suite, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("walltime.benchmark.read_suite", lambda name: suite)
    file, folder = tmp_path / "results" / "fcfs.json", tmp_path / "others"
    status, out, _ = call(capsys, "benchmark", "run", "classic", "--policy", "fcfs", "--out", file, "--workers", 1)
    assert status == 0
    assert [path.name for path in file.parent.iterdir()] == ["fcfs.json"]
    assert str(file) in out
    status, _, said = call(capsys, "benchmark", "run", "classic", "--policy", "fcfs", "--policy", "easy", "--out", file)
    assert status != 0
    assert "give a folder" in " ".join(said.split())
    assert call(capsys, "benchmark", "run", "classic", "--policy", "easy", "--out", folder, "--workers", 1)[0] == 0
    status, out, _ = call(capsys, "benchmark", "verify", file, folder, "--sample", 1, "--workers", 1)
    assert status == 0
    assert out.count(": verified (") == 2
    found = json.loads(call(capsys, "benchmark", "verify", file, folder, "--workers", 1, "--json")[1])
    assert found["holds"]
    assert [one["wrong"] for one in found["results"]] == [[], []]
    status, out, _ = call(capsys, "benchmark", "leaderboard", file, folder)
    assert status == 0
    assert "easy" in out
    assert "fcfs" in out


@pytest.mark.slow
@pytest.mark.parametrize("subject", read_suite("archive").subjects, ids=lambda subject: subject.name)
def test_archive__has_the_jobs_that_were_frozen(subject, monkeypatch):
    monkeypatch.setenv("WALLTIME_TRACES", str(trace_folder()))
    try:
        found = subject.windows()
    except wt.LogError:
        pytest.skip(f"{subject.name} is not in {trace_folder()}; set WALLTIME_TRACES to a folder that has it")
    assert len(found) == len(set(subject.checksums))
