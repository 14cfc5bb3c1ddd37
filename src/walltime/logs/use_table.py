"""Join the resource use of jobs from a table of another program (Prometheus, XDMoD) to a log, by job number."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from walltime.dataframes import pl
from walltime.errors import LogError
from walltime.logs.cells import blank
from walltime.logs.input import Digest, chunks_of, reading
from walltime.wording import counted, printable, shown
from walltime.workload import MISSING, Array, Workload
from walltime.workload.columns import IDLE_GPU

_FACTORS = {
    "cpu": {"seconds": 1.0, "s": 1.0, "sec": 1.0, "": 1.0, "minutes": 60.0, "hours": 3600.0, "h": 3600.0},
    "memory": {"bytes": 2.0**-20, "kb": 2.0**-10, "mb": 1.0, "gb": 1024.0, "kib": 2.0**-10, "mib": 1.0, "gib": 1024.0},
    "gpu": {"": 1.0, "percent": 1.0, "pct": 1.0, "ratio": 100.0, "fraction": 100.0},
    "energy": {"joules": 1.0, "j": 1.0, "wh": 3600.0, "kwh": 3.6e6},
}
"""Units with which titles end, and their factors to s, MB, percent and J."""
_TITLES = {
    "job": r"(?:slurm|local|raw)?_?job_?(?:id|number)?(?:_?raw)?",
    "cpu": r"(?:total_?)?(?:cpu|core)(?:_?(?:time|usage|total|used))?(?:_total)?_?(?P<unit>{})(?:_total)?",
    "memory": r"(?:cgroup_)?(?:max|peak|used)?_?(?:memory|mem|rss)(?:_?(?:max|peak|used|rss|usage))*_(?P<unit>{})",
    "gpu": r"(?:mean|avg|average)?_?gpus?_?(?:use|usage|util|utilization|utilisation)_?(?P<unit>{})",
    "energy": r"(?:total_)?energy(?:_(?:used|consumed|usage))?_(?P<unit>{})(?:_total)?",
}
"""Patterns for titles of columns, in lower case, with underscores between words."""
_WORDS = {
    "cpu": "processor time (cpu_seconds, cpu_hours)", "memory": "peak memory (max_memory_bytes, max_memory_mb, max_memory_gb)",
    "gpu": "GPU use (gpu_utilization in percent, gpu_utilization_ratio)", "energy": "energy (energy_joules, energy_kwh)",
}  # fmt: skip
_JOB = r"^([0-9]{1,15})(?:[_\[]([0-9]{1,9})\]?)?(?:\..*)?$"


@dataclass(frozen=True)
class Joined:
    """A workload with the use from a table, the number of its rows, and the number of jobs that got a value."""

    workload: Workload
    rows: int
    jobs: int
    unknown: int
    """rows whose jobs are not in the log"""
    repeated: int
    """rows whose job numbers several records of the log share"""

    def as_dict(self) -> dict[str, int]:
        """Return the counts."""
        return {name: getattr(self, name) for name in ("rows", "jobs", "unknown", "repeated")}

    @property
    def notes(self) -> list[str]:
        """Return sentences on the join."""
        of = counted(self.rows, "row")
        sentences = [f"The table of use has {of}, for {self.jobs:,} of {counted(len(self.workload), 'job')}."]
        if self.unknown:
            sentences.append(f"Not used: {counted(self.unknown, 'row')} whose job is not in the log.")
        if self.repeated:
            sentences.append(f"Not used: {counted(self.repeated, 'row')} whose number several records of the log share.")
        return sentences


def with_use(workload: Workload, path: str | Path) -> Joined:
    """Return the workload with the resource use in a CSV table, which replaces the log's values where it is known.

    The table has a column `job_id` (123, 123_4 for a task of an array, 123.server) and at least one of cpu_seconds, max_memory_bytes,
    gpu_utilization and energy_joules, or these with other units. Rows of the same job, such as of its nodes or GPUs, are added up; GPU use
    is averaged, and GPUs with a use below 1 % are counted. Empty cells are unknown. Raises LogError for a table without these columns,
    or a cell that is not a number of at least 0.
    """
    where = printable(str(path))
    with reading(where, "CSV"):
        table = pl.read_csv(io.BytesIO(b"".join(chunks_of(str(path), where, Digest()))), infer_schema=False).fill_null("")
    found = _columns(table.columns, where)
    parts = table[found.pop("job")[0]].str.strip_chars().str.extract_groups(_JOB).struct.unnest()
    rows = pl.DataFrame({"number": parts.to_series(0).cast(pl.Int64), "task": parts.to_series(1).cast(pl.Int64).fill_null(MISSING)})
    rows = rows.with_columns(**{name: _values(table[title], factor, where) for name, (title, factor) in found.items()})
    sums = [pl.when(pl.col(one).count() > 0).then(pl.col(one).sum()).alias(one) for one in found if one != "gpu"]
    of_gpus = [pl.col("gpu").mean(), pl.col("gpu").count().alias("listed"), (pl.col("gpu") < IDLE_GPU).sum().alias("idle")]
    use = rows.group_by("number", "task").agg(pl.len().alias("rows"), *sums, *(of_gpus if "gpu" in found else ()))
    places = _places(workload)
    single = places.filter(pl.col("count") == 1)
    joined = use.join(single, on=("number", "task"))
    repeated = use.join(places.filter(pl.col("count") > 1), on=("number", "task"))["rows"].sum()
    at, columns = joined["place"].to_numpy(), dict(workload.columns)

    def put(name: str, values: Array) -> None:
        now = np.array(columns.get(name, np.full(len(workload), MISSING)), np.float64)
        now[at] = np.where(np.isnan(values), now[at], values)
        columns[name] = now if name != "gpus_idle" else now.astype(np.int64)

    numbers = {name: joined[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in found}
    if "cpu" in found:
        put("cpu_time", numbers["cpu"] / workload.procs[at])
    for name, column in (("memory", "used_mem_mb"), ("gpu", "gpu_use"), ("energy", "energy")):
        if name in found:
            put(column, numbers[name])
    if "gpu" in found and "gpus" in columns:  # the number of idle GPUs is known only if each GPU has a row
        each = (joined["listed"] == pl.Series(columns["gpus"][at])).to_numpy()
        put("gpus_idle", np.where(each, joined["idle"].cast(pl.Float64).to_numpy(), np.nan))
    result = replace(workload, columns=columns, origin=workload.origin.after("use of resources from a table"))
    return Joined(result, len(rows), len(joined), len(rows) - int(joined["rows"].sum()) - int(repeated), int(repeated))


def _columns(titles: Sequence[str], where: str) -> dict[str, tuple[str, float]]:
    """Return the title of each known column, and the factor of its unit."""
    found: dict[str, tuple[str, float]] = {}
    for title in titles:
        plain = re.sub(r"\W+", "_", title.replace("%", " percent").strip().lower()).strip("_")
        for name, pattern in _TITLES.items():
            units = _FACTORS.get(name, {})
            match = re.fullmatch(pattern.format("|".join(units)), plain)
            if match is not None and name in found:
                raise LogError(
                    f"{where}: the columns {shown(found[name][0])} and {shown(title)} mean the same; remove one", "repeated_column"
                )
            if match is not None:
                found[name] = (title, units[match["unit"]] if units else 1.0)
    if "job" not in found or len(found) == 1:
        lacks = "the number of the job (job_id)" if "job" not in found else f"use; valid columns: {', '.join(_WORDS.values())}"
        raise LogError(f"{where} has no column for {lacks}; it has {', '.join(map(shown, titles))}", "missing_column")
    return found


def _values(texts: pl.Series, factor: float, where: str) -> pl.Series:
    """Return the numbers of a column, null where the cell is empty."""
    empty = texts.str.strip_chars().to_frame().to_series()
    numbers = empty.cast(pl.Float64, strict=False)
    odd = ~(pl.Series(blank(empty)) | ((numbers >= 0) & numbers.is_finite()).fill_null(False))
    if odd.any():
        row = odd.arg_max() or 0
        raise LogError(
            f"{where}, row {row + 1}, column {shown(texts.name)}: {shown(texts[row])} is not a number of at least 0; "
            "leave the cell empty if the value is unknown",
            "not_a_number",
        )
    return numbers.set(pl.Series(blank(empty)), None) * factor


def _places(w: Workload) -> pl.DataFrame:
    """Return the indices of jobs by number, and by array and task, with the number of jobs that share them."""
    place = np.arange(len(w))
    keys = [pl.DataFrame({"number": w.job_id, "task": np.full(len(w), MISSING), "place": place})]
    if "array_job" in w.columns and "array_task" in w.columns:
        keys.append(pl.DataFrame({"number": w.columns["array_job"], "task": w.columns["array_task"], "place": place}))
        keys[1] = keys[1].filter((pl.col("number") >= 0) & (pl.col("task") >= 0))
    whole = pl.concat(keys, how="vertical_relaxed")
    return whole.group_by("number", "task").agg(pl.col("place").first(), pl.len().alias("count"))
