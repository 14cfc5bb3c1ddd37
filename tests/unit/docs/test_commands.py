"""The commands that pages and messages print: each is known with its options and values, and each of a page runs on small files."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import polars as pl
import pytest
import typer

from tests.example_data import write_example_files
from tests.sites import MACHINE
from walltime.cli.main import run, whole_command
from walltime.logs.catalogue import CATALOGUE
from walltime.machine import write_machine

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if "reference/cli/" not in page.as_posix())])
"""The pages of single commands show the examples of their help, which run in tests/unit/cli/test_help.py."""
FENCE = re.compile(r"^ *```(?:sh|console|text|bash)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^ *(?:\$ )?(walltime .+)$", re.MULTILINE)
MENTION = re.compile(r"\bwalltime ([a-z][a-z-]+)((?: (?:--[a-z-]+|[a-z-]+|[A-Z0-9@{][^\s`\"',;)]*))*)")
WHOLE = whole_command()


def commands_of(page: Path) -> list[list[str]]:
    """The words of each command in the fences of a page, without comments and redirections."""
    found = []
    for fence in FENCE.findall(page.read_text(encoding="utf-8")):
        for line in LINE.findall(re.sub(r"\\\n\s*", " ", fence)):
            words = shlex.split(line, comments=True)[1:]
            ends = [k for k, word in enumerate(words) if word in ("|", ">", "<", "&&", ";", "...")]
            found.append(words[: min(ends, default=len(words))])
    return found


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that words name, and the words after its name."""
    command, rest = WHOLE, list(words)
    while rest and hasattr(command, "commands") and rest[0] in command.commands:
        command = command.commands[rest.pop(0)]
    return command, rest


