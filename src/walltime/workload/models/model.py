"""Parts that all workload models share: parameters, random streams, the conversion to a workload; and models from users' functions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING as NO_DEFAULT, dataclass, field, fields
from importlib import resources
from typing import Annotated, Any

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError, WorkloadError
from walltime.plugins.files import location_of, user_code
from walltime.plugins.parts import function_options
from walltime.specification import Specification, spell
from walltime.wording import seed_fault, shown
from walltime.workload.origin import Origin
from walltime.workload.scaling import HIGHEST_LOAD, scale_load
from walltime.workload.workload import MAX_TIME, Workload

Array = np.ndarray

TOLERANCE = 0.01
"""Maximum relative deviation from the requested load, for workloads of at least `MANY` jobs."""
MANY = 100


@dataclass(frozen=True)
class WorkloadModel(Specification):
    """A model that generates workloads; the fields of a subclass are its constants."""

    @property
    def name(self) -> str:
        """Return the model's name on the command line."""
        return type(self).__name__.lower()

    @property
    def changes(self) -> str:
        """Return the fields that differ from their defaults, as text, without those hidden in the repr.

        >>> WorkloadModel().changes
        ''
        """
        shown = [f for f in fields(self) if f.repr and (f.default is NO_DEFAULT or getattr(self, f.name) != f.default)]
        return ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in shown)

    def generate(self, jobs: int, machine_procs: int, load: float | None = None, seed: int = 0) -> Workload:
        """Generate `jobs` jobs for a machine of this size; the same arguments give the same workload.

        With a `load`, all interarrival times are scaled to reach this offered load (mualem01, section 3.1), as exactly as whole
        seconds allow; a model may preserve its daily cycle. Without a load they are as drawn. The estimates equal the runtimes.

        Raises WorkloadError for impossible parameters.
        """
        for name, value in (("number of jobs", jobs), ("number of processors", machine_procs), ("seed", seed)):
            if not isinstance(value, int | np.integer) or isinstance(value, bool):
                raise WorkloadError(f"the {name} must be a whole number, not {value!r}", "wrong_type")
        for value, what in ((jobs, "a workload must have at least 1 job"), (machine_procs, "a machine must have at least 1 processor")):
            if value < 1:
                raise WorkloadError(f"{what}, not {value}", "number_out_of_range")
        if load is not None and not 0 < load <= HIGHEST_LOAD:
            raise WorkloadError(f"the load must be above 0 and at most {HIGHEST_LOAD}, not {load:g}", "number_out_of_range")
        if fault := seed_fault(seed):
            raise WorkloadError(fault, "number_out_of_range")
        drawn = self._draw(jobs, machine_procs, load, seed)
        arrival, span = drawn.arrival, float(drawn.arrival[-1] - drawn.arrival[0])
        if load is not None and span > 0 and not drawn.has_load:
            arrival = arrival * (total_work(self, drawn.procs, drawn.runtime) / (machine_procs * load) / span)
        if not arrival[-1] < MAX_TIME:
            raise WorkloadError(
                f"the jobs of {self.name} would arrive over {arrival[-1]:.3g} s, more than a workload can represent; use a higher load",
                "arrivals_too_long",
            )
        given_load = f"load {load:g}" if load is not None else "no load asked for"
        origin = Origin(
            name=f"{self.name}-{jobs}-{machine_procs}" + (f"-{load:g}" if load is not None else "") + f"-{seed}",
            records=jobs,
            header=(
                "; Version: 2.2",
                f"; Computer: synthetic, {self.name}",
                f"; Note: synthetic workload of the model {self.name}, {given_load}, seed {seed}",
                f"; Note: parameters of the model {self.changes or 'as they come'}",
                f"; MaxJobs: {jobs}",
                f"; MaxRecords: {jobs}",
                "; UnixStartTime: 0",
                "; TimeZoneString: UTC",
                f"; MaxNodes: {machine_procs}",
                f"; MaxProcs: {machine_procs}",
            ),
            unix_start_time=0,
        )
        arrays: dict[str, Any] = {"runtime": drawn.runtime, "procs": drawn.procs, "columns": drawn.columns, "origin": origin}
        workload = Workload.from_arrays(submit=np.floor(arrival).astype(np.int64), machine_procs=machine_procs, **arrays)
        if load is not None and jobs >= MANY and not abs(workload.offered_load / load - 1) <= TOLERANCE:
            raise WorkloadError(
                f"{jobs} jobs of {self.name} on {machine_procs} processors have a load of {load:g} only if they all arrive within"
                f" about {workload.submit[-1] - workload.submit[0]} s, which whole seconds cannot resolve; use more jobs, a smaller machine"
                " or a lower load",
                "arrivals_too_dense",
            )
        return workload

    def _draw(self, jobs: int, machine_procs: int, load: float | None, seed: int) -> ModelJobs:
        """Draw the jobs; only models that set `has_load` use the load."""
        raise NotImplementedError


@dataclass(frozen=True)
class ModelJobs:
    """Jobs drawn by a model: arrivals (float64 or int64 s, ascending), runtimes (int64 s), sizes (int64 processors)."""

    arrival: Array
    runtime: Array
    procs: Array
    columns: Mapping[str, Array] = field(default_factory=dict)
    has_load: bool = False
    """Whether the jobs have the requested load; if not, the times between arrivals are scaled to reach it."""


def stream(model: str, seed: int, purpose: str) -> np.random.Generator:
    """Return a generator of random numbers for one purpose of a model; each purpose has its own stream."""
    words = [seed & 0xFFFFFFFF, seed >> 32, *f"{model}/{purpose}".encode()]
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))


def values_of(log: str) -> dict[str, Any]:
    """Return the shipped values that were fitted from a log; their file describes the method."""
    return tomllib.loads((resources.files(__package__) / f"{log}.toml").read_text(encoding="utf-8"))


def total_work(model: WorkloadModel, procs: Array, runtime: Array) -> float:
    """Return the processor-seconds of all jobs; raises WorkloadError if there are none."""
    work = float(np.dot(procs.astype(np.float64), runtime))
    if work == 0:
        raise WorkloadError(f"the jobs drawn from {model.name} all run 0 s; draw more of them, or use another seed")
    return work


def stretch_to(span: Callable[[float], float], wanted: float) -> float:
    """Return the factor at which `span`, which increases with it from 0 at 0, reaches the wanted value; by bisection.

    >>> round(stretch_to(lambda factor: 3 * factor**2, 12.0), 9)
    2.0
    """
    high = 1.0
    while span(high) < wanted:
        high *= 2
    low = high / 2
    while span(low) > wanted:
        low, high = low / 2, low
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if span(middle) < wanted else (low, middle)
    return high


FORM = "def NAME(jobs, procs, seed), with defaults for options"


@dataclass(frozen=True)
class OwnModel(WorkloadModel):
    """A model that calls a user's function with the number of jobs, the machine's processors and the seed; it returns a `Workload`.

    `options`: additional arguments of the function.
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
