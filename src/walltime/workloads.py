"""Workloads: models that generate them, and functions that change them."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.workload.downey97 import Downey97 as Downey97
    from walltime.workload.feitelson96 import Feitelson96 as Feitelson96
    from walltime.workload.hyper_erlang import HyperErlang as HyperErlang
    from walltime.workload.hyper_erlang import fit_hyper_erlang as fit_hyper_erlang
    from walltime.workload.jann97 import Jann97 as Jann97
    from walltime.workload.lublin99 import Lublin99 as Lublin99
    from walltime.workload.lublin99 import LublinClass as LublinClass
    from walltime.workload.marginals import Marginals as Marginals
    from walltime.workload.models import MODELS as MODELS
    from walltime.workload.models import parse_model as parse_model
    from walltime.workload.p2variants import FeitelsonVariant as FeitelsonVariant
    from walltime.workload.resampling import resample_weeks as resample_weeks
    from walltime.workload.resampling import with_sessions as with_sessions
    from walltime.workload.scaling import head as head
    from walltime.workload.scaling import resize as resize
    from walltime.workload.scaling import scale_load as scale_load
    from walltime.workload.scaling import shake as shake
    from walltime.workload.scaling import tail as tail
    from walltime.workload.scaling import window as window
    from walltime.workload.synthetic import WorkloadModel as WorkloadModel
    from walltime.workload.users import with_users as with_users
    from walltime.workload.workload import Origin as Origin
    from walltime.workload.workload import Workload as Workload

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "workload.models": (
            "MODELS",
            "parse_model",
        ),
        "workload.synthetic": ("WorkloadModel",),
        "workload.lublin99": (
            "Lublin99",
            "LublinClass",
        ),
        "workload.feitelson96": ("Feitelson96",),
        "workload.p2variants": ("FeitelsonVariant",),
        "workload.marginals": ("Marginals",),
        "workload.jann97": ("Jann97",),
        "workload.hyper_erlang": (
            "HyperErlang",
            "fit_hyper_erlang",
        ),
        "workload.downey97": ("Downey97",),
        "workload.scaling": (
            "head",
            "resize",
            "scale_load",
            "shake",
            "tail",
            "window",
        ),
        "workload.resampling": (
            "resample_weeks",
            "with_sessions",
        ),
        "workload.users": ("with_users",),
        "workload.workload": (
            "Origin",
            "Workload",
        ),
    },
)
