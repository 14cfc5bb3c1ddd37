"""An option means the same in every command that has it: its help begins with the same sentence, and commands are listed in groups."""

import re
from collections import defaultdict

import pytest

from walltime.cli.main import _command, run
from walltime.cli.options import MEANINGS
from walltime.cli.table import COMMANDS


def commands(command, path=()):
    """Every command without subcommands, with its name."""
    if hasattr(command, "commands"):
        for name, inside in command.commands.items():
            yield from commands(inside, (*path, name))
    else:
        yield " ".join(path), command


def declared():
    """The options of all commands, by name: the command and the declaration."""
    found = defaultdict(list)
    for name, command in commands(_command()):
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option != "--help":
                    found[option].append((name, parameter))
    return found


def meaning(option, text):
    """What an option means: its help up to what a command adds."""
    if option == "--out":
        return "Write ... here" if re.match(r"Write .+ here: ", text) else text
    known = MEANINGS.get(option, "")
    return known if known and text.startswith(known) else text


@pytest.mark.parametrize("option", sorted(declared()))
def test_option__means_the_same_in_every_command(option):
    meanings = defaultdict(list)
    for command, parameter in declared()[option]:
        meanings[meaning(option, parameter.help)].append(command)
    assert len(meanings) == 1, dict(meanings)


@pytest.mark.parametrize("option", sorted(declared()))
def test_option__says_what_it_is_for(option):
    for command, parameter in declared()[option]:
        assert parameter.help, f"{command} {option}"
        assert parameter.help[0].isupper() or not parameter.help[0].isalpha() or ":" in parameter.help, parameter.help


def test_option__of_one_meaning_has_one_spelling():
    spelled = defaultdict(set)
    for uses in declared().values():
        for _, parameter in uses:
            spelled[parameter.help].add(" ".join(parameter.opts))
    assert {text: names for text, names in spelled.items() if len(names) > 1} == {}


def test_help__lists_commands_in_groups_and_sorted(capsys):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    places = [out.index(f" {panel} ") for panel in COMMANDS]
    assert places == sorted(places)
    for panel in COMMANDS:
        inside = out[out.index(f" {panel} ") :].split("╰")[0]
        names = re.findall(r"^│ ([\w-]+) ", inside, re.MULTILINE)
        groups = [name for name in names if hasattr(_command().commands[name], "commands")]
        assert names == [*sorted(set(names) - set(groups)), *sorted(groups)], panel


WHOLE = {
    "audit": "the schedule is of the whole log",
    "convert": "all of its records",
    "diff": "the schedules are of the whole log",
    "learn evaluate": "the agent knows the windows of its log",
    "learn train": "it has windows of its own, --test-share and --skip",
    "report": "its window is the week",
    "slurm report": "its window is the week",
    "slurm score": "predictions are of single moments",
    "slurm start-times": "the history is all that is known",
    "slurm what-happened": "its window is --since and --until",
}
"""Commands that read a log and take no part of it, and why."""


def of(command):
    return {name for parameter in command.params for name in parameter.opts}


def test_window__wherever_a_log_is_read():
    for name, command in commands(_command()):
        options = of(command)
        if "--mapping" in options and not WHOLE.get(name):
            assert {"--window", "--remove", "--head", "--tail"} <= options, name


def test_tables__wherever_json_is():
    silent = {"demo", "schema"}
    for name, command in commands(_command()):
        options = of(command)
        if "--json" in options and name not in silent and (name == "slurm report" or not name.startswith("slurm ")):
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
    assert "caveats" not in out
    assert "FCFS" in out
    assert run(["info", str(log), "--json", "--format", form]) == 2
    assert "take one of them" in capsys.readouterr().err
