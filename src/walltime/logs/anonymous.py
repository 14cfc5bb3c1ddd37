"""Numbers in place of people and what they call things: the same in every file of one key, and not to be undone without it."""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from walltime.errors import LogError, PolicyError
from walltime.logs.header import Header
from walltime.logs.joblog import JobLog
from walltime.logs.swf import SwfLog
from walltime.logs.swf_text import Comment
from walltime.logs.table_file import WalltimeLog
from walltime.workload import MISSING

Array = np.ndarray
PERSONAL = ("user", "group", "executable", "reservation")
"""The columns that are replaced: people, their accounts, what they call their jobs, and reservations."""
SHORTEST = 8
BITS = 48
"""Numbers have so many bits: below 2**53, so that they are exact in every format, and collisions are unlikely (and checked)."""
_KEPT = ("Version", "Conversion", "MaxJobs", "MaxRecords", "UnixStartTime", "TimeZone", "TimeZoneString", "MaxNodes", "MaxProcs")


def read_key(text: str) -> bytes:
    """The key: the text itself, the content of FILE for `@FILE`, or of an environment variable for `env:NAME`.

    Raises PolicyError for a key of less than 8 bytes, and if the file or the variable is missing.
    """
    if text.startswith("@"):
        try:
            key = Path(text[1:]).read_bytes().strip()
        except OSError as error:
            raise PolicyError(
                f"the key cannot be read ({(error.strerror or str(error)).lower()}); name a file with @FILE", "unreadable_key"
            ) from error
    elif text.startswith("env:"):
        value = os.environ.get(text[4:])
        if value is None:
            raise PolicyError("the key cannot be read: there is no such environment variable; name one with env:NAME", "unreadable_key")
        key = value.encode()
    else:
        key = text.encode()
    if len(key) < SHORTEST:
        raise PolicyError(f"a key of {len(key)} bytes can be guessed; take a random one of {SHORTEST} at least", "short_key")
    return key


def anonymise(log: JobLog, key: bytes) -> JobLog:
    """The log with numbers derived from the key (HMAC-SHA256) in place of users, accounts, job names and reservations.

    The same name has the same number in every file with this key. Times, sizes, queues, job numbers stay; of the header only the
    machine and the clock do.

    Raises LogError if two names got the same number (in one of 10^8 logs with a thousand names), which another key cures.
    """
    columns = dict(log.columns)
    for name in PERSONAL:
        if name in columns:
            columns[name] = _numbers(name, columns[name], log.names.get(name), key)
    names = {name: texts for name, texts in log.names.items() if name not in PERSONAL}
    header = {key: values for key, values in log.header.items() if key in _KEPT}
    if isinstance(log, SwfLog):
        lines = [f"; {key}: {value}" for key, values in header.items() for value in values]
        fields = [f"; Field {number}: {name}" for number, name in enumerate(log.further, 19)]
        return replace(log, columns=columns, comments=tuple(Comment(0, line) for line in [*lines, *fields]), names=names)
    if isinstance(log, WalltimeLog):
        lines = [f"; {key}: {value}" for key, values in header.items() for value in values]
        return replace(log, columns=columns, names=names, header=Header(header), lines=tuple(lines))
    return replace(log, columns=columns, names=names, header=Header(header))


def number_for(column: str, text: str, key: bytes) -> int:
    """The number that stands for a name of a column under this key, from 1 to 2**48 - 1."""
    digest = hmac.new(key, f"{column}\0{text}".encode(), hashlib.sha256).digest()
    return (int.from_bytes(digest[:8], "big") >> (64 - BITS)) or 1


def _numbers(column: str, values: Array, texts: tuple[str, ...] | None, key: bytes) -> Array:
    distinct, place = np.unique(values, return_inverse=True)
    new = np.full(len(distinct), MISSING, np.int64)
    taken: dict[int, str] = {}
    for k, number in enumerate(distinct.tolist()):
        if number < 0:
            continue
        text = texts[int(number) - 1] if texts and number > 0 else str(int(number))
        new[k] = number_for(column, text, key)
        if taken.setdefault(int(new[k]), text) != text:
            raise LogError(f"two names of the column {column} got the same number; take another key")
    return new[place]
