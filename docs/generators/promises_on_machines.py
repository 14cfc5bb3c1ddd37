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
    "t": "a time at which a pass takes place: at an arrival, an end, a due reservation, a corrected prediction, or a change of an outage. "
    "Under Slurm it is also a backfill cycle or full pass of the main scheduler, and under OAR each second of a pass",
    "start(j), end(j)": "the times of job j in the schedule; with overheads, start(j) is the time of the decision, and end(j) the time at "
    "which j's processors become free",
    "Q(t)": "the queue at t: the waiting jobs by tier, queue order (Slurm: priority) and arrival, without jobs that a limit holds",
    "free(p, t)": "the processors and units of the second resource of pool p that neither a job nor an outage holds at t",
    "plan(p, u)": "the part of p that is expected to be free at u ≥ t: running jobs end as expected, overdue jobs in a second, and known "
    "outages and earlier reservations are taken into account",
    "fits(j, u)": "j fits at u: for each pool p of j's partition, take the minimum of plan(p, v) over u ≤ v < u + length(j); the sum of "
    "these minima is at least need(j)",
    "length(j), need(j)": "the planned runtime of j, with overheads; its processors and second resource",
}
"""Terms of the statements."""

PROMISES = (
    Promise(
        "dependency",
        "If j depends on i, start(j) ≥ end(i). Under feedback, start(j) ≥ end(i) + think time of j.",
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
        "At every start in pool p, the running jobs use at most the capacity of p minus its outages. Jobs that run when an outage begins "
        "may continue. A job with a runtime of 0 needs free processors after the ends at its instant.",
        POOL_POLICIES,
        "Without the column `given`, the auditor checks only that a placement exists (Hall's condition for every union of partitions).",
    ),
    Promise(
        "pool_order",
        "j goes through its partition's pools in their order. From each it takes what it still needs, as far as this stays free for "
        "length(j).",
        POOL_POLICIES,
        "Without the column `given`, the rule determines the pools.",
    ),
    Promise(
        "node_capacity",
        "No node is used beyond its capacity or by jobs of other partitions. During an outage, jobs start only on the remaining nodes.",
        ("slurm", "oar"),
        "This check needs the nodes of jobs, which schedule files do not contain.",
    ),
    Promise(
        "node_order",
        "j gets nodes from the best run of consecutive usable nodes of the lowest weight: the tightest single node, or else nodes and "
        "further runs until it has enough.",
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
        "No job of Q(t) waits although it fits at t next to the earlier reservations. `fcfs`: the pools of a waiting job's partition are "
        "closed to later jobs. `easy` makes one reservation per pool, `hybrid` as many as its depth, `conservative-scratch` one per job. "
        "`conservative`: no reservation could be moved earlier, to t. `slurm`: no job that a cycle has tested could start at the cycle's "
        "end. `oar`: no waiting job is planned to start at t.",
        ALL,
    ),
    Promise(
        "reservation_delayed",
        "j starts at t only if fits(j, t), so that it delays no earlier reservation.",
        tuple(one for one in ALL if one != "fcfs"),
    ),
    Promise(
        "out_of_turn",
        "Jobs start only at such a time t, and only those that the policy starts. `fcfs`: not on a pool of a waiting job's "
        "partition. `slurm`: in a main pass, not in a partition in which a waiting job ahead claims nodes, nor beyond the queue depths.",
        ALL,
    ),
    Promise(
        "reserved_start_missed",
        "A reservation only moves to an earlier time, unless the plan breaks (overdue job, correction, unknown outage, limit); it is then "
        "made again. When it is due, its job starts. An outage breaks the plan only once, when it becomes known.",
        ("conservative",),
    ),
)
"""The guarantees. Predictions change length(j) and the expected ends; kept reservations are then made again."""

NOT_DECIDED = {
    "starts without a given policy": "only the rules for all schedules are checked",
    "starts with a predictor that was not given": "planned runtimes are unknown",
    "starts under policies in plain Python on several pools": "only pools, limits, windows and dependencies are checked",
    "thresholds of scores, `window=N`, dialects, `los` and `slack` on pools": "no engine runs them there",
    "settings of Slurm that are not modelled, such as topology": "they are reported when the policy is created",
    "further starts at an instant with a difference": "the check continues from the schedule's state",
    "kinds of starts and first reservations": "no guarantee covers these columns on such machines",
}
"""Cases that are not decided, with the reason."""
