"""Lengths of time as Slurm writes and reads them."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?", re.ASCII)


def seconds_of(text: str) -> int:
    """Return the seconds of minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or days-hours:minutes:seconds.

    Source: the manual of sbatch, --time; squeue and sacct print the forms with two or three colons. Raises ValueError.

    >>> seconds_of("7-0"), seconds_of("5"), seconds_of("02:03"), seconds_of("1-02:03:04")
    (604800, 300, 123, 93784)
    """
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a length of time must have a form such as 30 (minutes), 7-0 or 1-12:00:00, not {text[:40]!r}")
    days, first, second, third = (int(part or 0) for part in match.groups())
    if match[1] is None and match[4] is None:
        return first * 60 + second
    return ((days * 24 + first) * 60 + second) * 60 + third
