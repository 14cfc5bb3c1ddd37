"""Input files, which are read once from start to end, plain or compressed; every failure is an error of one line."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import stat
import threading
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.files import note_input
from walltime.wording import printable, shown

T = TypeVar("T")
_CHUNK = 2**19
_LATER_CHUNKS = 2**22
"""Size in bytes of the pieces after the first one; from the first one the format is recognised."""
_AHEAD = 3
"""Number of pieces that are decompressed in advance."""
_LONGEST_LINE = 2**20
_OPEN: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda raw: gzip.GzipFile(fileobj=raw)),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\0": ("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ("Zstandard", lambda raw: _zstandard(raw)),
}
"""Compression formats by the first bytes of a file: the name, and a function that unpacks it."""
PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Extensions of compressed files."""
_FRAMED = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\|[^\n]*\|[ \t\r]*\n[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t\r]*(?:\n|\Z)")
"""The first lines of a Markdown table with bars at both ends: the titles, and the rule below them."""
_BARS = re.compile(rb"(?m)^[ \t]*\|[ \t]*|[ \t]*\|[ \t\r]*$|[ \t]*(\|)[ \t]*")
Progress = Callable[[int, int | None, str], None]
"""A function that is called with the amount read, the total (None if unknown), and the unit: bytes, columns or rows."""
_UNREADABLE = {
    FileNotFoundError: ("no such file; check its name", "missing_file"),
    IsADirectoryError: ("this is a directory; give a file in it", ""),
    PermissionError: ("no permission to read the file; ask its owner", ""),
}
"""Messages and codes for files that cannot be opened."""
LOG_FACTS = "walltime-log"
"""Key in the metadata of a Parquet file under which the facts are stored that a table cannot hold."""
PARTS = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
"""Extensions of the parts of a log in a folder, which may be followed by one of PACKED."""


