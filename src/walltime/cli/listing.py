"""`walltime list`: list the valid names of options and arguments, with their own options, from the registries."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args
from zoneinfo import available_timezones

from walltime.cli import options as o
from walltime.cli.completion import completion_of, registry_of
from walltime.cli.help import manual
from walltime.cli.output import Output
from walltime.declared import keys_of, meaning_of, nearest
from walltime.errors import PolicyError
from walltime.plugins.parts import GROUPS, installed
from walltime.tables import Facts, Table
from walltime.wording import counted, shown

Kind = Literal["policies", "orders", "predictors", "estimates", "models", "metrics", "trims", "formats", "logs", "dialects"]
TAKEN_BY = {
    "policies": "--policy",
    "orders": "--order",
    "predictors": "--predictor",
    "estimates": "--estimates",
    "models": "MODEL",
    "dialects": "--dialect",
}
"""The option or argument that accepts the names of each kind, which also identifies their registry."""
WITHOUT_OPTIONS = {"metrics": "--metric", "trims": "--trim", "formats": "--mapping", "logs": "LOG"}
"""The same for kinds whose names have no options."""


@manual(
    "reference/specifications",
    ("List the scheduling policies, one line each.", "list policies"),
    ("Show the options of one policy, with values and defaults.", "list policies easy"),
)
def list(  # noqa: A001 (the command's name)
    kind: Annotated[Kind | None, o.argument(f"The names to list: {', '.join(get_args(Kind))}.", "KIND")] = None,
    name: Annotated[
        str | None, o.argument("The name to show in detail; without it, list all names.", "NAME", autocompletion=completion_of("list"))
    ] = None,
    *,
    output: Output,
) -> None:
    """List the names of policies, orders, predictors, models, formats and other kinds, or show one in detail."""
    if kind is None:
        listed = [{"kind": one, "taken_by": (TAKEN_BY | WITHOUT_OPTIONS)[one]} for one in get_args(Kind)]
        rows = [[one["kind"], one["taken_by"]] for one in listed]
        output.show({"kinds": listed}, [Table(["kind", "given as"], rows, texts=-1), "To list the names of a kind: walltime list KIND"])
        return
    names = _names(kind)
    if name is None:
        listed = [{"name": one, "about": record["about"]} for one, record in names.items()]
        rows = [[one["name"], _unmarked(one["about"])] for one in listed]
        more = "" if kind in WITHOUT_OPTIONS else f"To see the options of one: walltime list {kind} NAME"
        output.show(
            {"kind": kind, "names": listed}, [Table(["name", "description"], rows, kind.capitalize(), texts=-1), *([more] if more else [])]
        )
        return
    if name not in names:
        raise PolicyError(
            f"there is no {shown(name)} among the {kind}{nearest(name, names) or '.'} Valid names: {', '.join(names)}", "unknown_name"
        )
    record = {"kind": kind, "name": name, **names[name]}
    blocks: Any = [f"{name}: {_unmarked(record['about'])}"]
    if options := record.get("options"):
        rows = [[one["name"], one["value"], one["default"] or "required", _unmarked(one["meaning"])] for one in options]
        blocks.append(Table(["option", "value", "default", "description"], rows, texts=-1))
        blocks.append(f"Spelling: {name}:option=value,option=value")
    blocks += [f"{name}:{preset} is {name}:{text}" for preset, text in record.get("presets", {}).items()]
    if facts := record.get("facts"):
        blocks.append(Facts("", [(key, value, "") for key, value in facts.items()]))
    output.show(record, blocks)


def _unmarked(text: str) -> str:
    """Return a text for the terminal, with quotation marks instead of Markdown's backticks."""
    return text.replace("`", "'")


def about(form: Any) -> str:
    """Return the sentence that describes a name of a registry."""
    kind = form.loaded if isinstance(form.loaded, type) else type(form.loaded)
    return form.meaning or " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())


