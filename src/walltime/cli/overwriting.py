"""Protect inputs from being overwritten: compare the outputs, which the declarations of options mark, with the inputs."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from walltime.errors import OutputError
from walltime.files import input_at, note_input
from walltime.permission import python_files
from walltime.wording import printable

PAGES = (".html", ".pdf", ".png", ".svg")
"""Extensions of files that an earlier call may have written into a folder of inputs, and that no command reads."""


def check_files(values: Mapping[str, Any], outputs: Mapping[str, str]) -> None:
    """Register the inputs of a call; raises OutputError if one of its outputs would replace an input or another output.

    `values`: the arguments of the command. `outputs`: the arguments that are written, with their spellings. Every other path is an
    input, and so is a text that names a file, such as `@KEY` or `FILE.py:NAME`. Links and other spellings of a path are the same file.
    """
    written = [(path, spelled) for name, spelled in outputs.items() for path in written_paths(values.get(name))]
    for name, value in values.items():
        if name not in outputs:
            for path in _inputs(value):
                note_input(path)
                if written and os.path.isdir(path):  # noqa: PTH112 (Path raises for names that are too long)
                    for part in path.rglob("*"):
                        if part.suffix not in PAGES:
                            note_input(part)
    seen: dict[str, str] = {}
    for path, spelled in written:
        if (read := input_at(path)) is not None:
            raise OutputError(f"{printable(path)}: {spelled} would replace the input {printable(read)}; choose another file")
        whole = os.path.realpath(path)
        is_device = os.path.exists(path) and not os.path.isfile(path)  # noqa: PTH110, PTH113 (as above)
        if whole in seen and not is_device:
            both = f"{seen[whole]} and {spelled}" if seen[whole] != spelled else f"{spelled} twice"
            raise OutputError(f"{printable(path)}: would be written by {both}; give two files")
        seen[whole] = spelled


def written_paths(value: Any) -> list[Path]:
    """Return the files that an option writes: a path, or figures as `NAME=FILE`."""
    given = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return [one if isinstance(one, Path) else Path(one.partition("=")[2] or one) for one in given]


def _inputs(value: Any) -> Iterator[Path]:
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Path):
            yield one
        elif isinstance(one, str) and "\0" not in one:
            yield from map(Path, filter(None, [one, one.removeprefix("@"), *python_files(one)]))
