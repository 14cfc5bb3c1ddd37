"""Hash Python code without its comments, docstrings and formatting, and store the hashes in the folder of compiled kernels."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_SAYS_NOTHING = {"kind", "returns", "type_comment"}
"""Fields of the syntax tree that do not affect results, such as return annotations."""
REMOVED, _SOURCES = ".removed-", "sources"
SOURCES_KNOWN = 32
"""Number of versions of the sources whose hashes are stored."""


def cache_root() -> Path:
    """Return the folder of this user's compiled kernels: `WALLTIME_CACHE`, else `XDG_CACHE_HOME`, else `~/.cache`, below `walltime`."""
    own = os.environ.get("WALLTIME_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "walltime"


def code_hash(files: list[Path], folder: Path) -> str:
    """Return a hash of the sources' syntax; results are stored by the files' content, since parsing takes longer than reading."""
    written = hashlib.sha256(sys.version.encode() + Path(__file__).read_bytes())
    for file in files:
        content = file.read_bytes()
        written.update(f"\0{file.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    name, memo = written.hexdigest(), cache_root() / _SOURCES
    known: dict[str, str] = {}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = [line.split() for line in memo.read_text().splitlines()]
        known = {line[0]: line[1] for line in lines if len(line) == 3 and line[2] == _mark(*line[:2])}
    if name in known:
        return known[name]
    known[name] = syntax_hash(files, folder)
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        write_whole(memo, "".join(f"{' '.join(line)} {_mark(*line)}\n" for line in list(known.items())[-SOURCES_KNOWN:]))
    return known[name]


def _mark(written: str, does: str) -> str:
    """Return a checksum of one line in the file of stored hashes."""
    return hashlib.sha256(f"{written} {does}".encode()).hexdigest()[:16]


def write_whole(file: Path, text: str) -> None:
    """Write a file so that other processes find either the old text or the new one.

    The file always gets the same modification time, since Numba compares it.
    """
    new = file.with_name(f"{REMOVED}{secrets.token_hex(8)}")
    try:
        new.write_text(text)
        os.utime(new, (0, 0))
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def syntax_hash(files: Iterable[Path], folder: Path) -> str:
    """Return a hash (64 hexadecimal digits) of the code in these files, and of their names relative to `folder`, in the given order.

    For files in other languages, the bytes are hashed.
    """
    digest = hashlib.sha256()
    for file in files:
        text = syntax_text(file.read_text(encoding="utf-8")) if file.suffix == ".py" else hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(folder).as_posix()}\0{text}\0".encode())
    return digest.hexdigest()


def syntax_text(source: str) -> str:
    """Return the syntax tree as text, without positions, comments, bare strings, and annotations of arguments and results.

    >>> syntax_text("x = 1  # one") == syntax_text("x=1")
    True
    """
    return _text(ast.parse(source))


def _text(value: Any) -> str:
    # Not `ast.dump`, whose text differs between versions of Python; empty fields are omitted here.
    if isinstance(value, list):
        return f"[{','.join(_text(item) for item in value if not _is_bare_string(item))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    left_out = _SAYS_NOTHING | {"annotation"} if isinstance(value, ast.arg) else _SAYS_NOTHING
    fields = [(name, item) for name, item in ast.iter_fields(value) if name not in left_out and item is not None and item != []]
    return f"{type(value).__name__}({','.join(f'{name}={_text(item)}' for name, item in fields)})"


def _is_bare_string(item: Any) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
