"""Input files: read once, from beginning to end, plain or compressed; every failure is a one-line error."""

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
import queue
import re
import stat
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from walltime.errors import LogError
from walltime.files import note_input
from walltime.wording import printable, shown

_CHUNK = 2**19
_LATER_CHUNKS = 2**22
"""Bytes of the pieces after the first, which alone is looked at to recognise the format."""
_AHEAD = 3
"""So many pieces are unpacked before they are asked for."""
_LONGEST_LINE = 2**20
_OPEN: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda raw: gzip.GzipFile(fileobj=raw)),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zXZ\0": ("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ("Zstandard", lambda raw: _zstandard(raw)),
}
"""By the first bytes of a file: what its compression is called, and what unpacks it."""
PACKED = (".gz", ".bz2", ".xz", ".zst")
"""What compressed files end in."""
_FRAMED = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\|[^\n]*\|[ \t\r]*\n[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t\r]*(?:\n|\Z)")
"""How a table of Markdown begins that has signs at both ends of its lines: titles, and a line below them."""
_SIGNS = re.compile(rb"(?m)^[ \t]*\|[ \t]*|[ \t]*\|[ \t\r]*$|[ \t]*(\|)[ \t]*")
Progress = Callable[[int, int | None, str], None]
"""Is called with how much has been read, of how much, and what is counted: bytes, columns or rows."""
LOG_FACTS = "walltime-log"
"""Where the metadata of a Parquet file has what a table cannot hold."""
PARTS = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
"""What the parts of a log in a folder end in, besides PACKED."""


