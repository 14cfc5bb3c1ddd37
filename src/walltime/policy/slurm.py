"""Slurm's scheduling: the main scheduler at events, the backfill scheduler in cycles, and the order of the queue by priority."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from walltime.declared import Field, is_within
from walltime.errors import PolicyError
from walltime.policy.base import ON_NODES, PassSpec, Policy, Reservations
from walltime.slurm_values import seconds_of
from walltime.specification import options_of, spell
from walltime.wording import shown

Value = int | str | bool
DAY = 86_400
Unit = Literal["number", "s", "min", "flag", "time", "word"]


@dataclass(frozen=True, eq=False)
class Parameter(Field):
    """A Slurm setting as an option.

    `default`: Slurm's default. `unit`: the unit of its number; `time`: in Slurm's notation, stored in s. `setting`: the name in Slurm's
    configuration; empty if Slurm has none. `field`: its name in the records of compiled passes, if any; there, times are in s, and a word
    is 1 if it is the first known one. `restrains`: whether a value over 0 keeps jobs from getting reservations.
    """

    default: Value = 0
    unit: Unit = "number"
    setting: str = "SchedulerParameters"
    field: str = ""
    restrains: bool = False

    def number(self, value: Value) -> int:
        """Return a value in the form of compiled passes."""
        return int(value == self.known[0]) if self.known else int(value) * (60 if self.unit == "min" else 1)


def _parameter(
    default: Value, unit: Unit = "number", field: str = "", *, least: int = 0, known: tuple[str, ...] = (), **more: Any
) -> Parameter:
    """Return a parameter; `more`: its other fields."""
    number = f"a whole number of {least} or more" + (f" ({unit})" if unit != "number" else "")
    kinds = {"flag": "yes or no", "time": "a time in Slurm's notation, such as 7-0 or 00:05:00", "word": " or ".join(known) or "a text"}
    more |= {} if unit in ("flag", "word") else {"least": least}
    key = Parameter(default=default, unit=unit, field=field, known=known, label=kinds.get(unit, number), **more)
    object.__setattr__(key, "read", partial(_read, key))
    object.__setattr__(key, "write", partial(_write, key))
    return key


def _read(parameter: Parameter, text: str) -> Value:
    """Return a value in Slurm's notation; raises PolicyError if it is invalid."""
    text = text.strip()
    value: Value | None = None
    if parameter.unit == "word":
        word = text.lower().rpartition("/")[2]
        value = text if not parameter.known else word if word in parameter.known else None
    elif parameter.unit == "flag":
        value = {"yes": True, "1": True, "no": False, "0": False}.get(text.lower())
    elif parameter.unit == "time":
        with suppress(ValueError):
            value = seconds_of(text)
    elif re.fullmatch(r"-?[0-9]{1,18}", text):
        value = int(text)
    if value is None or (not isinstance(value, str) and not is_within(value, parameter)):
        raise PolicyError(f"must be {parameter.label}, not {shown(text)}", "wrong_value")
    return value


def _write(parameter: Parameter, value: Any) -> str:
    """Return the text of a value in Slurm's notation."""
    if parameter.unit == "time":
        return f"{value // DAY}-{value // 3600 % 24:02d}:{value // 60 % 60:02d}:{value % 60:02d}"
    return spell(value)


NO_EFFECT = (
    *("batch_sched_delay", "bf_continue", "bf_max_time", "bf_node_space_size", "bf_yield_interval", "bf_yield_rpc_cnt", "bf_yield_sleep"),
    *("build_queue_timeout", "max_rpc_cnt", "sched_min_interval", "preempt_send_user_signal"),
)
"""Parameters that reduce the load on slurmctld: they have no effect on simulated passes, which take no time."""
NOT_MODELLED = {
    "PreemptType": ("preempt/none", "preempt/partition_prio", "preempt/qos", "(null)", ""),
    "PriorityUsageResetPeriod": ("NONE", "(null)", ""),
    "TopologyPlugin": ("topology/none", "topology/default", "topology/flat", "(null)", ""),
}
"""Settings for which only these values are modelled."""
FLAGS = ("NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME")


RESOURCES = re.compile("cpu|mem|node|gres/gpu(:.+)?")
"""Slurm's names of the resources that may have weights."""


