"""Cells, the single simulations of a campaign, with keys that identify their computation."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from walltime.campaign.dimensions import DIMENSIONS, WORKLOAD
from walltime.estimates import parse_estimates
from walltime.plugins.dependencies import dependencies, draws
from walltime.plugins.parts import named_packages
from walltime.policy import Dialect, named_files
from walltime.provenance import version
from walltime.simulation.specification import PREDICTION_OPTIONS, Scheduler, no_backfill_order, parse_scheduler
from walltime.syntax import code_hash, syntax_hash

USER_FILE_SETTINGS = ("mapping", "model", "policy", "order", "backfill_order", "estimates", "predictor")
"""Parameters with values that may name a user's file."""
RANDOM_SCALING = ("size", "thin", "users")
_COMPILED = tuple(f"compiled/{name}.py" for name in ("indices", "jit", "prediction_memory", "records"))
_PACKAGES = ("engine", "estimates", "logs", "metrics", "policy", "predictors", "schedule", "simulation", "workload")
RESULTS = ("campaign/work.py", *_COMPILED, *_PACKAGES)
"""Parts of the package on which results depend."""
MACHINE_PARTS = ("engine/kernel/nodes", "engine/kernel/pools", "machine")
"""Parts of the package on which only results for machines with several pools depend."""


@dataclass(frozen=True)
class Cell:
    """One simulation: a value for each parameter, and a seed, or None if nothing is random."""

    values: tuple[Any, ...]
    """values of `DIMENSIONS`, in their order"""
    seed: int | None
    trim: str
    dynamics: bool
    groups: tuple[str, ...]

    @classmethod
    def of(cls, settings: Mapping[str, Any], seed: int | None, trim: str, dynamics: bool, groups: tuple[str, ...]) -> Cell:
        """Return the cell with these settings and defaults for other parameters."""
        return cls(tuple(settings.get(d.name, d.default) for d in DIMENSIONS.values()), seed, trim, dynamics, groups)

    @property
    def settings(self) -> dict[str, Any]:
        """Return the value of each parameter."""
        return dict(zip(DIMENSIONS, self.values, strict=True))

    @property
    def is_random(self) -> bool:
        """Return whether the result depends on the seed."""
        estimates = self.settings["estimates"]
        own = named_files(estimates)
        random = any(draws(Path(file), "seed") for file in own) if own else _random_estimates(estimates)
        if self.workload_is_random or random or any(map(draws, self.python_files)):
            return True
        return not self.python_files and scheduler_of(self.settings).draws

    @property
    def python_files(self) -> list[Path]:
        """Return the Python files that the cell runs."""
        texts = [self.trim, *(self.settings[name] or "" for name in USER_FILE_SETTINGS)]
        return [Path(file) for text in texts for file in named_files(text) if file.endswith(".py")]

    @property
    def workload_is_random(self) -> bool:
        """Return whether the workload depends on the seed."""
        s = self.settings
        return s["model"] is not None or s["shake"] > 0 or (s["load"] is not None and s["scale_by"] in RANDOM_SCALING)

    @property
    def workload(self) -> tuple[Any, ...]:
        """Return the settings that determine the workload; cells with equal ones share it."""
        return (*self.values[: len(WORKLOAD)], self.seed if self.workload_is_random else None)

    def workload_files(self) -> tuple[str, ...]:
        """Return hashes of the Python files that read the log or generate the jobs, and of the files on which they depend."""
        texts = [self.settings[name] or "" for name in ("mapping", "model")]
        return tuple(one for text in texts for file in named_files(text) for one in _hashes(Path(file)))

    def sort_key(self) -> tuple[Any, ...]:
        """Return a sort key that puts cells with the same workload, then with the same policy, next to each other."""
        seed = -1 if self.seed is None else self.seed
        return (_sortable(self.workload), _sortable(self.values), seed)

    def key(self, sha256: str | None, schema: int, machine: str | None = None) -> str:
        """Return a hash of the cell's computation: the log's checksum, the settings, the seed, and the version of results and engine.

        `machine`: the text of the cell's machine file.
        """
        settings = self.settings
        settings["trace"] = sha256
        settings["machine"] = hashlib.sha256(machine.encode()).hexdigest() if machine is not None else None
        settings["jobs"] = settings["jobs"] if settings["model"] is not None else None
        packages = named_packages(",".join([self.trim, *(settings[name] or "" for name in USER_FILE_SETTINGS)]))
        settings |= {"packages": packages} if packages else {}
        settings["trim"] = self.trim
        for name in (*USER_FILE_SETTINGS, "trim"):
            text = settings[name] or ""
            if files := [Path(file) for file in named_files(text)]:
                for file in files:
                    text = text.replace(str(file), file.name)
                settings[name] = ([_hashes(file) for file in files], text)
        trim = settings.pop("trim")
        content = [settings, self.seed, trim, self.dynamics, self.groups, schema, version(), engine_version(machine is not None)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _hashes(file: Path) -> list[str]:
    """Return a hash of a user's file, and of each file on which it depends."""
    others = dependencies(file) if file.suffix == ".py" else []
    return [_hash(one, one.stat().st_mtime_ns, one.stat().st_size) for one in (file, *others)]


@functools.lru_cache(maxsize=1000)
def _hash(file: Path, _modified: int, _size: int) -> str:
    return syntax_hash([file], file.parent)


def _sortable(values: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple("" if value is None else f"{value:025.9f}" if isinstance(value, int | float) else str(value) for value in values)


@functools.lru_cache(maxsize=10_000)
def _random_estimates(text: str) -> bool:
    return parse_estimates(text).random


def scheduler_of(settings: Mapping[str, Any]) -> Scheduler:
    """Return the scheduler of a cell with these settings; raises PolicyError for an option that does not apply."""
    words = {word.replace("_", "-"): settings.get(word) for word in ("order", "backfill_order")}
    text = settings.get("policy") or "easy"
    if words["backfill-order"] and (fault := no_backfill_order([text])):
        raise fault
    if settings.get("predictor"):
        words |= {word: settings.get(word) for word in PREDICTION_OPTIONS}
    return parse_scheduler(text, words)


def dialect_of(settings: Mapping[str, Any]) -> Dialect:
    """Return the dialect of a cell with these settings."""
    return Dialect.of(settings["dialect"], None if settings["coincident"] == "batch" else settings["coincident"])


@functools.cache
def engine_version(machines: bool = False) -> str:
    """Return a hash (16 hexadecimal digits) of the code on which results depend, ignoring comments and docstrings.

    `machines`: whether to include the code for machines with several pools.
    """
    package = Path(__file__).parent.parent
    return code_hash(files_of_results(package, machines), package)[:16]


def files_of_results(package: Path, machines: bool = False) -> list[Path]:
    """Return the modules of the package in this folder that determine the row of a cell."""
    files, of_machines = _files(package, RESULTS), _files(package, MACHINE_PARTS)
    return sorted(files | of_machines if machines else files - of_machines)


def _files(package: Path, parts: Iterable[str]) -> set[Path]:
    return {file for part in parts for file in ([package / part] if part.endswith(".py") else (package / part).rglob("*.py"))}
