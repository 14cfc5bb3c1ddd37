"""The rules of a site, inferred from its log, and how far a policy with these rules explains the starts that were recorded."""

from walltime.inference.inference import FreeRun, Inference, InferredRule, MonthAgreement, write_site
from walltime.inference.rule_search import infer

__all__ = ["FreeRun", "Inference", "InferredRule", "MonthAgreement", "infer", "write_site"]
