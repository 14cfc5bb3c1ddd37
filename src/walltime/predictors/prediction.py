"""How a scheduler uses predicted runtimes: the predictor, where predictions are used, their correction, and the history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from walltime.errors import PolicyError
from walltime.predictors.base import Predictor
from walltime.predictors.belief import Belief, Correction, parse_belief, parse_correction
from walltime.predictors.registry import parse_predictor

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
