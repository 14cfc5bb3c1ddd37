"""Stores of results: folders of Parquet files that any tool can read, with a manifest in plain text.

    manifest.toml       versions, and the checksums of the logs
    cells/*.parquet     one row per cell; a file holds the cells of one task
    groups/*.parquet    one row per cell and group of jobs, if the plan asks for groups
    failures/*.parquet  one row per cell that ended with an error, with the cause in one line
    schedules/*.parquet one file per cell, named after it, with one row per job, if the plan keeps schedules
    unkept/*.parquet    one row per cell whose result is not kept for the next run, with the cause in one line

Files are written completely and renamed into place, so every file is complete. The column `cell` is a hash of the
cell's computation; cells in the store are not run again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from walltime.campaign.cell import DIMENSIONS
from walltime.errors import LogError, OutputError
from walltime.files import whole_file, write_as_parquet
from walltime.metrics import DynamicsSummary, PredictionSummary, Summary
from walltime.policy import named_files
from walltime.provenance import version
from walltime.tables import Facts
from walltime.toml_file import to_toml
from walltime.wording import printable
from walltime.workload import Array

if TYPE_CHECKING:
    import polars as pl

SCHEMA = 4
"""Version of the columns; stores with another version are rejected."""
MEASURES = ("jobs", "mean_wait", "mean_response", "mean_bounded_slowdown", "median_wait", "p90_wait", "max_wait")
"""Metrics of each group of jobs."""
KEPT = ("job_id", "submit", "start", "end", "runtime", "kind", "reserved_start")
"""Columns of a kept schedule."""
_TYPES = {"str": "String", "int": "Int64", "float": "Float64", "bool": "Boolean"}


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.toml; `logs`: SHA-256 of each log, by name."""

    schema: int
    walltime: str
    name: str
    logs: Mapping[str, str]


