"""The modal model: every step against its definition and by hand, and what it promises for any jobs."""

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from tests.errors import raises
from tests.strategies import examples
from tests.traces import trace_path
from walltime.errors import PolicyError, WorkloadError
from walltime.estimates import Tsafrir05, largest_estimate, modes
from walltime.estimates.tsafrir05 import assign
from walltime.logs import read
from walltime.workload import Workload

HOUR = 3600


def jobs_of(runtime, requested=None, job_id=None) -> Workload:
    n = len(runtime)
    return Workload.from_arrays(
        submit=np.arange(n), runtime=runtime, requested=requested, job_id=job_id, procs=np.ones(n, int), machine_procs=4
    )


def short_jobs(n=600, longest=7 * HOUR, seed=1) -> Workload:
    """Most jobs are short, as in real logs."""
    return jobs_of((longest * np.random.default_rng(seed).uniform(size=n) ** 4).astype(int), requested=np.full(n, 8 * HOUR))


# step 1


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [(0, 0), (20, 10), (110, 15), (200, 20), (600, 28), (1000, 35), (5500, 63), (10_000, 90), (70_000, 340), (250_000, 565), (10**6, 565)],
)
def test_number_of_modes__is_piecewise_linear(jobs, expected):
    # 600: 20 + 15 / 2 rounds to 28; 5500: 35 + 55 / 2 rounds to 63
    assert modes.number_of_modes(jobs) == expected


def test_number_of_modes__has_the_power_law_as_an_alternative():
    assert Tsafrir05(modes_rule="power").number_of_modes(10_000) == round(0.653566 * 10_000**0.547761) == 101
    assert Tsafrir05(modes=50).number_of_modes(10_000) == 50


# step 2


@pytest.mark.parametrize(
    ("hours", "last"),
    [
        (18, [8, 10, 12, 13, 14, 15, 16, 17]),  # of 5 h: 15; of 2 h: 16, 14; of 1 h: 17, 13
        (36, [8, 10, 12, 18, 20, 25, 30, 35]),  # of 10 h: 30, 20; of 5 h: 35, 25
        (60, [8, 10, 12, 18, 20, 30, 40, 50]),  # of 50 h: 50; of 10 h: 40, 30, 20
    ],
)
def test_head_times__are_the_joint_ones_filled_up_with_round_ones(hours, last):
    times = modes.head_times(hours * HOUR)
    assert times[0] == hours * HOUR
    assert times[1:] == sorted(set(times[1:]))
    assert (len(times), times[1:11]) == (20, [300, 600, 900, 1200, 1800, *(h * HOUR for h in range(1, 6))])
    assert [t / HOUR for t in times[-8:]] == last


def test_head_times__are_fewer_than_twenty_under_100_minutes():
    assert modes.head_times(HOUR) == [HOUR, *range(300, HOUR, 300)]
    assert [len(modes.head_times(m * 60)) for m in (60, 95, 100, 120)] == [12, 19, 20, 20]


def test_merge_times__replace_round_values_first_and_the_largest_never():
    head = modes.head_times(18 * HOUR)
    assert modes.merge_times(head, []) == head
    assert modes.merge_times(head, [18 * HOUR, 12 * HOUR]) == head
    merged = modes.merge_times(head, [200, int(17.9 * HOUR)])
    # 17.9 h is closest to 17 h; 200 s to 5 min, but that is a joint value, so the nearest round one goes: 13 h
    assert sorted(set(head) - set(merged)) == [13 * HOUR, 17 * HOUR]
    assert len(merged) == 20
    assert merged[0] == 18 * HOUR
    many = list(range(61, 80))
    assert modes.merge_times(head, many) == [18 * HOUR, *many]
    assert len(modes.merge_times(modes.head_times(HOUR), [61, 62])) == 14  # there is room: nothing is replaced


# step 3

