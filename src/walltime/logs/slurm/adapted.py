"""Recognise tables of Slurm's records that other programs changed: other titles than sacct's, and other forms of durations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from walltime.errors import LogError
from walltime.logs.cells import NO_LIMITS, NUMBER, ONE_COLON, STAMP
from walltime.logs.guess import Guessing
from walltime.logs.mapping import TIMES, Source, Status
from walltime.logs.sample import Sample
from walltime.logs.slurm.fields import state_word
from walltime.logs.titles import SYNONYMS, candidates, is_telling
from walltime.wording import printable

FIELDS_OF = {
    "job_id": "jobid", "submit": "submit", "eligible": "eligible", "start": "start", "end": "end", "runtime": "elapsed",
    "requested": "timelimit", "allocated_procs": "alloccpus", "requested_procs": "reqcpus", "nodes": "nnodes", "user": "user",
    "group": "account", "partition": "partition", "queue": "qos", "executable": "jobname", "status": "state", "gpus": "allocgres",
}  # fmt: skip
"""The fields of sacct that contain the columns of a log."""
_THE_SAME = {
    "timelimit": ("timelimitraw",), "elapsed": ("elapsedraw",), "alloccpus": ("ncpus",), "jobid": ("jobidraw",), "user": ("uid",),
    "allocgres": ("alloctres", "reqtres", "reqgres"),
}  # fmt: skip
"""Other fields with the same content."""
_ODD = ("runtime", "requested", *TIMES)
"""The columns whose values may have other forms than in sacct's output."""
_OF_SACCT = re.compile(
    r"(?i)(ave|max|min)(cpu|disk|pages|rss|vmsize)\w*|(tres|derived|resv|planned|system|consumed)\w*|(alloc|req)(nodes|gres|cpufreq\w*)|cputime(raw)?|group|gid|\w*id"
)
"""Titles of other fields of sacct."""


@dataclass(frozen=True)
class Adapted:
    """The titles of a table's fields of sacct, the forms of durations and states that differ from sacct's, and notes on both."""

    titles: Mapping[str, str]
    forms: Mapping[str, Source | Status] = field(default_factory=dict)
    reading: tuple[str, ...] = ()


def adapted(titles: Mapping[str, str], sample: Sample | None, where: str) -> Adapted:
    """Return the fields of a table, including those under other titles, which are recognised by the first rows.

    `titles`: the titles of the fields that are already known. Raises LogError for durations with a doubtful unit.
    """
    if sample is None or not set(titles.values()) <= sample.columns.keys():
        return Adapted(titles)
    looks = Guessing(where, sample)
    others = [title for title in sample.columns if title not in titles.values() and looks.known[title]]
    lacks = [name for name, field in FIELDS_OF.items() if not {field, *_THE_SAME.get(field, ())} & titles.keys()]
    odd = [name for name in _ODD if any(_is_odd(text, name) for text in looks.known.get(titles.get(FIELDS_OF[name], ""), ()))]
    if not odd and not any(candidates(SYNONYMS[name].split(), others) for name in lacks):
        return Adapted(titles, reading=_unused(others))
    with suppress(LogError):  # the table may lack a column that lists of resources contain
        looks.guess()
    found, reading = dict(titles), list[str]()
    forms: dict[str, Source | Status] = {}
    sources = looks.sources | ({"status": Source(looks.status.column)} if looks.status is not None else {})
    for name, source in sources.items():
        is_mixed = False
        title, sacct = source.column or "", FIELDS_OF.get(name)
        if not (title in others and name in lacks and sacct) and not (name in odd and title == titles[FIELDS_OF[name]]):
            continue
        doubt = next((doubt for doubt in looks.doubts if doubt.startswith(f"is {printable(title)!r} ")), None)
        if doubt is not None:
            raise LogError(f"{where}: {doubt}; give the meaning of the columns with mapping=FILE", "ambiguous_columns")
        found[str(sacct)] = title
        if name == "status" and looks.status is not None and any(state_word(text) is None for text in looks.known[title]):
            forms["state"] = looks.status
        elif name in _ODD:
            is_mixed = name == "requested" and source.clock is None and _is_mixed(looks.known[title])
            forms[str(sacct)] = replace(source, unit="min") if is_mixed else source
        reading.append(looks.reading[name].replace("are seconds", "are minutes") if is_mixed else looks.reading[name])
    return Adapted(found, forms, (*reading, *_unused([title for title in others if title not in found.values()])))


def _is_odd(text: str, name: str) -> bool:
    """Return whether a duration or a time has a form that sacct does not write."""
    if name in TIMES:
        return STAMP.fullmatch(text) is None and NUMBER.fullmatch(text) is None
    return ONE_COLON.fullmatch(text) is not None or (name == "requested" and NUMBER.fullmatch(text) is not None)


def _is_mixed(texts: Sequence[str]) -> bool:
    """Return whether limits have several forms, as `sbatch` accepts them: 90, 3-0."""
    return len({NUMBER.fullmatch(text) is not None for text in texts if text.lower() not in NO_LIMITS}) > 1


def _unused(titles: list[str]) -> tuple[str, ...]:
    unused = [printable(title) for title in titles if is_telling(title) and not _OF_SACCT.fullmatch(title)]
    return (f"not used: {', '.join(unused)}",) if unused else ()
