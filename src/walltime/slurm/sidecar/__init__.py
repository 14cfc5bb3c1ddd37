"""The side-car, a service next to Slurm: it sets TimeMin of waiting jobs, and raises limits again that backfill has shortened."""

import re
from collections.abc import Mapping
from importlib.resources import files

__all__ = ["installed_text"]


def installed_text(name: str, values: Mapping[str, str] = {}) -> str:
    """Return a file for operators from this folder, such as `prolog.sh`, with `values` in place of words such as `@USER@`."""
    text = (files("walltime.slurm.sidecar") / name).read_text(encoding="utf-8")
    return re.sub("|".join(values), lambda match: values[match[0]], text) if values else text
