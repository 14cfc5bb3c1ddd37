"""Estimate models: every rule by hand, what they promise for any jobs, and that chance depends on seed and job id alone."""

import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.errors import raises
from tests.strategies import examples
from walltime.errors import PolicyError, WalltimeError
from walltime.estimates import (
    ESTIMATES,
    ExactEstimates,
    FactorEstimates,
    FModel,
    Mualem01,
    Tsafrir05,
    UserEstimates,
    cut_short,
    fmodel,
    mualem01,
    parse_estimates,
    wrong_order_probability,
)
from walltime.policy import Easy
from walltime.simulation import simulate
from walltime.workload import Workload

SIGMAS = 3.29
"""A test at the two-sided significance of 0.001 allows so many standard deviations."""
KS = math.sqrt(-math.log(0.001 / 2) / 2)
"""Kolmogorov's bound on sqrt(n) D at the significance of 0.001, for large n."""
MODELS = (
    UserEstimates(),
    ExactEstimates(),
    FactorEstimates(2),
    FModel(4),
    FModel(4, deterministic=True),
    FModel(11, truncated=5000),
    FModel(4, limit="user"),
    Mualem01(),
    Tsafrir05(emax=20_000, share=30),
)


def jobs_of(runtime, requested=None, job_id=None) -> Workload:
    n = len(runtime)
    return Workload.from_arrays(
        submit=np.arange(n), runtime=runtime, requested=requested, job_id=job_id, procs=np.ones(n, int), machine_procs=4
    )


def some_jobs(n=400, seed=7) -> Workload:
    rng = np.random.default_rng(seed)
    runtime = np.exp(rng.uniform(0, 9, n)).astype(int)
    return jobs_of(runtime, requested=np.maximum(runtime + rng.integers(-50, 5000, n), 1))


def shares(monkeypatch, module, first, second=None):
    """Have the model draw these numbers."""
    first = np.array(first, float)
    second = first if second is None else np.array(second, float)
    monkeypatch.setattr(module, "uniforms", lambda seed, ids, stream: (first, second))


# every rule by hand


def test_f_model__is_the_runtime_times_a_factor_between_1_and_f(monkeypatch):
    shares(monkeypatch, fmodel, [0.0, 0.5, 0.99])
    assert FModel(4).draw(jobs_of([10, 10, 10])).tolist() == [10, 25, 40]  # 10 (1 + 3 u), 39.7 rounds to 40


def test_f_model__rounds_to_the_nearest_second_halves_up_and_at_least_1(monkeypatch):
    shares(monkeypatch, fmodel, [0.5, 0.4, 0.9])
    assert FModel(2).draw(jobs_of([1, 1, 0])).tolist() == [2, 1, 1]
    assert FModel(2.5, deterministic=True).draw(jobs_of([3, 5, 0])).tolist() == [8, 13, 1]


def test_f_model__perfect_is_the_runtime_under_every_seed():
    jobs = some_jobs()
    for model in (FModel(1), FModel(1, deterministic=True), ExactEstimates()):
        assert np.array_equal(model.draw(jobs, 5), np.maximum(jobs.runtime, 1))


def test_f_model__both_spellings_of_f_are_one_model():
    jobs = some_jobs()
    assert FModel.of_badness(3) == FModel(4)
    assert parse_estimates("badness:3") == parse_estimates("f:4") == FModel(4)
    assert np.array_equal(FModel.of_badness(3).draw(jobs, 1), FModel(4).draw(jobs, 1))
    assert FModel(4).badness == 3


def test_twin__is_deterministic_with_half_the_badness_and_the_same_mean():
    # the factor is (F + 1) / 2, tsafrir06's f / 2
    jobs = jobs_of(np.full(200_000, 1000))
    for factor in (2, 4, 11):
        model = FModel(factor, truncated=None)
        twin = model.twin()
        assert (twin.deterministic, twin.F, twin.badness) == (True, (factor + 1) / 2, model.badness / 2)
        error = SIGMAS * 1000 * (factor - 1) / math.sqrt(12 * len(jobs))
        assert model.draw(jobs, 3).mean() == pytest.approx(twin.draw(jobs).mean(), abs=error)
    assert FModel(11, truncated=99, limit="model").twin().truncated == 99


