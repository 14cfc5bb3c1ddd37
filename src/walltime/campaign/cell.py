"""A cell: one simulation of a campaign, and the key that says what it computes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from walltime.campaign.dimensions import DIMENSIONS, WORKLOAD
from walltime.estimates import parse_estimates
from walltime.provenance import version

RANDOM_SCALING = ("size", "thin", "users")


@dataclass(frozen=True)
class Cell:
    """One simulation: a value for each word, and a seed, None where nothing is random."""

    values: tuple[Any, ...]
    """one for each of `DIMENSIONS`, in their order"""
    seed: int | None
    trim: str
    dynamics: bool
    groups: tuple[str, ...]

    @classmethod
    def of(cls, settings: Mapping[str, Any], seed: int | None, trim: str, dynamics: bool, groups: tuple[str, ...]) -> Cell:
        """The cell with these settings, the other words at their defaults."""
        return cls(tuple(settings.get(d.name, d.default) for d in DIMENSIONS.values()), seed, trim, dynamics, groups)

    @property
    def settings(self) -> dict[str, Any]:
        """Value of each word."""
        return dict(zip(DIMENSIONS, self.values, strict=True))

    @property
    def is_random(self) -> bool:
        """Whether another seed would give another result."""
        return self.workload_is_random or _random_estimates(self.settings["estimates"])

    @property
    def workload_is_random(self) -> bool:
        """Whether another seed would give another workload."""
        s = self.settings
        return s["model"] is not None or s["shake"] > 0 or (s["load"] is not None and s["scale_by"] in RANDOM_SCALING)

    @property
    def workload(self) -> tuple[Any, ...]:
        """What makes the workload: two cells that agree in this share it."""
        return (*self.values[: len(WORKLOAD)], self.seed if self.workload_is_random else None)

    def place(self) -> tuple[Any, ...]:
        """Sorts cells so that neighbours share a workload, and then a policy."""
        seed = -1 if self.seed is None else self.seed
        return (_sortable(self.workload), _sortable(self.values), seed)

    def key(self, sha256: str | None, schema: int) -> str:
        """Hash of what the cell computes: the log's checksum, the settings, the seed, and the version of results and engine."""
        settings = self.settings
        settings["trace"] = sha256
        settings["jobs"] = settings["jobs"] if settings["model"] is not None else None
        for name in ("order", "backfill_order"):
            if ".py:" in (settings[name] or ""):
                settings[name] = (_checksum_of_code(settings[name]), settings[name].rpartition(":")[2])
        what = [settings, self.seed, self.trim, self.dynamics, self.groups, schema, version(), engine_version()]
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


def _sortable(values: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple("" if value is None else f"{value:025.9f}" if isinstance(value, int | float) else str(value) for value in values)


@functools.lru_cache(maxsize=10_000)
def _random_estimates(text: str) -> bool:
    return parse_estimates(text).random


def _checksum_of_code(order: str) -> str:
    return hashlib.sha256(Path(order.rpartition(":")[0]).read_bytes()).hexdigest()


@functools.cache
def engine_version() -> str:
    """Hash of the code that results depend on: whatever lies below the campaigns, but for what only reads and draws."""
    folder = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for part in ("workload", "estimates", "policy", "engine", "metrics", "schedule", "logs"):
        for file in sorted((folder / part).rglob("*.py")):
            digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
