"""A laboratory for batch-job scheduling: replay a job log under backfilling policies, and believe the numbers.

>>> import walltime as wt
>>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
>>> wt.simulate(jobs, wt.Easy()).start.tolist()
[0, 10, 2]
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walltime.errors import EngineError as EngineError
    from walltime.errors import LogError as LogError
    from walltime.errors import OutputError as OutputError
    from walltime.errors import PolicyError as PolicyError
    from walltime.errors import WalltimeError as WalltimeError
    from walltime.errors import WorkloadError as WorkloadError
    from walltime.logs import SwfLog as SwfLog
    from walltime.logs import read as read
    from walltime.logs import read_swf as read_swf
    from walltime.logs import write_swf as write_swf
    from walltime.policy import FCFS as FCFS
    from walltime.policy import SJF as SJF
    from walltime.policy import WFP as WFP
    from walltime.policy import Conservative as Conservative
    from walltime.policy import Easy as Easy
    from walltime.policy import Fcfs as Fcfs
    from walltime.policy import Hybrid as Hybrid
    from walltime.policy import PlainPolicy as PlainPolicy
    from walltime.policy import Policy as Policy
    from walltime.policy import Wfp as Wfp
    from walltime.policy import order as order
    from walltime.policy import parse_order as parse_order
    from walltime.policy import parse_policy as parse_policy
    from walltime.provenance import version as version
    from walltime.report import write_report as write_report
    from walltime.schedule import Kind as Kind
    from walltime.schedule import Schedule as Schedule
    from walltime.schedule import audit as audit
    from walltime.schedule import compare as compare
    from walltime.schedule import read_schedule as read_schedule
    from walltime.schedule import simulate as simulate
    from walltime.workload import Origin as Origin
    from walltime.workload import Workload as Workload

_HOMES = {
    "errors": ("EngineError", "LogError", "OutputError", "PolicyError", "WalltimeError", "WorkloadError"),
    "logs": ("SwfLog", "read", "read_swf", "write_swf"),
    "policy": (
        "FCFS",
        "SJF",
        "WFP",
        "Conservative",
        "Easy",
        "Fcfs",
        "Hybrid",
        "PlainPolicy",
        "Policy",
        "Wfp",
        "order",
        "parse_order",
        "parse_policy",
    ),
    "provenance": ("version",),
    "report": ("write_report",),
    "schedule": ("Kind", "Schedule", "audit", "compare", "read_schedule", "simulate"),
    "workload": ("Origin", "Workload"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a name from its home on first use, so that `import walltime` costs next to nothing."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'walltime' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"walltime.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
