"""The data of a workload that custom orders and policies may read, in the form that the engines take."""

from __future__ import annotations

import numpy as np

from walltime.policy import Calendar, LogView, PlainPolicy, Policy
from walltime.policy.log_view import COLUMNS
from walltime.workload import Workload

Array = np.ndarray


def known_to(policy: Policy, workload: Workload, requested: Array) -> LogView:
    """The columns that this policy and its orders read, int64, one entry per job, and the site's calendar if known.

    `requested`: the users' requests, int64 s. Columns that the log does not have are left out.
    """
    orders = (policy.order, getattr(policy, "backfill_order", None) or policy.order)
    wanted = set(COLUMNS) if isinstance(policy, PlainPolicy) else {name for order in orders for name in order.columns}
    own = {"requested": requested, "job_id": workload.job_id}
    columns = {name: own[name] if name in own else workload.columns.get(name) for name in sorted(wanted)}
    begin = workload.origin.unix_start_time
    calendar = None if begin is None else Calendar(begin, workload.origin.tzinfo())
    return LogView({name: np.asarray(values, np.int64) for name, values in columns.items() if values is not None}, calendar)
