"""Read the summaries of jobs that jobstats stores in Slurm's AdminComment: JSON, compressed and in base64, after `JS1:`.

Source: https://github.com/PrincetonUniversity/jobstats, Generating Job Summaries.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from walltime.dataframes import pl
from walltime.logs.joblog import LIMIT
from walltime.workload import MISSING, Array
from walltime.workload.columns import IDLE_GPU

MEASURES = ("CPU", "used_mem_mb", "gpu_mem_mb", "gpu_use", "gpus_idle")
"""The measures of a job: processor time, s; memory and GPU memory, MB, summed over its nodes; mean use of its GPUs, percent; number
of idle GPUs.
"""
_PATTERN = r"JS1:([A-Za-z0-9+/=]+)"
_NOTHING = ("None", "Short")
"""Words in place of a summary: for a job without measurements, and for one that was too short."""
_LARGEST = 2**24
"""Maximum size of a decompressed summary, bytes."""
_GZIP = 31
"""The number by which zlib recognises gzip data."""
_UNKNOWN = (float(MISSING),) * len(MEASURES)


def summaries(texts: pl.Series) -> tuple[dict[str, Array], Array]:
    """Return the measures in comments, by name (`MEASURES`; float64, -1 if unknown), and which summaries cannot be read (bool)."""
    packed = texts.str.extract(_PATTERN).fill_null("")
    values, bad = np.full((len(texts), len(MEASURES)), float(MISSING)), np.zeros(len(texts), bool)
    for row in ((packed != "") & ~packed.is_in(_NOTHING)).arg_true().to_list():
        try:
            values[row] = _measures(_unpacked(packed[row]))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError, zlib.error):
            bad[row] = True
    return dict(zip(MEASURES, values.T, strict=True)), bad


def _unpacked(text: str) -> Any:
    stream = zlib.decompressobj(_GZIP)
    content = stream.decompress(base64.b64decode(text, validate=True), _LARGEST)
    if not stream.eof:
        raise ValueError("the packed data are cut, or too large")
    return json.loads(content)


def _measures(summary: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the measures of a summary; each is known only if all nodes have it."""
    nodes = list(summary["nodes"].values())
    if not nodes:
        return _UNKNOWN
    use = [value for node in nodes for value in node.get("gpu_utilization", {}).values()]
    found = (
        _sum([node.get("total_time") for node in nodes]),
        _sum([node.get("used_memory") for node in nodes]) / 1024**2,
        _sum([value for node in nodes for value in node.get("gpu_used_memory", {}).values()] or [None]) / 1024**2,
        _sum(use or [None]) / max(len(use), 1),
        math.nan if None in use or not use else float(sum(float(value) < IDLE_GPU for value in use)),
    )
    return tuple(float(MISSING) if math.isnan(value) else value for value in found)


def _sum(values: list[Any]) -> float:
    """Return the sum of the amounts; NaN if one is unknown."""
    if any(value is None for value in values):
        return math.nan
    amounts = [float(value) for value in values]
    if not all(0 <= amount < LIMIT for amount in amounts):
        raise ValueError("not an amount")
    return sum(amounts)
