"""Apply changes such as `nodes+=10%`, `partition.long.MaxTime=24h` or `SchedulerParameters+=bf_max_job_test=1000` to a setting."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from walltime.declared import DeclaredField, Field, keys_of, valid_options
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import ESTIMATES, parse_estimates
from walltime.machine import Limit, Machine, Partition, Share
from walltime.machine.tables import LIMIT_COLUMNS, length_of
from walltime.metrics.right_size import RISK, SUGGESTED, USED, WORDS
from walltime.policy import POLICIES, Policy
from walltime.policy.slurm import NO_EFFECT, PARAMETERS
from walltime.predictors import Prediction
from walltime.predictors.registry import PREDICTORS
from walltime.simulation.specification import parse_scheduler
from walltime.specification import Family, complete, describe_value, read_value
from walltime.whatif.adjustment import parse_adjustment
from walltime.whatif.change import (
    ALL_SIGNS,
    NO_LIMIT,
    Change,
    became,
    check_sign,
    count_of,
    is_exclusive,
    items_of,
    length_in,
    max_time_of,
    names_of,
    parse_change,
)
from walltime.whatif.setting import Setting
from walltime.wording import shown

LISTS = ("SchedulerParameters", "PriorityFlags")
"""Slurm parameters that are lists, so that single items can be added and removed."""
SETTINGS = tuple(dict.fromkeys(one.setting for one in PARAMETERS.values() if one.setting))
"""Slurm parameters that the simulation supports."""
CHOSEN_RISK = DeclaredField("risk", float, Field(least=0, most=99.9), RISK)
FACTOR = DeclaredField("factor", float, Field(least=0.01, most=100), 1.0)


@dataclass(frozen=True)
class Target:
    """A quantity outside the tables of the machine file that a change can set.

    `signs`: the valid operators. `value`: the form of the value, and `meaning`: the effect, both for the documentation.
    """

    apply: Callable[[Change, Setting], tuple[Setting, list[str]]]
    signs: tuple[str, ...]
    value: str
    meaning: str


def complete_change(text: str) -> list[str]:
    """Return shell completions of a change: targets with operators, then the names of schedulers, estimate models or predictors.

    >>> complete_change("po"), complete_change("soft=tsa"), complete_change("SchedulerParameters+=bf_max_job_t")
    (['policy=', 'pool.'], ['soft=tsafrir07'], ['SchedulerParameters+=bf_max_job_test='])
    """
    match = re.fullmatch(r"(?P<begin>(?P<target>[^=+*-]+)(?:\+=|-=|\*=|=))(?P<value>.*)", text)
    if match is None:
        words = [f"{name}{sign}" for name, one in OF_SETTING.items() for sign in one.signs]
        words += [f"{table}." for table in (*TABLES, "licences")] + [f"{name}{sign}" for name in SETTINGS for sign in signs_of(name)]
        return [word for word in words if word.lower().startswith(text.lower())]
    begin, target, value = match.groups()
    families: Mapping[str, Family[Any]] = {"policy": POLICIES, "estimates": ESTIMATES, "adjust": PREDICTORS, "soft": PREDICTORS}
    if target in families:
        return [begin + one for one in complete(families[target], value)]
    if target.lower() != "schedulerparameters":
        return []
    before, comma, last = value.rpartition(",")
    items = [f"{name}=" for name, one in PARAMETERS.items() if one.setting == "SchedulerParameters" and name.startswith(last)]
    return [f"{begin}{before}{comma}{item}" for item in items]


def targets() -> list[str]:
    """Return the valid targets of changes, for messages; NAME stands for the name of a row, N for its number."""
    rows = [f"{table}.{of.placeholder}.{next(iter(of.keys))}" for table, of in TABLES.items()]
    return [*OF_SETTING, *rows, "limit.new.by", "licences.NAME", *SETTINGS]


def apply_change(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    """Return the changed setting and sentences on the change; raises PolicyError for an invalid change."""
    try:
        return _apply(change, setting)
    except WorkloadError as error:
        raise PolicyError(f"{change.where}: {error}") from error


def _apply(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    first, dot, rest = change.target.partition(".")
    own = OF_SETTING.get(change.target.lower())
    if own is not None:
        check_sign(change, *own.signs)
        return own.apply(change, setting)
    if not dot:
        return _slurm(change, setting)
    if first.lower() == "licences":
        return _licences(change, setting, rest)
    table = TABLES.get(first.lower())
    name, dot, key = rest.rpartition(".")
    if table is None or not dot:
        raise _unknown(change)
    if rest.lower() == "new.by" and table.rows == "limits":
        machine, told = _new_limit(change, setting.machine)
    else:
        machine, told = _change_row(change, setting.machine, table, name, key)
    return replace(setting, machine=machine), told


def signs_of(setting: str) -> tuple[str, ...]:
    """Return the valid operators for a Slurm parameter."""
    return ("=", "+=", "-=") if setting.lower() in map(str.lower, LISTS) else ("=",)


def _unknown(change: Change) -> PolicyError:
    return PolicyError(f"{change.where}: unknown name {shown(change.target)}{valid_options(change.target, targets())}", "unknown_name")


# ---------------------------------------------------------------------- policy, load, users


def _policy(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    parse_scheduler(change.value)
    return replace(setting, policy=change.value), []


SCALED = {
    "load": "the same jobs arrive {:g} times as fast: the times between submissions are scaled",
    "requested": "every requested time is {:g} times as long, and jobs are killed there",
}
"""Fields of a `Setting` that are factors, each with the sentence on its change."""


def _scale(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    factor, name = read_value(FACTOR, change.target, change.value, change.where), change.target.lower()
    scaled: dict[str, Any] = {name: getattr(setting, name) * factor}
    return replace(setting, **scaled), [SCALED[name].format(factor)]


REQUESTS = {"requests.memory": "memory", "requests.procs": "cores", "requests.gpus": "gpus", "requests.time": "time"}
"""Requested resources that can be changed, and their names in `walltime.metrics.right_size`."""


def _requests(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    """Change the requests for one resource or several, as in `requests.memory=suggested,requests.gpus=used`."""
    value, *others = items_of(change.value) or [""]
    how: str | float
    how, colon, given = value.partition(":risk=")
    risk = read_value(CHOSEN_RISK, "risk", given, change.where) if colon else RISK
    if change.sign == "*=":
        how = read_value(FACTOR, change.target, value, change.where)
    elif not (how == SUGGESTED or value == USED):
        raise PolicyError(
            f"{change.where}: write {SUGGESTED}, {SUGGESTED}:risk=1 or {USED}, or *= with a factor such as 0.5", "wrong_value"
        )
    name = REQUESTS[change.target.lower()]
    if any(name == one for one, *_ in setting.requests):
        raise PolicyError(f"{change.where}: {change.target} is changed twice; remove one", "same_setting")
    word = WORDS[name]
    meaning = {
        SUGGESTED: f"the {word} that earlier jobs with the same user, job name, size and request suggest at a risk of {risk:g} %",
        USED: f"the {word} that it used, known in hindsight",
    }
    told = [
        f"each job requests {how:g} times the {word}"
        if isinstance(how, float)
        else f"each job requests {meaning[how]}, but no more than today"
    ]
    if name == "memory":
        told.append("a job that runs out of memory fails at its end and runs again at once with twice the memory, or with its old request")
    changed = replace(setting, requests=(*setting.requests, (name, how, risk)))
    for text in others:
        more = parse_change(text)
        if more.target.lower() not in REQUESTS:
            raise PolicyError(f"{change.where}: {shown(text)} must be a change of {', '.join(REQUESTS)}", "wrong_value")
        changed, lines = _apply(more, changed)
        told += lines
    return changed, told


def _estimates(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    parse_estimates(change.value)
    return replace(setting, estimates=change.value), [f"the scheduler plans with the estimates {change.value}"]


def _adjust(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    adjustment = parse_adjustment(change.value)
    changed = replace(setting, adjustment=adjustment)
    return changed, [
        f"waiting jobs are planned by their TimeMin, from {adjustment.predictor.label}, at least {adjustment.floor} min and at most "
        f"{adjustment.gain:g} of the limit; {_running(changed)}; no job ends before its user's limit"
    ]


def _soft(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    scheduler = setting.scheduler()
    if scheduler.policy.plans_nodes:
        other = "; use another policy" if scheduler.policy.settings() is None else "; Slurm's soft limits are TimeMin: adjust=PREDICTOR"
        raise PolicyError(f"{change.where}: {scheduler.policy.name} does not support soft walltimes{other}", "wrong_change")
    prediction = Prediction(change.value, correction="soft")
    return replace(setting, policy=replace(scheduler, prediction=prediction)), [
        f"jobs are planned by soft walltimes from {prediction.predictor.label}; a job that exceeds its own is planned for the same time "
        "again, up to the user's limit, where it is killed as before"
    ]


def _running(setting: Setting) -> str:
    """Describe how running jobs are planned if waiting jobs have a TimeMin."""
    scheduler = setting.scheduler()
    settings = scheduler.policy.settings(setting.machine.slurm)
    if settings is not None:
        half = settings["soft_limit_running"] == "half"
    else:
        half = scheduler.prediction is not None and scheduler.prediction.predictions_for.running
    return "running ones by it, and then by half of what is left of the limit" if half else "running ones by the user's limit"


def _nodes(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    pools = setting.machine.pools
    if len(pools) > 1 and not change.value.endswith("%") and change.sign != "*=":
        names = ", ".join(f"pool.{pool.name}.nodes" for pool in pools)
        raise PolicyError(f"{change.where}: there are several pools; name one, as in {names}, or give a percentage", "ambiguous_pool")
    before = [pool.nodes for pool in pools]
    after = _shared(count_of(change, sum(before), len(pools)), before)
    changed = [replace(pool, nodes=nodes) for pool, nodes in zip(pools, after, strict=True)]
    lines = [became("the machine", "nodes", sum(before), sum(after))] if len(pools) > 1 else []
    lines += [
        became(f"pool {pool.name}", "nodes", old, new)
        for pool, old, new in zip(pools, before, after, strict=True)
        if old != new or len(pools) == 1
    ]
    return replace(setting, machine=replace(setting.machine, pools=tuple(changed))), lines


def _shared(total: int, before: list[int]) -> list[int]:
    """Distribute nodes among pools in proportion to their current nodes, at least 1 each, by largest remainders, then larger pools.

    >>> _shared(31, [14, 10, 2, 2]), _shared(4, [14, 10, 2, 2])
    ([16, 11, 2, 2], [1, 1, 1, 1])
    """
    exact = [max(1.0, total * nodes / sum(before)) for nodes in before]
    shares = [math.floor(share) for share in exact]
    order = sorted(range(len(before)), key=lambda k: (shares[k] - exact[k], -before[k]))
    step = 1 if sum(shares) < total else -1
    while sum(shares) != total:
        for k in order if step > 0 else sorted(order, key=lambda k: -shares[k]):
            if sum(shares) != total and shares[k] + step >= 1:
                shares[k] += step
    return shares


def _move(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    """Move nodes from one partition to another. The moved nodes become a new pool, which stays in the other partitions of the old pool."""
    count, _, names = change.value.partition(":")
    source, _, target = names.partition(":")
    machine = setting.machine
    partitions = {one.name: one for one in machine.partitions}
    if not count.isdecimal() or not int(count) or not target:
        raise PolicyError(f"{change.where}: write NODES:FROM:TO, such as move=2:cpu:gpu", "wrong_value")
    for name in (source, target):
        if name not in partitions:
            raise PolicyError(f"{change.where}: there is no partition {shown(name)}{valid_options(name, list(partitions))}", "unknown_name")
    own = [pool for pool in machine.pools if pool.name in partitions[source].pools and pool.name not in partitions[target].pools]
    large = max(own, key=lambda pool: pool.nodes, default=None)
    if large is None or large.nodes <= int(count):
        what = f"all pools of {source} are also pools of {target}, so no node can be moved"
        if large is not None:
            what = f"at most {large.nodes - 1} nodes of {source} can be moved to {target}, because the pool {large.name} must keep one"
        raise PolicyError(f"{change.where}: {what}", "number_out_of_range")
    moved = replace(large, name=f"{large.name}-in-{target}", nodes=int(count))
    pools = [replace(pool, nodes=pool.nodes - moved.nodes) if pool is large else pool for pool in machine.pools]

    def joined(one: Partition) -> Partition:
        stays = large.name in one.pools and one.name != source
        return replace(one, pools=(*one.pools, moved.name)) if stays or one.name == target else one

    changed = replace(machine, pools=(*pools, moved), partitions=tuple(map(joined, machine.partitions)))
    return replace(setting, machine=changed), [f"{count} nodes of the pool {large.name} go from partition {source} to {target}"]


OF_LIMIT = {"qos": "queue", "account": "group", "cpus": "procs"}
"""Slurm's names for the columns and keys of a limit."""


