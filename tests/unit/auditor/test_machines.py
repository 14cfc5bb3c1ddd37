"""What the auditor finds on machines of pools, by hand: outages, jobs of no length, who is left waiting and who starts too early."""

import numpy as np
import pytest

from tests.errors import raises
from walltime import simulate
from walltime.auditor import audit
from walltime.auditor.pool_flows import broken_in_outages
from walltime.auditor.walk import MachineSchedule
from walltime.auditor.windows import SiteWindows
from walltime.errors import PolicyError
from walltime.machine import Limit, Machine, Outage, Partition, Pool, place
from walltime.node_demands import nodes_of
from walltime.policy import Conservative, Easy, Hybrid, NoBackfilling, Slurm
from walltime.simulation.run import placed_under
from walltime.workload import Workload

ONE = (Pool("a", 4, 1),)
TWO = (Pool("a", 2, 2), Pool("b", 2, 2))


def machine(pools=ONE, *outages, partitions=None, limits=()):
    every = (Partition("1", tuple(pool.name for pool in pools)),)
    return Machine(pools, partitions or every, outages, limits)


def jobs(submit, runtime, procs, requested=None, **columns):
    columns = {name: np.array(values) for name, values in columns.items()}
    return Workload.from_arrays(submit=submit, runtime=runtime, procs=procs, requested=requested, machine_procs=8, columns=columns)


def found(workload, on, start, policy=None, end=None, **options):
    """The rules that a schedule with these starts breaks, without a word on which pools the jobs had."""
    placed, placement = place(workload, on)
    start = np.array(start)
    columns = {"job_id": placed.job_id, "start": start, "end": start + placed.runtime if end is None else np.array(end)}
    counts = audit(placed, columns, policy, placement=placement, **options).counts
    return {rule: count for rule, count in counts.items() if rule != "capacity"}  # which is of the whole machine


def test_outage__nobody_starts_while_all_nodes_are_out():
    workload = jobs([0, 0], [10, 10], [1, 1])
    assert found(workload, machine(ONE, Outage("a", 5, 50)), [0, 7]) == {"pool_capacity": 1}
    assert found(workload, machine(ONE, Outage("a", 5, 50)), [0, 50]) == {}
    sides = (Partition("1", ("a",)), Partition("2", ("a", "b")))
    one_side = jobs([0, 0], [10, 10], [1, 1], partition=[1, 2])
    assert found(one_side, machine(TWO, Outage("b", 5, 50), partitions=sides), [0, 7]) == {}, "the other pool is there"
    assert found(one_side, machine(TWO, Outage("a", 5, 50), partitions=sides), [7, 0]) == {"pool_capacity": 1}


def test_outage__a_pool_is_not_given_out_twice_beside_one():
    """An outage far away switches nothing off: two jobs of 4 processors at once in a pool of 4."""
    workload = jobs([0, 0], [10, 10], [4, 4])
    assert found(workload, machine(ONE, Outage("a", 900, 910)), [0, 0]) == {"pool_capacity": 2}
    assert found(workload, machine(ONE, Outage("a", 900, 910)), [0, 10]) == {}


def test_outage__jobs_outlast_its_beginning_but_nobody_takes_what_they_hold():
    """Of 4 nodes 2 go at 5 while 3 are in use: nobody starts before these end; the fourth is not there."""
    workload = jobs([0, 0], [20, 10], [3, 1])
    on = machine(ONE, Outage("a", 5, 50, 2))
    assert found(workload, on, [0, 6]) == {"pool_capacity": 1}
    assert found(workload, on, [0, 20]) == {}
    two = machine(TWO, Outage("a", 5, 50, 1))
    assert found(jobs([0, 0], [20, 10], [6, 2]), two, [0, 6]) == {}, "the job may have 4 of b and 2 of a, of which 2 are left"
    assert found(jobs([0, 0], [20, 10], [7, 1]), two, [0, 6]) == {}, "3 of a and 4 of b, or 4 of a and 3 of b: the latter leaves one"
    assert found(jobs([0, 0], [20, 10], [8, 1]), two, [0, 6]) == {"pool_capacity": 1}
    assert found(jobs([0, 0, 0], [20, 10, 10], [4, 4, 2]), two, [0, 6, 7]) == {"pool_capacity": 1}, "6 are left in all"


