"""Infer the rules of a site from its log, and measure how well a policy with these rules explains the recorded starts."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.inference.inference import (
        FreeRun as FreeRun,
        Inference as Inference,
        InferredRule as InferredRule,
        MonthAgreement as MonthAgreement,
        write_site as write_site,
    )
    from walltime.inference.rule_search import infer as infer

__getattr__, __dir__, __all__ = lazy(__name__)
