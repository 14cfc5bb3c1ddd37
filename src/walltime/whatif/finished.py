"""Keep the results of long simulations in the cache folder, so that an interrupted what-if continues and a repeated one is fast.

A file holds arrays only. Its name is a hash of everything that the result depends on: the jobs, the settings, the seed and the code.
"""

from __future__ import annotations

import functools
import hashlib
import time
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from walltime.engine.machines import LostRuns, NodeRanges
from walltime.errors import OutputError
from walltime.files import whole_file
from walltime.plugins.files import named_files
from walltime.plugins.parts import named_packages
from walltime.schedule.schedule import PredictionRecord, Schedule
from walltime.simulation.run import run_of
from walltime.syntax import cache_root
from walltime.whatif.setting import Setting
from walltime.workload import Array, Workload

T = TypeVar("T")
Arrays = Mapping[str, Array]
FOLDER = "simulations"
LEAST_SECONDS = 0.5
"""Results of computations that take less than this, s, are not kept."""
MOST_BYTES = 500_000_000
"""Maximum size of all files together; old files are removed to make room for new ones, but never files of the same run."""
KEPT_UNUSED = 30 * 86_400
"""Time after which an unused file is removed, s."""
COLUMNS = ("start", "end", "runtime", "kind", "reserved_start", "submitted", "given", "limit", "engine", "simulated_on")
SLOTS = ("job", "first", "nodes", "procs", "second")
PREDICTED = ("predicted", "basis", "corrections")
CODE = (
    "compiled",
    "engine",
    "estimates",
    "machine",
    "metrics",
    "policy",
    "predictors",
    "schedule",
    "simulation",
    "slurm",
    "whatif",
    "workload",
)
"""Parts of the package on which results depend, besides the modules at its top."""


class Finished:
    """The kept results, for one what-if."""

    def __init__(self) -> None:
        self._found: list[int] = []
        self._begin, self._folder = time.time(), cache_root() / FOLDER

    @property
    def reused(self) -> int:
        """Return the number of simulations whose results were found."""
        return sum(self._found)

    def schedule(self, setting: Setting, workload: Workload, key: str, simulate: Callable[[], Schedule], **options: Any) -> Schedule:
        """Return the schedule of a setting, from the folder or a simulation; `options`: the seed and the treatment of overruns."""

        def restore(arrays: Arrays) -> Schedule:
            run = run_of(setting.jobs(workload, options["seed"]), setting.scheduler(), overrun=options["overrun"], machine=setting.machine)
            known: dict[str, Any] = {name: arrays[name] for name in COLUMNS if name in arrays}
            known |= {name: str(arrays[name]) for name in ("engine", "simulated_on")}
            for name, kind, parts in (("slots", NodeRanges, SLOTS), ("lost", LostRuns, LostRuns._fields)):
                if f"{name}.job" in arrays:
                    known[name] = kind(*(arrays[f"{name}.{part}"] for part in parts))
            if run.scheduler.prediction is not None:
                known["predictions"] = PredictionRecord(run.scheduler.prediction, *(arrays[f"predictions.{part}"] for part in PREDICTED))
            known |= {"workload": run.workload, "policy": run.scheduler.policy, "placement": run.placement}
            return Schedule(**known, overrun=options["overrun"])

        return self.result(key, 1, simulate, _arrays, restore)

    def result(
        self, key: str, simulations: int, compute: Callable[[], T], pack: Callable[[T], Arrays], restore: Callable[[Arrays], T]
    ) -> T:
        """Return the result for this key, from the folder or by computing it; with an empty key, results are neither looked up nor kept."""
        file = self._folder / f"{key}.npz"
        with suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            if key:
                with file.open("rb") as source, np.load(source) as arrays:
                    found = restore(dict(arrays))
                self._found.append(simulations)
                file.touch()
                return found
        begin = time.perf_counter()
        result = compute()
        if key and time.perf_counter() - begin >= LEAST_SECONDS and (packed := pack(result)):
            with suppress(OSError, OutputError):
                self._write(file, packed)
        return result

    def _write(self, file: Path, arrays: Arrays) -> None:
        """Write a file atomically, after removing the oldest files of earlier runs if needed; do nothing if all are still too large."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files = list[tuple[float, int, Path]]()
        for one in self._folder.iterdir():
            with suppress(FileNotFoundError):  # the unfinished file of another thread, which has renamed it
                files.append((one.stat().st_mtime, one.stat().st_size, one))
        size = sum(bytes_ for _, bytes_, _ in files) + sum(one.nbytes for one in arrays.values())
        for used, bytes_, one in sorted(files):
            if used < self._begin and (size > MOST_BYTES or used < self._begin - KEPT_UNUSED):
                one.unlink(missing_ok=True)
                size -= bytes_
        if size <= MOST_BYTES:
            with whole_file(file, private=True) as sink:
                np.savez_compressed(sink, **dict[str, Any](arrays))


def key_of(workload: Workload, settings: Sequence[Setting], *others: object) -> str:
    """Return a hash of the jobs, the settings, the other values and the code; empty if results also depend on a user's file."""
    texts = [text for text in others if isinstance(text, str)]
    for one in settings:
        predictor = None if one.adjustment is None else one.adjustment.predictor
        own = not type(predictor).__module__.startswith(("walltime.", "builtins"))
        if own or not isinstance(one.policy, str) or one.scheduler().draws or one.machine.eligible is not None:
            return ""
        texts += [one.policy, one.scheduler().label, one.estimates, *([] if predictor is None else [predictor.label])]
    if any(named_files(text) or named_packages(text) for text in texts):
        return ""
    known = _code(), texts, settings, others, workload.machine_procs, workload.feedback, workload.origin
    digest = hashlib.sha256(repr(known).encode())
    columns = {name: getattr(workload, name) for name in ("job_id", "submit", "runtime", "requested", "procs", "planned")}
    for name, values in sorted((columns | dict(workload.columns)).items()):
        digest.update(f"\0{name} {values.dtype} {len(values)}\0".encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


@functools.cache
def _code() -> str:
    """Return a hash of the code on which results depend, by its bytes: parsing it, as `code_hash` does, would take seconds."""
    package, digest = Path(__file__).parent.parent, hashlib.sha256()
    for file in sorted([*package.glob("*.py"), *(file for part in CODE for file in (package / part).rglob("*.py"))]):
        digest.update(f"\0{file.relative_to(package).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _arrays(schedule: Schedule) -> Arrays:
    """Return the arrays from which a schedule can be restored; empty for a schedule with a part that cannot be kept."""
    found = {name: np.asarray(value) for name in COLUMNS if (value := getattr(schedule, name)) is not None}
    if schedule.slots is not None and not isinstance(schedule.slots, NodeRanges):
        return {}
    parts = (("slots", schedule.slots, SLOTS), ("lost", schedule.lost, LostRuns._fields), ("predictions", schedule.predictions, PREDICTED))
    return found | {f"{name}.{part}": getattr(one, part) for name, one, names in parts if one is not None for part in names}