def test_truncated__neither_estimates_nor_what_jobs_run_are_over_the_largest_estimate(monkeypatch):
    # tsafrir06, section VII: a job longer than E_max runs, and is planned to run, E_max
    shares(monkeypatch, fmodel, [0.5, 0.5, 0.0])
    jobs = jobs_of([40, 100, 300], requested=[400, 400, 400])
    truncated = jobs.with_estimates(FModel(4, truncated=250))
    assert truncated.planned.tolist() == truncated.requested.tolist() == [100, 250, 250]
    assert simulate(truncated, Easy(), engine="reference").runtime.tolist() == [40, 100, 250]


def test_truncated__more_jobs_sit_at_the_limit_as_f_grows():
    jobs = some_jobs(5000)
    at = [int((FModel(f, truncated=8000).draw(jobs, 1) == 8000).sum()) for f in (1, 2, 11, 101, 1001)]
    assert at == sorted(at)
    assert at[-1] > 2 * at[1] > 0


def test_doubled__changes_planned_runtimes_and_not_the_kill_limit():
    # mualem01, section 4.5: doubled estimates
    jobs = jobs_of([30, 30], requested=[20, 40])
    doubled = jobs.with_estimates(FactorEstimates(2))
    assert doubled.planned.tolist() == [40, 80]
    assert doubled.requested.tolist() == [20, 40]
    assert simulate(doubled, Easy(), engine="reference").runtime.tolist() == [20, 30]
    assert FactorEstimates(factor=0.1).draw(jobs_of([1], requested=[4])).tolist() == [1]
    assert FModel(2, deterministic=True).draw(jobs).tolist() == [60, 60]  # the double of perfect ones


def test_uniform_accuracy__every_branch(monkeypatch):
    # mualem01, section 4.3: u is 1 minus what is drawn; the tenfold is for jobs under 90 s, and not for under-estimates
    under, over = 0.05, 0.5
    rows = [
        # runtime, which branch, u, estimate
        (100, over, 0.4, 250),
        (50, over, 0.5, 1000),
        (89, over, 0.5, 1780),
        (90, over, 0.5, 180),
        (100, over, 0.3, 334),  # 333.3 is rounded up
        (1000, under, 0.5, 990),
        (50, under, 0.5, 49),  # 49.5 is rounded down, no tenfold
        (1, under, 0.5, 1),
        (0, over, 0.5, 1),
        (80_000, over, 0.5, 86_400),
        (90_000, over, 0.5, 86_400),
        (90_000, under, 0.5, 86_400),
    ]
    runtime, which, u, expected = zip(*rows, strict=True)
    shares(monkeypatch, mualem01, which, 1 - np.array(u))
    assert Mualem01().draw(jobs_of(runtime)).tolist() == list(expected)


def test_uniform_accuracy__nothing_is_divided_by_0(monkeypatch):
    shares(monkeypatch, mualem01, [0.5, 0.5], [0.0, 1 - 2.0**-53])
    assert Mualem01().draw(jobs_of([1000, 1000])).tolist() == [1000, 86_400]


def test_uniform_accuracy__the_jobs_that_it_kills_are_counted():
    # under-estimates, and jobs over the cap
    jobs = some_jobs(5000)
    model = Mualem01(cap=3600)
    counted = cut_short(jobs, model, 2)
    assert counted == int((jobs.runtime > model.draw(jobs, 2)).sum())
    assert counted > int((jobs.runtime > 3600).sum())
    assert cut_short(jobs, FactorEstimates(2)) == cut_short(jobs, FModel(4, limit="user")) == cut_short(jobs, FModel(4)) == 0