def _new_limit(change: Change, machine: Machine) -> tuple[Machine, list[str]]:
    """Add a limit; the value lists the columns by which it counts, its amounts, and the column values to which it applies."""
    check_sign(change, "=")
    by: list[str] = []
    values: dict[str, Any] = {"among": {}}
    for item in items_of(change.value):
        name, equals, value = item.partition("=")
        name = OF_LIMIT.get(name.lower(), name.lower())
        if not equals:
            by += [name] if name != "none" else []
        elif name in ("jobs", "procs", "second", machine.second):
            values["second" if name == machine.second else name] = count_of(Change(change.target, "=", value), 0, 1)
        elif name in LIMIT_COLUMNS:
            values["among"][name] = (*values["among"].get(name, ()), value)
        else:
            known = ["jobs", "procs", machine.second, *LIMIT_COLUMNS]
            raise PolicyError(f"{change.where}: a limit has no {shown(name)}{valid_options(name, known)}", "unknown_key")
    added = Limit(tuple(by), **values)
    return replace(machine, limits=(*machine.limits, added)), [f"limit {len(machine.limits) + 1} is new: {change.value}"]


def _licences(change: Change, setting: Setting, name: str) -> tuple[Setting, list[str]]:
    there = setting.machine.licences
    if name not in there:
        raise PolicyError(
            f"{change.where}: there are no licences {shown(name)}{valid_options(name, list(there)) if there else '; the machine has none'}",
            "unknown_name",
        )
    check_sign(change, *ALL_SIGNS)
    count = count_of(change, there[name])
    machine = replace(setting.machine, licences={**there, name: count})
    return replace(setting, machine=machine), [became("licences", name, there[name], count)]