def options_of(command: Any) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page__has_commands_with_valid_options_and_values(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    wrong = []
    for words in commands_of(page):
        command, rest = command_of(words)
        try:
            command.make_context("walltime", rest).close()
        except (typer.Exit, SystemExit):  # --help and --version
            pass
        except click.ClickException as error:
            wrong.append((" ".join(words), error.format_message()))
    assert wrong == []


def mentions() -> Iterator[tuple[str, str, str]]:
    """The file, the words and the further words of each command that a page's text or a message of the program mentions."""
    for file in (*PAGES, *sorted((ROOT / "src" / "walltime").rglob("*.py"))):
        for name, rest in MENTION.findall(file.read_text(encoding="utf-8")):
            if name in WHOLE.commands:
                yield file.relative_to(ROOT).as_posix(), name, rest


@pytest.mark.slow
def test_mentions__name_commands_and_options_that_there_are():
    wrong = []
    for file, name, more in mentions():
        command, rest = command_of([name, *more.split()])
        known = options_of(command)
        wrong += [(file, name, word) for word in rest if word.startswith("--") and word not in known]
    assert wrong == []
    assert len(list(mentions())) > 300


LETTER = "Subject: your limits\n\nDear $user,\n"
NEEDS = {
    "fetch": "the network",
    "mcp ": "an assistant",
    "paper run": "minutes",
    "benchmark": "the jobs of a whole suite, or results of it",
    "infer": "a log of two months",
    "search": "minutes",
    "tune": "minutes",
    "learn": "minutes",
    "slurm snapshot": "a Slurm cluster",
    "slurm adjust": "a Slurm cluster",
    "slurm what-happened": "the ledger of a side-car",
    "slurm score": "jobs that started after the predictions",
    "campaign": "the plan of its page",
    "order.toml": "a file of walltime search",
    "out_jobs.csv": "a file of Batsim",
    "--policy all": "minutes",
    "dialects": "minutes",
    "gaussier15": "minutes",
    "--starts": "minutes",
    "mine.py": "code that is not on the page",
}
"""What commands need beyond small files, by words in them."""
ELSEWHERE = {
    "docs/guides/cookbook.md": "test_recipes__run_and_draw_what_the_page_shows",
    "docs/tutorial/case.md": "test_case__commands_print_what_the_page_shows",
    "docs/tutorial/what-if.md": "test_tutorial__runs_and_finds_what_its_text_says",
}
"""Pages whose commands other tests run."""
VALUES = (
    (r"(start-times .*--job) \d+", r"\1 2"),
    (r"(--job) (?!2$)\d+", r"\1 14"),
    (r"(start-times .*--user) \S+", r"\1 u2"),
    (r"(suggest .*\.txt .*--user) \S+ --job-name \S+", r"\1 u1"),
    (r"^(suggest .*--user 7.*)", r"\1 --min-jobs 2"),
    (r"(slurm cluster .*--out) machine.toml", r"\1 made.toml"),
    (r"(--jobs) \d+", r"\1 300"),
    (r"(--head|--tail) \d+", r"\1 50"),
    (r"(--window) \S+", r"\1 0d:3d"),
    (r"(runtime)<1m' --remove 'submit<2w", r"\1<2m' --remove 'submit<1d"),
    (r"(limit=\d)h(?=$| )", r"\1h,partition=main"),
    (r"partition=long", "partition=big"),
    (r"^(what-if .*SchedulerParameters.*)", r"\1 --policy slurm"),
    (r"pool\.gpua", "pool.thin"),
    (r"(\.swf\S* .*)machine\.toml", r"\1numbered.toml"),
    (r"kth\.toml", "numbered.toml"),
    (r"numbered(\.toml .*oar)", r"alike\1"),
)
"""Values of the pages that the small files do not have, and others in their place."""
SITE = ("sacct.txt", "jobs.txt", "jobs.acct", "jobs-since.txt.gz")
SWF = ("LOG", "log.swf", "site.swf", "kth.swf.gz", "blue.swf.gz", *(one.file for one in CATALOGUE))
"""Names on the pages that stand for the job log of the small site, as sacct prints it and in the Standard Workload Format."""
MADE = (
    "simulate log.swf.gz --out schedule.csv",
    "simulate log.swf.gz --out ours.csv",
    "simulate log.swf.gz --policy conservative --out theirs.swf.gz",
    "calibrate jobs.txt.gz --machine machine.toml --policy slurm --out calibration.json --trim none",
)
"""The commands that make further files."""


def on_small_files(words: list[str]) -> list[str]:
    """The words of a command with values that the small files have."""
    text = shlex.join(words)
    for pattern, value in VALUES:
        text = re.sub(pattern, value, text)
    return shlex.split(text)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The example files, other files of the pages, and the site's log under all of its names."""
    folder = tmp_path_factory.mktemp("examples")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), contextlib.chdir(folder):
        write_example_files(folder)
        assert run(shlex.split("convert jobs.txt.gz --out log.swf.gz --procs 128")) == 0
        numbered = tuple(replace(one, name=str(k)) for k, one in enumerate(MACHINE.partitions, 1))
        Path("numbered.toml").write_text(write_machine(replace(MACHINE, partitions=numbered)))
        alike = tuple(replace(one, pools=("thin",)) for one in numbered)
        Path("alike.toml").write_text(write_machine(replace(MACHINE, pools=MACHINE.pools[:1], partitions=alike)))
        for names, source in ((SITE, "jobs.txt.gz"), (SWF, "log.swf.gz")):
            content = Path(source).read_bytes()
            for name in names:
                Path(name).write_bytes(content if name.endswith(".gz") else gzip.decompress(content))
        for command in MADE:
            assert run(shlex.split(command)) == 0, command
        table = pl.read_csv("schedule.csv").select(
            "job_id", submission_time="submit", starting_time="start", finish_time="end", cores="procs"
        )
        table.write_csv("batsim_jobs.csv")
        pl.read_csv("schedule.csv").select("job_id", predicted="runtime").write_csv("predictions.csv")
        Path("key").write_text("0123456789abcdef0123456789abcdef")
        Path("our-letter.txt").write_text(LETTER)
        for name in ("results", "weeks"):
            Path(name).mkdir()
    return folder


def code_of(page: Path, words: list[str]) -> Iterator[tuple[str, str]]:
    """The Python files that a command names, with the code of the page that defines what it uses."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for file, name in re.findall(r"([\w-]+\.py):(\w+)", " ".join(words)):
        yield file, "".join(block for block in blocks if re.search(rf"^(?:def|class) {name}\b", block, re.MULTILINE))


@pytest.mark.nightly
@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page__has_commands_that_run(page, data, tmp_path, monkeypatch, capsys):
    if (test := ELSEWHERE.get(page.relative_to(ROOT).as_posix())) is not None:
        pytest.skip(f"{test} runs them")
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WALLTIME_LOGS", str(tmp_path))
    failed = []
    for words in map(on_small_files, commands_of(page)):
        if any(part in " ".join(words) for part in NEEDS):
            continue
        for file, code in code_of(page, words):
            Path(file).write_text(code)
        status, (_, errors) = run(words), capsys.readouterr()
        if status != 0 and not (status == 1 and words[0] == "audit"):  # a schedule may break a rule
            failed.append((shlex.join(words), errors.splitlines()[-1:]))
    assert failed == []