def test_limit__of_the_user_stays_where_a_model_is_told_so():
    jobs = jobs_of([100, 100], requested=[60, 400])
    kept = jobs.with_estimates(FModel(4, limit="user"), 1)
    assert kept.requested.tolist() == [60, 400]
    assert 60 <= kept.planned[0] <= 240  # made from what the job runs: it is killed at 60 s
    assert simulate(kept, Easy(), engine="reference").runtime.tolist() == [60, 100]
    replaced = jobs.with_estimates(FModel(4), 1)
    assert np.array_equal(replaced.requested, replaced.planned)
    assert simulate(replaced, Easy(), engine="reference").runtime.tolist() == [100, 100]


# what they promise for any jobs

times = st.lists(st.integers(0, 10**6), min_size=1, max_size=60)


@given(times, st.floats(1, 1000), st.integers(0, 2**64 - 1), st.booleans())
@examples(200)
def test_f_model__is_never_under_the_runtime_nor_over_f_times_it(runtime, factor, seed, deterministic):
    jobs = jobs_of(runtime)
    estimates = FModel(factor, deterministic=deterministic).draw(jobs, seed)
    assert (estimates >= np.maximum(jobs.runtime, 1)).all()
    assert (estimates <= np.maximum(np.ceil(factor * jobs.runtime + 0.5), 1)).all()


@given(times, st.floats(1, 1000), st.integers(1, 10**6), st.integers(0, 99))
@examples(200)
def test_truncated__is_never_under_what_the_job_may_run(runtime, factor, limit, seed):
    jobs = jobs_of(runtime)
    estimates = FModel(factor, truncated=limit).draw(jobs, seed)
    assert (estimates >= np.maximum(np.minimum(jobs.runtime, limit), 1)).all()
    assert (estimates <= limit).all()
    assert np.array_equal(estimates, np.minimum(FModel(factor).draw(jobs, seed), limit))


@given(times, st.integers(1, 10**5), st.integers(0, 99))
@examples(200)
def test_uniform_accuracy__is_from_1_to_the_cap_and_covers_the_runtime_but_for_under_estimates(runtime, cap, seed):
    jobs = jobs_of(runtime)
    estimates = Mualem01(cap=cap).draw(jobs, seed)
    assert ((estimates >= 1) & (estimates <= cap)).all()
    covered = Mualem01(cap=cap, under=0).draw(jobs, seed)
    assert (covered >= np.minimum(jobs.runtime, cap)).all()


def test_estimates__of_absurd_lengths_are_an_error_and_not_a_wrong_number():
    with raises(WalltimeError, "number_out_of_range"):
        jobs_of([2**50]).with_estimates(FModel(1e6, deterministic=True))


# chance


def ks(values: np.ndarray) -> float:
    """sqrt(n) times the distance of these numbers from the uniform distribution."""
    ordered, n = np.sort(values), len(values)
    steps = np.arange(n + 1) / n
    return math.sqrt(n) * max(float((ordered - steps[:-1]).max()), float((steps[1:] - ordered).max()))


@pytest.mark.parametrize("factor", [2, 11, 301])
def test_f_model__spreads_evenly_between_the_runtime_and_f_times_it(factor):
    runtime = 10**6  # so that rounding is of no weight
    estimates = FModel(factor).draw(jobs_of(np.full(20_000, runtime)), 42)
    assert ks((estimates / runtime - 1) / (factor - 1)) < KS


def test_uniform_accuracy__is_uniform_in_nine_cases_of_ten():
    n, runtime = 50_000, 10**6
    estimates = Mualem01(cap=2**50).draw(jobs_of(np.full(n, runtime)), 42)
    under = estimates < runtime
    assert abs(under.mean() - 0.1) < SIGMAS * math.sqrt(0.1 * 0.9 / n)
    assert set(estimates[under].tolist()) == {990_000}
    assert ks(runtime / estimates[~under]) < KS


