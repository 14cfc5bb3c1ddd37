"""Cleaning: what is removed is counted once and nothing is renumbered; planted flurries are found, and only these."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.errors import raises
from tests.strategies import examples
from tests.traces import trace_path
from walltime.errors import PolicyError, WorkloadError
from walltime.workload.cleaning import FACTS, PUBLISHED, clean, find_flurries, published_filters
from walltime.workload.filters import select

WEEK = 7 * 86_400


def log(users_by_week: dict[tuple[int, int], int], first: int = 500) -> wt.Workload:
    """So many jobs of a user in a week, evenly spread over it; weeks count from the first job."""
    submit, user = [], []
    for (week, who), jobs in users_by_week.items():
        submit += [first + week * WEEK + k * WEEK // jobs for k in range(jobs)]
        user += [who] * jobs
    order = np.argsort(submit, kind="stable")
    return wt.Workload.from_arrays(
        submit=np.array(submit)[order],
        runtime=np.full(len(submit), 10),
        procs=np.ones(len(submit), np.int64),
        machine_procs=1,
        columns={"user": np.array(user)[order]},
    )


def quiet(weeks: int = 10, users: int = 4, jobs: int = 5) -> dict[tuple[int, int], int]:
    """Weeks in which a few users submit a few jobs each."""
    return {(week, who): jobs for week in range(weeks) for who in range(1, users + 1)}


# ------------------------------------------------------------------------------------------------------------ cleaning


def small() -> wt.Workload:
    return wt.Workload.from_arrays(
        submit=[0, 5, 9, 20],
        runtime=[60, 7200, 10, 10],
        procs=[1, 2, 4, 4],
        machine_procs=4,
        job_id=[3, 7, 8, 10],
        columns={"user": np.array([1, 1, 2, 2])},
    )


def test_clean__counts_a_job_under_the_first_filter_that_picks_it():
    report = clean(small(), ["job<=7", "user=1", "procs=4 and job<10"])
    assert dict(report.removed) == {"job<=7": 2, "user=1": 0, "procs=4 and job<10": 1}
    assert report.after.job_id.tolist() == [10], "numbers stay"
    assert report.before is not report.after
    assert len(report.before) == 4
    assert dict(report.after.origin.dropped) == {"filter job<=7": 2, "filter procs=4 and job<10": 1}
    assert len(report.after) + sum(report.removed.values()) == len(report.before)


def test_clean__keeps_the_counts_of_the_reader():
    origin = wt.workload.Origin(name="site", drops=(wt.workload.drops.Drop("too_wide", "", 3, 1.0, 5, 2.0),))
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[1, 1], procs=[1, 1], machine_procs=1, origin=origin)
    assert dict(clean(jobs, ["job=1"]).after.origin.dropped) == {"too_wide": 3, "filter job=1": 1}


def test_clean__says_in_its_step_what_was_removed(golden):
    after = clean(small(), ["user=1", "job=8"]).after
    golden("clean", after.origin.steps)


@given(
    filters=st.lists(st.sampled_from(["job<=3", "user=1", "procs=4", "runtime>1h", "job=8", "job>99", "user=1"]), min_size=1, max_size=6)
)
@examples(60)
def test_clean__counts_add_up_whatever_the_filters(filters):
    picked = np.any([select(small(), text) for text in filters], axis=0)
    if picked.all():
        with raises(WorkloadError, "no_jobs_left", "4"):
            clean(small(), filters)
        return
    report = clean(small(), filters)
    assert report.after.job_id.tolist() == small().job_id[~picked].tolist()
    assert sum(report.removed.values()) == int(picked.sum())
    assert sum(report.after.origin.dropped.values()) == int(picked.sum())


def test_clean__twice_adds_up_its_counts():
    once = clean(small(), ["job<=7"]).after
    assert dict(clean(once, ["job<=7"]).after.origin.dropped) == {"filter job<=7": 2}


def test_clean__names_a_filter_of_several_lines_as_one(golden):
    report = clean(small(), ["user=1\n  and\tjob=7 ", "user=1 and job=7", "procs=4\r\nand job<10"])
    assert dict(report.removed) == {"user=1 and job=7": 1, "procs=4 and job<10": 1}
    assert dict(report.after.origin.dropped) == {"filter user=1 and job=7": 1, "filter procs=4 and job<10": 1}
    golden("clean", report.after.origin.steps)


def test_clean__by_no_filter_that_is_one_gets_one_line():
    with raises(PolicyError, "missing_operand"):
        clean(small(), ["user="])


def test_report__shows_facts_before_and_after():
    report = clean(small(), ["job=7"])
    rows = {name: (before, after) for name, before, after in report.rows()}
    assert list(rows) == list(FACTS)
    assert rows["jobs"] == (4, 3)
    assert rows["users"] == (2, 2)
    assert rows["mean runtime (s)"] == (7280 / 4, 80 / 3)
    assert rows["mean processors"] == (11 / 4, 3)
    work = 60 * 1 + 10 * 4 + 10 * 4
    assert rows["offered load"] == ((work + 7200 * 2) / (4 * 20), work / (4 * 20))
    assert rows["busiest week of one user, in median weeks"] == (0.5, 2 / 3)


def test_report__of_a_log_without_users_says_that_it_does_not_know():
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[1, 1], procs=[1, 1], machine_procs=1)
    rows = {name: before for name, before, _ in clean(jobs, ["job=1"]).rows()}
    assert math.isnan(rows["users"])
    assert math.isnan(rows["busiest week of one user, in median weeks"])


# ----------------------------------------------------------------------------------------------------- published filters


@pytest.mark.parametrize(
    ("name", "log"),
    [
        ("KTH-SP2-1996-2", "KTH-SP2-1996"),
        ("kth-sp2-1996-2.swf", "KTH-SP2-1996"),
        ("SDSC-SP2-1998-4", "SDSC-SP2-1998"),
        ("SDSC-SP2-1998-4.recon", "SDSC-SP2-1998"),
        ("LANL-CM5-1994-4", "LANL-CM5-1994"),
        ("OSC-Clust-2000-3", "OSC-Clust-2000"),
    ],
)
def test_published_filters__are_found_by_the_name_of_the_log(name, log):
    assert published_filters(name) == PUBLISHED[log]


@pytest.mark.parametrize("name", ["SDSC-BLUE-2000-4", "my-site", ""])
def test_published_filters__of_another_log_get_one_line_with_the_known_ones(name):
    with raises(PolicyError, "unknown_log", name, "SDSC-SP2-1998", "OSC-Clust-2000", "KTH-SP2-1996", "LANL-CM5"):
        published_filters(name)


def test_sdsc_sp2__has_the_filters_that_the_archive_prints():
    assert published_filters("SDSC-SP2-1998-4")[:4] == (
        "user=21 and 13716<job<16208",
        "user=374 and 14968<job<28553",
        "user=197 and 31766<job<33203",
        "user=328 and 66552<job<68107",
    )


def test_kth__loses_its_first_14_jobs():
    jobs = wt.read(trace_path("KTH-SP2-1996-2"))
    report = clean(jobs, published_filters(jobs.origin.name))
    assert dict(report.removed) == {"job<=14": 14}
    assert (len(report.before), len(report.after)) == (28_489, 28_475)
    cleaned = wt.read(trace_path("KTH-SP2-1996-2.1-cln"))
    assert np.array_equal(report.after.job_id, cleaned.job_id), "as in the archive's own cleaned log"


@pytest.mark.slow
def test_lanl__cleaned_by_the_archive_holds_nothing_that_the_filters_remove():
    jobs = wt.read(trace_path("LANL-CM5-1994-4.1-cln"))
    report = clean(jobs, published_filters(jobs.origin.name))
    assert set(report.removed.values()) == {0}
    bursts = ((50, 24_439, 64_542), (31, 64_587, 115_040), (38, 178_585, 192_710))
    for user, first, last in bursts:
        inside = (jobs.job_id >= first) & (jobs.job_id <= last)
        assert inside.any(), "the numbers are those before cleaning"
        assert not (jobs.columns["user"][inside] == user).any()


@pytest.mark.slow
def test_lanl__has_the_filters_that_the_header_of_the_cleaned_log_prints():
    log = wt.logs.read_swf(trace_path("LANL-CM5-1994-4.1-cln"))
    printed = re.findall(r"(user=\d+ and \(.*?\)) \((\d+) jobs removed\)", " ".join(log.header_lines))
    assert len(printed) == 3
    probe = np.unique([int(n) + by for text, _ in printed for n in re.findall(r"job[<>]=(\d+)", text) for by in (-1, 0, 1)])
    for (text, count), ours in zip(printed, published_filters("LANL-CM5-1994-4"), strict=True):
        user = int(re.search(r"user=(\d+)", text)[1])
        jobs = wt.Workload.from_arrays(
            submit=probe * 0,
            runtime=probe * 0,
            procs=probe * 0 + 1,
            machine_procs=1,
            job_id=probe,
            columns={"user": np.full(len(probe), user)},
        )
        assert select(jobs, ours).tolist() == select(jobs, text).tolist(), "the archive's own spelling is a filter too"
        assert int(count) > 10_000


def test_sdsc_sp2__loses_the_four_bursts_of_the_archive():
    jobs = wt.read(trace_path("SDSC-SP2-1998-4.recon"))
    removed = list(clean(jobs, published_filters(jobs.origin.name)).removed.values())
    assert all(count <= most for count, most in zip(removed, (944, 11_740, 635, 452, 10), strict=True))
    assert sum(removed) > 0


# ------------------------------------------------------------------------------------------------------------- flurries


def test_flurry__planted_is_found_exactly():
    # 20 jobs in a usual week; user 9 alone submits 100 in week 4: over 2 x 20, and 100 of 120 jobs of that week.
    jobs = log(quiet() | {(4, 9): 100, (6, 9): 3})
    (flurry,) = find_flurries(jobs)
    mine = (jobs.columns["user"] == 9) & ((jobs.submit - jobs.submit[0]) // WEEK == 4)
    assert (flurry.user, flurry.jobs, flurry.share) == (9, 100, 100 / 120)
    assert (flurry.begin, flurry.end) == (int(jobs.submit[mine][0]), int(jobs.submit[mine][-1]))
    assert (flurry.first_job, flurry.last_job) == (int(jobs.job_id[mine].min()), int(jobs.job_id[mine].max()))
    assert select(jobs, flurry.filter).tolist() == mine.tolist(), "its filter removes exactly these"
    report = clean(jobs, [flurry.filter])
    assert dict(report.removed) == {flurry.filter: 100}
    assert find_flurries(report.after) == []


def test_flurry__in_weeks_that_follow_each_other_is_one():
    jobs = log(quiet() | {(3, 9): 100, (4, 9): 90, (5, 9): 80, (8, 9): 70})
    flurries = find_flurries(jobs)
    assert [(f.user, f.jobs) for f in flurries] == [(9, 270), (9, 70)]
    assert flurries[0].share == 270 / 330
    assert [select(jobs, f.filter).sum() for f in flurries] == [270, 70]


def test_flurries__of_two_users_are_two_by_their_begin():
    jobs = log(quiet() | {(7, 2): 100, (2, 9): 100})
    assert [(f.user, f.jobs) for f in find_flurries(jobs)] == [(9, 100), (2, 100)]


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (40, []),  # 2 x 20: not over
        (41, [41]),
        (19, []),
    ],
)
def test_flurry__has_over_so_many_times_the_median_week(planted, found):
    assert [f.jobs for f in find_flurries(log(quiet() | {(4, 9): planted}))] == found


def test_flurry__has_over_this_share_of_its_week():
    # Two users who both submit 100 jobs in one week: neither has over half of the 220.
    jobs = log(quiet() | {(4, 8): 100, (4, 9): 100})
    assert find_flurries(jobs) == []
    assert [f.user for f in find_flurries(jobs, share=0.4)] == [8, 9]
    assert find_flurries(jobs, share=0.4, times=5) == []
    # exactly half is not over half
    assert find_flurries(log(quiet() | {(4, 9): 100, (4, 8): 80})) == []
    assert [f.jobs for f in find_flurries(log(quiet() | {(4, 9): 100, (4, 8): 79}))] == [100]


def test_flurry__of_nobody_knows_whom_is_none():
    assert find_flurries(log(quiet() | {(4, -1): 500})) == []


def test_flurries__of_a_steady_log_are_none():
    assert find_flurries(log(quiet())) == []


def test_flurries__skip_weeks_without_jobs_in_the_median():
    # 30 empty weeks would make the median 0, and every week a flurry.
    jobs = log(quiet(weeks=3) | {(40, who): 5 for who in range(1, 5)})
    assert find_flurries(jobs) == []


def test_flurries__need_users():
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[1, 1], procs=[1, 1], machine_procs=1)
    with raises(WorkloadError, "missing_column"):
        find_flurries(jobs)


@given(
    weeks=st.dictionaries(st.tuples(st.integers(0, 6), st.integers(-1, 4)), st.integers(1, 60), min_size=1),
    times=st.sampled_from([0.5, 1.0, 2.0]),
    share=st.sampled_from([0.1, 0.5, 0.9]),
)
@examples(150)
def test_flurries__are_those_that_a_plain_count_finds(weeks, times, share):
    jobs = log(weeks)
    week = (jobs.submit - jobs.submit[0]) // WEEK
    per_week = {w: int((week == w).sum()) for w in set(week.tolist())}
    usual = float(np.median(list(per_week.values())))
    hot = {
        (who, w)
        for who in set(jobs.columns["user"].tolist())
        for w in per_week
        if who >= 0 and (n := int(((week == w) & (jobs.columns["user"] == who)).sum())) > times * usual and n > share * per_week[w]
    }
    expected = [(w, who) in {(b, a) for a, b in hot} for w, who in zip(week.tolist(), jobs.columns["user"].tolist(), strict=True)]
    found = np.zeros(len(jobs), bool)
    for flurry in find_flurries(jobs, times=times, share=share):
        mine = select(jobs, flurry.filter)
        assert int(mine.sum()) == flurry.jobs
        assert not (found & mine).any()
        found |= mine
    assert found.tolist() == expected
