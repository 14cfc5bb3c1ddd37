"""Read, check, write and document TOML files whose keys a dataclass declares.

A field without a default is a required key, and the text below a field describes it. Its type defines the valid values: str, int, float,
bool, datetime, a Literal of words, or a tuple of these. A Mapping is a table of free keys, a dataclass a table, and a tuple of dataclasses
stands for tables written [[...]]. Types may be joined by `|`. A `Field` in the annotation adds restrictions.

>>> @dataclass(frozen=True)
... class Pool:
...     nodes: int
...     procs: int
...     gpus: int = 0
>>> parse({"nodes": 4, "procs": 8}, Pool)
Pool(nodes=4, procs=8, gpus=0)
>>> parse({"nodes": 4, "proc": 8}, Pool)
Traceback (most recent call last):
walltime.declared.KeyFaultError: unknown key 'proc'. Did you mean 'procs'? Valid options: nodes, procs, gpus
"""

import inspect
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args, get_origin

from walltime.declared import (
    KINDS,
    Field,
    KeyFaultError,
    alternatives,
    bare,
    described,
    holds,
    is_table,
    is_within,
    keys_of,
    meaning_of,
    unwrapped,
    valid_options,
)
from walltime.errors import WalltimeError
from walltime.permission import check_data
from walltime.wording import printable, shown

