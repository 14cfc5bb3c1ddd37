"""Calls that are incomplete or misspelt, and own code that fails: what the command line says of them."""

import pytest

from tests.cli import HEADER, call, one_line, record


@pytest.mark.parametrize("words", [[], ["campaign"], ["paper"]])
def test_group_without_a_command__shows_its_help_once(capsys, words):
    status, out, err = call(capsys, *words)
    assert (status, out.count("Usage:"), err) == (2, 1, "")


def test_misspelt_command__gets_a_suggestion_and_ends_in_one_mark(golden, capsys):
    golden("main", *(one_line(*call(capsys, word)) for word in ("compere", "start-times")))


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


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--load", "x"), ("--load", "number", "'x'")),
        (("--procs", "0"), ("--procs", "whole number of 1 or more", "'0'")),
        (("--test-share", "2"), ("--test-share", "from 0 to 1", "'2'")),
        (("--overrun", "kil"), ("--overrun", "kill, extend, continue", "'kill'")),
        (("--polcy", "easy"), ("--polcy", "'--policy'")),
        (("more", "words"), ("'more words'",)),
    ],
)
def test_wrong_value_or_name__is_shown_with_the_allowed_ones_and_the_help(capsys, words, named):
    error = one_line(*call(capsys, "simulate", "log.swf", *words))
    assert [name for name in named if name not in error] == []
    assert error.endswith("Try: walltime simulate --help\n")
    assert "Input should" not in error


def test_option_without_its_value__names_the_help_of_the_command(capsys):
    assert one_line(*call(capsys, "what-if", "log.swf", "--change")).endswith("Try: walltime what-if --help\n")


def test_unknown_log__is_compared_with_the_names_of_the_catalogue(capsys):
    assert "'KTH-SP2'" in one_line(*call(capsys, "simulate", "KTH-SP"))