class LogFile:
    """An input file, plain or compressed with gzip, bzip2, xz or Zstandard; it is read only once, so it may be a pipe.

    A folder is read as the concatenation of its files, sorted by name, if all are Parquet, all are CSV with the same titles, or all are
    JSON lines.

    `read`: reads the bytes in another way, from the path, its name in messages and the checksum. `progress`: called with the number of
    stored bytes that have been read. `head`: the first bytes (up to 512 KiB, decompressed), available at once. `where`: the path in
    messages. Raises LogError if the file is missing, a directory, unreadable, empty or damaged, and for anything that is not a path.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        read: Callable[[str, str, Digest], Iterator[bytes]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.path = path_of(path)
        self.progress = progress
        self.where = printable(self.path)
        self._digest = Digest()
        self._content: bytes | None = None
        is_folder = os.path.isdir(self.path)  # noqa: PTH112 (Path.is_dir raises for names that are too long)
        self.stored: int | None = None
        """The size of the file in bytes; None for folders and pipes."""
        with contextlib.suppress(OSError, ValueError):
            self.stored = None if is_folder else os.path.getsize(self.path) or None  # noqa: PTH202 (a name may have a NUL)
        self._rest = (read or (_parts if is_folder else chunks_of))(self.path, self.where, self._digest)
        self.head = next(self._rest, b"")
        self._returns = b"\r" in self.head and not any(other in self.head for other in (b"\n", b"\0"))
        if self._returns:
            self.head = self.head.replace(b"\r", b"\n")
        if not self.head:
            raise LogError(f"{self.where}: the file is empty; give a job log", "empty_file")

    @property
    def sha256(self) -> str:
        """Return the checksum of the file as stored; only after it has been read completely."""
        return self._digest.sha256.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the decompressed bytes in pieces; if lines end with carriage returns, these become line feeds."""
        yield self.head
        for chunk in self._rest:
            if self.progress is not None:
                self.progress(self._digest.length, self.stored, "bytes")
            yield chunk.replace(b"\r", b"\n") if self._returns else chunk

    def content(self) -> bytes:
        """Return all decompressed bytes, and keep them; not after `chunks` or `text_blocks` has been called."""
        if self._content is None:
            self._content = b"".join(self.chunks())
        return self._content

    def text_blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of whole lines, each with the number of its first line, from 1, and without its last line end."""
        first = 1
        rest = b""
        for chunk in self.chunks():
            text = rest + chunk
            if first == 1:
                text = text.removeprefix(b"\xef\xbb\xbf")
            zero = text.find(b"\0")
            if zero >= 0:
                lines = text.split(b"\n")
                if 2 * sum(b"\0" in line for line in lines) > len(lines) or len(lines) == 1:
                    line = first + text.count(b"\n", 0, zero)
                    raise LogError(f"{self.where}:{line}: not a text log (it has NUL bytes); use a text file, plain or compressed")
                text = text.replace(b"\0", b"\xff")  # NUL bytes are left by crashes; they are treated as bytes that are not text
            end = text.rfind(b"\n")
            rest = text[end + 1 :]
            if len(rest) > _LONGEST_LINE:
                line = first + text.count(b"\n")
                raise LogError(f"{self.where}:{line}: not a text log (it has a line of over {_LONGEST_LINE:,} bytes); choose another file")
            if end >= 0:
                whole = text[:end]
                yield first, whole
                first += whole.count(b"\n") + 1
        if rest:
            yield first, rest


@contextmanager
def reading(where: str, kind: str = "Parquet", code: str = "") -> Iterator[None]:
    """Convert errors of polars in this context to a LogError of one line, and suppress its output; `kind`: the kind of file."""
    try:
        with without_panics():
            yield
    except LogError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, RuntimeError, TypeError) as error:
        reason = next((line for line in str(error).splitlines() if line), "no reason given")
        raise LogError(f"{where}: cannot be read as {kind} ({reason[:100]}); check that the file is complete", code) from error


@contextmanager
def without_panics() -> Iterator[None]:
    """Close standard error in this context: polars writes the panics that damaged files cause directly to it."""
    try:
        kept = os.dup(2)
    except OSError:  # standard error is closed already
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def path_of(path: str | os.PathLike[str]) -> str:
    """Return a path as text; raises LogError for anything that is not a path."""
    try:
        return os.fsdecode(path)
    except TypeError as error:
        raise LogError(f"{shown(path)} is not a path; give the path of a log, or its name in the catalogue", "wrong_type") from error


class Digest:
    """The checksum of the bytes that have been read, and their number."""

    def __init__(self) -> None:
        self.length = 0
        self.sha256 = hashlib.sha256()

    def update(self, data: Any, /) -> None:
        """Add bytes."""
        self.sha256.update(data)
        self.length += len(data)


def in_advance(pieces: Iterator[T], number: int) -> Iterator[T]:
    """Yield the same pieces; a thread makes up to `number` of those after the first one in advance, while the caller works."""
    yield from islice(pieces, 1)
    pool = ThreadPoolExecutor(1)
    worker = pool.submit(threading.get_ident).result()
    ahead = deque(pool.submit(next, pieces, None) for _ in range(number))
    try:
        while (piece := ahead.popleft().result()) is not None:
            ahead.append(pool.submit(next, pieces, None))
            yield piece
    finally:  # the garbage collector may run this in the thread itself
        pool.shutdown(wait=threading.get_ident() != worker, cancel_futures=True)


class _Hashed(io.RawIOBase):
    """A file that updates a checksum as it is read."""

    def __init__(self, file: io.FileIO, digest: Digest) -> None:
        self._file = file
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        count = self._file.readinto(buffer) or 0
        self._digest.update(memoryview(buffer)[:count])
        return count


def chunks_of(path: str, where: str, digest: Digest) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces; `digest` gets the stored bytes. Raises LogError that names the file `where`."""
    packed = ""
    try:
        with Path(path).open("rb", buffering=0) as file:
            note_input(file.fileno(), where)
            raw = io.BufferedReader(_Hashed(file, digest), _CHUNK)
            start = raw.peek(6)
            packed, unpack = next((way for first, way in _OPEN.items() if start.startswith(first)), (packed, contextlib.nullcontext))
            # Pipes are not read in advance: an interrupted program would wait for more input.
            arrange = partial(in_advance, number=_AHEAD) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else iter
            with unpack(raw) as unpacked:
                yield from arrange(_without_frame(_as_utf8(unpacked)))
            while packed and raw.read(_CHUNK):  # the checksum includes bytes after the packed data
                pass
    except EOFError as error:
        raise LogError(f"{where}: the {packed} file is truncated; fetch it again", "damaged_archive") from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise LogError(f"{where}: the {packed} file is damaged ({printable(str(error))}); fetch it again", "damaged_archive") from error
    except OSError as error:
        if packed and error.errno is None:
            raise LogError(
                f"{where}: the {packed} file is damaged ({printable(str(error)).lower()}); fetch it again", "damaged_archive"
            ) from error
        what, code = _UNREADABLE.get(type(error), (f"cannot be read ({(error.strerror or str(error)).lower()}); check the file", ""))
        raise LogError(f"{where}: {what}", code) from error
    except ValueError as error:  # such as a NUL in the name
        raise LogError(f"{where}: cannot be read ({error}); check its name") from error


def _parts(path: str, where: str, digest: Digest) -> Iterator[bytes]:
    """Yield the bytes of the files in a folder, one after the other; Parquet files become one file with all rows."""
    files = sorted(file for file in Path(path).rglob("*") if unpacked_name(file.name.lower()).endswith(PARTS) and file.is_file())
    kinds = {Path(unpacked_name(file.name.lower())).suffix for file in files}
    if len(kinds) != 1:
        logs = sorted(file.name for file in Path(path).rglob("*") if unpacked_name(file.name.lower()).endswith(".swf"))
        named = ", ".join([*map(printable, logs[:3]), *(["..."] if len(logs) > 3 else [])])
        holds = f"files of several kinds ({', '.join(sorted(kinds))})" if kinds else f"{len(logs):,} logs ({named})" if logs else ""
        raise LogError(f"{where}: this is a directory{f' with {holds}' if holds else ''}; give a file in it")
    if kinds == {".parquet"}:
        yield _joined(files, where, digest)
        return
    first = None
    for file in files:
        last = b""
        for number, chunk in enumerate(chunks_of(str(file), printable(str(file)), digest)):
            last = chunk[-1:]
            chunk = chunk if number else chunk.removeprefix(b"\xef\xbb\xbf")
            titles = _titles(chunk) if kinds == {".csv"} and not number else None
            if titles is not None and first not in (None, titles):
                raise LogError(
                    f"{where}: {printable(files[0].name)} and {printable(file.name)} have different columns; read them one by one",
                    "different_headers",
                )
            yield chunk.partition(b"\n")[2] if titles is not None and titles == first else chunk
            first = first or titles
        if last != b"\n":
            yield b"\n"


