"""TOML files as types: a dataclass declares the keys of a table, and files are read, checked, written and documented by it.

A field without a default is a key that is needed, the text below a field is its meaning, and its type says what it holds: str, int,
float, bool, datetime, a Literal of words, a tuple of these, a Mapping for a table of free keys, a dataclass for a table, a tuple of
dataclasses for tables written [[...]], or several of them, joined by `|`. A `Key` beside the type says the rest.

>>> @dataclass(frozen=True)
... class Pool:
...     nodes: Annotated[int, Key(least=1)]
...     procs: int
...     gpus: int = 0
>>> parse({"nodes": 4, "procs": 8}, Pool)
Pool(nodes=4, procs=8, gpus=0)
>>> parse({"nodes": 4, "proc": 8}, Pool)
Traceback (most recent call last):
walltime.toml_file.KeyFaultError: unknown key 'proc', did you mean 'procs'?; known are nodes, procs, gpus
"""

from __future__ import annotations

import ast
import difflib
import inspect
import os
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from walltime.errors import WalltimeError, shown
from walltime.files import printable

__all__ = ["MOST", "Key", "KeyFaultError", "TomlFile", "key_tables", "parse", "to_toml", "wrong_field"]

T = TypeVar("T")
MOST = 2**53
"""No whole number of a file is larger, unless its key says so: below it each is exact in a float64."""
NOTHING: Mapping[str, str] = {}
KINDS: Mapping[Any, tuple[str, str, Mapping[str, Any]]] = {
    str: ("a text", "texts", {"type": "string"}),
    int: ("a whole number", "whole numbers", {"type": "integer"}),
    float: ("a number", "numbers", {"type": "number"}),
    bool: ("true or false", "true or false", {"type": "boolean"}),
    datetime: ("a date and time", "dates and times", {"type": "string", "format": "date-time"}),
    Any: ("a value", "values", {}),
}
"""What a single value is called, what several are, and its JSON Schema."""


class KeyFaultError(WalltimeError, ValueError):
    """A key of a file is unknown, missing, or of the wrong kind."""


@dataclass(frozen=True, eq=False)
class Key:
    """What a key may hold, beyond its type.

    `name`: how the file spells it, by default as the field; `{word}` in it is filled from the `words` of the file. `least`, `most`: of a
    number; of a text and a list, their lengths. `known`: the words that a text may be. `instead`: texts that stand for other values.
    `takes`: the type in the file, of which `read` makes the field's value; `read` raises a WalltimeError for one that cannot be. `keys`: of
    a Mapping whose keys are not free, their types. `said`: what messages call the type. `meaning`: in place of the text below the field.
    `inside`: it is no key of the file, but set by the program.
    """

    name: str = ""
    least: float | None = None
    most: float | None = None
    known: Sequence[str] = ()
    instead: Mapping[str, Any] = field(default_factory=dict)
    takes: Any = None
    read: Callable[[Any], Any] | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""
    meaning: str = ""
    inside: bool = False


@dataclass(frozen=True)
class TomlFile(Generic[T]):
    """A kind of file: the dataclass that declares it, what messages call such a file, the page that describes it, and their class.

    `words`: of a file's content, what fills the names of keys that each file spells differently.
    """

    kind: type[T]
    title: str
    see: str
    error: type[WalltimeError]
    words: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda content: {}

    def read(self, path: str | os.PathLike[str], needed: Mapping[str, str] = NOTHING) -> T:
        """What the file says; raises the error, in one line, for one that cannot be read or has a wrong key.

        `needed`: further keys without which it is of no use, and what they are for.
        """
        return self.value(self.content(self.text(path), printable(path)), printable(path), needed)

    def text(self, path: str | os.PathLike[str]) -> str:
        """The text of the file."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as fault:
            raise self.error(f"{printable(path)}: is no text in UTF-8, so this is no TOML; see {self.see}") from fault
        except (OSError, ValueError) as fault:  # a name with a NUL byte is a ValueError
            reason = (getattr(fault, "strerror", None) or str(fault)).lower()
            raise self.error(f"{printable(path)}: cannot be read ({reason}); name {self.title}") from fault

    def content(self, text: str, where: str) -> dict[str, Any]:
        """The tables of a file with this text, named `where` in errors."""
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as fault:  # also numbers of thousands of digits, and lists thousands deep
            raise self.error(f"{where}: this is no TOML ({' '.join(str(fault).split())}); see {self.see}") from fault

    def value(self, content: Mapping[str, Any], where: str, needed: Mapping[str, str] = NOTHING) -> T:
        """What these tables say."""
        try:
            return parse(content, self.kind, self.words(content), needed)
        except WalltimeError as fault:
            raise self.error(f"{where}: {fault}") from fault

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of such files, for editors."""
        about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"walltime: {self.title}"}
        return about | _schema(self.kind, Key())


