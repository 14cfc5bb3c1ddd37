"""The same dozen jobs under six policies, each schedule made by hand.

6 processors. Four jobs end before their estimate: 3, 5, 9 and 12.

    job          1  2  3  4  5  6  7  8  9 10 11 12
    submit       0  2  3  4  5  6  7  8 10 11 13 15
    processors   1  5  2  2  3  2  4  1  2  2  2  1
    estimate     4  8 10 10  6 10  5  8  3  8  5  4
    runtime      4  8  7 10  2 10  5  8  2  8  5  1

In all schedules 1 and 2 start on arrival and hold the machine: 1 one processor until 4, 2 five until 10; 3 and 4 start at
10. `[16,26)` says when a job occupies its processors in a plan, from the estimates.

All six agree in both coincidence modes but where it is said. Coincident events: 1 ends at 4, when 4 arrives, and 2 ends
at 10, when 9 arrives; both end when expected, and so count as gone in `sequential` mode as well.
"""

from __future__ import annotations

import walltime as wt
from tests.golden.worked import check, jobs_of

JOBS = jobs_of(
    6,
    (0, 1, 4),
    (2, 5, 8),
    (3, 2, 10, 7),
    (4, 2, 10),
    (5, 3, 6, 2),
    (6, 2, 10),
    (7, 4, 5),
    (8, 1, 8),
    (10, 2, 3, 2),
    (11, 2, 8),
    (13, 2, 5),
    (15, 1, 4, 1),
)


def test_dozen_jobs__fcfs():
    # Nobody overtakes, so the start times never decrease.
    #  10  2 ends, 6 free: 3 and 4 start. 2 free: 5 (3 processors) blocks everybody behind it.
    #  17  3 ends, 4 free: 5 starts. 1 free: 6 is blocked.
    #  19  5 ends, 4 free: 6 starts. 2 free: 7 (4) is blocked.
    #  20  4 ends, 4 free: 7 starts. 0 free.
    #  25  7 ends, 4 free: 8 and 9 start. 1 free: 10 is blocked.
    #  27  9 ends, 3 free: 10 starts.
    #  29  6 ends, 3 free: 11 and 12 start.
    check(
        JOBS,
        wt.NoBackfilling(),
        start=[0, 2, 10, 10, 17, 19, 20, 25, 25, 27, 29, 29],
        kind="II RRRRRRRRRR",
        reserved_start=[-1] * 12,
    )


def test_dozen_jobs__easy():
    #   3  3 is the head: 1 gives one processor at 4, 2 five at 10. Reservation 10, extra nodes 6 - 2 = 4.
    #   4  1 ends, 1 free. 4, 5, 6, 7 are too wide for it.
    #   8  8 fits the free processor; it ends at 16, after the shadow time, but takes one of the 4 extra nodes. BACKFILLED
    #  10  2 ends, 5 free: 3 and 4 start, expected until 20. 1 free. The head is 5: 8 gives 1 at 16, 3 and 4 four at 20.
    #      Reservation 20, extra nodes 6 - 3 = 3 (3 alone would do, but 4 ends at the same time).
    #  15  12 fits and is expected to end at 19, before 20. BACKFILLED, ends at 16.
    #  16  8 and 12 end, 2 free. 6 is expected until 26, after the shadow time, but takes two of the 3 extra nodes. BACKFILLED
    #  17  3 ends early, 2 free. 5 still waits for 4, until 20: 2 + 2 - 3 = 1 extra node. 7 is too wide; 9 is expected to end
    #      at 20, just in time. BACKFILLED, ends at 19.
    #  19  2 free. 10 and 11 would end after 20 and need more than the extra node.
    #  20  4 ends, 4 free: 5 starts, expected until 26. 1 free. The head is 7: 5 and 6 end at 26. Reservation 26.
    #  22  5 ends early, 4 free: 7 starts, expected until 27. The head is 10: 6 ends at 26. Reservation 26.
    #  26  6 ends: 10 starts. The head is 11: 7 ends at 27. Reservation 27.
    check(
        JOBS,
        wt.Easy(),
        start=[0, 2, 10, 10, 20, 16, 22, 8, 17, 26, 27, 15],
        kind="II RR R B R B B R R B",
        reserved_start=[-1, -1, 10, -1, 20, -1, 26, -1, -1, 26, 27, -1],
    )


def test_dozen_jobs__easy_with_shortest_first_backfilling():
    # As EASY until 16, since only one processor is free before.
    #  16  8 and 12 end, 2 free, shadow time 20. Candidates by estimate: 9 (3), 7 (5), 11 (5), 10 (8), 6 (10). 9 is expected
    #      to end at 19. BACKFILLED, ends at 18.
    #  17  3 ends early, 2 free. 5 needs one more, which 9 gives at 19; 1 extra node. 7 is too wide; 11, 10 and 6 end later
    #      and need two.
    #  18  9 ends early, 4 free: 5 starts, two seconds before its reservation, expected until 24. 1 free. The head is 6: 4 ends
    #      at 20. Reservation 20.
    #  20  4 ends when expected and 5 early, 6 free: 6 and 7 start; 7 never was a blocked head. The head is 10: 7 ends at 25.
    #  25  7 ends, 4 free: 10 and 11 start.
    policy = wt.Easy(backfill_order=wt.SJF)
    start = [0, 2, 10, 10, 18, 20, 20, 8, 16, 25, 25, 15]
    kind = "II RR R R R B B R R B"
    reserved_start = [-1, -1, 10, -1, 20, 20, -1, -1, -1, 25, -1, -1]
    check(JOBS, policy, start=start, kind=kind, reserved_start=reserved_start, coincident=["batch"])
    # One pass per event: at 20 4 counts as gone and 5 not yet. 6 starts, and 7 is the head for a moment, waiting for 5, which
    # is expected to end at 24. Then 5 ends and 7 starts, at 20 all the same.
    reserved_start[6] = 24
    check(JOBS, policy, start=start, kind=kind, reserved_start=reserved_start, coincident=["sequential"])