def weights_of(text: str) -> dict[str, float]:
    """Return the weights of resources in Slurm's notation, by lower-case name; separated by commas or, in options, by colons.

    >>> weights_of("CPU=1000.00,Mem=500"), weights_of("GRES/gpu:A100=2:Node=1"), weights_of("(null)")
    ({'cpu': 1000.0, 'mem': 500.0}, {'gres/gpu:a100': 2.0, 'node': 1.0}, {})
    """
    found = re.findall(r"([a-z][a-z0-9/_]*(?::[a-z0-9_.-]+)?)=([0-9]+(?:\.[0-9]+)?)", text.lower())
    return {name: float(weight) for name, weight in found}


@dataclass(frozen=True)
class SlurmSettings:
    """The value of every parameter in a simulation; `notes`: requested settings that are not modelled."""

    values: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def numbers(self) -> dict[str, int]:
        """Return the parameters of compiled passes, by field of their records."""
        return {one.field: one.number(self.values[name]) for name, one in PARAMETERS.items() if one.field}

    @property
    def restrains(self) -> bool:
        """Return whether a parameter may keep jobs from getting reservations."""
        return any(one.number(self.values[name]) > 0 for name, one in PARAMETERS.items() if one.restrains)

    @property
    def multifactor(self) -> bool:
        """Return whether priorities can differ, which requires a weight over 0."""
        weights = (self[name] for name in PARAMETERS if name.startswith("priority_weight") and name != "priority_weight_tres")
        return self["priority_type"] == "multifactor" and (any(weights) or any(weights_of(self["priority_weight_tres"]).values()))

    @property
    def decay(self) -> float:
        """Return the weight of past usage after one PriorityCalcPeriod."""
        half_life = self["priority_decay_half_life"]
        return float(0.5 ** (self["priority_calc_period"] / half_life)) if half_life else 1.0

    def flag(self, name: str) -> bool:
        """Return whether this flag of PriorityFlags is set."""
        return name in str(self["priority_flags"]).upper().replace(":", ",").split(",")


