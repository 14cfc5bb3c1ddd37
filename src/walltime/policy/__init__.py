"""Decide: what a scheduler reserves, and in which order it looks at the queue."""

from walltime.policy.belief import BELIEFS, CORRECTIONS, Belief, Correction, parse_belief, parse_correction
from walltime.policy.known import Calendar, Known, Moment
from walltime.policy.names import parse_order, parse_policies, parse_policy
from walltime.policy.orders import FCFS, ORDERS, SJF, WFP, Order, UserOrder, Wfp, order
from walltime.policy.plain import Choice, PlainPolicy, RunningJob, WaitingJob
from walltime.policy.policies import Conservative, Easy, Fcfs, Hybrid, Policy

__all__ = [
    "BELIEFS",
    "CORRECTIONS",
    "FCFS",
    "ORDERS",
    "SJF",
    "WFP",
    "Belief",
    "Calendar",
    "Choice",
    "Conservative",
    "Correction",
    "Easy",
    "Fcfs",
    "Hybrid",
    "Known",
    "Moment",
    "Order",
    "PlainPolicy",
    "Policy",
    "RunningJob",
    "UserOrder",
    "WaitingJob",
    "Wfp",
    "order",
    "parse_belief",
    "parse_correction",
    "parse_order",
    "parse_policies",
    "parse_policy",
]
