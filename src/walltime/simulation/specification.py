"""Schedulers (a policy with its queue orders and predictions) and variations of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import isfunction
from typing import TYPE_CHECKING, Any

from walltime.errors import PolicyError
from walltime.estimates import EstimateModel
from walltime.plugins.files import maker_of
from walltime.policy import POLICIES, Policy
from walltime.policy.log_view import RANDOM
from walltime.policy.orders import Order
from walltime.policy.plain import OwnPolicy, PlainPolicy
from walltime.policy.randomness import takes_generator
from walltime.predictors import Prediction
from walltime.predictors.prediction import with_prediction
from walltime.specification import options_of
from walltime.workload import Workload, scaling
from walltime.workload.cleaning import clean
from walltime.workload.filters import span_of

if TYPE_CHECKING:
    from walltime.schedule.schedule import Schedule

PREDICTION_OPTIONS = ("predictor", "predictions_for", "correction", "learn_from")
ALIASES = {"easy++": "easy:backfill-order=sjf,predictor=tsafrir07"}
"""Short names of schedulers; EASY++ is from tsafrir07."""


@dataclass(frozen=True)
class Scheduler:
    """A policy, and a prediction or None.

    >>> parse_scheduler("easy:backfill-order=sjf,predictor=tsafrir07,correction=estimate").label
    'easy:backfill-order=sjf,predictor=tsafrir07,correction=estimate'
    """

    policy: Policy
    prediction: Prediction | None = None

    @property
    def label(self) -> str:
        """Return the specification of the scheduler."""
        return with_prediction(self.policy.label, self.prediction)

    @property
    def draws(self) -> bool:
        """Return whether the policy, an order or the predictor draws random numbers, so that results depend on the seed."""
        return self.policy.draws or RANDOM in self.policy.reads or any(map(takes_generator, self.own.values()))

    @property
    def own(self) -> dict[str, Any]:
        """Return the classes of a policy and of a predictor in plain Python, by their labels."""
        parts = (self.policy, None if self.prediction is None else self.prediction.predictor)
        return {part.label: kind for part in parts if part is not None and (kind := getattr(part, "code", None)) is not None}

    @classmethod
    def of_schedule(cls, schedule: Schedule) -> Scheduler:
        """Return the scheduler of a schedule."""
        return cls(schedule.policy, None if schedule.predictions is None else schedule.predictions.prediction)

    @classmethod
    def of(cls, given: object, prediction: object = None) -> Scheduler:
        """Return the scheduler for a scheduler, a specification, a policy, or a class or object with `choose`.

        `prediction`: used unless the scheduler has its own.
        """
        chosen = Prediction.of(prediction)
        if isinstance(given, str):
            given = parse_scheduler(given)
        own = isinstance(given, PlainPolicy) and {"__init__", "__dataclass_params__"} & vars(type(given)).keys() == {"__init__"}
        if isinstance(given, Policy) and not own:  # objects of a class with its own constructor differ by its arguments
            return cls(given, chosen)
        if not isinstance(given, Scheduler) and (make := maker_of(given, "choose")) is not None:
            return cls(OwnPolicy(make=make), chosen)
        if isinstance(given, Order) or isfunction(given):
            name = getattr(given, "__name__", given)
            raise PolicyError(f"{name} is not a policy; an order is given to one, as in walltime.Easy(order=...)", "wrong_type")
        if not isinstance(given, Scheduler):
            raise PolicyError(f"policy must be one such as walltime.Easy() or 'easy:order=sjf', not {given!r}", "wrong_type")
        return given if given.prediction is not None or chosen is None else cls(given.policy, chosen)


def parse_scheduler(text: str, defaults: Mapping[str, str | None] | None = None) -> Scheduler:
    """Return the scheduler with the specification `POLICY:option=value,...`.

    Options are the policy's, such as `order`, `backfill-order` and `depth`, and `predictor`, `predictions_for`, `correction` and
    `learn_from` as in `walltime.Prediction`; `predictor=none` turns predictions off. `defaults`: options for those that the text leaves
    out, ignored if the policy lacks them. `easy++` is short for `easy:backfill-order=sjf,predictor=tsafrir07`. Raises PolicyError for an
    unknown policy, option or value.

    >>> parse_scheduler("hybrid:3", {"order": "sjf", "predictor": "last"}).label
    'hybrid:order=sjf,depth=3,predictor=last'
    """
    text = ALIASES.get(text.strip().lower(), text)
    own = {key: replace(one, default=None) if one.needed else one for key, one in options_of(Prediction).items()}
    form, values, given = POLICIES.read(text, own)
    wanted = {name.replace("-", "_"): value for name, value in (defaults or {}).items() if value is not None}
    fields = {one.field for one in form.keys.values()}
    policy = POLICIES.build(text, form, {name: value for name, value in wanted.items() if name in fields} | values)
    chosen = {name: value for name, value in wanted.items() if name in PREDICTION_OPTIONS} | given
    predictor = chosen.pop("predictor", None)
    if predictor is None or predictor == "none":
        unused = [name for name in given if name != "predictor" and name not in wanted]
        if unused:
            option = unused[0].replace("_", "-")
            raise PolicyError(f"{option} of {text!r} needs a predictor; add one, such as predictor=tsafrir07", "missing_predictor")
        return Scheduler(policy)
    return Scheduler(policy, Prediction(predictor, **chosen))


def no_backfill_order(texts: Sequence[str]) -> PolicyError | None:
    """Return the error to raise if none of these schedulers has a backfill order of its own; None if one has."""
    if any("backfill-order" in POLICIES.variant(ALIASES.get(text.strip().lower(), text))[0].keys for text in texts):
        return None
    subject = f"none of {', '.join(texts)} has a" if len(texts) > 1 else f"{texts[0]} has no"
    return PolicyError(f"{subject} backfill order of its own; leave it out, or use easy or hybrid:depth=N", "no_backfill_order")


@dataclass(frozen=True)
class Variation:
    """Changes to a log: those shared by all replications, and random shifts of the submissions (`shake`, s) that depend on the seed."""

    load: float | None = None
    scale_by: str = "interarrival"
    remove: Sequence[str] = ()
    head: int | None = None
    tail: int | None = None
    window: str | None = None
    shake: int = 0
    feedback: bool = False

    def apply(self, workload: Workload, seed: int) -> Workload:
        """Return the log with all changes except the shake: first the filters, then the part of the log, then the load."""
        if self.scale_by != "interarrival" and self.load is None:
            raise PolicyError("scale_by needs a load to scale to; add load, or leave scale_by out")
        if self.remove:
            workload = clean(workload, self.remove).after
        if self.window is not None:
            workload = scaling.window(workload, *span_of(workload, self.window))
        if self.head is not None:
            workload = scaling.head(workload, self.head)
        if self.tail is not None:
            workload = scaling.tail(workload, self.tail)
        if self.load is not None:
            workload = scaling.scale_load(workload, self.load, self.scale_by, seed)
        if self.feedback:
            workload = workload.with_feedback()
        return workload

    def replica(self, workload: Workload, model: EstimateModel, seed: int) -> Workload:
        """Return the workload of one seed: shaken, and with drawn estimates."""
        return self.shaken(workload, seed).with_estimates(model, seed)

    def shaken(self, workload: Workload, seed: int) -> Workload:
        """Return the workload with its submissions shaken under this seed."""
        return scaling.shake(workload, self.shake, seed) if self.shake else workload

    def check_replications(self, model: EstimateModel) -> None:
        """Raise PolicyError if all replications would be the same."""
        if not self.shake and not model.random:
            raise PolicyError("all replications would be the same; shake the log (shake=30) or draw estimates (estimates=f:4)")