@dataclass(frozen=True)
class Slurm(Policy):
    """Slurm's main and backfill schedulers on a machine of nodes, with the parameters of Slurm's configuration.

    An option that is None comes from the machine file's table `[slurm]`, or is Slurm's default. It needs a machine of pools (`--machine`).

    >>> Slurm(bf_interval=60).settings({"SchedulerParameters": "bf_interval=15,bf_window=60"})["bf_window"]
    60
    """

    display_name: ClassVar[str] = "Slurm"
    own_order = "orders the queue by priority; leave the order out, or set priority_type and priority_weight_age"
    reservations = Reservations("some", "only jobs that a backfill cycle has planned have one")
    machines = ON_NODES
    passes = PassSpec("slurm", None)
    separator: ClassVar[str] = "_"
    default_queue_depth: Annotated[int | None, _parameter(100, "number", "depth")] = None
    """number of jobs that the main scheduler considers when a job arrives or ends"""
    partition_job_depth: Annotated[int | None, _parameter(0, "number", "partition_depth")] = None
    """maximum number of jobs of a partition that the main scheduler considers; 0 for no maximum"""
    sched_interval: Annotated[int | None, _parameter(60, "s", "interval", least=-1)] = None
    """time between passes in which the main scheduler considers all jobs"""
    defer: Annotated[bool | None, _parameter(False, "flag", "defer")] = None
    """the main scheduler does not run at arrivals, only at ends and every `sched_interval`"""
    bf_interval: Annotated[int | None, _parameter(30, "s", "cycle", least=1)] = None
    """time from the end of a backfill cycle to the next"""
    bf_window: Annotated[int | None, _parameter(1440, "min", "window", least=1)] = None
    """how far ahead backfill plans; jobs that would start later get no reservation"""
    bf_resolution: Annotated[int | None, _parameter(60, "s", "resolution", least=1)] = None
    """reservations begin and end at multiples of this time: starts are rounded down, ends up"""
    bf_max_job_test: Annotated[int | None, _parameter(500, "number", "most_tested", least=1)] = None
    """number of jobs that a cycle tries"""
    bf_max_job_user: Annotated[int | None, _parameter(0, "number", "most_of_user", restrains=True)] = None
    """maximum number of jobs of a user that a cycle tries; 0 for no maximum"""
    bf_max_job_part: Annotated[int | None, _parameter(0, "number", "most_of_partition", restrains=True)] = None
    """maximum number of jobs of a partition that a cycle tries; 0 for no maximum"""
    bf_max_job_user_part: Annotated[int | None, _parameter(0, "number", "most_of_user_in_partition", restrains=True)] = None
    """maximum number of jobs of a user in a partition that a cycle tries; 0 for no maximum"""
    bf_max_job_start: Annotated[int | None, _parameter(0, "number", "most_started")] = None
    """maximum number of jobs that a cycle starts; 0 for no maximum"""
    bf_min_age_reserve: Annotated[int | None, _parameter(0, "s", "least_age", restrains=True)] = None
    """jobs with a shorter wait get no reservation and block no other job"""
    bf_min_prio_reserve: Annotated[int | None, _parameter(0, "number", "least_priority", restrains=True)] = None
    """jobs of a lower priority get no reservation and block no other job; 0 for no minimum"""
    bf_job_part_count_reserve: Annotated[int | None, _parameter(0, "number", "most_reserved", restrains=True)] = None
    """maximum number of reservations for jobs of a partition; 0 for no maximum"""
    time_min_as_soft_limit: Annotated[bool | None, _parameter(False, "flag", "soft")] = None
    """jobs with a `time_min` are planned with it and keep their limit (since Slurm 23.11)"""
    soft_limit_running: Annotated[str | None, _parameter("half", "word", "half", setting="", known=("half", "limit"))] = None
    """with soft limits, running jobs are planned until `time_min`, then until `half` of the remaining limit (since Slurm 25.05.4),
    or until their `limit` (before)"""
    scheduler_type: Annotated[
        str | None, _parameter("backfill", "word", "backfill", setting="SchedulerType", known=("backfill", "builtin"))
    ] = None
    """`backfill`, or `builtin`: the main scheduler alone"""
    select_type: Annotated[str | None, _parameter("cons_tres", "word", setting="SelectType", known=("cons_tres", "linear"))] = None
    """`cons_tres`: jobs share nodes; `linear`: every job gets whole nodes"""
    priority_type: Annotated[str | None, _parameter("multifactor", "word", setting="PriorityType", known=("multifactor", "basic"))] = None
    """`multifactor`, or `basic`: first come, first served"""
    priority_weight_age: Annotated[int | None, _parameter(0, "number", "weight_age", setting="PriorityWeightAge")] = None
    """weight of the job's wait"""
    priority_weight_fairshare: Annotated[int | None, _parameter(0, "number", "weight_share", setting="PriorityWeightFairShare")] = None
    """weight of the user's fair-share factor"""
    priority_weight_job_size: Annotated[int | None, _parameter(0, setting="PriorityWeightJobSize")] = None
    """weight of the job's size"""
    priority_weight_partition: Annotated[int | None, _parameter(0, setting="PriorityWeightPartition")] = None
    """weight of the partition's `job_factor`"""
    priority_weight_qos: Annotated[int | None, _parameter(0, setting="PriorityWeightQOS")] = None
    """weight of the priority of the job's quality of service"""
    priority_weight_assoc: Annotated[int | None, _parameter(0, setting="PriorityWeightAssoc")] = None
    """weight of the priority of the job's association"""
    priority_weight_tres: Annotated[str | None, _parameter("", "word", setting="PriorityWeightTRES")] = None
    """weights of the job's shares of its partition's resources, such as `CPU=1000:Mem=500:GRES/gpu=2000`"""
    priority_max_age: Annotated[int | None, _parameter(7 * DAY, "time", "longest_age", setting="PriorityMaxAge")] = None
    """the wait at which the age factor reaches 1"""
    priority_decay_half_life: Annotated[int | None, _parameter(7 * DAY, "time", setting="PriorityDecayHalfLife")] = None
    """half-life of past use; 0 for no decay"""
    priority_calc_period: Annotated[int | None, _parameter(300, "time", "period", setting="PriorityCalcPeriod", least=1)] = None
    """time between updates of past use and priorities"""
    fair_share_dampening_factor: Annotated[
        int | None, _parameter(1, "number", "dampening", setting="FairShareDampeningFactor", least=1)
    ] = None
    """the divisor of use in the classic fair-share factor (`NO_FAIR_TREE`)"""
    priority_favor_small: Annotated[bool | None, _parameter(False, "flag", setting="PriorityFavorSmall")] = None
    """whether the size factor favours small jobs instead of large ones"""
    priority_flags: Annotated[str | None, _parameter("", "word", setting="PriorityFlags")] = None
    """flags; `NO_FAIR_TREE` and `SMALL_RELATIVE_TO_TIME` are supported"""
    preempt_exempt_time: Annotated[int | None, _parameter(0, "time", setting="PreemptExemptTime")] = None
    """time for which a job must have run before it may be preempted"""
    preempt_youngest_first: Annotated[bool | None, _parameter(False, "flag", "youngest")] = None
    """whether the latest starts are preempted first, instead of the lowest priorities and fewest nodes"""
    preempt_reorder_count: Annotated[int | None, _parameter(1, "number", "reorders")] = None
    """maximum number of reorderings of the jobs to be preempted, so that fewer are preempted"""
    preempt_strict_order: Annotated[bool | None, _parameter(False, "flag", "strict")] = None
    """whether reordering moves only the last of these jobs to the front"""

    def settings(self, machine: Mapping[str, str] | None = None) -> SlurmSettings:
        """Return all parameters, from this policy, the machine's table `[slurm]`, or the defaults, with notes for the user."""
        read, notes = read_settings(machine or {})
        own = {name: getattr(self, name) for name in PARAMETERS if getattr(self, name) is not None}
        values = {name: parameter.default for name, parameter in PARAMETERS.items()} | read | own
        flags = str(values["priority_flags"]).replace(":", ",").upper().split(",")
        notes += [f"PriorityFlags={flag}" for flag in flags if flag not in ("", "(NULL)", *FLAGS)]
        weights = weights_of(values["priority_weight_tres"])
        notes += [f"PriorityWeightTRES={name}" for name, weight in weights.items() if weight and not RESOURCES.fullmatch(name)]
        return SlurmSettings(values, tuple(notes))

    @property
    def without(self) -> Mapping[str, str]:
        """Return the unsupported features: windows, overheads and predictions."""
        own = dict.fromkeys(("predictor", "plain"), "Slurm plans by limits and by time_min; leave the predictor out")
        own |= dict.fromkeys(("windows", "overheads"), "Slurm's policy does not model this; leave it out of the machine file")
        return {**super().without, **own}

    @property
    def shortens_limits(self) -> bool:
        """Return whether backfill may start jobs with a limit reduced to their time_min; soft limits prevent this."""
        return not self.time_min_as_soft_limit


