"""An agent in numpy that learns to schedule with proximal policy optimisation (PPO) and action masks.

A small network scores each allowed job from observations of the job and the queue; the agent chooses by the softmax of the scores. An
iteration plays whole episodes, several at once, and then improves the network by the clipped objective of schulman17, with generalised
advantages.

Two techniques handle metrics in which a few windows weigh a hundred times as much as others. Rewards are divided by a simple scheduler's
cost in the same episode. And all members of a group play the same episode: their mean reward in the same seconds is subtracted, so that
effects of the jobs alone cancel (common random numbers).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.learn.batch import Batch
from walltime.learn.features import COMPACT, QUEUE
from walltime.specification import Specification

Array = np.ndarray
JOB, ALL = len(COMPACT), len(COMPACT) + len(QUEUE)
INPUTS = (*(feature.name for feature in COMPACT), *(feature.name for feature in QUEUE))
"""Number of features of a choice and of the queue; the choice to skip is a slot without a job."""
PROCESSORS = INPUTS.index("processors")
BOUND = np.float32(5.0)
"""Largest absolute advantage, in standard deviations."""
Count = Annotated[int, Field(least=1)]
Widths = Annotated[tuple[int, ...], Field(least=1, most=4096, label="numbers from 1 to 4,096")]


@dataclass(frozen=True)
class TrainingSettings(Specification):
    """Settings of the learning algorithm.

    `episodes`: total number; `together`: number per iteration, in groups of `group` that play the same episode. `learning_rate`: rate of
    the first iteration, falling to 0. `trace`: the lambda of generalised advantages. `clip`: maximum change of a probability ratio in an
    iteration. `entropy`: the weight of the policy's entropy, falling to 0. `epochs`: passes over at most `decisions` of an iteration, in
    mini-batches of `batch`. `hidden`, `hidden_value`: the widths of the networks.
    """

    episodes: Count = 10_240
    together: Count = 128
    group: Count = 8
    learning_rate: float = 3e-3
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    epochs: Count = 3
    decisions: Count = 24_000
    batch: Count = 1024
    hidden: Widths = (32, 16)
    hidden_value: Widths = (64, 32)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.together % self.group:
            raise PolicyError(f"group must be a divisor of together={self.together}, not {self.group}", "number_out_of_range")

    @property
    def iterations(self) -> int:
        """Return the number of iterations."""
        return -(-self.episodes // self.together)


class Network:
    """A network of linear layers with tanh between them, float32; `parameters`: weights (inputs x outputs) and biases, alternately."""

    def __init__(self, widths: tuple[int, ...], draw: np.random.Generator):
        self.parameters: list[Array] = []
        for number, (before, after) in enumerate(pairwise(widths)):
            spread = (0.01 if number == len(widths) - 2 else 1.4) / np.sqrt(before)
            self.parameters += [(draw.normal(size=(before, after)) * spread).astype(np.float32), np.zeros(after, np.float32)]
        self.moments = [np.zeros_like(one) for one in self.parameters + self.parameters]
        self.steps = 0

    def forward(self, inputs: Array) -> list[Array]:
        """Return the inputs (rows x features) and the output of each layer; the last one has one column."""
        layers = [inputs]
        for weights, bias in zip(self.parameters[::2], self.parameters[1::2], strict=True):
            out = layers[-1] @ weights + bias
            layers.append(out if len(layers) == len(self.parameters) // 2 else np.tanh(out, out=out))
        return layers

    def backward(self, layers: list[Array], gradient: Array) -> list[Array]:
        """Return the gradients of the parameters from the output's `gradient` (rows x 1)."""
        gradients: list[Array] = []
        for number in range(len(self.parameters) // 2 - 1, -1, -1):
            before = layers[number]
            gradients += [gradient.sum(axis=0), before.T @ gradient]
            if number:
                gradient = (gradient @ self.parameters[2 * number].T) * (1 - before * before)
        return gradients[::-1]

    def descend(self, gradients: list[Array], rate: float) -> None:
        """Take a step of the Adam optimiser; gradients are clipped to a norm of 1."""
        length = float(np.sqrt(sum(float((one * one).sum()) for one in gradients)))
        self.steps += 1
        rate *= np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        count = len(self.parameters)
        for number, (own, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            gradient = gradient * np.float32(min(1.0, 1.0 / (length + 1e-9)))
            first, second = self.moments[number], self.moments[count + number]
            first += np.float32(0.1) * (gradient - first)
            second += np.float32(0.001) * (gradient * gradient - second)
            own -= np.float32(rate) * first / (np.sqrt(second) + np.float32(1e-8))


class Agent:
    """The policy network, the value network (for training), and the scale of the inputs.

    `scale`: the mean and the inverse standard deviation of each input, from the first decisions; None before them.
    """

    def __init__(self, settings: TrainingSettings, draw: np.random.Generator):
        self.policy = Network((ALL + 1, *settings.hidden, 1), draw)
        self.value = Network((ALL + 3, *settings.hidden_value, 1), draw)
        self.scale: Array | None = None

    def prepare(self, seen: Array) -> Array:
        """Return the scaled inputs of the networks: the observations (rows x INPUTS), and the logarithm of the processors."""
        small = np.log1p(127 * seen[:, PROCESSORS, None]) / np.float32(np.log(128))
        inputs = np.concatenate([seen, small], axis=1)
        if self.scale is None:
            self.scale = np.stack([inputs.mean(axis=0), 1 / (inputs.std(axis=0) + np.float32(0.05))])
        inputs -= self.scale[0]
        inputs *= self.scale[1]
        return inputs

    def scores(self, seen: Array) -> Array:
        """Return the score of each choice; the best choice of a decision has the highest score."""
        return self.policy.forward(self.prepare(seen))[-1][:, 0]


@dataclass
class Rollout:
    """The decisions of some episodes in order of time; arrays with a row for each.

    `number`: the environment. `choices`: number of choices; `chosen`: the chosen one. `inputs`: the inputs of all choices, decision by
    decision. `chance`: logarithm of the chosen one's probability. `spread`: the entropy. `now`, `then` (s): the time of the decision
    and of the next one. `left`: number of jobs that have not started. `reward`: the reward until the next decision.
    """

    number: Array
    choices: Array
    chosen: Array
    inputs: Array
    chance: Array
    spread: Array
    now: Array
    then: Array
    left: Array
    reward: Array


def log_softmax(scores: Array, first: Array, choices: Array) -> Array:
    """Return the logarithms of the probabilities of all choices; each decision's choices are `choices` rows from `first` on."""
    scores = scores - np.repeat(np.maximum.reduceat(scores, first), choices)
    return scores - np.repeat(np.log(np.add.reduceat(np.exp(scores), first)), choices)


def candidates(batch: Batch) -> tuple[Array, Array, Array]:
    """Return the allowed choices in unfinished episodes: environment, action, and observation of each row."""
    allowed = (batch.mask[: batch.count] != 0) & ~batch.over[:, None]
    number, action = np.nonzero(allowed)
    seen = np.zeros((len(number), ALL), np.float32)
    jobs = action < batch.rules.shown
    seen[jobs, :JOB] = batch.seen[number[jobs], action[jobs]]
    seen[:, JOB:] = batch.summary[number]
    return number, action, seen


def play(
    batch: Batch,
    episodes: Array,
    agent: Agent,
    draw: np.random.Generator | None = None,
    change: Callable[[Array, Array], None] | None = None,
) -> Rollout | None:
    """Play an episode (by number) in each environment to its end: at random if `draw` is given, otherwise by the highest score.

    `change`: called with the observations and the first row of each decision, to modify them. Returns the decisions of random play.
    """
    batch.step(-1 - episodes)
    count = batch.count
    kept: list[tuple[Array, ...]] = []
    while not batch.over.all():
        number, action, seen = candidates(batch)
        first = np.flatnonzero(np.diff(number, prepend=-1))
        choices, who = np.diff(first, append=len(number)), number[first]
        if change is not None:
            change(seen, first)
        inputs = agent.prepare(seen)
        scores = agent.policy.forward(inputs)[-1][:, 0]
        tried = scores if draw is None else scores + draw.gumbel(size=len(scores)).astype(np.float32)
        rows = np.full((count, batch.rules.actions), -np.inf, np.float32)
        rows[number, action] = tried
        actions = rows.argmax(axis=1)
        if draw is None:
            batch.step(actions)
            continue
        chosen = np.flatnonzero(action == actions[number]) - first
        logs = log_softmax(scores, first, choices)
        spread = -np.add.reduceat(np.exp(logs) * logs, first)
        now, left = batch.now[who], batch.left[who]
        batch.step(actions)
        kept.append((who, choices, chosen, inputs, logs[first + chosen], spread, now, batch.now[who], left, batch.rewards[who]))
    return Rollout(*(np.concatenate(part) for part in zip(*kept, strict=True))) if draw is not None else None


def subtract_group_mean(played: Rollout, count: int, group: int, rewards: Array) -> Array:
    """Return the rewards minus the mean over all members of a group in the same seconds; each group has played one episode."""
    relative = rewards.copy()
    rows = [np.flatnonzero(played.number == number) for number in range(count)]
    times = [np.append(played.now[own[0]], played.then[own]) for own in rows]
    so_far = [np.append(0.0, np.cumsum(rewards[own])) for own in rows]
    for number, own in enumerate(rows):
        members = range(number // group * group, number // group * group + group)
        mean = np.mean([np.interp(times[number], times[one], so_far[one]) for one in members], axis=0)
        mean[-1] = np.mean([so_far[one][-1] for one in members])
        relative[own] -= np.diff(mean)
    return relative


def advantages(played: Rollout, count: int, rewards: Array, values: Array, trace: float) -> Array:
    """Return undiscounted generalised advantage estimates, one for each decision."""
    sums = np.zeros(len(rewards))
    for number in range(count):
        own = np.flatnonzero(played.number == number)
        surprise = rewards[own] + np.append(values[own][1:], 0.0) - values[own]
        total = 0.0
        for place in range(len(own) - 1, -1, -1):
            total = surprise[place] + trace * total
            sums[own[place]] = total
    return sums


def objective(
    scores: Array, first: Array, choices: Array, chosen: Array, before: Array, gain: Array, clip: float, entropy: float
) -> tuple[float, Array]:
    """Return the negated clipped objective, and its gradient with respect to the scores; both are means over decisions.

    `chosen`: the row of each chosen job; `before`: the logarithm of its probability at the decision; `gain`: its advantage.
    """
    logs = log_softmax(scores, first, choices)
    chances, ratio = np.exp(logs), np.exp(logs[chosen] - before)
    bounded = np.minimum(gain * ratio, gain * np.clip(ratio, 1 - clip, 1 + clip))
    spread = -np.add.reduceat(chances * logs, first)
    moves = np.where(gain > 0, ratio < 1 + clip, ratio > 1 - clip)
    pull = -gain * ratio * moves / len(first)
    gradient = -chances * np.repeat(pull, choices)
    gradient[chosen] += pull
    gradient += entropy / len(first) * chances * (logs + np.repeat(spread, choices))
    return -float(bounded.mean() + entropy * spread.mean()), gradient


def iterate(batch: Batch, agent: Agent, settings: TrainingSettings, number: int, seed: int, scales: Array) -> dict[str, float]:
    """Play episodes and update the agent in one iteration; the result depends only on the agent, the iteration's number and the seed.

    `scales`: the cost of a simple scheduler in each episode. Returns the mean `cost` against it, the `entropy`, and the `decisions`.
    """
    draw = np.random.default_rng([seed, number])
    rest = 1 - number / settings.iterations
    count, groups = batch.count, batch.count // settings.group
    episodes = np.repeat(draw.choice(len(batch.episodes), groups, replace=len(batch.episodes) < groups), settings.group)
    played = play(batch, episodes, agent, draw)
    assert played is not None
    own = scales[episodes]
    rewards = subtract_group_mean(played, count, settings.group, played.reward / own[played.number])
    begins = np.append(0, np.cumsum(played.choices)[:-1])
    means = np.add.reduceat(played.inputs, begins) / played.choices[:, None]
    state = np.column_stack([means, played.left / 256, np.log(own)[played.number] / 4]).astype(np.float32)
    values = agent.value.forward(state)[-1][:, 0]
    gains = advantages(played, count, rewards, values, settings.trace)
    aims = (gains + values).astype(np.float32)
    open_ones = np.flatnonzero(played.choices > 1)
    spread = float(gains[open_ones].std()) + 1e-8 if len(open_ones) else 1.0
    gain = np.clip((gains - gains[open_ones].mean()) / spread if len(open_ones) else gains, -BOUND, BOUND).astype(np.float32)
    used = draw.permutation(open_ones)[: settings.decisions]
    rate = settings.learning_rate * rest
    for _ in range(settings.epochs):
        used = draw.permutation(used)
        for some in np.split(used, range(settings.batch, len(used), settings.batch)):
            if not len(some):
                continue
            choices = played.choices[some]
            first = np.append(0, np.cumsum(choices)[:-1])
            rows = np.repeat(begins[some] - first, choices) + np.arange(choices.sum())
            layers = agent.policy.forward(played.inputs[rows])
            scores, chosen = layers[-1][:, 0], first + played.chosen[some]
            _, gradient = objective(scores, first, choices, chosen, played.chance[some], gain[some], settings.clip, settings.entropy * rest)
            agent.policy.descend(agent.policy.backward(layers, gradient[:, None].astype(np.float32)), rate)
        everywhere = draw.permutation(len(state))[: settings.decisions]
        for some in np.split(everywhere, range(settings.batch, len(everywhere), settings.batch)):
            layers = agent.value.forward(state[some])
            gradient = (layers[-1][:, 0] - aims[some]) / np.float32(len(some))
            agent.value.descend(agent.value.backward(layers, gradient[:, None]), rate)
    costs = np.array([batch.cost(number) for number in range(count)])
    return {
        "cost": float(np.exp(np.mean(np.log(np.maximum(costs, 1e-9) / own)))),
        "entropy": float(played.spread[open_ones].mean()) if len(open_ones) else 0.0,
        "decisions": len(played.number),
    }
