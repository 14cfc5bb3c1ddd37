"""Slurm's scheduling: the main scheduler at events, the backfill scheduler in cycles, and the order of the queue by priority."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from walltime.durations import seconds_of
from walltime.errors import PolicyError
from walltime.policy.base import Passes, Policy, Reservations
from walltime.policy.orders import FCFS

Value = int | str | bool


class Parameter(NamedTuple):
    """A setting of Slurm: where it stands in its configuration, the default, what its number counts, and its meaning."""

    setting: str
    default: Value
    kind: Literal["number", "s", "min", "flag", "time", "word"]
    """`s`, `min`: a number with this unit; `time`: written as Slurm writes times, kept in s"""
    meaning: str


def _scheduler(default: Value, kind: Any, meaning: str) -> Parameter:
    return Parameter("SchedulerParameters", default, kind, meaning)


PARAMETERS: dict[str, Parameter] = {
    "default_queue_depth": _scheduler(100, "number", "jobs that the main scheduler looks at when a job has come or ended"),
    "partition_job_depth": _scheduler(0, "number", "most jobs of a partition that the main scheduler looks at; 0 for all"),
    "sched_interval": _scheduler(60, "s", "how often the main scheduler looks at all jobs"),
    "defer": _scheduler(False, "flag", "the main scheduler does not run when a job comes, only when one ends and every `sched_interval`"),
    "bf_interval": _scheduler(30, "s", "from the end of a backfill cycle to the next"),
    "bf_window": _scheduler(1440, "min", "how far ahead backfill plans; jobs that would start later get no reservation"),
    "bf_resolution": _scheduler(60, "s", "reservations begin and end at multiples of it: the begin is rounded down, the end up"),
    "bf_max_job_test": _scheduler(500, "number", "jobs that a cycle tries"),
    "bf_max_job_user": _scheduler(0, "number", "most jobs of a user that a cycle tries; 0 for all"),
    "bf_max_job_part": _scheduler(0, "number", "most jobs of a partition that a cycle tries; 0 for all"),
    "bf_max_job_user_part": _scheduler(0, "number", "most jobs of a user in a partition that a cycle tries; 0 for all"),
    "bf_max_job_start": _scheduler(0, "number", "most jobs that a cycle starts; 0 for all"),
    "bf_min_age_reserve": _scheduler(0, "s", "jobs that have waited for less get no reservation, and block nobody"),
    "bf_min_prio_reserve": _scheduler(0, "number", "jobs of a lower priority get no reservation, and block nobody; 0 for none"),
    "bf_job_part_count_reserve": _scheduler(0, "number", "most reservations for jobs of a partition; 0 for all"),
    "time_min_as_soft_limit": _scheduler(
        False, "flag", "jobs with a `time_min` are planned by it and keep their limit (from Slurm 23.11 on)"
    ),
    "soft_limit_running": Parameter(
        "",
        "half",
        "word",
        "with soft limits, running jobs are planned by `half`: `time_min`, then half of what is left of the limit (from Slurm 25.05.4 "
        "on); or by their `limit` (before)",
    ),
    "scheduler_type": Parameter("SchedulerType", "backfill", "word", "`backfill`, or `builtin`: the main scheduler alone"),
    "select_type": Parameter("SelectType", "cons_tres", "word", "`cons_tres`: jobs share nodes; `linear`: every job gets whole nodes"),
    "priority_type": Parameter("PriorityType", "multifactor", "word", "`multifactor`, or `basic`: first come, first served"),
    "priority_weight_age": Parameter("PriorityWeightAge", 0, "number", "weight of the time that a job has waited"),
    "priority_weight_fairshare": Parameter("PriorityWeightFairShare", 0, "number", "weight of what the user has used of his share"),
    "priority_weight_job_size": Parameter("PriorityWeightJobSize", 0, "number", "weight of the job's size"),
    "priority_weight_partition": Parameter("PriorityWeightPartition", 0, "number", "weight of the partition's `job_factor`"),
    "priority_weight_qos": Parameter("PriorityWeightQOS", 0, "number", "weight of the priority of the job's quality of service"),
    "priority_max_age": Parameter("PriorityMaxAge", 7 * 86_400, "time", "the wait from which on age counts fully"),
    "priority_decay_half_life": Parameter("PriorityDecayHalfLife", 7 * 86_400, "time", "use counts half after it; 0 for no decay"),
    "priority_calc_period": Parameter("PriorityCalcPeriod", 300, "time", "how often use and priorities are computed"),
    "priority_favor_small": Parameter("PriorityFavorSmall", False, "flag", "small jobs, not large ones, get the weight of size"),
    "priority_flags": Parameter("PriorityFlags", "", "word", "`NO_FAIR_TREE` and `SMALL_RELATIVE_TO_TIME` are known"),
}
"""The settings that are modelled, by the name of the option, with the defaults of Slurm (manual of slurm.conf)."""

WORDS = {
    "soft_limit_running": ("half", "limit"),
    "scheduler_type": ("backfill", "builtin"),
    "select_type": ("cons_tres", "linear"),
    "priority_type": ("multifactor", "basic"),
}
NO_EFFECT = (
    *("batch_sched_delay", "bf_continue", "bf_max_time", "bf_node_space_size", "bf_yield_interval", "bf_yield_rpc_cnt", "bf_yield_sleep"),
    *("build_queue_timeout", "max_rpc_cnt", "sched_min_interval"),
)
"""Parameters that spare a busy slurmctld: a simulated pass takes no time, so they change nothing."""
NOT_MODELLED = {
    "PreemptType": ("preempt/none", "(null)", ""),
    "PriorityWeightAssoc": ("0", "(null)", ""),
    "PriorityWeightTRES": ("(null)", "", "0"),
    "PriorityUsageResetPeriod": ("NONE", "(null)", ""),
    "TopologyPlugin": ("topology/none", "topology/default", "topology/flat", "(null)", ""),
}
"""Settings of which only these values are modelled."""
FLAGS = ("NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME")


@dataclass(frozen=True)
class Settings:
    """What a simulation runs with: the value of every parameter, and what was asked for that is not modelled."""

    values: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def multifactor(self) -> bool:
        """Whether priorities differ; with all weights at 0 they do not."""
        return self["priority_type"] == "multifactor" and any(self[name] for name in PARAMETERS if name.startswith("priority_weight"))

    @property
    def decay(self) -> float:
        """What use counts after a period of PriorityCalcPeriod."""
        half_life = self["priority_decay_half_life"]
        return float(0.5 ** (self["priority_calc_period"] / half_life)) if half_life else 1.0

    def flag(self, name: str) -> bool:
        """Whether one of PriorityFlags is set."""
        return name in str(self["priority_flags"]).upper().replace(":", ",").split(",")


@dataclass(frozen=True)
class Slurm(Policy):
    """Slurm's main and backfill schedulers on a machine of nodes, by the parameters of its own configuration.

    Options are those of PARAMETERS, where their units and defaults are: an option that is None is what the machine's table `[slurm]` says,
    else Slurm's default. Flags are written `defer=yes`. It needs a machine of pools (`--cluster`).

    >>> Slurm(bf_interval=60).settings({"SchedulerParameters": "bf_interval=15,bf_window=60"})["bf_window"]
    60
    """

    names: ClassVar[dict[str, dict[str, Any]]] = {"slurm": {}}

    default_queue_depth: int | None = None
    partition_job_depth: int | None = None
    sched_interval: int | None = None
    defer: bool | None = None
    bf_interval: int | None = None
    bf_window: int | None = None
    bf_resolution: int | None = None
    bf_max_job_test: int | None = None
    bf_max_job_user: int | None = None
    bf_max_job_part: int | None = None
    bf_max_job_user_part: int | None = None
    bf_max_job_start: int | None = None
    bf_min_age_reserve: int | None = None
    bf_min_prio_reserve: int | None = None
    bf_job_part_count_reserve: int | None = None
    time_min_as_soft_limit: bool | None = None
    soft_limit_running: str | None = None
    scheduler_type: str | None = None
    select_type: str | None = None
    priority_type: str | None = None
    priority_weight_age: int | None = None
    priority_weight_fairshare: int | None = None
    priority_weight_job_size: int | None = None
    priority_weight_partition: int | None = None
    priority_weight_qos: int | None = None
    priority_max_age: int | None = None
    priority_decay_half_life: int | None = None
    priority_calc_period: int | None = None
    priority_favor_small: bool | None = None
    priority_flags: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order != FCFS:
            raise PolicyError("slurm orders the queue by priority; leave the order out, and see priority_type and priority_weight_age")
        for name in PARAMETERS:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _checked(name, value))

    @classmethod
    def of_settings(cls, settings: Mapping[str, str]) -> Slurm:
        """The policy with the settings of a Slurm, by their names in `scontrol show config`; what is not said stays None."""
        values: dict[str, Any] = dict(read_settings(settings)[0])
        return cls(**values)

    @classmethod
    def read_option(cls, name: str, text: str) -> Value:
        """The value of an option as it is written after `slurm:`; raises PolicyError for an impossible one."""
        return _read(name, text)

    def settings(self, machine: Mapping[str, str] | None = None) -> Settings:
        """All parameters: those of this policy, then of the machine's table `[slurm]`, then the defaults; with notes for the user."""
        read, notes = read_settings(machine or {})
        own = {name: getattr(self, name) for name in PARAMETERS if getattr(self, name) is not None}
        values = {name: parameter.default for name, parameter in PARAMETERS.items()} | read | own
        flags = str(values["priority_flags"]).replace(":", ",").upper().split(",")
        notes += [f"PriorityFlags={flag}" for flag in flags if flag not in ("", "(NULL)", *FLAGS)]
        return Settings(values, tuple(notes))

    @property
    def label(self) -> str:
        """The policy's specification, in Slurm's spelling."""
        said = [f"{name}={_spelled(name, value)}" for name, value in self._own_options()]
        return self.name + (":" + ",".join(said) if said else "")

    @property
    def reservations(self) -> Reservations:
        """Those that a cycle of backfilling has planned."""
        return Reservations("some", "only jobs that a cycle of backfilling has planned have one")

    @property
    def title(self) -> str:
        """The policy's name in text and figures."""
        said = [f"{name} {_spelled(name, value)}" for name, value in self._own_options()]
        return "Slurm" + (f" [{', '.join(said)}]" if said else "")

    @property
    def passes(self) -> Passes:
        """A loop of its own (engine/kernel/nodes/loop.py), on single nodes."""
        return Passes("slurm", None)


