"""Policies: which jobs get reservations, and in which order the queue is considered. One module per policy; the table is in registry.py."""

from walltime.policy.base import Backfilling, Kind, Passes, Policy, Reservations
from walltime.policy.conservative import Conservative
from walltime.policy.dialect import DIALECTS, PAPERS, READINGS, Dialect
from walltime.policy.easy import Easy
from walltime.policy.fcfs import NoBackfilling
from walltime.policy.files import NotRunError, files_in, only, placed
from walltime.policy.formulas import Fitted, Formula, WeightedOrder, score_order
from walltime.policy.hybrid import Hybrid
from walltime.policy.log_view import Calendar, LogView, Moment
from walltime.policy.lookahead import Lookahead
from walltime.policy.multiqueue import MultiQueue
from walltime.policy.oar import Oar
from walltime.policy.orders import FCFS, SJF, WFP, Order, ScoredOrder, UserOrder, Wfp, order
from walltime.policy.plain import Choice, PlainPolicy, RunningJob, WaitingJob
from walltime.policy.registry import EVERY, ORDERS, POLICIES, POLICY_NAMES, build, parse_order, parse_policy, split, takes
from walltime.policy.relaxed import Relaxed
from walltime.policy.selective import Selective
from walltime.policy.slack import Slack
from walltime.policy.slurm import Slurm


def __getattr__(name: str) -> type[Policy]:
    """The class of a policy of the table by its name."""
    for kind in POLICIES:
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DIALECTS",
    "EVERY",
    "FCFS",
    "ORDERS",
    "PAPERS",
    "POLICIES",
    "POLICY_NAMES",
    "READINGS",
    "SJF",
    "WFP",
    "Backfilling",
    "Calendar",
    "Choice",
    "Conservative",
    "Dialect",
    "Easy",
    "Fitted",
    "Formula",
    "Hybrid",
    "Kind",
    "LogView",
    "Lookahead",
    "Moment",
    "MultiQueue",
    "NoBackfilling",
    "NotRunError",
    "Oar",
    "Order",
    "Passes",
    "PlainPolicy",
    "Policy",
    "Relaxed",
    "Reservations",
    "RunningJob",
    "ScoredOrder",
    "Selective",
    "Slack",
    "Slurm",
    "UserOrder",
    "WaitingJob",
    "WeightedOrder",
    "Wfp",
    "build",
    "files_in",
    "only",
    "order",
    "parse_order",
    "parse_policy",
    "placed",
    "score_order",
    "split",
    "takes",
]
