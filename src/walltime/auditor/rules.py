"""The rules of the auditor, declared once."""

from __future__ import annotations

ALWAYS = {
    "unknown_job": "every row is a job of the workload",
    "duplicate_job": "no job stands in the schedule twice",
    "missing_job": "every job of the workload stands in the schedule",
    "submit_differs": "submit is that of the workload",
    "procs_differ": "processors are those of the workload",
    "requested_differs": "the request is that of the workload",
    "believed_differs": "the believed runtime is that of the options: the estimate, or what the predictor says",
    "start_before_submit": "no job starts before it is submitted",
    "end_differs": "each job ends after exactly its effective runtime, which the log and the overrun rule decide",
    "over_limit": "no job runs past its kill limit",
    "capacity": "at no instant are more processors in use than the machine has; a job of no length starts only while its own are free",
}
"""What holds for every schedule, whatever the policy."""
OF_POLICIES = {
    "head_waits": "the head of the queue starts when the policy starts it",
    "left_waiting": "no other job that the policy would start now is left waiting",
    "reservation_delayed": "no job starts that moves a reservation back",
    "reserved_start_missed": "no job waits past a reserved start that is kept for it",
    "out_of_turn": "no job starts where the policy does not start it",
    "reserved_start_differs": "the first reservation of each job is the one that the policy makes",
    "kind_wrong": "each start is labelled as what it is",
}
"""What policies promise. Each of them says which of these rules hold for it, and in which form (`Policy.promises`)."""
CHECKS = ALWAYS | OF_POLICIES
"""All rules for a machine that is a number of processors, and what they require."""
