"""Dataclass fields as declarations of the keys of a file, or of the options of a specification.

A field without a default is required, and the text below a field describes it. Its type defines the valid values, and a `Field` in the
annotation adds bounds, names and other restrictions.
"""

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from walltime.errors import WalltimeError
from walltime.wording import counted

KINDS: Mapping[Any, tuple[str, str, Mapping[str, Any]]] = {
    str: ("a string", "strings", {"type": "string"}),
    int: ("a whole number", "whole numbers", {"type": "integer"}),
    float: ("a number", "numbers", {"type": "number"}),
    bool: ("true or false", "true or false", {"type": "boolean"}),
    datetime: ("a date and time", "dates and times", {"type": "string", "format": "date-time"}),
    Any: ("a value", "values", {}),
}
"""For each type: the name of one value in messages, the name of several, and the JSON Schema."""

FORMER_NAMES = {"believed": "planned"}
"""Former names of columns, and of parameters with these names, which are still read."""
LARGEST_INTEGER = 2**53
"""Default upper limit of whole numbers in files; float64 represents all smaller ones exactly."""


class KeyFaultError(WalltimeError, ValueError):
    """A key of a file is unknown, missing, or of the wrong kind."""


@dataclass(frozen=True, eq=False)
class Field:
    """Restrictions on the value of a key, in addition to its type.

    `name`: its spelling in the file, by default the field's name; `{word}` in it is replaced from the `words` of the file. `least`, `most`:
    inclusive bounds of a number, or of the length of a text or list. `above`, `below`: exclusive bounds of a number. `known`: the allowed
    words. `literals`: texts that stand for other values. `accepts`: the type in the file; `read` converts it to the field's value, and
    raises a WalltimeError for an impossible one. `write`: the inverse of `read`, for specifications. `keys`: the types of the keys of a
    Mapping with fixed keys. `label`: the name of the type in messages. `meaning`: replaces the text below the field. `inside`: the program
    sets the field; the file has no such key. `former`: former names, which specifications still accept.
    """

    name: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    known: Sequence[str] = ()
    literals: Mapping[str, Any] = field(default_factory=dict)
    accepts: Any = None
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], str] | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    meaning: str = ""
    inside: bool = False
    former: tuple[str, ...] = ()


def wrong_field(value: Any) -> str:
    """Return an error message for the first field that violates its type or Field, for objects made in Python; empty if all are valid."""
    kind: Any = type(value)
    for one in keys_of(kind).values():
        now = getattr(value, one.field)
        if now != one.default and not any(holds(unwrapped(kind)[0], now) and is_within(now, one.key) for kind in alternatives(one.kind)):
            return f"{one.field} must be {described(one.kind, one.key)}, not {now!r}"
    return ""


@dataclass(frozen=True)
class DeclaredField:
    """A key, as declared by a field of a dataclass."""

    field: str
    kind: Any
    key: Field
    default: Any

    @property
    def needed(self) -> bool:
        """Return whether the key is required, because it has no default."""
        return self.default is MISSING

    @property
    def has_shown_default(self) -> bool:
        """Return whether the key has a default that help texts can show."""
        return self.default not in (MISSING, None, (), {}) and not is_dataclass(self.default)


@cache
def keys_of(kind: Any) -> Mapping[str, DeclaredField]:
    """Return the keys of a table that a dataclass declares, by their names in files."""
    hints = get_type_hints(kind, include_extras=True)
    declared = {}
    for one in fields(kind):
        inner, key = unwrapped(hints[one.name])
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if one.init and not key.inside:
            declared[key.name or one.name] = DeclaredField(one.name, inner, key, default)
    return declared


def unwrapped(kind: Any) -> tuple[Any, Field]:
    """Return a type without `| None`, and its Field; a Literal becomes a text with known words."""
    key = None
    if get_origin(kind) is Annotated:
        kind, *beside = get_args(kind)
        key = next((one for one in beside if isinstance(one, Field)), None)
    alone = alternatives(kind)
    if len(alone) == 1 and alone[0] is not kind:
        kind, inner = unwrapped(alone[0])
        key = key or inner
    key = key or Field()
    return (str, replace(key, known=get_args(kind))) if get_origin(kind) is Literal else (kind, key)