def _slurm(change: Change, setting: Setting) -> tuple[Setting, list[str]]:
    settings = dict(setting.machine.slurm)
    known = {name.lower(): name for name in (*settings, *SETTINGS)}
    name = known.get(change.target.lower())
    if name is None:
        raise _unknown(change)
    policy = setting.scheduler().policy
    if policy.settings() is None:
        raise PolicyError(
            f"{change.where} has no effect with the policy {policy.label}: settings of Slurm need the policy slurm; "
            'set policy = "slurm" in the machine file',
            "change_without_effect",
        )
    check_sign(change, *signs_of(name))
    told = _parameters(change, policy) if name.lower() == "schedulerparameters" else []
    settings[name] = change.value if change.sign == "=" else _listed(change, settings.get(name, ""))
    changed = replace(setting, machine=replace(setting.machine, slurm=settings))
    changed.scheduler()  # raises PolicyError for an invalid value
    return changed, [f"{name} = {settings[name] or '(nothing)'}", *told]


def _parameters(change: Change, policy: Policy) -> list[str]:
    """Return notes on changed items of SchedulerParameters; raises PolicyError for items not simulated, or set by the policy itself."""
    names = [name for name, one in PARAMETERS.items() if one.setting == "SchedulerParameters"]
    told = []
    for item in (one.partition("=")[0].lower() for one in items_of(change.value)):
        if item in NO_EFFECT:
            told.append(f"{item} relieves a busy slurmctld; a simulated pass takes no time, so it changes nothing")
        elif item not in names and change.sign == "+=":
            raise PolicyError(f"{change.where}: {shown(item)} is not modelled. Valid names: {', '.join(names)}")
        elif item in names and getattr(policy, item) is not None:
            raise PolicyError(f"{change.where}: the policy {policy.label} sets {item} itself; change the policy")
    return told


