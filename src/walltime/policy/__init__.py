"""Policies: which jobs get reservations, and in which order the queue is considered. The table of policies is in registry.py."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy
from walltime.policy import registry
from walltime.specification import module_map

if TYPE_CHECKING:
    from walltime.permission import NotRunError as NotRunError
    from walltime.permission import only as only
    from walltime.plugins.files import named_files as named_files
    from walltime.plugins.files import resolve_files as resolve_files
    from walltime.policy.base import Backfilling as Backfilling
    from walltime.policy.base import Kind as Kind
    from walltime.policy.base import PassSpec as PassSpec
    from walltime.policy.base import Policy as Policy
    from walltime.policy.conservative import Conservative as Conservative
    from walltime.policy.dialect import DIALECTS as DIALECTS
    from walltime.policy.dialect import INTERPRETATIONS as INTERPRETATIONS
    from walltime.policy.dialect import PAPERS as PAPERS
    from walltime.policy.dialect import Dialect as Dialect
    from walltime.policy.easy import Easy as Easy
    from walltime.policy.easy import NoBackfilling as NoBackfilling
    from walltime.policy.formulas import Formula as Formula
    from walltime.policy.formulas import WeightedOrder as WeightedOrder
    from walltime.policy.formulas import score_order as score_order
    from walltime.policy.hybrid import Hybrid as Hybrid
    from walltime.policy.log_view import Calendar as Calendar
    from walltime.policy.log_view import LogView as LogView
    from walltime.policy.log_view import Moment as Moment
    from walltime.policy.oar import Oar as Oar
    from walltime.policy.orders import FCFS as FCFS
    from walltime.policy.orders import SJF as SJF
    from walltime.policy.orders import WFP as WFP
    from walltime.policy.orders import Order as Order
    from walltime.policy.orders import ScoredOrder as ScoredOrder
    from walltime.policy.orders import UserOrder as UserOrder
    from walltime.policy.orders import Wfp as Wfp
    from walltime.policy.orders import order as order
    from walltime.policy.plain import Choice as Choice
    from walltime.policy.plain import PlainPolicy as PlainPolicy
    from walltime.policy.plain import RunningJob as RunningJob
    from walltime.policy.plain import WaitingJob as WaitingJob
    from walltime.policy.registry import ORDERS as ORDERS
    from walltime.policy.registry import POLICIES as POLICIES
    from walltime.policy.registry import has_option as has_option
    from walltime.policy.registry import parse_order as parse_order
    from walltime.policy.registry import parse_policy as parse_policy
    from walltime.policy.registry import policy_variants as policy_variants
    from walltime.policy.slurm import Slurm as Slurm

# The classes of policies come from the registry; above are those that other packages import from here.
__getattr__, __dir__, __all__ = lazy(__name__, module_map(registry.POLICIES))