def alternatives(kind: Any) -> list[Any]:
    """Return the types that are joined by `|`, without None, which stands for an absent key."""
    return [one for one in get_args(kind) if one is not NoneType] if get_origin(kind) in (Union, UnionType) else [kind]


def is_table(kind: Any) -> bool:
    """Return whether values of this type are tables in a file."""
    return is_dataclass(kind) or get_origin(kind) is Mapping


def holds(kind: Any, value: Any) -> bool:
    """Return whether a TOML value has this type."""
    if kind is Any:
        return True
    if is_table(kind):
        return isinstance(value, Mapping)
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple)
    return type(value) is kind or (kind is float and type(value) is int)


def is_within(value: Any, key: Field) -> bool:
    """Return whether a number, or the length of a text or list, is within the bounds of its key."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        usual = LARGEST_INTEGER if isinstance(value, int) else None
        least, most = (-usual if key.least is None and usual else key.least), (usual if key.most is None else key.most)
        inside = (key.above is None or value > key.above) and (key.below is None or value < key.below)
        return inside and (least is None or value >= least) and (most is None or value <= most)
    size = len(value) if isinstance(value, str | list) else 0
    return (key.least is None or size >= key.least) and (key.most is None or size <= key.most)


def described(kind: Any, key: Field) -> str:
    """Return the name of the values of a type, for messages and pages."""
    kind = kind if key.accepts is None else key.accepts
    ways = alternatives(kind)
    if key.label or len(ways) > 1:
        return key.label or " or ".join(dict.fromkeys(described(*unwrapped(one)) for one in ways))
    if get_origin(kind) is tuple:
        inner = bare(get_args(kind)[0])
        return "tables" if is_table(inner) else f"a list of {' or '.join(KINDS[one][1] for one in map(bare, alternatives(inner)))}"
    if is_table(kind):
        return "a table"
    if kind is str and key.least and not key.known:
        return "a non-empty string" if key.most is None else f"a string of {counted(int(key.most), 'character')}"
    return f"one of {', '.join(key.known)}" if key.known else KINDS[kind][0] + _bounds(key)


def bare(kind: Any) -> Any:
    """Return a type without its Field."""
    return unwrapped(kind)[0]


def _bounds(key: Field) -> str:
    least, most = key.least, key.most
    low = f" over {key.above:,}" if key.above is not None else "" if least is None else f" of {least:,} or more"
    if key.below is not None or most is not None:
        high = f"below {key.below:,}" if most is None else f"up to {most:,}"
        return f" from {least:,} to {most:,}" if least is not None and most is not None else f"{low} and {high}" if low else f" {high}"
    return low


OTHER_NAMES = {
    "log": "trace",
    "logs": "trace",
    "policies": "policy",
    "cluster": "machine",
    "walltime": "requested",
    "cpus": "procs",
    "cores": "procs",
}
"""Names that users may try, and the correct name."""


def nearest(word: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return a question that suggests the most similar known word, as a separate sentence; empty if none is similar.

    `alike`: the smallest similarity, from 0 to 1.

    >>> nearest("ordr", ["order", "depth"]), nearest("cores", ["comment"]), nearest("cores", ["comment", "procs"])
    (". Did you mean 'order'?", '', ". Did you mean 'procs'?")
    """
    words = list(known)
    close = [one for one in words if one == OTHER_NAMES.get(word)] or difflib.get_close_matches(word, words, n=1, cutoff=alike)
    return f". Did you mean {close[0]!r}?" if close else ""


def valid_options(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message about an unknown word: a question with the most similar option, and all options.

    >>> valid_options("ordr", ["order", "depth"]), valid_options("x", ["order"])
    (". Did you mean 'order'? Valid options: order, depth", '. Valid options: order')
    """
    return f"{nearest(word, known) or '.'} Valid options: {', '.join(known)}"


@cache
def _meanings(kind: Any) -> Mapping[str, str]:
    """Return the texts below the fields of a dataclass."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(declared, ast.ClassDef), "it is the source of a class"
    return {
        one.target.id: " ".join(text.value.value.split())
        for one, text in zip(declared.body, declared.body[1:], strict=False)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def meaning_of(kind: type, one: DeclaredField) -> str:
    """Return the text below a field, in the class itself or in one of its base classes."""
    texts = (_meanings(base).get(one.field, "") for base in kind.__mro__ if is_dataclass(base))
    return one.key.meaning or next(filter(None, texts), "")
