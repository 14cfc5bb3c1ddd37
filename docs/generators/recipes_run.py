"""Runs the recipes and a tutorial: `console` blocks as commands, `python` blocks as programs, those with a title as files, in one folder.

A page shows what they print and draw, so it cannot say anything else than the program does.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ahead
import tutorial_site

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "guides" / "cookbook.md"
TUTORIAL = DOCS / "tutorial" / "what-if.md"
PAGES = DOCS / "tutorial" / "gallery.md"
BLOCK = re.compile(
    r'^```(?P<kind>console|python|toml(?= title))(?: title="(?P<file>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)
PICTURE = re.compile(r"!\[[^\]]*\]\((recipe-[\w-]+\.svg)\)")
KEPT = {
    PAGE: ("demo.swf.gz", "report.html"),
    TUTORIAL: ("changes.html", "cluster-2026.txt"),
    PAGES: (
        "comparison.html",
        "more-nodes.html",
        "more-nodes.pdf",
        "week.html",
        "limits.html",
        "loads.html",
        "campaign.html",
        "advice.html",
        "contents.html",
    ),
}
"""Files of the runs that pages link to or use."""
PRIVATE = ("demo.swf.gz", "report.html")
"""Files of the runs that are not part of the documentation under their own names."""
OPEN = 90
"""Number of output lines of the tutorial that are shown unfolded."""
COLUMNS = 88
"""Width of the terminal: what fits a line of code on the pages."""
STYLES = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Step:
    """One block of the page: commands (`console`), a program or a file (`python`, `toml`), and where the block ends in the page."""

    kind: str
    file: str | None
    text: str
    end: int

    @property
    def commands(self) -> list[str]:
        """The command lines of a `console` block; a backslash at the end of a line continues it."""
        whole = re.sub(r"\\\n\s*", "", self.text)
        return [line.removeprefix("$ ") for line in whole.splitlines() if line.startswith("$ ")]


def steps(markdown: str) -> Iterator[Step]:
    """The blocks of a page, in order."""
    for found in BLOCK.finditer(markdown):
        yield Step(found["kind"], found["file"], found["text"], found.end())


def results(page: Path = PAGE) -> tuple[dict[int, str], dict[str, bytes]]:
    """The same, once."""
    return ahead.result(run, page)


def run(page: Path) -> tuple[dict[int, str], dict[str, bytes]]:
    """Return the output of the blocks by their end in the page, and the pictures and kept files by name."""
    markdown = page.read_text(encoding="utf-8")
    printed = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in begin(page).items():
            (folder / file).write_bytes(content)
        for step in steps(markdown):
            if step.file is not None:
                (folder / step.file).write_text(step.text, encoding="utf-8")
            elif step.kind == "python":
                subprocess.run([sys.executable, "-c", step.text], cwd=folder, check=True)
            else:
                printed[step.end] = "\n".join(on_terminal(command, folder) for command in step.commands)
        return printed, {file: (folder / file).read_bytes() for file in (*PICTURE.findall(markdown), *KEPT[page])}


def begin(page: Path) -> dict[str, bytes]:
    """The files that a page begins with, by name."""
    return tutorial_site.files() if page == TUTORIAL else {}


def names(page: Path) -> list[str]:
    """Return the names of files that the run of a page creates for the documentation."""
    return [*PICTURE.findall(page.read_text(encoding="utf-8")), *(name for name in KEPT[page] if name not in PRIVATE)]


def content(page: Path, name: str) -> bytes:
    """One of these files."""
    return results(page)[1][name]


def demo() -> str:
    """Return the output of the first block, the demo."""
    printed, _ = results()
    return printed[min(printed)]


def on_terminal(command: str, folder: Path, columns: int = COLUMNS) -> str:
    """Return the output of a command on a terminal of this width. Raises CalledProcessError if it fails."""
    master, slave = pty.openpty()
    plain = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "xterm", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with subprocess.Popen(
        command, shell=True, cwd=folder, env=os.environ | plain, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE
    ) as process:
        os.close(slave)
        parts = []
        while part := _read(master):
            parts.append(part)
        errors = process.stderr.read() if process.stderr else b""
    os.close(master)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=errors.decode())
    lines = STYLES.sub("", b"".join(parts).decode()).splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _read(terminal: int) -> bytes:
    """Return the output so far; empty at the end, where Linux raises an error."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def with_outputs(markdown: str, page: Path = PAGE) -> str:
    """The page with what each command prints below it, folded; in the tutorial unfolded, if it is short."""
    printed, _ = results(page)
    for end, text in sorted(printed.items(), reverse=True):
        block = "\n".join(["```text", *text.splitlines(), "```"])
        sign = "???+" if page == TUTORIAL and text.count("\n") < OPEN else "???"
        markdown = f'{markdown[:end]}\n\n{sign} note "Output"\n\n{_indented(block)}\n{markdown[end:]}'
    return markdown


def _indented(block: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in block.splitlines())