def _listed(change: Change, now: str) -> str:
    """Return a comma-separated list of `name` or `name=value` after the change; an added item replaces one of the same name."""
    items = {item.partition("=")[0].lower(): item for item in items_of(now) if item != "(null)"}
    for item in items_of(change.value):
        name = item.partition("=")[0].lower()
        if change.sign == "+=":
            items[name] = item
        elif name not in items:
            raise PolicyError(f"{change.where}: there is no {name} to remove; there are {', '.join(items) or 'none'}", "unknown_name")
        else:
            del items[name]
    return ",".join(items.values())


OF_SETTING: Mapping[str, Target] = {
    "policy": Target(_policy, ("=",), "a scheduler, as in `--policy`", "the site's policy"),
    "nodes": Target(_nodes, ALL_SIGNS, "a number, a percentage, with `*=` a factor", "nodes of the one pool, or a percentage of all nodes"),
    "move": Target(_move, ("=",), "NODES:FROM:TO", "nodes go from one partition to another"),
    "load": Target(_scale, ("*=",), describe_value(FACTOR), "the arrival rate of jobs"),
    "requested": Target(_scale, ("*=",), describe_value(FACTOR), "the requested times, at which jobs are killed"),
    **{
        name: Target(_requests, ("=", "*="), "suggested, suggested:risk=1 or used; with `*=` a factor", f"the requested {WORDS[one]}")
        for name, one in REQUESTS.items()
    },
    "estimates": Target(_estimates, ("=",), "estimates, as in `--estimates`", "the planned runtimes"),
    "adjust": Target(_adjust, ("=",), "a predictor with its options, and floor and gain", "a side-car sets the TimeMin of waiting jobs"),
    "soft": Target(_soft, ("=",), "a predictor", "jobs are planned by soft walltimes, as PBS Professional does"),
}
"""Targets outside the tables of the machine file; every other name without a dot is a Slurm parameter."""


