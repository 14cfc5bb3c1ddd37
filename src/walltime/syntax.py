"""Hash Python code without its comments, docstrings and formatting."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_SAYS_NOTHING = {"kind", "returns", "type_comment"}
"""Fields of the syntax tree that do not affect results, such as return annotations."""


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
