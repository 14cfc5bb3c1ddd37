"""Schedules made wrong on purpose: one thing at a time, as a broken simulator or a hand in the file would.

Some perturbations preserve validity (rows in another order), so the auditor must accept them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Array = np.ndarray
Columns = dict[str, Array]


def perturb(columns: Columns, rng: np.random.Generator, moments: Sequence[int] = ()) -> tuple[str, Columns]:
    """One perturbation drawn at random: its name, and the columns of the schedule after it; those that are given stay as they are.

    `columns`: at least `job_id, start, end`, one row per job, in any order; arrays of more dimensions have their rows first. `moments`:
    times (s) that matter on the machine besides starts and ends, such as the begin of an outage, to which jobs are moved.
    """
    names = list(PERTURBATIONS)
    name = names[int(rng.integers(len(names)))]
    if not len(columns["start"]):
        return "nothing", dict(columns)
    changed = {key: values.copy() for key, values in columns.items()}
    return name, PERTURBATIONS[name](changed, rng, np.array(moments, np.int64))


def _move(columns: Columns, rows: int | Array, by: int | Array) -> Columns:
    columns["start"][rows] += by
    columns["end"][rows] += by
    return columns


def _one(columns: Columns, rng: np.random.Generator) -> int:
    return int(rng.integers(len(columns["start"])))


def _events(columns: Columns, moments: Array) -> Array:
    """Times at which something happens: jobs come, start or end, or the machine changes."""
    return np.unique(np.concatenate([columns[name] for name in ("submit", "start", "end") if name in columns] + [moments]))


def _by_a_second(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """One job starts a second earlier or later."""
    return _move(columns, _one(columns, rng), int(rng.choice((-1, 1))))


def _by_much(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """One job starts much earlier or later."""
    span = max(2, int(columns["end"].max() - columns["start"].min()))
    by = int(rng.integers(2, 2 * span + 1))
    row = _one(columns, rng)
    earlier = rng.random() < 0.4 and columns["start"][row] >= by
    return _move(columns, row, -by if earlier else by)


def _to_another_event(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """One job starts at another time at which something happens."""
    row = _one(columns, rng)
    return _move(columns, row, int(rng.choice(_events(columns, moments))) - int(columns["start"][row]))


def _to_the_next_event(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """One job starts at the next or the previous time at which something happens."""
    row = _one(columns, rng)
    events, start = _events(columns, moments), int(columns["start"][row])
    place = int(np.clip(np.searchsorted(events, start) + rng.choice((-1, 1)), 0, len(events) - 1))
    return _move(columns, row, int(events[place]) - start)


def _on_submission(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """A job that waits starts when it is submitted."""
    waited = np.flatnonzero(columns["start"] > columns["submit"]) if "submit" in columns else np.zeros(0, np.int64)
    row = int(rng.choice(waited)) if len(waited) else _one(columns, rng)
    return _move(columns, row, int(columns["submit"][row] - columns["start"][row]) if len(waited) else 1)


def _swap(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """Two jobs change places: each starts when the other did."""
    one, other = _one(columns, rng), _one(columns, rng)
    by = int(columns["start"][other] - columns["start"][one])
    return _move(_move(columns, one, by), other, -by)


def _swap_numbers(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """Two rows change their numbers."""
    one, other = _one(columns, rng), _one(columns, rng)
    columns["job_id"][[one, other]] = columns["job_id"][[other, one]]
    return columns


def _hole(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """From some time on everything starts later; jobs that run then run on."""
    since = columns["start"][_one(columns, rng)]
    return _move(columns, columns["start"] >= since, int(rng.choice((1, 2, 10, 1000))))


def _all_late(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """The whole schedule starts later."""
    return _move(columns, np.arange(len(columns["start"])), int(rng.choice((1, 7, 1_000_000))))


def _instant_delayed(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """All that starts at one time starts later, at the next event or in a while: the head of the queue is delayed."""
    start = columns["start"][_one(columns, rng)]
    later = _events(columns, moments)
    later = later[later > start]
    by = int(later[0] - start) if len(later) and rng.random() < 0.5 else int(rng.integers(1, 100))
    return _move(columns, columns["start"] == start, by)


def _end_moved(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """A job ends earlier or later than it must."""
    row = _one(columns, rng)
    columns["end"][row] += int(rng.choice((-1, 1, 1000)))
    return columns


def _end_at_start(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """A job ends as soon as it has started."""
    row = _one(columns, rng)
    columns["end"][row] = columns["start"][row]
    return columns


def _dropped(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """A job is not in the schedule."""
    row = _one(columns, rng)
    return {key: np.delete(values, row, axis=0) for key, values in columns.items()}


def _doubled(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """A job is in the schedule twice."""
    row = _one(columns, rng)
    return {key: np.concatenate([values, values[row : row + 1]]) for key, values in columns.items()}


def _renumbered(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """A job has an unknown number, or another job's."""
    row = _one(columns, rng)
    columns["job_id"][row] = columns["job_id"].max() + 1 if rng.random() < 0.5 else columns["job_id"][_one(columns, rng)]
    return columns


def _shuffled(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """The rows in another order, which changes nothing."""
    order = rng.permutation(len(columns["start"]))
    return {key: values[order] for key, values in columns.items()}


def _two_moved(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """Two jobs start a little earlier or later."""
    return _move(_move(columns, _one(columns, rng), int(rng.integers(-3, 4))), _one(columns, rng), int(rng.integers(-3, 4)))


def _in_an_outage(columns: Columns, rng: np.random.Generator, moments: Array) -> Columns:
    """A job starts when the machine changes, or between two such times."""
    row = _one(columns, rng)
    if not len(moments):
        return _by_a_second(columns, rng, moments)
    first, last = int(moments.min()), int(moments.max())
    to = int(rng.choice(moments)) if rng.random() < 0.5 else int(rng.integers(first, last + 1))
    return _move(columns, row, to - int(columns["start"][row]))


PERTURBATIONS: dict[str, Callable[[Columns, np.random.Generator, Array], Columns]] = {
    "a start by a second": _by_a_second,
    "a start by much": _by_much,
    "a start at another event": _to_another_event,
    "a start at the next event": _to_the_next_event,
    "a start at submission": _on_submission,
    "two swapped": _swap,
    "two numbers swapped": _swap_numbers,
    "two moved": _two_moved,
    "a hole left": _hole,
    "all late": _all_late,
    "an instant delayed": _instant_delayed,
    "in an outage": _in_an_outage,
    "an end moved": _end_moved,
    "an end at the start": _end_at_start,
    "a job dropped": _dropped,
    "a job doubled": _doubled,
    "a job renumbered": _renumbered,
    "rows shuffled": _shuffled,
}
"""The perturbations by name."""
