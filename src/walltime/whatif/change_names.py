"""Describe changes in words: `nodes+=10%` becomes "10 % more nodes"."""

from walltime.schedule.groups import round_time
from walltime.whatif.change import NO_LIMIT, Change, is_exclusive, items_of, length_in, max_time_of, parse_change
from walltime.wording import listed


def change_name(change: Change) -> str:
    """Return the change in words, as sentences and tables name it.

    >>> requests = "requests.memory=suggested:risk=1"
    >>> for text in ("nodes+=10%", "pool.fat.nodes+=1", "partition.long.MaxTime=12h", "limit.1.jobs=8", requests):
    ...     print(change_name(parse_change(text)))
    10 % more nodes
    1 more node in pool fat
    a limit of 12 h in partition long
    8 jobs at once under limit 1
    memory requests as suggested at a risk of 1 %
    """
    first, _, rest = change.target.partition(".")
    name, _, key = rest.rpartition(".")
    where = "" if name == "all" else f" in {first.lower()} {name}"  # `all` is the pool or partition of a machine without names
    match first.lower():
        case "pool":
            return f"{_counted(change, key.lower())}{where}"
        case "partition":
            return f"{_of_partition(change, key.lower())}{where}"
        case "limit" if change.target.lower() == "limit.new.by":
            return f"a limit per {change.value.replace(',', ', ').replace('=', ' ')}"
        case "limit" if change.value.lower() in NO_LIMIT:
            return f"no limit {name}"
        case "limit":
            return f"{_counted(change, key.lower())} at once under limit {name}"
        case "qos" if key.lower() == "preempts":
            return f"{'no ' if change.sign == '-=' else ''}preemption of {change.value} by quality of service {name}"
        case "qos" if key.lower() != "priority":
            return f"{_of_preemption(change, key.lower())} of quality of service {name}"
        case "qos":
            return f"priority {_value(change)} for quality of service {name}"
        case "licences":
            return f"{_counted(change, 'licences')} of {rest}"
        case "share":
            return f"{_counted(change, 'shares')} for {name}"
        case "nodes":
            return _counted(change, "nodes")
        case "move":
            count, _, places = change.value.partition(":")
            return f"{count} nodes moved from {places.replace(':', ' to ', 1)}"
        case "load":
            return f"{_percent(change)} {'less' if float(change.value) < 1 else 'more'} load"
        case "requests":
            value, *others = items_of(change.value)
            how, risk, percent = value.partition(":risk=")
            said = f"times {how}" if change.sign == "*=" else f"as {how}{f' at a risk of {percent} %' if risk else ''}"
            what = {"gpus": "GPU", "procs": "processor", "time": "walltime"}.get(rest.lower(), rest.lower())
            return listed([f"{what} requests {said}", *(change_name(parse_change(one)) for one in others)])
        case "requested":
            return f"requests {_percent(change)} {'shorter' if float(change.value) < 1 else 'longer'}"
        case "adjust":
            return f"the side-car with {change.value}"
        case "soft":
            return f"soft walltimes from {change.value}"
        case "policy" | "estimates" as what:
            return f"{what} {change.value}"
    if change.sign == "=":
        return f"{change.target} = {change.value}"
    return change.value.replace("=", " = ") if change.sign == "+=" else f"no {change.value}"


def _of_partition(change: Change, key: str) -> str:
    match key:
        case "maxtime" | "max_time":
            seconds = max_time_of(change)
            return "no time limit" if seconds is None else f"a limit of {round_time(seconds)}"
        case "oversubscribe" | "exclusive":
            return "whole nodes" if is_exclusive(change) else "shared nodes"
        case "preempt" | "preemptmode" | "grace" | "gracetime":
            return _of_preemption(change, key)
        case "pools":
            sign = {"+=": "also ", "-=": "without "}.get(change.sign, "")
            return f"{sign}pool{'s' if ',' in change.value else ''} {change.value}"
    return f"{'priority tier' if key.endswith('tier') else 'priority factor'} {_value(change)}"


def _of_preemption(change: Change, key: str) -> str:
    if key.startswith("grace"):
        return f"grace time of {round_time(length_in(change))}"
    return {"cancel": "preemption with cancelling", "requeue": "preemption with requeueing"}.get(change.value.lower(), "no preemption")


def _counted(change: Change, what: str) -> str:
    value, what = change.value.replace("%", " %"), what.removesuffix("s") if change.value == "1" else what
    return value + {"+=": " more ", "-=": " fewer ", "*=": " times the ", "=": " "}[change.sign] + what


def _value(change: Change) -> str:
    return {"+=": "+", "-=": "-", "*=": "times ", "=": ""}[change.sign] + change.value


def _percent(change: Change) -> str:
    return f"{100 * abs(float(change.value) - 1):.3g} %"
