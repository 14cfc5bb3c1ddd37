"""How a scheduler uses predicted runtimes: the predictor, where predictions are used, their correction, and the history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from walltime.errors import PolicyError
from walltime.predictors.base import Predictor
from walltime.predictors.registry import parse_predictor

MINUTE, HOUR = 60, 3600
INCREMENTS = (*(n * MINUTE for n in (1, 5, 15, 30)), *(n * HOUR for n in (1, 2, 5, 10, 20, 50, 100)))
"""Seconds added to the prediction at the first correction, the second, ..."""


@dataclass(frozen=True)
class Belief:
    """For each of the three uses of a runtime in a scheduler, whether the prediction or the user estimate is used.

    `order`: the queue order. `own`: the length of a waiting job, when it is backfilled or given a reservation. `running`: the
    expected end of a running job. `regular` adjustment is all three, `selective` the first two.

    Source: tang13, sections 5.2 and 6.1; Cobalt's simulator has the same three switches.
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
        """Its name, or else the three bits."""
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
    """The new expected runtime of a running job that has outlived its prediction.

    `kind="tsafrir07"`: at the k-th correction the initial prediction, or with `relative="elapsed"` the elapsed time, plus the k-th
    of `increments` (s, ascending); after the last, the user estimate. `estimate`: the user estimate at once. `double`: twice the
    previous value. `half`: what has elapsed and half of what is left of the user estimate, as Slurm plans overdue jobs under
    time_min_as_soft_limit; Slurm does so at each look at them, here it is done when the previous value is reached. None exceeds the user
    estimate, but for `double` that is not `capped`. `none`: no correction; the job counts as overdue and may end at any moment.

    Source: tsafrir07, section 3, with the list of a public simulator; whether the increments add to the prediction or to the
    elapsed time is open. `half`: Slurm from 25.05.4 on. gaussier15 calls `double:uncapped` recursive doubling, and `estimate` reqtime.
    """

    kind: Literal["tsafrir07", "estimate", "double", "half", "none"] = "tsafrir07"
    relative: Literal["prediction", "elapsed"] = "prediction"
    increments: tuple[int, ...] = INCREMENTS
    capped: bool = True

    def __post_init__(self) -> None:
        if self.kind not in CORRECTIONS:
            raise PolicyError(f"unknown correction {self.kind!r}; known are {', '.join(CORRECTIONS)}")
        if self.relative not in ("prediction", "elapsed"):
            raise PolicyError(f"increments add to the prediction or to what has elapsed, not to {self.relative!r}")
        if not self.capped and self.kind != "double":
            raise PolicyError(f"only the correction double can be uncapped, not {self.kind}")
        if any(b <= a for a, b in pairwise((0, *self.increments))):
            raise PolicyError(f"the increments of a correction must rise, from at least 1 s, not {self.increments}")

    @property
    def label(self) -> str:
        """The kind, followed by `:elapsed` if the increments add to the elapsed time, or by `:uncapped`."""
        return self.kind + (":elapsed" if self.relative == "elapsed" else "") + ("" if self.capped else ":uncapped")


CORRECTIONS = ("tsafrir07", "estimate", "double", "half", "none")


def parse_correction(text: str | Correction) -> Correction:
    """`tsafrir07`, `tsafrir07:elapsed`, `estimate`, `double`, `double:uncapped`, `half` or `none`; raises PolicyError for anything else.

    >>> parse_correction("tsafrir07:elapsed").relative
    'elapsed'
    """
    if isinstance(text, Correction):
        return text
    kind, _, option = text.strip().lower().partition(":")
    if kind == "tsafrir07" and option == "elapsed":
        return Correction(relative="elapsed")
    if kind == "double" and option == "uncapped":
        return Correction("double", capped=False)
    if kind not in CORRECTIONS or option:
        raise PolicyError(f"unknown correction {text!r}; known are {', '.join(CORRECTIONS)}, tsafrir07:elapsed and double:uncapped")
    return Correction(kind)  # type: ignore[arg-type]


HISTORIES = ("simulation", "log")
REGULAR, BY_INCREMENTS = Belief(), Correction()


