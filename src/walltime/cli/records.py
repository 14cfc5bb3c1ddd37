"""Generate JSON Schemas of the records that commands print with `--json`, from declarations and dataclasses of the features.

Each feature declares its records in `records.toml`. `[commands]` has the version and the type of each command's record, and `[python]` the
modules of dataclasses. Every other table is an object with its keys. Several keys of one type share a line, and a key with `?` may be
missing. `is` names objects and dataclasses whose keys an object has as well, except the fields in `without`.

    [commands]
    diff = { version = 1, record = "Difference" }
    [python]
    Job = "walltime.checking.difference"
    [Difference]
    "log sha256" = "text"
    "jobs first?" = "[Job]"

A type is `text`, `integer`, `number`, `boolean`, `null`, `any`, an object or dataclass, `[T]` (a list), `{T}` (an object with free keys) or
`T | T`. A `number` is null where it is undefined, such as the mean of no jobs. `include` lists features whose types the file uses as well.
"""

import importlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import resources
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from walltime.cli.table import COMMANDS
from walltime.declared import KINDS, bare, keys_of, meaning_of

WORDS: Mapping[str, Mapping[str, Any]] = {
    "text": KINDS[str][2],
    "integer": KINDS[int][2],
    "number": {"type": ["number", "null"]},
    "boolean": KINDS[bool][2],
    "null": {"type": "null"},
    "any": {},
}
"""The types that are not objects, and their schemas."""
COMMON = {"left_out?": "LeftOut | {LeftOut} | {[LeftOutBy]}", "not_modelled?": "{number}"}
"""Keys that every record may have: omitted jobs, possibly by log, and shares of jobs with requests that are not modelled."""
LEFT_OUT = {"share_of_jobs share_of_work": "number", "rules": "[LeftOutBy]"}
LEFT_OUT_BY = {"rule reason": "text", "jobs of_jobs": "integer", "share_of_jobs core_seconds share_of_work": "number"}


@cache
def declared_records() -> Mapping[str, tuple[str, int]]:
    """Return the commands with a record, such as `slurm score`, with the folder that declares it and its version."""
    features = dict.fromkeys(place.partition(".")[0].removesuffix("_command") for places in COMMANDS.values() for place in places.values())
    found = {one: _declared(one) for one in features if _file(one).is_file()}
    return {name: (one, made["version"]) for one, tables in found.items() for name, made in tables["commands"].items()}


def schema_name(command: str) -> str:
    """Return the value of the key `schema` of a command's record, such as `slurm-score/1`."""
    return f"{command.replace(' ', '-')}/{declared_records()[command][1]}"