def test_dozen_jobs__hybrid_with_three_reservations():
    #   5  Reservations: 3 [10,20), 4 [10,20), 5 [20,26) as 2 processors are left until 20. These are three; 6, 7 have none.
    #   8  8 fits until 16: one processor free until 10, two from then on. BACKFILLED, without a reservation.
    #  10  3 and 4 start, 1 free. 5 [20,26). 6: two processors are free from 16 on (8 ends), three from 20 (beside 5): [16,26).
    #      7: four processors from 26 on: [26,31).
    #  15  12 would run until 19, but from 16 on 3, 4 and 6 leave nothing. It waits, unlike under EASY.
    #  16  8 ends, 2 free: 6 starts beside the waiting 5. BACKFILLED. 5 [20,26), 7 [26,31); 9 is the third now: beside 6 no
    #      two processors are free until 20, beside 5 and 6 only one until 26: [26,29).
    #  17  3 ends early, 2 free. 5 [20,26), 7 [26,31); 9 fits in [17,20). BACKFILLED, ends at 19, nine seconds before its first
    #      reservation. 10 is the third: [26,34).
    #  19  9 ends early, 2 free. 5, 7, 10 as before. 11 (two processors until 24) would delay 5, which leaves one from 20 on.
    #      12 (one until 23) does not. BACKFILLED, ends at 20.
    #  20  4 ends: 5 starts, expected until 26. 7 [26,31), 10 [26,34), 11: four processors are free when 7 ends: [31,36).
    #  22  5 ends early: 7 starts, expected until 27. 10 [26,34), 11 [27,32).
    #  26  6 ends: 10 starts.      27  7 ends: 11 starts.
    check(
        JOBS,
        wt.Hybrid(depth=3),
        start=[0, 2, 10, 10, 20, 16, 22, 8, 17, 26, 27, 19],
        kind="II RR R B R B B R R B",
        reserved_start=[0, 2, 10, 10, 20, 16, 26, -1, 26, 26, 31, -1],
    )


# Both forms of conservative backfilling make the same reservations until 17, when the first job ends early:
#   3, 4   3 [10,20), 4 [10,20)
#   5      5 [20,26): two processors are left beside 3 and 4.
#   6      6 [10,20): just those two.
#   7      7 [26,31): four processors, beside 5 there are three.
#   8      8 [20,28): one is free until 10, then none until 20. (EASY starts it at once.)
#  10      2 ends: 3, 4 and 6 start; 6 overtakes 5. BACKFILLED. 9 [20,23): beside 5 and 8.
#  11      10 [28,36): two are free in [23,26), but one in [26,28), beside 7 and 8.
#  13      11 [31,36): 7, then also 10, leave nothing before.
#  15      12 [23,27): one is free there, beside 5, 7 and 8.
PROMISED = [0, 2, 10, 10, 20, 10, 26, 20, 20, 28, 31, 23]


def test_dozen_jobs__conservative():
    #  17  3 ends early: two processors are free in [17,20), none in [20,23), one in [23,26), none in [26,27), one in [27,28),
    #      none in [28,31). One pass: 5 (three) stays. 7 stays. 8 moves to [17,25): its own processor is free from 20 on.
    #      BACKFILLED. 9 stays, as one is left beside 8. 10 moves to [27,35): beside 7, where 8 has left. 11 stays. 12 stays,
    #      nothing is free in [20,23).
    #  20  4 and 6 end: 5 starts; 9 starts, overtaking 7. BACKFILLED.
    #  22  5 and 9 end early; 8 runs until 25. 7 moves to [22,27) and starts. 10 stays: 12, at [23,27), is in its way. 11 moves
    #      to [27,32), beside 10. 12 moves to [22,26) and starts, overtaking 10 and 11. BACKFILLED, ends at 23.
    #  23  12 ends early: 10 moves to [25,33), when 8 ends. 11 stays.
    #  25  8 ends: 10 starts.      27  7 ends: 11 starts.
    # One pass per event: at 22 5 ends first; 7 moves to 23, 11 to 28 and 12 to 22, so it starts. Then 9 ends; 7 moves to 22 and
    # starts, 10 to 26 and 11 to 27. At 23 10 moves to 25, as in the other mode.
    check(
        JOBS,
        wt.Conservative(),
        start=[0, 2, 10, 10, 20, 10, 22, 17, 20, 25, 27, 22],
        kind="II RR R B R B B R R B",
        reserved_start=PROMISED,
    )


def test_dozen_jobs__conservative_from_scratch():
    #  17  3 ends early; anew: 5 [20,26), 7 [26,31), 8 [17,25) starts. BACKFILLED. 9 [20,23), 10 [23,31) - where 12 had been
    #      reserved_start a place -, 11 [31,36), 12 [31,35).
    #  20  4 and 6 end: 5 starts; 9 starts, overtaking 7. BACKFILLED.
    #  22  5 and 9 end early: 7 [22,27) starts. 10 [25,33), 11 [27,32). 12 (until 26) does not fit beside 7 and 10: [27,31).
    #  25  8 ends: 10 starts.
    #  27  7 ends: 11 starts, and then 12, four seconds after its reserved start.
    check(
        JOBS,
        wt.Conservative(variant="scratch"),
        start=[0, 2, 10, 10, 20, 10, 22, 17, 20, 25, 27, 27],
        kind="II RR R B R B B R R R",
        reserved_start=PROMISED,
    )