T = TypeVar("T")
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class TomlFile(Generic[T]):
    """A kind of file: the dataclass that declares its keys, its name in messages, the page that describes it, and its class of errors.

    `words`: a function of the content that returns the words to insert into keys whose names depend on the file.
    """

    kind: type[T]
    title: str
    see: str
    error: type[WalltimeError]
    words: Callable[[Mapping[str, Any]], Mapping[str, str]] = lambda content: {}

    def read(self, path: str | os.PathLike[str], needed: Mapping[str, str] = NOTHING) -> T:
        """Return the object that the file describes; raises `error` for an unreadable file or an invalid key.

        `needed`: additional required keys, with their purpose.
        """
        return self.value(self.content(self.text(path), printable(path)), printable(path), needed)

    def text(self, path: str | os.PathLike[str]) -> str:
        """Return the text of the file."""
        try:
            return Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as fault:
            raise self.error(f"{printable(path)}: not a valid TOML file (not UTF-8); see {self.see}", "not_toml") from fault
        except (OSError, ValueError) as fault:  # a name with a NUL byte is a ValueError
            reason = (getattr(fault, "strerror", None) or str(fault)).lower()
            raise self.error(f"{printable(path)}: cannot be read ({reason}); give {self.title}", "unreadable_file") from fault

    def content(self, text: str, where: str) -> dict[str, Any]:
        """Return the content of a TOML text; `where`: the name of the file in errors."""
        try:
            return tomllib.loads(text)
        except (ValueError, RecursionError) as fault:  # also numbers of thousands of digits, and lists thousands deep
            why = "nested too deeply" if isinstance(fault, RecursionError) else " ".join(str(fault).split())
            raise self.error(f"{where}: not a valid TOML file ({why}); see {self.see}", "not_toml") from fault

    def value(self, content: Mapping[str, Any], where: str, needed: Mapping[str, str] = NOTHING, checked: bool = True) -> T:
        """Return the object that this content describes; raises NotRunError if it names a Python file that is not allowed to run.

        `checked`: whether to check for such files, which is unnecessary for content that runs no code or has already been checked.
        """
        if checked:
            check_data(content, where)
        try:
            return parse(content, self.kind, self.words(content), needed)
        except WalltimeError as fault:
            raise self.error(f"{where}: {fault}") from fault

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of these files, for editors."""
        about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"walltime: {self.title}"}
        return about | _schema(self.kind, Field())


def parse(content: Mapping[str, Any], kind: type[T], words: Mapping[str, str] = NOTHING, needed: Mapping[str, str] = NOTHING) -> T:
    """Return the object that the content of a file describes; `words`, `needed`: as in `TomlFile`.

    Raises KeyFaultError for the first unknown or invalid key, otherwise for all missing keys, and the errors of the dataclass.
    """
    reading = _Reading(words)
    value: Any = None
    with suppress(_Incomplete):
        value = reading.table(content, kind, "")
    missing = [*reading.missing, *(f"{key} ({what})" for key, what in needed.items() if key not in content)]
    if missing:
        raise KeyFaultError(f"missing: {', '.join(missing)}; add {'it' if len(missing) == 1 else 'them'}", "missing_key")
    parsed: T = value
    return parsed


def to_toml(value: Any, words: Mapping[str, str]) -> str:
    """Return the text of a file that describes this object; keys with default values are omitted."""
    return "\n".join(_lines(value, words)).lstrip("\n") + "\n"


def key_tables(kind: type, title: str = "") -> str:
    """Describe the keys of a kind of file in Markdown: a table for the file, and one for each table in it."""
    lines = [f"`{title}`: {inspect.cleandoc(kind.__doc__ or '').splitlines()[0]}", ""] if title else []
    lines += ["| key | holds | default | meaning |", "| --- | --- | --- | --- |"]
    inside: dict[Any, str] = {}
    for name, one in keys_of(kind).items():
        usual = "required" if one.needed else f"`{_toml(one.default)}`" if one.has_shown_default else ""
        lines.append(f"| `{name}` | {described(one.kind, one.key)} | {usual} | {meaning_of(kind, one)} |")
        for table in _tables_in(one.kind):
            several = {tuple: f"[[{name}]]", Mapping: f"[{name}] NAME"}.get(get_origin(one.kind), f"[{name}]")
            inside[table] = key_tables(table, several)
    return "\n\n".join(["\n".join(lines), *inside.values()])


class _Incomplete(Exception):  # noqa: N818 (it never leaves this module)
    """A table lacks required keys, which have been recorded."""


class _Reading:
    """Read the content of a file, and continue after missing keys to report all of them."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words
        self.missing: list[str] = []

    def table(self, content: Any, kind: Any, where: str) -> Any:
        """Return the object of a dataclass that a table describes."""
        keys = {name.format_map(self.words): one for name, one in keys_of(kind).items()}
        lacking = [f"[[{name}]]" if _tables_in(one.kind) else name for name, one in keys.items() if one.needed and name not in content]
        self.missing += [f"{name} in {where}" if where else name for name in lacking]
        given = self.entries(content, {name: (one.kind, one.key) for name, one in keys.items()}, where)
        if lacking:
            raise _Incomplete
        try:
            return kind(**{keys[name].field: value for name, value in given.items()})
        except WalltimeError as fault:
            raise _fault(where, str(fault), fault.code) from fault

    def entries(self, content: Mapping[str, Any], keys: Mapping[str, tuple[Any, Field]], where: str) -> dict[str, Any]:
        """Return the values of the given keys; raises KeyFaultError for an unknown key."""
        for name in content:
            if name not in keys:
                what, inside = "table" if isinstance(content[name], Mapping) else "key", f" in {where}" if where else ""
                raise KeyFaultError(f"unknown {what} {shown(name)}{inside}{valid_options(name, keys)}", "unknown_key")
        return dict(zip(content, self.values([(value, *keys[name], _below(where, name)) for name, value in content.items()]), strict=True))

    def values(self, given: Sequence[tuple[Any, Any, Field, str]]) -> list[Any]:
        """Return several values; each item contains the arguments of `value`. Missing keys are recorded for all of them."""
        values = []
        for one in given:
            with suppress(_Incomplete):
                values.append(self.value(*one))
        if len(values) < len(given):
            raise _Incomplete
        return values

    def value(self, value: Any, kind: Any, key: Field, where: str) -> Any:
        """Return the value of a key after checking it against its type and Field."""
        if isinstance(value, str) and value in key.literals:
            return key.literals[value]
        accepted = kind if key.accepts is None else key.accepts
        inner = next((one for one in alternatives(accepted) if holds(bare(one), value)), None)
        if inner is None or (inner is accepted and not is_within(value, key)):
            label = described(kind, key)
            written = {"a table": f", written [{where}]", "tables": f", written [[{where}]]"}.get(label, "") if where.isidentifier() else ""
            raise _fault(where, f"must be {label}{written}, not {shown(value)}", "wrong_value")
        if isinstance(value, str) and key.known and value not in key.known:
            raise _fault(where, f"unknown value {shown(value)}{valid_options(value, key.known)}", "unknown_value")
        typed = self.typed(value, inner, key, where) if inner is accepted else self.value(value, *unwrapped(inner), where)
        try:
            return typed if key.read is None else key.read(typed)
        except WalltimeError as fault:
            raise _fault(where, str(fault), fault.code) from fault

    def typed(self, value: Any, kind: Any, key: Field, where: str) -> Any:
        """Convert a value to a type, including the elements of lists and tables."""
        if is_dataclass(kind):
            return self.table(value, kind, where)
        if key.keys:
            return self.entries(value, {name: unwrapped(one) for name, one in key.keys.items()}, where)
        if get_origin(kind) is tuple:
            element = unwrapped(get_args(kind)[0])
            places = [_numbered(where, number, one) if is_table(element[0]) else where for number, one in enumerate(value, 1)]
            return tuple(self.values([(one, *element, place) for one, place in zip(value, places, strict=True)]))
        if get_origin(kind) is Mapping:
            element = unwrapped(get_args(kind)[1])
            return dict(zip(value, self.values([(one, *element, _below(where, name)) for name, one in value.items()]), strict=True))
        return float(value) if kind is float else value