class LogFile:
    """An input file, plain or packed with gzip, bzip2, xz or Zstandard, by content; it is read only once, so it may be a pipe.

    A folder is read as the files in it, in the order of their names, if all are Parquet, all are CSV, or all are JSON lines.

    `read`: gives its bytes in another way: from the path, its name in messages and the checksum. `progress`: told of the bytes that
    have been read, as they are stored.

    `head`: its first bytes (up to 512 KiB, decompressed), available at once. Raises LogError if the file is missing, a
    directory, unreadable, empty or damaged, and for anything that is not a path.
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
        """The path as messages name it."""
        self._digest = _Counted()
        self._content: bytes | None = None
        is_folder = os.path.isdir(self.path)  # noqa: PTH112 (Path.is_dir raises for names that are too long)
        self._stored = None if is_folder else _length(self.path)
        self._rest = (read or (_parts if is_folder else chunks_of))(self.path, self.where, self._digest)
        self.head = next(self._rest, b"")
        self._returns = b"\r" in self.head and not any(other in self.head for other in (b"\n", b"\0"))
        if self._returns:
            self.head = self.head.replace(b"\r", b"\n")
        if not self.head:
            raise LogError(f"{self.where}: the file is empty; give a job log", "empty_file")

    @property
    def sha256(self) -> str:
        """Checksum of the file as stored, after it has been read completely."""
        return self._digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """The decompressed bytes, in pieces; with the usual line ends, if all of the first piece are carriage returns."""
        yield self.head
        for chunk in self._rest:
            if self.progress is not None:
                self.progress(self._digest.length, self._stored, "bytes")
            yield chunk.replace(b"\r", b"\n") if self._returns else chunk

    def content(self) -> bytes:
        """All decompressed bytes, which are kept; nothing of the file may have been asked for by another method before."""
        if self._content is None:
            self._content = b"".join(self.chunks())
        return self._content

    def line_blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Whole lines without line ends, in blocks, with the number of the first line of each block, counted from 1."""
        for first, text in self.text_blocks():
            yield first, text.split(b"\n")

    def text_blocks(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines in blocks, without the last line end, with the number of the first line of each block, counted from 1."""
        first = 1
        rest = b""
        for chunk in self.chunks():
            text = rest + chunk
            if first == 1:
                text = text.removeprefix(b"\xef\xbb\xbf")
            zero = text.find(b"\0")
            if zero >= 0:
                line = first + text.count(b"\n", 0, zero)
                raise LogError(f"{self.where}:{line}: a NUL byte, so this is not a text log; give a text file, plain or gzip")
            end = text.rfind(b"\n")
            rest = text[end + 1 :]
            if len(rest) > _LONGEST_LINE:
                line = first + text.count(b"\n")
                raise LogError(
                    f"{self.where}:{line}: a line of more than {_LONGEST_LINE:,} bytes, so this is not a text log; give another file"
                )
            if end >= 0:
                whole = text[:end]
                yield first, whole
                first += whole.count(b"\n") + 1
        if rest:
            yield first, rest


@contextmanager
def reading_parquet(where: str) -> Iterator[None]:
    """Within this context a Parquet file that polars cannot read is a LogError, in one line, and nothing is printed."""
    import polars as pl

    try:
        with without_panics():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, RuntimeError, RecursionError) as error:
        if isinstance(error, LogError):
            raise
        reason = next((line for line in str(error).splitlines() if line), "no reason given")
        raise LogError(f"{where}: cannot be read as Parquet ({reason[:100]}); give another file") from error


@contextmanager
def without_panics() -> Iterator[None]:
    """Polars prints the panics that damaged files cause past Python, so standard error is closed to everybody meanwhile."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed anyway
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
    """A path as text; raises LogError for anything else."""
    try:
        return os.fsdecode(path)
    except TypeError as error:
        raise LogError(f"{shown(path)} is not a path; a log is given by its path, or by its name in the catalogue", "wrong_type") from error


class Digest(Protocol):
    """A checksum that grows."""

    def update(self, data: Any, /) -> None:
        """Add bytes."""


class _Counted:
    """A checksum that knows how many bytes it has been given."""

    def __init__(self) -> None:
        self.length = 0
        self._sum = hashlib.sha256()

    def update(self, data: Any, /) -> None:
        """Add bytes."""
        self._sum.update(data)
        self.length += len(data)

    def hexdigest(self) -> str:
        """The checksum so far."""
        return self._sum.hexdigest()


def _length(path: str) -> int | None:
    """The bytes of a file; None for a pipe, and what cannot be looked at."""
    try:
        return os.path.getsize(path) or None  # noqa: PTH202 (a name may have a NUL)
    except (OSError, ValueError):
        return None


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces; those after the first are made in a thread while others are worked on."""
    yield from (piece for piece in [next(pieces, b"")] if piece)
    made: queue.Queue[bytes | BaseException | None] = queue.Queue(_AHEAD)
    unwanted = threading.Event()

    def put(one: bytes | BaseException | None) -> None:
        is_put = False
        while not (is_put or unwanted.is_set()):
            with contextlib.suppress(queue.Full):
                made.put(one, timeout=0.1)
                is_put = True

    def make() -> None:
        try:
            for piece in pieces:
                put(piece)
                if unwanted.is_set():
                    return
            put(None)
        except BaseException as error:  # it belongs to whoever asks for the pieces
            put(error)

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while (one := made.get()) is not None:
            if isinstance(one, BaseException):
                raise one
            yield one
    finally:
        unwanted.set()
        if thread is not threading.current_thread():  # where the collector of garbage happens to run
            thread.join()


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
    """The decompressed bytes of a file, in pieces; `digest` gets those that are stored. Raises LogError; `where` names the file."""
    packed = ""
    try:
        with Path(path).open("rb", buffering=0) as file:
            note_input(file.fileno(), where)
            raw = io.BufferedReader(_Hashed(file, digest), _CHUNK)
            start = raw.peek(6)
            packed, unpack = next((way for first, way in _OPEN.items() if start.startswith(first)), (packed, None))
            makes = _ahead if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else iter  # who interrupts a pipe must not wait for its end
            if unpack is None:
                yield from makes(_without_frame(_as_utf8(raw)))
            else:
                with unpack(raw) as unpacked:
                    yield from makes(_without_frame(_as_utf8(unpacked)))
                while raw.read(_CHUNK):  # what lies behind the packed data belongs to the checksum
                    pass
    except EOFError as error:
        raise LogError(f"{where}: the {packed} file is truncated; fetch it again", "damaged_archive") from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise LogError(f"{where}: the {packed} file is damaged ({printable(str(error))}); fetch it again", "damaged_archive") from error
    except FileNotFoundError as error:
        raise LogError(f"{where}: there is no such file; check its name", "missing_file") from error
    except IsADirectoryError as error:
        raise LogError(f"{where}: this is a directory; name a file in it") from error
    except PermissionError as error:
        raise LogError(f"{where}: no permission to read the file; ask its owner") from error
    except OSError as error:
        if packed and error.errno is None:
            raise LogError(
                f"{where}: the {packed} file is damaged ({printable(str(error)).lower()}); fetch it again", "damaged_archive"
            ) from error
        raise LogError(f"{where}: cannot be read ({(error.strerror or str(error)).lower()}); check the file") from error
    except ValueError as error:  # such as a NUL in the name
        raise LogError(f"{where}: cannot be read ({error}); check its name") from error


def _parts(path: str, where: str, digest: Digest) -> Iterator[bytes]:
    """The bytes of the files in a folder, one after the other; of Parquet files those of one file with all their rows."""
    files = sorted(file for file in Path(path).rglob("*") if unpacked_name(file.name.lower()).endswith(PARTS) and file.is_file())
    kinds = {Path(unpacked_name(file.name.lower())).suffix for file in files}
    if not kinds and (logs := sorted(file.name for file in Path(path).rglob("*") if unpacked_name(file.name.lower()).endswith(".swf"))):
        named = ", ".join([*map(printable, logs[:3]), *(["..."] if len(logs) > 3 else [])])
        many = f"{len(logs):,} logs" if len(logs) > 1 else "a log"
        raise LogError(
            f"{where}: which log? This is a directory with {many} ({named}); name one, or the file into which you join its parts"
        )
    if len(kinds) != 1:
        why = f" with files of several kinds ({', '.join(sorted(kinds))})" if kinds else ""
        raise LogError(f"{where}: this is a directory{why}; name a file in it")
    if kinds == {".parquet"}:
        yield _joined(files, where, digest)
        return
    for file in files:
        last = b""
        for chunk in chunks_of(str(file), printable(str(file)), digest):
            yield chunk
            last = chunk[-1:]
        if last != b"\n":
            yield b"\n"


def _joined(files: Sequence[Path], where: str, digest: Digest) -> bytes:
    import polars as pl

    tables, facts = [], []
    for file in files:
        content = b"".join(chunks_of(str(file), printable(str(file)), digest))
        with reading_parquet(printable(str(file))):
            tables.append(pl.read_parquet(io.BytesIO(content)))
            facts.append(json.loads(pl.read_parquet_metadata(io.BytesIO(content)).get(LOG_FACTS, "null")))
    with reading_parquet(where):
        whole = io.BytesIO()
        metadata = {LOG_FACTS: json.dumps(_facts_together(facts, where))} if all(isinstance(one, dict) for one in facts) else None
        pl.concat(tables, how="diagonal_relaxed").write_parquet(whole, compression="uncompressed", metadata=metadata)
    return whole.getvalue()


def _facts_together(parts: Sequence[dict[str, Any]], where: str) -> dict[str, Any]:
    """Return what the parts of a log hold besides their rows, as for one file: counts are added, lines of the header are in every part.

    Raises LogError for parts whose times count from different starts.
    """
    headers = [part.get("header", []) for part in parts]
    starts = {line for header in headers for line in header if "UnixStartTime" in line}
    if len(starts) > 1:
        raise LogError(
            f"{where}: the parts begin at different times ({', '.join(sorted(starts))}); read them one by one", "different_headers"
        )
    together: dict[str, Any] = {
        **parts[0],
        "records": sum(part.get("records", 0) for part in parts),
        "header": [line for line in headers[0] if all(line in header for header in headers)],
    }
    for name in ("dropped", "changed", "noticed"):
        counts = Counter[str]()
        for part in parts:
            counts.update(part.get(name, {}))
        together[name] = dict(counts)
    return together


def _as_utf8(file: Any) -> Iterator[bytes]:
    """The bytes of a file in pieces; those of texts in UTF-16, as spreadsheets write them, as UTF-8."""
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
    """The pieces of a file; those of a table of Markdown with signs only between cells, and an empty line below the titles."""
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
            yield _SIGNS.sub(rb"\1", lines) + b"\n"
        rest = further
    yield _SIGNS.sub(rb"\1", rest)


def _zstandard(raw: Any) -> Any:
    """What unpacks Zstandard: of Python 3.14, else of polars, which reads all lines at once."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        import polars as pl

        if not hasattr(pl, "read_lines"):
            raise OSError("this version of polars cannot unpack it, unpack it with zstd -d") from None
        try:
            with without_panics():
                lines = pl.read_lines(io.BytesIO(raw.read()))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise OSError(str(error).splitlines()[0]) from error
        return io.BytesIO("\n".join(lines.to_series(0)).encode() + b"\n")
    return zstd.ZstdFile(raw)


def unpacked_name(name: str) -> str:
    """The name of a file without the ending that says how it is packed.

    >>> unpacked_name("log.swf.xz"), unpacked_name("log.csv")
    ('log.swf', 'log.csv')
    """
    return next((name[: -len(ending)] for ending in PACKED if name.lower().endswith(ending)), name)


def decoded(line: bytes) -> tuple[str, bool]:
    """A line as text, and whether it was UTF-8; else it is read as Latin-1."""
    try:
        return line.decode(), True
    except UnicodeDecodeError:
        return line.decode("latin-1"), False