HEAD_SIZES = [10.31, 8.71, 7.37, 6.25, 5.30, 4.52, 3.86, 3.31, 2.84, 2.46, 2.13, 1.86, 1.63, 1.44, 1.28, 1.15, 1.04, 0.94, 0.87]


def test_head_sizes__are_those_of_the_specification():
    # values computed by hand from the authors' formulas
    sizes = modes.head_sizes()
    assert [round(s, 2) for s in sizes] == [21.73, *HEAD_SIZES]
    assert sum(sizes[1:]) == pytest.approx(67.27, abs=0.005)
    assert sum(sizes) == pytest.approx(89)


def test_head_sizes__with_a_given_share_scale_the_others():
    sizes = modes.head_sizes(share=10)
    assert sum(sizes) == pytest.approx(89)
    assert sizes == sorted(sizes, reverse=True)
    assert 10 in sizes
    assert sizes[0] == pytest.approx(modes.head_sizes()[1] * 79 / sum(modes.head_sizes()[1:]))
    assert modes.head_sizes(share=95)[1:] == [0] * 19


def test_merge_sizes__the_closest_default_is_replaced_and_the_others_scaled():
    sizes, ranks = modes.merge_sizes([20.0, 10.0, 6.0, 4.0], {60: 7.0}, emax=999, total=40)
    assert ranks == {60: 3}
    assert sizes == pytest.approx([20 * 33 / 34, 10 * 33 / 34, 7.0, 4 * 33 / 34])
    # rank 1 is for the largest estimate only, however close a size is
    sizes, ranks = modes.merge_sizes([20.0, 10.0, 6.0, 4.0], {60: 19.0}, emax=999, total=40)
    assert ranks == {60: 2}
    assert sizes == pytest.approx([20 * 21 / 30, 19.0, 6 * 21 / 30, 4 * 21 / 30])
    assert modes.merge_sizes([20.0, 10.0, 6.0, 4.0], {999: 20.0}, emax=999, total=40)[1] == {999: 1}
    # a share that is too large leaves nothing; the ranks after the first are sorted anew
    assert modes.merge_sizes([20.0, 10.0, 6.0, 4.0], {60: 41.0}, emax=999, total=40) == ([0.0, 41.0, 0.0, 0.0], {60: 2})


# step 4


def test_popularity_ranks__by_hand():
    # Nothing is due before time rank 6; there it is 3, observed at 0, 1, 3 and 6 only.
    draws = np.full((20, 2), 0.999)
    draws[1] = 0.99, 0.5  # pool 3 3 4 6: draws 6 and 4
    draws[2] = 0.0, 0.9  # pool 3 3 6 10 5: draws 3 and 5
    ranks = modes.popularity_ranks(draws)
    assert ranks[:3] == [1, 4, 3]
    ranks = modes.popularity_ranks(np.full((20, 2), 0.999))
    # pools, last entry drawn: 3 3 4 6; 3 3 4 4 10 5; ... 14 3; ...; 2 2; then 3 is due if it is not taken
    assert ranks[:6] == [1, 6, 5, 3, 7, 2]


def test_popularity_ranks__a_rank_is_taken_when_it_is_due():
    last = {rank: k for k, row in enumerate(modes.POPULARITY) for rank in row}
    assert [last[rank] for rank in (1, 3, 2, 4, 12, 20)] == [1, 6, 8, 8, 19, 19]
    for seed in range(50):
        ranks = modes.popularity_ranks(np.random.default_rng(seed).uniform(size=(20, 2)))
        assert sorted(ranks) == list(range(1, 21))
        assert ranks[0] == 1
        assert ranks.index(3) <= 6
        assert ranks.index(2) <= 8


def test_popularity_ranks__the_table_has_each_rank_once_in_each_log():
    for column in zip(*modes.POPULARITY, strict=True):
        assert sorted(column) == list(range(1, 21))


