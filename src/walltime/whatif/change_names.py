"""Names of changes in sentences: `nodes+=10%` is "10 % more nodes"."""

from __future__ import annotations

from walltime.schedule.groups import round_time
from walltime.whatif.changes import NO_LIMIT, Change, max_time_of


def change_name(change: Change) -> str:
    """Return the name of the change in sentences.

    >>> from walltime.whatif.changes import parse_change
    >>> for text in ("nodes+=10%", "pool.fat.nodes+=1", "partition.long.MaxTime=12h", "load*=0.9", "limit.1.jobs=8"):
    ...     print(change_name(parse_change(text)))
    10 % more nodes
    1 more node in pool fat
    limit of 12 h in partition long
    10 % less load
    8 jobs at once by limit 1
    """
    first, dot, rest = change.target.partition(".")
    if dot:
        name, _, key = rest.rpartition(".")
        return _of_row(change, first.lower(), name, key.lower())
    match first.lower():
        case "nodes":
            return _counted(change, "nodes")
        case "load":
            return f"{_percent(change)} {'less' if float(change.value) < 1 else 'more'} load"
        case "requested":
            return f"requests {_percent(change)} {'shorter' if float(change.value) < 1 else 'longer'}"
        case "adjust":
            return f"the side-car with {change.value}"
        case "soft":
            return f"soft walltimes by {change.value}"
        case "policy" | "estimates":
            return f"{first.lower()} {change.value}"
    if change.sign == "=":
        return f"{change.target} = {change.value}"
    return change.value.replace("=", " = ") if change.sign == "+=" else f"no {change.value}"


def _of_row(change: Change, table: str, name: str, key: str) -> str:
    """A change of a pool, a partition, a limit, a quality of service or a share; `all` is the one of a machine without names."""
    match table:
        case "pool":
            return f"{_counted(change, key)}{_in('pool', name)}"
        case "partition":
            return f"{_of_partition(change, key)}{_in('partition', name)}"
        case "limit" if change.value.lower() in NO_LIMIT:
            return f"no limit {name}"
        case "limit":
            return f"{_counted(change, key)} at once by limit {name}"
        case "qos":
            return f"priority {_value(change)} for quality of service {name}"
    return f"{_counted(change, 'shares')} for {name}"


def _of_partition(change: Change, key: str) -> str:
    match key:
        case "maxtime" | "max_time":
            seconds = max_time_of(change, slurm=key == "maxtime")
            return "no time limit" if seconds is None else f"limit of {round_time(seconds)}"
        case "oversubscribe" | "exclusive":
            whole = change.value.lower() == "exclusive" or (key == "exclusive" and change.value.lower() in ("yes", "true"))
            return "whole nodes" if whole else "shared nodes"
        case "pools":
            sign = {"+=": "also ", "-=": "without "}.get(change.sign, "")
            return f"{sign}pool{'s' if ',' in change.value else ''} {change.value}"
    return f"{'priority tier' if key.endswith('tier') else 'priority factor'} {_value(change)}"


def _in(what: str, name: str) -> str:
    return "" if name == "all" else f" in {what} {name}"


def _counted(change: Change, what: str) -> str:
    value, what = change.value.replace("%", " %"), what.removesuffix("s") if change.value == "1" else what
    return {"+=": f"{value} more {what}", "-=": f"{value} fewer {what}", "*=": f"{value} times the {what}"}.get(
        change.sign, f"{value} {what}"
    )


def _value(change: Change) -> str:
    return {"+=": f"+{change.value}", "-=": f"-{change.value}", "*=": f"times {change.value}"}.get(change.sign, change.value)


def _percent(change: Change) -> str:
    return f"{100 * abs(float(change.value) - 1):.3g} %"
