"""Help texts, their examples, and the pages for man: complete, in groups, and never cut."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.example_data import write_example_files
from tests.traces import trace_folder
from walltime.cli import man
from walltime.cli.help import GROUPS, as_text, descriptions
from walltime.cli.main import run, whole_command
from walltime.logs.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[3]
COMMANDS = {one.name: one for one in descriptions(whole_command())}
FURTHER = {"Action", "Safety limits"}
"""Headings of the side-car, a service that changes jobs."""
MOST_BASIC = 17
"""Options and arguments that --help shows of a command, at most."""
FRAGMENTS = (
    "A ",
    "An ",
    "The ",
    "Of ",
    "So ",
    "Only ",
    "With ",
    "Without ",
    "Its ",
    "It ",
    "What ",
    "Where ",
    "How ",
    "Also ",
    "As ",
    "When ",
)
"""No sentence that describes an option begins like this; it begins with a verb."""
LONG = ("campaign run plan.toml --dask", "demo --procs", "estimates KTH-SP2 --report", "infer KTH-SP2", "tune KTH-SP2 --out")
"""Examples that take long."""
EXAMPLES = [
    pytest.param(one.name, example.call, marks=pytest.mark.nightly if example.call.startswith(LONG) else (), id=example.call)
    for one in COMMANDS.values()
    if not one.commands
    for example in one.examples
]
NEEDS = {
    "adjust --history jobs.txt.gz --once": "a Slurm cluster",
    "benchmark leaderboard": "results of a suite, which takes minutes",
    "benchmark run": "the jobs of a whole suite, which takes minutes",
    "benchmark verify": "results of a suite, which takes minutes",
    "fetch KTH-SP2": "the network",
    "mcp ": "an assistant",
    "infer jobs.txt.gz": "a log of two months",
    "paper run mualem01": "minutes",
    "search KTH-SP2": "minutes",
    "serve ": "a scheduler",
    "slurm snapshot --out": "a Slurm cluster",
    "train KTH-SP2": "a minute",
    "what-happened": "the ledger of a side-car",
}
"""What an example needs beyond the files made here, by a part of its call."""


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("everything", [False, True])
def test_help__is_never_cut_and_shows_no_types(name, everything):
    text = as_text(COMMANDS[name], everything, 80)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert not re.search(r"…|<(int|str|bool|path|float|list)|x<=|9223372036854775808|1099511627776", text)
    assert COMMANDS[name].usage.startswith(name)


@pytest.mark.parametrize("name", COMMANDS)
def test_help__of_each_option_is_complete(name):
    for entry in COMMANDS[name].entries:
        assert re.match(r"[A-Z].*\.$", entry.text), entry
        if entry.spelling.startswith("--"):
            assert not entry.text.startswith(FRAGMENTS), entry
            assert len(entry.text.split()) > 2, entry


@pytest.mark.parametrize("name", COMMANDS)
def test_help__shows_few_options_in_known_groups(name):
    one = COMMANDS[name]
    assert {entry.group for entry in one.entries} <= {*GROUPS, *FURTHER}
    assert sum(not entry.advanced for entry in one.entries) <= MOST_BASIC
    hidden = [entry.spelling for entry in one.entries if entry.advanced]
    short, long = as_text(one, False, 80), as_text(one, True, 80)
    assert all(f"  {spelling}" in long for spelling in hidden)
    assert not any(f"  {spelling} " in short for spelling in hidden)
    assert (f"To see {len(hidden)} more option{'s' * (len(hidden) > 1)}: {name} --help-all" in short) == bool(hidden)


@pytest.mark.parametrize("name", COMMANDS)
def test_help__ends_with_two_examples_and_a_page(name):
    one = COMMANDS[name]
    assert len(one.examples) == 2
    assert (ROOT / "docs" / f"{one.page}.md").is_file() or one.page == "guides/questions"
    assert as_text(one, False, 80).splitlines()[-1] == f"Documentation: docs/{one.page}.md"
    group = len(one.commands) > 0
    assert group or all(f"walltime {example.call} ".startswith(f"{name} ") for example in one.examples)


def test_help_all__of_a_group_has_all_commands(capsys):
    assert run(["campaign", "--help-all"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[1:4] for line in out.splitlines() if line.startswith("Usage: ")] == [
        ["walltime", "campaign", "COMMAND"],
        ["walltime", "campaign", "run"],
        ["walltime", "campaign", "status"],
        ["walltime", "campaign", "report"],
    ]
    assert run(["explain", "--help-all"]) == 0
    assert "--backfill-order" in capsys.readouterr().out


def test_single_commands__offer_no_repetition():
    for name in ("walltime explain", "walltime audit"):
        [estimates] = [entry for entry in COMMANDS[name].entries if entry.spelling.startswith("--estimates ")]
        assert "repeat" not in estimates.text
        assert not any(entry.spelling.startswith("--replications") for entry in COMMANDS[name].entries)
    [load] = [entry for entry in COMMANDS["walltime explain"].entries if entry.spelling.startswith("--load ")]
    assert "repeat" not in load.text


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        write_example_files(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "call"), EXAMPLES)
def test_example__runs(name, call, data, tmp_path, monkeypatch, capsys):
    for part, needed in NEEDS.items():
        if part in call:
            pytest.skip(f"needs {needed}")
    missing = [one.file for one in CATALOGUE if one.name in call.split() and not (trace_folder() / one.file).is_file()]
    if missing:
        pytest.skip(f"needs the log {missing[0]} in {trace_folder()}")
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WALLTIME_TRACES", str(trace_folder()))
    if "--clear" in call:
        monkeypatch.setenv("WALLTIME_CACHE", str(tmp_path / "cache"))
    status = run(shlex.split(call.partition(" > ")[0]))
    captured = capsys.readouterr()
    assert status == 0 or (status == 1 and "audit" in name), captured.err[-800:]
    assert captured.out


@pytest.mark.slow
def test_man_pages__have_all_commands_and_no_warnings(tmp_path):
    pages = man.pages("1.2.3")
    assert set(pages) == {f"{name.replace(' ', '-')}.1" for name in COMMANDS}
    assert "walltime 1.2.3" in pages["walltime-slurm-adjust.1"]
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man or groff is not installed")
    for name in ("walltime.1", "walltime-compare.1", "walltime-slurm-start-times.1"):
        (tmp_path / name).write_text(pages[name])
        command = ["man", "--warnings", "-l", str(tmp_path / name)]
        shown = subprocess.run(command, env=os.environ | {"MANWIDTH": "80"}, capture_output=True, text=True, check=True)
        assert shown.stderr == ""
        assert "EXAMPLES" in shown.stdout
        assert all(len(line) <= 80 for line in shown.stdout.splitlines())
