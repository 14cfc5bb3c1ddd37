"""The recipes of the documentation run, draw what their page shows, and fit its lines."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.cli import call

README = Path(__file__).resolve().parents[3] / "README.md"
DOCS = README.parent / "docs"
GENERATORS = DOCS / "generators"


@pytest.fixture(scope="module")
def recipes():
    sys.path.insert(0, str(GENERATORS))  # it imports its neighbours, as it does when MkDocs runs it
    spec = importlib.util.spec_from_file_location("recipes_run", GENERATORS / "recipes_run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["recipes_run"] = module
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(GENERATORS))
    del sys.modules["recipes_run"]


@pytest.mark.nightly
def test_recipes__run_and_draw_what_the_page_shows(recipes, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = recipes.PAGE.read_text()
    commands = 0
    for step in recipes.steps(page):
        if step.file is not None:
            Path(step.file).write_text(step.text)
        elif step.kind == "python":
            exec(compile(step.text, recipes.PAGE.name, "exec"), {})
        for command in step.commands if step.kind == "console" else []:
            words = shlex.split(command)
            assert words[0] == "walltime"
            status, out, errors = call(capsys, *words[1:])
            assert status == 0, (command, errors)
            assert out
            commands += 1
            if words[1] == "demo":
                rows = [line.strip() for line in out.splitlines() if line.startswith(("FCFS", "EASY"))]
                assert len(rows) == 3
                assert all(row in README.read_text() for row in rows), "the README shows what the demo prints"
    assert commands == page.count("\n$ ") == 14
    pictures = recipes.PICTURE.findall(page)
    assert len(pictures) == page.count("\n## ") == 12
    assert all(Path(picture).stat().st_size > 1000 for picture in pictures)


@pytest.mark.nightly
def test_tutorial__runs_and_finds_what_its_text_says(recipes, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in recipes.begin(recipes.TUTORIAL).items():
        Path(name).write_bytes(content)
    printed = ""
    for step in recipes.steps(recipes.TUTORIAL.read_text()):
        if step.file is not None:
            Path(step.file).write_text(step.text)
        for command in step.commands if step.kind == "console" else []:
            status, out, errors = call(capsys, *shlex.split(command)[1:])
            assert status == 0, (command, errors)
            printed += out
    assert all(Path(name).stat().st_size > 1000 for name in recipes.KEPT[recipes.TUTORIAL])
    assert "start at once in the simulation" in printed
    difference = dict(zip(*(pl.read_csv("changes.csv")[name].to_list() for name in ("change", "mean_wait_difference")), strict=True))
    setting, _, nodes = list(difference.values())[1:]
    assert setting < nodes < 0, "a setting that costs nothing does more than a new node"
    assert len(re.findall(r"shorter to \d+ % longer", printed)) == 2, "the direction is known for the setting only"
    assert "has not been shown to resemble" not in printed


def test_recipes__fit_the_lines_of_the_page(recipes):
    for page in recipes.KEPT:
        for step in recipes.steps(page.read_text()):
            assert all(len(line) <= 88 for line in step.text.splitlines())


def test_terminal__joins_continued_lines_and_drops_styles(recipes, tmp_path):
    (step,) = recipes.steps("```console\n$ printf '\\033[1mbold\\033[0m %s\\n' \\\n    $COLUMNS\n```\n")
    (command,) = step.commands
    assert recipes.on_terminal(command, tmp_path, columns=50) == "bold 50"
