"""Decide: what a scheduler reserves, and in which order it looks at the queue."""

from walltime.policy.belief import BELIEFS, CORRECTIONS, Belief, Correction, parse_belief, parse_correction
from walltime.policy.names import parse_order, parse_policies, parse_policy
from walltime.policy.orders import FCFS, ORDERS, SJF, WFP, Order, UserOrder, Wfp, order
from walltime.policy.policies import Conservative, Easy, Fcfs, Hybrid, PlainPolicy, Policy

__all__ = [
    "BELIEFS",
    "CORRECTIONS",
    "FCFS",
    "ORDERS",
    "SJF",
    "WFP",
    "Belief",
    "Conservative",
    "Correction",
    "Easy",
    "Fcfs",
    "Hybrid",
    "Order",
    "PlainPolicy",
    "Policy",
    "UserOrder",
    "Wfp",
    "order",
    "parse_belief",
    "parse_correction",
    "parse_order",
    "parse_policies",
    "parse_policy",
]
