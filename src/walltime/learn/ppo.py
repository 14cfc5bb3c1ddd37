"""An agent that learns to schedule, in numpy: proximal policy optimisation with masks, from scratch, in one file.

The agent scores each waiting job that may be chosen by one small network, from what is observed of that job and of the queue, and chooses
by the softmax of the scores; jobs that the mask forbids are not scored at all. An iteration plays whole episodes, several at once, and
then improves the network by the clipped objective of schulman17, with generalised advantages. Nothing but numpy is needed.

Two things make it learn from metrics in which a few windows weigh a hundred times as much as others: rewards are divided by what a simple
scheduler costs in the same episode, and of each reward is taken off what the whole group that plays this episode has got in the same
seconds, so that what the jobs alone bring about is gone (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from walltime.errors import PolicyError
from walltime.learn.batch import Batch
from walltime.learn.features import COMPACT, QUEUE

Array = np.ndarray
JOB, ALL = len(COMPACT), len(COMPACT) + len(QUEUE)
INPUTS = (*(feature.name for feature in COMPACT), *(feature.name for feature in QUEUE))
"""What the agent sees of a job that may be chosen, and of the queue; to choose nobody is a slot without a job."""
PROCESSORS = INPUTS.index("processors")
BOUND = np.float32(5.0)
"""Advantages beyond so many standard deviations count as this."""
WIDEST = 4096
"""The most units of a layer."""


@dataclass(frozen=True)
class TrainingSettings:
    """How an agent learns.

    `episodes`: how many it plays in all; `together`: how many in an iteration, and `group`: how many of these are the same one.
    `learning_rate`: of the first iteration, falling to 0. `trace`: the lambda of generalised advantages. `clip`: how far a probability may
    change in an iteration. `entropy`: the weight of the policy's entropy, falling to 0. `epochs`: passes over the decisions of an
    iteration, of which `decisions` are used at most, `batch` at a time. `hidden`, `hidden_value`: the widths of the networks.
    """

    episodes: int = 10_240
    together: int = 128
    group: int = 8
    learning_rate: float = 3e-3
    trace: float = 0.95
    clip: float = 0.2
    entropy: float = 0.0
    epochs: int = 3
    decisions: int = 24_000
    batch: int = 1024
    hidden: tuple[int, ...] = (32, 16)
    hidden_value: tuple[int, ...] = (64, 32)

    def __post_init__(self) -> None:
        if self.together < 1 or self.group < 1 or self.together % self.group:
            raise PolicyError(
                f"groups of {self.group} episodes do not make up {self.together} played together; take a divisor of it",
                "number_out_of_range",
            )
        if not all(type(width) is int and 1 <= width <= WIDEST for width in (*self.hidden, *self.hidden_value)):
            raise PolicyError(f"the layers of a network are 1 to {WIDEST:,} wide, not {self.hidden} and {self.hidden_value}")
        for name in ("episodes", "epochs", "decisions", "batch"):
            if getattr(self, name) < 1:
                raise PolicyError(f"{name} must be 1 or more, not {getattr(self, name)}", "number_out_of_range")

    @property
    def iterations(self) -> int:
        """How many there are."""
        return -(-self.episodes // self.together)


class Network:
    """Layers with tanh between them, the last one linear; float32. `parameters`: weights (inputs x outputs) and biases in turn."""

    def __init__(self, widths: tuple[int, ...], draw: np.random.Generator):
        self.parameters: list[Array] = []
        for number, (before, after) in enumerate(pairwise(widths)):
            spread = (0.01 if number == len(widths) - 2 else 1.4) / np.sqrt(before)
            self.parameters += [(draw.normal(size=(before, after)) * spread).astype(np.float32), np.zeros(after, np.float32)]
        self.moments = [np.zeros_like(one) for one in self.parameters + self.parameters]
        self.steps = 0

    def forward(self, inputs: Array) -> list[Array]:
        """The inputs (rows x features), and what comes out of each layer; the last one has one column."""
        layers = [inputs]
        for weights, bias in zip(self.parameters[::2], self.parameters[1::2], strict=True):
            out = layers[-1] @ weights + bias
            layers.append(out if len(layers) == len(self.parameters) // 2 else np.tanh(out, out=out))
        return layers

    def backward(self, layers: list[Array], gradient: Array) -> list[Array]:
        """The gradients of the parameters, where `gradient` (rows x 1) is that of what came out."""
        gradients: list[Array] = []
        for number in range(len(self.parameters) // 2 - 1, -1, -1):
            before = layers[number]
            gradients += [gradient.sum(axis=0), before.T @ gradient]
            if number:
                gradient = (gradient @ self.parameters[2 * number].T) * (1 - before * before)
        return gradients[::-1]

    def descend(self, gradients: list[Array], rate: float, longest: float = 1.0) -> None:
        """A step of Adam; gradients longer than `longest` are shortened."""
        length = float(np.sqrt(sum(float((one * one).sum()) for one in gradients)))
        self.steps += 1
        rate *= np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        count = len(self.parameters)
        for number, (own, gradient) in enumerate(zip(self.parameters, gradients, strict=True)):
            gradient = gradient * np.float32(min(1.0, longest / (length + 1e-9)))
            first, second = self.moments[number], self.moments[count + number]
            first += np.float32(0.1) * (gradient - first)
            second += np.float32(0.001) * (gradient * gradient - second)
            own -= np.float32(rate) * first / (np.sqrt(second) + np.float32(1e-8))


class Agent:
    """The network that scores jobs, the one that foresees rewards (in training only), and the scale of the inputs.

    `scale`: the mean and the inverse spread of each input, from the first decisions; None before.
    """

    def __init__(self, settings: TrainingSettings, draw: np.random.Generator):
        self.policy = Network((ALL + 1, *settings.hidden, 1), draw)
        self.value = Network((ALL + 3, *settings.hidden_value, 1), draw)
        self.scale: Array | None = None

    def prepared(self, seen: Array) -> Array:
        """The inputs of the networks, from what is seen (rows x INPUTS): that, and the processors on a logarithmic scale; all scaled."""
        small = np.log1p(127 * seen[:, PROCESSORS, None]) / np.float32(np.log(128))
        inputs = np.concatenate([seen, small], axis=1)
        if self.scale is None:
            self.scale = np.stack([inputs.mean(axis=0), 1 / (inputs.std(axis=0) + np.float32(0.05))])
        inputs -= self.scale[0]
        inputs *= self.scale[1]
        return inputs

    def scores(self, seen: Array) -> Array:
        """The scores of jobs that may be chosen; of those of one decision the highest is the best."""
        return self.policy.forward(self.prepared(seen))[-1][:, 0]


@dataclass
class Rollout:
    """The decisions of some episodes, one after the other in time; arrays with a row for each.

    `number`: which environment. `choices`: how many could be chosen, and `chosen`: which one of them was. `inputs`: of all choices, those
    of a decision after those of the one before. `chance`: the logarithm of the probability of what was chosen. `spread`: the entropy.
    `now`, `then` (s): the time of the decision and of the next one. `left`: jobs that were still to start. `reward`: what came before the
    next decision.
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
    """The logarithms of the probabilities of all choices; each decision's choices are `choices` rows from `first` on."""
    scores = scores - np.repeat(np.maximum.reduceat(scores, first), choices)
    return scores - np.repeat(np.log(np.add.reduceat(np.exp(scores), first)), choices)


