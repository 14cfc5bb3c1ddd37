"""Parse Slurm's output: scontrol show config, partition, node and reservation, JSON, and tables of sacctmgr."""

import itertools
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from walltime.errors import LogError, WalltimeError
from walltime.slurm.json_records import SEE_COMMANDS, Record, json_records
from walltime.wording import printable

KINDS = {"PartitionName": "partitions", "NodeName": "nodes", "ReservationName": "reservations"}
"""The kinds of scontrol's records, by the key with which a record begins."""
MOST_NODES = 1_000_000
MOST_BYTES = 1 << 30
_SETTING = re.compile(r"([A-Za-z]\w*(?:\[[0-9]+\])?)\s*= (.*)")
_KEY = re.compile(r"(?:^|\s)([A-Za-z][\w:/]*)=")
_HEADINGS = re.compile(
    r"No (reservations|partitions|nodes) in the system|No licenses configured in Slurm\.?|(?:Total|Last\w+)=[0-9].*|"
    r"Configuration data as of (.*)|\S*Slurmctld\(.*|.* (Plugins )?Configuration:"
)
_TABLES = {"associations": ("Account", "User", "Share"), "qos": ("Name", "Priority"), "past_reservations": ("Name", "TimeStart", "TimeEnd")}
"""Columns by which the tables of sacctmgr are recognised."""
_REASON = re.compile(r"\sReason=(.*?\[[^\[\]@\s]*@[^\[\]@]*\])")
"""The reason for a node's state: free text that ends with its author and time."""
_RANGE = re.compile(r"\[([0-9,-]*)\]")


class SlurmError(WalltimeError):
    """A command of Slurm failed, or its output has an unexpected form."""


@contextmanager
def parsing(command: str) -> Iterator[None]:
    """Convert errors in parsing a command's output to SlurmError."""
    try:
        yield
    except (KeyError, ValueError) as error:
        raise SlurmError(f"{command}: unexpected output ({type(error).__name__}: {str(error)[:80]})", "unknown_output") from error


def with_parents(account: str, parents: Mapping[str, str]) -> list[str]:
    """Return the account and its parents, from the nearest to the root."""
    chain = [account]
    while parents.get(chain[-1]) and parents[chain[-1]] not in chain:
        chain.append(parents[chain[-1]])
    return chain


@dataclass
class ClusterRecords:
    """The records of a cluster, by kind.

    `settings`: from scontrol show config; `known`: the kinds that were found, even if there are no such records; `printed`: the time at
    which scontrol printed the settings, None if unknown.
    """

    settings: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, Record] = field(default_factory=dict)
    nodes: dict[str, Record] = field(default_factory=dict)
    reservations: dict[str, Record] = field(default_factory=dict)
    associations: list[Record] = field(default_factory=list)
    qos: list[Record] = field(default_factory=list)
    past_reservations: list[Record] = field(default_factory=list)
    licences: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    printed: datetime | None = None
    other_lines: int = 0
    repeated: int = 0


def file_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file with Slurm's output; raises LogError."""
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise LogError(f"{printable(path)}: too large for Slurm's description of a cluster; {SEE_COMMANDS}")
        return Path(path).read_bytes().decode("utf-8-sig", errors="replace")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise LogError(f"{printable(path)}: cannot be read ({reason}); check its name", "unreadable_file") from error


def read_records(texts: Iterable[tuple[str, str]]) -> ClusterRecords:
    """Return the records in these texts, each with a name for messages, in any order; raises LogError."""
    records, jsons = ClusterRecords(), []
    for where, text in texts:
        if text.lstrip().startswith(("{", "[")):
            jsons.append((where, text))
        elif not read_text(text, records):
            raise LogError(f"{where}: not a description of a cluster by Slurm; {SEE_COMMANDS}")
    for where, text in jsons:
        _read_json(text, where, records)
    return records


def _read_json(text: str, where: str, records: ClusterRecords) -> None:
    """Add records from JSON. sinfo lists a node once for each of its partitions; scontrol's record of a node takes precedence."""
    for kind, found in json_records(text, where).items():
        records.known.add(kind)
        if kind in ("associations", "qos"):
            getattr(records, kind).extend(found)
            continue
        named: dict[str, Record] = getattr(records, kind)
        for record in found:
            name = next(iter(record.values()))
            before = named.get(name)
            if before is None or not (record.get("sinfo") or kind == "partitions"):
                _put(records, kind, name, record)
            elif before.get("sinfo") and record["Partitions"] not in before["Partitions"].split(","):
                before["Partitions"] += f",{record['Partitions']}"