def _titles(chunk: bytes) -> bytes | None:
    """Return the line of titles at the beginning of a table; None if it begins with a row."""
    titles = re.sub(rb'[\s"]', b"", chunk.split(b"\n", 1)[0])
    return None if re.search(rb"(?:^|[,;|])[-+.]?[0-9]", titles) else titles


def _joined(files: Sequence[Path], where: str, digest: Digest) -> bytes:
    tables, facts = [], []
    for file in files:
        content = b"".join(chunks_of(str(file), printable(str(file)), digest))
        with reading(printable(str(file))):
            tables.append(pl.read_parquet(io.BytesIO(content)))
            facts.append(json.loads(pl.read_parquet_metadata(io.BytesIO(content)).get(LOG_FACTS, "null")))
    with reading(where):
        whole = io.BytesIO()
        metadata = {LOG_FACTS: json.dumps(_facts_together(facts, where))} if all(isinstance(one, dict) for one in facts) else None
        pl.concat(tables, how="diagonal_relaxed").write_parquet(whole, compression="uncompressed", metadata=metadata)
    return whole.getvalue()


def _facts_together(parts: Sequence[dict[str, Any]], where: str) -> dict[str, Any]:
    """Merge the facts of a log's parts: counts are added, and only header lines that all parts share are kept.

    Raises LogError if the times of the parts count from different starts.
    """
    headers = [part.get("header", []) for part in parts]
    starts = {line for header in headers for line in header if "UnixStartTime" in line}
    if len(starts) > 1:
        raise LogError(
            f"{where}: the parts start at different times ({', '.join(sorted(starts))}); read them one by one", "different_headers"
        )
    together: dict[str, Any] = {
        **parts[0],
        "records": sum(part.get("records", 0) for part in parts),
        "header": [line for line in headers[0] if all(line in header for header in headers)],
    }
    for name in ("dropped", "changed", "noticed"):
        together[name] = dict(sum((Counter(part.get(name, {})) for part in parts), Counter[str]()))
    return together


def _as_utf8(file: Any) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces; UTF-16, as spreadsheets write it, is converted to UTF-8."""
    chunk = file.read(_CHUNK)
    if not chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        while chunk:
            yield chunk
            chunk = file.read(_LATER_CHUNKS)
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    while chunk:
        if text := decoder.decode(chunk):
            yield text.encode("utf-8", "replace")
        chunk = file.read(_CHUNK)
    yield from [rest.encode() for rest in [decoder.decode(b"", final=True)] if rest]


def _without_frame(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a file; a Markdown table loses its outer bars, and the rule below its titles."""
    first = next(pieces, b"")
    if not first.startswith((b"|", b" ", b"\xef\xbb\xbf", b"\n", b"\r")) or not _FRAMED.match(first):
        yield from filter(None, (first,))
        yield from pieces
        return
    titles, _, below = first.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    rest = b"\n".join((titles, b"", below.partition(b"\n")[2]))
    for piece in pieces:
        lines, _, further = (rest + piece).rpartition(b"\n")
        if lines:
            yield _BARS.sub(rb"\1", lines) + b"\n"
        rest = further
    yield _BARS.sub(rb"\1", rest)


def _zstandard(raw: Any) -> Any:
    """Return a decompressed Zstandard file: with Python 3.14, else with polars, which reads all lines at once."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        if not hasattr(pl, "read_lines"):
            raise OSError("this version of polars cannot decompress it; use zstd -d") from None
        try:
            with without_panics():
                lines = pl.read_lines(io.BytesIO(raw.read()))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise OSError(str(error).splitlines()[0]) from error
        return io.BytesIO("\n".join(lines.to_series(0)).encode() + b"\n")
    return zstd.ZstdFile(raw)


def unpacked_name(name: str) -> str:
    """Return the name of a file without the extension of its compression.

    >>> unpacked_name("log.swf.xz"), unpacked_name("log.csv")
    ('log.swf', 'log.csv')
    """
    return next((name[: -len(ending)] for ending in PACKED if name.lower().endswith(ending)), name)


def decoded(line: bytes) -> tuple[str, bool]:
    """Return a line as text, and whether it is UTF-8; if not, it is read as Latin-1."""
    try:
        return line.decode(), True
    except UnicodeDecodeError:
        return line.decode("latin-1"), False
