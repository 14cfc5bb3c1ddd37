"""The commands of the worked case print what the page shows, where the synthetic site is at hand."""

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli import call

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "tutorial" / "case.md"
HEADS = ("...", " change ", "               ")
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def site(name: str) -> Path:
    """Return a file of the site; skips the test where it is missing."""
    folder = Path(os.environ.get("WALLTIME_SITES") or ROOT.parent / "shared" / "sites") / "talos"
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not in {folder}; set WALLTIME_SITES to a folder that has talos/{name}")
    return folder / name


def commands() -> list[tuple[str, list[str]]]:
    """Return each command of the page with the lines of its output that the page shows; heads depend on the terminal's width."""
    found = []
    for block in CONSOLE.findall(PAGE.read_text(encoding="utf-8")):
        for part in block.replace("\\\n", " ").split("$ ")[1:]:
            command, *lines = part.splitlines()
            found.append((command, [" ".join(line.split()) for line in lines if not line.startswith(HEADS)]))
    return found


@pytest.mark.nightly
def test_case__commands_print_what_the_page_shows(capsys, tmp_path, monkeypatch):
    for name in ("cluster.txt", "jobs.txt.gz"):
        shutil.copy(site(name), tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    for command, lines in commands():
        status, out, errors = call(capsys, *shlex.split(command)[1:])
        assert status == 0, (command, errors)
        printed = " ".join(f"{out}\n{errors}".split())
        assert [line for line in lines if line not in printed] == [], command


def test_case__shows_seven_commands_with_their_output():
    assert [bool(lines) for _, lines in commands()] == [True] * 7
