"""Guarantees of schedules on machines of pools and on Slurm's nodes: each rule in a sentence, its policies, and undecided cases."""

from __future__ import annotations

from typing import NamedTuple

POOL_POLICIES = ("fcfs", "easy", "hybrid", "conservative-scratch", "conservative")
"""The policies that run on machines of pools."""
ALL = (*POOL_POLICIES, "slurm", "oar")


class Promise(NamedTuple):
    """A rule of the auditor: its statement, the policies that guarantee it, and cases that are not decided."""

    rule: str
    statement: str
    policies: tuple[str, ...]
    not_decided: str = ""


WORDS = {
    "t": "an instant with an event: an arrival, an end, a due reservation, a corrected prediction, a change of an outage; under "
    "Slurm also a cycle or full pass; under OAR the seconds of its passes",
    "start(j), end(j)": "the schedule's times; with overheads, start(j) is the decision and end(j) the tick that frees its processors",
    "Q(t)": "the jobs that wait at t, by tier, queue order (Slurm: priority) and arrival, without those held by a limit",
    "free(p, t)": "processors and units of the second resource of pool p that no job or outage holds at t",
    "plan(p, u)": "the expected free part of p at u ≥ t: running jobs end as expected, overdue ones in a second; known outages and "
    "earlier reservations apply",
    "fits(j, u)": "the pools of j's partition are sufficient: Σ over p of min of plan(p, v) for u ≤ v < u + length(j) ≥ need(j); "
    "length(j) is the planned runtime, with overheads",
}
"""Terms of the statements."""

PROMISES = (
    Promise(
        "dependency",
        "start(j) ≥ end(i) for every i on which j depends; under feedback start(j) ≥ end(i) + think(j).",
        ALL,
    ),
    Promise(
        "window_shut",
        "No job starts in the hours [begin, end) of a window for jobs of its kind. Under `drain`, or if the window has no end, "
        "no job that starts before begin is planned beyond it: start(j) + length(j) ≤ begin.",
        POOL_POLICIES,
    ),
    Promise(
        "limit_exceeded",
        "At every start, the running jobs of a group, including the new one, respect the limit in number and resources.",
        ALL,
    ),
    Promise(
        "pool_capacity",
        "At every start in pool p, Σ given(i, p) over running jobs ≤ capacity of p minus outages. Jobs may outlast the "
        "beginning of an outage. A job without length needs its processors after the ends of its instant.",
        POOL_POLICIES,
        "Without the column `given`, only the existence of a placement is checked (Hall's condition for every union of partitions).",
    ),
    Promise(
        "pool_order",
        "j takes from its partition's pools, in their order, min(remaining need, capacity that stays free for length(j)).",
        POOL_POLICIES,
        "Without the column `given`, the rule determines the pools.",
    ),
    Promise(
        "node_capacity",
        "No node exceeds its capacity or serves other partitions; in an outage, jobs start on the remaining nodes only.",
        ("slurm", "oar"),
        "Requires the nodes of jobs, which schedule files lack.",
    ),
    Promise(
        "node_order",
        "j gets the tightest single node of the best run of consecutive usable nodes of the lowest weight, or runs until it has enough.",
        ("slurm",),
        "Without the nodes of jobs, the rule determines them.",
    ),
    Promise(
        "node_order",
        "j gets the first nodes of its partition that are free from t for length(j) plus the security time.",
        ("oar",),
        "Without the nodes of jobs, the rule determines them.",
    ),
    Promise(
        "limit_shortened",
        "limit(j) = request(j). For a backfilled job with a shorter time_min and no soft limit, it is the time until a "
        "reservation of one of its nodes, in whole minutes, at least time_min.",
        ("slurm",),
        "Without the column `limit`, the ends of jobs with a time_min are checked.",
    ),
    Promise(
        "head_waits",
        "The first of Q(t) starts at t if fits(j, t); under Slurm, in the main scheduler's pass at t.",
        ALL,
    ),
    Promise(
        "left_waiting",
        "No job of Q(t) waits although it fits at t next to the earlier reservations. `fcfs`: pools of a waiting job's partition are "
        "closed to later jobs. `easy` makes one reservation per pool, `hybrid` as many as its depth, `conservative-scratch` one per job. "
        "`conservative`: no reservation could be moved forward to t. `slurm`: no job that a cycle has tested could start at its end. "
        "`oar`: no waiting job is planned to start at t.",
        ALL,
    ),
    Promise(
        "reservation_delayed",
        "j starts at t only if fits(j, t): it delays no reservation ahead.",
        tuple(one for one in ALL if one != "fcfs"),
    ),
    Promise(
        "out_of_turn",
        "Jobs start only at such an instant t, and only those that the policy starts. `fcfs`: not on a pool of a waiting job's "
        "partition. `slurm`: in a main pass, not in a partition in which a waiting job ahead claims nodes, nor beyond the queue depths.",
        ALL,
    ),
    Promise(
        "reserved_start_missed",
        "A kept reservation only moves to an earlier time, or is made again when the plan breaks (overdue job, correction, "
        "unknown outage, limit). When it is due, its job starts. An outage breaks the plan only once, when it becomes known.",
        ("conservative",),
    ),
)
"""The guarantees. Predictions change length(j) and the expected ends; kept reservations are then made again."""

NOT_DECIDED = {
    "starts without a given policy": "only the rules for all schedules are checked",
    "starts with an unnamed predictor": "planned runtimes are unknown",
    "starts under policies in plain Python on several pools": "only pools, limits, windows and dependencies are checked",
    "thresholds of scores, `window=N`, dialects, `los` and `slack` on pools": "no engine runs them there",
    "settings of Slurm that are not modelled": "reported when the policy is created (such as topology)",
    "after the first difference of an instant": "the check continues from the schedule's state",
    "kinds of starts and first reservations": "no guarantee covers these columns on such machines",
}
"""Cases that are not decided, with the reason."""
