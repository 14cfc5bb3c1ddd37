"""One rule each: ties, zero runtimes, wide jobs, extra nodes, overruns, what is planned, coincident events, due reservations.

Rows are submit, processors, estimate and, where it differs, runtime.
"""

from __future__ import annotations

import numpy as np
import pytest

import walltime as wt
from tests.golden.worked import check, jobs_of

BACKFILLING = [wt.Easy(), wt.Hybrid(depth=3), wt.Conservative(), wt.Conservative(variant="scratch")]
ALL = [wt.NoBackfilling(), wt.Hybrid(depth=0), *BACKFILLING]
by_label = pytest.mark.parametrize("policy", ALL, ids=lambda p: p.label)


# ------------------------------------------------------------------------------------------------------------- ties, orders


@by_label
def test_ties__jobs_of_one_second_go_by_job_id(policy):
    # One processor; given in the order 3, 1, 2, they run in the order 1, 2, 3.
    jobs = wt.Workload.from_arrays(submit=[5, 5, 5], job_id=[3, 1, 2], runtime=[1, 2, 4], procs=[1, 1, 1], machine_procs=1)
    assert jobs.job_id.tolist() == [1, 2, 3]
    check(jobs, policy, start=[5, 7, 11], kind="IRR")


def test_ties__equal_scores_go_by_arrival():
    # a runs until 10. c (2 long) goes first; b and d are equally long, b arrived earlier.
    jobs = jobs_of(1, (0, 1, 10), (1, 1, 4), (2, 1, 2), (3, 1, 4))
    check(jobs, wt.NoBackfilling(order=wt.SJF), start=[0, 12, 10, 16], kind="I R R R")


def test_order__wfp_is_recomputed_at_each_pass():
    # (wait / estimate)**3 * processors, all two wide on a machine of two:
    #   at 10  x (9/3)**3 * 2 = 54, y (8/2)**3 * 2 = 128, z (6/3)**3 * 2 = 16: y runs 10-12
    #   at 12  x (11/3)**3 * 2 = 98.6, z (8/3)**3 * 2 = 37.9: x runs 12-15, then z
    jobs = jobs_of(2, (0, 2, 10), (1, 2, 3), (2, 2, 2), (4, 2, 3))
    check(jobs, wt.NoBackfilling(order=wt.WFP), start=[0, 12, 10, 15], kind="I R R R")
    check(jobs, wt.NoBackfilling(), start=[0, 10, 13, 15], kind="I R R R")


def test_order__wfp_prefers_wide_jobs_and_the_exponent_long_waits():
    # At 10: x waited 8 of 4 seconds, one processor; y waited 6 of 4, two processors.
    #   exponent 1: 2 * 1 = 2 against 1.5 * 2 = 3, y first.     exponent 3: 8 against 3.375 * 2 = 6.75, x first.
    jobs = jobs_of(2, (0, 2, 10), (2, 1, 4), (4, 2, 4))
    check(jobs, wt.NoBackfilling(order=wt.policy.Wfp(exponent=1)), start=[0, 14, 10], kind="I R R")
    check(jobs, wt.NoBackfilling(order=wt.policy.Wfp(exponent=3)), start=[0, 10, 14], kind="I R R")


@wt.order
def widest(procs):
    return procs


def test_order__of_the_user():
    jobs = jobs_of(3, (0, 3, 10), (1, 1, 5), (2, 3, 5), (3, 2, 5))
    # At 10 the three-wide job runs alone, then the other two side by side.
    check(jobs, wt.NoBackfilling(order=widest), start=[0, 15, 10, 15], kind="I R R R")


def test_order__and_backfill_order_are_separate():
    # 3 processors, a has 2 until 10. The head h needs all three: shadow time 10. One processor is free until then for l (6 long)
    # or s (3 long), which arrive while f (2 long) has it, until 4.
    #   candidates first come, first served: l runs 4-10, then h 10-12, then s.
    #   shortest first: s runs 4-7, and l (until 13) would delay h: h 10-12, then l.
    jobs = jobs_of(3, (0, 2, 10), (0, 1, 4), (1, 3, 2), (2, 1, 6), (3, 1, 3))
    check(jobs, wt.Easy(), start=[0, 0, 10, 4, 12], kind="II R B R")
    check(jobs, wt.Easy(backfill_order=wt.SJF), start=[0, 0, 10, 12, 4], kind="II R R B")
    # Queue order shortest first: h (2) is before s (3) and l (6), and keeps the reservation.
    check(jobs, wt.Easy(order=wt.SJF), start=[0, 0, 10, 12, 4], kind="II R R B")
    # ... candidates first come, first served all the same.
    check(jobs, wt.Easy(order=wt.SJF, backfill_order=wt.FCFS), start=[0, 0, 10, 4, 12], kind="II R B R")


