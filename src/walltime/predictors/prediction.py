"""How a scheduler uses predicted runtimes: who predicts, where that is believed, how it is corrected, what it is learned from."""

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
    """Runtimes predicted when jobs are submitted, for the plan only: jobs are killed at their users' requests all the same.

    `predictor`: a predictor or its name with options, as in `tsafrir07:k=3`. `believe`: where predictions are believed; `regular`
    (everywhere), `selective` (not of running jobs), `none`, or three bits: in the order of the queue, of a waiting job's own length,
    of running jobs; elsewhere the users' estimates are. `correction`: what is expected of a running job that outlives its prediction:
    `tsafrir07` or `tsafrir07:elapsed` (rising increments), `estimate`, `double`, `none`; each correction is an event, followed by a
    pass. `history`: the predictor learns from what ends in the `simulation`, or in the `log`, whose waits must be known.

    Under hybrid and conservative backfilling from scratch a job that starts holds its own length until the end of the pass, then its
    expected one. Under conservative backfilling reservations are made again, and a job may start after its first reservation, when a
    prediction is corrected, when a waiting job is predicted again, and after a job has started that is expected to run for longer than
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
            raise PolicyError(f"predictor must be one such as walltime.Tang13(), not {predictor!r}")
        if self.history not in HISTORIES:
            raise PolicyError(f"unknown history {self.history!r}; known are {', '.join(HISTORIES)}")
        if self.history == "log" and predictor.again:
            raise PolicyError("waiting jobs can be predicted again from what happens in the simulation only, not from the log")
        object.__setattr__(self, "predictor", predictor)
        object.__setattr__(self, "believe", parse_belief(self.believe))
        object.__setattr__(self, "correction", parse_correction(self.correction))

    @classmethod
    def of(cls, given: Prediction | Predictor | str | None) -> Prediction | None:
        """This prediction, the one by this predictor with everything else at its default, or none."""
        if given is None or isinstance(given, Prediction):
            return given
        if isinstance(given, str | Predictor):
            return cls(given)
        raise PolicyError(f"prediction must be one such as walltime.Prediction('tsafrir07'), not {given!r}")

    def but(self, **options: Any) -> Prediction:
        """The same, but for these options."""
        return replace(self, **options)

    @property
    def runs_compiled(self) -> bool:
        """Whether the compiled engine can do this: all but a predictor in plain Python that learns from the simulation."""
        return self.history == "log" or self.predictor.is_compiled

    @property
    def title(self) -> str:
        """What it is called in sentences and figures: the predictor, and in brackets what is not the default."""
        told = [self.believe.label] if self.believe != REGULAR else []
        told += [f"correction {self.correction.label}"] if self.correction != BY_INCREMENTS else []
        told += ["learned from the log"] if self.history == "log" else []
        return self.predictor.label + (f" ({', '.join(told)})" if told else "")

    @property
    def label(self) -> str:
        """What is not the default, spelled as in a scheduler's name."""
        parts = [f"predictor={self.predictor.label}"]
        if self.believe != REGULAR:
            parts.append(f"believe={self.believe.label}")
        if self.correction != BY_INCREMENTS:
            parts.append(f"correction={self.correction.label}")
        if self.history != "simulation":
            parts.append(f"history={self.history}")
        return ",".join(parts)