@given(st.integers(0, 999), st.integers(12, 20), st.dictionaries(st.integers(0, 11), st.integers(2, 12), max_size=8))
@examples(100)
def test_popularity_ranks__are_a_permutation_that_keeps_given_ones(seed, count, given_ranks):
    assume(len(set(given_ranks.values())) == len(given_ranks))
    ranks = modes.popularity_ranks(np.random.default_rng(seed).uniform(size=(count, 2)), count, given_ranks)
    assert sorted(ranks) == list(range(1, count + 1))
    assert all(ranks[k] == rank for k, rank in given_ranks.items())


# steps 5 and 6


def test_tail_bend__is_that_of_the_specification():
    # values computed by hand from the authors' formulas
    assert [round(modes.tail_bend(k), 4) for k in (90, 340, 565)] == [1.8041, 1.3610, 1.2658]


def test_tail_times__by_hand():
    # a = 1.5, x = 0.2: y = 0.1 / 1.3 = 0.07692, of 36,000 s 2769 s, 46 min; the last, x = 1, is 30 s under the largest
    assert modes.tail_times(5, 36_000, [36_000], 1.5) == [2760, 6540, 12_000, 20_580, 35_970]


def test_tail_times__step_aside_where_two_coincide():
    asides = [2790, 2730, 2780, 2740, 2770, 2750]
    head = [36_000, 2760]
    for aside in asides:
        times = modes.tail_times(5, 36_000, head, 1.5)
        assert aside in times
        head.append(aside)
    assert len(modes.tail_times(5, 36_000, head, 1.5)) == 4  # no place is left: the value is skipped
    assert min(modes.tail_times(600, HOUR, [HOUR], 1.25)) > 0


def test_tail_sizes__follow_the_power_law_from_rank_21():
    sizes = modes.tail_sizes(70)
    assert sum(sizes) == pytest.approx(11)
    assert sizes[0] / sizes[-1] == pytest.approx((21 / 90) ** -2.267)
    assert modes.tail_sizes(0) == []


# step 7


@pytest.mark.parametrize(
    ("percents", "jobs", "fixed", "expected"),
    [
        ({60: 50, 120: 50}, 10, {}, [5, 5]),
        ({60: 60, 120: 39.9, 180: 0.1}, 10, {}, [5, 4, 1]),  # 6 4 1 is one too many: the largest gives in proportion, 1
        ({60: 60, 120: 20}, 10, {}, [8, 2]),  # 6 2 is two short: the largest takes ceil(2 / 8 * 6) = 2
        ({60: 50, 120: 50}, 10, {60: 1}, [1, 9]),  # 1 5 is four short, a user's bin stays
        ({60: 34, 120: 33, 180: 33}, 4, {180: 2}, [1, 1, 2]),
        ({60: 50, 120: 30, 180: 20}, 3, {180: 2}, [1, 0, 2]),  # at last down to none, the smaller one
    ],
)
def test_jobs_per_mode__add_up(percents, jobs, fixed, expected):
    counts = modes.jobs_per_mode(percents, jobs, fixed)
    assert list(counts) == sorted(percents)
    assert sum(counts.values()) == jobs
    assert sorted(counts.values()) == sorted(expected)
    assert all(counts[t] == n for t, n in fixed.items())


def test_jobs_per_mode__cannot_stretch_a_users_bins():
    with raises(WorkloadError, "impossible_modes", "3"):
        modes.jobs_per_mode({60: 100}, 10, {60: 7})


# step 8


def test_assign__by_hand():
    # Longest first: 50 may take 60 or 50 but not 20, then 40 what is left of these; the rest takes what remains.
    jobs, ids = np.array([10, 50, 5, 40]), np.arange(1, 5)
    seen = set()
    for seed in range(60):
        dealt = assign(jobs, ids, np.array([60, 50, 20, 20]), seed)
        assert sorted(dealt.tolist()) == [20, 20, 50, 60]
        assert (dealt >= jobs).all()
        seen.add(tuple(dealt.tolist()))
    assert seen == {(20, 60, 20, 50), (20, 50, 20, 60)}


