"""Every record that a test prints with `--json` is valid against its schema, and has no key that the schema lacks."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest

from walltime.cli import output
from walltime.cli.records import record_schema, schema_name


@functools.cache
def validator(command: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(record_schema(command, closed=True))


def faults(command: str, record: Mapping[str, Any]) -> list[str]:
    """What the schema of a command finds wrong with a record; of several forms of the record, by the one with the fewest faults."""
    return [f"{'.'.join(map(str, one.absolute_path))}: {one.message[:300]}" for one in _leaves(validator(command).iter_errors(record))]


def _leaves(errors: Any) -> Iterator[jsonschema.ValidationError]:
    for error in errors:
        forms: dict[Any, list[jsonschema.ValidationError]] = {}
        for one in error.context:
            forms.setdefault(one.schema_path[0], []).append(one)
        yield from _leaves(min(forms.values(), key=len)) if forms else [error]


@pytest.fixture(scope="session", autouse=True)
def records_keep_their_schema() -> Iterator[None]:
    """Check each printed record; what is written to files has no name of a schema."""
    write = output.json_text

    def checked(record: Mapping[str, Any]) -> str:
        text, command = write(record), output._running
        if command and record.get("schema") == schema_name(command):
            assert not (found := faults(command, json.loads(text))), "\n".join(found)
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "json_text", checked)
        yield