def read_settings(settings: Mapping[str, str]) -> tuple[dict[str, Value], list[str]]:
    """The parameters that Slurm's settings give, and the settings that are not modelled; raises PolicyError for impossible values."""
    by_name = {name.lower(): str(value).strip() for name, value in settings.items()}
    values: dict[str, Value] = {}
    notes: list[str] = []
    for name, parameter in PARAMETERS.items():
        text = by_name.get(parameter.setting.lower(), "") if parameter.setting != "SchedulerParameters" else ""
        if not text or text == "(null)":
            continue
        if name in WORDS and (word := text.lower().rpartition("/")[2]) not in WORDS[name]:
            notes += [] if word == "cons_res" else [f"{parameter.setting}={text}"]  # which cons_tres has replaced
        else:
            values[name] = _read(name, text)
    for part in filter(None, (part.strip() for part in by_name.get("schedulerparameters", "").split(","))):
        key, equals, value = part.partition("=")
        key = key.strip().lower()
        if key == "bf_interval" and value.strip() == "-1":
            values["scheduler_type"] = "builtin"
        elif key in PARAMETERS and PARAMETERS[key].setting == "SchedulerParameters":
            values[key] = _read(key, value if equals else "yes")
        elif key not in NO_EFFECT and part != "(null)":
            notes.append(part)
    for name, modelled in NOT_MODELLED.items():
        value = by_name.get(name.lower(), modelled[0])
        if value.lower() not in [one.lower() for one in modelled]:
            notes.append(f"{name}={value}")
    if "LLN" in by_name.get("selecttypeparameters", "").upper():
        notes.append(f"SelectTypeParameters={by_name['selecttypeparameters']}")
    version = re.match(r"(\d+)\.(\d+)\.?(\d+)?", by_name.get("slurm_version", ""))
    if version is not None and tuple(int(part or 0) for part in version.groups()) < (25, 5, 4):
        values["soft_limit_running"] = "limit"
    return values, notes


