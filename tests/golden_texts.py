"""Golden files: the sentences that commands print, in `tests/golden/texts`, one file per command and a section per text.

A test passes a text to the fixture `golden`, which compares it with its section. `WALLTIME_GOLDEN=update make test` writes the sections
instead; review the difference, as it is what users will read. To drop sections of tests that are gone, delete the files first.
"""

from __future__ import annotations

import difflib
import fcntl
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden" / "texts"
HEAD = re.compile(r"^=== (.+)\n", re.MULTILINE)
MEASURED = re.compile(r"(?<=\bin )\d+\.\d+(?= s\b)|[\d,]+(?= jobs/s)")
"""Durations and speeds differ from run to run, and are shown as `N`."""


def sections(text: str) -> dict[str, str]:
    """The texts of a golden file by their titles."""
    parts = HEAD.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def update(path: Path, title: str, text: str) -> None:
    """Write one section; the lock keeps apart the processes of pytest-xdist."""
    path.parent.mkdir(exist_ok=True)
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        found = sections(file.read()) | {title: text}
        file.truncate(0)
        file.write("".join(f"=== {name}\n{found[name]}" for name in sorted(found)))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare texts with their sections of the golden file of a command: `golden("info", text)`; of a list, a line for each element.

    The section is named by the test, and counted where a test has several; folders made for the test are shown as `TMP`.
    """
    counts: Counter[str] = Counter()
    folder = re.compile(re.escape(str(request.getfixturevalue("tmp_path_factory").getbasetemp())) + r"/[^/\s:]+")

    def compare(command: str, *texts: object) -> None:
        path = FOLDER / f"{command}.txt"
        for text in texts:
            counts[command] += 1
            lines = [str(one) for one in text] if isinstance(text, list | tuple) else [str(text)]
            shown = MEASURED.sub("N", folder.sub("TMP", "\n".join(lines))).rstrip("\n") + "\n"
            title = f"{request.path.stem}::{request.node.name} {counts[command]}"
            if os.environ.get("WALLTIME_GOLDEN") == "update":
                update(path, title, shown)
            expected = sections(path.read_text()).get(title, "") if path.is_file() else ""
            difference = "".join(difflib.unified_diff(expected.splitlines(True), shown.splitlines(True), path.name, title))
            assert shown == expected, f"{difference}\nRun with WALLTIME_GOLDEN=update if this is what users should read."

    return compare
