"""The agent of `walltime learn`: its gradients, masks, training, the folder that keeps it, and the comparison with formulas."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from validation.importances import importances
from walltime import learn
from walltime.learn import ppo, training
from walltime.learn.batch import Batch, Rules
from walltime.learn.evaluation import SCHEDULERS, Halves, _halves, count_steps, learned_tables
from walltime.learn.features import FORMULAS
from walltime.learn.training import formula_outcomes
from walltime.logs import write_swf

LOG = wt.workloads.Lublin99().generate(jobs=1280, machine_procs=32, load=0.8, seed=3)
TINY = learn.TrainingSettings(episodes=24, together=8, group=4, decisions=500, batch=128, hidden=(8,), hidden_value=(8,))
TASK = learn.Task(window=32)


# ------------------------------------------------------------------------------------------------------------- the agent


def slope(function, array: np.ndarray, place: tuple[int, ...], step: float = 1e-6) -> float:
    before = array[place]
    array[place] = before + step
    more = function()
    array[place] = before - step
    less = function()
    array[place] = before
    return (more - less) / (2 * step)


def test_gradients__are_those_of_finite_differences():
    draw = np.random.default_rng(1)
    network = ppo.Network((5, 4, 3, 1), draw)
    network.parameters = [draw.normal(size=one.shape) for one in network.parameters]
    inputs, weights = draw.normal(size=(7, 5)), draw.normal(size=(7, 1))

    def value() -> float:
        return float((network.forward(inputs)[-1] * weights).sum())

    gradients = network.backward(network.forward(inputs), weights)
    for parameter, gradient in zip(network.parameters, gradients, strict=True):
        assert parameter.shape == gradient.shape
        for place in np.ndindex(parameter.shape):
            assert gradient[place] == pytest.approx(slope(value, parameter, place), abs=1e-6)


def test_objective__has_the_gradient_that_it_says():
    draw = np.random.default_rng(2)
    choices = np.array([1, 3, 5, 2, 4])
    first = np.append(0, np.cumsum(choices)[:-1])
    scores = draw.normal(size=choices.sum())
    chosen = first + np.array([0, 2, 1, 1, 3])
    before = ppo.log_softmax(scores, first, choices)[chosen] + np.array([0.0, 0.1, -0.5, 0.5, -0.1])  # some are clipped
    gain = np.array([1.0, -2.0, 3.0, -1.0, 0.5])
    given = (first, choices, chosen, before, gain, 0.2, 0.03)
    _, gradient = ppo.objective(scores, *given)
    for place in range(len(scores)):
        found = slope(lambda: ppo.objective(scores, *given)[0], scores, (place,))
        assert gradient[place] == pytest.approx(found, abs=1e-6)
    logs = ppo.log_softmax(scores, first, choices)
    assert np.add.reduceat(np.exp(logs), first) == pytest.approx(np.ones(5))


@pytest.mark.parametrize(
    "options", [{"decision": "next"}, {"decision": "backfill"}, {"decision": "both"}, {"decision": "both", "skip": True}], ids=str
)
def test_agents__choose_only_what_is_allowed(options):
    episodes = learn.windows(LOG, 64, warm="easy")
    batch = Batch(episodes, Rules(slots=16, **options), 8)
    agent, draw = ppo.Agent(TINY, np.random.default_rng(1)), np.random.default_rng(2)
    played = ppo.play(batch, np.arange(8), agent, draw)
    assert batch.state[:8].masked.tolist() == [0] * 8
    assert batch.over.all()
    assert (played.chosen < played.choices).all()
    assert len(played.inputs) == played.choices.sum()
    assert (np.diff(played.number[played.number == 0]) == 0).all()
    totals = np.array([played.reward[played.number == number].sum() for number in range(8)])
    again = [ppo.play(batch, np.arange(8), agent, np.random.default_rng(2)) for _ in range(2)]
    assert all(one.reward.tobytes() == played.reward.tobytes() for one in again)
    waited = np.array([one.waiting for one in episodes[:8]]) > 0
    costs = np.array([batch.cost(number) for number in range(8)])
    assert -totals[~waited] == pytest.approx(costs[~waited])


def test_rewards_less_those_of_the_group__add_up_to_the_difference_from_its_mean():
    batch = Batch(learn.windows(LOG, 64), Rules(slots=16), 8)
    played = ppo.play(batch, np.repeat([0, 1], 4), ppo.Agent(TINY, np.random.default_rng(1)), np.random.default_rng(2))
    rewards = ppo.subtract_group_mean(played, 8, 4, played.reward)
    costs = np.array([batch.cost(number) for number in range(8)])
    for number in range(8):
        group = slice(number // 4 * 4, number // 4 * 4 + 4)
        assert rewards[played.number == number].sum() == pytest.approx(costs[group].mean() - costs[number])


def test_advantages__are_sums_of_surprises():
    number, rewards, values = np.array([0, 1, 0, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.5, 1.0, 0.0, -1.0, 2.0])
    nothing = np.zeros(5)
    played = ppo.Rollout(number, *[nothing] * 9)
    found = ppo.advantages(played, 2, rewards, values, 0.5)
    last, middle = 5 - 2, 3 + 2 - 0
    assert found[[4, 2, 0]].tolist() == [last, middle + 0.5 * last, 1 + 0 - 0.5 + 0.5 * (middle + 0.5 * last)]
    assert found[[3, 1]].tolist() == [5, 2 - 1 - 1 + 0.5 * 5]


def test_training__finds_that_short_jobs_come_first():
    draw = np.random.default_rng(1)
    runtime = np.where(draw.random(400) < 0.5, 10, 2000)
    jobs = wt.Workload.from_arrays(submit=np.arange(400) * 700, runtime=runtime, procs=np.full(400, 4), machine_procs=4)
    episodes = learn.windows(jobs, 40)
    settings = learn.TrainingSettings(
        episodes=320, together=32, group=8, decisions=4000, batch=256, hidden=(8,), hidden_value=(8,), learning_rate=0.02
    )
    agent, rules = ppo.Agent(settings, np.random.default_rng(1)), Rules(decision="both", slots=32)
    batch, scales = Batch(episodes, rules, 32), formula_outcomes(episodes, rules)[0]
    rows = [ppo.iterate(batch, agent, settings, number, 1, scales) for number in range(settings.iterations)]
    all_of_them = Batch(episodes, rules, len(episodes))
    ppo.play(all_of_them, np.arange(len(episodes)), agent)
    ratio = np.mean([all_of_them.cost(number) for number in range(len(episodes))]) / scales.mean()
    assert rows[0]["cost"] > 2.0
    assert ratio < 1.1


# ---------------------------------------------------------------------------------------------------- training in a folder


def test_training__that_was_stopped_and_resumed_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "VALIDATION_INTERVAL", 2)
    whole = learn.train(LOG, tmp_path / "whole", seed=1, task=TASK, settings=TINY)
    assert (whole.done, whole.is_finished) == (3, True)
    stopped = learn.train(LOG, tmp_path / "parts", seed=1, task=TASK, settings=TINY, minutes=0)
    assert (stopped.done, stopped.is_finished) == (1, False)

    def interrupt(episodes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn.train(LOG, tmp_path / "parts", seed=1, task=TASK, settings=TINY, progress=interrupt)
    assert learn.load(tmp_path / "parts").done == 2  # what was kept when Ctrl-C came
    rest = learn.train(LOG, tmp_path / "parts", seed=1, task=TASK, settings=TINY)
    assert rest.is_finished
    for name in ("agent.npz", "settings.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert [row["cost"] for row in rest.progress] == [row["cost"] for row in whole.progress]
    again = learn.train(LOG, tmp_path / "whole", seed=1, task=TASK, settings=TINY)
    assert again.progress == whole.progress
    other = learn.train(LOG, tmp_path / "other", seed=2, task=TASK, settings=TINY)
    assert other.progress[-1]["cost"] != whole.progress[-1]["cost"]


def test_folder_of_another_training__is_refused(tmp_path):
    learn.train(LOG, tmp_path, seed=1, task=TASK, settings=TINY, minutes=0)
    with raises(wt.errors.OutputError, "other_agent"):
        learn.train(LOG, tmp_path, seed=2, task=TASK, settings=TINY)
    for name, damage in (("settings.json", '"seed": "x"'), ("progress.json", '[{"iteration": null}]'), ("settings.json", "[" * 5000)):
        whole = (tmp_path / name).read_text()
        (tmp_path / name).write_text(damage if damage.startswith("[") else whole.replace('"seed": 1', damage))
        with raises(wt.PolicyError, "no_agent"):
            learn.load(tmp_path)
        (tmp_path / name).write_text(whole)
    (tmp_path / "agent.npz").write_bytes(b"nothing")
    with raises(wt.PolicyError, "no_agent"):
        learn.load(tmp_path)
    with raises(wt.PolicyError, "no_agent"):
        learn.load(tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: learn.Task(reward="p90_wait"), ("wrong_value", "p90_wait")),
        (lambda: learn.Task(test_share=1.0), ("wrong_value", "0", "1")),
        (lambda: learn.TrainingSettings(together=10, group=4), ("number_out_of_range", "4", "10")),
        (lambda: learn.TrainingSettings(episodes=0), ("wrong_value", "episodes", "1")),
        (lambda: learn.evaluate([], LOG), ("no_agent",)),
    ],
)
def test_settings_that_are_none(make, message):
    with raises(wt.PolicyError, *message):
        make()


def test_logs_that_are_too_short(tmp_path):
    with raises(wt.WorkloadError, "too_few_windows"):
        learn.train(LOG, tmp_path, task=learn.Task(window=300))


# -------------------------------------------------------------------------------------------------------- the comparison


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agents")
    for seed in (1, 2):
        learn.train(LOG, folder / str(seed), seed=seed, task=TASK, settings=TINY)
    return [folder / "1", folder / "2"]


@pytest.mark.parametrize("label", SCHEDULERS)
def test_costs_of_schedulers__are_those_of_simulations(label):
    draw = np.random.default_rng(5)
    submit = np.sort(draw.integers(0, 40_000, 150))
    submit -= submit[0]
    procs = draw.integers(2, 16, 150)  # UNICEF's scores of serial jobs are infinite, and ties are another matter
    jobs = wt.Workload.from_arrays(submit=submit, runtime=draw.integers(1, 6000, 150), procs=procs, machine_procs=24)
    expected = wt.simulate(jobs, label)
    episodes = learn.sources.as_episodes(jobs)
    assert Batch(episodes, TASK.rules).play(0, *SCHEDULERS[label]).tolist() == expected.start.tolist()
    found = formula_outcomes(episodes, TASK.rules, SCHEDULERS[label])[0]
    assert found.tolist() == pytest.approx([expected.summary().mean_bounded_slowdown])


def test_evaluation__has_every_scheduler_in_pairs(agents):
    done: list[int] = []
    found = learn.evaluate(agents, LOG, progress=done.append)
    assert done == list(range(1, count_steps(2) + 1))
    assert [one.scheduler for one in found.compared] == list(SCHEDULERS)
    assert found.windows == len(TASK.windows(LOG, "test")) == 12
    own = np.array([found.costs[f"agent {seed}, seed {seed}"] for seed in (1, 2)])
    easy = next(one for one in found.compared if one.scheduler == "easy")
    differences = (np.log(own) - np.log(found.costs["easy"])).mean(axis=0)
    assert easy.change.mean == pytest.approx(100 * np.expm1(differences.mean()))
    assert easy.change.low < easy.change.mean < easy.change.high
    assert easy.over_seeds.mean == pytest.approx(easy.change.mean)
    further = wt.metrics.prediction_interval((np.log(own) - np.log(found.costs["easy"])).mean(axis=1))
    assert (easy.over_seeds.low, easy.over_seeds.high) == pytest.approx((100 * np.expm1(further.low), 100 * np.expm1(further.high)))
    assert found.mean == pytest.approx(own.mean())
    important = importances([learn.load(folder) for folder in agents], LOG)
    assert {one.feature for one in important} == {name for name in ppo.INPUTS if name != "waits"}
    assert {one.feature for one in important if one.slope is None} == {feature.name for feature in learn.QUEUE}
    assert found.table().shape == (12, 1 + len(SCHEDULERS) + 2)
    assert json.loads(json.dumps(found.as_dict()))["windows"] == 12
    assert any("easy:order=f4" in sentence for sentence in found.verdict)
    again = learn.evaluate(agents, LOG)
    assert again.as_dict() == found.as_dict()


def test_evaluation__of_one_agent_on_another_machine(agents):
    other = wt.workloads.Lublin99().generate(jobs=640, machine_procs=64, load=0.8, seed=9)
    found = learn.evaluate(agents[0], other)
    assert all(one.over_seeds is None for one in found.compared)
    assert found.trained_on != found.log
    start = learn.load(agents[0]).starts(other)
    assert (start >= other.submit).all()
    assert wt.metrics.busy_processors(start, start + other.runtime, other.procs)[1].max() <= 64
    with raises(wt.PolicyError, "mixed_agents"):
        learn.evaluate([agents[0], learn.train(other, agents[0].parent / "3", task=TASK, settings=TINY)], LOG)


def test_evaluation__of_a_function_that_decides_like_a_trained_agent_is_the_same(agents):
    trained = learn.load(agents[0])

    def decide(seen, mask):
        may = np.flatnonzero(mask)
        jobs = np.zeros((len(may), seen["jobs"].shape[1]), np.float32)
        inside = may < len(seen["jobs"])
        jobs[inside] = seen["jobs"][may[inside]]
        return may[trained.agent.scores(np.hstack([jobs, np.tile(seen["queue"], (len(may), 1))])).argmax()]

    found = learn.evaluate(decide, LOG, task=TASK, decision="both", slots=128)
    own = learn.evaluate(trained, LOG)
    assert found.costs["agent 1, decide"] == own.costs["agent 1, seed 1"]
    assert [one.change for one in found.compared] == [one.change for one in own.compared]
    assert (found.mean, found.longest_wait, found.halves) == (own.mean, own.longest_wait, own.halves)
    assert found.trained_on == ""
    assert [one["name"] for one in found.agents] == ["decide"]
    assert learned_tables(found)[0].title.endswith("jobs, 1 agent")


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"decision": "next"}, "easy"),
        ({"decision": "next", "observation": "published", "selection": "arrival"}, "easy"),
        ({"decision": "next", "backfilling": False}, "fcfs"),
        ({"decision": "formula"}, "easy"),
    ],
    ids=str,
)
def test_evaluation__of_a_function_has_the_options_of_its_environment(options, same):
    shapes = set()

    def first_come(seen, mask):
        shapes.add(np.shape(seen["jobs"] if isinstance(seen, dict) else seen))
        assert mask.dtype == bool
        return FORMULAS.index("fcfs") if options["decision"] == "formula" else int(mask.argmax())

    done: list[int] = []
    found = learn.evaluate([first_come, first_come], LOG, task=TASK, progress=done.append, **options)
    assert done == list(range(1, len(SCHEDULERS) + 3))
    assert found.costs["agent 2, first_come"] == found.costs[same]
    assert shapes == {(128 if "observation" in options else 32, len(learn.FEATURES[options.get("observation", "compact")]))}


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (32, ("unknown_action", "32", "0", "31")),
        (-1, ("unknown_action", "-1")),
        (0.5, ("unknown_action", "0.5")),
        ([1, 2], ("unknown_action", "1", "2")),
        (None, ("unknown_action", "None")),
    ],
)
def test_evaluation__of_a_function_that_returns_no_action(action, message):
    with raises(wt.PolicyError, *message):
        learn.evaluate(lambda seen, mask: action, LOG, task=TASK)


def test_evaluation__has_the_schedules_of_each_window(agents):
    found = learn.evaluate(agents, LOG)
    for name in ("easy", "fcfs", next(reversed(found.costs))):
        schedules = found.schedules(name)
        assert len(schedules) == found.windows
        costs = [float(one.metric("mean_bounded_slowdown")) for one in schedules]
        assert costs == pytest.approx(found.costs[name])
    with raises(wt.PolicyError, "unknown_scheduler", "'ppo'"):
        found.schedules("ppo")


def test_evaluation__of_agents_and_options_that_do_not_fit(agents):
    def first(seen, mask):
        return 0

    for given, options, message in (
        ([first, agents[0]], {}, ("mixed_agents",)),
        (agents, {"task": TASK}, ("conflicting_options",)),
        (agents, {"slots": 8}, ("conflicting_options",)),
        (first, {"reward": "wait"}, ("conflicting_options", "task=Task(reward='wait')")),
        (first, {"colour": 1}, ("unknown_option", "'colour'")),
        (7, {}, ("wrong_type", 7)),
        ([first, 7], {}, ("wrong_type", 7)),
    ):
        with raises(wt.PolicyError, *message):
            learn.evaluate(given, LOG, **options)


def test_agent_file__names_what_is_decided_and_other_decisions_are_refused(agents, tmp_path):
    copy = shutil.copytree(agents[0], tmp_path / "agent")
    kept = json.loads((copy / "settings.json").read_text())
    assert (kept["task"]["decision"], kept["task"]["slots"]) == ("both", 128)
    for name, value in (("decision", "next"), ("slots", 32)):
        (copy / "settings.json").write_text(json.dumps(kept | {"task": kept["task"] | {name: value}}))
        with raises(wt.PolicyError, "other_agent", name, f"{value!r}"):
            learn.load(copy)


@pytest.mark.slow
def test_command_line__trains_and_compares(golden, tmp_path, capsys):
    write_swf(tmp_path / "log.swf", wt.workloads.Lublin99().generate(jobs=1800, machine_procs=32, load=0.8, seed=1))
    status, out, err = call(capsys, "learn", "train", tmp_path / "log.swf", "--episodes", 100, "--out", tmp_path / "a")
    assert status == 0
    assert all(line.startswith("walltime: episodes: ") for line in err.splitlines()), "progress on a slow machine, and nothing else"
    assert "trained; 1 of 1 iterations" in out
    status, out, _ = call(capsys, "learn", "evaluate", tmp_path / "a", "--out", tmp_path / "costs.csv", "--json")
    found = json.loads(out)
    assert (status, found["window"], len(found["compared"])) == (0, 256, len(SCHEDULERS))
    assert (tmp_path / "costs.csv").read_text().count("\n") == found["windows"] + 1
    status, out, _ = call(capsys, "learn", "evaluate", tmp_path / "a", "--report", tmp_path / "page.html")
    assert status == 0
    assert "easy:order=f4" in out
    golden("learn", out)
    page = (tmp_path / "page.html").read_text()
    assert "no clear difference" in page


def test_damaged_agent__one_line(agents, tmp_path):
    damaged = shutil.copytree(agents[0].parent / agents[0].name, tmp_path / "damaged")
    (damaged / "agent.npz").write_bytes((damaged / "agent.npz").read_bytes()[:500])
    with raises(wt.PolicyError, "no_agent"):
        learn.load(damaged)
    with raises(wt.errors.OutputError, "damaged_agent"):
        learn.train(LOG, damaged, task=TASK, settings=TINY, seed=learn.load(agents[0]).seed)


@pytest.mark.slow
def test_command_line__a_log_that_has_changed_is_told(golden, tmp_path, capsys):
    log = tmp_path / "log.swf"
    made = wt.workloads.Lublin99().generate(jobs=2000, machine_procs=32, load=0.8, seed=1)
    write_swf(log, made)
    call(capsys, "learn", "train", log, "--episodes", 128, "--out", tmp_path / "a")
    write_swf(log, wt.workloads.head(made, 1800))
    golden("learn", one_line(*call(capsys, "learn", "evaluate", tmp_path / "a")))
    assert call(capsys, "learn", "evaluate", tmp_path / "a", "--log", log)[0] == 0


@pytest.mark.parametrize(
    "words",
    [
        ["train", "lublin98", "--out", "a"],
        ["train", "log.swf", "--reward", "p90_wait", "--out", "a"],
        ["train", "log.swf", "--out", "a"],
        ["evaluate", "nowhere"],
        ["evaluate", "nowhere", "--out", "a.txt"],
    ],
)
def test_command_line__wrong_calls_get_one_line(golden, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    write_swf(tmp_path / "log.swf", wt.workloads.Lublin99().generate(jobs=500, machine_procs=32, load=0.8, seed=1))
    golden("learn", one_line(*call(capsys, "learn", *words)))


def test_evaluation__is_over_blocks_and_says_where_the_halves_of_a_log_differ(golden, agents):
    found = learn.evaluate(agents, LOG)
    own = np.mean([np.log(found.costs[f"agent {seed}, seed {seed}"]) for seed in (1, 2)], axis=0)
    expected = wt.metrics.series_interval(own - np.log(found.costs["easy"]))
    easy = found.compared[0].change
    assert (easy.low, easy.high) == pytest.approx((100 * np.expm1(expected.low), 100 * np.expm1(expected.high)))
    assert "blocks of neighbours" in easy.what
    golden("learn", found.as_dict()["caveats"])
    assert f"of {len(found.compared)} other schedulers" in found.verdict[0]
    changed = replace(found, halves=Halves(-10.0, -60.0, differ=True))
    assert not any("halves" in one for one in replace(found, halves=Halves(-10.0, -12.0, differ=False)).caveats)
    assert "-10 % in the earlier half" in changed.caveats[0]
    assert changed.as_dict()["caveats"][0] == changed.caveats[0]


def test_halves__of_a_log_whose_later_half_is_busy_differ():
    first, last = (wt.workloads.Lublin99().generate(jobs=1280, machine_procs=32, load=load, seed=3) for load in (0.3, 1.2))
    columns = {name: np.concatenate([getattr(first, name), getattr(last, name)]) for name in ("runtime", "procs")}
    submit = np.concatenate([first.submit, last.submit - last.submit[0] + first.submit[-1] + 1])
    log = wt.Workload.from_arrays(submit=submit, machine_procs=32, **columns)
    found = _halves(TASK.windows(log, "all"), TASK.rules, "bounded_slowdown")
    assert found.differ
    assert found.late < found.early
    assert not _halves(TASK.windows(LOG, "all"), TASK.rules, "bounded_slowdown").differ
