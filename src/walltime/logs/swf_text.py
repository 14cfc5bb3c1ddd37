"""Parse files in the Standard Workload Format into columns and comments, in blocks of lines."""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from walltime.dataframes import pl
from walltime.logs.batch_systems import Names
from walltime.logs.input import decoded
from walltime.logs.joblog import faults, narrowed
from walltime.logs.reader import ReaderState
from walltime.logs.rules import Rule
from walltime.wording import counted, quoted
from walltime.workload import MISSING, SWF_COLUMNS, Array, Column

FIELDS = len(SWF_COLUMNS)
MOST_FIELDS = 100
"""A line with more fields than this is not a record."""
MANY = 5_000
"""Smallest number of records in a block that polars parses; for fewer, importing polars takes longer."""
_PLAIN = b"0123456789+-.eE \t\r"
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NUMBER_AT_ONCE = rb"[+-]?(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
HEAD = re.compile(
    rb"\A\s*+;|^[ \t]*%(n)s(?:[ \t\r\x0b\x0c]++%(n)s){17}+(?:[ \t]++\S++){0,82}+\s*?$" % {b"n": _NUMBER_AT_ONCE}, re.MULTILINE
)
"""The first line is a comment, or some line has 18 numbers and at most 82 more numbers or texts."""
_NOT_FINITE = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True)
class Comment:
    """A line that starts with `;`, without its line end, and the number of records before it."""

    record: int
    text: str


def field_column(number: int) -> Column:
    """Return the column of a field, counted from 1; beyond the 18th, its name is only a number."""
    return SWF_COLUMNS[number - 1] if number <= FIELDS else Column(f"field{number}", "float64", "", "", number)


Texts = dict[int, list[str]]
"""Fields beyond the 18th that contain texts, by number: the texts of all records in a block, empty where missing."""


class SwfText:
    """The content of a file, which grows block by block. Parts of columns without a known value are not stored.

    `records`: their number. `fields`: the largest number of fields in a record. `comments`: all lines that start with a semicolon.
    """

    def __init__(self) -> None:
        self.records = 0
        self.fields = FIELDS
        self.comments: list[Comment] = []
        self._parts: dict[str, list[tuple[int, Array]]] = {}
        self._texts: dict[str, list[tuple[int, list[str]]]] = {}

    def add(self, values: Sequence[Array], texts: Texts) -> None:
        """Add a block: the values of each field, and the texts of fields that contain any."""
        self.fields = max([self.fields, len(values), *texts])
        for number, block in enumerate(values, 1):
            if (block != MISSING).any():
                self._parts.setdefault(field_column(number).name, []).append((self.records, narrowed(block)))
        for number, words in texts.items():
            self._texts.setdefault(field_column(number).name, []).append((self.records, words))
        self.records += len(values[0])

    def columns(self) -> tuple[dict[str, Array], dict[str, tuple[str, ...]]]:
        """Return the columns with known values (int64 or float64), and the names of columns with texts; the blocks are released.

        A column beyond the 18th is named by its number, such as `field19`; if it contains any text, all its values are names.
        """
        joined, names = {}, {}
        for name, blocks in self._texts.items():
            texts = [""] * self.records
            for start, values in self._parts.pop(name, []):  # blocks without a text in this field
                texts[start : start + len(values)] = [f"{number:.15g}" if number != MISSING else "" for number in values.tolist()]
            for start, words in blocks:
                texts[start : start + len(words)] = words
            numbers = Names()
            joined[name] = numbers.numbers(texts)
            names[name] = numbers.texts
        for name in list(self._parts):
            parts = self._parts.pop(name)
            joined[name] = np.full(self.records, MISSING, np.result_type(*(block.dtype for _, block in parts)))
            for start, block in parts:
                joined[name][start : start + len(block)] = block
        return joined, names


def parse_swf(state: ReaderState) -> SwfText:
    """Parse a file; raises LogError as described in `walltime.logs.read_swf`."""
    text = SwfText()
    for first, block in state.file.text_blocks():
        plain = _plain_numbers(block)
        if plain is not None:
            text.add(plain, {})
            continue
        numbers: list[int] = []
        records: list[bytes] = []
        notes: list[tuple[int, bytes]] = []
        for number, line in enumerate(block.split(b"\n"), first):
            content = line.strip()
            if content.startswith(b";"):
                notes.append((len(records), line))
            elif content:
                numbers.append(number)
                records.append(content)
        values, texts, bad = _values(records)
        for row, reason in bad.items():
            state.add_bad(numbers[row], reason, decoded(records[row])[0])
        kept = np.ones(len(records) + 1, np.int64)
        kept[list(bad)] = 0
        before = text.records + np.cumsum(kept) - kept
        text.comments += [Comment(int(before[row]), decoded(line.rstrip(b"\r"))[0]) for row, line in notes]
        text.add(list(values.T), texts)
    if text.records == 0:
        raise state.no_jobs("no_jobs")
    return text


