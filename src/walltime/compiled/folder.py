"""The folders of compiled kernels: one for each version of their code, removed when it is no longer used.

A folder's name contains a hash of the compiled modules (without their comments, docstrings or formatting), of the versions of Numba, LLVM
and Python, and of the processor. So a stale result is impossible, and an edited comment compiles nothing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding

from walltime.syntax import REMOVED, cache_root, code_hash

PACKAGE = Path(__file__).parent.parent
"""The folder of the package walltime."""

_config: Any = numba.config
DAY = 86_400
KEPT_UNUSED = 30 * DAY
"""Time after which an unused folder is removed, s."""
_NAME, _STAMP = "kernels-", "used"


@functools.cache
def source_hash() -> str:
    """Return a hash (16 hexadecimal digits) of everything that the compiled code depends on."""
    imported = (
        "compiled/indices.py",
        "compiled/jit.py",
        "compiled/prediction_memory.py",
        "compiled/records.py",
        "engine/machines.py",
        "ragged.py",
    )
    files = [*sorted((PACKAGE / "engine" / "kernel").rglob("*.py")), *(PACKAGE / name for name in imported)]
    processor = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    versions = (sys.version, np.__version__, numba.__version__, llvmlite.__version__)
    parts = (code_hash(files, PACKAGE), *versions, processor, f"{_config.BOUNDSCHECK} {_config.OPT}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def folder_name() -> str:
    """Return the name of the folder of the kernels compiled from exactly this code."""
    return f"{_NAME}{source_hash()}"


@functools.cache
def cache_folder() -> Path:
    """Return the folder of the kernels compiled from exactly this code, now marked as used, and remove folders no longer used."""
    folder, temporary = cache_root() / folder_name(), Path(tempfile.gettempdir()) / f"walltime-{os.getuid()}"
    if not _is_usable(folder) and not _is_usable(folder := temporary / folder.name, private=True):
        folder = Path(tempfile.mkdtemp(prefix="walltime-"))  # used by this process alone
    with contextlib.suppress(OSError):
        _note_use(folder)
    return folder


def _is_usable(folder: Path, private: bool = False) -> bool:
    """Return whether a folder can be written, after creating it.

    Compiled code runs, so a `private` folder that another user may have made is rejected.
    """
    try:
        if folder.is_file():
            folder.unlink()
        if private:
            folder.parent.mkdir(exist_ok=True, mode=0o700)
        folder.mkdir(parents=True, exist_ok=True)
        if private and any(one.stat().st_uid != os.getuid() or one.stat().st_mode & 0o022 for one in (folder, folder.parent)):
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _note_use(folder: Path) -> None:
    """Update the time of the folder's stamp, at most once a day, and then look for unused folders."""
    stamp = folder / _STAMP
    if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY:
        return
    stamp.touch()
    remove_unused(folder)


def remove_unused(current: Path) -> None:
    """Remove the other folders that have not been used for a month, as far as possible."""
    for folder in kernel_folders(current.parent):
        if folder != current and time.time() - last_use(folder) > KEPT_UNUSED:
            remove(folder)
    for rest in current.parent.glob(f"{REMOVED}*"):  # left by a process that was killed while it removed a folder
        shutil.rmtree(rest, ignore_errors=True)
        with contextlib.suppress(OSError):
            rest.unlink()


def remove(folder: Path) -> bool:
    """Remove a folder of kernels; return whether it was removed.

    The folder is renamed first, so that other processes find all of it or nothing. A process that is using it loses only the results that
    it stores later: it creates the folder again.
    """
    gone = folder.with_name(f"{REMOVED}{folder.name}-{os.getpid()}")
    try:
        folder.rename(gone)
    except OSError:
        return False
    shutil.rmtree(gone, ignore_errors=True)
    return True


def kernel_folders(root: Path) -> list[Path]:
    """Return all folders of kernels below this one, of this version of the code and of others."""
    with contextlib.suppress(OSError):
        return sorted(folder for folder in root.glob(f"{_NAME}*") if folder.is_dir() and not folder.is_symlink())
    return []


def last_use(folder: Path) -> float:
    """Return when a folder of kernels was last used, in seconds since 1970, accurate to about a day."""
    for path in (folder / _STAMP, folder):
        with contextlib.suppress(OSError):
            return path.stat().st_mtime
    return time.time()