class Store:
    """The folder with the results of a campaign; the module docstring describes its layout."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    @property
    def cells(self) -> Path:
        """Return the folder of the files with one row per cell."""
        return self.folder / "cells"

    @property
    def groups(self) -> Path:
        """Return the folder of the files with one row per cell and group."""
        return self.folder / "groups"

    @property
    def failures(self) -> Path:
        """Return the folder of the files with one row per failed cell."""
        return self.folder / "failures"

    @property
    def schedules(self) -> Path:
        """Return the folder of the kept schedules."""
        return self.folder / "schedules"

    @property
    def unkept(self) -> Path:
        """Return the folder of the files with one row per cell that every run runs again."""
        return self.folder / "unkept"

    def open(self, name: str, logs: Mapping[str, str]) -> None:
        """Create the folder, or check that it has the current schema and these logs (SHA-256 by name).

        Raises OutputError if it cannot be created or has another schema, LogError for a changed log.
        """
        earlier: dict[str, str] = self.manifest().get("logs", {})
        for log, sha256 in logs.items():
            if earlier.get(log, sha256) != sha256:
                raise LogError(
                    f"{printable(log)}: has changed since {printable(self.folder)} was made (checksum {earlier[log][:12]}... then, "
                    f"{sha256[:12]}... now); restore the old log, or use another store"
                )
        try:
            for folder in (self.cells, self.groups, self.failures, self.unkept, self.schedules):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot(self.folder, "made", error) from error
        manifest = Manifest(SCHEMA, version(), name, dict(sorted({**earlier, **logs}.items())))
        text = f"# Source of the Parquet files in this folder; written by walltime.\n{to_toml(manifest, {})}"
        file = self.folder / "manifest.toml"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            with _writing(file) as sink:
                sink.write(text.encode())

    def manifest(self) -> dict[str, Any]:
        """Return the content of the manifest, empty if there is none; raises OutputError for another schema or an invalid file."""
        file = self.folder / "manifest.toml"
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise OutputError(f"{printable(file)}: cannot be read ({error}); use another store, or restore the file") from error
        schema = content.get("schema")
        if not isinstance(schema, int) or not isinstance(content.get("logs", {}), dict):
            raise OutputError(f"{printable(file)}: not a manifest of a store (a number `schema` and a table `logs`); use another store")
        if schema != SCHEMA:
            raise OutputError(
                f"{printable(self.folder)}: was made by walltime {content.get('walltime', 'unknown')} with schema {schema}, but this "
                f"version needs schema {SCHEMA}; use that version, or another store"
            )
        return content

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the store against other campaigns and remove partial files. Raises OutputError if it is locked.

        The lock is released when the process ends in any way.
        """
        try:
            file = (self.folder / ".lock").open("w")
        except OSError as error:
            raise _cannot(self.folder, "written", error) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise OutputError(f"{printable(self.folder)}: another campaign is writing to it; wait, or use another store") from error
            for folder in (self.folder, self.cells, self.groups, self.failures, self.unkept, self.schedules):
                for part in folder.glob(".walltime-*.part"):
                    part.unlink(missing_ok=True)
            yield

    def done(self) -> set[str]:
        """Return the keys of the cells in the store. Raises OutputError for an unreadable file."""
        return {key for file in sorted(self.cells.glob("*.parquet")) for key in _read(file, {"cell": None})["cell"]}

    def kept(self) -> set[str]:
        """Return the keys of the cells with a kept schedule."""
        return {file.stem for file in self.schedules.glob("*.parquet")}

    def keep(self, key: str, columns: Mapping[str, Array]) -> None:
        """Write the schedule of a cell; `columns`: as in `Schedule.columns`. Raises OutputError."""
        import polars as pl

        self._write(self.schedules / f"{key}.parquet", pl.DataFrame({name: columns[name] for name in KEPT}))

    def schedule(self, key: str) -> dict[str, Array]:
        """Return the columns `KEPT` of a kept schedule. Raises OutputError for an unreadable file."""
        table = _read(self.schedules / f"{key}.parquet", dict.fromkeys(KEPT))
        return {name: table[name].to_numpy() for name in KEPT}

    def causes(self, folder: Path | None = None) -> dict[str, str]:
        """Return the cause in each row of `failures` or `unkept`, by the key of the cell; raises OutputError for an unreadable file."""
        tables = [_read(file, failure_schema()) for file in sorted((folder or self.failures).glob("*.parquet"))]
        return {key: cause for table in tables for key, cause in table.iter_rows()}

    def forget(self, keys: Collection[str]) -> None:
        """Delete the rows of these cells. Raises OutputError."""
        import polars as pl

        parts = {self.failures: failure_schema(), self.cells: cell_schema(), self.groups: group_schema(), self.unkept: failure_schema()}
        for file, schema in (
            [(file, schema) for folder, schema in parts.items() for file in sorted(folder.glob("*.parquet"))] if keys else ()
        ):
            table = _read(file, schema)
            kept = table.filter(~pl.col("cell").is_in(list(keys)))
            try:
                if not len(kept):
                    file.unlink(missing_ok=True)
                elif len(kept) < len(table):
                    self._write(file, kept)
            except OSError as error:
                raise _cannot(file.parent, "written", error) from error

    def write(
        self,
        cells: Sequence[Mapping[str, Any]],
        groups: Sequence[Mapping[str, Any]],
        failures: Sequence[Mapping[str, Any]] = (),
        unkept: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Write the rows of one task, the cells last, because stored cells count as done; raises OutputError."""
        import polars as pl

        name = hashlib.sha256("".join(sorted(row["cell"] for row in [*cells, *failures])).encode()).hexdigest()[:24]
        causes = ((self.failures, failures, failure_schema()), (self.unkept, unkept, failure_schema()))
        tables = (*causes, (self.groups, groups, group_schema()), (self.cells, cells, cell_schema()))
        for folder, rows, schema in tables:
            if rows:
                self._write(folder / f"{name}.parquet", pl.DataFrame(rows, schema=schema))

    @staticmethod
    def _write(file: Path, table: pl.DataFrame) -> None:
        with _writing(file) as sink:
            write_as_parquet(table, sink, compression="zstd", statistics=True)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks."""
        cells = self.table()
        labels = cells["policy"].unique().drop_nulls().sort().to_list()
        names = [functools.reduce(lambda text, file: text.replace(file, Path(file).name), named_files(label), label) for label in labels]
        policies = ", ".join((names if len(set(names)) == len(names) else labels)[:8])
        rows = [("cells", f"{len(cells):,}"), ("policies", policies or "none"), ("rows of groups", f"{len(self.group_table()):,}")]
        return Facts(f"campaign {self.folder.name}", rows)._repr_html_()

    def table(self, keys: Iterable[str] | None = None) -> pl.DataFrame:
        """Return one row per cell, sorted by key; `keys`: only these cells."""
        return self._table(self.cells, cell_schema(), ["cell"], keys)

    def group_table(self, keys: Iterable[str] | None = None) -> pl.DataFrame:
        """Return one row per cell and group, sorted; `keys`: only these cells."""
        return self._table(self.groups, group_schema(), ["cell", "by", "group"], keys)

    @staticmethod
    def _table(folder: Path, schema: Mapping[str, Any], sort: list[str], keys: Iterable[str] | None) -> pl.DataFrame:
        import polars as pl

        parts = [_read(file, schema) for file in sorted(folder.glob("*.parquet"))]
        table = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
        if keys is not None:
            table = table.filter(pl.col("cell").is_in(list(keys)))
        rows = table.unique()
        if twice := rows.filter(rows.select(sort).is_duplicated())["cell"].to_list():
            raise OutputError(
                f"{printable(folder.parent)}: the cell {twice[0]} has two different results, so it depends on more than its settings, seed "
                "and files; let random code take the generator of the run, and delete the store",
                "different_results",
            )
        return rows.sort(sort)


@contextlib.contextmanager
def _writing(file: Path) -> Iterator[BinaryIO]:
    """Open a file with `whole_file`; errors state that the store cannot be written."""
    try:
        with whole_file(file) as sink:
            yield sink
    except OSError as error:
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        raise _cannot(file.parent, "written", cause) from error


def _cannot(folder: Path, what: str, error: OSError) -> OutputError:
    """Return the error for a folder that cannot be created or written."""
    reason = (error.strerror or str(error)).lower()
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or "no space left" in reason or "quota" in reason:
        return OutputError(f"{printable(folder)}: the disk is full ({reason}); free space and run the plan again; results are kept")
    return OutputError(f"{printable(folder)}: cannot be {what} ({reason}); use another store")


def _read(file: Path, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return these columns of a file. Raises OutputError for a damaged file."""
    import polars as pl

    try:
        return pl.read_parquet(file, columns=list(columns), glob=False).select(list(columns))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = (str(error).splitlines() or ["damaged"])[0]
        raise OutputError(f"{printable(file)}: cannot be read ({reason}); delete it and run again") from error


def cell_schema() -> dict[str, Any]:
    """Return the columns of the table of cells: key, settings, log, averages, dynamics, predictions, and version."""
    import polars as pl

    columns: dict[str, Any] = {"cell": pl.String}
    columns |= {d.name: getattr(pl, _TYPES[d.kind.__name__]) for d in DIMENSIONS.values() if d.name != "jobs"}
    columns |= {"seed": pl.Int64, "trim": pl.String, "sha256": pl.String}
    columns |= {name: getattr(pl, _TYPES[str(field.type)]) for name, field in Summary.__dataclass_fields__.items()}
    for record in (DynamicsSummary, PredictionSummary):
        columns |= {name: getattr(pl, _TYPES[str(field.type)]) for name, field in record.__dataclass_fields__.items() if name != "jobs"}
    columns |= {"left_out_jobs": pl.Float64, "left_out_work": pl.Float64, "left_out_rules": pl.String}
    return columns | {"walltime": pl.String, "engine": pl.String, "schema": pl.Int64}


def failure_schema() -> dict[str, Any]:
    """Return the columns of the table of failures."""
    import polars as pl

    return {"cell": pl.String, "cause": pl.String}


def group_schema() -> dict[str, Any]:
    """Return the columns of the table of groups."""
    import polars as pl

    return dict.fromkeys(("cell", "by", "group"), pl.String) | {name: pl.Int64 if name == "jobs" else pl.Float64 for name in MEASURES}
