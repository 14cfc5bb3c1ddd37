"""The JSON Schemas of records: one for each command with `--json`, valid, and stricter than any record that deviates."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.cli import call, one_line
from tests.json_records import faults
from walltime.cli import output
from walltime.cli.main import whole_command
from walltime.cli.records import declared_records, record_schema, schema_name


def with_json(command: Any, *path: str) -> Iterator[str]:
    for name, one in getattr(command, "commands", {}).items():
        yield from with_json(one, *path, name)
    if any("--json" in one.opts for one in command.params):
        yield " ".join(path)


def test_commands__have_a_record_each():
    assert sorted(declared_records()) == sorted(with_json(whole_command()))


@pytest.mark.parametrize("command", declared_records())
@pytest.mark.slow
def test_schemas__are_valid(command):
    for closed in (False, True):
        schema = record_schema(command, closed)
        jsonschema.Draft202012Validator.check_schema(schema)
        used = set(json.dumps(schema).split('"#/$defs/')[1:])
        assert {one.partition('"')[0] for one in used} == set(schema["$defs"])


def test_versions__change_with_the_schemas(golden):
    """If a key is gone or has another type, raise the record's version; further keys leave it."""
    digests = {one: hashlib.sha256(json.dumps(record_schema(one)).encode()).hexdigest()[:12] for one in declared_records()}
    golden("schema", [f"{schema_name(one)} {digest}" for one, digest in digests.items()])


RECORD = {"schema": "slurm-cluster-command/1", "command": "sinfo", "version": "1"}


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, []),
        ({"command": 1}, ["command: 1 is not of type 'string'"]),
        ({"schema": "compare/1"}, ["schema: 'slurm-cluster-command/1' was expected"]),
        ({"extra": 1}, [": Unevaluated properties are not allowed ('extra' was unexpected)"]),
    ],
)
def test_faults__are_found(change, wrong):
    assert faults("slurm cluster-command", RECORD | change)[:1] == wrong
    assert faults("slurm cluster-command", {"schema": RECORD["schema"], "version": "1"})[0] == ": 'command' is a required property"


def test_schemas__allow_keys_of_later_releases():
    jsonschema.validate(RECORD | {"extra": 1}, record_schema("slurm cluster-command"))


def test_numbers__are_null_where_undefined():
    schema = record_schema("simulate")["anyOf"][0]["properties"]
    assert schema["mean_wait"]["type"] == ["number", "null"]
    assert schema["mean_wait"]["description"]
    assert schema["jobs"]["type"] == "integer"


def test_output__of_another_shape_fails_the_suite(capsys, monkeypatch):
    monkeypatch.setattr("walltime.provenance.version", lambda: 1)
    with pytest.raises(AssertionError, match="version: 1 is not of type 'string'"):
        call(capsys, "slurm", "cluster-command", "--json")


def test_schema__lists_and_prints(capsys):
    _, out, _ = call(capsys, "schema", "--json")
    listed = json.loads(out)
    assert {one["command"] for one in listed["commands"]} == set(declared_records())
    assert call(capsys, "schema", "slurm", "score")[1] == call(capsys, "schema", "--json", "slurm", "score")[1]
    assert json.loads(call(capsys, "schema", "slurm", "score")[1]) == record_schema("slurm score")
    assert "'comprae'. Did you mean 'compare'?" in one_line(*call(capsys, "schema", "comprae"))


def test_records__name_their_schema(capsys):
    assert json.loads(call(capsys, "list", "--json")[1])["schema"] == "list/1"
    assert json.loads(call(capsys, "slurm", "cluster-command", "--json")[1])["schema"] == "slurm-cluster-command/1"
    assert output._running == "slurm cluster-command"
