"""Output files that appear under their name only when complete, and that never replace an input of the same call."""

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
"""The files that the command has read, by device and number, with their names; None in Python, where a caller may replace what it read."""


@contextmanager
def guarded_inputs() -> Iterator[None]:
    """Make `whole_file` reject, within this context, files passed to `note_input`."""
    global _inputs
    before, _inputs = _inputs, {}
    try:
        yield
    finally:
        _inputs = before


def note_input(file: str | os.PathLike[str] | int, where: object = None) -> None:
    """Note that a file, by its path or its descriptor, is read; without effect for one that does not exist, a folder or a pipe.

    `where`: its name in messages, by default the path.
    """
    if _inputs is None:
        return
    with suppress(OSError, ValueError):
        found = os.stat(file)  # noqa: PTH116 (it may be a descriptor)
        if stat.S_ISREG(found.st_mode):
            _inputs.setdefault((found.st_dev, found.st_ino), str(file if where is None else where))


def input_at(path: str | os.PathLike[str]) -> str | None:
    """Return the name under which a file was read, through links and other spellings of its path; None if it was not."""
    if _inputs:
        with suppress(OSError, ValueError):
            found = Path(path).stat()
            return _inputs.get((found.st_dev, found.st_ino))
    return None


@contextmanager
def whole_file(path: str | os.PathLike[str], private: bool = False) -> Iterator[BinaryIO]:
    """Open a binary file for writing that gets its name only if the block ends without an error.

    It is written under a temporary name, as gzip if the name ends in `.gz`, as Zstandard if in `.zst` (texts only), and renamed; the
    same bytes always give the same file. `private`: only the owner may read it. Devices and pipes are written to directly. Raises
    OutputError if the file cannot be written, or is an input of the command.
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
    """Write a table as Parquet into an open file; raises OSError where polars would hide why it cannot be written."""
    content = io.BytesIO()
    table.write_parquet(content, **options)
    sink.write(content.getbuffer())


def json_lines(text: bytes) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file that has one in each line; lines that are cut or damaged are skipped."""
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
    """Return lines of text packed with Zstandard: by Python from 3.14 on, else by polars."""
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
