"""The page of reference on specifications: the names of each family, and their options."""

from __future__ import annotations

import inspect
import re

from walltime.declared import meaning_of
from walltime.estimates import ESTIMATES
from walltime.policy import DIALECTS, ORDERS, POLICIES
from walltime.predictors.prediction import BELIEFS, CORRECTIONS, PREDICTORS
from walltime.specification import Form, asked, presets_of, spell

LISTED = {family.title: family for family in (POLICIES, ORDERS, ESTIMATES, PREDICTORS, BELIEFS, CORRECTIONS, DIALECTS)}


def specifications(title: str) -> str:
    """The names of a family, and below each the options that it takes."""
    return "\n\n".join(section(name, form) for name, form in LISTED[title].forms.items())


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