def parse(content: Mapping[str, Any], kind: type[T], words: Mapping[str, str] = NOTHING, needed: Mapping[str, str] = NOTHING) -> T:
    """The value of a dataclass that a file's content says; `words`, `needed`: as in `TomlFile`.

    Raises KeyFaultError for the first unknown or wrong key, else with all that are missing; and the errors of the dataclass itself.
    """
    reading = _Reading(words)
    value: Any = None
    with suppress(_Wrong):
        value = reading.table(content, kind, "")
    if reading.faults:
        raise reading.faults[0]
    missing = [*reading.missing, *(f"{key} ({what})" for key, what in needed.items() if key not in content)]
    if missing:
        raise KeyFaultError(f"missing: {', '.join(missing)}")
    found: T = value
    return found


def wrong_field(value: Any) -> str:
    """Which field of a dataclass is not as its type and Key say, in words; empty if none. For values that were made by hand."""
    kind: Any = type(value)
    for one in _keys_of(kind).values():
        now = getattr(value, one.field)
        if now != one.default and not any(
            _holds(_unwrapped(kind)[0], now) and _is_within(now, one.key) for kind in _alternatives(one.kind)
        ):
            return f"{one.field} must be {_said(one.kind, one.key)}, not {now!r}"
    return ""


def to_toml(value: Any, words: Mapping[str, str]) -> str:
    """The text of a file that says this; what is as by default is left out."""
    return "\n".join(_lines(value, words)).lstrip("\n") + "\n"


def key_tables(kind: type, title: str = "") -> str:
    """The keys of a kind of file in Markdown: a table for the file, and one for each table in it."""
    lines = [f"`{title}`: {inspect.cleandoc(kind.__doc__ or '').splitlines()[0]}", ""] if title else []
    lines += ["| key | holds | default | meaning |", "| --- | --- | --- | --- |"]
    inside: dict[Any, str] = {}
    for name, one in _keys_of(kind).items():
        usual = "needed" if one.needed else f"`{_toml(one.default)}`" if one.is_said else ""
        lines.append(f"| `{name}` | {_said(one.kind, one.key)} | {usual} | {_meaning(kind, one)} |")
        for table in _tables_in(one.kind):
            several = {tuple: f"[[{name}]]", Mapping: f"[{name}] NAME"}.get(get_origin(one.kind), f"[{name}]")
            inside[table] = key_tables(table, several)
    return "\n\n".join(["\n".join(lines), *inside.values()])


class _Wrong(Exception):  # noqa: N818 (it never leaves this module)
    """A value is wrong, or lacks a key, which has been noted."""


