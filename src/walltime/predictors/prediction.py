"""How a scheduler uses predicted runtimes: the predictor, the uses of predictions, their correction, and the history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.plugins.files import maker_of
from walltime.predictors.base import PlainPredictor, Predictor
from walltime.predictors.registry import PREDICTORS as PREDICTORS
from walltime.specification import Family, Specification, Variant, spell

MINUTE, HOUR = 60, 3600
INCREMENTS = (*(n * MINUTE for n in (1, 5, 15, 30)), *(n * HOUR for n in (1, 2, 5, 10, 20, 50, 100)))
"""Seconds added to the prediction at the first correction, the second, ..."""


@dataclass(frozen=True)
class PredictionUses(Specification):
    """Whether each of the three uses of a runtime in a scheduler takes the prediction or the user estimate.

    `regular` adjustment uses predictions for all three, `selective` for the first two.

    Source: tang13, sections 5.2 and 6.1; Cobalt's simulator has the same three switches.
    """

    order: bool = True
    """the queue order"""
    own: bool = True
    """the length of a waiting job, when it is backfilled or given a reservation"""
    running: bool = True
    """the expected end of a running job"""

    @property
    def bits(self) -> str:
        """Return the three switches, as 0 and 1."""
        return "".join("1" if on else "0" for on in (self.order, self.own, self.running))

    @property
    def label(self) -> str:
        """Return its name or, if it has none, the three bits."""
        return next((name for name, variant in PREDICTION_USES.variants.items() if variant.makes(self)), self.bits)


def _uses(bits: str, meaning: str = "") -> Variant:
    return Variant(PredictionUses, {name: bit == "1" for name, bit in zip(("order", "own", "running"), bits, strict=True)}, meaning=meaning)


PREDICTION_USES = Family(
    PredictionUses,
    "use of predictions",
    {
        "regular": _uses("111", "Predictions are used everywhere."),
        "selective": _uses("110", "User estimates are used for running jobs."),
        "none": _uses("000", "User estimates are used everywhere."),
    },
    lambda text: (_uses(text), "") if len(text) == 3 and set(text) <= {"0", "1"} else None,
    "three digits such as 101, for the queue order, waiting jobs and running jobs",
)
"""Where predictions are used, by name."""


parse_prediction_uses = PREDICTION_USES.parse
"""Return the uses for `regular`, `selective`, `none`, or three digits such as `101`; raises PolicyError for any other text."""


@dataclass(frozen=True)
class Correction(Specification):
    """The new expected runtime of a running job that has exceeded its prediction.

    `kind="tsafrir07"`: at the k-th correction the initial prediction, or with `relative="elapsed"` the elapsed time, plus the k-th
    of `increments`; after the last, the user estimate. `estimate`: the user estimate at once. `double`: twice the
    previous value. `half`: the elapsed time plus half of the rest of the user estimate, as Slurm plans overdue jobs under
    time_min_as_soft_limit; Slurm does so in each pass, here it is done when the previous value is reached. `soft`: the
    prediction is added again each time, as PBS Professional extends an exceeded soft_walltime. Only an uncapped `double` exceeds the user
    estimate. `none`: no correction; the job counts as overdue and may end at any moment.

    Source: tsafrir07, section 3, with the list of a public simulator; the paper leaves open whether increments add to the prediction or to
    the elapsed time. `half`: Slurm from 25.05.4 on. `soft`: OpenPBS, src/scheduler/job_info.c, extend_soft_walltime. gaussier15 calls
    `double:uncapped` recursive doubling, and `estimate` reqtime.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"elapsed": {"relative": "elapsed"}, "uncapped": {"capped": False}}
    kind: Literal["tsafrir07", "estimate", "double", "half", "soft", "none"] = "tsafrir07"
    """the rule"""
    relative: Literal["prediction", "elapsed"] = "prediction"
    """base of the increments: the initial prediction, or the elapsed time"""
    increments: Annotated[tuple[int, ...], Field(least=1)] = INCREMENTS
    """seconds added at the first correction, the second, ...; they rise"""
    capped: bool = True
    """whether the user estimate is an upper bound"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.capped and self.kind != "double":
            raise PolicyError(f"only the correction double can be uncapped, not {self.kind}")
        if any(b <= a for a, b in pairwise(self.increments)):
            raise PolicyError(f"the increments of a correction must rise, from at least 1 s, not {self.increments}", "number_out_of_range")


CORRECTIONS = Family(
    Correction,
    "correction",
    {
        kind: Variant(Correction, {"kind": kind}, options, meaning=meaning)
        for kind, options, meaning in (
            (
                "tsafrir07",
                ("relative", "increments"),
                "Increments to the prediction or to the elapsed time; after the last, the user estimate.",
            ),
            ("estimate", (), "The user estimate at once."),
            ("double", ("capped",), "Twice the previous value."),
            ("half", (), "The elapsed time plus half of the rest of the user estimate, like Slurm's time_min_as_soft_limit."),
            ("soft", (), "The prediction is added again each time, as PBS Professional extends a soft_walltime."),
            ("none", (), "No correction: the job may end at any moment."),
        )
    },
)
"""The corrections by name."""


parse_correction = CORRECTIONS.parse
"""Return a correction such as `tsafrir07:elapsed` or `double:uncapped`; raises PolicyError for an unknown one."""
LEARN_FROM = ("simulation", "log")
REGULAR, BY_INCREMENTS = PredictionUses(), Correction()


@dataclass(frozen=True)
class Prediction(Specification):
    """Runtimes predicted at submission, for planning only: jobs are still killed at their users' requests.

    Under hybrid and conservative backfilling from scratch a started job occupies its own length until the end of the pass, then its
    expected runtime. Under conservative backfilling all reservations are recomputed when a prediction is corrected, when a waiting job is
    predicted again, and after the start of a job whose expected runtime exceeds its own length. So a job may start after its first
    reservation.

    Raises PolicyError for an unknown predictor or option.

    >>> Prediction("tsafrir07", correction="estimate").label
    'predictor=tsafrir07,correction=estimate'
    """

    predictor: Predictor
    """the predictor, such as `tsafrir07:k=3`"""
    predictions_for: Annotated[PredictionUses, Field(former=("believe",))] = REGULAR
    """the uses of predictions; other uses take user estimates"""
    correction: Correction = BY_INCREMENTS
    """the new expected runtime of a job that exceeds its prediction; each correction is an event, followed by a pass"""
    learn_from: Annotated[Literal["simulation", "log"], Field(former=("history",))] = "simulation"
    """source of the job ends from which the predictor learns; the `log` must have wait times"""

    if TYPE_CHECKING:

        def __init__(
            self,
            predictor: Predictor | str,
            predictions_for: PredictionUses | str = REGULAR,
            correction: Correction | str = BY_INCREMENTS,
            learn_from: str = "simulation",
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learn_from == "log" and self.predictor.again:
            raise PolicyError(
                "learn-from=log does not support new predictions of waiting jobs; use learn-from=simulation", "conflicting_options"
            )

    @classmethod
    def of(cls, given: object) -> Prediction | None:
        """Return the given prediction, the default one with the given predictor (also a class or object of one's own), or None."""
        if given is None or isinstance(given, Prediction):
            return given
        if isinstance(given, str | Predictor):
            return cls(given)
        if (make := maker_of(given, "predict", "observe")) is not None:
            return cls(PlainPredictor(make))
        raise PolicyError(f"prediction must be a Prediction, such as walltime.Prediction('tsafrir07'), not {given!r}")

    @property
    def runs_compiled(self) -> bool:
        """Return whether the compiled engine supports it: all except a predictor in plain Python that learns from the simulation."""
        return self.learn_from == "log" or self.predictor.is_compiled

    @property
    def title(self) -> str:
        """Return its name in text and figures: the predictor, and in brackets the options that differ from the default."""
        changed = [self.predictions_for.label] if self.predictions_for != REGULAR else []
        changed += [f"correction {self.correction.label}"] if self.correction != BY_INCREMENTS else []
        changed += ["learned from the log"] if self.learn_from == "log" else []
        return self.predictor.label + (f" ({', '.join(changed)})" if changed else "")

    @property
    def label(self) -> str:
        """Return the options that differ from the default, in the form of a scheduler's specification."""
        return ",".join(f"{key}={spell(getattr(self, one.field), one)}" for key, one in self.differing().items())


def with_prediction(label: str, prediction: Prediction | None) -> str:
    """Return the specification of a policy with the options of the prediction."""
    if prediction is None:
        return label
    return f"{label}{',' if ':' in label else ':'}{prediction.label}"
