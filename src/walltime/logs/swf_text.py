"""From the bytes of a Standard Workload Format file to columns and comments, a block of lines at a time."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from walltime.errors import LogError
from walltime.logs.output import printable
from walltime.workload import MISSING, SWF_COLUMNS, Column

Array = np.ndarray

_CHUNK = 2**19
_LONGEST_LINE = 2**20
_LIMIT = 2.0**53  # below it every whole number is exact in a float64, so that one parser serves all fields
_TIMES = ("submit", "runtime", "requested")
_GZIP = b"\x1f\x8b"
_PLAIN = b"0123456789+-.eE \t\r"
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Comment:
    """A line that starts with `;`, as it stands in the file but for its line end, and the number of records before it."""

    record: int
    text: str


@dataclass(frozen=True)
class BadLine:
    """A line that was skipped: its number counted from 1, what is wrong with it, and what it says."""

    line: int
    reason: str
    text: str


@dataclass
class SwfText:
    """What a file holds: number of records, columns with at least one known value (int64, or float64), comments, bad lines."""

    sha256: str
    records: int
    columns: dict[str, Array]
    comments: list[Comment]
    bad_lines: list[BadLine]


def parse_swf(path: str | os.PathLike[str], *, skip_bad_lines: bool = False) -> SwfText:
    """Parse a plain or gzip file; raises LogError, see `walltime.logs.read_swf`."""
    where = printable(path)
    digest = hashlib.sha256()
    parts = _Parts()
    comments: list[Comment] = []
    bad_lines: list[BadLine] = []
    empty = True
    for first, lines in _blocks(_chunks(path, digest), where):
        empty = False
        numbers: list[int] = []
        records: list[bytes] = []
        notes: list[tuple[int, bytes]] = []
        for number, line in enumerate(lines, first):
            text = line.strip()
            if text.startswith(b";"):
                notes.append((len(records), line))
            elif text:
                numbers.append(number)
                records.append(text)
        values, bad = _values(records)
        if bad and not skip_bad_lines:
            row, reason = next(iter(bad.items()))
            raise LogError(f"{where}:{numbers[row]}: {reason}; repair the line, or leave bad lines out with --skip-bad-lines")
        bad_lines.extend(BadLine(numbers[row], reason, _text(records[row])) for row, reason in bad.items())
        kept = np.ones(len(records) + 1, np.int64)
        kept[list(bad)] = 0
        before = parts.records + np.cumsum(kept) - kept
        comments.extend(Comment(int(before[row]), _text(line.rstrip(b"\r"))) for row, line in notes)
        parts.add(values)
    if empty:
        raise LogError(f"{where}: the file is empty; give a job log in the Standard Workload Format")
    if parts.records == 0 and bad_lines:
        worst = f"the first of {len(bad_lines)} bad lines is line {bad_lines[0].line}: {bad_lines[0].reason}"
        raise LogError(f"{where}: no job record can be read, {worst}; give a job log in the Standard Workload Format")
    if parts.records == 0:
        raise LogError(f"{where}: there are no job records in it; give a job log in the Standard Workload Format")
    return SwfText(digest.hexdigest(), parts.records, parts.columns(), comments, bad_lines)


def faults(column: Column, values: Array) -> Iterator[tuple[Array, str]]:
    """Say which values (float64 or int64) a column cannot hold, as masks with the reason."""
    yield ~((values > -_LIMIT) & (values < _LIMIT)), "is not a number below 2**53"
    if column.dtype == "int64" and column.unit != "s":
        yield values != np.floor(values), "must be a whole number"
    if column.name in _TIMES:
        yield (values < 0) & (values != MISSING), "is negative, only -1 (unknown) may be"


def narrowed(values: Array) -> Array:
    """The values as int64 if all of them are whole, else as float64 (a copy)."""
    whole = values.astype(np.int64)
    return whole if (whole == values).all() else values.astype(np.float64)


class _Digest(Protocol):
    def update(self, data: Any, /) -> None: ...


class _Hashed(io.RawIOBase):
    """A file whose bytes go into a checksum as they are read."""

    def __init__(self, file: io.FileIO, digest: _Digest) -> None:
        self._file = file
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        count = self._file.readinto(buffer) or 0
        self._digest.update(memoryview(buffer)[:count])
        return count


class _Parts:
    """Columns that grow block by block; where a block knows no value of a column, nothing is stored."""

    def __init__(self) -> None:
        self.records = 0
        self._parts: dict[str, list[tuple[int, Array]]] = {column.name: [] for column in SWF_COLUMNS}

    def add(self, values: Array) -> None:
        for parts, block in zip(self._parts.values(), values.T, strict=True):
            if (block != MISSING).any():
                parts.append((self.records, narrowed(block)))
        self.records += len(values)

    def columns(self) -> dict[str, Array]:
        """The joined columns; the blocks are given up one column at a time, to hold little twice."""
        joined = {}
        for name in list(self._parts):
            parts = self._parts.pop(name)
            if parts:
                dtype = np.result_type(*(block.dtype for _, block in parts))
                joined[name] = np.full(self.records, MISSING, dtype)
                for start, block in parts:
                    joined[name][start : start + len(block)] = block
        return joined


def _chunks(path: str | os.PathLike[str], digest: _Digest) -> Iterator[bytes]:
    """The decompressed bytes of a file, a piece at a time."""
    where = printable(path)
    try:
        with Path(path).open("rb", buffering=0) as file:
            raw = io.BufferedReader(_Hashed(file, digest), _CHUNK)
            if raw.peek(2)[:2] == _GZIP:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    while chunk := unpacked.read(_CHUNK):
                        yield chunk
            else:
                while chunk := raw.read(_CHUNK):
                    yield chunk
    except EOFError as error:
        raise LogError(f"{where}: the gzip file is cut off before its end; fetch it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise LogError(f"{where}: the gzip file is damaged ({printable(str(error))}); fetch it again") from error
    except FileNotFoundError as error:
        raise LogError(f"{where}: there is no such file; check its name") from error
    except IsADirectoryError as error:
        raise LogError(f"{where}: this is a directory; name a file in it") from error
    except PermissionError as error:
        raise LogError(f"{where}: no permission to read the file; ask its owner") from error
    except OSError as error:
        raise LogError(f"{where}: cannot be read ({(error.strerror or str(error)).lower()}); check the file") from error


def _blocks(chunks: Iterable[bytes], where: str) -> Iterator[tuple[int, list[bytes]]]:
    """Whole lines in blocks, with the number of the first of each block."""
    first = 1
    rest = b""
    for chunk in chunks:
        text = rest + chunk
        if first == 1:
            text = text.removeprefix(b"\xef\xbb\xbf")
        zero = text.find(b"\0")
        if zero >= 0:
            line = first + text.count(b"\n", 0, zero)
            raise LogError(f"{where}:{line}: a NUL byte, so this is not a text log; give a Standard Workload Format file, plain or gzip")
        end = text.rfind(b"\n")
        rest = text[end + 1 :]
        if len(rest) > _LONGEST_LINE:
            line = first + text.count(b"\n")
            raise LogError(f"{where}:{line}: a line of more than {_LONGEST_LINE:,} bytes, so this is not a text log; give another file")
        if end >= 0:
            lines = text[:end].split(b"\n")
            yield first, lines
            first += len(lines)
    if rest:
        yield first, [rest]


def _values(records: list[bytes]) -> tuple[Array, dict[int, str]]:
    """The values of the good records (float64, one row each) and the rows of the bad ones with what is wrong, in order."""
    if not records:
        return np.empty((0, len(SWF_COLUMNS))), {}
    if not b"".join(records).translate(None, _PLAIN):
        try:
            values = np.loadtxt([record.decode("ascii") for record in records], dtype=np.float64, comments=None, ndmin=2)
        except ValueError:
            pass  # some line is bad: the search below says which
        else:
            if values.shape == (len(records), len(SWF_COLUMNS)) and not any(
                mask.any() for column, block in zip(SWF_COLUMNS, values.T, strict=True) for mask, _ in faults(column, block)
            ):
                return values, {}
    return _values_line_by_line(records)


def _values_line_by_line(records: list[bytes]) -> tuple[Array, dict[int, str]]:
    bad: dict[int, str] = {}
    rows: list[int] = []
    good: list[list[float]] = []
    for row, record in enumerate(records):
        tokens = record.split()
        reason = _bad_tokens(record, tokens)
        if reason:
            bad[row] = reason
        else:
            rows.append(row)
            good.append([float(token) for token in tokens])
    values = np.array(good, np.float64).reshape(len(good), len(SWF_COLUMNS))
    usable = np.ones(len(good), bool)
    for field, column in enumerate(SWF_COLUMNS):
        for mask, what in faults(column, values[:, field]):
            for index in np.flatnonzero(mask & usable):
                bad[rows[index]] = f"{_field(column)} is {_quoted(records[rows[index]].split()[field])}, it {what}"
            usable &= ~mask
    return values[usable], dict(sorted(bad.items()))


def _bad_tokens(record: bytes, tokens: list[bytes]) -> str | None:
    try:
        record.decode()
    except UnicodeDecodeError as error:
        return f"byte 0x{record[error.start]:02x} is not text, so this is not a text log or the line is damaged"
    if len(tokens) != len(SWF_COLUMNS):
        return f"{len(tokens)} {'field' if len(tokens) == 1 else 'fields'} instead of {len(SWF_COLUMNS)}"
    for column, token in zip(SWF_COLUMNS, tokens, strict=True):
        if _NUMBER.fullmatch(token):
            continue
        if _NOT_FINITE.fullmatch(token):
            return f"{_field(column)} is {_quoted(token)}, it must be finite, -1 if unknown"
        if b"_" in token:
            return f"{_field(column)} is {_quoted(token)}, a number has no underscores"
        return f"{_field(column)} is {_quoted(token)}, it must be a number"
    return None


def _field(column: Column) -> str:
    return f"field {column.swf_field} ({column.name})"


def _quoted(token: bytes) -> str:
    text = _text(token)
    return repr(text if len(text) <= 30 else text[:27] + "...")


def _text(line: bytes) -> str:
    """A line as text: UTF-8, or Latin-1 as in logs that are older than it."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("latin-1")
