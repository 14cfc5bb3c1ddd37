"""Options and commands: spellings, groups, the parts of logs that commands take, and tables in formats for files."""

from collections import defaultdict

import pytest

from walltime.cli.main import run, whole_command
from walltime.cli.table import COMMANDS


def commands(command, path=()):
    """Every command without subcommands, with its name."""
    if hasattr(command, "commands"):
        for name, inside in command.commands.items():
            yield from commands(inside, (*path, name))
    else:
        yield " ".join(path), command


def test_option__of_one_text_has_one_spelling():
    spelled = defaultdict(set)
    for _, command in commands(whole_command()):
        for parameter in command.params:
            if parameter.opts[0].startswith("--"):
                spelled[parameter.help].add(" ".join(parameter.opts))
    assert len(spelled) > 100
    assert {text: names for text, names in spelled.items() if len(names) > 1} == {}


def test_help__lists_commands_in_groups_and_sorted(capsys):
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    places = [lines.index(panel) for panel in COMMANDS]
    assert places == sorted(places)
    for panel, place in zip(COMMANDS, places, strict=True):
        block = lines[place + 1 : lines.index("", place)]
        names = [line.split()[0] for line in block if line[:3].strip()]
        groups = [name for name in names if hasattr(whole_command().commands[name], "commands")]
        assert names == [*sorted(set(names) - set(groups)), *sorted(groups)], panel


WHOLE = {
    "audit": "the schedule is of the whole log",
    "convert": "all of its records",
    "diff": "the schedules are of the whole log",
    "learn evaluate": "the agent knows the windows of its log",
    "learn train": "it has windows of its own, --test-share and --skip",
    "report": "its window is the week",
    "slurm score": "predictions are of single moments",
    "slurm start-times": "the history is all that is known",
    "slurm what-happened": "its window is --since and --until",
}
"""Commands that read a log and take no part of it, and why."""


def of(command):
    return {name for parameter in command.params for name in parameter.opts}


def test_window__wherever_a_log_is_read():
    for name, command in commands(whole_command()):
        options = of(command)
        if "--mapping" in options and not WHOLE.get(name):
            assert {"--window", "--remove", "--head", "--tail"} <= options, name


def test_tables__wherever_json_is():
    silent = {"demo", "schema"}
    for name, command in commands(whole_command()):
        options = of(command)
        if "--json" in options and name not in silent and not name.startswith("slurm "):
            assert {"--format", "--tables"} <= options, name


@pytest.mark.parametrize("form", ["csv", "markdown", "latex", "json"])
def test_format__prints_tables_only(capsys, tmp_path, form):
    log = tmp_path / "log.swf"
    assert run(["generate", "lublin99", "--jobs", "50", "--out", str(log)]) == 0
    capsys.readouterr()
    assert run(["compare", str(log), "--policy", "fcfs", "--policy", "easy", "--no-spread", "--format", form]) == 0
    out = capsys.readouterr().out
    begins = {"csv": "policy,", "markdown": "**log: 50 jobs", "latex": "\\begin{table}", "json": "{"}
    assert out.startswith(begins[form])
    assert "Notes:" not in out
    assert "FCFS" in out
    assert run(["info", str(log), "--json", "--format", form]) == 2
    assert "leave one out" in capsys.readouterr().err
