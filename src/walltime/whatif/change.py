"""Parse a change such as `nodes+=10%`, and read its value as a count, a time, a choice or a list."""

import math
import re
from dataclasses import dataclass
from typing import Any

from walltime.errors import PolicyError
from walltime.schedule.groups import round_time
from walltime.slurm_values import seconds_of
from walltime.specification import Specification
from walltime.wording import shown
from walltime.workload.filters import parse_seconds

SPELLING = re.compile(r"\s*(?P<target>.+?)\s*(?P<sign>\+=|-=|\*=|=)\s*(?P<value>.*?)\s*", re.DOTALL)
NO_LIMIT = ("unlimited", "infinite", "none")
ALL_SIGNS = ("=", "+=", "-=", "*=")


@dataclass(frozen=True)
class Change(Specification):
    """A change such as `nodes+=10%`: its target, operator and value; `str` returns the text."""

    target: str
    """what changes, such as `nodes` or `partition.long.MaxTime`"""
    sign: str
    """the operator: =, +=, -= or *="""
    value: str
    """the new value, the amount or the factor"""

    @property
    def label(self) -> str:
        """Return the change as text."""
        return f"{self.target}{self.sign}{self.value}"

    @property
    def where(self) -> str:
        """Return the change as error messages name it."""
        return f"the change {shown(self.label)}"


def parse_change(text: str | Change) -> Change:
    """Parse a change; raises PolicyError if it lacks a target, an operator or a value.

    >>> change = parse_change("SchedulerParameters += bf_max_job_test=1000")
    >>> change.target, change.sign, change.value, str(change)
    ('SchedulerParameters', '+=', 'bf_max_job_test=1000', 'SchedulerParameters+=bf_max_job_test=1000')
    """
    if isinstance(text, Change):
        return text
    match = SPELLING.fullmatch(text) if isinstance(text, str) else None
    if match is None or not match["value"]:
        raise PolicyError(
            f"{shown(text)} is not a change; write WHAT=VALUE, WHAT+=VALUE, WHAT-=VALUE or WHAT*=VALUE, such as nodes+=10%", "wrong_type"
        )
    return Change(match["target"], match["sign"], match["value"])


def check_sign(change: Change, *signs: str) -> None:
    """Raise PolicyError unless the operator of the change is one of these."""
    if change.sign not in signs:
        raise PolicyError(
            f"{change.where}: {change.target} must be changed with {' or '.join(signs)}, not with {change.sign}", "wrong_operator"
        )


def count_of(change: Change, now: int, least: int = 1) -> int:
    """Return the new value of a whole number, rounded up; `now`: the current value, to which percentages refer."""
    number, percent = change.value.removesuffix("%").strip(), change.value.endswith("%")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not (0 <= value <= 2**40 and (value.is_integer() or percent or change.sign == "*=")):
        raise PolicyError(
            f"{change.where}: {shown(change.value)} is not a valid number; write a whole number, or a percentage such as 10%", "wrong_value"
        )
    if percent and change.sign in ("=", "*="):
        factor = ", or *= with a factor such as 1.1" if change.sign == "*=" else ""
        raise PolicyError(f"{change.where}: write += or -= with a percentage{factor}", "wrong_operator")
    by = now * value / 100 if percent else value
    new = math.ceil(round({"=": value, "*=": now * value, "+=": now + by, "-=": now - by}[change.sign], 6))
    if new < least:
        raise PolicyError(f"{change.where} leaves {new}, but at least {least} must be left", "number_out_of_range")
    return new


def max_time_of(change: Change) -> int | None:
    """Return a time limit, s, such as 24h or 1-00:00:00; None for `unlimited`.

    A number without a unit is in minutes for Slurm's key `MaxTime`, and in seconds for the machine file's key `max_time`.
    """
    text = change.value.lower()
    if text in NO_LIMIT:
        return None
    try:
        seconds = int(text) if text.isdecimal() and not change.target.lower().endswith(".maxtime") else seconds_of(text)
    except ValueError:
        seconds = parse_seconds(text)
    if seconds < 1:
        raise PolicyError(f"{change.where}: the longest time must be at least 1 s")
    return seconds


def length_in(change: Change) -> int:
    """Return a grace time, s, such as 60, 5m or `none`, which means 0."""
    return 0 if change.value.strip("0") == "" else max_time_of(change) or 0


def is_exclusive(change: Change) -> bool:
    """Return whether jobs get whole nodes; `yes` is rejected for the key OverSubscribe, where it would let jobs share nodes."""
    known = {"exclusive": True, "true": True, "yes": change.target.lower().endswith(".exclusive")}
    known |= {"no": False, "false": False, "force": False}
    if change.value.lower() not in known:
        raise PolicyError(f"{change.where}: write EXCLUSIVE for whole nodes, or NO", "wrong_value")
    return known[change.value.lower()]


def names_of(change: Change, now: tuple[str, ...], field: str) -> tuple[str, ...]:
    """Return the new names in a list: the pools of a partition, or the qualities of service that another may preempt."""
    names = items_of(change.value)
    absent = [name for name in names if name not in now]
    if change.sign != "-=":
        return (*now, *absent) if change.sign == "+=" else tuple(names)
    if absent:
        what, noun = ("partition has no pool", "pools") if field == "pools" else ("quality of service does not preempt", "names")
        raise PolicyError(f"{change.where}: the {what} {absent[0]}. Valid {noun}: {', '.join(now)}", "unknown_name")
    return tuple(name for name in now if name not in names)


def items_of(text: str) -> list[str]:
    """Return the non-empty items of a comma-separated list."""
    return [item for part in text.split(",") if (item := part.strip())]


def became(what: str, key: str, old: Any, new: Any) -> str:
    """Describe the change of a value, such as `pool a: nodes 4 → 5`."""
    return f"{what}: {key} {_value_text(key, old)} → {_value_text(key, new)}" + (" (no change)" if old == new else "")


def _value_text(key: str, value: Any) -> str:
    match value:
        case None:
            return "unlimited"
        case tuple():
            return ", ".join(value)
        case bool():
            return "yes" if value else "no"
        case str():
            return value
    return round_time(value) if key in ("max_time", "grace") else f"{value:,}"