def _names(kind: str) -> dict[str, dict[str, Any]]:
    """Return the names of a kind with their descriptions, including the names from installed packages."""
    names = {"metrics": _metrics, "trims": _trims, "formats": _formats, "logs": _logs}[kind]() if kind in WITHOUT_OPTIONS else _forms(kind)
    for one in installed(kind).values() if kind in GROUPS else ():
        names.setdefault(one.name, {"about": f"of the installed package {one.dist.name if one.dist else one.value}"})
    return names


def complete_name(_: str, given: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the given kind."""
    return [*_names(given["kind"])] if given["kind"] in get_args(Kind) else []


def _forms(kind: str) -> dict[str, dict[str, Any]]:
    """Return the names of a registry, each with its options and presets."""
    from walltime.specification import describe_value, presets_of, spell

    def spelled(form: Any, values: Mapping[str, Any]) -> str:
        return ",".join(f"{key}={spell(values[one.field], one)}" for key, one in form.keys.items() if one.field in values)

    names = {}
    for name, variant in registry_of(TAKEN_BY[kind]).variants.items():
        loaded, options = variant.loaded if isinstance(variant.loaded, type) else type(variant.loaded), []
        for key, one in variant.keys.items():
            usual = None if one.needed else spell(variant.start.get(one.field, getattr(one.key, "default", one.default)), one) or "none"
            options.append({"name": key, "value": describe_value(one), "default": usual, "meaning": meaning_of(loaded, one)})
        presets = {preset: spelled(variant, values) for preset, values in presets_of(variant.loaded, variant.keys).items()}
        names[name] = {"about": about(variant), "options": options, "presets": presets}
    return names


def complete_metric(_: str) -> Sequence[str]:
    """Return the names of metrics."""
    return [*_metrics()]


def complete_trim(_: str) -> Sequence[str]:
    """Return the names of trims; for a trim with a number, only the part before the number."""
    return ["".join(name.partition(":")[:2]) for name in _trims()]


def complete_format(incomplete: str) -> Sequence[str]:
    """Return the names of formats; none for an empty text, so that the shell completes file names."""
    return [*_formats()] if incomplete else []


def complete_zone(_: str) -> Sequence[str]:
    """Return the names of time zones."""
    return sorted(available_timezones())


def _metrics() -> dict[str, dict[str, Any]]:
    from walltime.metrics import FURTHER, Summary
    from walltime.metrics.summary import averages

    units = averages()
    names = {
        name: {"about": meaning_of(Summary, one), "facts": {"unit": units[name].unit or "none"}} for name, one in keys_of(Summary).items()
    }
    return names | {name: {"about": one.meaning, "facts": {"unit": one.unit or "none"}} for name, one in FURTHER.items()}


def _trims() -> dict[str, dict[str, Any]]:
    return {
        "none": {"about": "all jobs"},
        "tsafrir06": {"about": "all but the first 1 % of jobs to end, and the jobs that end after the last arrival"},
        "steady": {"about": "like tsafrir06, but all jobs if tsafrir06 would leave out over a tenth of them"},
        "after:7": {"about": "the jobs submitted after the first 7 days, or any other number of days"},
        "last:0.3": {"about": "the last 30 % of the jobs, or any other share"},
    }


def _formats() -> dict[str, dict[str, Any]]:
    from walltime.logs.catalogue import shipped
    from walltime.logs.formats import FORMATS

    names = {one.name: {"about": f"{one.title}; recognised without an option"} for one in FORMATS}
    return names | {name: {"about": one.about.title if one.about else "a mapping"} for name, one in shipped().items()}


def _logs() -> dict[str, dict[str, Any]]:
    from walltime.logs.catalogue import CATALOGUE, log_folder
    from walltime.logs.fetch import archive_address

    names = {}
    for one in CATALOGUE:
        here = "yes" if (log_folder() / one.file).is_file() else f"no; walltime fetch {one.name}"
        facts = {"file": one.file, "processors": f"{one.procs:,}", "used by": one.used}
        facts |= {"address": one.address(archive_address()), "downloaded": here}
        names[one.name] = {"about": f"{counted(one.procs, 'processor')}; {one.file}", "facts": facts}
    return names
