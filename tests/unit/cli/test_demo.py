"""`walltime demo`, the commands that it ends with, and the users that its jobs have."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.report import terminal

JOBS = 400


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_demo__the_commands_that_it_ends_with_run_as_printed(capsys, here):
    status, out, _ = call(capsys, "demo", "--jobs", JOBS)
    assert status == 0
    assert (here / "report.html").read_text().lower().startswith("<!doctype html>")
    commands = [shlex.split(line) for line in out.splitlines() if line.startswith("  walltime ")]
    assert [words[1] for words in commands] == ["explain", "compare", "suggest"]
    for words in commands:
        status, told, _ = call(capsys, *words[1:])
        assert status == 0, words
        if words[1] == "explain":
            assert told.splitlines()[0] in out, "the demo told of the same job"
    assert (here / "job.svg").is_file()


@pytest.mark.nightly
def test_demo__as_json_names_its_files_and_is_the_same_again(capsys, here):
    (here / "of others").mkdir()
    page = here / "of others" / "page.html"
    status, out, _ = call(capsys, "demo", "--jobs", JOBS, "--out", page, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["log"] == str(page.with_name("demo.swf.gz"))
    assert [shlex.split(command)[2] for command in found["next"]] == [found["log"]] * 3
    fcfs, easy, learned = (run["mean_wait"] for run in found["runs"])
    assert fcfs > easy > learned
    assert found["explanation"]["wait"] == found["runs"][1]["max_wait"]
    first = page.with_name("demo.swf.gz").read_bytes()
    assert call(capsys, "demo", "--jobs", JOBS, "--out", page, "--json")[0] == 0
    assert page.with_name("demo.swf.gz").read_bytes() == first


def test_print_text__ends_lines_between_words_on_a_terminal_only(golden, capsys, monkeypatch):
    text = "one two three " * 9
    terminal.print_text(text.strip(), "* ")
    assert capsys.readouterr().out == f"* {text.strip()}\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    terminal.print_text(text.strip(), "* ")
    lines = capsys.readouterr().out.splitlines()
    golden("simulate", lines[0])
    assert all(line.startswith("  ") and len(line) <= 40 for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == f"* {text.strip()}"
    for width in range(20, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        terminal.print_text("it waited 4 h 53 min 20 s of 3 d 01 h, or 79 % of 12 jobs")
        lines = capsys.readouterr().out.splitlines()
        assert all(any(whole in line for line in lines) for whole in ("4 h 53 min 20 s", "3 d 01 h", "79 %")), width


def test_users__are_labels_of_the_same_jobs():
    jobs = wt.workloads.Lublin99().generate(2000, 128, 0.7, 1)
    labelled = wt.workloads.with_users(jobs, 40, seed=3)
    assert np.array_equal(labelled.runtime, jobs.runtime)
    user = labelled.columns["user"]
    assert sorted(set(user.tolist())) == list(range(1, 41))
    assert np.array_equal(user, wt.workloads.with_users(jobs, 40, seed=3).columns["user"])
    assert not np.array_equal(user, wt.workloads.with_users(jobs, 40, seed=4).columns["user"])
    share = np.bincount(user).max() / len(jobs)
    assert 0.05 < share < 0.5


def test_users__can_be_learned_from():
    jobs = wt.workloads.Lublin99().generate(4000, 128, 0.7, 1)
    jobs = wt.workloads.with_users(jobs, 60, seed=1).with_estimates(wt.estimates.Tsafrir05(), 1)
    found = wt.simulate(jobs, "easy:predictor=tsafrir07").prediction_summary()
    assert 0.4 < found.mean_accuracy < 0.65
    assert found.mean_accuracy > 2 * found.mean_accuracy_of_requests


@pytest.mark.parametrize("users", [0, -1, 51, 1.5, True, "60"])
def test_users__a_number_that_cannot_be_is_refused(users):
    with raises(WorkloadError, "number_out_of_range", "1", "50"):
        wt.workloads.with_users(wt.workloads.Lublin99().generate(50, 128, None, 1), users)


def test_generate__gives_users_and_says_so_in_the_log(capsys, here):
    words = ("generate", "lublin99", "--jobs", 300, "--users", 20, "--out", "w.swf.gz")
    assert call(capsys, *words)[0] == 0
    log = wt.read("w.swf.gz")
    assert set(log.columns["user"].tolist()) == set(range(1, 21))
    assert any("20 users drawn, seed 0" in line for line in log.origin.header)
    assert call(capsys, *words[:4], "--users", 301, "--out", "w.swf.gz")[0] == 2
