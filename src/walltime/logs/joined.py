"""Folders of tables that belong together: one has a row for each job, others are joined to it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from walltime.errors import LogError
from walltime.lazy import LaterModule
from walltime.logs.catalogue import shipped
from walltime.logs.input import Digest, LogFile, Progress, chunks_of
from walltime.logs.mapping import TableMapping
from walltime.wording import printable

if TYPE_CHECKING:
    import polars as pl
else:
    pl = LaterModule("polars")


def joined_tables(folder: Path, mapping: TableMapping | None, progress: Progress | None) -> LogFile | None:
    """The tables of a folder that this mapping, or one that is shipped, joins, as one CSV file; None if they are not there.

    Raises LogError where they cannot be joined.
    """
    for one in shipped().values() if mapping is None else (mapping,):
        if one.table is not None and (tables := _tables(folder, one)):
            return LogFile(folder, read=partial(_joined, one, tables), progress=progress)
    return None


def _tables(folder: Path, mapping: TableMapping) -> dict[str, Path]:
    """The files of a folder by the pattern that names each; nothing if the table of the jobs is not there."""
    there = sorted(file for file in folder.rglob("*") if file.is_file())
    patterns = [str(mapping.table), *(join.file for join in mapping.joins)]
    matched = {pattern: file for pattern in patterns for file in there if fnmatch(file.name, pattern)}
    return matched if mapping.table in matched else {}


def _joined(mapping: TableMapping, tables: dict[str, Path], path: str, where: str, digest: Digest) -> Iterator[bytes]:
    """The table of the jobs with what others say of each job, as CSV."""
    main = _texts(tables[str(mapping.table)], digest)
    for join in mapping.joins:
        if join.file not in tables:
            continue
        other = _texts(tables[join.file], digest, [join.key, *join.sums, *join.most])
        missing = next((name for name in (join.key, *join.sums, *join.most) if name not in other.columns), None)
        if missing is not None or join.key not in main.columns:
            raise LogError(
                f"{printable(str(tables[join.file]))}: there is no column {missing or join.key!r} to join it by; name the file alone"
            )
        single = [_known(name).sum().alias(f"{join.name}.{name}") for name in join.sums]
        single += [_known(name).max().alias(f"{join.name}.{name}") for name in join.most]
        counts = [_known(name).count().alias(f"{join.name}.{name}.known") for name in join.sums]
        grouped = other.group_by(join.key).agg(*single, *counts)
        summed = [f"{join.name}.{name}" for name in join.sums]
        grouped = grouped.with_columns(pl.when(pl.col(f"{name}.known") > 0).then(pl.col(name)).alias(name) for name in summed)
        grouped = grouped.drop(f"{name}.known" for name in summed)
        main = main.join(grouped, on=join.key, how="left", maintain_order="left")
    whole = io.BytesIO()
    main.write_csv(whole)
    yield whole.getvalue()


def _known(name: str) -> pl.Expr:
    """The numbers of a column of texts, null where they are negative or none."""
    number = pl.col(name).cast(pl.Float64, strict=False)
    return pl.when(number >= 0).then(number).otherwise(None)


def _texts(file: Path, digest: Digest, columns: list[str] | None = None) -> pl.DataFrame:
    """The columns of a CSV file, or these of them, as texts."""
    content = b"".join(chunks_of(str(file), printable(str(file)), digest))
    try:
        table = pl.read_csv(io.BytesIO(content), infer_schema=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = next((line for line in str(error).splitlines() if line), "no reason given")
        raise LogError(f"{printable(str(file))}: cannot be read as CSV ({reason[:100]}); give another file") from error
    return table if columns is None else table.select(one for one in columns if one in table.columns)