@dataclass(frozen=True)
class Prediction:
    """Runtimes predicted at submission, for planning only: jobs are still killed at their users' requests.

    `predictor`: a predictor or its name with options, as in `tsafrir07:k=3`. `believe`: where predictions are used: `regular`
    (everywhere), `selective` (not for running jobs), `none`, or three bits: in the queue order, for a waiting job's own length, for
    running jobs; elsewhere user estimates are used. `correction`: the new expected runtime of a job that outlives its prediction:
    `tsafrir07` or `tsafrir07:elapsed` (increments), `estimate`, `double` or `double:uncapped`, `half`, `none`; each correction is an event,
    followed by a pass. `history`: the predictor learns from jobs that end in the `simulation`, or in the `log`, whose wait times must
    be known.

    Under hybrid and conservative backfilling from scratch a started job occupies its own length until the end of the pass, then its
    expected runtime. Under conservative backfilling all reservations are recomputed, and a job may start after its first reservation,
    when a prediction is corrected, when a waiting job is predicted again, and after the start of a job whose expected runtime exceeds
    its own length.

    Raises PolicyError for an unknown predictor or option.

    >>> Prediction("tsafrir07", correction="estimate").label
    'predictor=tsafrir07,correction=estimate'
    """

    predictor: Predictor
    believe: Belief = REGULAR
    correction: Correction = BY_INCREMENTS
    history: str = "simulation"

    if TYPE_CHECKING:

        def __init__(
            self,
            predictor: Predictor | str,
            believe: Belief | str = REGULAR,
            correction: Correction | str = BY_INCREMENTS,
            history: str = "simulation",
        ) -> None: ...

    def __post_init__(self) -> None:
        given: object = self.predictor
        predictor = parse_predictor(given) if isinstance(given, str) else given
        if not isinstance(predictor, Predictor):
            raise PolicyError(f"predictor must be one such as walltime.predictors.Tang13(), not {predictor!r}")
        if self.history not in HISTORIES:
            raise PolicyError(f"unknown history {self.history!r}; known are {', '.join(HISTORIES)}")
        if self.history == "log" and predictor.again:
            raise PolicyError("waiting jobs can be predicted again from what happens in the simulation only, not from the log")
        object.__setattr__(self, "predictor", predictor)
        object.__setattr__(self, "believe", parse_belief(self.believe))
        object.__setattr__(self, "correction", parse_correction(self.correction))

    @classmethod
    def of(cls, given: Prediction | Predictor | str | None) -> Prediction | None:
        """The given prediction, the default one with the given predictor, or None."""
        if given is None or isinstance(given, Prediction):
            return given
        if isinstance(given, str | Predictor):
            return cls(given)
        raise PolicyError(f"prediction must be one such as walltime.Prediction('tsafrir07'), not {given!r}")

    def but(self, **options: Any) -> Prediction:
        """A copy with these options changed."""
        return replace(self, **options)

    @property
    def runs_compiled(self) -> bool:
        """Whether the compiled engine supports it: all but a predictor in plain Python that learns from the simulation."""
        return self.history == "log" or self.predictor.is_compiled

    @property
    def title(self) -> str:
        """Its name in text and figures: the predictor, and in brackets the options that differ from the default."""
        told = [self.believe.label] if self.believe != REGULAR else []
        told += [f"correction {self.correction.label}"] if self.correction != BY_INCREMENTS else []
        told += ["learned from the log"] if self.history == "log" else []
        return self.predictor.label + (f" ({', '.join(told)})" if told else "")

    @property
    def label(self) -> str:
        """The options that differ from the default, as in a scheduler's specification."""
        parts = [f"predictor={self.predictor.label}"]
        if self.believe != REGULAR:
            parts.append(f"believe={self.believe.label}")
        if self.correction != BY_INCREMENTS:
            parts.append(f"correction={self.correction.label}")
        if self.history != "simulation":
            parts.append(f"history={self.history}")
        return ",".join(parts)


def with_prediction(label: str, prediction: Prediction | None) -> str:
    """The specification of a policy, extended by that of the prediction."""
    if prediction is None:
        return label
    return f"{label}{',' if ':' in label else ':'}{prediction.label}"