def _values(records: list[bytes]) -> tuple[Array, Texts, dict[int, str]]:
    """Return the values of good records (float64, one row each), their texts, and the reasons by row why others are bad."""
    if not records:
        return np.empty((0, FIELDS)), {}, {}
    if not b"".join(records).translate(None, _PLAIN):
        try:
            values = np.loadtxt([record.decode("ascii") for record in records], dtype=np.float64, comments=None, ndmin=2)
        except ValueError:
            pass  # a line is bad, or has more fields than others
        else:
            right = len(values) == len(records) and FIELDS <= values.shape[1] <= MOST_FIELDS
            if right and not _any_fault(list(values.T)):
                return values, {}, {}
    return _values_line_by_line(records)


def _plain_numbers(block: bytes) -> list[Array] | None:
    """Return the values of each field in a block of valid records of numbers with single blanks between them; None for other blocks."""
    records = block.count(b"\n") + 1
    if records < MANY or any(other in block for other in (b"  ", b"\t", b"\r", b";", b"\n\n")) or block.translate(None, _PLAIN + b"\n"):
        return None
    count = len(block[: block.find(b"\n")].split(b" "))
    if not FIELDS <= count <= MOST_FIELDS:
        return None
    for kind in (pl.Int64, pl.Float64):
        schema = {str(place): kind for place in range(count)}
        try:
            table = pl.read_csv(io.BytesIO(block), separator=" ", has_header=False, schema=schema, quote_char=None)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            continue
        if len(table) != records or any(series.null_count() for series in table):
            return None
        values = [series.to_numpy() for series in table]
        return None if _any_fault(values) else values
    return None


def _any_fault(values: Sequence[Array]) -> bool:
    return any(mask.any() for number, block in enumerate(values, 1) for mask, _ in faults(field_column(number), block))


def _values_line_by_line(records: list[bytes]) -> tuple[Array, Texts, dict[int, str]]:
    tokens = [record.split() for record in records]
    faults_of = {row: _bad_tokens(record, one) for row, (record, one) in enumerate(zip(records, tokens, strict=True))}
    bad = {row: fault for row, fault in faults_of.items() if fault}
    rows = [row for row in faults_of if row not in bad]
    good = [tokens[row] for row in rows]
    most = max(map(len, good), default=FIELDS)
    textual = {place for one in good for place, token in enumerate(one[FIELDS:], FIELDS) if not _NUMBER.fullmatch(token)}
    values = np.full((len(good), most), float(MISSING))
    numeric = [place for place in range(most) if place not in textual]
    for index, one in enumerate(good):
        there = numeric if len(one) == most else [place for place in numeric if place < len(one)]
        values[index, there] = [float(one[place]) for place in there]
    usable = np.ones(len(good), bool)
    for number, block in enumerate(values.T, 1):
        column = field_column(number)
        for mask, what in faults(column, block):
            for index in np.flatnonzero(mask & usable).tolist():
                bad[rows[index]] = f"{_field(column)} must be {what}, not {quoted(decoded(good[index][number - 1])[0])}"
            usable &= ~mask
    kept = [good[index] for index in np.flatnonzero(usable).tolist()]
    widest = max(map(len, kept), default=FIELDS)
    texts = {
        place + 1: ["" if place >= len(one) or one[place] == b"-1" else one[place].decode() for one in kept]
        for place in sorted(textual)
        if place < widest
    }
    return values[usable, :widest], texts, dict(sorted(bad.items()))


def _bad_tokens(record: bytes, tokens: list[bytes]) -> str | None:
    try:
        record.decode()
    except UnicodeDecodeError:
        return "it has bytes that are not text; the line is damaged, or this is not a text log"
    if not FIELDS <= len(tokens) <= MOST_FIELDS:
        return f"{counted(len(tokens), 'field')} instead of {FIELDS}"
    for number, token in enumerate(tokens, 1):
        if _NUMBER.fullmatch(token):
            continue
        not_finite = _NOT_FINITE.fullmatch(token)
        if not_finite or number <= FIELDS:  # additional fields may be texts
            what = "finite, or -1 if unknown" if not_finite else "a number without underscores" if b"_" in token else "a number"
            return f"{_field(field_column(number))} must be {what}, not {quoted(decoded(token)[0])}"
    return None


def _field(column: Column) -> str:
    return f"field {column.swf_field} ({column.name})" if column in SWF_COLUMNS else f"field {column.swf_field}"