@pytest.mark.slow
def test_assign__is_even_where_all_estimates_fit():
    first = [assign(np.zeros(4, np.int64), np.arange(4), np.array([40, 30, 20, 10]), seed)[2] for seed in range(4000)]
    counts = np.unique(first, return_counts=True)[1]
    assert ((counts - 1000) ** 2 / 1000).sum() < 16.27  # chi-square, three degrees of freedom, at 0.001


def test_assign__says_why_it_cannot():
    with raises(WorkloadError, "too_few_estimates", "emax", "3", "20"):
        assign(np.array([50, 40, 30]), np.arange(3), np.array([60, 60, 20]))


# all of it


def test_model__has_the_modes_the_head_and_the_share_that_it_promises():
    jobs = short_jobs(5000)
    for share in (None, 10, 20, 30, 50, 80):
        model = Tsafrir05(emax=18 * HOUR, share=share)
        values, counts = np.unique(model.draw(jobs, 4), return_counts=True)
        assert len(values) == model.number_of_modes(5000) == 59
        assert values[-1] == 18 * HOUR
        expected = 5000 * share // 100 if share else round(5000 * (89 - 67.265) / 100)
        assert counts[-1] == pytest.approx(expected, abs=0 if share else 3)
        if share is None or share < 50:
            assert np.sort(counts)[::-1][:20].sum() == pytest.approx(0.89 * 5000, abs=20)


def test_model__keeps_a_users_bins_to_the_job():
    jobs = short_jobs(2000)
    model = Tsafrir05(emax=18 * HOUR, share=15, bins=((2 * HOUR, 333), (17 * HOUR + 60, 77)))
    values, counts = np.unique(model.draw(jobs, 1), return_counts=True)
    found = dict(zip(values.tolist(), counts.tolist(), strict=True))
    assert (found[18 * HOUR], found[2 * HOUR], found[17 * HOUR + 60]) == (300, 333, 77)
    assert counts.sum() == 2000


@given(st.integers(200, 900), st.integers(HOUR, 40 * HOUR), st.none() | st.floats(5, 95), st.integers(0, 10**6))
@examples(60)
def test_model__is_never_under_what_a_job_may_run(n, emax, share, seed):
    jobs = short_jobs(n, longest=2 * emax, seed=seed % 7)
    model = Tsafrir05(emax=emax, share=share)
    counts = model.histogram(n, emax, seed)
    descending = np.repeat(list(counts), list(counts.values()))[::-1]
    if (np.sort(np.minimum(jobs.runtime, emax))[::-1] > descending).any():
        with raises(WorkloadError, "too_few_estimates", "emax"):
            model.draw(jobs, seed)
        return
    estimates = model.draw(jobs, seed)
    assert (estimates >= np.minimum(jobs.runtime, emax)).all()
    assert estimates.min() >= 1
    assert estimates.max() == emax
    if share:
        assert (estimates == emax).sum() == max(1, int(share * n / 100 + 0.5))


def test_model__cuts_longer_jobs_at_the_largest_estimate_by_the_kill_limit():
    jobs = short_jobs(500, longest=10 * HOUR)
    drawn = jobs.with_estimates(Tsafrir05(emax=4 * HOUR, share=40), 1)
    long = jobs.runtime > 4 * HOUR
    assert long.sum() > 50
    assert (drawn.requested[long] == 4 * HOUR).all()
    assert np.array_equal(drawn.requested, drawn.planned)


def test_model__is_a_function_of_the_set_of_jobs():
    jobs = short_jobs(500)
    model = Tsafrir05(emax=8 * HOUR, share=30)
    whole = model.draw(jobs, 1)
    assert np.array_equal(model.draw(jobs, 1), whole)
    part = jobs.take(np.arange(300), "the first 300")
    assert not np.array_equal(model.draw(part, 1), whole[:300])