def read_text(text: str, records: ClusterRecords) -> bool:
    """Add the records in text output, and return whether any line was understood."""
    understood = False
    kind = ""  # of the record to which the lines belong
    lines: list[str] = []
    heading: list[str] = []
    rows: list[Record] = []
    for line in [*text.splitlines(), ""]:
        if lines and not line.startswith((" ", "\t")):  # a record may contain lines of blanks
            _add_record(records, kind, " ".join(lines))
            lines = []
        if not line.strip():
            heading = []
            continue
        key = line.partition("=")[0]
        if lines:
            lines.append(line.strip())
        elif key in KINDS:
            kind, lines, heading = KINDS[key], [line.strip()], []
        elif setting := _SETTING.fullmatch(line):
            records.settings.setdefault(setting[1], setting[2].strip())
            records.known.add("settings")
        elif key == "LicenseName" or (key.strip() == "Total" and records.licences):  # from scontrol show licenses
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            name = words.get("LicenseName") or list(records.licences)[-1]
            records.licences[name] = words.get("Total", "1")
        elif (table := _table(line)) is not None:
            heading, rows = [name.strip() for name in line.split("|")], getattr(records, table)
            records.known.add(table)
        elif heading and line.count("|") + 1 == len(heading):
            rows.append(dict(zip(heading, line.split("|"), strict=True)))
        elif nothing := _HEADINGS.fullmatch(line.strip()):
            records.known.update([nothing[1]] if nothing[1] else [])
            with suppress(ValueError):
                records.printed = datetime.fromisoformat(nothing[2] or "").replace(tzinfo=None)
        else:
            records.other_lines += 1
            continue
        understood = True
    return understood


def _table(line: str) -> str | None:
    """Return the kind of the sacctmgr table that has this heading; None for other lines."""
    names = line.split("|")
    return next((kind for kind, needed in _TABLES.items() if all(name in names for name in needed)), None)


def _add_record(records: ClusterRecords, kind: str, text: str) -> None:
    """Add a record of scontrol. The first value of a key counts, so that a comment, which comes last, cannot replace it."""
    record: Record = {}
    keys = list(_KEY.finditer(text))
    for key, after in zip(keys, [*keys[1:], None], strict=True):
        record.setdefault(key[1], text[key.end() : after.start() if after else None].strip())
    if reason := _REASON.search(text):
        record["Reason"] = reason[1]
    name = next(iter(record.values()))
    if name:
        _put(records, kind, name, record)
    else:
        records.other_lines += 1


def _put(records: ClusterRecords, kind: str, name: str, record: Record) -> None:
    records.known.add(kind)
    named: dict[str, Record] = getattr(records, kind)
    records.repeated += name in named
    named.setdefault(name, record)


# ------------------------------------------------------------------------------------------------------------- lists of nodes


def expand(text: str) -> list[str]:
    """Return the names in a list of nodes; raises LogError.

    >>> expand("n[1-3,07-08],login"), expand("r[1-2]c[0-1]"), expand("(null)")
    (['n1', 'n2', 'n3', 'n07', 'n08', 'login'], ['r1c0', 'r1c1', 'r2c0', 'r2c1'], [])
    """
    if text in ("", "(null)", "N/A", "None"):
        return []
    names: list[str] = []
    for item in re.split(r",(?![^\[]*\])", text):
        parts = _RANGE.split(item)  # every second part is the inside of brackets
        if any("[" in part for part in parts[::2]):
            raise LogError(f"{item[:40]!r} is not a list of nodes; print it again with scontrol show")
        choices = [_numbers(part, item) if k % 2 else [part] for k, part in enumerate(parts)]
        if math.prod(map(len, choices)) > MOST_NODES - len(names):
            raise _too_many(item)
        names += map("".join, itertools.product(*choices))
    return names


def _numbers(text: str, item: str) -> list[str]:
    """Return the numbers in a list such as `1-3,07`; `item` is the whole text, for messages."""
    numbers: list[str] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 20:
            raise LogError(f"{item[:40]!r} is not a list of nodes; print it again with scontrol show")
        low, high = int(first), int(last) if dash else int(first)
        if high - low >= MOST_NODES - len(numbers):
            raise _too_many(item)
        numbers += [str(number).zfill(len(first)) for number in range(low, high + 1)]
    return numbers


def _too_many(item: str) -> LogError:
    return LogError(f"{item[:40]!r} has more than {MOST_NODES:,} nodes; print it again with scontrol show", "too_many_nodes")
