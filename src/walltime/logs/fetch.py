"""Download logs of the archive and files of other data sets to a user folder: verified, resumable, and recorded."""

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
from walltime.logs.mapping import About
from walltime.wording import printable

TIMEOUT = 30
"""Seconds without data after which a connection is considered dead."""
BLOCK = 1 << 13
RECORD = "checksums.json"

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class FetchedLog:
    """A log on this machine, its checksum, and what the checksum was compared with."""

    entry: CatalogueEntry
    path: Path
    sha256: str
    verified: str
    """`catalogue`, `earlier download`, or `first download` if there was no reference."""


def archive_address() -> str:
    """Return the address of the archive, or of a mirror with the same folders, set by `WALLTIME_ARCHIVE`."""
    return os.environ.get("WALLTIME_ARCHIVE", ARCHIVE)


def fetch(name: str, *, progress: Progress | None = None) -> FetchedLog:
    """Download a log of the catalogue, unless it is already present, and verify it.

    The checksum comes from the catalogue if known, otherwise from the first download on this machine, which is recorded next to the logs.
    An interrupted download is resumed if the server confirms that the file is unchanged. `progress` is called with the bytes so far and in
    total. Raises PolicyError for an unknown name, LogError for a wrong checksum and network failures.
    """
    entry = catalogue_entry(name)
    checksum = entry.sha256 and f"sha256:{entry.sha256}"
    path, source = _retrieved(entry.address(archive_address()), log_folder() / entry.file, checksum, "catalogue", progress)
    return FetchedLog(entry, path, _digest(path), source)


@dataclass(frozen=True)
class DataFile:
    """A file of a data set; `size`, bytes, and `checksum`, such as `md5:...`, come from its publisher, if given."""

    name: str
    address: str
    size: int | None = None
    checksum: str | None = None


def files_of(about: About) -> tuple[list[DataFile], str]:
    """Return the files of a data set and its licence, from its current record at Zenodo (or at the mirror `WALLTIME_ZENODO`).

    Without a record they come from its mapping, which may list no files. Raises LogError if the record cannot be read.
    """
    if about.zenodo is None:
        return [DataFile(address.rsplit("/", 1)[1], address) for address in about.files], about.licence
    import requests

    address = f"{os.environ.get('WALLTIME_ZENODO', 'https://zenodo.org').rstrip('/')}/api/records/{about.zenodo}"
    try:
        answer = requests.get(address, timeout=TIMEOUT)
    except requests.exceptions.RequestException as error:
        raise LogError(f"{address}: cannot be reached; check the network") from error
    _Download.check(address, answer)
    try:
        record = answer.json()
        files = [
            DataFile(str(one["key"]), str(one["links"]["self"]), int(one["size"]), str(one["checksum"]) if "checksum" in one else None)
            for one in record["files"]
        ]
        licence = str((record.get("metadata", {}).get("license") or {}).get("id") or about.licence)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogError(f"{address}: the answer is not a record of Zenodo; see {about.page}") from error
    return files, licence


def fetch_file(data_set: str, file: DataFile, *, progress: Progress | None = None) -> tuple[Path, str]:
    """Download a file of a data set to a folder of that name, unless it is present; return its path, and what verified it.

    Like `fetch`. Raises LogError for a wrong checksum and network failures.
    """
    if not file.name or Path(file.name).name != file.name or file.name.startswith("."):
        raise LogError(f"{file.address}: {printable(file.name)} is not a valid file name; download it yourself", "wrong_file_name")
    return _retrieved(file.address, log_folder() / data_set / file.name, file.checksum, "data set's page", progress)


def _digest(path: Path, algorithm: str = "sha256") -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _agrees(path: Path, checksum: str | None) -> bool:
    """Return whether a file has a checksum such as `sha256:...`; True if there is none."""
    algorithm, _, digest = (checksum or "").rpartition(":")
    return checksum is None or _digest(path, algorithm or "sha256") == digest.lower()