PARAMETERS: Mapping[str, Parameter] = {name: one.key for name, one in options_of(Slurm).items() if isinstance(one.key, Parameter)}
"""The modelled settings, by option, with Slurm's defaults (manual of slurm.conf)."""


def read_settings(settings: Mapping[str, str]) -> tuple[dict[str, Value], list[str]]:
    """Return the parameters in Slurm's settings, and the settings that are not modelled; raises PolicyError for invalid values."""
    by_name = {name.lower(): str(value).strip() for name, value in settings.items()}
    values: dict[str, Value] = {}
    notes: list[str] = []
    for name, parameter in PARAMETERS.items():
        text = by_name.get(parameter.setting.lower(), "") if parameter.setting != "SchedulerParameters" else ""
        if not text or text == "(null)":
            continue
        if parameter.known and (word := text.lower().rpartition("/")[2]) not in parameter.known:
            notes += [] if word == "cons_res" else [f"{parameter.setting}={text}"]  # cons_tres has replaced cons_res
        else:
            values[name] = _value(name, text)
    items = by_name.get("schedulerparameters", "").split(",")
    items += [f"preempt_{item.strip()}" for item in by_name.get("preemptparameters", "").split(",") if item.strip() not in ("", "(null)")]
    for part in filter(None, (part.strip() for part in items)):
        key, equals, value = part.partition("=")
        key = key.strip().lower()
        if key == "bf_interval" and value.strip() == "-1":
            values["scheduler_type"] = "builtin"
        elif key in PARAMETERS and PARAMETERS[key].setting == "SchedulerParameters":
            values[key] = _value(key, value if equals else "yes")
        elif key not in NO_EFFECT and part != "(null)":
            notes.append(part)
    for name, modelled in NOT_MODELLED.items():
        value = by_name.get(name.lower(), modelled[0])
        if value.lower() not in [one.lower() for one in modelled]:
            notes.append(f"{name}={value}")
    if "LLN" in by_name.get("selecttypeparameters", "").upper():
        notes.append(f"SelectTypeParameters={by_name['selecttypeparameters']}")
    version = re.match(r"([0-9]{1,4})\.([0-9]{1,4})\.?([0-9]{1,4})?", by_name.get("slurm_version", ""))
    if version is not None and tuple(int(part or 0) for part in version.groups()) < (25, 5, 4):
        values["soft_limit_running"] = "limit"
    return values, notes


def _value(name: str, text: str) -> Value:
    try:
        return _read(PARAMETERS[name], text)
    except PolicyError as error:
        raise PolicyError(f"{name} {error}") from error
