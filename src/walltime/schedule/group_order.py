"""The natural order of groups of jobs, by their names."""

from __future__ import annotations

import math
import re
from typing import Any

from walltime.schedule.groups import DAYS, UNKNOWN
from walltime.workload.filters import UNITS

CLASSES = ("short narrow", "short wide", "long narrow", "long wide")
USE = ("heavy", "medium", "light")
_NUMBER = re.compile(r"\d+")
_TIME = re.compile(r"(\d+) (s|min|h|d)\b")


def group_rank(by: str, name: str) -> tuple[Any, ...]:
    """Sort key of a group of jobs by its name, so that campaigns list groups as the breakdowns of single runs do.

    Sizes, lengths and numbers ascend, days begin on Monday, months and hours follow the time, users go from heavy to light; others
    follow the alphabet, and what the log does not say comes last.

    >>> sorted(["9-16", "over 64", "1", "17-32"], key=lambda name: group_rank("size", name))
    ['1', '9-16', '17-32', 'over 64']
    >>> sorted(["over 1 d", "1 h to 4 h", "10 min to 1 h", "up to 10 min"], key=lambda name: group_rank("length", name))
    ['up to 10 min', '10 min to 1 h', '1 h to 4 h', 'over 1 d']
    >>> sorted(["Sun 03", "Mon 12", "Mon 03"], key=lambda name: group_rank("hour-of-week", name))
    ['Mon 03', 'Mon 12', 'Sun 03']
    """
    if name == UNKNOWN:
        return (1,)
    match by:
        case "size":
            return (0, _size(name), name)
        case "length":
            return (0, _length(name), name)
        case "size-length":
            size, _, length = name.partition(", ")
            return (0, _size(size), _length(length), name)
        case "weekday" | "hour-of-week":
            day, _, hour = name.partition(" ")
            return (0, DAYS.index(day) if day in DAYS else len(DAYS), hour)
        case "class" | "user":
            usual = CLASSES if by == "class" else USE
            return (0, usual.index(name) if name in usual else len(usual), name)
    number = _NUMBER.search(name)
    return (0, int(number[0]) if number else math.inf, name)


def _size(name: str) -> float:
    """The fewest processors of a group; one more for what is over the last edge."""
    number = _NUMBER.search(name)
    return math.inf if number is None else int(number[0]) + (1 if name.startswith("over") else 0)


def _length(name: str) -> float:
    """The shortest time of a group, s."""
    if name.startswith("up to"):
        return 0
    number = _TIME.search(name)
    return math.inf if number is None else int(number[1]) * UNITS["m" if number[2] == "min" else number[2]]