class _Reading:
    """One pass over a file, which goes on after a fault."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words
        self.faults: list[WalltimeError] = []
        self.missing: list[str] = []

    def table(self, content: Any, kind: Any, where: str) -> Any:
        """The instance of a dataclass that a table is."""
        keys = {name.format_map(self.words): one for name, one in _keys_of(kind).items()}
        lacking = [f"[[{name}]]" if _tables_in(one.kind) else name for name, one in keys.items() if one.needed and name not in content]
        self.missing += [f"{name} in {where}" if where else name for name in lacking]
        given = self.entries(content, {name: (one.kind, one.key) for name, one in keys.items()}, where)
        if lacking:
            raise _Wrong
        try:
            return kind(**{keys[name].field: value for name, value in given.items()})
        except WalltimeError as fault:
            raise self.wrong(where, str(fault)) from fault

    def entries(self, content: Mapping[str, Any], keys: Mapping[str, tuple[Any, Key]], where: str) -> dict[str, Any]:
        """The values of the keys that are there."""
        unknown = [name for name in content if name not in keys]
        for name in unknown:
            what, inside = "table" if isinstance(content[name], Mapping) else "key", f" in {where}" if where else ""
            self.faults.append(KeyFaultError(f"unknown {what} {shown(name)}{inside}{_nearest(name, keys)}; known are {', '.join(keys)}"))
        known = {name: value for name, value in content.items() if name in keys}
        values = self.values([(value, *keys[name], _below(where, name)) for name, value in known.items()])
        if unknown:
            raise _Wrong
        return dict(zip(known, values, strict=True))

    def values(self, given: Sequence[tuple[Any, Any, Key, str]]) -> list[Any]:
        """What several values say; the arguments of `value` for each. All of them are looked at, even if one is wrong."""
        values = []
        for one in given:
            with suppress(_Wrong):
                values.append(self.value(*one))
        if len(values) < len(given):
            raise _Wrong
        return values

    def value(self, value: Any, kind: Any, key: Key, where: str) -> Any:
        """What the value of a key says, by its type and the Key beside it."""
        if isinstance(value, str) and value in key.instead:
            return key.instead[value]
        takes = kind if key.takes is None else key.takes
        inner = next((one for one in _alternatives(takes) if _holds(_bare(one), value)), None)
        if inner is None or (inner is takes and not _is_within(value, key)):
            said = _said(kind, key)
            written = {"a table": f", written [{where}]", "tables": f", written [[{where}]]"}.get(said, "") if where.isidentifier() else ""
            raise self.wrong(where, f"must be {said}{written}, not {shown(value)}")
        if isinstance(value, str) and key.known and value not in key.known:
            raise self.wrong(where, f"unknown value {shown(value)}{_nearest(value, key.known)}; known are {', '.join(key.known)}")
        said = self.typed(value, inner, key, where) if inner is takes else self.value(value, *_unwrapped(inner), where)
        try:
            return said if key.read is None else key.read(said)
        except WalltimeError as fault:
            raise self.wrong(where, str(fault)) from fault

    def typed(self, value: Any, kind: Any, key: Key, where: str) -> Any:
        """A value of this type; the elements of lists and tables are read as well."""
        if is_dataclass(kind):
            return self.table(value, kind, where)
        if key.keys:
            return self.entries(value, {name: _unwrapped(one) for name, one in key.keys.items()}, where)
        if get_origin(kind) is tuple:
            element = _unwrapped(get_args(kind)[0])
            places = [_numbered(where, number, one) if _is_table(element[0]) else where for number, one in enumerate(value, 1)]
            return tuple(self.values([(one, *element, place) for one, place in zip(value, places, strict=True)]))
        if get_origin(kind) is Mapping:
            element = _unwrapped(get_args(kind)[1])
            return dict(zip(value, self.values([(one, *element, _below(where, name)) for name, one in value.items()]), strict=True))
        return float(value) if kind is float else value

    def wrong(self, where: str, text: str) -> _Wrong:
        """Note a fault."""
        between = " " if text.startswith(("must ", "names ", "needs ", "is ")) else ": " if where else ""
        self.faults.append(KeyFaultError(f"{where}{between}{text}"))
        return _Wrong()


@dataclass(frozen=True)
class _DeclaredKey:
    """A key as a field of a dataclass declares it."""

    field: str
    kind: Any
    key: Key
    default: Any

    @property
    def needed(self) -> bool:
        return self.default is MISSING

    @property
    def is_said(self) -> bool:
        """Whether the default is a value that says something."""
        return self.default not in (MISSING, None, (), {}) and not is_dataclass(self.default)


@cache
def _keys_of(kind: Any) -> Mapping[str, _DeclaredKey]:
    """The keys of a table, by their names in files."""
    hints = get_type_hints(kind, include_extras=True)
    declared = {}
    for one in fields(kind):
        inner, key = _unwrapped(hints[one.name])
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if one.init and not key.inside:
            declared[key.name or one.name] = _DeclaredKey(one.name, inner, key, default)
    return declared


def _unwrapped(kind: Any) -> tuple[Any, Key]:
    """A type, and the Key beside it; a Literal is a text of known words, and `| None` says nothing more."""
    key = None
    if get_origin(kind) is Annotated:
        kind, *beside = get_args(kind)
        key = next((one for one in beside if isinstance(one, Key)), None)
    alone = _alternatives(kind)
    if len(alone) == 1 and alone[0] is not kind:
        kind, inner = _unwrapped(alone[0])
        key = key or inner
    key = key or Key()
    return (str, replace(key, known=get_args(kind))) if get_origin(kind) is Literal else (kind, key)


def _alternatives(kind: Any) -> list[Any]:
    """The types that are joined by `|`; None is a key that is not there."""
    return [one for one in get_args(kind) if one is not NoneType] if get_origin(kind) in (Union, UnionType) else [kind]


def _is_table(kind: Any) -> bool:
    return is_dataclass(kind) or get_origin(kind) is Mapping


def _tables_in(kind: Any) -> list[Any]:
    """The dataclasses of the tables that a key holds."""
    inner = [_unwrapped(one)[0] for one in _alternatives(kind)]
    inner += [_unwrapped(get_args(one)[-2 if get_origin(one) is tuple else -1])[0] for one in inner if get_args(one)]
    return [one for part in inner for one in _alternatives(part) if is_dataclass(one)]


def _holds(kind: Any, value: Any) -> bool:
    """Whether a value of TOML is of this type."""
    if kind is Any:
        return True
    if _is_table(kind):
        return isinstance(value, Mapping)
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple)
    return type(value) is kind or (kind is float and type(value) is int)


def _is_within(value: Any, key: Key) -> bool:
    """Whether a number, or the length of a text or list, is within the bounds of its key."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        usual = MOST if isinstance(value, int) else None
        least, most = (-usual if key.least is None and usual else key.least), (usual if key.most is None else key.most)
        return (least is None or value >= least) and (most is None or value <= most)
    size = len(value) if isinstance(value, str | list) else 0
    return (key.least is None or size >= key.least) and (key.most is None or size <= key.most)


