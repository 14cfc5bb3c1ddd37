"""A laboratory for batch-job scheduling: replay job logs under backfilling policies, with results you can trust.

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
    from walltime.estimates import ExactEstimates as ExactEstimates
    from walltime.estimates import ExactRuntime as ExactRuntime
    from walltime.estimates import FactorEstimates as FactorEstimates
    from walltime.estimates import FModel as FModel
    from walltime.estimates import Gaussier15 as Gaussier15
    from walltime.estimates import LastRun as LastRun
    from walltime.estimates import Mualem01 as Mualem01
    from walltime.estimates import Mualem01History as Mualem01History
    from walltime.estimates import PlainPredictor as PlainPredictor
    from walltime.estimates import Predictor as Predictor
    from walltime.estimates import Tang13 as Tang13
    from walltime.estimates import Tsafrir05 as Tsafrir05
    from walltime.estimates import Tsafrir07 as Tsafrir07
    from walltime.estimates import UserEstimates as UserEstimates
    from walltime.estimates import UserRequest as UserRequest
    from walltime.estimates import parse_estimates as parse_estimates
    from walltime.estimates import parse_predictor as parse_predictor
    from walltime.estimates import predictor as predictor
    from walltime.logs import SwfLog as SwfLog
    from walltime.logs import read as read
    from walltime.logs import read_log as read_log
    from walltime.logs import read_swf as read_swf
    from walltime.logs import write_swf as write_swf
    from walltime.logs.cleaning import clean as clean
    from walltime.logs.cleaning import find_flurries as find_flurries
    from walltime.logs.fetch import fetch as fetch
    from walltime.policy import FCFS as FCFS
    from walltime.policy import SJF as SJF
    from walltime.policy import WFP as WFP
    from walltime.policy import Belief as Belief
    from walltime.policy import Conservative as Conservative
    from walltime.policy import Correction as Correction
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
    from walltime.schedule import Batch as Batch
    from walltime.schedule import Case as Case
    from walltime.schedule import Kind as Kind
    from walltime.schedule import Schedule as Schedule
    from walltime.schedule import audit as audit
    from walltime.schedule import compare as compare
    from walltime.schedule import read_schedule as read_schedule
    from walltime.schedule import simulate as simulate
    from walltime.schedule import simulate_many as simulate_many
    from walltime.schedule.replay import Replay as Replay
    from walltime.schedule.replay import replay_predictions as replay_predictions
    from walltime.schedule.replication import Replications as Replications
    from walltime.schedule.replication import replicate as replicate
    from walltime.workload import Origin as Origin
    from walltime.workload import Workload as Workload
    from walltime.workload.downey97 import Downey97 as Downey97
    from walltime.workload.feitelson96 import Feitelson96 as Feitelson96
    from walltime.workload.jann97 import Jann97 as Jann97
    from walltime.workload.lublin99 import Lublin99 as Lublin99
    from walltime.workload.models import parse_model as parse_model
    from walltime.workload.p2variants import FeitelsonVariant as FeitelsonVariant
    from walltime.workload.scaling import head as head
    from walltime.workload.scaling import resize as resize
    from walltime.workload.scaling import scale_load as scale_load
    from walltime.workload.scaling import shake as shake
    from walltime.workload.scaling import tail as tail
    from walltime.workload.scaling import window as window

_HOMES = {
    "errors": (
        "EngineError",
        "LogError",
        "OutputError",
        "PolicyError",
        "WalltimeError",
        "WorkloadError",
    ),
    "estimates": (
        "ExactEstimates",
        "ExactRuntime",
        "FactorEstimates",
        "FModel",
        "Gaussier15",
        "LastRun",
        "Mualem01",
        "Mualem01History",
        "parse_estimates",
        "parse_predictor",
        "PlainPredictor",
        "Predictor",
        "predictor",
        "Tang13",
        "Tsafrir05",
        "Tsafrir07",
        "UserEstimates",
        "UserRequest",
    ),
    "logs": (
        "SwfLog",
        "read",
        "read_log",
        "read_swf",
        "write_swf",
    ),
    "logs.cleaning": (
        "clean",
        "find_flurries",
    ),
    "logs.fetch": ("fetch",),
    "policy": (
        "Belief",
        "Conservative",
        "Correction",
        "Easy",
        "Fcfs",
        "FCFS",
        "Hybrid",
        "order",
        "parse_order",
        "parse_policy",
        "PlainPolicy",
        "Policy",
        "SJF",
        "Wfp",
        "WFP",
    ),
    "provenance": ("version",),
    "report": ("write_report",),
    "schedule": (
        "Batch",
        "Case",
        "Kind",
        "Schedule",
        "audit",
        "compare",
        "read_schedule",
        "simulate",
        "simulate_many",
    ),
    "schedule.replay": (
        "Replay",
        "replay_predictions",
    ),
    "schedule.replication": (
        "Replications",
        "replicate",
    ),
    "workload": (
        "Origin",
        "Workload",
    ),
    "workload.downey97": ("Downey97",),
    "workload.feitelson96": ("Feitelson96",),
    "workload.jann97": ("Jann97",),
    "workload.lublin99": ("Lublin99",),
    "workload.models": ("parse_model",),
    "workload.p2variants": ("FeitelsonVariant",),
    "workload.scaling": (
        "head",
        "resize",
        "scale_load",
        "shake",
        "tail",
        "window",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a name from its module on first use, so that `import walltime` is fast."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'walltime' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"walltime.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
