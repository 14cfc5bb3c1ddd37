"""Anonymise logs: numbers derived from a key replace users, accounts, job names and reservations; they cannot be reversed without it."""

import hashlib
import hmac
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from walltime.errors import LogError, PolicyError
from walltime.logs.joblog import JobLog
from walltime.logs.swf import SwfLog
from walltime.workload import MISSING, Array

PERSONAL = ("user", "group", "executable", "reservation")
"""The columns that are replaced."""
SHORTEST = 8
BITS = 48
"""Bits of the numbers: fewer than 53, so that they are exact in all formats. Collisions are unlikely, and detected."""
_KEPT = ("Version", "Conversion", "MaxJobs", "MaxRecords", "UnixStartTime", "TimeZone", "TimeZoneString", "MaxNodes", "MaxProcs")


def read_key(text: str) -> bytes:
    """Return the key: the text itself, the content of FILE for `@FILE`, or of an environment variable for `env:NAME`.

    Raises PolicyError for a key of less than 8 bytes, and if the file or the variable is missing.
    """
    if text.startswith("@"):
        try:
            key = Path(text[1:]).read_bytes().strip()
        except OSError as error:
            raise PolicyError(
                f"the key cannot be read ({(error.strerror or str(error)).lower()}); give a file with @FILE", "unreadable_key"
            ) from error
    elif text.startswith("env:"):
        value = os.environ.get(text[4:])
        if value is None:
            raise PolicyError("the key cannot be read (no such environment variable); set it, or use another env:NAME", "unreadable_key")
        key = value.encode()
    else:
        key = text.encode()
    if len(key) < SHORTEST:
        raise PolicyError(
            f"the key is too short ({len(key)} bytes); use at least {SHORTEST} random bytes, e.g. head -c 24 /dev/urandom | base64",
            "short_key",
        )
    return key


def anonymise(log: JobLog, key: bytes) -> JobLog:
    """Return the log with numbers derived from the key (HMAC-SHA256) in place of users, accounts, job names and reservations.

    A name has the same number in all files with this key. Times, sizes, queues and job numbers do not change; the header keeps only the
    machine and the clock. Raises LogError if two names get the same number, which happens to one of 10^8 logs with a thousand names;
    another key helps.
    """
    columns = dict(log.columns)
    for name in PERSONAL:
        if name in columns:
            columns[name] = _numbers(name, columns[name], log.names.get(name), key)
    names = {name: texts for name, texts in log.names.items() if name not in PERSONAL}
    header = {key: values for key, values in log.header.items() if key in _KEPT}
    lines = [f"; {key}: {line}" for key, values in header.items() for value in values for line in value.splitlines()]
    anonymous = replace(log, columns=columns, names=names)
    if isinstance(anonymous, SwfLog):
        anonymous = replace(anonymous, comments=())
        lines += [f"; Field {number}: {name}" for number, name in enumerate(anonymous.further, 19)]
    return anonymous.with_header(lines)


def number_for(column: str, text: str, key: bytes) -> int:
    """Return the number that replaces a name in a column under this key, from 1 to 2**48 - 1."""
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
            raise LogError(f"two names of the column {column} get the same number; use another key")
    return new[place]