def test_no_length__its_processors_must_be_free():
    workload = jobs([0, 1], [100, 0], [4, 4])
    assert found(workload, machine(), [0, 1]) == {"pool_capacity": 1}
    assert found(workload, machine(), [0, 100]) == {}, "what ends then has ended"
    workload = jobs([0, 0, 0], [0, 0, 10], [4, 4, 4])
    assert found(workload, machine(), [0, 0, 0]) == {}, "one after the other, and then the one that stays"
    workload = jobs([0, 1], [100, 0], [1, 1], user=[1, 1])
    assert found(workload, machine(limits=(Limit(("user",), jobs=1),)), [0, 1]) == {"limit_exceeded": 1}


POLICIES = (NoBackfilling(), Easy(), Hybrid(depth=2), Conservative(variant="scratch"), Conservative())


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.label)
def test_a_head_that_fits_does_not_wait(policy):
    assert found(jobs([0], [10], [4]), machine(), [0], policy) == {}
    assert found(jobs([0], [10], [4]), machine(), [1_000_000], policy) == {"head_waits": 1}
    # While 2 of 4 run up to 100 and 3 are wanted then, the last of 4 may not go before.
    workload = jobs([0, 1, 2], [100, 100, 100], [2, 3, 4])
    assert found(workload, machine(), [0, 100, 200], policy) == {}
    late = found(workload, machine(), [0, 101, 201], policy)
    assert set(late) & {"head_waits", "reserved_start_missed"}, late
    assert "out_of_turn" not in late, "the others go on as they should"


@pytest.mark.parametrize("policy", POLICIES[1:], ids=lambda policy: policy.label)
def test_nobody_waits_who_delays_nobody__and_nobody_starts_who_would(policy):
    # The second waits for the first up to 100; the third, of 50 s, delays nobody, the fourth, of 200 s, would.
    workload = jobs([0, 1, 2, 3], [100, 100, 50, 200], [2, 4, 1, 1])
    assert found(workload, machine(), [0, 100, 2, 200], policy) == {}
    assert found(workload, machine(), [0, 100, 3, 200], policy) == {"left_waiting": 1}
    broken = found(workload, machine(), [0, 203, 2, 3], policy)
    assert broken["reservation_delayed"] == 1, broken


def test_fcfs__nobody_overtakes():
    workload = jobs([0, 1, 2], [100, 100, 50], [2, 4, 1])
    assert found(workload, machine(), [0, 100, 200], NoBackfilling()) == {}
    assert found(workload, machine(), [0, 100, 2], NoBackfilling()) == {"out_of_turn": 1}


def test_a_job_of_no_length_hides_nothing():
    """In the instant in which one starts, the head is overtaken."""
    workload = jobs([0, 10, 10, 10], [20, 20, 0, 30], [2, 4, 1, 1])
    assert found(workload, machine(), [0, 20, 10, 40], Easy()) == {}
    assert "reservation_delayed" in found(workload, machine(), [0, 40, 10, 10], Easy())


def test_kept_reservations__a_due_start_is_missed():
    workload = jobs([0, 1], [100, 10], [4, 4], requested=[100, 10])
    assert found(workload, machine(), [0, 100], Conservative()) == {}
    assert found(workload, machine(), [0, 101], Conservative()) == {"reserved_start_missed": 1}


def test_pools_are_taken_in_their_order():
    schedule = simulate(jobs([0], [10], [2]), "easy", machine=machine(TWO))
    assert schedule.given[:, :, 0].tolist() == [[2, 0]]
    assert schedule.audit().ok
    other = dict(schedule.columns(), given=schedule.given[:, ::-1])
    assert audit(schedule.workload, other, schedule.policy, placement=schedule.placement).counts == {"pool_order": 1}