DESCRIPTOR_DIFFERS = Rule(
    "descriptor_differs", "notice", "The job's descriptor and its field give different numbers of processors; the field is used."
)
NODE_LIST_DIFFERS = Rule(
    "node_list_differs", "notice", "The job's list of nodes and its descriptor give different numbers of nodes; the descriptor is used."
)
DERIVED = ("nodes", "procs_per_node", "exclusive")
"""Columns that are derived from descriptors."""
BY_VALUES = ("node_list", "queue_name", "descriptor", "used_gpus", "soft_walltime")
"""Fields beyond the 18th that are recognised by their values if the header does not name them."""
EXCLUSIVE = {"excl": 1, "exclusive": 1, "shared": 0, "share": 0}
_META = re.compile(r"(?P<nodes>[0-9]{1,9}):ppn=(?P<procs>[0-9]{1,9})(?::.*)?")
_FRONTIER = re.compile(r"(?P<machine>[\w.-]+):(?P<mode>excl|exclusive|share|shared):(?P<nodes>[0-9]{1,9})x(?P<procs>[0-9]{1,9})")
_NODE_LIST = re.compile(r"\{[\w.-]+(?:,[\w.-]+)*,?\}|\{\}")
_MOST_GPUS = 16
"""Largest plausible number of GPUs in a node."""
_SAMPLE = 1000
_MOSTLY = 0.9


@dataclass(frozen=True)
class Layout:
    """A layout of fields beyond the 18th: its name, and a pattern for jobs' descriptors with groups `nodes` and `procs` (and `mode`)."""

    name: str
    descriptor: re.Pattern[str]
    numbers: bool = False
    """Whether it has numeric fields that are recognised by their values: used GPUs, soft walltimes."""

    def columns_of(self, numbers: Array, texts: Sequence[str]) -> dict[str, Array]:
        """Return the columns in descriptors: `nodes`, `procs_per_node`, and `exclusive` (1 or 0) if it is given; -1 if unknown."""
        matches = [self.descriptor.fullmatch(text) for text in texts]
        tables = {
            "nodes": [int(match["nodes"]) if match else MISSING for match in matches],
            "procs_per_node": [int(match["procs"]) if match else MISSING for match in matches],
        }
        if "mode" in self.descriptor.groupindex:
            tables["exclusive"] = [EXCLUSIVE[match["mode"]] if match else MISSING for match in matches]
        place = np.maximum(numbers, 0)
        return {name: np.array([MISSING, *values], np.int64)[place] for name, values in tables.items()}


LAYOUTS = (Layout("MetaCentrum/CERIT", _META), Layout("Frontier", _FRONTIER, numbers=True))
"""The known layouts."""


def layout_of(names: Mapping[str, tuple[str, ...]]) -> tuple[Layout, str] | None:
    """Return the layout of a log with these columns of texts, and the column of its descriptors; None if no layout fits."""
    for layout in LAYOUTS:
        for column, texts in names.items():
            if _most_are(layout.descriptor, texts):
                return layout, column
    return None


def name_by_content(texts: Sequence[str]) -> str | None:
    """Return a name for a column of texts that the header does not name, from its texts; None if unknown."""
    if _most_are(_NODE_LIST, texts):
        return "node_list"
    return "queue_name" if len(texts) <= _SAMPLE and _most_are(re.compile(r"[A-Za-z][\w.@-]*"), texts) else None


def name_by_values(values: Array, nodes: Array, requested: Array) -> str | None:
    """Return a name for a numeric field that the header does not name: GPUs of nodes, or times within requests; None if unknown.

    >>> nodes, requested = np.array([2, 1]), np.array([7200, 3600])
    >>> [name_by_values(np.array(values), nodes, requested) for values in ([16, 8], [3600, -1], [9e9, 1.0])]
    ['used_gpus', 'soft_walltime', None]
    """
    there = values > 0
    if not there.any():
        return None
    whole = (values == np.floor(values)) & (values <= _MOST_GPUS * nodes)
    if whole[there].mean() >= _MOSTLY:
        return "used_gpus"
    return "soft_walltime" if (values <= requested)[there].mean() >= _MOSTLY else None


def nodes_listed(numbers: Array, texts: Sequence[str]) -> Array:
    """Return the number of nodes in lists such as `{1241,1242}`; -1 where unknown."""
    counts = [len([one for one in text.strip("{}").split(",") if one]) for text in texts]
    return np.array([MISSING, *counts], np.int64)[np.maximum(numbers, 0)]


def _most_are(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    some = texts[:_SAMPLE]
    return bool(some) and sum(pattern.fullmatch(text) is not None for text in some) >= _MOSTLY * len(some)
