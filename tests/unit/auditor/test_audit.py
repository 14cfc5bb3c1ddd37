"""The auditor: a clean schedule passes, and every kind of planted violation is found and named with its jobs and times."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.profiles import examples
from walltime import Conservative, Easy, Hybrid, NoBackfilling, Schedule, Workload, audit, simulate
from walltime.auditor import CHECKS
from walltime.auditor.report import Violation
from walltime.policy import Kind, Relaxed, Selective
from walltime.workload import Origin

# Four processors. Job 1 runs first; job 2 waits for all of them; job 3 fits beside job 1 and ends before it; job 4 comes
# last. Under EASY and conservative: 1 at 0, 2 at 10, 3 at 2 (backfilled), 4 at 20.
JOBS = Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[10, 10, 5, 4], requested=[10, 12, 6, 8], procs=[3, 4, 1, 2], machine_procs=4)


def columns(schedule: Schedule) -> dict[str, np.ndarray]:
    w = schedule.workload
    return {
        "job_id": w.job_id.copy(),
        "submit": w.submit.copy(),
        "start": schedule.start.copy(),
        "end": schedule.end.copy(),
        "procs": w.procs.copy(),
        "requested": w.requested.copy(),
        "planned": w.planned.copy(),
        "kind": schedule.kind.astype(np.int64),
        "reserved_start": schedule.reserved_start.copy(),
    }


def shift(table: dict[str, np.ndarray], job: int, start: int) -> None:
    """Move a job, its runtime unchanged."""
    i = int(np.flatnonzero(table["job_id"] == job)[0])
    length = table["end"][i] - table["start"][i]
    table["start"][i] = start
    table["end"][i] = start + length


def keep(table: dict[str, np.ndarray], rows: list[int]) -> None:
    for name in table:
        table[name] = table[name][rows]


def put(table: dict[str, np.ndarray], name: str, job: int, value: int) -> None:
    table[name][int(np.flatnonzero(table["job_id"] == job)[0])] = value


PLANTED = {
    "a job that the log does not have": ("unknown_job", Easy(), lambda t: put(t, "job_id", 4, 99), (99,)),
    "a job in two rows": ("duplicate_job", Easy(), lambda t: keep(t, [0, 1, 2, 3, 3]), (4,)),
    "a job left out": ("missing_job", Easy(), lambda t: keep(t, [0, 1, 3]), (3,)),
    "another time of submission": ("submit_differs", Easy(), lambda t: put(t, "submit", 3, 1), (3,)),
    "other processors": ("procs_differ", Easy(), lambda t: put(t, "procs", 3, 2), (3,)),
    "another request": ("requested_differs", Easy(), lambda t: put(t, "requested", 2, 13), (2,)),
    "a start before the submission": ("start_before_submit", Easy(), lambda t: shift(t, 3, 1), (3,)),
    "an end too early": ("end_differs", Easy(), lambda t: put(t, "end", 1, 9), (1,)),
    "an end too late": ("end_differs", Easy(), lambda t: put(t, "end", 4, 25), (4,)),
    "an end before the start": ("end_differs", Easy(), lambda t: put(t, "end", 2, 9), (2,)),
    "a job that outlives its limit": ("over_limit", Easy(), lambda t: put(t, "end", 2, 23), (2,)),
    "two wide jobs at once": ("capacity", Easy(), lambda t: shift(t, 2, 5), (2, 3, 1)),
    "too many processors for one second": ("capacity", Easy(), lambda t: shift(t, 2, 9), (2, 1)),
    "a later job first under FCFS": ("out_of_turn", NoBackfilling(), lambda t: shift(t, 3, 2), (3, 2)),
    "more overtaking jobs than allowed": (
        "overtaken_too_often",
        Easy(overtakes=0),
        lambda t: (shift(t, 3, 2), shift(t, 4, 20)),
        (3, 2),
    ),
    "a head that waits for nothing under FCFS": ("head_waits", NoBackfilling(), lambda t: shift(t, 2, 11), (2,)),
    "a head that waits for nothing under EASY": ("head_waits", Easy(), lambda t: (shift(t, 2, 12), shift(t, 4, 22)), (2,)),
    "a backfilled job that delays the head": (
        "reservation_delayed",
        Easy(),
        lambda t: (shift(t, 3, 6), shift(t, 2, 11), shift(t, 4, 21)),
        (3, 2),
    ),
    "a delayed head under a hybrid": (
        "reservation_delayed",
        Hybrid(depth=2),
        lambda t: (shift(t, 3, 6), shift(t, 2, 11), shift(t, 4, 21)),
        (3, 2),
    ),
    "a head delayed by more than omega allows": (
        "reservation_delayed",
        Relaxed(omega=0.01),
        lambda t: (shift(t, 3, 6), shift(t, 2, 13), shift(t, 4, 23)),
        (3, 2),
    ),
    "a job that could start and waits": ("left_waiting", Easy(), lambda t: (shift(t, 3, 20), shift(t, 4, 20)), (3,)),
    "a head that waits for nothing once it is selected": (
        "head_waits",
        Selective(threshold=1.0),
        lambda t: (shift(t, 2, 12), shift(t, 4, 22)),
        (2,),
    ),
    "a broken promise": ("reserved_start_missed", Conservative(), lambda t: (shift(t, 2, 11), shift(t, 4, 21)), (2,)),
    "another first reservation": ("reserved_start_differs", Conservative(), lambda t: put(t, "reserved_start", 4, 2), (4,)),
    "no first reservation": ("reserved_start_differs", Conservative(), lambda t: put(t, "reserved_start", 2, -1), (2,)),
    "other planned_runtimes": ("planned_differs", Easy(), lambda t: put(t, "planned", 2, 99), (2,)),
    "immediate, but it waited": ("kind_wrong", Easy(), lambda t: put(t, "kind", 2, Kind.IMMEDIATE), (2,)),
    "reserved, but it overtook": ("kind_wrong", Easy(), lambda t: put(t, "kind", 3, Kind.RESERVED), (3,)),
    "backfilled, but nobody waited": ("kind_wrong", Conservative(), lambda t: put(t, "kind", 1, Kind.BACKFILLED), (1,)),
    "a kind that there is not": ("kind_wrong", Easy(), lambda t: put(t, "kind", 1, 7), (1,)),
}


@pytest.mark.parametrize("what", PLANTED)
def test_audit__finds_and_names_what_was_planted(what):
    rule, policy, plant, jobs = PLANTED[what]
    table = columns(simulate(JOBS, policy))
    assert audit(JOBS, table, policy).ok
    plant(table)
    report = audit(JOBS, table, policy)
    assert not report.ok
    found = [v for v in report.violations if v.rule == rule]
    assert found, report.counts
    assert found[0].jobs == jobs
    assert all(str(job) in found[0].message for job in jobs)


def test_planted_violations__cover_every_rule_of_the_auditor():
    assert {rule for rule, *_ in PLANTED.values()} == set(CHECKS)
    assert len(PLANTED) >= 15


def test_audit__names_the_earliest_violation_first(golden):
    table = columns(simulate(JOBS, Easy()))
    shift(table, 2, 5)  # two wide jobs at once from 5 on
    put(table, "end", 4, 25)  # reported at the start of job 4, later
    report = audit(JOBS, table, Easy())
    assert report.first.rule == "capacity"
    assert report.first.time == 5
    golden("audit", str(report))
    assert report.as_dict()["violations"]["end_differs"] == 1


def test_audit__needs_no_more_than_ids_starts_and_ends(golden):
    schedule = simulate(JOBS, Easy())
    report = audit(JOBS, {"job_id": JOBS.job_id, "start": schedule.start, "end": schedule.end}, Easy())
    assert report.ok
    golden("audit", report.skipped["procs_differ"], report.skipped["kind_wrong"])


def test_audit__takes_rows_in_any_order():
    table = columns(simulate(JOBS, Easy()))
    keep(table, [3, 1, 0, 2])
    assert audit(JOBS, table, Easy()).ok


def test_audit__without_a_policy_checks_what_every_schedule_must_keep():
    table = columns(simulate(JOBS, NoBackfilling()))
    shift(table, 2, 100)
    assert audit(JOBS, table).ok
    assert audit(JOBS, table).skipped["head_waits"] == "no policy was given"
    assert "7 not checked: head_waits, " in str(audit(JOBS, table))


@pytest.mark.parametrize("order", ["sjf", "wfp", "f1", "unicef"])
@pytest.mark.slow
def test_audit__checks_other_orders_as_well(order):
    jobs = Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[10, 50, 5, 40], procs=[4, 3, 3, 2], machine_procs=4)
    schedule = simulate(jobs, f"easy:order={order}")
    table = columns(schedule)
    assert schedule.audit().ok
    one, other = sorted(np.flatnonzero(table["start"] == 10), key=lambda i: table["procs"][i])[-1], 3
    shift(table, int(table["job_id"][one]), 500)
    assert {"head_waits", "left_waiting"} & set(audit(jobs, table, schedule.policy).counts), other


def test_audit__of_a_policy_of_a_users_own_says_that_its_decisions_are_not_checked(golden):
    class Whoever(wt.PlainPolicy):
        def choose(self, now, waiting, running, free):
            return [job for job in waiting if job.procs <= free][:1]

    report = simulate(JOBS, Whoever()).audit()
    assert report.ok
    golden("audit", report.skipped["out_of_turn"])


def test_audit__checks_decisions_though_estimates_are_no_upper_bounds():
    jobs = JOBS.with_planned([5, 5, 5, 4])
    for policy in (Easy(), Conservative()):
        schedule = simulate(jobs, policy)
        assert schedule.audit().ok
        assert not schedule.audit().skipped
        table = columns(schedule)
        shift(table, 4, 100)
        assert not audit(jobs, table, policy).ok


DOUBLED = Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 9], procs=[3, 4, 1], machine_procs=4)
"""Planning with twice the requests, job 3 may overtake (2 + 18 <= 20) and the head waits until 11; its request said 10."""


def test_audit__takes_planned_runtimes_from_the_options_not_from_the_file():
    doubled = DOUBLED.with_planned(DOUBLED.requested * 2)
    schedule = simulate(doubled, Easy())
    assert schedule.start.tolist() == [0, 11, 2]
    table = columns(schedule)
    assert audit(doubled, table, Easy()).ok
    assert audit(DOUBLED, table, Easy()).counts == {"planned_differs": 3, "reservation_delayed": 1}
    del table["planned"]
    assert audit(DOUBLED, table, Easy()).counts == {"reservation_delayed": 1}


def test_audit__takes_the_files_planned_runtimes_if_asked_to_and_says_so_and_what_they_should_be(golden):
    table = columns(simulate(DOUBLED.with_planned(DOUBLED.requested * 2), Easy()))
    report = audit(DOUBLED, table, Easy(), planned_from_file=True)
    assert report.counts == {"planned_differs": 3}
    table["planned"] = DOUBLED.requested
    report = audit(DOUBLED, columns(simulate(DOUBLED, Easy())), Easy(), planned_from_file=True)
    assert report.ok
    golden("audit", str(report))


def test_audit__holds_the_files_planned_runtimes_against_what_the_predictor_says():
    jobs = Workload.from_arrays(
        submit=[0, 1, 2, 30], runtime=[4, 10, 9, 5], requested=[20] * 4, procs=[3, 4, 1, 2], machine_procs=4, columns={"user": [1] * 4}
    )
    schedule = simulate(jobs, Easy(), prediction="last")
    table = columns(schedule) | {"planned": schedule.predictions.predicted.copy()}
    rules = {"prediction": "last", "planned_from_file": True}
    assert audit(jobs, table, Easy(), **rules).ok
    table["planned"][3] += 1
    assert audit(jobs, table, Easy(), **rules).counts == {"planned_differs": 1}


@pytest.mark.parametrize("overrun", ["kill", "extend", "continue"])
def test_audit__knows_how_long_jobs_run_under_each_overrun_rule(overrun):
    jobs = Workload.from_arrays(submit=[0, 0], runtime=[10, 10], requested=[4, 20], procs=[2, 2], machine_procs=2)
    schedule = simulate(jobs, Easy(), overrun=overrun)
    assert schedule.audit().ok
    other = "extend" if overrun == "kill" else "kill"
    assert not audit(jobs, columns(schedule), Easy(), overrun=other).ok


def test_audit__lets_jobs_of_no_length_share_an_instant():
    jobs = Workload.from_arrays(submit=[0, 0, 0], runtime=[0, 0, 5], procs=[2, 2, 2], machine_procs=2)
    schedule = simulate(jobs, NoBackfilling())
    assert schedule.start.tolist() == [0, 0, 0]
    assert schedule.audit().ok


def test_audit__of_no_jobs_finds_nothing():
    jobs = Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=2)
    assert simulate(jobs, Easy()).audit().ok


@pytest.mark.slow
@examples(150)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9), st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=25),
    st.sampled_from([NoBackfilling(), Easy(), Hybrid(depth=0), Hybrid(depth=2), Conservative(), Conservative(variant="scratch")]),
    st.sampled_from(["batch", "sequential"]),
    st.sampled_from(["kill", "extend", "continue"]),
)
def test_audit__passes_every_schedule_of_the_engine(rows, policy, coincident, overrun):
    submit, runtime, slack, procs = zip(*rows, strict=True)
    requested = [max(1, r + s - 2) for r, s in zip(runtime, slack, strict=True)]
    jobs = Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=4)
    report = simulate(jobs, policy, coincident=coincident, overrun=overrun).audit()
    assert report.ok, str(report)


def test_violation__is_told_with_dates_and_the_time_of_the_violation_as_then():
    origin = Origin(unix_start_time=0)
    one = Violation("left_waiting", "job 3 fits at 120, runs since 60, but starts only at 7200", (3,), 120)
    assert one.told(origin) == ("1970-01-01 00:02: job 3 fits then, runs since 1970-01-01 00:01, but starts only at 1970-01-01 02:00")