# ---------------------------------------------------------------------- tables of the machine's file


@dataclass(frozen=True)
class ChangedTable:
    """A table of the machine file with rows that changes can modify.

    `rows`: the field of `Machine`. `what`: the name of a row in messages. `keys`: the key in a change and the field that it sets;
    `{second}` stands for the name of the second resource. `least`: the smallest valid number.
    """

    rows: str
    what: str
    keys: Mapping[str, str]
    least: int = 0

    @property
    def row(self) -> type:
        """Return the class of a row."""
        (rows,) = (one for one in keys_of(Machine).values() if one.field == self.rows)
        kind: type = get_args(rows.kind)[0]
        return kind

    @property
    def placeholder(self) -> str:
        """Return NAME if the rows have names, N if they are numbered."""
        return "NAME" if self.rows in ("pools", "partitions", "qos", "shares") else "N"

    @property
    def declared(self) -> dict[str, DeclaredField]:
        """Return the declared fields of a row, by name."""
        return {one.field: one for one in keys_of(self.row).values()}

    def signs(self, field: str) -> tuple[str, ...]:
        """Return the valid operators for a field: all for numbers; =, += and -= for lists; = otherwise."""
        declared = self.declared[field]
        if field in ("pools", "preempts"):
            return ("=", "+=", "-=")
        return ("=",) if declared.key.known or declared.key.read is length_of or declared.kind is bool else ALL_SIGNS