def test_wrong_order__formula_by_hand():
    # F = 4, r1 = 1, r2 = 2: e1 in [1, 4], e2 in [2, 8]; a triangle of 2 x 2 over a rectangle of 3 x 6
    assert wrong_order_probability(1, 2, 4) == pytest.approx(0.5 * 4 / 18)
    assert wrong_order_probability(1, 3, 3) == wrong_order_probability(1, 2, 1.5) == 0
    assert wrong_order_probability(1, 2, 1e9) == pytest.approx(1 / 4)  # the limit r1 / (2 r2)
    for bad in ((2, 1), (1, 1), (0, 1)):
        with raises(PolicyError, "wrong_runtimes"):
            wrong_order_probability(*bad, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("short", "long", "factor"), [(3600, 4500, 4), (3600, 7200, 11), (600, 601, 2), (60, 4000, 301)])
def test_wrong_order__formula_against_simulation(short, long, factor):
    # tsafrir06, Fig. 10, at the significance of 0.001 each
    n = 200_000
    expected = wrong_order_probability(short, long, factor)
    error = SIGMAS * math.sqrt(expected * (1 - expected) / n)
    runtime = np.tile([short, long], n)
    u, _ = fmodel.uniforms(17, np.arange(1, 2 * n + 1), fmodel.STREAM_F)
    exact = (runtime * (1 + (factor - 1) * u)).reshape(n, 2)
    assert abs((exact[:, 0] > exact[:, 1]).mean() - expected) < error
    # In whole seconds equal estimates are possible; half of them count, and rounding moves the rest by less than a second.
    whole = FModel(factor).draw(jobs_of(runtime), 17).reshape(n, 2)
    wrong = (whole[:, 0] > whole[:, 1]).mean() + 0.5 * (whole[:, 0] == whole[:, 1]).mean()
    assert abs(wrong - expected) < error + 1 / ((factor - 1) * short)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_draw__depends_on_the_seed_and_the_job_id_only(model):
    jobs = some_jobs()
    first = dict(zip(jobs.job_id.tolist(), model.draw(jobs, 9).tolist(), strict=True))
    again = model.draw(jobs, 9)
    assert again.dtype == np.int64
    assert again.tolist() == list(first.values())
    n = len(jobs)
    turned = Workload.from_arrays(
        submit=n - jobs.submit,
        runtime=jobs.runtime,
        requested=jobs.requested,
        procs=jobs.procs,
        job_id=jobs.job_id,
        machine_procs=4,
    )
    assert turned.job_id[0] == n
    assert dict(zip(turned.job_id.tolist(), model.draw(turned, 9).tolist(), strict=True)) == first
    if isinstance(model, Tsafrir05):
        return  # a function of all jobs together
    part = jobs.take(np.arange(0, n, 3), "every third")
    assert model.draw(part, 9).tolist() == [first[i] for i in part.job_id.tolist()]


@pytest.mark.parametrize("model", [m for m in MODELS if m.draw(some_jobs(), 1).tolist() != m.draw(some_jobs(), 2).tolist()], ids=repr)
def test_draw__another_seed_gives_other_numbers_and_none_is_shared_between_models(model):
    jobs = some_jobs()
    assert (model.draw(jobs, 1) != model.draw(jobs, 2)).mean() > 0.5
    assert not np.allclose(*(fmodel.uniforms(1, jobs.job_id, stream)[0] for stream in (1, 2)))


PROGRAM = """
import hashlib, sys
sys.path[:0] = sys.argv[1:]
from tests.unit.estimates.test_estimates import digest
print(digest())
"""


def digest() -> str:
    """A fingerprint of what all models draw."""
    jobs, seen = some_jobs(2000), hashlib.sha256()
    for model in MODELS:
        seen.update(model.draw(jobs, 3).tobytes())
    return seen.hexdigest()


