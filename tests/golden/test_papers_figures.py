"""The papers' own worked examples.

The drawings of mualem01 are lost, so the jobs here are ours, made to show what the captions and the text say; tsafrir06, Fig. 6 has its
lengths in Table II. Time runs to the right, one column a unit; a row is a processor; `.` is idle.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import walltime as wt
from tests.golden.worked import check, jobs_of

SCRATCH = wt.Conservative(variant="scratch")

# ------------------------------------------------------------------------------------------------------------- mualem01, Fig. 1
#
# Expected schedule on 5 processors, as conservative backfilling plans it at time 3:
#
#            0   4   8   12    18
#            |   |   |   |     |      r, s, t  running since 0, until 20, 4 and 8
#            rrrrrrrrrrrrrrrrrrrr     1  (4 processors, 4 long): after the first two running jobs, s and t, have ended: 8
#            ssss....1111             2  (2 processors, 6 long): 2 processors are free from 4 on, when only s has ended. That
#            tttttttt1111222222          is a potential anchor, but 2 would run until 10 and delay 1; so the next one: 12
#            tttttttt1111222222       3  (1 processor, 3 long): one processor is free now, and from 3 to 6 it delays nobody
#            ...333..1111

FIG1 = jobs_of(
    5,
    (0, 1, 20),  # r
    (0, 1, 4),  # s
    (0, 2, 8),  # t
    (1, 4, 4),  # 1
    (2, 2, 6),  # 2
    (3, 1, 3),  # 3
)


@pytest.mark.parametrize("policy", [wt.Conservative(), SCRATCH], ids=lambda p: p.label)
def test_p2_fig1__conservative_anchor_points(policy):
    check(FIG1, policy, start=[0, 0, 0, 8, 12, 3], kind="III RRB", reserved_start=[0, 0, 0, 8, 12, 3])


def test_p2_fig1__without_reservations_the_second_job_delays_the_first():
    # What the reservation of 1 prevents. At 4 one processor is free (3 has the other), at 6 two: 2 starts, and when t ends, at 8,
    # 1 still lacks the two processors that 2 has until 12.
    check(FIG1, wt.Hybrid(depth=0), start=[0, 0, 0, 12, 6, 3], kind="III RBB", reserved_start=[-1] * 6)
    # Without 3 the second job takes its potential anchor, 4, and 1 waits for it until 10.
    check(jobs_of(5, (0, 1, 20), (0, 1, 4), (0, 2, 8), (1, 4, 4), (2, 2, 6)), wt.Hybrid(depth=0), start=[0, 0, 0, 10, 4], kind="III RB")


# ------------------------------------------------------------------------------------------------------------- mualem01, Fig. 2
#
# 4 processors. a runs 0-4; b says 10 and ends at 3. 1 needs all 4 processors for 5, 2 needs 3 for 6.
#
#   planned at time 2              from scratch at time 3          compressed at time 3
#   0   4=T1  10=T2                0   4    9=T3                   0   4     10
#   aaaa2222221111 1               aaaa11111222222                 aaaa22222211111
#   aaaa2222221111 1               aaaa11111222222                 aaaa22222211111
#   aaaa2222221111 1               aaaa11111222222                 aaaa22222211111
#   bbbbbbbbbb1111 1               bbb.11111......                 bbb.......11111
#
# 2 backfills: it had a reserved start at T1 = 4, before 1, which waits for b until T2 = 10. Then b ends at 3. Planning from scratch
# puts 1 first, at 4, and 2 has to wait for its end, T3 = 9: its promise is broken. Compressing takes 1 first too, but the
# reservation of 2 stands in its way, and 1 stays; 2 stays as well, as a holds 3 processors until 4. Both keep their promise.

FIG2 = jobs_of(
    4,
    (0, 3, 4),  # a
    (0, 1, 10, 3),  # b
    (1, 4, 5),  # 1
    (2, 3, 6),  # 2
)
T1, T2, T3 = 4, 10, 9


def test_p2_fig2__planning_from_scratch_breaks_a_promise():
    check(FIG2, SCRATCH, start=[0, 0, 4, T3], kind="II RR", reserved_start=[0, 0, T2, T1])


def test_p2_fig2__compressing_keeps_it():
    check(FIG2, wt.Conservative(), start=[0, 0, T2, T1], kind="II RB", reserved_start=[0, 0, T2, T1])


# ------------------------------------------------------------------------------------------------------------- mualem01, Fig. 3
#
# 4 processors. 1 needs 3, 2 needs all 4; the backfill job 3 needs 1 for 10.
#
#   EASY                                  conservative
#   0   4  7     13                       0   4  7 9
#   aaaa111......22                       aaaa11122
#   aaaa111......22                       aaaa11122
#   aaaa111......22                       aaaa11122
#   ...333333333322                       .......223333333333
#
# At 3 one processor is free. EASY looks at 1 alone: at its shadow time, 4, one processor is left over (extra), so 3 may
# start; 1 is not delayed, but 2, which would have started at 7, waits for 3 until 13. Under conservative backfilling 2 has
# a reservation at 7, which 3 would violate; so 3 comes after it.

FIG3 = jobs_of(
    4,
    (0, 3, 4),  # a
    (1, 3, 3),  # 1, first in the queue
    (2, 4, 2),  # 2, second in the queue
    (3, 1, 10),  # 3, the backfill job
)


def test_p2_fig3__easy_delays_the_second_queued_job_but_not_the_first():
    check(FIG3, wt.Easy(), start=[0, 4, 13, 3], kind="I R R B", reserved_start=[-1, 4, 13, -1])


def test_p2_fig3__without_the_backfill_job_the_second_starts_at_7():
    check(jobs_of(4, (0, 3, 4), (1, 3, 3), (2, 4, 2)), wt.Easy(), start=[0, 4, 7], kind="I R R", reserved_start=[-1, 4, 7])


@pytest.mark.parametrize("policy", [wt.Conservative(), SCRATCH, wt.Hybrid(depth=2)], ids=lambda p: p.label)
def test_p2_fig3__a_reservation_for_the_second_job_protects_it(policy):
    # Hybrid with depth 2 reserves for 1 and 2; 3 had no reservation while both waited, and gets its first one, 9, at time 4.
    reserved_start = [0, 4, 7, 9]
    check(FIG3, policy, start=[0, 4, 7, 9], kind="I R R R", reserved_start=reserved_start)


def test_p2_property1__the_delay_of_the_second_job_grows_with_the_backfill_job():
    # Property 1: queued jobs may suffer an unbounded delay.
    for length in (10, 100, 1000):
        longer = jobs_of(4, (0, 3, 4), (1, 3, 3), (2, 4, 2), (3, 1, length))
        check(longer, wt.Easy(), start=[0, 4, 3 + length, 3])


# ------------------------------------------------------------------------------------------------------------- tsafrir06, Fig. 1
#
# 4 processors, 4 jobs. 2 ends at 2 and leaves a hole of 2 units before 1 ends, at 4; 3 needs the whole machine and is
# reserved at 4. "It would have been impossible to backfill job 4 had its length been more than 2 time units, as the
# reservation for job 3 would have been violated."
#
#   4 is 2 long    0 2 4  7           4 is 3 long    0 2 4  7
#                  1111333                           1111333
#                  1111333                           1111333
#                  2244333                           22..333444
#                  2244333                           22..333444


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_p3_fig1__job_4_is_backfilled_if_it_is_no_longer_than_the_hole(length):
    jobs = jobs_of(4, (0, 2, 4), (0, 2, 2), (0, 4, 3), (0, 2, length))
    if length <= 2:
        check(jobs, wt.Easy(), start=[0, 0, 4, 2], kind="IIR B", reserved_start=[-1, -1, 4, -1])
    else:
        # 4 becomes the head when 3 starts, at 4, and gets its reservation, 7, then.
        check(jobs, wt.Easy(), start=[0, 0, 4, 7], kind="IIR R", reserved_start=[-1, -1, 4, 7])
    check(jobs, wt.NoBackfilling(), start=[0, 0, 4, 7], kind="IIRR", reserved_start=[-1] * 4)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_p3_fig1__balance_argument_doubling_everything_scales_the_time_axis(length):
    # "Doubling the lengths of all the jobs in Fig. 1 only means the X-axis is scaled by a factor of two."
    jobs = jobs_of(4, (0, 2, 8), (0, 2, 4), (0, 4, 6), (0, 2, 2 * length))
    check(jobs, wt.Easy(), start=[0, 0, 8, 4 if length <= 2 else 14])


# ------------------------------------------------------------------------------------------- tsafrir06, Fig. 6 with Table II
#
# 2 processors; all jobs arrive at T0; 3 needs both processors, the others one each. Real runtimes 6, 4, (3), 4, 3, 2; the
# estimates are F times as much. The runtime of 3 is not in the paper; here it is 3 units. F = 2 (capitals: what remains of
# the estimates after the real end is not drawn, as the processors are free by then):
#
#   T0  T4  T8 T10        1 is planned to end at T12, so 3 has its reservation there, and keeps it.
#   1111115553 3 3        T4   2 ends. The hole is 8 units long (T4 to T12). 4, the first candidate, has an estimate of 8 and
#   2222444466 3 3             fits. The real shadow of 3 (its start if all real ends were known) moves from T6 to T8.
#                         T6   1 ends; hole 6; 5, estimate 6, fits. The real shadow moves to T9.
#                         T8   4 ends; hole 4; 6, estimate 4, fits. The real shadow moves to T10, where 3 starts.
#
#   F = 4/3               3 is reserved at T8. At T4 the hole is 4 units: 4 (16/3) does not fit, 5 (4) does. It runs T4-T7.
#   1111113 3 344         At T6 the hole is 2: neither 4 (16/3) nor 6 (8/3). At T7 3 starts, three units before 4 and 6.
#   2222555 3 366
#
#   F = 1                 3 is reserved at T6. At T4 the hole is 2 units: not 4 (4), not 5 (3), but 6 (2). At T6 3 starts.
#   111111333444
#   222266333555
#
# Table II prints 7/3 as the estimate of 6 at F = 4/3. Its runtime is 2, so 8/3 is meant (an error of print or
# transcription); the schedule is the same.
#
# Times are multiplied by 3, so that the estimates are whole numbers.

SCALE = 3
RUNTIMES = (6, 4, 3, 4, 3, 2)
TABLE2 = {
    # F               J1               J4              J5             J6   hole  the first that fits
    Fraction(1): ((6, 4, 3, 2), 2, 6),
    Fraction(4, 3): ((8, Fraction(16, 3), 4, Fraction(8, 3)), 4, 5),
    Fraction(2): ((12, 8, 6, 4), 8, 4),
}


def fig6(factor: Fraction, jobs: int = 6) -> wt.Workload:
    rows = [(0, 2 if number == 3 else 1, int(r * SCALE * factor), r * SCALE) for number, r in enumerate(RUNTIMES[:jobs], 1)]
    return jobs_of(2, *rows)


@pytest.mark.parametrize("factor", TABLE2)
def test_p3_table2__estimates_hole_and_first_job_that_fits(factor):
    estimates, hole, fits = TABLE2[factor]
    jobs = fig6(factor)
    assert [Fraction(int(jobs.requested[j - 1]), SCALE) for j in (1, 4, 5, 6)] == list(estimates)
    for engine in ("kernel", "reference"):
        schedule = wt.simulate(jobs, wt.Easy(), engine=engine)
        assert Fraction(int(schedule.reserved_start[2]), SCALE) - 4 == hole
        assert (np.flatnonzero(schedule.start == 4 * SCALE) + 1).tolist() == [fits]


def test_p3_fig6__heel_and_toe_with_doubled_estimates():
    start = [0, 0, 10, 4, 6, 8]
    # When 3 starts nobody is left in the queue; nobody else was ever first in it.
    check(fig6(Fraction(2)), wt.Easy(), start=[t * SCALE for t in start], kind="IIR BBB", reserved_start=[-1, -1, 12 * SCALE, -1, -1, -1])


def test_p3_fig6__with_a_factor_of_four_thirds_the_second_candidate_fits():
    # 4 is first in the queue from T7 on; 3, estimated at 4 units, is then expected to end at T11, and ends at T10.
    start, reserved_start = [0, 0, 7, 10, 4, 10], [-1, -1, 8, 11, -1, -1]
    check(
        fig6(Fraction(4, 3)),
        wt.Easy(),
        start=[t * SCALE for t in start],
        kind="IIR R B R",
        reserved_start=[t * SCALE if t >= 0 else t for t in reserved_start],
    )


def test_p3_fig6__with_perfect_estimates_only_the_shortest_fits():
    start, reserved_start = [0, 0, 6, 9, 9, 4], [-1, -1, 6, 9, -1, -1]
    check(
        fig6(Fraction(1)),
        wt.Easy(),
        start=[t * SCALE for t in start],
        kind="IIR RR B",
        reserved_start=[t * SCALE if t >= 0 else t for t in reserved_start],
    )


def test_p3_fig6__each_backfilled_job_moves_the_real_shadow():
    # With 3 jobs nobody is backfilled, and 3 starts at its real shadow, T6; each further candidate steals some time.
    for jobs, real_shadow in ((3, 6), (4, 8), (5, 9), (6, 10)):
        for engine in ("kernel", "reference"):
            assert wt.simulate(fig6(Fraction(2), jobs), wt.Easy(), engine=engine).start[2] == real_shadow * SCALE
    # With perfect estimates there is no wild backfilling.
    for jobs in (3, 4, 5, 6):
        assert wt.simulate(fig6(Fraction(1), jobs), wt.Easy()).start[2] == 6 * SCALE
