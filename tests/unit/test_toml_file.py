"""TOML files that types declare: what the reader says, what is written, and that the schemas for editors agree with it."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from tests.cli import call
from tests.errors import raises
from walltime.benchmark import SUITES
from walltime.campaign import DIMENSIONS
from walltime.cli.schema import FILES, toml_file
from walltime.declared import KeyFaultError
from walltime.errors import LogError, WorkloadError
from walltime.toml_file import TomlFile, key_tables, parse, to_toml

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = [
    (page.relative_to(DOCS).as_posix(), text)
    for page in sorted(DOCS.rglob("*.md"))
    for text in re.findall(r"^```toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
]
KINDS = {"pool": "machine", "columns": "mapping", "campaign": "plan", "fixed": "plan", "grid": "plan"}
"""By a table that only this kind of file has."""
WHOLE = [(kind, text) for _, text in EXAMPLES for table, kind in KINDS.items() if re.search(rf"^\[+{table}]", text, re.MULTILINE)]


@dataclass(frozen=True)
class Node:
    """A node."""

    name: str
    procs: int
    """of each"""
    label: str = ""

    def __post_init__(self) -> None:
        if self.procs > 100:
            raise WorkloadError("no node has this many")


@dataclass(frozen=True)
class Rack:
    """A rack."""

    nodes: tuple[Node, ...]
    height: float
    places: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"nodes": [{"name": "a"}, {"procs": 2}]},
        {"nodes": [{"name": "a", "proc": 2}], "height": 2},
        {"hight": 2},
        {"nodes": {"name": "a"}},
        {"height": True},
        {"places": [1, "2"]},
        {"places": [2**60]},
        {"nodes": [{"name": "a", "procs": 101}], "height": 1},
    ],
)
def test_parse__says_what_is_wrong_and_where(golden, content):
    with pytest.raises(KeyFaultError) as error:
        parse(content, Rack)
    golden("simulate", str(error.value))


def test_file__that_is_written_is_read_again():
    rack = Rack((Node("a", 1, 'of "B"\\\n'), Node("b", 2)), 2.5, (3, 4))
    assert parse(tomllib.loads(to_toml(rack, {})), Rack) == rack
    assert "label" not in to_toml(Rack((Node("b", 2),), 1.0), {})


def test_file__errors_name_it_in_its_own_class(tmp_path):
    file = TomlFile(Rack, "a rack", "the guide", LogError)
    path = tmp_path / "a.toml"
    for content, code in ((b"= 3", "not_toml"), (b"\xff", "not_toml"), (b"height = 1", "missing_key")):
        path.write_bytes(content)
        with raises(LogError, code, path):
            file.read(path)
    with raises(LogError, "unreadable_file"):
        file.read(tmp_path / "none.toml")
    path.write_text("height = 1\nnodes = []")
    with raises(LogError, "missing_key", "colour"):
        file.read(path, {"colour": "to be seen"})


def test_key_tables__are_of_the_types():
    tables = key_tables(Rack)
    assert "| `height` | a number | required |  |" in tables
    assert "`[[nodes]]`: A node." in tables
    assert "| `procs` | a whole number | required | of each |" in tables
    assert '| `label` | a string | `""` |  |' in tables


@pytest.mark.parametrize(("kind", "text"), WHOLE, ids=[f"{kind}{k}" for k, (kind, _) in enumerate(WHOLE)])
def test_examples_of_the_pages__are_valid(kind, text):
    file = toml_file(kind)
    jsonschema.validate(json.loads(json.dumps(tomllib.loads(text), default=str)), file.schema())
    assert file.value(file.content(text, "page"), "page")


def test_examples__are_of_every_kind_but_suites():
    assert {kind for kind, _ in WHOLE} == {"machine", "mapping", "plan"}
    schema = toml_file("suite").schema()
    for name in SUITES:
        jsonschema.validate(tomllib.loads((files("walltime.benchmark") / "suites" / f"{name}.toml").read_text()), schema)


@pytest.mark.parametrize(
    ("kind", "text", "wrong"),
    [
        ("machine", '[[pool]]\nname = "a"\nnodes = 0\nprocs = 1\n[[partition]]\nname = "b"\npools = ["a"]', "0 is less than"),
        ("machine", '[[pool]]\nname = "a"\nnodes = 1\n[[partition]]\nname = "b"\npools = ["a"]', "'procs' is a required"),
        ("plan", "[grid]\npolicy = 'easy'", "'easy' is not of type 'array'"),
        ("plan", "[fixed]\npolcy = 'easy'", "'polcy' was unexpected"),
        ("mapping", "[columns]\nsubmit = {unit = 'y'}", "'y' is not one of"),
    ],
)
def test_schema__refuses_what_the_reader_refuses(kind, text, wrong):
    file = toml_file(kind)
    with pytest.raises(jsonschema.ValidationError, match=wrong):
        jsonschema.validate(tomllib.loads(text), file.schema())
    with pytest.raises(file.error):
        file.value(file.content(text, "file"), "file")


@pytest.mark.slow
def test_command__prints_the_schema(capsys):
    for kind in FILES:
        status, out, err = call(capsys, "schema", kind)
        assert (status, err) == (0, "")
        jsonschema.Draft202012Validator.check_schema(json.loads(out))
    fixed = toml_file("plan").schema()["properties"]["fixed"]["properties"]
    assert list(fixed) == list(DIMENSIONS)
    assert all(one["description"] for one in fixed.values())
