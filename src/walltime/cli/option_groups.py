"""Groups of options that several commands share; a command has one parameter for a group, and users see the single options."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.models import OptionInfo, ParameterInfo

from walltime.cli import options as o
from walltime.cli.command_lines import hidden_key
from walltime.cli.completion import completion_of
from walltime.cli.help import HelpCommand, HelpGroup, show_all
from walltime.cli.output import forget_logs, note, progress_bar, report_on
from walltime.cli.overwriting import check_files
from walltime.errors import PolicyError, WorkloadError
from walltime.metrics.intervals import LEVEL
from walltime.wording import counted, printable, sanitize

if TYPE_CHECKING:
    from walltime.estimates import EstimateModel
    from walltime.logs import JobLog
    from walltime.machine import Machine
    from walltime.schedule import Schedule
    from walltime.simulation.specification import Scheduler, Variation
    from walltime.workload import Workload
    from walltime.workload.models.model import WorkloadModel

USUAL = {"predictions_for": "regular", "correction": "tsafrir07", "learn_from": "simulation"}
"""Options of predictions, and their values if a specification omits them."""


@dataclass(frozen=True)
class LogOptions:
    """Options for reading a log."""

    procs: o.ProcsOption = None
    too_wide: o.TooWideOption = "drop"
    partial: o.PartialOption = "summary"
    skip_bad_lines: o.SkipBadLinesOption = False
    join_runs: o.JoinRunsOption = False
    time_zone: o.TimeZoneOption = None
    mapping: o.MappingOption = None
    anonymise: o.AnonymiseOption = None

    @property
    def of_file(self) -> dict[str, Any]:
        """Return the arguments of `read_log`."""
        return {name: getattr(self, name) for name in ("skip_bad_lines", "join_runs", "time_zone", "mapping", "anonymise")}

    @property
    def of_jobs(self) -> dict[str, Any]:
        """Return the arguments of `JobLog.to_workload`."""
        return {"procs": self.procs, "too_wide": self.too_wide, "partial": self.partial}

    @property
    def words(self) -> list[str]:
        """Return the given options as words of a command line, without a secret key."""
        words = []
        for field in fields(self):
            value, option = getattr(self, field.name), f"--{field.name.replace('_', '-')}"
            if value is True:
                words.append(option)
            elif value != field.default:
                text = str(value)
                words += [option, hidden_key(text) if field.name == "anonymise" else text]
        return words

    def on_machine(self, machine: Machine | None) -> LogOptions:
        """Return the options for a log of this machine: its processors, unless given, and joined runs if it preempts jobs."""
        if machine is None:
            return self
        return replace(
            self,
            procs=machine.procs if self.procs is None else self.procs,
            join_runs=self.join_runs or machine.preempts or machine.loses_jobs,
        )

    def load(self, trace: Path, machine: Machine | None = None, any_size: bool = False, join: bool = True) -> tuple[Workload, float]:
        """Return the workload of the log, and the time that reading took, s; the output reports the omitted records.

        The processors of the machine are used if the log does not record them. If it preempts jobs, their runs are joined unless `join` is
        false. `any_size`: whether a log without the size of its machine gets the smallest size on which its jobs can have run.
        """
        begin, own = time.perf_counter(), self.on_machine(machine)
        own = own if join else replace(own, join_runs=self.join_runs)
        log = read_shown(trace, **own.of_file)
        for line in getattr(log, "reading", ()):
            note(f"recognised: {line}")
        if any_size and own.procs is None and log.header.machine_procs is None:
            from walltime.logs.joblog import estimated_size

            size = estimated_size(log)
            own = own if size is None else replace(own, procs=size.procs)
        workload = _reported(log.to_workload(**own.of_jobs))
        gpus = machine.second_total if machine is not None and machine.second == "gpus" else 0
        if log.format == "slurm" and gpus and "gpus" not in workload.columns:
            note(
                f"the machine has {counted(gpus, 'GPU')}, but the log does not record any: Slurm's accounting has them only if "
                "AccountingStorageTRES contains gres/gpu"
            )
        return workload, time.perf_counter() - begin


def read_shown(trace: Path, **how: Any) -> JobLog:
    """Read a log as `read_log` does, with a progress bar if it takes long."""
    from walltime.logs import read_log

    with progress_bar(None, f"reading {printable(trace.name)}") as progress:

        def told(done: int, total: int | None, counted: str) -> None:
            if counted == "bytes":
                done, total, counted = done // 10**6, None if total is None else -(-total // 10**6), "MB"
            progress(done, total=total, unit=counted)

        log = read_log(trace, **how, progress=told)
    for key, values in log.header.contradictions.items():
        note(
            f"{printable(trace.name)}: the header has several values of {key} ({sanitize(', '.join(values))}); the first valid one is used"
        )
    return log


@dataclass(frozen=True)
class JobSelection:
    """Options that select a part of a log, and that scale and shake it; a subclass adds --load."""

    remove: o.RemoveOption = None
    window: o.WindowOption = None
    head: o.HeadOption = None
    tail: o.TailOption = None
    scale_by: o.ScaleByOption = "interarrival"
    shake: o.ShakeOption = 0

    if TYPE_CHECKING:  # the option of a subclass
        load: float | list[float] | None = None

    @property
    def loads(self) -> list[float | None]:
        """Return the distinct loads to which the log is scaled; None stands for its own load."""
        return list(dict.fromkeys(self.load if isinstance(self.load, list) else [self.load])) or [None]

    def variations(self, feedback: bool = False) -> dict[float | None, Variation]:
        """Return the selection for the library, for each load."""
        from walltime.simulation.specification import Variation

        rest = (self.scale_by, self.remove or (), self.head, self.tail, self.window, self.shake, feedback)
        return {load: Variation(load, *rest) for load in self.loads}

    def variation(self, feedback: bool = False) -> Variation:
        """Return the selection for the library, for the only load."""
        return self.variations(feedback)[self.loads[0]]


@dataclass(frozen=True)
class JobSelectionWithLoad(JobSelection):
    """Options that select jobs for a single run."""

    load: o.LoadOption = None


@dataclass(frozen=True)
class JobSelectionWithLoads(JobSelection):
    """Options that select jobs for runs at several loads."""

    load: o.LoadsOption = None


@dataclass(frozen=True)
class RecordedWindow:
    """Options that select a part of the log, for commands that analyse recorded jobs."""

    remove: o.RemoveOption = None
    window: o.WindowOption = None
    head: o.HeadOption = None
    tail: o.TailOption = None

    def of(self, workload: Workload, machine: Machine) -> Workload:
        """Return the selected jobs; a window begins with the jobs that were running or waiting then, according to the log."""
        from walltime.machine.warm_start import stretch
        from walltime.simulation.specification import Variation
        from walltime.workload.filters import span_of

        workload = Variation(remove=self.remove or ()).apply(workload, 0)
        if self.window is not None:
            workload = stretch(workload, machine, *span_of(workload, self.window))
        return _reported(Variation(head=self.head, tail=self.tail).apply(workload, 0))

    def alone(self, workload: Workload) -> Workload:
        """Return the selected jobs; a window contains only the jobs submitted in it."""
        from walltime.simulation.specification import Variation

        return _reported(Variation(remove=self.remove or (), window=self.window, head=self.head, tail=self.tail).apply(workload, 0))


@dataclass(frozen=True)
class Files:
    """Options for output files."""

    out: Annotated[Path | None, o.out("a row for each run", *o.TABLE)] = None
    figure: o.FigureOption = None
    size: o.SizeOption = ""


@dataclass(frozen=True)
class DecisionOptions:
    """Options for all schedulers, unless their specifications set them, and for the rules of the machine; a subclass adds --estimates."""

    order: o.OrderOption = "fcfs"
    backfill_order: o.BackfillOrderOption = None
    predictor: o.PredictorOption = None
    predictions_for: o.PredictionsForOption = "regular"
    correction: o.CorrectionOption = "tsafrir07"
    learn_from: o.LearnFromOption = "simulation"
    seed: o.SeedOption = 0
    overrun: o.OverrunOption = "kill"
    simultaneous: o.SimultaneousOption = None
    dialect: o.DialectOption = "papers"
    feedback: o.FeedbackOption = False

    def schedulers(self, texts: list[str]) -> list[Scheduler]:
        """Return the schedulers of these specifications, with the options as defaults.

        Raises PolicyError for an invalid specification, and for an option that no scheduler can use.
        """
        from walltime.simulation.specification import no_backfill_order, parse_scheduler

        defaults = {"order": self.order, "backfill-order": self.backfill_order, "predictor": self.predictor}
        chosen = {"predictions_for": self.predictions_for, "correction": self.correction, "learn_from": self.learn_from}
        defaults |= {name: value for name, value in chosen.items() if value != USUAL[name]}
        schedulers = [parse_scheduler(text, defaults) for text in texts]
        if self.backfill_order is not None and (fault := no_backfill_order(texts)):
            raise fault
        if len(defaults) > 3 and not any(scheduler.prediction for scheduler in schedulers):
            raise PolicyError("--predictions-for, --correction and --learn-from need predictions; add --predictor NAME")
        return schedulers

    def run(self, workload: Workload, scheduler: Scheduler, **options: Any) -> Schedule:
        """Simulate, with a progress bar if it takes long."""
        from walltime.simulation import simulate

        with progress_bar(len(workload), scheduler.label) as progress:
            schedule = simulate(workload, scheduler, progress=progress, seed=self.seed, **self.rules, **options)
        _reported(schedule.workload)
        return schedule

    if TYPE_CHECKING:  # the option of a subclass
        estimates_given: str | list[str] | None = None

    @property
    def models(self) -> dict[str, EstimateModel]:
        """Return the estimate models by specification; raises PolicyError for an invalid one."""
        from walltime.estimates import parse_estimates

        given = [self.estimates_given] if isinstance(self.estimates_given, str) else self.estimates_given or ["user"]
        return {text: parse_estimates(text) for text in given}

    @property
    def model(self) -> EstimateModel:
        """Return the single estimate model; raises PolicyError if it is invalid."""
        return self.models[self.estimates]

    @property
    def estimates(self) -> str:
        """Return the specification of the single estimate model."""
        return next(iter(self.models))

    @property
    def rules(self) -> dict[str, Any]:
        """Return the dialect and the rule for overruns, by name; raises PolicyError for an unknown dialect."""
        return {"dialect": o.read_dialect(self.dialect, self.simultaneous), "overrun": self.overrun}

    @property
    def settings(self) -> dict[str, Any]:
        """Return the interpretation rules by their names in files and tables."""
        dialect = self.rules["dialect"]
        named = {} if dialect.label in ("papers", "pyss") else {"dialect": dialect.label}
        return {"coincident": dialect.coincident, **named, "overrun": self.overrun}


@dataclass(frozen=True)
class PolicyOptions:
    """Options for the policy and the machine."""

    policy: o.PolicyOption = None
    machine_file: o.MachineOption = None


@dataclass(frozen=True)
class FigureOptions:
    """Options for the figure of a command with a single figure."""

    figure: o.OneFigureOption = None
    size: o.SizeOption = ""


@dataclass(frozen=True)
class SiteOptions:
    """Options that describe a site: machine, policy, and measured jobs."""

    machine_file: o.MachineOption = None
    policy: o.SitePolicyOption = None
    overrun: o.OverrunOption = "kill"
    trim: o.TrimOption = "steady"
    hindsight: bool = o.field(
        False,
        "Count waits from the eligible times in the machine file, which are known only after the fact.",
        group=o.SCHEDULER,
        advanced=True,
    )


@dataclass(frozen=True)
class SingleRunOptions(DecisionOptions):
    """Options of a single run, or of the check of a single schedule."""

    estimates_given: o.EstimateOption = "user"


@dataclass(frozen=True)
class SchedulingOptions(DecisionOptions):
    """Options of one or several runs, and for the selection of measured jobs."""

    estimates_given: o.EstimatesListOption = None
    replications: o.ReplicationsOption = 1
    level_given: o.LevelOption = None
    trim: o.TrimOption = "none"
    test_share: o.TestShareOption = 1.0

    @property
    def measuring(self) -> str:
        """Return the trim for `walltime.metrics.measured`; raises PolicyError for contradictory options."""
        if not self.test_share:
            raise PolicyError("--test-share must be above 0 and at most 1, not 0")
        if self.test_share < 1 and self.trim != "none":
            raise PolicyError("--trim and --test-share both select the measured jobs; leave one out")
        return f"last:{self.test_share:g}" if self.test_share < 1 else self.trim

    @property
    def level(self) -> float:
        """Return the level of the intervals."""
        return self.level_given or LEVEL

    @property
    def seeds(self) -> range:
        """Return a seed for each replication."""
        return range(self.seed, self.seed + self.replications)

    @property
    def is_single(self) -> bool:
        """Return whether there is one replication, and one model of estimates."""
        return self.replications == 1 and len(self.models) == 1


def one_workload(run: DecisionOptions, part: JobSelection, workload: Workload) -> Workload:
    """Return the workload of a single run: selected, scaled, shaken, with its estimates; print notes on options without effect."""
    model, variation = run.model, part.variation(run.feedback)
    workload = _reported(variation.apply(workload, run.seed))
    note_feedback(workload)
    workload = variation.replica(workload, model, run.seed)
    count = int((workload.runtime > workload.requested).sum())
    if model.limit == "model" and count:
        note(f"the estimate model kills {count:,} of {len(workload):,} jobs, which run longer than their estimates")
    return workload


def _reported(workload: Workload) -> Workload:
    """Return the workload, after registering its omitted jobs for the output."""
    report_on(workload)
    return workload


def note_feedback(workload: Workload) -> None:
    """Print a note if feedback is requested, but no job names a preceding job."""
    if workload.feedback and (workload.dependencies()[0] < 0).all():
        note("no job of this log names a preceding job, so --feedback has no effect")


def make_up(model: WorkloadModel, jobs: int, procs: int, load: float | None, seed: int, users: int | None = None) -> Workload:
    """Generate a workload, with users if their number is given; raises PolicyError for any fault."""
    from walltime.workload.resampling import with_users

    try:
        made = model.generate(jobs, procs, load, seed)
        return made if users is None else with_users(made, users, seed)
    except WorkloadError as error:
        raise PolicyError(str(error)) from error


def used_by(workload: Workload, use: Path | None) -> Workload:
    """Return the workload joined with a table of resource use, if one is given, and print notes on it."""
    if use is None:
        return workload
    from walltime.logs.use_table import with_use

    joined = with_use(workload, use)
    for line in joined.notes:
        note(line)
    return joined.workload


def machine_in(path: Path | None, needed: Mapping[str, str] | None = None) -> Machine | None:
    """Return the machine in a file; None without a file. `needed`: required keys with their purpose."""
    from walltime.machine import read_machine

    return None if path is None else read_machine(path, needed or {})


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of its groups as separate parameters, which Typer requires."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    shown = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name not in groups:
            shown.append(_called(parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)))
            continue
        of_group = get_type_hints(groups[parameter.name], include_extras=True)
        for field in fields(groups[parameter.name]):
            kind, option = of_group[field.name], field.metadata.get("option")
            annotation = kind if option is None else Annotated[kind, option]
            shown.append(
                _called(inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation))
            )

    place = next((k for k, one in enumerate(shown, 1) if "--machine" in spellings(one) and "own" not in hints), None)
    if place is not None:  # the machine's file may name Python code
        shown.insert(place, inspect.Parameter("own", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=o.OwnOption))
    shown.append(inspect.Parameter("help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=HelpAllOption))
    outputs = {one.name: _spelled(one) for one in shown if any(getattr(info.callback, "writes", False) for info in _infos(one))}

    @functools.wraps(command)
    def flattened(**values: Any) -> None:
        values.pop("help_all")
        forget_logs()
        check_files(values, outputs)
        if place is not None:
            values.pop("own")  # its callback has done its work
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        command(**values)

    flattened.advanced = {one.name for one in shown if any(getattr(info, "advanced", False) for info in _infos(one))}  # type: ignore[attr-defined]
    flattened.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    flattened.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    del flattened.__wrapped__  # or its signature would be the one that is seen
    return flattened


def spellings(parameter: inspect.Parameter) -> tuple[str, ...]:
    """Return the names of an option, such as `--machine` and `--cluster`; empty for an argument."""
    options = [one for one in _infos(parameter) if isinstance(one, OptionInfo)]
    return tuple(text for one in options for text in (one.default, *(one.param_decls or ())) if isinstance(text, str))


def _spelled(parameter: inspect.Parameter) -> str:
    """Return the name of a parameter in messages: the first name of an option, or the placeholder of an argument."""
    return next(iter(spellings(parameter)), None) or next((one.metavar for one in _infos(parameter) if one.metavar), parameter.name.upper())


def _infos(parameter: inspect.Parameter) -> list[ParameterInfo]:
    return [one for one in getattr(parameter.annotation, "__metadata__", ()) if isinstance(one, ParameterInfo)]


def _called(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter with the name of its option, by default from the parameter's name, and the completion of its values."""
    for place in _infos(parameter):
        if isinstance(place, OptionInfo):
            if place.default is ... and not place.param_decls:
                place.param_decls = (f"--{parameter.name.replace('_', '-')}",)
            place.autocompletion = place.autocompletion or completion_of(next(iter(spellings(parameter)), ""))
    return parameter


HelpAllOption = Annotated[
    bool, typer.Option("--help-all", is_eager=True, callback=show_all, help="Print the help with all options, and exit.")
]


def _group(help_all: HelpAllOption = False) -> None: ...


class CommandGroup(typer.Typer):
    """A group of commands, such as `walltime slurm`, whose commands may have parameters for groups of options."""

    def __init__(self, name: str, about: str, **more: Any):
        super().__init__(name=name, help=about, cls=HelpGroup, no_args_is_help=True, pretty_exceptions_enable=False, **more)
        self.callback()(_group)

    def command(self, name: str | None = None, **more: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:  # type: ignore[override]
        """Make the function below a command; `more`: as in Typer."""
        register = super().command(name, cls=HelpCommand, **more)
        return lambda command: register(flat(command))
