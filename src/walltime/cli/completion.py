"""Shell completion of options with specifications: names, options and values from their registries."""

import contextlib
import importlib
import inspect
import io
import os
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, get_args

import typer

from walltime.errors import PolicyError

COMPLETED = {
    "--backfill-order": "walltime.policy.registry:ORDERS",
    "--predictions-for": "walltime.predictors.prediction:PREDICTION_USES",
    "--by": "walltime.schedule.groups:GROUPED",
    "--change": "walltime.whatif.changes:complete_change",
    "--correction": "walltime.predictors.prediction:CORRECTIONS",
    "--dialect": "walltime.policy.dialect:DIALECTS",
    "--ends": "walltime.accuracy.predict_command:ENDS",
    "--estimates": "walltime.estimates.registry:ESTIMATES",
    "--order": "walltime.policy.registry:ORDERS",
    "--policy": "walltime.policy.registry:POLICIES",
    "--predictor": "walltime.predictors.registry:PREDICTORS",
    "--item": "walltime.papers.command:complete_item",
    "--mapping": "walltime.cli.listing:complete_format",
    "--metric": "walltime.cli.listing:complete_metric",
    "--optimiser": "walltime.tuning.search:Optimiser",
    "--pivot": "walltime.campaign.cell:DIMENSIONS",
    "--reward": "walltime.learn.batch:REWARDS",
    "--score": "walltime.policy.formulas:SCORES",
    "--schedule-mapping": "walltime.cli.listing:complete_format",
    "--size": "walltime.report.figure_files:WIDTHS",
    "--subject": "walltime.papers.command:complete_subject",
    "--time-zone": "walltime.cli.listing:complete_zone",
    "--trim": "walltime.cli.listing:complete_trim",
    "--warm-up": "walltime.policy.registry:POLICIES",
    "--where": "walltime.tuning.fitting:Where",
    "MODEL": "walltime.workload.models:MODELS",
    "NAME=FILE": "walltime.report.figure_files:complete_figure",
    "SUITE": "walltime.benchmark.suite:SUITES",
    "cite": "walltime.cli.cite:complete_entry",
    "list": "walltime.cli.listing:complete_name",
    "PAPER": "walltime.papers.printed:complete_paper",
    "schema": "walltime.cli.schema:complete_name",
    "fetch": "walltime.preparation.fetch_command:complete_name",
}
"""The registry or collection with the valid names of each option or argument, or a function that returns them, imported on first use.

A function takes the text typed and, if the names depend on other arguments, their values by name.
"""
ENDS_WORD = re.compile(r"[:=]+")
"""Bash splits words at these characters, and completes only the text after the last one."""


def completion_of(option: str) -> Callable[[typer.Context, str], list[str]] | None:
    """Return the completion function for an option's values; None if they have no names."""
    if option not in COMPLETED:
        return None

    def completed(context: typer.Context, incomplete: str) -> list[str]:
        missing = [
            one.name for one in context.command.params if one.name and context.params.get(one.name) is None and one.opts == [one.name]
        ]
        given = context.params | dict(zip(missing, context.args, strict=False))  # the parser leaves arguments if an option has no value yet
        return _texts(option, incomplete, given)

    return completed


def registry_of(option: str) -> Any:
    """Return the registry or collection with the valid names of an option, or a function that completes its values."""
    module, _, name = COMPLETED[option].partition(":")
    return getattr(importlib.import_module(module), name)


def _texts(option: str, incomplete: str, given: Mapping[str, Any]) -> list[str]:
    from walltime.specification import Family, complete, options_of

    family = registry_of(option)
    if not isinstance(family, Family):
        if callable(family) and not get_args(family):
            try:
                family = family(*(incomplete, given)[: len(inspect.signature(family).parameters)])
            except PolicyError:  # of another argument
                return []
        names = get_args(family) or family
        return [name for name in names if name.startswith(incomplete)]
    if option != "--policy":
        return complete(family, incomplete)
    from walltime.predictors import Prediction
    from walltime.simulation.specification import ALIASES

    return [*complete(family, incomplete, options_of(Prediction)), *(name for name in ALIASES if name.startswith(incomplete))]


def answer_bash(run: Callable[[list[str]], int]) -> int:
    """Print completions of a word in bash, which replaces only the part after the last colon or equals sign."""
    word = join_words(os.environ)
    value = word.partition("=")[2] if word.startswith("--") else word
    kept = max((match.end() for match in ENDS_WORD.finditer(value)), default=0)
    with contextlib.redirect_stdout(io.StringIO()) as answers:
        try:
            status = run([])
        except SystemExit as end:
            status = int(end.code or 0)
    for text in answers.getvalue().splitlines():
        print(text[kept:])
    return status


def join_words(environment: MutableMapping[str, str]) -> str:
    """Join the words that bash has split at colons and equals signs in its completion variables; return the last word.

    >>> asked = {"COMP_WORDS": "walltime simulate log --policy easy : or".replace(" ", chr(10)), "COMP_CWORD": "6"}
    >>> join_words(asked), asked["COMP_CWORD"]
    ('easy:or', '4')
    """
    words, at = environment.get("COMP_WORDS", "").split("\n"), environment.get("COMP_CWORD", "")
    if not at.isdecimal():
        return ""
    joined: list[str] = []
    glued = False  # whether the next word continues the last one
    for number, word in enumerate(words[: int(at) + 1]):
        splits = ENDS_WORD.fullmatch(word) is not None
        if joined and number > 1 and (splits or (glued and word)):
            joined[-1] += word
        else:
            joined.append(word)
        glued = splits
    environment.update({"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(len(joined) - 1)})
    return joined[-1]