def _fault(where: str, text: str, code: str) -> KeyFaultError:
    between = " " if text.startswith(("must ", "names ", "needs ", "is ")) else ": " if where else ""
    return KeyFaultError(f"{where}{between}{text}", code)


def _tables_in(kind: Any) -> list[Any]:
    """Return the dataclasses of the tables that a key may contain."""
    inner = [unwrapped(one)[0] for one in alternatives(kind)]
    inner += [unwrapped(get_args(one)[-2 if get_origin(one) is tuple else -1])[0] for one in inner if get_args(one)]
    return [one for part in inner for one in alternatives(part) if is_dataclass(one)]


def _below(where: str, name: str) -> str:
    """Return the path of a key in a table, for messages."""
    name = printable(name)
    return name if not where else f"{where}: {name}" if " " in where else f"{where}.{name}"


def _numbered(where: str, number: int, table: Any) -> str:
    """Return the path of one of several tables, with its name if it has one, for messages."""
    name = table.get("name") if isinstance(table, Mapping) else None
    return f"{where} {name!r}" if isinstance(name, str) and name.isprintable() else f"{where} number {number}"


def _lines(value: Any, words: Mapping[str, str], within: bool = False) -> list[str]:
    """Return the lines of a table, single values first; `within`: whether it is one of several, which have their free keys on one line."""
    lines, tables = [], []
    kind: Any = type(value)
    for name, one in keys_of(kind).items():
        name, now = name.format_map(words), getattr(value, one.field)
        if now == one.default or now is None:
            continue
        if isinstance(now, Mapping) and not within:
            tables += ["", f"[{name}]", *(f"{_toml_key(key)} = {_toml(text)}" for key, text in now.items())]
        elif is_dataclass(now):
            tables += ["", f"[{name}]", *_lines(now, words)]
        elif _tables_in(one.kind):
            tables += [line for table in now for line in ("", f"[[{name}]]", *_lines(table, words, within=True))]
        else:
            lines.append(f"{name} = {_toml(now)}")
    return lines + tables


def _toml_key(text: str) -> str:
    return text if text.isascii() and text.isidentifier() else _toml(text)


def _toml(value: Any) -> str:
    """Return a value, a list or a table on one line of TOML."""
    if is_dataclass(value):
        return f"{{ {', '.join(_lines(value, NOTHING))} }}"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(one)}' for key, one in value.items())} }}"
    if isinstance(value, str):
        escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else "\\" + c if c in '"\\' else c for c in value)
        return f'"{escaped}"'
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_toml, value))}]"
    return value.isoformat() if isinstance(value, datetime) else str(value).lower() if isinstance(value, bool) else str(value)


def _schema(kind: Any, key: Field) -> dict[str, Any]:
    """Return the JSON Schema of a type with its Field."""
    kind = kind if key.accepts is None else key.accepts
    ways = alternatives(kind)
    if key.literals:
        return {"anyOf": [_schema(kind, replace(key, literals={})), *({"const": word} for word in key.literals)]}
    if len(ways) > 1:
        return {"anyOf": [_schema(*unwrapped(one)) for one in ways]}
    if is_dataclass(kind):
        return _table_schema(kind)  # type: ignore[arg-type]
    if key.keys:
        inner = {name: _schema(*unwrapped(one)) | {"description": unwrapped(one)[1].meaning} for name, one in key.keys.items()}
        return {"type": "object", "properties": inner, "additionalProperties": False}
    if get_origin(kind) is Mapping:
        return {"type": "object", "additionalProperties": _schema(*unwrapped(get_args(kind)[1]))}
    if get_origin(kind) is tuple:
        least = {} if key.least is None else {"minItems": key.least}
        return {"type": "array", "items": _schema(*unwrapped(get_args(kind)[0])), **least}
    names = ("minLength", "maxLength") if kind is str else ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    ends = {name: end for name, end in zip(names, (key.least, key.most, key.above, key.below), strict=False) if end is not None}
    return {**KINDS[kind][2], **({"enum": list(key.known)} if key.known else {}), **ends}


def _table_schema(kind: type) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    further: Any = False
    for name, one in keys_of(kind).items():
        about = {"description": meaning} if (meaning := meaning_of(kind, one)) else {}
        about |= {"default": one.default} if one.has_shown_default else {}
        if "{" in name:
            further = _schema(one.kind, one.key) | about
        else:
            properties[name] = _schema(one.kind, one.key) | about
    needed = [name for name, one in keys_of(kind).items() if one.needed]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": further}
