"""The table of commands, the only module that names the modules of features, which are imported when a command is called."""

import importlib
import importlib.util
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from walltime.errors import PolicyError

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "First steps": {"demo": "comparison.demo_command", "list": "cli.listing"},
    "Logs": {
        "clean": "preparation.clean_command",
        "convert": "preparation.convert_command",
        "fetch": "preparation.fetch_command",
        "generate": "preparation.generate_command",
        "info": "preparation.info_command",
        "mapping": "preparation.mapping_command",
    },
    "Simulations": {
        "audit": "checking.audit_command",
        "compare": "comparison.compare_command",
        "dialects": "dialects.command",
        "diff": "checking.diff_command",
        "explain": "explanation.command",
        "serve": "serve.command",
        "simulate": "comparison.simulate_command",
    },
    "Estimates and predictions": {
        "estimates": "accuracy.estimates_command",
        "predict": "accuracy.predict_command",
        "suggest": "accuracy.suggest_command",
    },
    "A site and its machine": {
        "calibrate": "whatif.calibrate_command",
        "fairshare": "fairshare.command",
        "infer": "inference.command",
        "report": "weekly_report.command",
        "slurm": "slurm.commands",
        "waste": "usage.command",
        "what-if": "whatif.what_if_command",
    },
    "Many simulations": {
        "benchmark": "benchmark.command",
        "campaign": "campaign.command",
        "learn": "learn_command",
        "paper": "papers.command",
        "search": "tuning.command",
        "tune": "tuning.command",
    },
    "This program": {"cite": "cli.cite", "mcp": "assistant.command", "schema": "cli.schema"},
}
"""The module of each command, by the heading under which help lists it. A module has `app`, or a function named like the command.

`learn_command` is outside its folder, because importing `walltime.learn` registers environments with Gymnasium, which is slow to load.
"""
PARTS: Mapping[str, str] = {
    "calibrate --starts": "slurm.starts.recorded_tables",
    "demo": "explanation",
    "report": "usage.section",
    "simulate --figure": "figures",
}
"""Modules of further features that a command uses for some of its options."""


def module_of(place: str) -> ModuleType | None:
    """Import the module of an entry of the table; None if its feature is not installed."""
    name = f"walltime.{place}"
    feature = f"walltime.{place.partition('.')[0].removesuffix('_command')}"
    try:
        if importlib.util.find_spec(feature) is None:
            return None
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (error.name == feature or (name + ".").startswith(error.name + ".")):
            return None
        raise


def part_of(command: str) -> Any:
    """Import the module of `PARTS` for this use; raises PolicyError if its feature is not installed."""
    module = module_of(PARTS[command])
    if module is None:
        raise PolicyError(f"walltime {command} needs walltime.{PARTS[command]}, which is not installed; install all of walltime")
    return module