def test_model__ties_are_decided_by_job_ids():
    n = 400
    runtime = np.full(n, 60)
    there = Tsafrir05(emax=8 * HOUR).draw(jobs_of(runtime, job_id=np.arange(1, n + 1)), 3)
    back = Tsafrir05(emax=8 * HOUR).draw(jobs_of(runtime, job_id=np.arange(n, 0, -1)), 3)
    assert np.array_equal(there, back[::-1])


def test_largest_estimate__is_the_sites_limit_without_outliers():
    # the largest estimate once outliers, under 0.1 % of the jobs, are removed
    assert largest_estimate(np.array([600] * 999 + [9999])) == HOUR  # one in a thousand is left out
    assert largest_estimate(np.array([600] * 998 + [5000, 9999])) == 2 * HOUR
    assert largest_estimate(np.array([5000])) == 5000
    with raises(WorkloadError, "empty_workload"):
        largest_estimate(np.array([], np.int64))
    with raises(PolicyError, "number_out_of_range"):
        largest_estimate(np.array([1]), outliers=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("CTC-SP2-1996-3.1-cln.recon", 18),
        ("KTH-SP2-1996-2", 60),
        ("SDSC-SP2-1998-4.x-cln.recon", 18),
        ("SDSC-BLUE-2000-4.x-cln.recon", 36),
    ],
)
def test_model__on_the_logs_of_the_dynamics_paper(name, hours):
    jobs = read(trace_path(name))
    model = Tsafrir05()
    assert model.largest(jobs) == hours * HOUR
    estimates = model.draw(jobs, 1)
    values, counts = np.unique(estimates, return_counts=True)
    assert (estimates >= np.minimum(jobs.runtime, hours * HOUR)).all()
    assert len(values) == modes.number_of_modes(len(jobs))
    assert np.sort(counts)[::-1][:20].sum() == pytest.approx(0.89 * len(jobs), rel=0.001)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emax": 3599}, ("wrong_value", "3,600")),
        ({"emax": 2**61}, ("wrong_value", "emax")),
        ({"limit": "user"}, ("conflicting_options",)),
        ({"share": 100.0}, ("wrong_value", "100")),
        ({"modes_rule": "cubic"}, ("wrong_value", "linear", "power")),
        ({"modes": 19}, ("wrong_value", "20")),
        ({"head_total": 100.0}, ("wrong_value", "100")),
        ({"bins": ((60, 0),)}, ("wrong_value",)),
        ({"bins": ((60, 1), (60, 2))}, ("wrong_bins",)),
    ],
)
def test_model__refuses_what_cannot_be(options, message):
    with raises(PolicyError, *message):
        Tsafrir05(**options)


@pytest.mark.parametrize(
    ("jobs", "options", "kind", "message"),
    [
        (jobs_of(np.full(199, 60)), {"emax": HOUR}, WorkloadError, ("too_few_jobs", "200", "199")),
        (jobs_of(np.full(300, 60)), {}, WorkloadError, ("number_out_of_range", "60", "emax=SECONDS")),
        (jobs_of(np.full(300, 7000)), {"emax": 7200}, WorkloadError, ("too_few_estimates", "300", "7200")),
        (short_jobs(), {"emax": HOUR, "bins": ((9000, 5),)}, PolicyError, ("number_out_of_range", "9000")),
        (short_jobs(), {"emax": 9000, "bins": ((9000, 5),), "share": 5}, PolicyError, ("conflicting_options",)),
        (short_jobs(), {"emax": 9000, "bins": ((60, 601),)}, WorkloadError, ("too_many_jobs", "601", "600")),
        (short_jobs(), {"emax": 9000, "bins": tuple((t, 1) for t in range(1, 21))}, PolicyError, ("too_many_bins", "19")),
        (short_jobs(), {"emax": 9000, "head_total": 50}, PolicyError, ("impossible_modes", "head_curve")),
    ],
)
def test_model__says_in_one_line_what_it_cannot_do(jobs, options, kind, message):
    with raises(kind, *message):
        Tsafrir05(**options).draw(jobs)
