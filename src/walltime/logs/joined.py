"""Join the tables in a folder: one has a row for each job, and others are joined to it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs.catalogue import shipped
from walltime.logs.input import Digest, LogFile, Progress, chunks_of, reading, unpacked_name
from walltime.logs.mapping import TableMapping
from walltime.wording import printable


def joined_tables(folder: Path, mapping: TableMapping | None, progress: Progress | None) -> LogFile | None:
    """Return the tables of a folder, joined by this mapping or a shipped one, as one CSV file; None if it has no such tables.

    Raises LogError if they cannot be joined.
    """
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    for one in shipped().values() if mapping is None else (mapping,):
        patterns = [str(one.table), *(join.file for join in one.joins)]
        tables = {pattern: file for pattern in patterns for file in files if fnmatch(unpacked_name(file.name), pattern)}
        if one.table in tables:
            return LogFile(folder, read=partial(_joined, one, tables), progress=progress)
    return None


def _joined(mapping: TableMapping, tables: dict[str, Path], path: str, where: str, digest: Digest) -> Iterator[bytes]:
    """Yield the table of the jobs with the columns of the joined tables, as CSV; `tables`: the files by pattern."""
    main = _texts(tables[str(mapping.table)], digest)
    for join in mapping.joins:
        if join.file not in tables:
            continue
        other = _texts(tables[join.file], digest, [join.key, *join.sums, *join.most])
        missing = next((name for name in (join.key, *join.sums, *join.most) if name not in other.columns), None)
        if missing is not None or join.key not in main.columns:
            raise LogError(
                f"{printable(str(tables[join.file]))}: the join needs the column {missing or join.key!r}, which is missing; "
                "give the table of the jobs alone"
            )
        sums = [pl.when(_known(name).count() > 0).then(_known(name).sum()).alias(f"{join.name}.{name}") for name in join.sums]
        most = [_known(name).max().alias(f"{join.name}.{name}") for name in join.most]
        main = main.join(other.group_by(join.key).agg(*sums, *most), on=join.key, how="left", maintain_order="left")
    whole = io.BytesIO()
    main.write_csv(whole)
    yield whole.getvalue()


def _known(name: str) -> pl.Expr:
    """Return the numbers in a column of texts, null where they are negative or unknown."""
    number = pl.col(name).cast(pl.Float64, strict=False)
    return pl.when(number >= 0).then(number).otherwise(None)


def _texts(file: Path, digest: Digest, columns: list[str] | None = None) -> pl.DataFrame:
    content = b"".join(chunks_of(str(file), printable(str(file)), digest))
    with reading(printable(str(file)), "CSV"):
        table = pl.read_csv(io.BytesIO(content), infer_schema=False)
    return table if columns is None else table.select(one for one in columns if one in table.columns)
