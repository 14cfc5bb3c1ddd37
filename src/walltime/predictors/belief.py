"""Where a predicted runtime is believed, and what becomes of it when a running job outlives it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from walltime.errors import PolicyError

MINUTE, HOUR = 60, 3600
INCREMENTS = (*(n * MINUTE for n in (1, 5, 15, 30)), *(n * HOUR for n in (1, 2, 5, 10, 20, 50, 100)))
"""By how much more than the prediction a job is expected to run, s, at the first correction, the second, ..."""


@dataclass(frozen=True)
class Belief:
    """The three places where a scheduler reads a runtime: is the prediction believed there, or the user's estimate?

    `order`: the place in the queue. `own`: the length of a waiting job, when it is backfilled or given a reservation. `running`:
    the expected end of a running job. `regular` adjustment is all three, `selective` the first two.

    Source: Tang, Desai, Buettner, Lan, JPDC 73 (2013), sections 5.2 and 6.1; Cobalt's simulator has the same three switches.
    """

    order: bool = True
    own: bool = True
    running: bool = True

    @property
    def bits(self) -> str:
        """The three switches, as 0 and 1."""
        return "".join("1" if on else "0" for on in (self.order, self.own, self.running))

    @property
    def label(self) -> str:
        """Its name, else the three bits."""
        return next((name for name, belief in BELIEFS.items() if belief == self), self.bits)


BELIEFS = {"regular": Belief(), "selective": Belief(running=False), "none": Belief(False, False, False)}


def parse_belief(text: str | Belief) -> Belief:
    """`regular`, `selective`, `none`, or three bits for queue order, own length and running jobs, such as `101`.

    Raises PolicyError for anything else.

    >>> parse_belief("selective").bits, parse_belief("001").running
    ('110', True)
    """
    if isinstance(text, Belief):
        return text
    known = BELIEFS.get(text.strip().lower())
    if known is not None:
        return known
    if len(text) == 3 and set(text) <= {"0", "1"}:
        return Belief(*(bit == "1" for bit in text))
    raise PolicyError(f"unknown belief {text!r}; known are {', '.join(BELIEFS)}, or three bits such as 101: order, own length, running")


@dataclass(frozen=True)
class Correction:
    """What a scheduler expects of a running job that has outlived its prediction.

    `kind="tsafrir07"`: at the k-th correction the initial prediction, or with `relative="elapsed"` what has elapsed, plus the k-th
    of `increments` (s, rising); when these are used up, the user's estimate. `estimate`: the user's estimate at once. `double`:
    twice what was expected. None of them goes beyond the user's estimate. `none`: nothing is corrected, and the job counts as
    overdue: it may end at any moment.

    Source: Tsafrir, Etsion, Feitelson, TPDS 18 (2007), by a public simulator's list; whether the increments add to the
    prediction or to what has elapsed is open.
    """

    kind: Literal["tsafrir07", "estimate", "double", "none"] = "tsafrir07"
    relative: Literal["prediction", "elapsed"] = "prediction"
    increments: tuple[int, ...] = INCREMENTS

    def __post_init__(self) -> None:
        if self.kind not in CORRECTIONS:
            raise PolicyError(f"unknown correction {self.kind!r}; known are {', '.join(CORRECTIONS)}")
        if self.relative not in ("prediction", "elapsed"):
            raise PolicyError(f"increments add to the prediction or to what has elapsed, not to {self.relative!r}")
        if any(b <= a for a, b in pairwise((0, *self.increments))):
            raise PolicyError(f"the increments of a correction must rise, from at least 1 s, not {self.increments}")

    @property
    def label(self) -> str:
        """The kind, with what the increments add to where that is not the prediction."""
        return self.kind + (":elapsed" if self.relative == "elapsed" else "")


CORRECTIONS = ("tsafrir07", "estimate", "double", "none")


def parse_correction(text: str | Correction) -> Correction:
    """`tsafrir07`, `tsafrir07:elapsed`, `estimate`, `double` or `none`; raises PolicyError for anything else.

    >>> parse_correction("tsafrir07:elapsed").relative
    'elapsed'
    """
    if isinstance(text, Correction):
        return text
    kind, _, option = text.strip().lower().partition(":")
    if kind == "tsafrir07" and option == "elapsed":
        return Correction(relative="elapsed")
    if kind not in CORRECTIONS or option:
        raise PolicyError(f"unknown correction {text!r}; known are {', '.join(CORRECTIONS)} and tsafrir07:elapsed")
    return Correction(kind)  # type: ignore[arg-type]
