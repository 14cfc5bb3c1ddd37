"""`walltime schema`: the JSON Schemas of the TOML files, by which editors complete and check them."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

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
    """The declaration of a kind of file."""
    module, declared = FILES[name]
    kind: TomlFile[Any] = getattr(importlib.import_module(module), declared)
    return kind


def schema(
    kind: Annotated[
        Literal["machine", "plan", "mapping", "suite", "order"],
        typer.Argument(help="A machine's file, a campaign's plan, a table's mapping, a benchmark suite, a search's order."),
    ],
) -> None:
    """Print the JSON Schema of a kind of TOML file, by which editors complete and check it."""
    typer.echo(json.dumps(toml_file(kind).schema(), indent=2))
