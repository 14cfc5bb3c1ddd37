"""Record the files that a user's Python code opens: results depend on them, so they are kept only if a class declares these files."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

_CODE = (".py", ".pyc", ".so", ".nbi", ".nbc")
_OUTSIDE = ("/proc/", "/sys/", "/dev/", *{f"{sysconfig.get_path(kind)}/" for kind in ("stdlib", "platstdlib", "purelib", "platlib")})
_of_module: dict[str, Path] = {}
"""The user's file to which each watched module belongs, by the module's name in tracebacks."""
_opened: dict[Path, set[Path]] = {}
"""The files opened by each user's file and its modules since the start of the process."""
_passed: set[Path] = set()
"""The logs that were given to users' readers; their checksums are known."""
_installing = threading.Lock()
_here = threading.local()


def watch(file: Path, modules: Iterable[Path]) -> None:
    """Record from now on which files a user's Python file, and the local modules that it imports, open for reading."""
    with _installing:
        if not _of_module:
            sys.addaudithook(_notice)
        _of_module.update({str(one): file for one in (file, *modules)})


def opened(file: Path) -> set[Path]:
    """Return the files that a user's Python file has opened in this process, even long ago: their content may be kept in memory."""
    return _opened.get(file.resolve(), set()) - _passed


def passed(log: Path) -> None:
    """Exclude this log from the opened files, because it is the input of a user's reader."""
    _passed.add(log.resolve())


def _notice(event: str, arguments: tuple[Any, ...]) -> None:
    """Note a file that a watched module opens, directly or through a library."""
    if event != "open" or getattr(_here, "busy", False) or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    path, mode, flags = os.fsdecode(arguments[0]), arguments[1], arguments[2]
    if path.endswith(_CODE) or path.startswith(_OUTSIDE):
        return
    if any(letter in mode for letter in "wxa+") if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR):
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename not in _of_module:
        frame = frame.f_back
    if frame is None:
        return
    _here.busy = True
    try:
        whole = Path(path).resolve()
        if whole.is_file():
            _opened.setdefault(_of_module[frame.f_code.co_filename], set()).add(whole)
    finally:
        _here.busy = False