OF_PARTITION = {"MaxTime": "max_time", "PriorityTier": "tier", "PriorityJobFactor": "job_factor", "OverSubscribe": "exclusive"}
OF_PARTITION |= {"PreemptMode": "preempt", "GraceTime": "grace"}
"""Slurm's names for the properties of a partition, and the keys of the machine file."""
TABLES: Mapping[str, ChangedTable] = {
    "pool": ChangedTable(
        "pools", "a pool", {name: name for name in ("nodes", "procs", "second", "memory")} | {"{second}": "second"}, least=1
    ),
    "partition": ChangedTable("partitions", "a partition", OF_PARTITION | {name: name for name in (*OF_PARTITION.values(), "pools")}),
    "limit": ChangedTable("limits", "a limit", {"jobs": "jobs", "procs": "procs", "{second}": "second", "second": "second"}, least=1),
    "qos": ChangedTable(
        "qos", "a quality of service", {name: name for name in ("priority", "preempt", "preempts", "grace")} | {"PreemptMode": "preempt"}
    ),
    "outage": ChangedTable("outages", "an outage", {"jobs": "jobs"}),
    "failure": ChangedTable("failures", "a table of failures", {name: name for name in ("mtbf", "repair", "jobs")}),
    "share": ChangedTable("shares", "a share", {"shares": "shares", "fairshare": "shares"}),
}
"""Tables of the machine file by the first word of a target, as in `pool.NAME.KEY` or `limit.N.KEY`."""


def _change_row(change: Change, machine: Machine, table: ChangedTable, name: str, key: str) -> tuple[Machine, list[str]]:
    rows: tuple[Any, ...] = getattr(machine, table.rows)
    names = [_name_of(row, number) for number, row in enumerate(rows, 1)]
    what = change.target.partition(".")[0].lower()
    if name not in names:
        there = valid_options(name, names) if names else "; the machine has none"
        more = "" if len(names) > 1 else "; others are given in the machine's file (--machine; in Python machine=...)"
        raise PolicyError(f"{change.where}: there is no {what} {shown(name)}{there}{more}", "unknown_name")
    spelled = {spelling.format(second=machine.second): field for spelling, field in table.keys.items()}
    field = {spelling.lower(): field for spelling, field in spelled.items()}.get(key.lower())
    if field is None:
        known = [spelling for spelling in spelled if spelling != "second"]
        raise PolicyError(f"{change.where}: {table.what} has no {shown(key)}{valid_options(key, known)}", "unknown_key")
    check_sign(change, *table.signs(field))
    place = names.index(name)
    old, now = rows[place], getattr(rows[place], field)
    value = _value(change, table, field, now, key)
    if isinstance(old, Limit) and value is None and now is not None and (old.jobs, old.procs, old.second).count(None) == 2:
        return replace(machine, limits=(*rows[:place], *rows[place + 1 :])), [f"limit {name} is gone"]
    changed: dict[str, Any] = {table.rows: (*rows[:place], replace(old, **{field: value}), *rows[place + 1 :])}
    return replace(machine, **changed), [became(f"{what} {name}", field if what == "partition" else key, now, value)]


def _name_of(row: Any, number: int) -> str:
    if isinstance(row, Share):
        return row.account if row.user is None else f"{row.account}.{row.user}"
    return str(getattr(row, "name", number))


def _value(change: Change, table: ChangedTable, field: str, now: Any, key: str) -> Any:
    if field in ("pools", "preempts"):
        return names_of(change, now, field)
    declared = table.declared[field]
    if known := declared.key.known:
        if change.value.lower() not in known:
            raise PolicyError(f"{change.where}: write {', '.join(known[:-1])} or {known[-1]}", "wrong_value")
        return change.value.lower()
    if declared.key.read is length_of:
        return length_in(change) if declared.default == 0 else max_time_of(change)
    if field == "exclusive":
        return is_exclusive(change)
    if table.rows == "limits" and change.sign == "=" and change.value.lower() in NO_LIMIT:
        return None
    if now is None and change.sign != "=":
        raise PolicyError(f"{change.where}: there is no {key} to change; set it with =", "wrong_change")
    return count_of(change, now or 0, table.least)
