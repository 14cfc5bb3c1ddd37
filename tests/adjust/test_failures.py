"""Whatever fails, and whenever: no job ends before its user's limit because of the side-car, and nothing stays shortened."""

import pytest

from tests.adjust.failures import KeepingSidecar, busy, kth, play, with_gamers
from tests.adjust.planted import FAULTS, ROOT, is_found
from tests.profiles import PROFILE

RISK = 0.002
"""Probability of a failure at each command and between two rounds; a hundred or so failures in a run of 200 jobs."""
SOME = 200 if PROFILE == "nightly" else 70
"""Jobs of a run."""


@pytest.mark.parametrize("soft", [False, True], ids=["give-back", "soft-limit"])
def test_without_failures_jobs_are_adjusted_and_keep_their_limits(tmp_path, soft):
    story = play(tmp_path / "ledger", busy(60), 32, seed=0, risk=0, soft=soft)
    assert story.violations == []
    assert story.adjusted > 20
    assert (story.restored == 0) == soft


@pytest.mark.slow
@pytest.mark.parametrize("soft", [pytest.param(False, marks=pytest.mark.nightly), True], ids=["give-back", "soft-limit"])
def test_failures_shorten_no_job(tmp_path, soft):
    story = play(tmp_path / "ledger", busy(SOME), 32, seed=1, risk=RISK, soft=soft)
    assert story.violations == []
    assert sum(story.failures.values()) > SOME // 5
    assert story.adjusted > SOME // 5


@pytest.mark.slow
@pytest.mark.parametrize("prolog_fails", [0.2, *(pytest.param(share, marks=pytest.mark.nightly) for share in (0.0, 1.0))])
def test_failures_with_a_prolog_shorten_no_job(tmp_path, prolog_fails):
    story = play(tmp_path / "ledger", busy(SOME), 32, seed=2, risk=RISK, prolog_fails=prolog_fails)
    assert story.violations == []
    assert sum(story.failures.values()) > SOME // 5
    assert story.adjusted > SOME // 5


def test_the_prolog_alone_gives_back(tmp_path):
    story = play(tmp_path / "ledger", busy(60), 32, seed=0, risk=0, sidecar_class=KeepingSidecar, prolog_fails=0.0)
    assert story.violations == []
    assert story.backfilled > 0


@pytest.mark.nightly
def test_a_stretch_of_kth(tmp_path):
    story = play(tmp_path / "ledger", kth(20_000, 200), 100, seed=3, risk=RISK)
    assert story.violations == []
    assert story.adjusted > 20
    assert sum(story.failures.values()) > 20


@pytest.mark.nightly
def test_hostile_users_and_unlucky_nights_shorten_no_job(tmp_path):
    story = play(tmp_path / "ledger", with_gamers(busy(80)), 32, seed=4, risk=2 * RISK, hostile=True)
    assert story.violations == []
    assert story.adjusted > 10
    assert {"slow", "no job log at the start", "ledger lost"} <= set(story.failures)


@pytest.mark.nightly
@pytest.mark.parametrize("soft", [False, True], ids=["give-back", "soft-limit"])
@pytest.mark.parametrize("hostile", [False, True], ids=["failures", "hostile"])
def test_a_month_of_kth(tmp_path, soft, hostile):
    jobs = kth(20_373, 3040, faster=1)
    if hostile:
        jobs = with_gamers(jobs)
    story = play(tmp_path / "ledger", jobs, 100, seed=7, risk=RISK, soft=soft, rounds=100_000, hostile=hostile)
    print(story.failures, story.rounds, story.adjusted, story.restored)  # for the table in docs/validation/adjust-failures.md
    assert story.violations == []
    assert sum(story.failures.values()) > 1000
    assert story.adjusted > 1000


@pytest.mark.nightly
def test_a_thousand_failures_shorten_no_job(tmp_path):
    failures = 0
    for seed in range(100, 116):
        story = play(tmp_path / str(seed), busy(seed=seed), 32, seed=seed, risk=RISK, soft=seed % 3 == 0)
        assert story.violations == [], seed
        failures += sum(story.failures.values())
    assert failures > 1000


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.new.strip()}")
def test_planted_faults_can_still_be_planted(tmp_path, fault):
    text = (ROOT / "src/walltime/slurm/sidecar" / fault.file).read_text()
    assert text.count(fault.old) == 1


@pytest.mark.slow
def test_a_planted_fault_is_found():
    assert is_found(FAULTS[-1])


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.new.strip()}")
def test_planted_faults_are_found(fault):
    assert is_found(fault)
