"""A workload model from a user's function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from walltime.declared import Field
from walltime.errors import PolicyError
from walltime.plugins.files import location_of, user_code
from walltime.plugins.parts import function_options
from walltime.specification import spell
from walltime.wording import shown
from walltime.workload.models.model import WorkloadModel
from walltime.workload.scaling import scale_load
from walltime.workload.workload import Workload

FORM = "def NAME(jobs, procs, seed), with defaults for options"


@dataclass(frozen=True)
class OwnModel(WorkloadModel):
    """A model that calls a user's function with the number of jobs, the machine's processors and the seed; it returns a `Workload`.

    `options`: further arguments of the function.
    """

    function: Annotated[Callable[..., Any], Field(inside=True)] = len
    spelling: Annotated[str, Field(inside=True)] = ""
    options: Annotated[tuple[tuple[str, Any], ...], Field(inside=True)] = ()

    @classmethod
    def of(cls, function: Any, spelling: str, **options: Any) -> OwnModel:
        """Return the model with this label; raises PolicyError if the function has other parameters."""
        function_options(function, ("jobs", "procs", "seed"), "a workload model", FORM)
        return cls(function, spelling, tuple(options.items()))

    @property
    def name(self) -> str:
        """Return the name of the function."""
        return getattr(self.function, "__name__", repr(self.function))

    @property
    def label(self) -> str:
        """Return the spelling, with the options."""
        return ",".join([self.spelling or self.name, *(f"{name.replace('_', '-')}={spell(value)}" for name, value in self.options)])

    def generate(self, jobs: int, machine_procs: int, load: float | None = None, seed: int = 0) -> Workload:
        """Return the function's workload; with a load, its times between arrivals are scaled to reach the load.

        Raises PolicyError if the result is not a workload for this number of jobs and processors.
        """
        takes_seed = function_options(self.function, ("jobs", "procs", "seed"), "a workload model", FORM)
        with user_code(f"the workload model {self.label}", self.function, FORM):
            made = self.function(jobs, machine_procs, **({"seed": seed} if takes_seed else {}), **dict(self.options))
        if not isinstance(made, Workload) or (len(made), made.machine_procs) != (jobs, machine_procs):
            found = f"{len(made)} jobs for {made.machine_procs} processors" if isinstance(made, Workload) else shown(made)
            where = f"{location_of(self.function)}the workload model {self.label}"
            text = f"must return a Workload of {jobs} jobs for {machine_procs} processors, not {found}"
            raise PolicyError(f"{where} {text}", "wrong_value")
        return made if load is None else scale_load(made, load, "interarrival", seed)
