"""Whatever fails, and whenever: no job ends before its user's limit because of the side-car, and nothing stays shortened."""

import pytest

from tests.adjust.failures import ForgetfulSidecar, KeepingSidecar, LazyLedger, busy, kth, play

RISK = 0.002
"""Probability of a failure at each command and between two rounds; a hundred or so failures in a run."""


@pytest.mark.parametrize("soft", [False, True], ids=["give-back", "soft-limit"])
def test_without_failures_jobs_are_adjusted_and_keep_their_limits(tmp_path, soft):
    story = play(tmp_path / "ledger", busy(60), 32, seed=0, risk=0, soft=soft)
    assert story.violations == []
    assert story.adjusted > 20
    assert (story.given_back == 0) == soft


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True], ids=["give-back", "soft-limit"])
def test_failures_shorten_no_job(tmp_path, soft):
    story = play(tmp_path / "ledger", busy(), 32, seed=1, risk=RISK, soft=soft)
    assert story.violations == []
    assert sum(story.failures.values()) > 50
    assert story.adjusted > 50


@pytest.mark.slow
@pytest.mark.parametrize("prolog_fails", [0.0, 0.2, 1.0])
def test_failures_with_a_prolog_shorten_no_job(tmp_path, prolog_fails):
    story = play(tmp_path / "ledger", busy(), 32, seed=2, risk=RISK, prolog_fails=prolog_fails)
    assert story.violations == []
    assert sum(story.failures.values()) > 50
    assert story.adjusted > 50


def test_the_prolog_alone_gives_back(tmp_path):
    story = play(tmp_path / "ledger", busy(60), 32, seed=0, risk=0, sidecar_class=KeepingSidecar, prolog_fails=0.0)
    assert story.violations == []
    assert story.backfilled > 0


@pytest.mark.slow
def test_a_stretch_of_kth(tmp_path):
    story = play(tmp_path / "ledger", kth(20_000, 200), 100, seed=3, risk=RISK)
    assert story.violations == []
    assert story.adjusted > 20
    assert sum(story.failures.values()) > 20


@pytest.mark.nightly
@pytest.mark.parametrize("soft", [False, True], ids=["give-back", "soft-limit"])
def test_a_month_of_kth(tmp_path, soft):
    story = play(tmp_path / "ledger", kth(20_373, 3040, faster=1), 100, seed=7, risk=RISK, soft=soft, rounds=100_000)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "planted",
    [
        {"sidecar_class": KeepingSidecar, "risk": 0},
        {"ledger_class": LazyLedger, "risk": 3 * RISK},
        {"sidecar_class": ForgetfulSidecar, "risk": RISK},
    ],
    ids=["no give-back", "ledger not flushed", "ledger not read"],
)
def test_planted_faults_are_found(tmp_path, planted):
    assert any(play(tmp_path / str(seed), busy(100), 32, seed=seed, **planted).violations for seed in range(1, 5))
