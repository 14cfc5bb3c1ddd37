"""The page of reference on specifications: the names of each family, and their options."""

from __future__ import annotations

from walltime.campaign.executors import WORKERS
from walltime.cli.listing import about
from walltime.declared import described, meaning_of
from walltime.estimates import ESTIMATES
from walltime.policy import DIALECTS, ORDERS, POLICIES
from walltime.predictors.prediction import CORRECTIONS, PREDICTION_USES, PREDICTORS
from walltime.schedule.groups import GROUPED
from walltime.specification import Variant, describe_value, presets_of, spell
from walltime.whatif.change import ALL_SIGNS
from walltime.whatif.changes import OF_SETTING, SETTINGS, TABLES, signs_of
from walltime.workload.models import MODELS

LISTED = {
    family.title: family
    for family in (POLICIES, ORDERS, ESTIMATES, PREDICTORS, PREDICTION_USES, CORRECTIONS, DIALECTS, MODELS, GROUPED, WORKERS)
}


def specifications(title: str) -> str:
    """The names of a family, and below each the options that it takes."""
    return "\n\n".join(section(name, variant) for name, variant in LISTED[title].variants.items())


def changes() -> str:
    """Return the table of values of `--change`."""
    rows = [(f"`{name}`", one.signs, one.value, one.meaning) for name, one in OF_SETTING.items()]
    for name, table in TABLES.items():
        row = table.placeholder
        for field, one in table.declared.items():
            spelled = [f"`{name}.{row}.{key.format(second='gpus')}`" for key, of in table.keys.items() if of == field and key != "second"]
            if spelled:
                said = "names, with commas between them" if field == "pools" else described(one.kind, one.key)
                rows.append((" or ".join(dict.fromkeys(spelled)), table.signs(field), said, meaning_of(table.row, one) or field))
    rows.append(("`licences.NAME`", ALL_SIGNS, "a whole number of 1 or more", "licences of the machine, under the policy slurm"))
    rows += [(f"`{name}`", signs_of(name), "as in Slurm", "a setting of Slurm, under the policy slurm") for name in SETTINGS]
    lines = [f"| {what} | {' '.join(f'`{sign}`' for sign in signs)} | {value} | {meaning} |" for what, signs, value, meaning in rows]
    return "\n".join(["| key | operators | value | meaning |", "| --- | --- | --- | --- |", *lines])


def section(name: str, variant: Variant) -> str:
    """A name: what it is, and its options in a table."""
    lines = [f"### `{name}`", "", about(variant).replace("|", "\\|")]
    places = [key for key in getattr(variant.loaded, "positional", ()) if key in variant.keys]
    if variant.start:
        said = ",".join(f"{key}={spell(variant.start[one.field], one)}" for key, one in variant.keys.items() if one.field in variant.start)
        return "\n".join([*lines, "", f"`{said}`; other options as in `papers`."])
    if variant.keys:
        lines += ["", "| option | value | default | meaning |", "| --- | --- | --- | --- |"]
    for key, one in variant.keys.items():
        usual = "required" if one.needed else f"`{spell(getattr(one.key, 'default', one.default), one) or 'none'}`"
        place = " (may come first, without its name)" if key in places else ""
        lines.append(f"| `{key}` | {describe_value(one)} | {usual} | {meaning_of(variant.loaded, one)}{place} |")
    for preset, values in presets_of(variant.loaded, variant.keys).items():
        said = ",".join(f"{key}={spell(values[one.field], one)}" for key, one in variant.keys.items() if one.field in values)
        lines += ["", f"`{name}:{preset}` is `{name}:{said}`."]
    return "\n".join(lines)
