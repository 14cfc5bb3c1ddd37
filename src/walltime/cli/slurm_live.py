"""`walltime slurm snapshot` and `walltime slurm start-times`: a cluster as it is now, and when the waiting jobs will start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from walltime.cli import options as o
from walltime.cli.slurm import app
from walltime.errors import PolicyError

if TYPE_CHECKING:
    from walltime.live import Snapshot


@app.command("snapshot")
def snapshot(
    *,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the snapshot here: .json.")] = None,
    source: Annotated[
        list[Path] | None,
        typer.Option("--from", metavar="PATH", help="Outputs of Slurm, a folder or a file, instead of running commands; repeat for more."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="TIME", help="When the files were printed: 2026-01-31T12:00:00 or seconds since 1970.")
    ] = None,
    time_zone: Annotated[
        str, typer.Option("--time-zone", metavar="ZONE", help="Zone of the local times in the files, such as Europe/Stockholm.")
    ] = "UTC",
    show_commands: Annotated[
        bool, typer.Option("--show-commands", help="Print the commands that would be run, all of which only read, and run nothing.")
    ] = False,
    anonymise: o.AnonymiseOption = None,
    as_json: o.JsonOption = False,
) -> None:
    """Take a snapshot of a cluster: its machine, and the jobs that run and wait, in one file.

    Runs squeue, scontrol show and sacctmgr show, which only read, and no shell; or reads their outputs with --from. The file names people,
    so that only its owner may read it; --anonymise puts numbers in their place, the same as in a log that was converted with this key.
    """
    from walltime.cli import common
    from walltime.live import snapshot_of, take_snapshot
    from walltime.live.commands import shown_commands
    from walltime.provenance import version

    if show_commands:
        if as_json:
            common.print_json({"commands": shown_commands(), "version": version()})
        else:
            typer.echo("\n".join(shown_commands()))
        return
    if out is not None:
        common.check_output(out, (".json",))
    if source is None and time is not None:
        raise PolicyError("--time says when files were printed; name them with --from, or leave it out")
    zone = _zone(time_zone)
    found = take_snapshot() if source is None else snapshot_of(source, None if time is None else _unix(time, zone), zone)
    if anonymise is not None:
        from walltime.logs.anonymous import read_key

        found = found.anonymised(read_key(anonymise))
    if out is not None:
        found.write(out)
    _tell(found, out, as_json)


def _tell(found: Snapshot, out: Path | None, as_json: bool) -> None:
    from walltime.cli import common
    from walltime.logs.output import printable
    from walltime.provenance import version

    if as_json:
        facts = {"time": found.time, "slurm": found.slurm, "machine": found.machine.name, "policy": found.machine.policy}
        common.print_json({**facts, "totals": found.totals(), "notes": list(found.notes), "out": out, "version": version()})
        return
    when = clock(found.time)
    common.print_text(f"{found.machine.name} at {when}: " + ", ".join(f"{name} {count:,}" for name, count in found.totals().items()))
    for note in found.notes:
        common.print_text(note, "* ")
    typer.echo("not written anywhere; name a file with --out" if out is None else f"written to {printable(out)}")


def clock(time: float) -> str:
    """A Unix time, in UTC."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _zone(name: str):  # type: ignore[no-untyped-def]
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PolicyError(f"unknown time zone {name!r}; write one such as Europe/Stockholm") from None


def _unix(text: str, zone: object) -> int:
    from datetime import datetime, tzinfo

    assert isinstance(zone, tzinfo)
    if text.isascii() and text.isdecimal() and len(text) < 13:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise PolicyError(f"{text!r} is no time; write one as 2026-01-31T12:00:00, or seconds since 1970") from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=zone)).timestamp())