def _read(name: str, text: str) -> Value:
    """The value of a parameter in Slurm's own writing."""
    parameter, text = PARAMETERS[name], text.strip()
    if parameter.kind == "word":
        return _checked(name, text if name == "priority_flags" else text.lower().rpartition("/")[2])
    if parameter.kind == "flag":
        if text.lower() not in ("yes", "no", "1", "0"):
            raise PolicyError(f"{name} must be yes or no, not {text!r}")
        return text.lower() in ("yes", "1")
    if parameter.kind == "time":
        try:
            seconds = seconds_of(text)
        except ValueError:
            raise PolicyError(f"{name}: a time must be written as Slurm does, such as 7-0 or 00:05:00, not {text!r}") from None
        return _checked(name, seconds)
    if not re.fullmatch(r"-?\d+", text):
        raise PolicyError(f"{name} must be a whole number, not {text!r}")
    return _checked(name, int(text))


def _checked(name: str, value: Any) -> Value:
    """The value, if the parameter can have it."""
    kind = PARAMETERS[name].kind
    if kind == "word":
        known = WORDS.get(name)
        if not isinstance(value, str) or (known is not None and value not in known):
            raise PolicyError(f"{name} must be {' or '.join(known or ('a text',))}, not {value!r}")
    elif kind == "flag":
        if not isinstance(value, bool):
            raise PolicyError(f"{name} must be True or False, not {value!r}")
    elif isinstance(value, bool) or not isinstance(value, int) or value < _least(name):
        raise PolicyError(f"{name} must be a whole number of {_least(name)} or more, not {value!r}")
    return value


def _least(name: str) -> int:
    if name == "sched_interval":
        return -1  # never
    return 1 if name in ("bf_interval", "bf_window", "bf_resolution", "bf_max_job_test", "priority_calc_period") else 0


def _spelled(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if PARAMETERS[name].kind == "time":
        return f"{value // 86_400}-{value // 3600 % 24:02d}:{value // 60 % 60:02d}:{value % 60:02d}"
    return str(value)