# ------------------------------------------------------------------------------------------------- zero runtimes, wide jobs


@by_label
def test_zero_runtime__jobs_pass_through_in_the_same_second(policy):
    # One processor. a and b need no time, c needs 3. All three start at 7, one after the other; nobody waits a second.
    jobs = jobs_of(1, (7, 1, 1, 0), (7, 1, 5, 0), (7, 1, 3))
    check(jobs, policy, start=[7, 7, 7], kind="III")


def test_zero_runtime__promises_made_within_the_second():
    jobs = jobs_of(1, (7, 1, 1, 0), (7, 1, 5, 0), (7, 1, 3))
    # In the pass that starts a, the head b is told to wait for a's estimate, until 8; in the pass that starts b, c until 12.
    check(jobs, wt.Easy(), start=[7, 7, 7], reserved_start=[-1, 8, 12])
    # Conservative: a at 7, b at 8, c at 13, in the first pass; or in the passes after their arrivals, which precede the end of a.
    check(jobs, wt.Conservative(), start=[7, 7, 7], reserved_start=[7, 8, 13])


@by_label
def test_one_processor__is_first_come_first_served_under_every_policy(policy):
    # Nothing fits beside a running job. c says 9 and ends after 2.
    jobs = jobs_of(1, (0, 1, 5), (1, 1, 4), (2, 1, 9, 2), (3, 1, 1))
    check(jobs, policy, start=[0, 5, 9, 11], kind="IRRR")


def test_wide_job__holes_are_filled_up_to_the_very_second_before_it():
    # 4 processors; a has 2 until 10; w needs all: shadow time 10, no extra nodes. c arrives at 2 and would end at 11, d at 3
    # and would end at 11: they wait. e arrives at 4 and ends at 10: "will terminate by the shadow time".
    jobs = jobs_of(4, (0, 2, 10), (1, 4, 3), (2, 2, 9), (3, 2, 8), (4, 2, 6))
    for policy in BACKFILLING:
        check(jobs, policy, start=[0, 10, 13, 13, 4], kind="I R R R B")
    # w alone on the machine; the others after it. e finds no room beside c and d, which run 13-22 and 13-21.
    check(jobs, wt.NoBackfilling(), start=[0, 10, 13, 13, 21], kind="I R R R R")
    # Nobody reserves: c 2-11 beside a; d, at 3, finds no room; at 10 d follows a and at 11 e follows c; w waits until 18.
    check(jobs, wt.Hybrid(depth=0), start=[0, 18, 2, 10, 11], kind="I R B B B")


# -------------------------------------------------------------------------------------------------------------- extra nodes


def test_extra_nodes__count_all_jobs_that_end_at_the_shadow_time():
    # 5 processors, a and b have 2 each until 10; the head needs 3: one free and a's two suffice, but b's two are free at 10 as
    # well. 5 - 3 = 2 extra nodes, so d (1 wide, 20 long) starts at once.
    check(jobs_of(5, (0, 2, 10), (0, 2, 10), (1, 3, 5), (2, 1, 20)), wt.Easy(), start=[0, 0, 10, 2], kind="II R B")
    # b until 11: at the shadow time, 10, nothing is left over. d waits for b.
    check(jobs_of(5, (0, 2, 10), (0, 2, 11), (1, 3, 5), (2, 1, 20)), wt.Easy(), start=[0, 0, 10, 11], kind="II R R")


def test_extra_nodes__are_used_up():
    # 6 processors, a has 3 until 10; the head needs 5: 1 extra node, 3 free. d and e (1 wide, 20 long) want it; d comes first.
    # f (1 wide, 4 long) ends by the shadow time and uses no extra node. At 10 the head starts beside d, until 15; then e.
    jobs = jobs_of(6, (0, 3, 10), (1, 5, 5), (2, 1, 20), (3, 1, 20), (4, 1, 4))
    check(jobs, wt.Easy(), start=[0, 10, 2, 15, 4], kind="I R B R B", reserved_start=[-1, 10, -1, 15, -1])
    # Candidates of one pass: all arrive at 2, the longest first.
    jobs = jobs_of(6, (0, 3, 10), (1, 5, 5), (2, 1, 20), (2, 1, 19), (2, 1, 8))
    check(jobs, wt.Easy(), start=[0, 10, 2, 15, 2], kind="I R B R B", reserved_start=[-1, 10, -1, 15, -1])


