"""`walltime slurm adjust`: what is wrong gets one line, what is asked for is printed."""

import re
from dataclasses import fields

import pytest

from tests.cli import HEADER, call, one_line
from walltime.predictors.registry import parse_predictor
from walltime.slurm.commands.adjust import PREDICTOR, Options
from walltime.slurm.sidecar.advice import LogAdvice
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.toml_file import key_tables


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(HEADER + "".join(f"{k} {k * 100} {50 * (k % 2)} 60 1 -1 -1 1 600 -1 1 1 1 -1 -1 -1 -1 -1\n" for k in range(1, 30)))
    return path


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--history", "none.swf"],
        ["--history", "LOG", "--act"],
        ["--history", "LOG", "--ledger", "x"],
        ["--history", "LOG", "--json"],
        ["--print-prolog"],
        ["--history", "LOG", "--spool", "x"],
        ["--history", "LOG", "--act", "--ledger", "x", "--need-prolog"],
        ["--history", "LOG", "--floor", "1"],
        ["--history", "LOG", "--every", "0"],
        ["--history", "LOG", "--share", "0"],
        ["--history", "LOG", "--timeout", "0"],
        ["--history", "LOG", "--metrics", "x.txt"],
        ["--history", "LOG", "--predictor", "tsafrir07"],
        ["--history", "LOG", "--predictor", "tang13:key=x"],
        ["--history", "LOG", "--predictor", "nonsense"],
    ],
)
def test_wrong_calls_get_one_line(golden, capsys, log, words):
    golden("slurm-adjust", one_line(*call(capsys, "slurm", "adjust", *(str(log) if word == "LOG" else word for word in words))))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("flor = 12", []),
        ("floor = 2", []),
        ("floor = 2\nevery = 9", ["--every", "30"]),  # the option holds
        ("account = 'bio'", []),
        ("need_prolog = true", []),
        ("[", []),
    ],
)
def test_settings_are_read_of_a_file__and_options_hold(golden, capsys, log, tmp_path, text, words):
    (tmp_path / "sidecar.toml").write_text(text)
    golden("slurm-adjust", one_line(*call(capsys, "slurm", "adjust", "--history", log, "--settings", tmp_path / "sidecar.toml", *words)))


def test_every_setting_is_an_option_and_explained():
    shown = {field.name for field in fields(Options)}
    assert shown == {field.name for field in fields(SidecarSettings)}
    assert all(f"| `{name}` |" in key_tables(SidecarSettings) for name in shown)


def test_without_a_cluster(capsys, log, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, out, err = call(capsys, "slurm", "adjust", "--history", log, "--once", "--json")
    assert (status, out) == (1, "")
    assert "scontrol show config" in err.splitlines()[-1]


def test_jobs_left_out_of_the_log_are_printed_with_their_shares(capsys, log, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    log.write_text(
        log.read_text() + "30 3000 -1 600 1 -1 -1 1 600 -1 1 1 1 -1 -1 -1 -1 -1\n31 3100 5 0 1 -1 -1 1 600 -1 1 1 1 -1 -1 -1 -1 -1\n"
    )
    out = call(capsys, "slurm", "adjust", "--history", log, "--once")[1].splitlines()
    assert out[0].startswith("3.2 % of the jobs with 26 % of the work are left out"), "it is over 5 % of the work"
    assert [line for line in out if line.startswith("Left out: ")] == [
        "Left out: 1 of 31 jobs (3.2 %, 26 % of the work): unknown wait",
        "Left out: 1 of 31 jobs (3.2 %, 0 % of the work): nothing to learn",
    ]
    history = LogAdvice(parse_predictor(PREDICTOR), log)
    history.read()
    assert len(history.left_out()) == 3
    history.read()
    assert history.left_out() == [], "the same rules are not printed again when the log changes"


def test_a_ledger_that_cannot_be(golden, capsys, log, tmp_path):
    status, _, err = call(capsys, "slurm", "adjust", "--history", log, "--act", "--ledger", tmp_path / "missing")
    assert status == 2
    golden("slurm-adjust", err)


def test_what_is_printed(capsys):
    assert "slurm_job_modify" in call(capsys, "slurm", "adjust", "--print-guard")[1]
    status, out, _ = call(capsys, "slurm", "adjust", "--print-unit")
    assert status == 0
    assert "Restart=always" in out
    start = re.search("^ExecStart=(.*)$", out, re.MULTILINE)[1]
    assert start.startswith("/")  # systemd refuses others
    assert "StartLimitIntervalSec=0" in out