@pytest.mark.nightly
def test_draw__gives_the_same_bytes_in_another_process_with_other_threads():
    root = str(Path(__file__).resolve().parents[3])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    for settings in (threads, {"PYTHONHASHSEED": "5"}):
        told = subprocess.run(
            [sys.executable, "-c", PROGRAM, root], env={**os.environ, **settings}, capture_output=True, text=True, check=True
        )
        assert told.stdout.strip() == digest()


@pytest.mark.slow
def test_f_model__draws_a_million_estimates_each_in_its_range():
    estimates = FModel(4).draw(jobs_of(np.full(1_000_000, 1000)), 1)
    assert (estimates.min(), estimates.max()) == (1000, 4000)
    assert abs(estimates.mean() - 2500) < 5


# names and errors


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("user", UserEstimates()),
        (" Exact ", ExactEstimates()),
        ("double", FactorEstimates(factor=2.0)),
        ("factor:1.5", FactorEstimates(factor=1.5)),
        ("f:4", FModel(4)),
        ("f:4,deterministic=yes", FModel(4, deterministic=True)),
        ("badness:3,deterministic=yes", FModel(4, deterministic=True)),
        ("f:11,truncated=64800", FModel(11, truncated=64_800)),
        ("f:11,deterministic=yes,truncated=64800", FModel(11, deterministic=True, truncated=64_800)),
        ("mualem01", Mualem01()),
        ("mualem01:cap=64800", Mualem01(cap=64_800)),
        ("tsafrir05", Tsafrir05()),
        ("tsafrir05:emax=64800", Tsafrir05(emax=64_800)),
        ("tsafrir05:emax=64800,share=20", Tsafrir05(emax=64_800, share=20)),
        ("tsafrir05:share=12.5", Tsafrir05(share=12.5)),
        ("badness:0", FModel(1)),
        ("tsafrir05:bins=3600x50/7200x20", Tsafrir05(bins=((3600, 50), (7200, 20)))),
    ],
)
def test_names__are_read(text, model):
    assert parse_estimates(text) == model


@pytest.mark.parametrize("text", ["", "exakt", "f2"])
def test_names__unknown_ones_are_told_the_known_ones(text):
    with raises(PolicyError, "unknown_name", "estimates") as error:
        parse_estimates(text)
    assert all(name in str(error.value) for name in ESTIMATES.variants)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f:0.5", ("number_out_of_range", "1")),
        ("f:nan", ("wrong_value", "F", "'f:nan'", "1,000,000", "'nan'")),
        ("f:inf", ("wrong_value",)),
        ("f:four", ("wrong_value", "F", "'f:four'")),
        ("badness:-1", ("wrong_value", "0")),
        ("factor:0", ("wrong_value", "1,000,000")),
        ("f:4,truncated=0", ("wrong_value", "1")),
        ("f:4,truncated=inf", ("wrong_value",)),
        ("mualem01:cap=0", ("wrong_value", "1")),
        ("tsafrir05:emax=3599", ("wrong_value", "3,600", "'3599'")),
        ("tsafrir05:share=0", ("wrong_value", "100")),
        ("tsafrir05:share=100", ("wrong_value", "100")),
    ],
)
def test_names__bad_numbers_get_one_line(text, message):
    with raises(PolicyError, *message):
        parse_estimates(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FModel(4, limit="both"), ("wrong_value", "limit", "'both'")),
        (lambda: FModel(4, truncated=100, limit="user"), ("conflicting_options",)),
        (lambda: Mualem01(under=1.5), ("wrong_value", "0", "1")),
        (lambda: Mualem01(under_factor=0), ("wrong_value", "under-factor")),
        (lambda: Mualem01(short_factor=0.1), ("wrong_value", "1,000,000")),
    ],
)
def test_models__refuse_what_cannot_be(make, message):
    with raises(PolicyError, *message):
        make()