def test_extra_nodes__a_job_that_ends_by_the_shadow_time_takes_none():
    # As above, but the short job comes before the long one: the extra node is still there.
    jobs = jobs_of(6, (0, 3, 10), (1, 5, 5), (2, 1, 8), (2, 1, 20))
    check(jobs, wt.Easy(), start=[0, 10, 2, 2], kind="I R B B")


# ----------------------------------------------------------------------------------------------------------------- overruns

# 3 processors. a says 5 and runs 9, on two of them; h needs two and says 3; e is one wide and long and arrives at 6.
OVERRUN = jobs_of(3, (0, 2, 5, 9), (1, 2, 3), (6, 1, 20))


@pytest.mark.parametrize("policy", [wt.Easy(), wt.Conservative()], ids=lambda p: p.label)
def test_overrun__kill_ends_the_job_at_its_request(policy):
    check(OVERRUN, policy, start=[0, 5, 6], kind="IRI", reserved_start=[-1, 5, -1] if isinstance(policy, wt.Easy) else [0, 5, 6])
    assert wt.simulate(OVERRUN, policy).end.tolist() == [5, 8, 26]
    assert wt.simulate(OVERRUN, policy).runtime.tolist() == [5, 3, 20]


@pytest.mark.parametrize("policy", [wt.Easy(), wt.Conservative()], ids=lambda p: p.label)
def test_overrun__extend_lets_the_scheduler_know_the_runtime(policy):
    # a is planned to end at 9, which is when h may start; e starts beside a: one processor is left over at 9.
    reserved_start = [-1, 9, -1] if isinstance(policy, wt.Easy) else [0, 9, 6]
    check(OVERRUN, policy, start=[0, 9, 6], kind="IRB", reserved_start=reserved_start, overrun="extend")
    assert wt.simulate(OVERRUN, policy, overrun="extend").end.tolist() == [9, 12, 26]


def test_overrun__easy_takes_an_overdue_job_to_end_at_once():
    # h has a reserved start at 5, and a does not end. At 6 a counts as ending now: shadow time 6, 3 - 2 = 1 extra node, which e takes.
    # At 9 a ends and h starts, 4 s after its promise.
    check(OVERRUN, wt.Easy(), start=[0, 9, 6], kind="I R B", reserved_start=[-1, 5, -1], overrun="continue")
    # A job that needs two processors cannot use the extra node, and finds one free only.
    wide = jobs_of(3, (0, 2, 5, 9), (1, 2, 3), (6, 2, 1))
    check(wide, wt.Easy(), start=[0, 9, 12], kind="I R R", reserved_start=[-1, 5, 12], overrun="continue")


def test_overrun__conservative_takes_an_overdue_job_to_end_in_a_second():
    # h is due at 5, but a is there: until the next event its place is 6. At 6 it is 7; e fits beside a and h: backfilled.
    # At 9 a ends; all reservations are made anew; h starts.
    check(OVERRUN, wt.Conservative(), start=[0, 9, 6], kind="I R B", reserved_start=[0, 5, 6], overrun="continue")
    # A job of one second, one wide, that h leaves no room for from 7 on: at 6 it fits before h, as h cannot start before 7.
    short = jobs_of(2, (0, 1, 5, 9), (1, 2, 3), (6, 1, 1))
    check(short, wt.Conservative(), start=[0, 9, 6], kind="I R B", reserved_start=[0, 5, 6], overrun="continue")
    # Two seconds do not fit; it gets its place behind h, which is expected to run 7-10, and starts behind it, at 12.
    longer = jobs_of(2, (0, 1, 5, 9), (1, 2, 3), (6, 1, 2))
    check(longer, wt.Conservative(), start=[0, 9, 12], kind="I R R", reserved_start=[0, 5, 10], overrun="continue")


def test_overrun__easy_counts_whoever_becomes_overdue_after_the_shadow_time():
    # 6 processors. a (2 wide, says 2) and b (2 wide, says 4) run until 20. h needs 4: with a it has enough at 2, nothing is left.
    # d (1 wide, 10 long) arrives at 3: a is overdue, "ends now": 2 + 2 - 4 = 0 extra nodes. d waits.
    # e (1 wide, 10 long) arrives at 5: now b is overdue as well, and all that end at the shadow time, which is now, count:
    # 6 - 4 = 2 extra nodes. The whole queue is looked at again, though no processor was freed: d and e start.
    jobs = jobs_of(6, (0, 2, 2, 20), (0, 2, 4, 20), (1, 4, 3), (3, 1, 10), (5, 1, 10))
    check(jobs, wt.Easy(), start=[0, 0, 20, 5, 5], kind="II R B B", reserved_start=[-1, -1, 2, -1, -1], overrun="continue")


