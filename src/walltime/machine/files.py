"""Machines as files: machine.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from walltime.errors import LogError
from walltime.machine.machine import Machine
from walltime.toml_file import NOTHING, TomlFile, to_toml
from walltime.wording import printable


def _words(content: Mapping[str, Any]) -> dict[str, str]:
    second = content.get("second")
    return {"second": second if isinstance(second, str) else "gpus"}


MACHINE_FILE = TomlFile(Machine, "a file like machine.toml", "the guide on machines", LogError, _words)


def read_machine(path: str | os.PathLike[str], needed: Mapping[str, str] = NOTHING) -> Machine:
    """The machine that a file like machine.toml describes; raises LogError, in one line, for a file that cannot be read or used.

    `needed`: keys that it must have besides those that every machine has, and what they are for.
    """
    machine = MACHINE_FILE.read(path, needed)
    if machine.eligible is None:
        return machine
    if Path(machine.eligible).is_absolute() or ".." in Path(machine.eligible).parts or "\0" in machine.eligible:
        raise LogError(
            f"{printable(path)}: eligible must be a table in the folder of this file or below it, without '..' or a leading '/'",
            "file_outside_folder",
        )
    return replace(machine, eligible=os.fspath(Path(path).parent / machine.eligible))


def parse_machine(text: str, where: str, checked: bool = True) -> Machine:
    """The machine of a file with this text, named `where` in errors; raises LogError.

    `checked`: whether its texts may name only Python files that may run, as in `TomlFile.value`.
    """
    return MACHINE_FILE.value(MACHINE_FILE.content(text, where), where, checked=checked)


def write_machine(machine: Machine) -> str:
    """The text of a file that describes this machine."""
    return to_toml(machine, {"second": machine.second})
