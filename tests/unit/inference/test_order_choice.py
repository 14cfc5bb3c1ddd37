"""Which of the jobs that could have started did: choices by hand, and weights that were planted and are found."""

import numpy as np
import pytest

import walltime as wt
from walltime.inference.candidate_rules import RecordedLog
from walltime.inference.order_choice import FORMS, Choices, fitted_logit, fitted_weights, order_choice, recorded_choices
from walltime.inference.queue_order import linear, linear_text
from walltime.machine.windows import Hours


def log_of(submit, start, runtime, procs, requested=None, **columns):
    """A recorded log on 4 processors."""
    jobs = wt.Workload.from_arrays(submit=submit, runtime=runtime, procs=procs, requested=requested, machine_procs=4, columns=columns)
    return RecordedLog.of(jobs, np.array(start, np.int64))


BY_HAND = log_of([0, 1, 2, 3], [0, 20, 10, 30], [10, 10, 10, 5], [4, 4, 2, 2])
"""The first job has the machine until 10; then the third starts, though the second has waited longer and the fourth fits as well."""


def rows(choices):
    """Each choice: the job that started, and the others."""
    jobs = np.split(choices.job, choices.first[1:])
    return [(int(one[0]), sorted(one[1:].tolist())) for one in jobs if len(one)]


def test_choices__by_hand():
    everybody = np.ones(4, bool)
    choices = recorded_choices(BY_HAND, 4, everybody)
    assert rows(choices) == [(2, [1, 3]), (1, [3])]
    assert choices.wait[:3].tolist() == pytest.approx([8 / 3600, *(wait / 3600 for wait in (9, 7))])
    assert rows(recorded_choices(BY_HAND, 3, everybody)) == [(2, [3]), (1, [3])], "four processors are not free there"


def test_choices__leave_out_who_is_held_or_shut_out():
    everybody = np.ones(4, bool)
    eligible = np.array([0, 15, 0, 0])
    assert rows(recorded_choices(BY_HAND, 4, everybody, eligible=eligible)) == [(2, [3]), (1, [3])]
    shut = Hours(np.array([9]), np.array([12]), False)
    assert rows(recorded_choices(BY_HAND, 4, everybody, [(shut, np.array([False, True, False, False]))])) == [(2, [3]), (1, [3])]
    ahead = Hours(np.array([14]), np.array([15]), True)
    assert rows(recorded_choices(BY_HAND, 4, everybody, [(ahead, everybody)])) == [(1, [3])], "none is planned across 14"
    assert rows(recorded_choices(BY_HAND, 4, np.zeros(4, bool))) == []


def drawn(weights, effects, count=4000, seed=1):
    """Choices of five by these weights, with effects of the groups that the rows are in."""
    draw = np.random.default_rng(seed)
    features = draw.standard_normal((count, 5, len(weights)))
    group = draw.integers(0, len(effects), (count, 5))
    score = features @ np.array(weights) + np.array(effects)[group] + draw.gumbel(size=(count, 5))
    order = np.argsort(-score, axis=1)
    features, group = np.take_along_axis(features, order[..., None], 1), np.take_along_axis(group, order, 1)
    choices = Choices(np.arange(0, 5 * count, 5), np.arange(5 * count), np.zeros(5 * count))
    return choices, features.reshape(-1, len(weights)), group.ravel()


def test_logit__finds_the_weights_and_effects_that_were_planted():
    choices, features, group = drawn([1.0, -0.5], [0.0, 1.0, -1.0])
    weights, (effects,) = fitted_logit(choices, np.ones(4000, bool), features, [group])
    assert weights.tolist() == pytest.approx([1.0, -0.5], abs=0.08)
    assert (effects - effects[0]).tolist() == pytest.approx([0.0, 1.0, -1.0], abs=0.12)
    alone, _ = fitted_logit(choices, np.ones(4000, bool), features, [])
    assert abs(alone[0]) < abs(weights[0]), "what is left out makes the others smaller"


def test_logit__is_that_of_two_alternatives_by_hand():
    """Of two jobs the one with the feature starts in three of four choices: its weight is log(3)."""
    features = np.array([[1.0], [0.0]] * 3 + [[0.0], [1.0]])
    choices = Choices(np.arange(0, 8, 2), np.arange(8), np.zeros(8))
    weights, _ = fitted_logit(choices, np.ones(4, bool), features, [])
    assert weights[0] == pytest.approx(np.log(3), abs=0.01)


@pytest.mark.slow
def test_order_choice__knows_short_jobs_first_from_arrival():
    jobs = wt.workloads.Lublin99().generate(3000, 64, 1.0, 2)
    schedule = wt.simulate(jobs, "easy:order=sjf")
    log = RecordedLog.of(jobs, schedule.start)
    choices = recorded_choices(log, 64, log.known)
    early = np.arange(len(jobs)) < 1500
    found = order_choice(choices, log, early, ~early)
    assert found.fitted > found.arrival + 0.2 > found.chance
    assert found.users is found.projects is None
    weights = fitted_weights(choices, log, early, FORMS[2])
    assert weights["log-planned"] < 0
    assert abs(weights["log-planned"]) > abs(weights["log-procs"])
    policy = linear(weights)
    assert wt.simulate(jobs, policy).summary().mean_wait < wt.simulate(jobs, "easy").summary().mean_wait
    assert "a shorter request" in linear_text(weights)


def test_order_choice__is_none_for_few_starts():
    everybody = np.ones(4, bool)
    assert order_choice(recorded_choices(BY_HAND, 4, everybody), BY_HAND, everybody, everybody) is None
    assert order_choice(recorded_choices(BY_HAND, 4, ~everybody), BY_HAND, everybody, everybody) is None