def test_predictions_and_their_corrections_are_followed():
    """The second job is predicted by the first run, 10 s, so it may pass the third; without predictions nobody could."""
    workload = jobs([0, 100, 101, 102], [10, 40, 10, 15], [1, 2, 4, 2], requested=[100] * 4, user=[1] * 4)
    schedule = simulate(workload, "easy:predictor=last", machine=machine())
    assert schedule.audit().ok
    columns = schedule.columns()
    columns["start"], columns["end"] = columns["start"] + [0, 0, 1, 0], columns["end"] + [0, 0, 1, 0]
    rules = {"prediction": schedule.predictions.prediction, "placement": schedule.placement}
    assert audit(schedule.workload, columns, schedule.policy, **rules).counts
    with raises(PolicyError, "unsupported_machine"):
        audit(schedule.workload, columns, schedule.policy, planned_from_file=True, **rules)


def test_what_is_not_decided_is_named():
    placed, placement = place(jobs([0], [10], [4]), machine())
    columns = {"job_id": placed.job_id, "start": np.array([0]), "end": np.array([10])}
    report = audit(placed, columns, placement=placement)
    assert report.ok
    assert report.skipped["left_waiting"] == "no policy was given"
    assert not set(report.checked) & set(report.skipped)


def on_nodes(workload, on, start, policy, limit=None, end=None):
    """The rules that a schedule on Slurm's nodes breaks, without a word on which nodes the jobs had."""
    placed, placement = placed_under(workload, on, policy)
    start = np.array(start)
    columns = {"job_id": placed.job_id, "start": start, "end": start + placed.runtime if end is None else np.array(end)}
    if limit is not None:
        columns["limit"] = np.array(limit)
    return audit(placed, columns, policy, placement=placement).counts


FIRST_COME = Slurm(priority_type="basic", bf_interval=30, bf_resolution=1)


def test_slurm__the_main_scheduler_keeps_the_order_of_priorities():
    workload = jobs([0, 1, 2], [100, 100, 500], [2, 4, 1])
    assert on_nodes(workload, machine(), [0, 100, 200], FIRST_COME) == {}
    assert on_nodes(workload, machine(), [0, 502, 2], FIRST_COME)["reservation_delayed"] == 1


def test_slurm__backfill_leaves_nobody_who_delays_nobody():
    """The third job fits before the second, which waits until 100; backfill finds that at 30 s."""
    workload = jobs([0, 1, 2], [100, 100, 40], [2, 4, 1])
    assert on_nodes(workload, machine(), [0, 100, 30], FIRST_COME) == {}
    assert on_nodes(workload, machine(), [0, 100, 60], FIRST_COME) == {"left_waiting": 1}
    assert set(on_nodes(workload, machine(), [0, 100, 29], FIRST_COME)) & {"out_of_turn", "reservation_delayed"}
    assert on_nodes(workload, machine(), [0, 101, 30], FIRST_COME) == {"head_waits": 1}


def test_limits_are_taken_from_the_schedule_only_where_they_may_be_shortened():
    workload = jobs([0], [100], [1], requested=[100])
    assert on_nodes(workload, machine(), [0], FIRST_COME, limit=[1], end=[1]) == {"end_differs": 1, "limit_shortened": 2}
    with_least = jobs([0, 1], [100, 100], [4, 4], requested=[100, 100], time_min=[-1, 60])
    assert on_nodes(with_least, machine(), [0, 100], FIRST_COME) == {}
    cut = on_nodes(with_least, machine(), [0, 100], FIRST_COME, limit=[100, 60], end=[100, 160])
    assert cut == {"limit_shortened": 1}, "nobody waits for the nodes"
    placed, placement = place(workload, machine())
    columns = {"job_id": placed.job_id, "start": np.array([0]), "end": np.array([1]), "limit": np.array([1])}
    assert "end_differs" in audit(placed, columns, Easy(), placement=placement).counts


def test_slurm_outage__a_job_on_lost_nodes_leaves_the_others_free_to_later_ones():
    """Of 4 nodes the last 2 go at 5; the second job runs on these, so the third may start on the first 2."""
    workload = jobs([0, 0, 6], [3, 40, 20], [2, 2, 2])
    on = machine(ONE, Outage("a", 5, 50, 2))
    schedule = simulate(workload, FIRST_COME, machine=on)
    assert schedule.start.tolist() == [0, 0, 6]
    assert schedule.slots[1][schedule.slots[0] == 1].tolist() == [2, 3]
    assert on_nodes(workload, on, [0, 0, 6], FIRST_COME) == {}
    assert found(workload, on, [0, 0, 6]) == {"pool_capacity": 1}, "where pools are planned, no job starts beside 2 on 2 that are left"


