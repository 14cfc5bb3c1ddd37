"""Which jobs count as alike."""

from __future__ import annotations

from typing import Any

from walltime.errors import PolicyError

KEYS = {
    "all": (),
    "user": ("user",),
    "project": ("group",),
    "double": ("user", "group"),
    "triple": ("user", "group", "requested"),
    "request": ("user", "requested"),
    "program": ("executable", "user", "procs"),
    "size": ("user", "procs"),
    "shape": ("user", "procs", "requested"),
}
"""Jobs are alike if they agree in all of these columns. `user` to `triple` are the keys of tang13 (section 4.2), `request` is the
triple key for logs without groups, `program` is the key of mualem01 (section 4.4), `size` the same for logs without programs, and
`shape` what a user can choose. A job with an unknown value in one of the columns is like no other."""


def key_of(job: Any, key: str) -> tuple[int, ...] | None:
    """The key values of a job, with its columns as attributes; None if one of them is unknown."""
    values = tuple(int(getattr(job, name)) for name in KEYS[key])
    return None if any(value < 0 for value in values) else values


def check_key(name: str, key: str) -> None:
    """Raise PolicyError for an unknown key."""
    if key not in KEYS:
        raise PolicyError(f"unknown key {key!r} of {name}; known are {', '.join(KEYS)}")
