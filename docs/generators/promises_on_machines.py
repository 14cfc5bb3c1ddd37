"""What schedules promise on machines of pools and on Slurm's nodes: each rule in a sentence, by which policies, and what is not decided."""

from __future__ import annotations

from typing import NamedTuple

POOL_POLICIES = ("fcfs", "easy", "hybrid", "conservative-scratch", "conservative")
"""The policies that run on machines of pools."""
ALL = (*POOL_POLICIES, "slurm", "oar")


class Promise(NamedTuple):
    """A rule of the auditor: what it says, by which policies it is promised, and where it is not decided, and why."""

    rule: str
    says: str
    policies: tuple[str, ...]
    not_decided: str = ""


WORDS = {
    "t": "an instant at which something happens: jobs arrive or end, a reservation is due, a prediction is corrected, an outage becomes "
    "known, begins or ends; under Slurm also each backfill cycle, and each full pass of the main scheduler; under OAR only the "
    "seconds that its passes read, which follow from the starts, ends and submissions of the schedule, from how long its server "
    "takes, and from the seed",
    "start(j), end(j)": "as the schedule has them; on a machine with overheads start(j) is the decision, `start` seconds before, and "
    "end(j) the next tick at which its processors are free, `end` seconds after; submissions are seen at ticks, too",
    "Q(t)": "the jobs that wait at t, by tier, then by the queue order (under Slurm by priority), then by arrival; without those that one "
    "of their limits holds back",
    "free(p, t)": "processors, and units of the second resource, of pool p that neither a running job nor an outage holds at t; at least 0",
    "plan(p, u)": "what is expected to be free of p at u ≥ t: running jobs end when they are expected to, those overdue in a second, "
    "known outages begin and end, and reservations that are made before hold their places",
    "fits(j, u)": "the pools of j's partition have what j needs: Σ over p of min of plan(p, v) for u ≤ v < u + length(j) ≥ need(j)",
}
"""What the sentences speak of."""

PROMISES = (
    Promise(
        "dependency",
        "start(j) ≥ end(i) for every i on which j depends; under feedback start(j) ≥ end(i) + think(j).",
        ALL,
    ),
    Promise(
        "window_shut",
        "begin ≤ start(j) < end for no hours [begin, end) of a window for jobs of j's kind; and under `drain`, or without an end, "
        "start(j) < begin < start(j) + believed(j) for none.",
        POOL_POLICIES,
    ),
    Promise(
        "limit_exceeded",
        "At every start the jobs of a group that run, with the one that starts, are no more, and use no more, than its limit allows.",
        ALL,
    ),
    Promise(
        "pool_capacity",
        "At every start in pool p, Σ given(i, p) over those that run ≤ what p has less what is out; jobs may outlast the beginning of an "
        "outage, but nobody starts on what they hold. A job of no length needs its processors once what ends then has ended.",
        POOL_POLICIES,
        "Without the column `given` it is decided whether any placement exists: Hall's condition for every union of partitions, at every "
        "start; in an outage also by when each job started. That one job keeps its pools from start to start is then decided by it.",
    ),
    Promise(
        "pool_order",
        "j takes of its partition's pools in their order min(what is still needed, what stays free for all of length(j)).",
        POOL_POLICIES,
        "Without the column `given`, the jobs are taken to have what this rule gives them.",
    ),
    Promise(
        "node_capacity",
        "Each node gives out no more than it has, to jobs of its partitions only; in an outage jobs start on no more nodes than are left.",
        ("slurm", "oar"),
        "Needs the nodes of the jobs, which schedule files do not have.",
    ),
    Promise(
        "node_order",
        "j gets whole stretches of consecutive usable nodes, the largest first, until what is left fits into one; of these the smallest.",
        ("slurm",),
        "Without the nodes of the jobs, they are taken to have what this rule gives them.",
    ),
    Promise(
        "node_order",
        "j gets the first of its partition's nodes that are free from t on for length(j) and the security time, in all slots of the plan.",
        ("oar",),
        "Without the nodes of the jobs, they are taken to have what this rule gives them.",
    ),
    Promise(
        "limit_shortened",
        "limit(j) = request(j), but for a job with a shorter time_min and no soft limit that is backfilled: then the time until one of its "
        "nodes is kept for another, in whole minutes, and time_min ≤ limit(j).",
        ("slurm",),
        "A schedule without the column `limit` says limits by its ends: a job with a time_min must end when Slurm's limit ends it.",
    ),
    Promise(
        "head_waits",
        "The first of Q(t) starts at t if fits(j, t); under Slurm, in the main scheduler's pass at t.",
        ALL,
    ),
    Promise(
        "left_waiting",
        "No idle: of Q(t) nobody waits who fits at t beside the reservations made before. fcfs: no job waits that fits in those "
        "pools of its partition that are in no partition of a job that waits ahead. easy: each pool keeps one reservation, hybrid k, "
        "conservative-scratch one for every job; backfill order for those behind. conservative: nobody whose reservation could be at t. "
        "slurm: at the end of a cycle no tested job is left whose "
        "request finds its nodes for its length beside what is planned before it. oar: nobody who is placed at t in the "
        "plan of the pass at t.",
        ALL,
    ),
    Promise(
        "reservation_delayed",
        "j starts at t only if fits(j, t): nobody ahead who has a reservation is put off by it.",
        tuple(one for one in ALL if one != "fcfs"),
    ),
    Promise(
        "out_of_turn",
        "Nobody starts but at such an instant t, and only whom the policy starts then: fcfs no job on a pool of the partition of a job "
        "that waits ahead, but on its other pools; "
        "slurm in a main pass nobody of a partition behind one that waits for it and has a claim, nor beyond the depths of its passes.",
        ALL,
    ),
    Promise(
        "reserved_start_missed",
        "A kept reservation is only moved to an earlier time, or made anew when the plan breaks (an overdue job, a correction, an outage "
        "that was not known, a limit); when it is due, its job starts. An outage breaks the plan once, in the first pass of the instant at "
        "which it becomes known.",
        ("conservative",),
    ),
)
"""The promises. Predictions change length(j) and the expected ends; they break no promise, but kept reservations are made anew."""

NOT_DECIDED = {
    "what starts, with no policy given": "only what every schedule promises is checked",
    "what starts, with predictions of an unnamed predictor": "the lengths that the scheduler planned with are not known",
    "thresholds of scores, windows, dialects and the later policies on pools": "no engine of ours runs them there, so they promise nothing",
    "what of Slurm's settings is not modelled": "named when the policy is made (preemption, topology); the rules are those of the model",
    "after the first difference of an instant": "the run goes on as the schedule does; what else differs at this instant is not told",
    "kinds of starts and first reservations": "columns of ours, which no promise speaks of on these machines",
}
"""What is not decided, and why."""
