"""EASY with a doubled reservation: a worked example, and what the auditor says of it."""

import numpy as np
import pytest

import walltime as wt

# On four processors. The first job starts at the head at 0, asks for 10 s and is expected to end at 20: the second, as wide as the
# machine, has that shadow time, and no extra processors. The third asks for 16 s, so it would end by 18, and is backfilled at 2.
# When the first ends at 5, the shadow time is that of the third, which was backfilled and is not doubled: 2 + 16 = 18. The fourth
# would end by 18 as well, and is backfilled at 6; the fifth by 19, and is not. The third ends at 11, the fourth at 12; then the
# second starts, is expected to end at 12 + 2 x 10, and the fifth starts when it ends at 22.
WORKLOAD = wt.Workload.from_arrays(
    submit=[0, 1, 2, 6, 6],
    runtime=[5, 10, 9, 6, 1],
    requested=[10, 10, 16, 12, 13],
    procs=[3, 4, 1, 1, 1],
    machine_procs=4,
)
START = [0, 12, 2, 6, 22]


def test_double__backfills_up_to_the_doubled_end_of_those_that_started_at_the_head():
    schedule = wt.simulate(WORKLOAD, "double")
    assert schedule.start.tolist() == START
    assert schedule.reserved_start.tolist() == [-1, 20, -1, -1, 32]
    assert schedule.kind.tolist() == [0, 1, 2, 2, 1]
    assert wt.simulate(WORKLOAD, "easy").start.tolist()[2] > 2


def test_double__may_backfill_in_another_order():
    schedule = wt.simulate(WORKLOAD, "double:backfill-order=sjf")
    assert schedule.policy.label == "double:backfill-order=sjf"
    assert schedule.start.tolist() == START


def audited(start):
    start = np.array(start)
    return wt.audit(WORKLOAD, {"job_id": WORKLOAD.job_id, "start": start, "end": start + WORKLOAD.runtime}, wt.policy.Double())


def test_auditor__accepts_double():
    assert audited(START).ok


@pytest.mark.parametrize(
    ("start", "rule", "job"),
    [
        (wt.simulate(WORKLOAD, "easy", engine="reference").start, "left_waiting", 3),
        ([0, 13, 2, 6, 23], "head_waits", 2),
        ([0, 12, 2, 22, 6], "left_waiting", 4),
    ],
    ids=["of EASY", "the head waits", "another is backfilled"],
)
def test_auditor__refuses_what_double_does_not_do(start, rule, job):
    first = audited(start).first
    assert (first.rule, first.jobs) == (rule, (job,))