def _said(kind: Any, key: Key) -> str:
    """What messages and pages call a type."""
    kind = kind if key.takes is None else key.takes
    ways = _alternatives(kind)
    if key.said or len(ways) > 1:
        return key.said or " or ".join(dict.fromkeys(_said(*_unwrapped(one)) for one in ways))
    if get_origin(kind) is tuple:
        inner = _bare(get_args(kind)[0])
        return "tables" if _is_table(inner) else f"a list of {' or '.join(KINDS[one][1] for one in map(_bare, _alternatives(inner)))}"
    if _is_table(kind):
        return "a table"
    return f"one of {', '.join(key.known)}" if key.known else KINDS[kind][0] + _bounds(key.least, key.most, kind is str)


def _bare(kind: Any) -> Any:
    return _unwrapped(kind)[0]


def _bounds(least: float | None, most: float | None, letters: bool) -> str:
    if least is None and most is None:
        return ""
    if letters:
        return " that is not empty" if most is None else f" of {most:,} character{'s' if most > 1 else ''}"
    return f" of {least:,} or more" if most is None else f" up to {most:,}" if least is None else f" from {least:,} to {most:,}"


def _below(where: str, name: str) -> str:
    """The place of a key in a table."""
    name = printable(name)
    return name if not where else f"{where}: {name}" if " " in where else f"{where}.{name}"