# ---------------------------------------------------------------------------------------------------------- what is planned


def planning(workload: wt.Workload, *planned: int) -> wt.Workload:
    return workload.with_planned(np.array(planned))


def test_planned__more_than_requested_leaves_the_kill_limit_to_the_user():
    # a asks for 5, would run 9, and is killed at 5; the scheduler plans with 20 and promises b 20.
    jobs = planning(jobs_of(2, (0, 2, 5, 9), (1, 2, 3)), 20, 3)
    check(jobs, wt.Easy(), start=[0, 5], kind="IR", reserved_start=[-1, 20])
    check(jobs, wt.Conservative(), start=[0, 5], kind="IR", reserved_start=[0, 20])
    assert wt.simulate(jobs, wt.Easy()).end.tolist() == [5, 8]


def test_planned__less_than_requested_makes_jobs_overdue_but_does_not_kill_them():
    # a asks for 9 and runs 9; the scheduler plans with 5 and promises b 5.
    jobs = planning(jobs_of(2, (0, 2, 9), (1, 2, 3)), 5, 3)
    check(jobs, wt.Easy(), start=[0, 9], kind="IR", reserved_start=[-1, 5])
    check(jobs, wt.Conservative(), start=[0, 9], kind="IR", reserved_start=[0, 5])


def test_planned__is_what_backfilling_plans_with():
    # One of two processors is free until 5; b needs both. c asks for 9 and runs 9, but is planned to run 4: it fits, from 1 on.
    # b waits until 10, 5 s longer than its reserved start said.
    jobs = planning(jobs_of(2, (0, 1, 5), (0, 2, 3), (1, 1, 9)), 5, 3, 4)
    check(jobs, wt.Easy(), start=[0, 10, 1], kind="I R B", reserved_start=[-1, 5, -1])


def test_planned__is_what_orders_compare():
    # Requested 2 and 6, planned 8 and 3.
    jobs = planning(jobs_of(1, (0, 1, 5), (1, 1, 2), (2, 1, 6)), 5, 8, 3)
    check(jobs, wt.NoBackfilling(order=wt.SJF), start=[0, 11, 5], kind="I R R")


# --------------------------------------------------------------------------------------------------------- coincident events


def test_coincident__an_arrival_when_a_job_ends_as_expected():
    # Both modes: c starts on arrival, since the job that is expected to end at this instant, and does, counts as gone.
    for policy in ALL:
        check(jobs_of(1, (0, 1, 5), (5, 1, 3)), policy, start=[0, 5], kind="II")


def test_coincident__an_arrival_when_a_job_ends_early():
    # a says 8 and ends at 5, when c arrives. c starts at 5 in both modes; but one pass per event, arrivals first, sees it blocked
    # behind a for a moment, and promises it 8.
    jobs = jobs_of(1, (0, 1, 8, 5), (5, 1, 3))
    check(jobs, wt.Easy(), start=[0, 5], kind="II", reserved_start=[-1, -1], coincident=["batch"])
    check(jobs, wt.Easy(), start=[0, 5], kind="II", reserved_start=[-1, 8], coincident=["sequential"])
    check(jobs, wt.Conservative(), start=[0, 5], kind="II", reserved_start=[0, 5], coincident=["batch"])
    check(jobs, wt.Conservative(), start=[0, 5], kind="II", reserved_start=[0, 8], coincident=["sequential"])


def test_coincident__two_early_ends_let_a_job_slip_in_between():
    # a and b, one wide each, say 8 and end at 5. h needs both processors, d (one wide, 3 long) waits behind it.
    #   batch        both processors are free: h 5-9, d 9-12.
    #   sequential   a ends; one free; the shadow time is 8 (b), d ends by then and starts. Then b ends, and h waits for d.
    jobs = jobs_of(2, (0, 1, 8, 5), (0, 1, 8, 5), (1, 2, 4), (2, 1, 3))
    check(jobs, wt.Easy(), start=[0, 0, 5, 9], kind="II R R", reserved_start=[-1, -1, 8, 9], coincident=["batch"])
    check(jobs, wt.Easy(), start=[0, 0, 8, 5], kind="II R B", reserved_start=[-1, -1, 8, -1], coincident=["sequential"])