def record_schema(command: str, closed: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a command's record; `closed`: it allows no further keys, which later releases may add."""
    feature, _ = declared_records()[command]
    made = _Schemas(_declared(feature), closed)
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": schema_name(command), "title": f"walltime {command} --json"}
    common = made.keys(COMMON)
    common["properties"] = {"schema": {"const": schema_name(command)}, **common["properties"]}
    whole = {"type": "object", "required": ["schema"], "properties": common["properties"], **made.whole(command)}
    return about | whole | ({"unevaluatedProperties": False} if closed else {}) | {"$defs": made.objects}


def _file(feature: str) -> Any:
    return resources.files("walltime") / feature / "records.toml"


@cache
def _declared(feature: str) -> Mapping[str, Any]:
    """Return the tables of a feature's file, with the types of the files that it includes."""
    own = tomllib.loads(_file(feature).read_text(encoding="utf-8"))
    whole: dict[str, Any] = {}
    for one in own.pop("include", ()):
        whole |= _declared(one)
    return whole | own | {"python": whole.get("python", {}) | own.get("python", {})}


class _Schemas:
    """The schemas of the types in one file; `objects` are the definitions that they refer to."""

    def __init__(self, tables: Mapping[str, Any], closed: bool):
        self._tables = {"LeftOut": LEFT_OUT, "LeftOutBy": LEFT_OUT_BY, **tables}
        self._closed = closed
        self.objects: dict[str, Any] = {}

    def whole(self, command: str) -> dict[str, Any]:
        """Return the alternatives of a command's record, which stay open because every record has further keys."""
        return {"anyOf": [self.keys({"is": one}) for one in _split(self._tables["commands"][command]["record"])]}

    def value(self, text: str) -> dict[str, Any]:
        """Return the schema of a type."""
        ways = _split(text)
        if len(ways) > 1:
            return {"anyOf": [self.value(one) for one in ways]}
        if text[0] in "[{":
            inner = self.value(text[1:-1])
            return {"type": "array", "items": inner} if text[0] == "[" else {"type": "object", "additionalProperties": inner}
        if text in WORDS:
            return dict(WORDS[text])
        kind = self._python(text)
        return self._reference(text, self._tables[text]) if kind is None else self._kind(kind)

    def keys(self, table: Mapping[str, str]) -> dict[str, Any]:
        """Return the schema of an object with these keys."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        own = {name.removesuffix("?"): text for names, text in table.items() if names not in ("is", "without") for name in names.split()}
        without = [*table.get("without", "").split(), *own]
        for base in table.get("is", "").split():
            kind = self._python(base)
            more = self.keys(self._tables[base]) if kind is None else self._fields(kind, without)
            properties |= more["properties"]
            required += more["required"]
        properties |= {name: self.value(text) for name, text in own.items()}
        required += [name for name in " ".join(one for one in table if one not in ("is", "without")).split() if not name.endswith("?")]
        return {"type": "object", "properties": properties, "required": list(dict.fromkeys(required))}

    def _python(self, name: str) -> Any:
        """Return the dataclass of this name; None if it is a table of the file."""
        module = self._tables["python"].get(name)
        return None if module is None else getattr(importlib.import_module(module), name)

    def _reference(self, name: str, declared: Any) -> dict[str, Any]:
        if name not in self.objects:
            self.objects[name] = {}  # for objects within themselves
            made = self._fields(declared) if isinstance(declared, type) else self.keys(declared)
            self.objects[name] = made | ({"additionalProperties": False} if self._closed else {})
        return {"$ref": f"#/$defs/{name}"}

    def _fields(self, kind: type, without: Sequence[str] = ()) -> dict[str, Any]:
        """Return the schema of a dataclass."""
        hints = get_type_hints(kind)
        meanings = {one.field: meaning_of(kind, one) for one in keys_of(kind).values()}
        about = {name: {"description": text} for name, text in meanings.items() if text}
        names = [one.name for one in fields(kind) if one.name not in without]
        return {"type": "object", "properties": {one: self._kind(hints[one]) | about.get(one, {}) for one in names}, "required": names}

    def _kind(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type of Python."""
        origin, inside = get_origin(kind), get_args(kind)
        if origin in (Union, UnionType):
            return {"anyOf": [self._kind(one) for one in inside]}
        if is_dataclass(kind):
            assert isinstance(kind, type), "annotations are types"
            return self._reference(f"{kind.__module__.removeprefix('walltime.')}.{kind.__name__}", kind)
        if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
            return {"enum": list(inside) or [one.value for one in kind]}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self._kind(inside[1])}
        if isinstance(origin, type) and issubclass(origin, Sequence):
            same = origin is not tuple or inside[-1] is Ellipsis
            return {"type": "array", "items": self._kind(inside[0]) if same else {"anyOf": [self._kind(one) for one in inside]}}
        words = {float: "number", NoneType: "null", Path: "text"}
        return dict(WORDS[words[kind]] if kind in words else KINDS[bare(kind)][2])


def _split(text: str) -> list[str]:
    """Return the alternatives of a type.

    >>> _split("[text | null] | {integer}")
    ['[text | null]', '{integer}']
    """
    ways, depth = [""], 0
    for letter in text:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "|" and depth == 0:
            ways.append("")
        else:
            ways[-1] += letter
    return [one.strip() for one in ways]
