"""`walltime schema`: print the JSON Schemas of the `--json` output and of the TOML files."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.completion import completion_of
from walltime.cli.help import manual
from walltime.cli.output import Output
from walltime.declared import valid_options
from walltime.errors import PolicyError
from walltime.tables import Table
from walltime.wording import shown

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
    "reference/files",
    ("Write the schema of machine files for an editor.", "schema machine > machine.schema.json"),
    ("Print the schema of the JSON that a command prints.", "schema compare"),
)
def schema(
    name: Annotated[
        list[str] | None,
        o.argument(
            "A command with --json, such as compare or slurm score, or a kind of TOML file: machine, plan (of a campaign), mapping (of a "
            "table), suite (of the benchmark) or order. Without it, list all.",
            "NAME",
            autocompletion=completion_of("schema"),
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Print the JSON Schema of the record that a command prints with --json, or of a kind of TOML file."""
    from walltime.cli.records import declared_records, record_schema, schema_name

    known = declared_records()
    if not name:
        rows = [[one, schema_name(one)] for one in known]
        record = {"commands": [{"command": one, "schema": text} for one, text in rows], "files": list(FILES)}
        output.show(record, [Table(["command", "schema"], rows, texts=-1), f"Kinds of TOML files: {', '.join(FILES)}"])
        return
    wanted = " ".join(name)
    if wanted not in known and wanted not in FILES:
        raise PolicyError(f"there is no schema of {shown(wanted)}{valid_options(wanted, (*known, *FILES))}", "unknown_name")
    typer.echo(json.dumps(toml_file(wanted).schema() if wanted in FILES else record_schema(wanted), indent=2))


def complete_name(incomplete: str) -> list[str]:
    """Return the names of schemas that begin with this text; for names of two words, the first word."""
    from walltime.cli.records import declared_records

    names = dict.fromkeys(name.partition(" ")[0] for name in (*declared_records(), *FILES))
    return [name for name in names if name.startswith(incomplete)]
