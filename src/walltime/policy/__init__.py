"""Policies: which jobs get reservations, and in which order the queue is considered. The table of policies is in registry.py."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy
from walltime.policy import registry
from walltime.specification import module_map

if TYPE_CHECKING:
    from walltime.permission import NotRunError as NotRunError, only as only
    from walltime.plugins.files import named_files as named_files, resolve_files as resolve_files
    from walltime.policy.base import Backfilling as Backfilling, Kind as Kind, PassSpec as PassSpec, Policy as Policy
    from walltime.policy.conservative import Conservative as Conservative
    from walltime.policy.dialect import DIALECTS as DIALECTS, INTERPRETATIONS as INTERPRETATIONS, PAPERS as PAPERS, Dialect as Dialect
    from walltime.policy.easy import Easy as Easy, NoBackfilling as NoBackfilling
    from walltime.policy.formulas import Formula as Formula, WeightedOrder as WeightedOrder, score_order as score_order
    from walltime.policy.hybrid import Hybrid as Hybrid
    from walltime.policy.log_view import Calendar as Calendar, LogView as LogView, Moment as Moment
    from walltime.policy.oar import Oar as Oar
    from walltime.policy.orders import (
        FCFS as FCFS,
        SJF as SJF,
        WFP as WFP,
        Order as Order,
        ScoredOrder as ScoredOrder,
        UserOrder as UserOrder,
        Wfp as Wfp,
        order as order,
    )
    from walltime.policy.plain import Choice as Choice, PlainPolicy as PlainPolicy, RunningJob as RunningJob, WaitingJob as WaitingJob
    from walltime.policy.registry import (
        ORDERS as ORDERS,
        POLICIES as POLICIES,
        has_option as has_option,
        parse_order as parse_order,
        parse_policy as parse_policy,
        policy_variants as policy_variants,
    )
    from walltime.policy.slurm import Slurm as Slurm

# The classes of policies come from the registry; above are those that other packages import from here.
__getattr__, __dir__, __all__ = lazy(__name__, module_map(registry.POLICIES))
