"""Queueing theory for the queues to which a scheduler of parallel jobs reduces: means and distributions of waits.

Loads are fractions of the capacity, below 1. The mean service time is the unit of time, unless a function takes seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Service:
    """A distribution of service times with mean 1.

    `scv` is the variance (the squared coefficient of variation); `draw(random, count)` returns float64. `survival(x)` is the
    share of jobs longer than x, `work_up_to(x)` the mean of the service time where it is at most x, and 0 else.
    """

    name: str
    scv: float
    draw: Callable[[np.random.Generator, int], Array]
    survival: Callable[[Array], Array]
    work_up_to: Callable[[Array], Array]


_P = (1 + math.sqrt(3 / 5)) / 2
"""Share of the short jobs in a mixture of two exponentials of variance 4 in which both do the same work ("balanced means")."""


def _mixture(random: np.random.Generator, count: int) -> Array:
    means = np.where(random.random(count) < _P, 1 / (2 * _P), 1 / (2 * (1 - _P)))
    return random.exponential(1.0, count) * means


EXPONENTIAL = Service(
    "M",
    1.0,
    lambda random, count: random.exponential(1.0, count),
    lambda x: np.exp(-x),
    lambda x: 1 - (1 + x) * np.exp(-x),
)
DETERMINISTIC = Service("D", 0.0, lambda random, count: np.ones(count), lambda x: (x < 1) * 1.0, lambda x: (x >= 1) * 1.0)
UNIFORM = Service(
    "U",
    1 / 3,
    lambda random, count: random.uniform(0, 2, count),
    lambda x: 1 - np.minimum(x, 2) / 2,
    lambda x: np.minimum(x, 2) ** 2 / 4,
)
HYPER = Service(
    "H2",
    4.0,
    _mixture,
    lambda x: _P * np.exp(-2 * _P * x) + (1 - _P) * np.exp(-2 * (1 - _P) * x),
    lambda x: 1 - ((1 + 2 * _P * x) * np.exp(-2 * _P * x) + (1 + 2 * (1 - _P) * x) * np.exp(-2 * (1 - _P) * x)) / 2,
)


def erlang_c(servers: int, load: float) -> float:
    """Probability that a job has to wait in M/M/c.

    Source: Erlang 1917, by the recursion of the blocking probability.

    >>> erlang_c(1, 0.7), round(erlang_c(2, 0.5), 12)
    (0.7, 0.333333333333)
    """
    offered, blocked = servers * load, 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1 - load * (1 - blocked))


def mmc_wait(servers: int, load: float) -> float:
    """Mean wait in M/M/c, in mean services.

    Source: Erlang 1917.

    >>> round(mmc_wait(1, 0.9), 12)
    9.0
    """
    return erlang_c(servers, load) / (servers * (1 - load))


def mmc_tail(servers: int, load: float, wait: float) -> float:
    """Probability of a longer wait than this (in mean services) in M/M/c, first come first served.

    Source: Erlang 1917. With one server it is `load * exp(-(1 - load) * wait)`.

    >>> round(mmc_tail(1, 0.5, 2.0), 6) == round(0.5 * math.exp(-1), 6)
    True
    """
    return erlang_c(servers, load) * math.exp(-servers * (1 - load) * wait)


def pollaczek_khinchine(load: float, scv: float) -> float:
    """Mean wait in M/G/1, first come first served, in mean services.

    Source: Pollaczek 1930, Khinchine 1932.

    >>> pollaczek_khinchine(0.5, 0.0), pollaczek_khinchine(0.5, 1.0)
    (0.5, 1.0)
    """
    return load * (1 + scv) / (2 * (1 - load))


def shortest_first_wait(load: float, service: Service, above: float = 0.0, below: float = math.inf, points: int = 200_001) -> float:
    """Mean wait in M/G/1 under non-preemptive shortest job first, of jobs of these lengths; in mean services.

    A job of length x waits for the remainder of the running job (on average `load * (1 + scv) / 2`), for the shorter jobs before it, and
    for shorter ones that arrive in the meantime. So `W(x) = load (1 + scv) / 2 / (1 - R(x))^2`, where R(x) is the load of the jobs up to x;
    it is averaged over the lengths by the trapezoidal rule in W. For continuous service only: where lengths have atoms, the square becomes
    `(1 - R(x-)) (1 - R(x))`.

    Source: Cobham 1954 (priority classes), Phipps 1956 (a class for each length).

    >>> shortest_first_wait(0.8, EXPONENTIAL) < pollaczek_khinchine(0.8, 1.0)
    True
    """
    longest = 2.0 if service is UNIFORM else 200.0
    x = longest * np.linspace(0, 1, points) ** 3  # denser where jobs are many
    x = x[(x >= above) & (x <= below)]
    share = 1 - service.survival(x)
    wait = load * (1 + service.scv) / 2 / (1 - load * service.work_up_to(x)) ** 2
    return float(np.sum(np.diff(share) * (wait[1:] + wait[:-1]) / 2) / (share[-1] - share[0]))


def mdc(servers: int, load: float, states: int = 800) -> tuple[float, float]:
    """Mean wait in mean services, and probability of waiting, in M/D/c.

    All jobs in service are gone one service time later, and no others: with Q jobs now, `max(Q - c, 0)` and the arrivals remain. The
    stationary distribution of this chain, truncated, is the distribution of the number of jobs; the mean wait follows by Little's law.

    Source: Crommelin 1932.

    >>> wait, waits = mdc(1, 0.8)
    >>> round(wait - pollaczek_khinchine(0.8, 0.0), 9), round(waits, 9)
    (0.0, 0.8)
    """
    size = servers + states
    offered = servers * load
    arrivals = np.exp(np.arange(size) * math.log(offered) - offered - np.array([math.lgamma(k + 1) for k in range(size)]))
    step = np.zeros((size, size))
    for now in range(size):
        left = max(now - servers, 0)
        step[now, left:] = arrivals[: size - left]
        step[now, -1] += 1 - step[now].sum()
    balance = step.T - np.eye(size)
    balance[0] = 1
    share = np.linalg.solve(balance, np.eye(size)[0])
    waiting = np.maximum(np.arange(size) - servers, 0)
    return float(share @ waiting) / offered, float(share[servers:].sum())


def saturated_utilization(narrow: float) -> float:
    """Utilization of two processors that always have jobs waiting, first come, first served, no backfilling.

    Jobs need one processor with probability `narrow`, else both; exponential service, the same for both kinds. Derived here: let A be two
    narrow jobs running, B one narrow job with a wide one blocked behind it, C a wide job running. From one end of a job to the next these
    last 1/2, 1 and 1 services. They follow each other as a Markov chain with shares `A : B : C = p^2 / q : p : 1`. So jobs end at the rate
    `1 / (1 - p^2 / 2)`, each having held `2 - p` processors on average.

    Source: the model of Brill and Green 1984, whose stability it limits.

    >>> saturated_utilization(0.0), saturated_utilization(1.0), round(saturated_utilization(0.5), 6)
    (1.0, 1.0, 0.857143)
    """
    return (2 - narrow) / (2 - narrow**2)
