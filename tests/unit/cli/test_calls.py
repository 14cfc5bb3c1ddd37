"""Calls that are incomplete or misspelt, and own code that fails: what the command line says of them."""

import pytest

from tests.cli import HEADER, call, one_line, record


@pytest.mark.parametrize("words", [[], ["campaign"], ["paper"]])
def test_group_without_a_command__shows_its_help_once(capsys, words):
    status, out, err = call(capsys, *words)
    assert (status, out.count("Usage:"), err) == (2, 1, "")


def test_misspelt_command__gets_a_suggestion_and_ends_in_one_mark(golden, capsys):
    golden("main", one_line(*call(capsys, "compere")))


def test_policy_of_ones_own_that_fails__is_told_with_its_line(golden, capsys, tmp_path, monkeypatch):
    log = tmp_path / "small.swf"
    log.write_text(HEADER + record(1, 0, 10, 3, 10))
    own = tmp_path / "own.py"
    text = "import walltime as wt\nclass Own(wt.PlainPolicy):\n    def choose(self, now, waiting, running, free):\n        return 1 / 0\n"
    own.write_text(text)
    monkeypatch.chdir(tmp_path)
    error = one_line(*call(capsys, "simulate", log, "--policy", "own.py:Own"))
    golden("simulate", error)


@pytest.mark.parametrize("arguments", [["nosuch"], ["lublin99:nosuch=1"], ["lublin99", "--load", "9"]])
def test_generate__with_a_wrong_call_has_status_2(capsys, tmp_path, arguments):
    status, out, err = call(capsys, "generate", *arguments, "--jobs", "10", "--procs", "4", "--out", tmp_path / "x.swf")
    assert status == 2
    one_line(status, out, err)
