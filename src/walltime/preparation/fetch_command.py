"""`walltime fetch`: logs of the Parallel Workloads Archive, and files of other data sets."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o
from walltime.cli.completion import completion_of
from walltime.cli.help import manual
from walltime.cli.output import Output, caveats
from walltime.errors import PolicyError
from walltime.wording import printable

if TYPE_CHECKING:
    from walltime.logs.mapping import About


@manual(
    "guides/get-logs",
    ("List the logs and data sets that can be downloaded.", "fetch"),
    ("Download a log; all commands then accept its name.", "fetch KTH-SP2"),
)
def fetch(
    name: Annotated[
        str | None, o.argument("The log or data set to download; without it, list all.", "NAME", autocompletion=completion_of("fetch"))
    ] = None,
    files: Annotated[
        list[str] | None,
        o.argument("The files of a data set to download; * matches any text. Without this argument, list the files.", "FILE"),
    ] = None,
    *,
    verbose: o.VerboseOption = False,
    output: Output,
) -> None:
    """Download a log of the Parallel Workloads Archive, or files of another data set, and check them.

    All commands then accept the name of the log in place of a file name.
    """
    from walltime.logs import read_log
    from walltime.logs.catalogue import ACKNOWLEDGE
    from walltime.logs.fetch import fetch as download

    if name is None:
        _list(output, verbose)
        return
    if name in (known := _data_sets()):
        _data_set(name, known[name], files or [], output)
        return
    if files:
        raise PolicyError(f"{name} is a single file; only data sets accept names of files: {', '.join(known)}")
    fetched = download(name, progress=_progress if sys.stderr.isatty() else None)
    thanks = read_log(fetched.path, skip_bad_lines=True).header.get("Acknowledge", ())
    names = ("name", "path", "sha256", "verified", "procs")
    record = {name: getattr(fetched.entry if name in ("name", "procs") else fetched, name) for name in names} | {
        "acknowledge": list(thanks)
    }
    checked = (
        "computed now; the archive publishes none"
        if fetched.verified == "first download"
        else f"equal to the checksum of the {fetched.verified}"
    )
    lines = [f"{fetched.entry.name}: {fetched.path}", f"SHA-256: {fetched.sha256} ({checked})", ACKNOWLEDGE]
    if thanks:
        lines.append(f"Acknowledge, according to the log's header: {'; '.join(' '.join(line.split()) for line in thanks)}")
    output.show(record, lines)


def _data_set(name: str, about: About, wanted: Sequence[str], output: Output) -> None:
    """List the files of a data set, or download the named ones."""
    from walltime.errors import LogError
    from walltime.logs.catalogue import log_folder
    from walltime.logs.fetch import fetch_file, files_of
    from walltime.tables import Table

    files, licence = files_of(about)
    if not files:
        raise LogError(f"download {about.title} by hand from {about.page}; its files are then recognised, or read with --mapping {name}")
    unknown = [pattern for pattern in wanted if not any(fnmatch(file.name, pattern) for file in files)]
    if unknown:
        raise LogError(f"{name} has no file {printable(unknown[0])}; it has {', '.join(printable(file.name) for file in files[:20])}")
    folder = log_folder() / name
    terms = f"Licence: {printable(licence) or 'not stated'}; source: {about.page}"
    record = {"name": name, "page": about.page, "licence": licence, "folder": folder}
    if not wanted:
        here = {file.name: (folder / file.name).is_file() for file in files}
        rows = [
            [printable(one.name), "not stated" if one.size is None else f"{one.size / 1e6:,.1f}", "yes" if here[one.name] else "no"]
            for one in files
        ]
        how = f"To download: walltime fetch {name} FILE, or '*' for all files."
        output.show(
            record | {"files": [asdict(one) | {"here": here[one.name]} for one in files]},
            [Table(["file", "MB", "on disk?"], rows, about.title, texts=1), terms, how],
        )
        return
    got = []
    for file in files:
        if any(fnmatch(file.name, pattern) for pattern in wanted):
            path, verified = fetch_file(name, file, progress=_progress if sys.stderr.isatty() else None)
            got.append({"file": file.name, "path": path, "verified": verified})
    output.show(record | {"files": got}, [*(f"{one['path']} (checked against the {one['verified']})" for one in got), terms])


def _progress(have: int, total: int | None) -> None:
    of = f" of {total / 1e6:.1f}" if total else ""
    typer.echo(f"\r{have / 1e6:.1f}{of} MB", nl=have == total, err=True)


def _data_sets() -> dict[str, About]:
    from walltime.logs.catalogue import shipped

    return {name: mapping.about for name, mapping in shipped().items() if mapping.about is not None}


def complete_name(incomplete: str) -> list[str]:
    """Return the names of logs and data sets that begin with `incomplete`."""
    from walltime.logs.catalogue import CATALOGUE

    names = [*(one.name for one in CATALOGUE), *_data_sets()]
    return [name for name in names if name.startswith(incomplete)]


def _list(output: Output, verbose: bool) -> None:
    """Print the logs and the data sets; `verbose`: with the papers that use them, sizes, licences and addresses."""
    from walltime.logs.catalogue import CATALOGUE, log_folder
    from walltime.logs.fetch import archive_address
    from walltime.tables import Facts, Table

    here = {entry.name: (log_folder() / entry.file).is_file() for entry in CATALOGUE}
    logs = [
        {**{name: getattr(e, name) for name in ("name", "file", "procs")}, "address": e.address(archive_address()), "used": e.used}
        for e in CATALOGUE
    ]
    rows = [[e.name, f"{e.procs:,}", e.file, "yes" if here[e.name] else "no", e.used if verbose else ""] for e in CATALOGUE]
    table = Table(["name", "processors", "file", "on disk?", "used by"], rows, "Logs of the Parallel Workloads Archive", texts=-1)
    sets = [
        {"name": name, **{key: getattr(one, key) for key in ("title", "page", "size", "licence")}, "fetched": bool(one.zenodo or one.files)}
        for name, one in _data_sets().items()
    ]
    facts = []
    for one in sets:
        terms = f"; size {one['size'] or 'not stated'}; licence {one['licence'] or 'not stated'}; {one['page']}"
        facts.append((f"{one['name']}{' *' if one['fetched'] else ''}", one["title"] + (terms if verbose else "")))
    more = [] if verbose else ["For papers, sizes, licences and addresses, add --verbose."]
    about = Facts("Data sets", facts)
    notes = caveats(
        [
            "walltime fetch NAME downloads a log, or lists the files of a data set marked with a star; download other data sets by hand.",
            *more,
        ]
    )
    record = {"folder": log_folder(), "logs": [log | {"here": here[log["name"]]} for log in logs], "data_sets": sets}
    output.show(record, [table, about, *notes])