def outage_violations(workload, on, start):
    """The jobs, from 1, that start in an outage where single nodes are planned, and cannot be placed."""
    placed, placement = placed_under(workload, on, FIRST_COME)
    start = np.array(start)
    end = start + placed.runtime
    windows = SiteWindows(placed, placement, placed.planned, int(end.max()))
    schedule = MachineSchedule(placed, placement, start, end, windows)
    return [job + 1 for job, _ in broken_in_outages(schedule, nodes_of(on, placement, placed))]


@pytest.mark.parametrize(
    ("procs", "start", "broken"),
    [
        ([2, 2], [0, 6], []),  # 4 run on 4 nodes, and 2 of them started on the 2 that are left
        ([1, 3], [0, 6], [2]),  # 3 start on the 2 that are left
        ([2, 1, 1], [0, 6, 7], []),
        ([2, 1, 2], [0, 6, 7], [3]),  # 3 have started on the 2 that are left, and 5 run on 4 nodes
        ([4, 1], [0, 6], [2]),  # 5 run on 4 nodes
        ([1, 3], [0, 50], []),  # the nodes are there again
        ([1, 3], [0, 4], []),  # and have been there before
    ],
)
def test_slurm_outage__later_jobs_fit_into_what_is_left_and_all_into_the_whole(procs, start, broken):
    workload = jobs([0] * len(procs), [100] * len(procs), procs)
    assert outage_violations(workload, machine(ONE, Outage("a", 5, 50, 2)), start) == broken


def test_slurm_outage__partitions_are_judged_by_their_own_pools():
    """Pools a and b of 2 nodes with 2 processors; one node of a is lost at 5."""
    on = machine(TWO, Outage("a", 5, 50, 1), partitions=(Partition("1", ("a",)), Partition("2", ("a", "b"))))
    wide = jobs([0, 0, 0], [100] * 3, [2, 2, 4], partition=[1, 1, 2])
    assert outage_violations(wide, on, [0, 6, 7]) == [], "2 of a may be on its lost node; 2 of a and 4 of b are left for 2 and 4"
    tight = jobs([0, 0, 0], [100] * 3, [1, 3, 4], partition=[1, 1, 2])
    assert outage_violations(tight, on, [0, 6, 7]) == [2, 3], "3 of a start, where 2 are left"
    later = jobs([0, 0], [100] * 2, [4, 5], partition=[2, 2])
    assert outage_violations(later, on, [0, 6]) == [2], "9 run on 8 processors"


def test_slurm_outage__only_starts_since_the_last_change_must_fit_into_what_is_left():
    """One node of a is lost at 5, one of b at 10."""
    on = machine(TWO, Outage("a", 5, 50, 1), Outage("b", 10, 50, 1))
    workload = jobs([0, 0], [100] * 2, [6, 2])
    assert outage_violations(workload, on, [6, 11]) == [], "6 started while 6 were left; 2 fit into the 4 that are left now"
    workload = jobs([0, 0], [100] * 2, [3, 5])
    assert outage_violations(workload, on, [6, 11]) == [2]


@pytest.mark.parametrize("kept", [[], [1]])
@pytest.mark.parametrize("by_node", [None, True])
def test_schedule_without_a_job_that_can_be_placed__is_reported(kept, by_node):
    """A schedule of no job, and one of a job that depends on a missing one."""
    pools = Machine(ONE, (Partition("1", ("a",)),), by_node=by_node)
    placed, placement = place(jobs([0, 0], [10, 10], [4, 1], depends_on=[-1, 1]), pools)
    columns = {"job_id": placed.job_id, "start": np.array([0, 10]), "end": np.array([10, 20])}
    report = audit(placed, {name: values[kept] for name, values in columns.items()}, Easy(), placement=placement)
    assert report.counts["missing_job"] == 2 - len(kept)
