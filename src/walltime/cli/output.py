"""What a command prints: one record as JSON, the tables in a format for files, or all of it as text; and which files it wrote."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from walltime.cli import bars
from walltime.cli import options as o
from walltime.errors import PolicyError

if TYPE_CHECKING:
    import polars as pl

    from walltime.report.page import Block
    from walltime.tables import Facts

__all__ = [
    "Output",
    "caveats",
    "command_line",
    "hidden_key",
    "note",
    "print_blocks",
    "print_json",
    "progress_bar",
    "write_json",
    "write_rows",
]

SECRET = "--anonymise"
"""The option whose value may be a key."""


@dataclass(frozen=True)
class Output:
    """How the result of a command is printed."""

    as_json: o.JsonOption = False
    form: o.FormatOption = o.Format.text

    def show(self, record: Mapping[str, Any], blocks: Iterable[Block | Facts | str], **written: Path | None) -> None:
        """Print the record as one JSON object; or the blocks, and which files were written, by what they hold."""
        if self.as_json:
            if self.form != o.Format.text:
                raise PolicyError("--json prints one object, and --format tables; take one of them")
            print_json(record)
            return
        text = self.form == o.Format.text
        if text:
            print_blocks(blocks)
        else:
            typer.echo("\n".join(_tables(blocks, self.form.value)), nl=False)
        for what, path in written.items():
            if path is not None:
                typer.echo(f"{what.replace('_', ' ')} written to {path}", err=not text)


def _tables(blocks: Iterable[Block | Facts | str], form: str) -> Iterable[str]:
    from walltime.report.page import Fold, Group
    from walltime.tables import FORMATS, Facts, Table

    for block in blocks:
        if isinstance(block, Fold | Group):
            yield from _tables(block.blocks, form)
        elif isinstance(block, Table | Facts):
            yield FORMATS[form](block if isinstance(block, Table) else block.table())


def print_json(record: Mapping[str, Any]) -> None:
    """Print one object; undefined values (NaN) become null."""
    typer.echo(json.dumps(_defined(record), indent=2, allow_nan=False))


def print_blocks(blocks: Iterable[Block | Facts | str]) -> None:
    """Print parts of pages as text."""
    from walltime.report.terminal import print_block

    for block in blocks:
        print_block(block)


def caveats(sentences: Sequence[str]) -> list[Block | Facts | str]:
    """The caveats with their heading; nothing without any."""
    from walltime.report.page import Items

    return ["caveats:", Items(sentences)] if sentences else []


def note(message: str) -> None:
    """Print a message on standard error."""
    typer.echo(f"walltime: {message}", err=True)


def progress_bar(total: int | None, label: str, unit: str = "") -> AbstractContextManager[Callable[..., None]]:
    """A callback that takes what is done, shows it on standard error once a run has lasted a while, and raises Ctrl-C."""
    return bars.progress(label, total, unit)


def command_line(words: Sequence[str] | None = None) -> list[str]:
    """The command line as pages show it: a key that stands in it is replaced by KEY; `words`: by default those of this command.

    >>> command_line(["estimates", "log", "--anonymise", "secret"]), command_line(["info", "log", "--anonymise=@key.txt"])
    (['walltime', 'estimates', 'log', '--anonymise', 'KEY'], ['walltime', 'info', 'log', '--anonymise=@key.txt'])
    """
    shown, before = ["walltime"], ""
    for word in sys.argv[1:] if words is None else words:
        option, equals, value = word.partition("=")
        if before == SECRET:
            shown.append(hidden_key(word))
        else:
            shown.append(f"{option}={hidden_key(value)}" if option == SECRET and equals else word)
        before = word
    return shown


def hidden_key(text: str) -> str:
    """The value of --anonymise as it can be shown: where the key is, but not the key."""
    return text if text.startswith(("@", "env:")) else "KEY"


def write_rows(table: pl.DataFrame, path: Path) -> None:
    """Write a table as .csv or .parquet, whole or not at all."""
    from walltime.files import whole_file, write_as_parquet

    with whole_file(path) as sink:
        if path.name.lower().endswith(".csv"):
            table.write_csv(sink)
        else:
            write_as_parquet(table, sink)


def write_json(value: Mapping[str, Any], path: Path) -> None:
    """Write one object as a file, whole or not at all; undefined values (NaN) become null."""
    from walltime.files import whole_file

    with whole_file(path) as sink:
        sink.write((json.dumps(_defined(value), indent=2, allow_nan=False) + "\n").encode())


def _defined(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _defined(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_defined(item) for item in value]
    return str(value) if isinstance(value, Path) else value