def _numbered(where: str, number: int, table: Any) -> str:
    """The place of one of several tables: its name, if it has one."""
    name = table.get("name") if isinstance(table, Mapping) else None
    return f"{where} {name!r}" if isinstance(name, str) and name.isprintable() else f"{where} number {number}"


def _nearest(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""


def _lines(value: Any, words: Mapping[str, str]) -> list[str]:
    """The lines of a table: single values first, then tables."""
    lines, tables = [], []
    kind: Any = type(value)
    for name, one in _keys_of(kind).items():
        name, now = name.format_map(words), getattr(value, one.field)
        if now == one.default or now is None:
            continue
        if isinstance(now, Mapping):
            tables += ["", f"[{name}]", *(f"{_toml_key(key)} = {_toml(text)}" for key, text in now.items())]
        elif is_dataclass(now):
            tables += ["", f"[{name}]", *_lines(now, words)]
        elif _tables_in(one.kind):
            tables += [line for table in now for line in ("", f"[[{name}]]", *_lines(table, words))]
        else:
            lines.append(f"{name} = {_toml(now)}")
    return lines + tables


def _toml_key(text: str) -> str:
    return text if text.isascii() and text.isidentifier() else _toml(text)


def _toml(value: Any) -> str:
    """A single value, a list of them, or a table in one line, in TOML."""
    if is_dataclass(value):
        return f"{{ {', '.join(_lines(value, NOTHING))} }}"
    if isinstance(value, str):
        escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else "\\" + c if c in '"\\' else c for c in value)
        return f'"{escaped}"'
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    return value.isoformat() if isinstance(value, datetime) else str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _meanings(kind: Any) -> Mapping[str, str]:
    """The texts below the fields of a dataclass."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(declared, ast.ClassDef), "it is the source of a class"
    return {
        one.target.id: " ".join(text.value.value.split())
        for one, text in zip(declared.body, declared.body[1:], strict=False)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _meaning(kind: type, one: _DeclaredKey) -> str:
    return one.key.meaning or _meanings(kind).get(one.field, "")


def _schema(kind: Any, key: Key) -> dict[str, Any]:
    """The JSON Schema of a type with the Key beside it."""
    kind = kind if key.takes is None else key.takes
    ways = _alternatives(kind)
    if key.instead:
        return {"anyOf": [_schema(kind, replace(key, instead={})), *({"const": word} for word in key.instead)]}
    if len(ways) > 1:
        return {"anyOf": [_schema(*_unwrapped(one)) for one in ways]}
    if is_dataclass(kind):
        return _table_schema(kind)  # type: ignore[arg-type]
    if key.keys:
        inner = {name: _schema(*_unwrapped(one)) | {"description": _unwrapped(one)[1].meaning} for name, one in key.keys.items()}
        return {"type": "object", "properties": inner, "additionalProperties": False}
    if get_origin(kind) is Mapping:
        return {"type": "object", "additionalProperties": _schema(*_unwrapped(get_args(kind)[1]))}
    if get_origin(kind) is tuple:
        least = {} if key.least is None else {"minItems": key.least}
        return {"type": "array", "items": _schema(*_unwrapped(get_args(kind)[0])), **least}
    names = ("minLength", "maxLength") if kind is str else ("minimum", "maximum")
    ends = {name: end for name, end in zip(names, (key.least, key.most), strict=True) if end is not None}
    return {**KINDS[kind][2], **({"enum": list(key.known)} if key.known else {}), **ends}


def _table_schema(kind: type) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    further: Any = False
    for name, one in _keys_of(kind).items():
        about = {"description": meaning} if (meaning := _meaning(kind, one)) else {}
        about |= {"default": one.default} if one.is_said else {}
        if "{" in name:
            further = _schema(one.kind, one.key) | about
        else:
            properties[name] = _schema(one.kind, one.key) | about
    needed = [name for name, one in _keys_of(kind).items() if one.needed]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": further}
