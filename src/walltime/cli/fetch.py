"""`walltime fetch`: logs of the Parallel Workloads Archive."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from walltime.cli import options as o


def fetch(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A log of the catalogue; without one, list the catalogue.")] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Download and check a log of the Parallel Workloads Archive; its name can then be used as a TRACE."""
    from walltime.cli import common
    from walltime.logs import read_log
    from walltime.logs.catalogue import ACKNOWLEDGE
    from walltime.logs.fetch import fetch as download

    if name is None:
        _list(as_json)
        return
    fetched = download(name, progress=_progress if sys.stderr.isatty() else None)
    thanks = read_log(fetched.path, skip_bad_lines=True).header.get("Acknowledge", ())
    if as_json:
        common.print_json(
            {
                "name": fetched.entry.name,
                "path": str(fetched.path),
                "sha256": fetched.sha256,
                "verified": fetched.verified,
                "procs": fetched.entry.procs,
                "acknowledge": list(thanks),
            }
        )
        return
    checked = "recorded; none was known to check it against" if fetched.verified == "first download" else f"that of the {fetched.verified}"
    typer.echo(f"{fetched.entry.name}: {fetched.path}")
    typer.echo(f"sha256 {fetched.sha256} ({checked})")
    typer.echo(ACKNOWLEDGE)
    if thanks:
        typer.echo(f"This log's header asks to acknowledge: {'; '.join(' '.join(line.split()) for line in thanks)}")


def _progress(have: int, total: int | None) -> None:
    of = f" of {total / 1e6:.1f}" if total else ""
    typer.echo(f"\r{have / 1e6:.1f}{of} MB", nl=have == total, err=True)


def _list(as_json: bool) -> None:
    from walltime.cli import common
    from walltime.logs.catalogue import CATALOGUE, log_folder
    from walltime.logs.fetch import archive_address

    here = {entry.name: (log_folder() / entry.file).is_file() for entry in CATALOGUE}
    if as_json:
        rows = [
            {
                "name": e.name,
                "file": e.file,
                "procs": e.procs,
                "address": e.address(archive_address()),
                "used": e.used,
                "here": here[e.name],
            }
            for e in CATALOGUE
        ]
        common.print_json({"folder": str(log_folder()), "logs": rows})
        return
    common.print_text_table(
        "logs of the Parallel Workloads Archive",
        ["name", "file", "processors", "used by", "here"],
        [[e.name, e.file, f"{e.procs:,}", e.used, "yes" if here[e.name] else ""] for e in CATALOGUE],
    )
