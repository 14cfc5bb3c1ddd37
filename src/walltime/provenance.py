"""Record the provenance of a result: everything needed to reproduce it, and nothing that differs between identical runs."""

import hashlib
import inspect
import math
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import metadata
from pathlib import PurePath
from typing import Any

import numpy as np

from walltime.workload import Workload
from walltime.workload.drops import left_out

UNKNOWN = "unknown"


@cache
def version(package: str = "walltime") -> str:
    """Return the installed version of a package, by default this one; "unknown" if it is not installed.

    >>> version("no such package")
    'unknown'
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return UNKNOWN


def provenance(workload: Workload, **settings: Any) -> dict[str, Any]:
    """Return the software, log and settings of a result as JSON-compatible values in a fixed order.

    `settings` are the caller's choices, such as policies, seed, trim and command line. They are stored under "settings" in the order
    given, without those that are None; a policy or another dataclass is replaced by its fields, a function by its source.
    Neither the time nor the host name is recorded, so that identical runs give identical records.

    >>> jobs = Workload.from_arrays(submit=[0, 5], runtime=[10, 10], procs=[4, 2], machine_procs=4)
    >>> record = provenance(jobs, seed=1, trim="none")
    >>> record["jobs"], record["settings"]
    (2, {'seed': 1, 'trim': 'none'})
    """
    origin = workload.origin
    return {
        "version": version(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
        "log": origin.name,
        "sha256": origin.sha256,
        "records": origin.records,
        "jobs": len(workload),
        "jobs_sha256": jobs_sha256(workload),
        "procs": workload.machine_procs,
        "dropped": _counts(origin.dropped),
        "left_out": plain(left_out(origin.drops)),
        "changed": _counts(origin.changed),
        "steps": list(origin.steps),
        "feedback": workload.feedback,
        "noticed": _counts(origin.noticed),
        "settings": {name: plain(value) for name, value in settings.items() if value is not None},
    }


def jobs_sha256(workload: Workload) -> str:
    """Return a checksum of the simulated input, which does not depend on its file: jobs, scheduler's estimates, and machine size.

    >>> jobs = Workload.from_arrays(submit=[0], runtime=[10], procs=[4], machine_procs=4)
    >>> jobs_sha256(jobs) == jobs_sha256(jobs.with_machine(8))
    False
    """
    digest = hashlib.sha256(f"{len(workload)} {workload.machine_procs}\n".encode())
    for name in ("job_id", "submit", "runtime", "requested", "procs", "planned"):
        digest.update(np.ascontiguousarray(getattr(workload, name), "<i8").tobytes())
    return digest.hexdigest()


def plain(value: Any) -> Any:
    """Convert a value to JSON types; numbers that are not finite become None.

    >>> plain({"f": np.float64("nan"), "seeds": (1, np.int64(2))})
    {'f': None, 'seeds': [1, 2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=str)
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__qualname__), "source": _source(value)}
    return str(value)


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {str(rule): int(count) for rule, count in counts.items()}


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return UNKNOWN
