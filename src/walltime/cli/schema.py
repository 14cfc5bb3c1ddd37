"""`walltime schema`: the JSON Schemas of the TOML files, by which editors complete and check them."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from walltime.cli import options as o
from walltime.cli.help import manual

if TYPE_CHECKING:
    from walltime.toml_file import TomlFile

FILES = {
    "machine": ("walltime.machine.machine", "MACHINE_FILE"),
    "plan": ("walltime.campaign.plan", "PLAN_FILE"),
    "mapping": ("walltime.logs.mapping", "MAPPING_FILE"),
    "suite": ("walltime.benchmark.suite", "SUITE_FILE"),
    "order": ("walltime.tuning.order_file", "ORDER_FILE"),
}
"""Where each kind of TOML file is declared."""


def toml_file(name: str) -> TomlFile[Any]:
    """Return the declaration of a kind of file."""
    module, declared = FILES[name]
    kind: TomlFile[Any] = getattr(importlib.import_module(module), declared)
    return kind


@manual(
    "reference/toml-files",
    ("Write the schema of machine files for an editor.", "schema machine > machine.schema.json"),
    ("Print the schema of campaign plans.", "schema plan"),
)
def schema(
    kind: Annotated[
        Literal["machine", "plan", "mapping", "suite", "order"],
        o.argument("The kind of file: machine, plan (of a campaign), mapping (of a table), suite (of the benchmark) or order.", "KIND"),
    ],
) -> None:
    """Print the JSON Schema of a kind of TOML file; editors use it to complete and check such files."""
    typer.echo(json.dumps(toml_file(kind).schema(), indent=2))
