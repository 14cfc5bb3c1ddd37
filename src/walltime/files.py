"""Write output files atomically, and never replace an input of the same command."""

from __future__ import annotations

import gzip
import io
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from walltime.errors import OutputError
from walltime.wording import printable

if TYPE_CHECKING:
    import polars as pl

_inputs: dict[tuple[int, int], str] | None = None
"""The names of the files that the command has read, by device and inode; None in Python, where callers may replace their inputs."""


@contextmanager
def guarded_inputs() -> Iterator[None]:
    """Make `whole_file` reject, within this context, files that were passed to `note_input`."""
    global _inputs
    before, _inputs = _inputs, {}
    try:
        yield
    finally:
        _inputs = before


def note_input(file: str | os.PathLike[str] | int, where: object = None) -> None:
    """Record that a file, given by path or descriptor, is read; missing files, folders and pipes are ignored.

    `where`: its name in messages, by default the path.
    """
    if _inputs is None:
        return
    with suppress(OSError, ValueError):
        found = os.stat(file)  # noqa: PTH116 (it may be a descriptor)
        if stat.S_ISREG(found.st_mode):
            _inputs.setdefault((found.st_dev, found.st_ino), str(file if where is None else where))


def input_at(path: str | os.PathLike[str]) -> str | None:
    """Return the name under which the file at this path was read, even by another path or link; None if it was not read."""
    if _inputs:
        with suppress(OSError, ValueError):
            found = Path(path).stat()
            return _inputs.get((found.st_dev, found.st_ino))
    return None


@contextmanager
def whole_file(path: str | os.PathLike[str], private: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file for writing, which appears under its name only if the block ends without an error.

    It is written under a temporary name and then renamed; `.gz` files are compressed with gzip, `.zst` files (text only) with Zstandard.
    The same content always gives the same file. `private`: whether only the owner may read it. Devices and pipes are written to directly.
    Raises OutputError if the file cannot be written, or is an input of the command.
    """
    target = Path(path)
    if (read := input_at(path)) is not None:
        raise OutputError(f"{printable(path)}: is the input {printable(read)}, which is not replaced; choose another file")
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file, _packed(file, target) as sink:
                yield sink
            return
        target = Path(os.path.realpath(target))  # a link keeps pointing to the file
        part = target.with_name(f".walltime-{secrets.token_hex(6)}.part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666), "wb") as file:
                with _packed(file, target) as sink:
                    yield sink
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(
            f"{printable(path)}: cannot be written ({_reason(error, target)}); choose another path", "unwritable_file"
        ) from error


def write_as_parquet(table: pl.DataFrame, sink: BinaryIO, **options: Any) -> None:
    """Write a table as Parquet into an open file; unlike polars, it raises OSError with the reason if this fails."""
    content = io.BytesIO()
    table.write_parquet(content, **options)
    sink.write(content.getbuffer())


def json_lines(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file with one object per line; incomplete or damaged lines are skipped."""
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            record = json.loads(line)
            if isinstance(record, dict):
                yield record


@contextmanager
def _packed(file: BinaryIO, target: Path) -> Iterator[BinaryIO]:
    name = target.name.lower()
    if name.endswith(".zst"):
        content = io.BytesIO()
        yield content
        file.write(_zstandard(content.getvalue(), target))
    elif name.endswith(".gz"):
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield cast(BinaryIO, packed)
    else:
        yield file


def _zstandard(text: bytes, target: Path) -> bytes:
    """Compress lines of text with Zstandard, with Python from version 3.14 on, otherwise with polars."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        import polars as pl

        packed = io.BytesIO()
        lines = pl.DataFrame({"": text.decode().removesuffix("\n").split("\n")})
        try:
            lines.write_csv(packed, include_header=False, quote_style="never", compression="zstd")  # type: ignore[call-arg,unused-ignore]
        except TypeError:
            raise OutputError(f"{printable(target)}: this version of polars cannot compress it; use the extension .gz") from None
        return packed.getvalue()
    whole: bytes = zstd.compress(text)
    return whole


def _reason(error: OSError, target: Path) -> str:
    if isinstance(error, FileNotFoundError) and not target.parent.is_dir():
        return f"the folder {printable(target.parent)} does not exist"
    return (error.strerror or str(error)).lower()