def candidates(batch: Batch) -> tuple[Array, Array, Array]:
    """Who may be chosen where an episode goes on: the environment and the action of each row, and what is seen of it."""
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
    """Play an episode (by number) in each environment to its end: by chance if `draw` is given, else always the highest score.

    `change`: called with what is seen and the first row of each decision, to change it. What was played is returned where chance decides.
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
        inputs = agent.prepared(seen)
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


def less_the_group(played: Rollout, count: int, group: int, rewards: Array) -> Array:
    """The rewards, less the mean of what all members of a group have got in the same seconds; each group has played one episode."""
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
    """Generalised advantages without discount, one for each decision."""
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
    """The clipped objective, negated, and its gradient by the scores: means over decisions.

    `chosen`: the row of each choice made, `before`: the logarithm of its probability when it was made, `gain`: its advantage.
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
    """One iteration: play, and learn from it. It depends on the agent, its number and the seed only.

    `scales`: the cost of a simple scheduler in each episode. Returns what can be shown: the mean `cost` against it, and the `entropy`.
    """
    draw = np.random.default_rng([seed, number])
    rest = 1 - number / settings.iterations
    count, groups = batch.count, batch.count // settings.group
    episodes = np.repeat(draw.choice(len(batch.episodes), groups, replace=len(batch.episodes) < groups), settings.group)
    played = play(batch, episodes, agent, draw)
    assert played is not None
    own = scales[episodes]
    rewards = less_the_group(played, count, settings.group, played.reward / own[played.number])
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
