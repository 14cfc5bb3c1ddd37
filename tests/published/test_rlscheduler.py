"""The published program of zhang20 on its ten windows of two generated logs: the means printed in its Table V."""

import os

import numpy as np
import pytest

import walltime as wt
from benchmarks.common import child
from benchmarks.published import own_steps
from tests.traces import published_path
from walltime.learn.batch import Batch, Rules
from walltime.learn.sources import as_episodes
from walltime.papers.zhang20 import FORMULAS, windows

PRINTED = {
    ("lublin_256", "fcfs"): (7273.77, 235.82),
    ("lublin_256", "wfp3"): (19753.53, 133.87),
    ("lublin_256", "unicep"): (22274.74, 307.23),
    ("lublin_256", "sjf"): (277.35, 73.31),
    ("lublin_256", "f1"): (258.37, 75.07),
    ("lublin_256_new2", "fcfs"): (7842.47, 247.61),
    ("lublin_256_new2", "wfp3"): (9523.18, 318.35),
    ("lublin_256_new2", "unicep"): (11265.31, 379.59),
    ("lublin_256_new2", "sjf"): (787.89, 91.99),
    ("lublin_256_new2", "f1"): (698.34, 148.25),
}
"""Without and with backfilling."""


SLOW = ("wfp3", "unicep", "sjf")
"""Formulas whose queues take longest; their printed means are tried as agents of the learning environment, too."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "formula"),
    [pytest.param(*key, marks=pytest.mark.nightly) if key[1] in SLOW or key[0] != "lublin_256" else key for key in PRINTED],
)
def test_rlscheduler__gives_the_printed_means_to_the_last_digit(log, formula):
    parts = windows(wt.read(published_path(f"rlscheduler/{log}.swf.gz")))
    for policy, printed in zip((wt.NoBackfilling, wt.Easy), PRINTED[log, formula], strict=True):
        schedules = [wt.simulate(part, policy(order=FORMULAS[formula]), dialect="rlscheduler", overrun="continue") for part in parts]
        assert f"{np.mean([schedule.summary().mean_bounded_slowdown for schedule in schedules]):.2f}" == f"{printed:.2f}"


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize(("log", "formula"), PRINTED)
def test_formulas_as_agents_of_the_learning_environment__give_the_printed_means(log, formula):
    parts = windows(wt.read(published_path(f"rlscheduler/{log}.swf.gz")))
    order = FORMULAS[formula]
    for backfilling, printed in zip((False, True), PRINTED[log, formula], strict=True):
        rules = Rules(dialect="rlscheduler", backfilling=backfilling, slots=1024, dense=False, overrun="continue")
        batch, found = Batch(as_episodes(parts), rules), []
        for number, part in enumerate(parts):
            columns = zip(part.planned.tolist(), part.procs.tolist(), part.submit.tolist(), strict=True)
            scores = np.array([order.score(0, *job) for job in columns])  # none of them reads the time
            batch.step(np.array([-1 - number]))
            while not batch.over[0]:
                batch.step(np.array([scores[batch.waiting(0)].argmax()]))
            found.append(-batch.rewards[0])
        assert f"{np.mean(found):.2f}" == f"{printed:.2f}"


@pytest.mark.slow
@pytest.mark.parametrize("backfilling", [False, True])
def test_the_program_itself__shows_and_rewards_the_same(backfilling):
    folder = os.environ.get("WALLTIME_RLSCHEDULER")
    if folder is None:
        pytest.skip("WALLTIME_RLSCHEDULER names no checkout of the published program")
    log, starts = published_path("rlscheduler/lublin_256.swf.gz"), [1981, 7762]
    theirs = child("published_steps", folder, log, 1024, int(backfilling), *starts)
    ours = own_steps(wt.read(log), 1024, backfilling, starts)
    assert ours["observed"] == theirs["observed"]
    assert ours["costs"] == pytest.approx(theirs["costs"], rel=1e-12)