def test_coincident__two_ends_as_expected_do_not():
    # As above, but a and b say 5: both count as gone when the first of the two is handled.
    jobs = jobs_of(2, (0, 1, 5), (0, 1, 5), (1, 2, 4), (2, 1, 3))
    check(jobs, wt.Easy(), start=[0, 0, 5, 9], kind="II R R", reserved_start=[-1, -1, 5, 9])


def test_coincident__arrivals_of_one_second_compete_only_in_a_batch():
    # One processor, shortest first; x (4 long) and y (1 long) arrive at 3.
    jobs = jobs_of(1, (3, 1, 4), (3, 1, 1))
    check(jobs, wt.NoBackfilling(order=wt.SJF), start=[4, 3], kind="RI", coincident=["batch"])
    check(jobs, wt.NoBackfilling(order=wt.SJF), start=[3, 7], kind="IR", coincident=["sequential"])


def test_coincident__an_overdue_job_is_not_gone_before_its_termination():
    # a (says 3) ends at 5, when c arrives; b runs on, one wide. Batch: c starts at 5 beside b at once.
    # Sequential: c arrives first and a, which is overdue, is still there; conservative promises it 6. Then a ends: c starts at 5.
    jobs = jobs_of(2, (0, 1, 3, 5), (0, 1, 9), (5, 1, 3))
    check(jobs, wt.Conservative(), start=[0, 0, 5], kind="III", reserved_start=[0, 0, 5], overrun="continue", coincident=["batch"])
    check(jobs, wt.Conservative(), start=[0, 0, 5], kind="III", reserved_start=[0, 0, 6], overrun="continue", coincident=["sequential"])


# --------------------------------------------------------------------------------------------------------- due reservations


def test_due_reservation__a_job_starts_though_nothing_arrives_or_ends():
    # 4 processors. a has 2 until 4; b (2) says 10 and ends at 3. 1 (3 wide, 5 long) is reserved at 10; 2 (2 wide, 6 long) is reserved at 4.
    #
    #   planned at 2              compressed at 3, one pass
    #   0   4     10              0  3  4    9 10
    #   aaaa222222                aaaa.......11111
    #   aaaa222222                aaaa......111111      1 comes first: 2, at 4, is in its way; it stays at 10.
    #   bbbbbbbbbb11111           bbb222222.11111       2 moves to 3. Now 1 could start at 9, but the pass is over.
    #   bbbbbbbbbb11111           bbb222222.11111       2 ends at 9 as expected, so nothing is compressed.
    #                                                   At 10 nothing happens but that the reservation of 1 is due.
    jobs = jobs_of(4, (0, 2, 4), (0, 2, 10, 3), (1, 3, 5), (2, 2, 6))
    check(jobs, wt.Conservative(), start=[0, 0, 10, 3], kind="II R B", reserved_start=[0, 0, 10, 4])
    # From scratch 1 takes the machine when a ends, and 2 is late.
    check(jobs, wt.Conservative(variant="scratch"), start=[0, 0, 4, 9], kind="II R R", reserved_start=[0, 0, 10, 4])


def test_due_reservation__and_an_arrival_at_the_same_instant():
    # As above; x (4 wide, 1 long) arrives at 10. 1 starts; x gets 15.
    jobs = jobs_of(4, (0, 2, 4), (0, 2, 10, 3), (1, 3, 5), (2, 2, 6), (10, 4, 1))
    check(jobs, wt.Conservative(), start=[0, 0, 10, 3, 15], kind="II R B R", reserved_start=[0, 0, 10, 4, 15])


# ---------------------------------------------------------------------------------------------------- compression and orders


def test_compression__takes_the_jobs_in_order_of_the_queue():
    # One processor. a says 20 and ends at 5. Reservations in order of arrival: x (6 long) 20, y (2 long) 26.
    # First come, first served: x moves to 5, y to 11.
    jobs = jobs_of(1, (0, 1, 20, 5), (1, 1, 6), (2, 1, 2))
    check(jobs, wt.Conservative(), start=[0, 5, 11], kind="IRR", reserved_start=[0, 20, 26])
    # Shortest first: y is taken first and moves to 5, before x, which moves to 7: late in the queue, but no promise is broken.
    check(jobs, wt.Conservative(order=wt.SJF), start=[0, 7, 5], kind="I R B", reserved_start=[0, 20, 26])


def test_no_jobs__give_an_empty_schedule():
    empty = wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=3)
    for policy in ALL:
        check(empty, policy, start=[], kind="", reserved_start=[])
