"""The environments of Gymnasium: its checker, determinism, what is observed, rewarded, and refused."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime import learn
from walltime.learn.batch import FINAL_REWARDS

gymnasium = pytest.importorskip("gymnasium")

LOG = wt.workloads.Lublin99().generate(jobs=300, machine_procs=32, load=0.9, seed=3)
EPISODES = learn.windows(LOG, 50, warm="easy")
VARIANTS = [
    {},
    {"skip": True, "slots": 5},
    {"committed": True},
    {"decision": "backfill"},
    {"decision": "both", "slots": 5},
    {"decision": "both", "skip": True},
    {"decision": "formula", "dense": False},
    {"dialect": "rlscheduler", "dense": False, "baseline": "sjf"},
    {"observation": "published", "dialect": "rlscheduler"},
    {"observation": "published", "decision": "backfill", "reward": "wait", "baseline": "fcfs"},
    {"observation": "published", "slots": 3, "dense": False, "reward": "p90_wait"},
    {"selection": "published", "slots": 3, "backfilling": False, "reward": "slowdown"},
]


def make(**options):
    return gymnasium.make(learn.env.ID, jobs=EPISODES, **options)


def as_bytes(value) -> bytes:
    if isinstance(value, dict):
        return b"".join(as_bytes(value[name]) for name in sorted(value))
    return np.asarray(value).tobytes()


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_checker__has_no_complaint(options):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**options, invalid="first").unwrapped)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_environments__are_the_same_alone_side_by_side_and_with_any_number_of_threads(options):
    count, steps, seed = 5, 150, 7
    vectors = [
        gymnasium.make_vec(learn.env.ID, num_envs=count, jobs=EPISODES, threads=threads, invalid="first", **options)
        for threads in (1, 2, 2)
    ]
    assert vectors[0].metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP
    singles = [make(**options, invalid="first") for _ in range(count)]
    seen = [vector.reset(seed=seed) for vector in vectors]
    alone = [env.reset(seed=seed + i) for i, env in enumerate(singles)]
    draw, over = np.random.default_rng(1), np.zeros(count, bool)
    ended = 0
    for _ in range(steps):
        assert len({as_bytes(one[0]) + as_bytes(one[1]["action_mask"]) for one in seen}) == 1
        assert vectors[0].observation_space.contains(seen[0][0])
        for i, own in enumerate(alone):
            row = {name: values[i] for name, values in seen[0][0].items()} if isinstance(seen[0][0], dict) else seen[0][0][i]
            assert as_bytes(row) == as_bytes(own[0])
            assert np.array_equal(own[-1]["action_mask"], seen[0][1]["action_mask"][i])
            assert np.array_equal(singles[i].unwrapped.action_masks(), vectors[0].action_masks()[i])
        actions = draw.integers(0, vectors[0].single_action_space.n, count)
        stepped = [vector.step(actions) for vector in vectors]
        assert len({as_bytes(one[1]) + as_bytes(one[2]) for one in stepped}) == 1
        alone = []
        for i, env in enumerate(singles):
            if over[i]:
                alone.append(env.reset())
                assert stepped[0][1][i] == 0.0
            else:
                observed, reward, _, _, info = env.step(actions[i])
                assert reward == stepped[0][1][i]
                alone.append((observed, info))
        over = stepped[0][2]
        ended += int(over.sum())
        seen = [(one[0], one[4]) for one in stepped]
    assert ended > 0
    for vector in vectors:
        vector.close()


def share(value: float, scale: float) -> float:
    return min(math.log1p(value) / math.log1p(scale), 1.0)


@pytest.mark.parametrize("observation", ["compact", "published"])
def test_observation__is_what_its_features_say(observation):
    env = make(observation=observation, decision="backfill").unwrapped
    (seen, info), over = env.reset(seed=1, options={"episode": 2}), False
    looked = 0
    while not over:
        jobs, now = env.episode.workload, info["time"]
        start, ran = env.starts(), env.episode.running
        busy = (
            jobs.procs[(start >= 0) & (start + np.minimum(jobs.runtime, jobs.requested) > now)].sum()
            + ran[ran[:, 0] + ran[:, 1] > now, 3].sum()
        )
        waits = np.flatnonzero((jobs.submit <= now) & (start < 0))
        table = seen["jobs"] if observation == "compact" else seen
        rows = []
        for i, job in enumerate(waits[: len(table)]):
            wait, planned, procs = int(now - jobs.submit[job]), int(jobs.planned[job]), int(jobs.procs[job])
            fits = float(procs <= 32 - busy)
            if observation == "compact":
                row = [
                    1,
                    share(wait, 604800),
                    share(planned, 604800),
                    procs / 32,
                    fits,
                    share(wait / planned, 1000),
                    info["action_mask"][i],
                ]
            else:
                shares = [wait / 43200, planned / int(LOG.runtime.max()), procs / 32]
                user = min(LOG.columns["user"][0] / LOG.columns["user"].max(), 0.99999) if "user" in jobs.columns else 1.0
                row = [*(min(value, 0.99999) for value in shares), 1, user, 1, None, 0.99999 if fits else 0.00001]
            rows.append(row)
        for row, found in zip(rows, table, strict=False):
            for value, told in zip(row, found, strict=True):
                assert value is None or told == pytest.approx(value, abs=1e-6)
        assert (table[len(rows) :] == [feature.padding for feature in learn.FEATURES[observation]]).all()
        if observation == "compact":
            work = int((jobs.planned * jobs.procs)[waits].sum())
            told = [(32 - busy) / 32, share(len(waits), 1024), share(work / 32, 2592000)]
            assert seen["queue"][:3] == pytest.approx(told, abs=1e-6)
            assert seen["queue"][5] == pytest.approx(now % 86400 / 86400, abs=1e-6)
            assert seen["queue"][3] > 0  # a head has a reservation
        looked += len(waits)
        seen, _, over, _, info = env.step(int(env.action_masks().argmax()))
    assert looked > 50


def play(env, options=None) -> float:
    env.reset(seed=1, options=options)
    total, over = 0.0, False
    while not over:
        _, reward, over, _, _ = env.step(0)
        total += reward
    return total


@pytest.mark.parametrize(
    ("reward", "metric"),
    [("wait", "mean_wait"), ("response", "mean_response"), ("slowdown", "mean_slowdown"), ("bounded_slowdown", "mean_bounded_slowdown")],
)
def test_rewards__add_up_to_the_metric(reward, metric):
    jobs = wt.workloads.Lublin99().generate(jobs=200, machine_procs=32, load=0.9, seed=4)
    schedule = wt.simulate(jobs, "easy")
    found = getattr(schedule.summary(), metric)
    if metric == "mean_slowdown":
        found = float(np.mean((schedule.end - jobs.submit) / np.maximum(schedule.runtime, 1)))
    for dense in (True, False):
        env = gymnasium.make(learn.env.ID, jobs=jobs, reward=reward, dense=dense)
        assert play(env) == pytest.approx(-found)
        assert env.unwrapped.baseline("fcfs") == pytest.approx(found)
        assert play(gymnasium.make(learn.env.ID, jobs=jobs, reward=reward, dense=dense, baseline="fcfs")) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("reward", FINAL_REWARDS)
def test_rewards__at_the_end_can_be_any_metric_of_a_schedule(reward):
    jobs = wt.workloads.Lublin99().generate(jobs=100, machine_procs=32, load=0.9, seed=4)
    found = getattr(wt.simulate(jobs, "easy").summary(), reward)
    env = gymnasium.make(learn.env.ID, jobs=jobs, reward=reward, dense=False)
    assert play(env) == pytest.approx(found if reward == "utilization" else -found)
    assert play(gymnasium.make(learn.env.ID, jobs=jobs, reward=reward, dense=False, baseline="fcfs")) == pytest.approx(0.0)
    with raises(wt.PolicyError, "sparse_reward"):
        gymnasium.make(learn.env.ID, jobs=jobs, reward=reward)


def test_parts_of_a_log__do_not_overlap_and_the_test_is_later():
    train, test = (learn.windows(LOG, 30, part=part) for part in ("train", "test"))
    assert (len(train), len(test)) == (6, 3)
    assert max(one.workload.submit[-1] for one in train) <= min(one.workload.submit[0] for one in test)
    numbers = [number for one in train + test for number in one.workload.job_id]
    assert len(set(numbers)) == len(numbers)


def test_models_and_shaken_logs__give_episodes():
    drawn = [wt.workloads.Lublin99().generate(jobs=20, machine_procs=32, load=0.7, seed=seed) for seed in range(3)]
    shaken = [one for seed in range(2) for one in learn.windows(wt.workloads.shake(LOG, seed), 100, warm="easy")]
    assert [len(drawn), len(shaken)] == [3, 6]
    assert not np.array_equal(shaken[0].workload.submit, shaken[3].workload.submit)
    play(gymnasium.make(learn.env.ID, jobs=drawn + shaken), {"episode": 8})


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_wrappers_that_sum_up_episodes__can_be_used(options):
    one = gymnasium.wrappers.RecordEpisodeStatistics(make(**options, invalid="first"))
    one.reset(seed=1, options={"episode": 0})
    over, total = False, 0.0
    while not over:
        _, reward, over, _, info = one.step(0)
        total += reward
    assert info["episode"]["r"] == pytest.approx(total, rel=1e-6)
    assert info["episode_number"] == 0
    many = gymnasium.make_vec(learn.env.ID, num_envs=3, jobs=EPISODES, **options, invalid="first")
    many = gymnasium.wrappers.vector.RecordEpisodeStatistics(many)
    _, info = many.reset(seed=1)
    while "episode" not in info:
        _, _, _, _, info = many.step(np.zeros(3, int))
    many.close()


def test_windows_that_overlap__begin_anywhere_in_their_part():
    train, test = (learn.overlapping(LOG, 30, episodes=40, seed=1, part=part, warm="easy") for part in ("train", "test"))
    assert [len(train), len(test)] == [40, 40]
    assert max(one.workload.submit[-1] for one in train) <= min(one.workload.submit[one.waiting] for one in test)
    begins = [one.begin for one in train]
    assert len(set(begins)) > 20
    assert begins == [one.begin for one in learn.overlapping(LOG, 30, episodes=40, seed=1, part="train", warm="easy")]
    assert all(len(one.workload) == 30 + one.waiting and "windows that overlap" in one.workload.origin.steps[-1] for one in train)


def test_windows_of_a_log__are_observed_on_its_scales():
    for part in ("train", "test"):
        for one in (*learn.windows(LOG, 30, part=part), *learn.overlapping(LOG, 30, episodes=3, part=part)):
            assert one.scales["runtime"] == LOG.runtime.max()
    assert learn.Episode(LOG.take(np.arange(9), "few")).scales["runtime"] == LOG.runtime[:9].max()


def test_slots__show_the_shortest_and_the_smallest_in_turn():
    columns = {"runtime": [100, 1, 2, 3, 9, 9, 9], "procs": [4, 4, 3, 3, 1, 2, 2]}
    jobs = wt.Workload.from_arrays(submit=[0, 1, 1, 1, 1, 1, 1], **columns, machine_procs=4)
    env = gymnasium.make(learn.env.ID, jobs=jobs, selection="published", slots=4, backfilling=False).unwrapped
    env.reset()
    env.step(0)
    assert env.waiting().tolist() == [1, 4, 2, 5]
    assert gymnasium.make(learn.env.ID, jobs=jobs, observation="published").unwrapped._batch.rules.alternates
    assert not gymnasium.make(learn.env.ID, jobs=jobs, observation="published", selection="arrival").unwrapped._batch.rules.alternates


def test_forbidden_actions__count_as_the_first_allowed_one():
    env = make(invalid="first").unwrapped
    env.reset(seed=1)
    env.step(31)
    assert env._batch.state[0].masked == 1


@pytest.mark.parametrize(
    ("action", "code"), [(31, "forbidden_action"), (-1, "unknown_action"), (32, "unknown_action"), (0.5, "unknown_action")]
)
def test_invalid_actions__raise_and_change_nothing(action, code):
    env = make().unwrapped
    env.reset(seed=1)
    with raises(wt.PolicyError, code, f"{action}"):
        env.step(action)
    other = make().unwrapped
    other.reset(seed=1)
    assert as_bytes(env.step(0)[0]) == as_bytes(other.step(0)[0])
    vector = gymnasium.make_vec(learn.env.ID, num_envs=2, jobs=LOG)
    vector.reset(seed=1)
    with raises(wt.PolicyError, code):
        vector.step(np.array([0, action]))
    vector.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decision": "all"}, ("wrong_value", "'all'", "next", "backfill", "formula", "both")),
        ({"baseline": "best"}, ("wrong_value", "baseline")),
        ({"reward": "fun"}, ("wrong_value", "reward")),
        ({"selection": "first"}, ("wrong_value", "'first'", "arrival", "published")),
        ({"slots": 0}, ("wrong_value", "slots")),
        ({"decision": "backfill", "backfilling": False}, ("conflicting_options",)),
        ({"dialect": "rlscheduler", "committed": False}, ("conflicting_options",)),
        ({"size": 3}, ("unknown_option", "'size'", "jobs", "decision")),
    ],
)
def test_options_that_are_none(options, message):
    with raises(wt.PolicyError, *message):
        make(**options)


@pytest.mark.parametrize(
    "jobs", [[], "log.swf", [5], [LOG, LOG.with_machine(64)], LOG.take(np.zeros(0, np.int64), "nothing")], ids=range(5)
)
def test_jobs_that_are_none(jobs):
    with pytest.raises(wt.WorkloadError):
        gymnasium.make(learn.env.ID, jobs=jobs)


def test_windows_that_are_none():
    for options in ({"jobs": 301}, {"jobs": 200, "part": "train"}, {"part": "late"}):
        with pytest.raises(wt.WorkloadError):
            learn.windows(LOG, **options)
    with raises(wt.PolicyError, "unknown_episode", "6"):
        make().reset(options={"episode": 6})


def test_without_gymnasium__one_clear_line(golden):
    script = """
import sys
sys.modules["gymnasium"] = None
import walltime as wt
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "gymnasium" else real(name, *rest)
try:
    wt.learn.BackfillingEnv
except wt.PolicyError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    golden("learn", found.stdout)


@pytest.mark.parametrize("copied", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy])
def test_pickled_or_copied_environment__goes_on_where_it_was(copied):
    jobs = wt.workloads.Lublin99().generate(200, 64, 0.9, 1)
    env = learn.BackfillingEnv(learn.windows(jobs, 50), invalid="first")
    env.reset(seed=3)
    over = [env.step(k % 3)[2] for k in range(10)]
    assert not any(over)
    other = copied(env)
    for k in range(200):
        mine, theirs = env.step(k % 2), other.step(k % 2)
        assert mine[1:3] == theirs[1:3]
        assert mine[4]["time"] == theirs[4]["time"]
        if mine[2]:
            break
    assert env.starts().tolist() == other.starts().tolist()
    assert env.reset()[1]["episode_number"] == other.reset()[1]["episode_number"]
