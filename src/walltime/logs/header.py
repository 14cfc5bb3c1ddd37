"""The header of a Standard Workload Format file: its keys, and the machine, start time and time zone in them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Self

_KEYS = (
    "Version Computer Installation Acknowledge Information Conversion MaxJobs MaxRecords Preemption UnixStartTime TimeZone TimeZoneString"
    " StartTime EndTime MaxNodes MaxProcs MaxRuntime MaxMemory AllowOveruse MaxQueues Queues Queue MaxPartitions Partitions Partition Note"
)
STANDARD_KEYS = tuple(_KEYS.split())
"""The header keys of the Standard Workload Format 2.2, in their usual order."""

_SEVERAL = frozenset({"Acknowledge", "Information", "Installation", "Conversion", "Queue", "Partition", "Note"})
"""Keys that a header may repeat."""
_SPELLING = {key.casefold(): key for key in STANDARD_KEYS}
_KEY = re.compile(r"([A-Za-z]\w*)\s*:(?!//)(.*)", re.DOTALL)
_WHOLE = re.compile(
    r"([+-]?)([0-9]{1,2}(?: [0-9]{3})+(?= *$)|[0-9]{1,300}|[0-9]{1,3}(?:[,'_][0-9]{3})+)(?:\.0*)?(?:[eE]\+?([0-9]{1,2}))?(?=\s|$)"
)
"""A sign, digits, perhaps with separators of thousands, and an exponent."""
_DAY = 86_400
_FIELD = re.compile(r"[\s;]*field\s*([0-9]{1,3})\s*:\s*(\w+).*", re.IGNORECASE | re.DOTALL)
_FIELDS = re.compile(r"[\s;]*fields\s*:(.*)", re.IGNORECASE | re.DOTALL)
BLANKS = " \t\r\x0b\x0c"


class Header(Mapping[str, tuple[str, ...]]):
    r"""The standard keys of a header and their values, in the order of the file; the case of a key does not matter.

    A repeated key (`Note`, `Queue`) has several values; a value continued on additional lines contains newlines.

    >>> header = Header.parse(["; MaxProcs: 100", ";  Note: cleaned,", ";        job<=14 removed"])
    >>> header["maxprocs"], header["Note"]
    (('100',), ('cleaned,\njob<=14 removed',))
    """

    def __init__(self, values: Mapping[str, Iterable[str]]) -> None:
        self._values = {key: tuple(entries) for key, entries in values.items()}

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Return the header in lines that start with `;`; text that does not belong to a standard key is ignored."""
        entries: dict[str, list[list[str]]] = {}
        value: list[str] | None = None
        indent = 0
        for line in lines:
            text = line.strip().lstrip(";").strip()
            column = line.find(text)
            match = _KEY.fullmatch(text)
            if not text:
                value = None
            elif match and match[1].casefold() in _SPELLING:
                value = [match[2].strip()]
                indent = column
                entries.setdefault(_SPELLING[match[1].casefold()], []).append(value)
            elif match and column <= indent:
                value = None  # a non-standard key; if indented, it would be prose with a colon
            elif value is not None:
                value.append(text)
        return cls({key: ["\n".join(parts).strip() for parts in values] for key, values in entries.items()})

    def __getitem__(self, key: str) -> tuple[str, ...]:
        return self._values[_SPELLING[key.casefold()]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Header({self._values!r})"

    def whole_number(self, key: str) -> int | None:
        """Return the first whole number at the start of a value of this key; None if there is none."""
        firsts = (_WHOLE.match(value.lstrip()) for value in self.get(key, ()))
        return next((int(one[1] + re.sub("[^0-9]", "", one[2])) * 10 ** int(one[3] or 0) for one in firsts if one), None)

    @property
    def contradictions(self) -> dict[str, tuple[str, ...]]:
        """Return the different values of each key that may have only one; only the first valid value is used."""
        different = {key: tuple(dict.fromkeys(values)) for key, values in self.items() if key not in _SEVERAL}
        return {key: values for key, values in different.items() if len(values) > 1}

    @property
    def machine_procs(self) -> int | None:
        """Return the processors of the machine: MaxProcs, else MaxNodes; None if neither is positive."""
        sizes = (self.whole_number(key) or 0 for key in ("MaxProcs", "MaxNodes"))
        return next((size for size in sizes if size > 0), None)

    @property
    def unix_start_time(self) -> int | None:
        """Return the Unix time of the log's time 0, s, negative before 1970; None if it is missing or -1 (unknown)."""
        start = self.whole_number("UnixStartTime")
        return start if start != -1 else None

    @property
    def time_zone(self) -> str:
        """Return TimeZoneString, else the offset in TimeZone in seconds, else UTC."""
        for value in self.get("TimeZoneString", ()):
            words = value.split()
            if words and not words[0].lstrip("+-").isdecimal():
                return words[0]
        for key in ("TimeZoneString", "TimeZone"):
            offset = self.whole_number(key)
            if offset is not None and abs(offset) < _DAY:
                return str(offset)
        return "UTC"


def declared_fields(lines: Iterable[str]) -> dict[int, str]:
    """Return the field names declared in header lines, by number from 1, in lower case.

    >>> declared_fields(["; Field 19: Nodes (allocated)", "; Field20: energy"])
    {19: 'nodes', 20: 'energy'}
    >>> declared_fields(["; Fields: job, submit, wait"])
    {1: 'job', 2: 'submit', 3: 'wait'}
    """
    names: dict[int, str] = {}
    for line in lines:
        if one := _FIELD.fullmatch(line):
            names[int(one[1])] = one[2].lower()
        elif several := _FIELDS.fullmatch(line):
            names |= dict(enumerate((name.lower() for name in re.split(r"[\s,;|]+", several[1].strip()) if name), 1))
    return names


def with_max_procs(lines: Iterable[str], procs: int) -> list[str]:
    """Return header lines with this number of processors; a note keeps the former number."""
    kept = [f"; Note: the log had {line.strip(BLANKS + ';')}" if "MaxProcs" in Header.parse([line]) else line for line in lines]
    return [*kept, f"; MaxProcs: {procs}"]
