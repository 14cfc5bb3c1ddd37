"""Orders and policies of a user's own files, spelled `FILE.py:NAME`."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from walltime.errors import PolicyError

_FILES = re.compile(r"(?:(?<==)|^)([^=,:]+\.py)(?=:)")


def load_name(file: Path, name: str, what: str) -> Any:
    """What a file calls by this name; raises PolicyError where the file, or in it the name, is missing or fails."""
    if not file.is_file():
        raise PolicyError(f"no file {file} to take the {what} {name!r} from")
    module = _module(file.resolve(), file.stat().st_mtime_ns)
    if not hasattr(module, name):
        raise PolicyError(f"{file} has no {what} named {name!r}")
    return getattr(module, name)


@functools.lru_cache(maxsize=16)
def _module(file: Path, _modified: int) -> Any:
    """What the file defines; loaded once as long as it is not edited, so that equal orders are one and are compiled once."""
    module_name = file.stem
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(module_name)
    sys.modules[module_name] = module  # where dataclasses look for the types of their fields
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises is the user's to see, in one line
        raise PolicyError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    finally:
        if before is None:
            del sys.modules[module_name]
        else:
            sys.modules[module_name] = before
    return module


def files_in(text: str) -> list[str]:
    """The files of a user's own that an order or a policy is spelled with.

    >>> files_in("easy:order=mine.py:widest,backfill-order=sjf"), files_in("own.py:Day:order=sjf"), files_in("easy")
    (['mine.py'], ['own.py'], [])
    """
    return _FILES.findall(text)


def placed(text: str, folder: Path) -> str:
    """The same with these files looked for in this folder."""
    return _FILES.sub(lambda match: str((folder / match[1]).resolve()), text)
