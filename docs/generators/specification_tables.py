"""The page of reference on specifications: the names of each family, and their options."""

from __future__ import annotations

import inspect
import re

from walltime.campaign.executors import WORKERS
from walltime.declared import described, meaning_of
from walltime.estimates import ESTIMATES
from walltime.policy import DIALECTS, ORDERS, POLICIES
from walltime.predictors.prediction import BELIEFS, CORRECTIONS, PREDICTORS
from walltime.schedule.groups import GROUPED
from walltime.specification import Form, asked, presets_of, spell
from walltime.whatif.changes import OF_SETTING, SETTINGS, TABLES, signs_of
from walltime.workload.models import MODELS

LISTED = {
    family.title: family for family in (POLICIES, ORDERS, ESTIMATES, PREDICTORS, BELIEFS, CORRECTIONS, DIALECTS, MODELS, GROUPED, WORKERS)
}


def specifications(title: str) -> str:
    """The names of a family, and below each the options that it takes."""
    return "\n\n".join(section(name, form) for name, form in LISTED[title].forms.items())


def changes() -> str:
    """What `--change` takes: a row for each thing that can be changed."""
    rows = [(f"`{name}`", one.signs, one.value, one.meaning) for name, one in OF_SETTING.items()]
    for name, table in TABLES.items():
        row = "N" if name == "limit" else "NAME"
        for field, one in table.declared.items():
            spelled = [f"`{name}.{row}.{key.format(second='gpus')}`" for key, of in table.keys.items() if of == field and key != "second"]
            if spelled:
                said = "names, with commas between them" if field == "pools" else described(one.kind, one.key)
                rows.append((" or ".join(dict.fromkeys(spelled)), table.signs(field), said, meaning_of(table.row, one) or field))
    rows += [(f"`{name}`", signs_of(name), "as in Slurm", "a setting of Slurm, under the policy slurm") for name in SETTINGS]
    lines = [f"| {what} | {' '.join(f'`{sign}`' for sign in signs)} | {value} | {meaning} |" for what, signs, value, meaning in rows]
    return "\n".join(["| what | how | value | meaning |", "| --- | --- | --- | --- |", *lines])


def section(name: str, form: Form) -> str:
    """A name: what it is, and its options in a table."""
    about = form.meaning or first_sentence(form.loaded if isinstance(form.loaded, type) else type(form.loaded))
    lines = [f"### `{name}`", "", about]
    places = [key for key in getattr(form.loaded, "positional", ()) if key in form.keys]
    if form.start:
        said = ",".join(f"{key}={spell(form.start[one.field], one)}" for key, one in form.keys.items() if one.field in form.start)
        return "\n".join([*lines, "", f"`{said}`, and the options of the first name."])
    if form.keys:
        lines += ["", "| option | value | default | meaning |", "| --- | --- | --- | --- |"]
    for key, one in form.keys.items():
        usual = "needed" if one.needed else f"`{spell(getattr(one.key, 'default', one.default), one) or 'none'}`"
        place = " (may come first, without its name)" if key in places else ""
        lines.append(f"| `{key}` | {asked(one)} | {usual} | {meaning_of(form.loaded, one)}{place} |")
    for preset, values in presets_of(form.loaded, form.keys).items():
        said = ",".join(f"{key}={spell(values[one.field], one)}" for key, one in form.keys.items() if one.field in values)
        lines += ["", f"`{name}:{preset}` is `{name}:{said}`."]
    return "\n".join(lines)


def first_sentence(kind: type) -> str:
    """What a class says first."""
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0].split())
    return re.sub(r"\|", r"\\|", text)
