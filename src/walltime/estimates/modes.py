"""The distribution of user estimates as modes, which are round values that many jobs share.

Each function is a step of the model of Tsafrir, Etsion and Feitelson that can be checked by hand; `tsafrir05` combines the steps and
assigns the estimates to jobs.

Source: tsafrir05 (D. Tsafrir, Y. Etsion, D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005), and its authors' program
m_tsafrir05, version of February 2006.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from walltime.errors import PolicyError, WorkloadError
from walltime.workload import Array

MINUTE, HOUR = 60, 3600
HEAD = 20
"""Number of the most popular values, the head of the distribution."""
MODE_POINTS = ((0, 0), (20, 10), (200, 20), (1000, 35), (10_000, 90), (70_000, 340), (250_000, 565))
"""Number of jobs and number of distinct estimates, interpolated linearly; constant after the last point."""
JOINT_TIMES = tuple(MINUTE * m for m in (5, 10, 15, 20, 30)) + tuple(HOUR * h for h in (1, 2, 3, 4, 5, 6, 8, 10, 12, 18))
"""Estimates among the 20 most popular ones in all four logs on which the model is based, s."""
ROUND_TIMES = tuple(HOUR * h for h in (200, 100, 50, 10, 5, 2, 1)) + tuple(MINUTE * m for m in (20, 10, 5))
"""The head is filled with multiples of these times, s, in this order."""
OFFSETS = (0, 30, -30, 20, -20, 10, -10)
"""Offsets, s, tried if two values of the tail coincide."""
POPULARITY = (
    (3, 1, 1, 1),
    (1, 3, 4, 6),
    (4, 4, 10, 5),
    (17, 2, 14, 3),
    (13, 12, 20, 7),
    (7, 9, 2, 2),
    (8, 8, 3, 18),
    (18, 18, 7, 19),
    (2, 6, 12, 4),
    (6, 7, 6, 11),
    (16, 11, 19, 20),
    (10, 20, 5, 9),
    (5, 16, 18, 10),
    (15, 5, 16, 14),
    (14, 14, 9, 13),
    (19, 13, 17, 16),
    (11, 10, 15, 15),
    (12, 15, 13, 17),
    (9, 17, 8, 8),
    (20, 19, 11, 12),
)
"""Popularity rank of each time rank in the logs SDSC-106, CTC, KTH-4h and BLUE: the largest value first, then ascending."""


def number_of_modes(jobs: int) -> int:
    """Return the number of distinct estimates, piecewise linear in the number of jobs.

    Source: m_tsafrir05.

    >>> [number_of_modes(n) for n in (200, 600, 10_000, 28_489, 1_000_000)]
    [20, 28, 90, 167, 565]
    """
    x, y = zip(*MODE_POINTS, strict=True)
    return math.floor(float(np.interp(jobs, x, y)) + 0.5)


def tail_bend(modes: int, p: float = 12.1039, q: float = -0.6026) -> float:
    """Return the parameter a = 1 + p K^q of the times of the tail, for K modes.

    Source: m_tsafrir05.

    >>> [round(tail_bend(k), 4) for k in (90, 340, 565)]
    [1.8041, 1.361, 1.2658]
    """
    return 1 + p * float(modes) ** q


def head_times(emax: int) -> list[int]:
    """Return the most popular estimates, s: the largest first, the others ascending; 20 of them if `emax` is at least 100 min.

    Source: m_tsafrir05.

    >>> [t // 3600 for t in head_times(18 * 3600)[-6:]], len(head_times(18 * 3600))
    ([12, 13, 14, 15, 16, 17], 20)
    """
    times = [emax, *(t for t in JOINT_TIMES if t < emax)]
    for unit in ROUND_TIMES:
        for t in range(emax // unit * unit, 0, -unit):
            if len(times) < HEAD and t not in times:
                times.append(t)
    return [emax, *sorted(times[1:])]


def merge_times(times: Sequence[int], given: Sequence[int]) -> list[int]:
    """Return the head with the times of user-supplied bins, which replace default ones if the head is full.

    The closest pair of times is replaced first; the times common to all logs only when no other default is left,
    the largest time never.

    >>> [t // 3600 for t in merge_times(head_times(18 * 3600), [9 * 3600])[-8:]]
    [8, 9, 10, 12, 14, 15, 16, 17]
    """
    new = sorted(set(given) - set(times))
    spare = max(0, len(new) - (HEAD - len(times)))
    replaced: dict[int, int] = {}
    defaults = times[1:]
    for group in ([t for t in defaults if t not in JOINT_TIMES], [t for t in defaults if t in JOINT_TIMES]):
        for _, mine, default in sorted((abs(u - d), u, d) for u in new for d in group):
            if len(replaced) < spare and default not in replaced and mine not in replaced.values():
                replaced[default] = mine
    kept = [replaced.get(t, t) for t in defaults]
    return [times[0], *sorted(kept + [t for t in new if t not in replaced.values()])]


def head_sizes(
    count: int = HEAD,
    *,
    share: float | None = None,
    curve: tuple[float, float, float] = (14.0491, -0.177531, 0.462513),
    total: float = 89.0,
) -> list[float]:
    """Return the percentages of jobs that use the most popular estimates, the largest first.

    Ranks x from 2 have a exp(b x) + c percent; rank 1 has the remainder of `total`. With a given `share` of E_max, percent, the
    others are scaled so that the sum is `total`.

    Source: m_tsafrir05.

    >>> [round(s, 2) for s in head_sizes()[:4]], round(sum(head_sizes()), 6)
    ([21.73, 10.31, 8.71, 7.37], 89.0)
    """
    a, b, c = curve
    others = [a * math.exp(b * x) + c for x in range(2, count + 1)]
    rest = sum(others)
    if share is None:
        return [total - rest, *others]
    return sorted([share, *(s * max(total - share, 0.0) / rest for s in others)], reverse=True)


def merge_sizes(sizes: Sequence[float], given: Mapping[int, float], emax: int, total: float = 89.0) -> tuple[list[float], dict[int, int]]:
    """Return the sizes of the head with the given sizes, and the popularity rank, from 1, of each given time.

    `given`: percent by time. Each replaces the closest default, the largest given one first; rank 1 is replaced only by E_max.
    The others are scaled so that all sum to `total`, or set to 0 if the given ones alone exceed it. Rank 1 keeps its place,
    the other ranks are sorted again.

    Source: m_tsafrir05.

    >>> sizes, rank = merge_sizes(head_sizes(), {3600: 8.0}, emax=64_800)
    >>> rank, round(sizes[3], 2), round(sum(sizes), 6)
    ({3600: 4}, 8.0, 89.0)
    """
    owner: dict[int, int] = {}
    for time in sorted(given, key=lambda t: (-given[t], t)):
        free = [k for k in range(len(sizes)) if k not in owner and (k > 0 or time == emax)]
        owner[min(free, key=lambda k: abs(given[time] - sizes[k]))] = time
    mine = sum(given.values())
    rest = sum(s for k, s in enumerate(sizes) if k not in owner)
    scale = (total - mine) / rest if mine < total and rest > 0 else 0.0
    merged = [(given[owner[k]], owner[k]) if k in owner else (s * scale, None) for k, s in enumerate(sizes)]
    merged[1:] = sorted(merged[1:], key=lambda entry: -entry[0])
    return [size for size, _ in merged], {time: k + 1 for k, (_, time) in enumerate(merged) if time is not None}


def popularity_ranks(draws: Array, count: int = HEAD, given: Mapping[int, int] | None = None) -> list[int]:
    """Return the popularity rank, from 1, of each time rank, where time rank 0 is the largest value and the others are ascending.

    `draws`: float64 in [0, 1), shape (count, 2). `given`: ranks fixed by user-supplied bins, by time rank.

    The largest value gets rank 1 unless it has a given rank. Each later time rank adds the popularity ranks observed at it to a pool. If
    the pool contains ranks that were not observed at any later time rank, the smallest of them is taken; otherwise two ranks are drawn
    from the pool, and the smaller is taken. The model does not specify the choice if `count` is below 20 or given ranks empty the pool:
    here ranks above `count` are ignored, and the smallest free rank is taken.

    Source: m_tsafrir05.

    >>> popularity_ranks(np.zeros((20, 2)))[:6]
    [1, 3, 4, 6, 10, 5]
    """
    fixed = dict(given or {})
    fixed.setdefault(0, 1)
    last = {rank: k for k, row in enumerate(POPULARITY) for rank in row}
    chosen: list[int] = []
    taken = set(fixed.values())
    pool: list[int] = []
    for k in range(count):
        pool += [rank for rank in POPULARITY[k] if rank <= count]
        pool = [rank for rank in pool if rank not in taken]
        if k in fixed:
            rank = fixed[k]
        else:
            free = [rank for rank in range(1, count + 1) if rank not in taken]
            due = [rank for rank in free if last[rank] <= k]
            drawn = [pool[int(u * len(pool))] for u in draws[k]] if pool else free
            rank = due[0] if due else min(drawn)
        chosen.append(rank)
        taken.add(rank)
    return chosen


def tail_times(count: int, emax: int, head: Sequence[int], bend: float) -> list[int]:
    """Return the estimates of the tail, s, ascending: at most `count`, in whole minutes unless two coincide.

    Source: m_tsafrir05.

    >>> tail_times(5, 36_000, [36_000], 1.5)
    [2760, 6540, 12000, 20580, 35970]
    """
    used = set(head)
    times = []
    for i in range(1, count + 1):
        x = i / count
        aligned = math.floor((bend - 1) * x / (bend - x) * emax / MINUTE + 0.5) * MINUTE
        free = [aligned + offset for offset in OFFSETS if 0 < aligned + offset < emax and aligned + offset not in used]
        if free:
            times.append(free[0])
            used.add(free[0])
    return sorted(times)


def tail_sizes(count: int, *, curve: tuple[float, float] = (795.6, -2.267), total: float = 11.0) -> list[float]:
    """Return the percentages of jobs that use the estimates of the tail, in descending order: a k^b for rank k from 21, scaled to `total`.

    Source: m_tsafrir05.

    >>> [round(s, 2) for s in tail_sizes(70)[:3]]
    [0.76, 0.68, 0.62]
    """
    a, b = curve
    sizes = [a * float(rank) ** b for rank in range(HEAD + 1, HEAD + 1 + count)]
    return [s * total / sum(sizes) for s in sizes]


def jobs_per_mode(percents: Mapping[int, float], jobs: int, given: Mapping[int, int] | None = None) -> dict[int, int]:
    """Return the number of jobs of each mode, by time, s, ascending; their sum is exactly `jobs`.

    Each mode has at least one job, and a user-supplied mode has exactly its number. The rounding error is distributed over the other
    modes, from the largest to the smallest: in proportion (rounded up), then one each, then, if there are too many jobs, down to
    one, and finally down to none.

    Source: m_tsafrir05.

    >>> jobs_per_mode({60: 50.0, 120: 49.5, 180: 0.5}, 11)
    {60: 5, 120: 5, 180: 1}
    """
    given = given or {}
    counts = {t: given[t] if t in given else max(1, math.floor(percents[t] * jobs / 100 + 0.5)) for t in sorted(percents)}
    own = [t for t in counts if t not in given]
    missing = jobs - sum(counts.values())
    sign, left = (1, missing) if missing > 0 else (-1, -missing)
    ratio = left / max(sum(counts[t] for t in own), 1)
    rounds = ((lambda n: math.ceil(ratio * n), 1), (lambda n: 1, 1), (lambda n: n - 1, 1), (lambda n: n, 0))
    for change, least in rounds:
        for t in sorted(own, key=lambda t: (-counts[t], t)):
            if left and counts[t]:
                step = min(change(counts[t]), left, counts[t] - least if sign < 0 else left)
                counts[t] += sign * step
                left -= step
    if left:
        raise WorkloadError(
            f"the modes cannot hold exactly {jobs:,} jobs: {left:,} are {'left over' if sign > 0 else 'too many'}; change the bins",
            "impossible_modes",
        )
    return counts


def largest_estimate(requested: Array, outliers: float = 0.001) -> int:
    """Return E_max, s: the site's limit, inferred as the largest request without a share of outliers, in whole hours.

    This is the quantile of the requests, rounded up to the hour because limits are whole hours, and at most the largest request.
    `requested`: int64 s, shape (jobs,). On the logs of tsafrir06 this gives 18 h (CTC, SDSC), 36 h (BLUE) and 60 h (KTH).

    This is our interpretation of E_max in tsafrir06, section VII, which does not state its value for each log.

    >>> largest_estimate(np.array([600] * 990 + [215_940] * 10 + [500_000]))
    216000
    """
    if not len(requested):
        raise WorkloadError("there are no jobs from which to infer the largest estimate; set emax", "empty_workload")
    if not 0 <= outliers < 1:
        raise PolicyError(f"the share of outliers must be from 0 up to 1, not {outliers:g}", "number_out_of_range")
    ordered = np.sort(requested)
    bound = int(ordered[max(math.ceil((1 - outliers) * len(ordered)) - 1, 0)])
    return min(-(-bound // HOUR) * HOUR, int(ordered[-1]))
