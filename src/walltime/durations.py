"""Parse durations as Slurm writes them."""

from __future__ import annotations

import re

_LENGTH = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?", re.ASCII)


def seconds_of(text: str) -> int:
    """Return a duration in seconds, from a text such as 5 (minutes), 02:03 (minutes:seconds), 7-0 (days-hours) or 1-02:03:04.

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
