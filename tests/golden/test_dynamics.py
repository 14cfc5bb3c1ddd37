"""Worked examples of wild and mild backfills, delays (tsafrir06, section V) and SJFness (tsafrir06, section VI).

Jobs are numbered from 1. Time runs to the right, one column a unit; a row is a processor; `.` is idle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction

import numpy as np
import pytest

import walltime as wt
from tests.golden.test_papers_figures import SCALE, fig6
from tests.golden.worked import jobs_of
from tests.strategies import COINCIDENT

EMPTY: Mapping[int, int] = {}
BOTH = pytest.mark.parametrize("coincident", COINCIDENT)


def check(
    workload: wt.Workload,
    policy: wt.policy.Policy,
    *,
    start: Sequence[int],
    wild: Set[int] = frozenset(),
    suffered: Mapping[int, int] = EMPTY,
    delay: Mapping[int, int] = EMPTY,
    shortest: Set[int] | None = None,
    alone: Set[int] | None = None,
    sequence: Sequence[int] | None = None,
    coincident: str = "batch",
    overrun: str = "kill",
) -> None:
    """Both engines must give these starts; the jobs for which each of the values is true, or not 0, are given by number."""

    def numbers(flags: np.ndarray) -> set[int]:
        return set((np.flatnonzero(flags) + 1).tolist())

    def not_zero(values: np.ndarray) -> dict[int, int]:
        return {number: int(values[number - 1]) for number in numbers(values)}

    for engine in ("kernel", "reference"):
        schedule = wt.simulate(workload, policy, coincident=coincident, overrun=overrun, engine=engine, dynamics=True)
        seen, where = schedule.dynamics, f"{coincident}, {engine}"
        assert schedule.start.tolist() == list(start), where
        assert numbers(seen.wild) == wild, where
        assert not_zero(seen.suffered) == suffered, where
        assert not_zero(seen.delay) == delay, where
        if shortest is not None:
            assert numbers(seen.shortest) == shortest, where
        if alone is not None:
            assert numbers(seen.alone) == alone, where
        if sequence is not None:
            assert (seen.sequence + 1).tolist() == list(sequence), where


# ------------------------------------------------------------------------------------------------------------- tsafrir06, Fig. 1
#
# 4 processors, 4 jobs, all there from 0 on. 2 ends at 2; 3 needs the whole machine.
#
#   exact; 4 is 2 long      exact; 4 is 3 long      estimates doubled; 4 is 3 long
#
#   0 2 4  7                0 2 4  7                0 2 45  8
#   1111333                 1111333                 1111.333    1 seems to need 8, so 3 is reserved at 8, and the hole at 2
#   1111333                 1111333                 1111.333    looks 6 long: 4, which says 6, fits. It ends at 5, and
#   2244333                 22..333444              22444333    the real shadow of 3 moves from 4 to 5.
#   2244333                 22..333444              22444333


def fig1(length: int, factor: int = 1) -> wt.Workload:
    return jobs_of(4, *((0, procs, factor * runtime, runtime) for procs, runtime in ((2, 4), (2, 2), (4, 3), (2, length))))


@BOTH
def test_p3_fig1__backfill_into_the_real_hole_is_mild(coincident):
    # As a batch all four wait when 1 is chosen; then 2, as short as 4, is a shortest; at 2, 4 is, and at 4 only 3 is left.
    # One by one, 1 and 2 start before anybody else is there.
    shortest, alone = ({2, 3, 4}, {3}) if coincident == "batch" else ({1, 2, 3, 4}, {1, 2, 3})
    check(fig1(2), wt.Easy(), start=[0, 0, 4, 2], shortest=shortest, alone=alone, sequence=[1, 2, 4, 3], coincident=coincident)


@BOTH
def test_p3_fig1__nobody_is_backfilled_into_a_hole_too_short(coincident):
    # At 4, 3 is as long as 4: a tie.
    shortest, alone = ({2, 3, 4}, {4}) if coincident == "batch" else ({1, 2, 3, 4}, {1, 2, 4})
    check(fig1(3), wt.Easy(), start=[0, 0, 4, 7], shortest=shortest, alone=alone, sequence=[1, 2, 3, 4], coincident=coincident)


@BOTH
def test_p3_fig1__doubled_estimates_let_a_job_in_that_steals_time(coincident):
    check(fig1(3, factor=2), wt.Easy(), start=[0, 0, 5, 2], wild={4}, suffered={3: 1}, delay={3: 1}, coincident=coincident)


@BOTH
def test_p3_fig1__doubled_estimates_and_a_job_that_fits_all_the_same(coincident):
    check(fig1(2, factor=2), wt.Easy(), start=[0, 0, 4, 2], coincident=coincident)


# ------------------------------------------------------------------------------------------------------------- tsafrir06, Fig. 6
#
# Drawn in test_papers_figures.py: 2 processors; runtimes 6, 4, 3, 4, 3, 2; 3 needs both processors. Times in units of the paper.


@BOTH
def test_p3_fig6__all_backfills_are_wild_with_doubled_estimates(coincident):
    # 3 is reserved at T12, its real shadow is T6. At T4, 4 moves it to T8; at T6, 5 to T9; at T8, 6 to T10, where 3 starts.
    # Of those that wait, 4 (4 units) is not the shortest at T4, nor 5 (3) at T6, as 6 (2) is there; 6 is, at T8.
    shortest, alone = ({6, 3}, {3}) if coincident == "batch" else ({1, 2, 6, 3}, {1, 2, 3})
    check(
        fig6(Fraction(2)),
        wt.Easy(),
        start=[t * SCALE for t in (0, 0, 10, 4, 6, 8)],
        wild={4, 5, 6},
        suffered={3: 3},
        delay={3: (10 - 6) * SCALE},
        shortest=shortest,
        alone=alone,
        sequence=[1, 2, 4, 5, 6, 3],
        coincident=coincident,
    )


@BOTH
@pytest.mark.parametrize(("jobs", "real_shadow"), [(4, 8), (5, 9), (6, 10)])
def test_p3_fig6__each_candidate_moves_the_real_shadow(jobs, real_shadow, coincident):
    start = [0, 0, real_shadow, 4, 6, 8][:jobs]
    check(
        fig6(Fraction(2), jobs),
        wt.Easy(),
        start=[t * SCALE for t in start],
        wild=set(range(4, jobs + 1)),
        suffered={3: jobs - 3},
        delay={3: (real_shadow - 6) * SCALE},
        coincident=coincident,
    )


@BOTH
def test_p3_fig6__a_factor_of_four_thirds_steals_one_unit(coincident):
    # At T4, 5 (estimate 4, runtime 3) is backfilled and moves the real shadow from T6 to T7. 6 (2 units) waits for its turn
    # behind 4, and is the shortest only when nobody else is left.
    shortest, alone = ({6}, {6}) if coincident == "batch" else ({1, 2, 6}, {1, 2, 6})
    check(
        fig6(Fraction(4, 3)),
        wt.Easy(),
        start=[t * SCALE for t in (0, 0, 7, 10, 4, 10)],
        wild={5},
        suffered={3: 1},
        delay={3: SCALE},
        shortest=shortest,
        alone=alone,
        sequence=[1, 2, 5, 3, 4, 6],
        coincident=coincident,
    )


@BOTH
def test_p3_fig6__perfect_estimates_steal_nothing(coincident):
    # At T4, 6 is backfilled and ends at T6, when 3 starts; 3 and 5 are equally long, 3 units. At T9 4 starts, then 5.
    shortest, alone = ({6, 3, 5}, {5}) if coincident == "batch" else ({1, 2, 6, 3, 5}, {1, 2, 5})
    check(
        fig6(Fraction(1)),
        wt.Easy(),
        start=[t * SCALE for t in (0, 0, 6, 9, 9, 4)],
        shortest=shortest,
        alone=alone,
        sequence=[1, 2, 6, 3, 4, 5],
        coincident=coincident,
    )


# ------------------------------------------------------------------------------------------------- wild and mild backfills
#
# 4 processors. 1 says 10 and ends at 6; 2 needs the whole machine and is reserved at 10. Lengths as estimated > as they are.
#
#   0    56 8 9    14      real shadow of 2
#   111111666222222        2   3 comes (8 > 3). It ends by 10, and really at 5, before 1:       6 stays 6   mild
#   111111666.22222        3   4 comes (7 > 5), ends by 10, really at 8:                        6 -> 8      wild
#   ..33355..22222         5   5 comes (5 > 2) in the place of 3, ends at 7:                    8 stays 8   mild
#   ...44444.22222         6   6 comes (4 > 3) in the place of 1, ends at 9:                    8 -> 9      wild
#
# 5 ends after the initial real shadow, 6, but when it comes 4 has spoilt that already. 2 starts at 9, 3 later than it could.

MIXED = jobs_of(4, (0, 2, 10, 6), (1, 4, 5), (2, 1, 8, 3), (3, 1, 7, 5), (5, 1, 5, 2), (6, 2, 4, 3))


@BOTH
def test_easy__two_wild_and_two_mild_backfills(coincident):
    # SJFness: 4 is as long as 2, the only other job that waits then.
    check(
        MIXED,
        wt.Easy(),
        start=[0, 9, 2, 3, 5, 6],
        wild={4, 6},
        suffered={2: 2},
        delay={2: 9 - 6},
        shortest={1, 2, 3, 4, 5, 6},
        alone={1, 2},
        sequence=[1, 3, 4, 5, 6, 2],
        coincident=coincident,
    )


@BOTH
@pytest.mark.parametrize(
    "policy", [wt.NoBackfilling(), wt.Conservative(), wt.Conservative(variant="scratch"), wt.Hybrid(depth=0), wt.Hybrid(depth=2)]
)
def test_without_the_one_reservation_of_a_head__no_backfill_is_wild(policy, coincident):
    start = wt.simulate(MIXED, policy, coincident=coincident).start
    check(MIXED, policy, start=start.tolist(), coincident=coincident)


# Beside the head: 4 processors, 1 has 2 until 10; 2 has one, says 20 and ends at 5; one is free. 3 needs two and is reserved
# at 10, when 1 leaves one over (extra). So 4, one processor for 50, may start. But 3 could have started at 5, with the
# processor of 2 and the free one that 4 now has.


@BOTH
def test_easy__a_backfill_on_extra_nodes_can_be_wild(coincident):
    jobs = jobs_of(4, (0, 2, 10), (0, 1, 20, 5), (1, 2, 3), (2, 1, 50))
    check(jobs, wt.Easy(), start=[0, 0, 10, 2], wild={4}, suffered={3: 1}, delay={3: 10 - 5}, coincident=coincident)


@BOTH
def test_easy__a_backfill_on_extra_nodes_that_nobody_misses_is_mild(coincident):
    # 1 really ends at 3, before 2, and leaves enough for 3 and 4.
    jobs = jobs_of(4, (0, 2, 10, 3), (0, 1, 20, 5), (1, 2, 3), (2, 1, 50))
    check(jobs, wt.Easy(), start=[0, 0, 3, 2], coincident=coincident)


# 1 needs no time at all, but no estimate is below 1 s: the exact estimates of the archive's jobs of 0 s are not
# exact. 2 processors; 2 needs both, and is reserved at 1 because of 1; really it could start at 0. 3, 1 s long, steals that.


def test_easy__a_runtime_of_zero_makes_a_wild_backfill_even_of_an_exact_estimate():
    jobs = jobs_of(2, (0, 1, 1, 0), (0, 2, 5), (0, 1, 1))
    check(jobs, wt.Easy(), start=[0, 1, 0], wild={3}, suffered={2: 1}, delay={2: 1}, shortest={1, 2, 3}, alone={2})


# 2 processors, shortest first by the estimates; 1 says 20 and ends at 4. From 1 on 2 (6 long, both processors) is the head. At
# 2, 3 (8 > 5) is backfilled and moves the real shadow of 2 from 4 to 7. At 3, 4 (3 long, both processors) comes, is shorter,
# and so the head instead of 2: it starts at 7, and 2 at 10. The delay of 2 lasts until then.


@BOTH
def test_easy__a_delay_lasts_until_the_start_though_another_job_becomes_the_head(coincident):
    jobs = jobs_of(2, (0, 1, 20, 4), (1, 2, 6), (2, 1, 8, 5), (3, 2, 3))
    check(jobs, wt.Easy(order=wt.SJF), start=[0, 10, 2, 7], wild={3}, suffered={2: 1}, delay={2: 10 - 4}, coincident=coincident)


# ---------------------------------------------------------------------------------------------------------------- SJFness
#
# 2 processors, first come, first served.
#
#   0 1  5   9  12 14
#   111112222444 55        1   starts at once; nobody else is there: trivial, and shortest by definition
#   111113333444 55        2   at 5, with 3 behind it, which is as long: a tie, shortest
#                          3   at 5 too; 2 has been chosen, so nobody else waits
#                          4   at 9, while 5 waits and is shorter: not shortest
#                          5   at 12, nobody else waits


@BOTH
def test_fcfs__shortest_with_a_tie_and_trivial_starts(coincident):
    jobs = jobs_of(2, (0, 2, 5), (1, 1, 4), (1, 1, 4), (6, 2, 3), (7, 2, 2))
    check(
        jobs,
        wt.NoBackfilling(),
        start=[0, 5, 5, 9, 12],
        shortest={1, 2, 3, 5},
        alone={1, 3, 5},
        sequence=[1, 2, 3, 4, 5],
        coincident=coincident,
    )


@BOTH
@pytest.mark.parametrize(("overrun", "third", "shortest"), [("kill", 7, {1, 2, 3}), ("extend", 15, {1, 3}), ("continue", 15, {1, 3})])
def test_fcfs__the_shortest_is_so_by_what_it_really_runs(overrun, third, shortest, coincident):
    # 2 says 2 and would run for 10, 3 for 4. Killed at its limit, 2 is the shorter one.
    jobs = jobs_of(1, (0, 1, 5), (1, 1, 2, 10), (1, 1, 4))
    check(jobs, wt.NoBackfilling(), start=[0, 5, third], shortest=shortest, alone={1, 3}, coincident=coincident, overrun=overrun)


@BOTH
def test_shortest__is_by_the_real_runtime_whatever_the_estimate(coincident):
    # 2 says 9 and runs 1; 3 says 2 and runs 2. By estimate 3 goes first, and is not the shortest.
    jobs = jobs_of(1, (0, 1, 5), (1, 1, 9, 1), (1, 1, 2))
    check(jobs, wt.NoBackfilling(order=wt.SJF), start=[0, 7, 5], shortest={1, 2}, alone={1, 2}, sequence=[1, 3, 2], coincident=coincident)
