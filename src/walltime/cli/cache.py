"""`walltime cache`: the compiled engine on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.output import Output

if TYPE_CHECKING:
    from walltime.tables import Table


@manual("guides/install", ("Show the compiled parts and their sizes.", "cache"), ("Remove them all.", "cache --clear"))
def cache(
    *,
    clear: Annotated[bool, o.option("Remove all compiled code; it is compiled again when needed.")] = False,
    output: Output,
) -> None:
    """Show or remove the compiled code of the engine on this machine; code of old versions is removed after a month."""
    from walltime.compiled import folder as kept

    roots = [root for root in (kept.cache_root(), kept.temporary_root()) if root.is_dir()]
    current = {root / kept.folder_name() for root in roots}
    records = [_record(folder, folder in current) for root in roots for folder in kept.kernel_folders(root)]
    if clear:
        for record in records:
            record["removed"] = kept.remove(record["folder"])
        for root in roots:
            kept.forget_sources(root)
    output.show({"root": kept.cache_root(), "folders": records}, _blocks(records, roots, clear))
    if clear and not all(record["removed"] for record in records):
        raise typer.Exit(1)


def _blocks(records: list[dict[str, Any]], roots: list[Path], clear: bool) -> Iterator[Table | str]:
    from walltime.compiled import folder as kept
    from walltime.tables import Table

    if not records:
        yield f"nothing is compiled yet; compiled code will be kept in {kept.cache_root()}"
    elif clear:
        for record in records:
            done = "removed" if record["removed"] else "cannot be removed"
            yield f"{record['folder']}: {done} ({record['functions']:,} functions, {_megabytes(record)})"
    else:
        rows = [_row(record, roots[0]) for record in records]
        yield Table(["folder", "version", "functions", "parts", "size", "last use"], rows, f"compiled engine, in {roots[0]}", texts=-1)


def _record(folder: Path, current: bool) -> dict[str, Any]:
    from walltime.compiled import folder as kept
    from walltime.compiled.cache import functions_kept
    from walltime.engine.interface.load import entries_in

    used = datetime.fromtimestamp(kept.last_use(folder), UTC)
    return {
        "folder": folder,
        "current": current,
        "entries": entries_in(folder),
        "functions": functions_kept(folder),
        "bytes": kept.size(folder),
        "used": used.isoformat(timespec="seconds"),
    }


def _row(record: dict[str, Any], root: Path) -> list[str]:
    folder: Path = record["folder"]
    version = "this one" if record["current"] else "another"
    parts = ", ".join(record["entries"]) or "-"
    used = datetime.fromisoformat(record["used"]).astimezone().date()
    return [
        folder.name if folder.parent == root else str(folder),
        version,
        f"{record['functions']:,}",
        parts,
        _megabytes(record),
        used.isoformat(),
    ]


def _megabytes(record: dict[str, Any]) -> str:
    return f"{record['bytes'] / 1e6:.1f} MB"