def _retrieved(address: str, path: Path, checksum: str | None, source: str, progress: Progress | None) -> tuple[Path, str]:
    """Download a file, unless it is present; return its path, and the source of the checksum with which it was verified.

    `checksum`: such as `sha256:...`, from `source`; if None, the checksum of the first download is used, and recorded.
    """
    folder = path.parent
    if not checksum:
        recorded = _recorded(folder).get(path.name)
        checksum, source = (f"sha256:{recorded}", "earlier download") if recorded else (None, "first download")
    try:
        if not (path.exists() and _agrees(path, checksum)):
            download = _Download(folder / f"{path.name}.part", progress)
            download.run(address)
            if not _agrees(download.part, checksum):
                download.forget()
                what = f"the checksum differs from the {source} ({(checksum or '').rpartition(':')[2]})"
                raise LogError(f"{address}: {what}; nothing was kept, try again later or another mirror", "wrong_checksum")
            download.part.replace(path)
            download.forget()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror or error}); choose another folder with WALLTIME_LOGS") from error
    if not checksum:
        _record(path.name, _digest(path), folder)
    return path, source


def _recorded(folder: Path) -> dict[str, str]:
    try:
        record: Any = json.loads((folder / RECORD).read_bytes())
        if not isinstance(record, dict) or not all(isinstance(one, str) for one in record.values()):
            raise ValueError("it is not a table of names and checksums")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:  # it is the only copy of these checksums
        raise LogError(f"{folder / RECORD}: cannot be read ({error}); remove it, and the next downloads are recorded again") from error
    return dict(record)


def _record(name: str, checksum: str, folder: Path) -> None:
    record = _recorded(folder) | {name: checksum}
    with whole_file(folder / RECORD) as file:
        file.write(json.dumps(dict(sorted(record.items())), indent=2).encode() + b"\n")


class _Download:
    """A download that keeps its partial file when the connection breaks, and requests only the rest the next time.

    The tag of a partial file, the ETag or date by which the server identifies this version, is stored next to it. A partial file without a
    tag, or of another version, is discarded, so that two versions are never mixed.
    """

    def __init__(self, part: Path, progress: Progress | None):
        self.part = part
        self.tag = part.with_name(f"{part.name}.tag")
        self.progress = progress

    def run(self, url: str) -> None:
        """Download into the partial file."""
        import requests

        self.part.parent.mkdir(parents=True, exist_ok=True)
        try:
            total = self._download(url)
        except requests.exceptions.RequestException as error:
            have = self.part.stat().st_size if self.part.exists() else 0
            if isinstance(error, requests.exceptions.ChunkedEncodingError) or have:
                what = f"the connection was cut after {have:,} bytes; run the command again to get the rest"
                raise LogError(f"{url}: {what}", "broken_connection") from error
            if isinstance(error, requests.exceptions.Timeout):
                raise LogError(f"{url}: no answer in {TIMEOUT} s; try again later") from error
            raise LogError(f"{url}: cannot be reached; check the network", "unreachable_server") from error
        size = self.part.stat().st_size
        if total is not None and size != total:
            raise LogError(f"{url}: the connection was cut after {size:,} of {total:,} bytes; run the command again to get the rest")

    def _download(self, url: str) -> int | None:
        """Request the rest of the partial file, or the whole file; return the expected size of the file."""
        import requests

        have = self.part.stat().st_size if self.part.exists() else 0
        tag = self.tag.read_text(encoding="latin-1") if self.tag.exists() else ""
        tag = tag if tag.isascii() and tag.isprintable() else ""  # damaged
        resumed = [{"Range": f"bytes={have}-", "If-Range": tag}] if have and tag else []
        for range_of in (*resumed, {}):
            headers = {"Accept-Encoding": "identity", **range_of}
            with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
                if range_of and answer.status_code == 206 and _tag(answer) in ("", tag):
                    return self._receive(answer, have)
                if not (range_of and answer.status_code in (206, 416)):  # otherwise the file has changed, and the whole file is requested
                    self.check(url, answer)
                    self.forget()
                    self.tag.write_text(_tag(answer), encoding="latin-1")
                    return self._receive(answer, 0)
        return None

    def forget(self) -> None:
        """Remove the partial file."""
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
    def check(url: str, answer: Any) -> None:
        """Raise LogError if the server's answer is an error."""
        if answer.status_code == 404:
            raise LogError(f"{url}: the file does not exist (404); the archive may have a newer version, see its page", "missing_download")
        if answer.status_code >= 400:
            raise LogError(f"{url}: request rejected ({answer.status_code} {answer.reason}); try again later", "server_refusal")


def _tag(answer: Any) -> str:
    """Return the server's identifier of this version of the file: a strong ETag, else the date of its last change, else empty."""
    etag: str = answer.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified", "")
