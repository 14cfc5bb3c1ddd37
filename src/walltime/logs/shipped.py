"""The mappings of published data sets that come with the program."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files

from walltime.errors import LogError
from walltime.logs.mapping import MAPPING_FILE, TableMapping

__all__ = ["known_by_lines", "known_by_titles", "shipped"]

_LINES = 20


@cache
def shipped() -> Mapping[str, TableMapping]:
    """The mappings by name, such as `f-data`; each has `about`."""
    folder = files("walltime.logs") / "mappings"
    texts = {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".toml")}
    return {name: MAPPING_FILE.value(MAPPING_FILE.content(texts[name], name), name) for name in sorted(texts)}


def known_by_titles(titles: Collection[str]) -> tuple[str, TableMapping] | None:
    """The shipped mapping of a table with these titles: the one with most marks, all of which are there; None if there is none."""
    fitting = []
    for name, mapping in shipped().items():
        marks = mapping.about.marks if mapping.about is not None else ()
        if marks and set(marks) <= set(titles):
            fitting.append((len(marks), name))
    for _, name in sorted(fitting, reverse=True):
        try:
            return name, shipped()[name].restricted(titles)
        except LogError:  # what is needed is not there
            continue
    return None


def known_by_lines(head: bytes) -> tuple[str, TableMapping] | None:
    """The shipped mapping of a file without a heading that begins so; None if there is none."""
    lines = head[: 1 << 16].decode("utf-8", errors="replace").splitlines()[:-1] or [head[:4096].decode("utf-8", errors="replace")]
    for name, mapping in shipped().items():
        if mapping.about is None or mapping.about.line is None:
            continue
        pattern = re.compile(mapping.about.line)
        records = [line for line in lines if line.strip() and not (mapping.comment and line.lstrip().startswith(mapping.comment))][:_LINES]
        if records and all(pattern.match(line) for line in records):
            return name, mapping
    return None
