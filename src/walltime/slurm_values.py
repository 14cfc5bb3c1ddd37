"""Parse single values that Slurm writes as text or JSON, from version 22.05 (plain numbers) to 26.05 (objects and lists)."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any

from walltime.wording import quoted

Minutes = int | None
"""A time limit; None for unlimited."""
BLANK = ("", "Unknown", "None", "N/A", "NONE", "(null)", "INVALID", "n/a")
"""Texts that Slurm writes for unknown times and numbers."""
NO_LIMITS = ("UNLIMITED", "Partition_Limit", "INFINITE", "NOT_SET")
UNLIMITED = -2
"""Result of `number_of` for an infinite number."""
MEGABYTES = {"": 1 / 1024**2, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""Megabytes of each unit of memory; without a unit, amounts are in bytes."""
_PART = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?", re.ASCII)


class OddError(ValueError):
    """An invalid value, named in the message."""


def known(text: str) -> str:
    """Return a name, or an empty string if Slurm writes a text for no name."""
    return "" if text in ("(null)", "N/A") else text


@lru_cache(maxsize=10_000)
def minutes_of(text: str) -> Minutes:
    """Return a limit printed by Slurm's commands, in minutes, rounded up; raises ValueError.

    >>> minutes_of("1-02:30:00"), minutes_of("5:01"), minutes_of("UNLIMITED")
    (1590, 6, None)
    """
    return None if text.upper() in ("UNLIMITED", "INFINITE", "NOT_SET", "N/A", "") else -(-seconds_of(text) // 60)


@lru_cache(maxsize=100_000)
def time_of(text: str, zone: tzinfo = UTC) -> int:
    """Return a Unix time, printed by Slurm's commands in seconds or as local time in `zone`; 0 if it is unknown."""
    if text in BLANK:
        return 0
    if text.isascii() and text.isdecimal() and len(text) < 13:
        return int(text)
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


def tasks_of(text: str, most: int, cut: bool = False) -> tuple[list[int], int]:
    """Return the first `most` remaining tasks of a pending job array, and how many may run at a time, 0 for any number.

    `cut`: whether the text may be cut off; then only complete items are returned. Raises ValueError for a text that is not a list of tasks.

    >>> tasks_of("0-5%2", 9), tasks_of("1,3,7-11:2", 4), tasks_of("", 9), tasks_of("1-3,...", 9, cut=True)
    (([0, 1, 2, 3, 4, 5], 2), ([1, 3, 7, 9], 0), ([], 0), ([1, 2, 3], 0))
    """
    text, _, limit = text.strip().removeprefix("[").removesuffix("]").partition("%")
    tasks: list[int] = []
    for part in text.split(",") if text else ():
        match = _PART.fullmatch(part)
        if match is None and cut:
            break
        if match is None:
            raise OddError(f"{quoted(text)} is not a list of tasks")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        tasks.extend(range(first, last + 1, max(step, 1))[: most - len(tasks)])
    return tasks, int(limit) if limit.isdecimal() and len(limit) < 10 else 0


def resource_of(text: str, name: str) -> int | None:
    """Return the amount of a resource in a list such as cpu=64,gres/gpu=4,mem=4G, memory in MB; None if it is not listed.

    >>> resource_of("cpu=1,mem=4G,node=1", "mem"), resource_of("mem=500M", "mem"), resource_of("cpu=8", "gres/gpu")
    (4096, 500, None)
    """
    match = re.search(rf"(?:^|,){re.escape(name)}=([0-9]{{1,15}}(?:\.[0-9]+)?)([KMGTP]?)(?:,|$)", text)
    return None if match is None else int(float(match[1]) * (MEGABYTES | {"": 1.0})[match[2]])


def gpus_of(text: str) -> int:
    """Return the number of GPUs in a list of resources; an untyped number after an equals sign is the total.

    >>> gpus_of("cpu=8,mem=4G,node=1,gres/gpu=4,gres/gpu:a100=4"), gpus_of("gres:gpu:a100:2"), gpus_of("N/A"), gpus_of("gres/gpu:h100=3")
    (4, 2, 0, 3)
    >>> gpus_of("gpu:a100:4(S:0,1),gpu:h100:2,mps:200"), gpus_of("gpu"), gpus_of("(null)")
    (6, 1, 0)
    """
    total, typed = 0, 0
    for one in re.sub(r"\([^)]*\)", "", text).split(","):
        match = re.fullmatch(r"(?:gres[/:])?gpu(:[^:=]+)??(?:([:=])([0-9]{1,9}))?", one.strip())
        if match is None:
            continue
        number = int(match[3] or 1)
        total, typed = (total, typed + number) if match[1] and match[2] == "=" else (total + number, typed)
    return total or typed


def gpu_types_of(text: str) -> str:
    """Return the types of the GPUs in a list of resources, with their numbers if there are several; empty without types.

    >>> gpu_types_of("cpu=8,gres/gpu=4,gres/gpu:a100=4"), gpu_types_of("gpu:v100:2,gpu:a100:1"), gpu_types_of("gres/gpu=2")
    ('a100', 'a100:1+v100:2', '')
    """
    counts: dict[str, int] = {}
    for match in re.finditer(r"gpu:([^:=,()]+)[:=]([0-9]{1,9})(?![0-9])|gpu:([^:=,()]*[^0-9:=,()][^:=,()]*)", text):
        name = match[1] or match[3]
        counts[name] = counts.get(name, 0) + int(match[2] or 1)
    return next(iter(counts), "") if len(counts) < 2 else "+".join(f"{name}:{count}" for name, count in sorted(counts.items()))


def number_of(value: Any, name: str, least: int = -(2**53) + 1, most: int = 2**53 - 1) -> int | None:
    """Return a JSON number, given directly or as an object with `set`, `infinite` and `number`; None if unknown, UNLIMITED if infinite."""
    if isinstance(value, Mapping):
        if value.get("infinite"):
            return UNLIMITED
        value = value.get("number") if value.get("set") else None
    if value is None or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OddError(f"{name} must be a whole number, not {quoted(str(value))}")
    return value


def text_of(value: Any, name: str) -> str:
    """Return a JSON text; empty if it is missing."""
    return known(_checked(value, name, str, "a text") or "")


def members(value: Any, name: str) -> Mapping[str, Any]:
    """Return a JSON object; an empty one if it is missing."""
    return _checked(value, name, Mapping, "an object") or {}


def elements(value: Any, name: str) -> Sequence[Any]:
    """Return a JSON list; an empty one if it is missing."""
    return _checked(value, name, list, "a list") or ()


def _checked(value: Any, name: str, kind: type, title: str) -> Any:
    if value is not None and not isinstance(value, kind):
        raise OddError(f"{name} must be {title}, not {quoted(str(value))}")
    return value


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
