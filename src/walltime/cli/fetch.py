"""`walltime fetch`: logs of the Parallel Workloads Archive."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli.output import Output

if TYPE_CHECKING:
    from walltime.logs.mapping import About

__all__ = ["PANEL", "fetch"]

PANEL = "Logs"


def fetch(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A log of the catalogue; without one, list the catalogue.")] = None,
    *,
    output: Output,
) -> None:
    """Download and check a log of the Parallel Workloads Archive; its name can then be used as a TRACE."""
    from walltime.errors import LogError
    from walltime.logs import read_log
    from walltime.logs.catalogue import ACKNOWLEDGE
    from walltime.logs.fetch import fetch as download

    if name is None:
        _list(output)
        return
    if name in (known := _data_sets()):
        about = known[name]
        raise LogError(
            f"{about.title} is a data set that one downloads oneself: {about.page}; its files are recognised, or --mapping {name}"
        )
    fetched = download(name, progress=_progress if sys.stderr.isatty() else None)
    thanks = read_log(fetched.path, skip_bad_lines=True).header.get("Acknowledge", ())
    names = ("name", "path", "sha256", "verified", "procs")
    record = {name: getattr(fetched.entry if name in ("name", "procs") else fetched, name) for name in names} | {
        "acknowledge": list(thanks)
    }
    checked = "recorded; none was known to check it against" if fetched.verified == "first download" else f"that of the {fetched.verified}"
    lines = [f"{fetched.entry.name}: {fetched.path}", f"sha256 {fetched.sha256} ({checked})", ACKNOWLEDGE]
    if thanks:
        lines.append(f"This log's header asks to acknowledge: {'; '.join(' '.join(line.split()) for line in thanks)}")
    output.show(record, lines)


def _progress(have: int, total: int | None) -> None:
    of = f" of {total / 1e6:.1f}" if total else ""
    typer.echo(f"\r{have / 1e6:.1f}{of} MB", nl=have == total, err=True)


def _data_sets() -> dict[str, About]:
    from walltime.logs.catalogue import shipped

    return {name: mapping.about for name, mapping in shipped().items() if mapping.about is not None}


def _list(output: Output) -> None:
    from walltime.logs.catalogue import CATALOGUE, log_folder
    from walltime.logs.fetch import archive_address
    from walltime.tables import Table

    here = {entry.name: (log_folder() / entry.file).is_file() for entry in CATALOGUE}
    logs = [
        {**{name: getattr(e, name) for name in ("name", "file", "procs")}, "address": e.address(archive_address()), "used": e.used}
        for e in CATALOGUE
    ]
    rows = [[e.name, e.file, f"{e.procs:,}", e.used, "yes" if here[e.name] else ""] for e in CATALOGUE]
    table = Table(["name", "file", "processors", "used by", "here"], rows, "logs of the Parallel Workloads Archive", texts=-1)
    sets = [
        {"name": name, **{key: getattr(one, key) for key in ("title", "page", "size", "licence")}} for name, one in _data_sets().items()
    ]
    said = ["data sets to download oneself, with size and licence where the source says them:"]
    for one in sets:
        said += [f"  {one['name']}: {'; '.join(filter(None, (one['title'], one['size'], one['licence'])))}", f"    {one['page']}"]
    output.show({"folder": log_folder(), "logs": [log | {"here": here[log["name"]]} for log in logs], "data_sets": sets}, [table, *said])
