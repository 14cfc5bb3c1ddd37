"""Downloads of archive logs into a user folder: verified, resumable, and recorded."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from walltime.errors import LogError, OutputError
from walltime.files import whole_file
from walltime.logs.catalogue import ARCHIVE, CatalogueEntry, catalogue_entry, log_folder

__all__ = ["RECORD", "FetchedLog", "archive_address", "fetch"]

TIMEOUT = 30
"""Seconds without data after which a connection is considered dead."""
BLOCK = 1 << 13
RECORD = "checksums.json"

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class FetchedLog:
    """A log on this machine, its checksum, and what it was verified against."""

    entry: CatalogueEntry
    path: Path
    sha256: str
    verified: str
    """`catalogue`, `earlier download`, or `first download` if there was nothing to verify it against"""


def archive_address() -> str:
    """The address to download from: `WALLTIME_ARCHIVE` (a mirror with the archive's folders), else the archive itself."""
    return os.environ.get("WALLTIME_ARCHIVE", ARCHIVE)


def fetch(name: str, *, progress: Progress | None = None) -> FetchedLog:
    """Download a log of the catalogue, unless it is already present, and verify it.

    The checksum is that of the catalogue if known, else that of the first download on this machine, which is recorded beside
    the logs. An interrupted download is resumed if the server confirms that the file is unchanged. `progress` is called with
    the bytes so far and in total. Raises PolicyError for an unknown name, LogError, in one line, for a wrong checksum and
    network failures.
    """
    import pooch

    pooch.get_logger().setLevel("WARNING")
    entry = catalogue_entry(name)
    folder = log_folder()
    known, source = _known_checksum(entry, folder)
    address = entry.address(archive_address())
    try:
        path = pooch.retrieve(
            address,
            known_hash=f"sha256:{known}" if known else None,
            fname=entry.file,
            path=folder,
            downloader=_Resuming(folder / f"{entry.file}.part", progress),
        )
    except ValueError as error:
        if "hash" not in str(error).lower():
            raise
        (folder / f"{entry.file}.part").unlink(missing_ok=True)
        raise LogError(
            f"{address}: the checksum is not that of the {source} ({known}); nothing was kept, try again later or another mirror"
        ) from error
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror or error}); name another folder with WALLTIME_LOGS") from error
    checksum = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if known is None:
        _record(entry, checksum, folder)
    return FetchedLog(entry, Path(path), checksum, source)


def _known_checksum(entry: CatalogueEntry, folder: Path) -> tuple[str | None, str]:
    if entry.sha256:
        return entry.sha256, "catalogue"
    recorded = _recorded(folder).get(entry.file)
    return (recorded, "earlier download") if recorded else (None, "first download")


def _recorded(folder: Path) -> dict[str, str]:
    try:
        record: dict[str, str] = json.loads((folder / RECORD).read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise LogError(f"{folder / RECORD}: cannot be read ({error}); remove it, and the next downloads are recorded again") from error
    return record


def _record(entry: CatalogueEntry, checksum: str, folder: Path) -> None:
    record = _recorded(folder) | {entry.file: checksum}
    with whole_file(folder / RECORD) as file:
        file.write(json.dumps(dict(sorted(record.items())), indent=2).encode() + b"\n")


class _Resuming:
    """A downloader for pooch that keeps partial files when the connection breaks, and requests the rest the next time.

    The tag of a partial file, the ETag or date with which the server identifies this version, is stored beside it. A partial
    file without a tag, or of another version, is discarded: two versions are never mixed.
    """

    def __init__(self, part: Path, progress: Progress | None):
        self.part = part
        self.tag = part.with_name(f"{part.name}.tag")
        self.progress = progress

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Download into the partial file, and move it to the place pooch expects."""
        import requests

        self.part.parent.mkdir(parents=True, exist_ok=True)
        try:
            total = self._download(url)
        except requests.exceptions.RequestException as error:
            self._explain(url, error)
        size = self.part.stat().st_size
        if total is not None and size != total:
            raise LogError(f"{url}: the connection was cut after {size:,} of {total:,} bytes; run the command again to get the rest")
        Path(output_file).write_bytes(self.part.read_bytes())
        self._forget()

    def _download(self, url: str) -> int | None:
        """Request the rest of the partial file, or the whole file; returns the expected size of the file."""
        import requests

        have = self.part.stat().st_size if self.part.exists() else 0
        tag = self.tag.read_text(encoding="latin-1") if self.tag.exists() else ""
        headers = {"Accept-Encoding": "identity"}
        if have and tag:
            with requests.get(url, headers=headers | {"Range": f"bytes={have}-", "If-Range": tag}, stream=True, timeout=TIMEOUT) as answer:
                if answer.status_code == 206 and _tag(answer) in ("", tag):
                    return self._receive(answer, have)
                if answer.status_code not in (206, 416):
                    return self._afresh(url, answer)
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            return self._afresh(url, answer)

    def _afresh(self, url: str, answer: Any) -> int | None:
        self._check(url, answer)
        self._forget()
        self.tag.write_text(_tag(answer), encoding="latin-1")
        return self._receive(answer, 0)

    def _forget(self) -> None:
        self.part.unlink(missing_ok=True)
        self.tag.unlink(missing_ok=True)

    def _receive(self, answer: Any, have: int) -> int | None:
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length and length.isdecimal() else None
        answer.raw.headers.pop("Content-Encoding", None)  # some servers declare every .gz as encoded; it is kept as stored
        with self.part.open("ab" if have else "wb") as file:
            for block in answer.iter_content(BLOCK):
                file.write(block)
                have += len(block)
                if self.progress is not None:
                    self.progress(have, total)
        return total

    @staticmethod
    def _check(url: str, answer: Any) -> None:
        if answer.status_code == 404:
            raise LogError(f"{url}: there is no such file (404); the archive may have a newer version, see its page")
        if answer.status_code >= 400:
            raise LogError(f"{url}: the server refuses ({answer.status_code} {answer.reason}); try again later")

    def _explain(self, url: str, error: Exception) -> None:
        import requests

        have = self.part.stat().st_size if self.part.exists() else 0
        if isinstance(error, requests.exceptions.ChunkedEncodingError) or have:
            raise LogError(f"{url}: the connection was cut after {have:,} bytes; run the command again to get the rest") from error
        if isinstance(error, requests.exceptions.Timeout):
            raise LogError(f"{url}: no answer in {TIMEOUT} s; try again later") from error
        raise LogError(f"{url}: cannot be reached; is there a network?") from error


def _tag(answer: Any) -> str:
    """What identifies this version of the file on the server: a strong ETag, else the date of its last change, else nothing."""
    etag: str = answer.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified", "")
