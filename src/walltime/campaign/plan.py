"""Plans of workloads, policies, estimates and seeds, read from TOML and expanded into cells."""

from __future__ import annotations

import itertools
import math
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from walltime.campaign.cell import DIMENSIONS, USER_FILE_SETTINGS, Cell, scheduler_of
from walltime.declared import Field
from walltime.errors import PolicyError, WalltimeError
from walltime.metrics import check_trim
from walltime.metrics.intervals import LEVEL
from walltime.permission import NotRunError, only, python_files
from walltime.policy import resolve_files
from walltime.schedule.groups import GROUPINGS
from walltime.toml_file import TomlFile
from walltime.wording import printable

MAX_CELLS = 10_000_000
SEEDS = f"from 1 to {MAX_CELLS:,}, or a list of whole numbers from 0 (for more cells make several plans)"
LIST = "a list (a single value goes into the table fixed)"


def _distinct(values: Any) -> Any:
    if isinstance(values, tuple) and (repeated := [value for value in dict.fromkeys(values) if values.count(value) > 1]):
        raise PolicyError(f"contains {repeated[0]!r} twice; remove one")
    return values


def _not_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise PolicyError("is an empty list; give at least one value")
    return values


def _trim(trim: str) -> str:
    with suppress(NotRunError):
        check_trim(trim)
    return trim


def _lists(*checks: Callable[[Any], Any]) -> Field:
    """Return the declaration of a table that has a list for each parameter."""

    def read(values: Any) -> Any:
        for check in checks:
            values = check(values)
        return values

    lists = {d.name: types.GenericAlias(tuple, (d.type, ...)) for d in DIMENSIONS.values()}
    fields = {name: Field(label=LIST, read=read, meaning=DIMENSIONS[name].meaning) for name in lists}
    return Field(keys={name: Annotated[kind, fields[name]] for name, kind in lists.items()})


@dataclass(frozen=True)
class CampaignTable:
    """Settings of all cells."""

    name: str | None = None
    """name of the campaign; default: the name of the file"""
    store: str | None = None
    """folder of the results, relative to the plan; default: PLAN.results"""
    seeds: Annotated[
        Annotated[int, Field(least=1, most=MAX_CELLS, label=SEEDS)]
        | Annotated[tuple[Annotated[int, Field(least=0, most=2**63 - 1)], ...], Field(least=1, label=SEEDS)],
        Field(label=SEEDS, read=_distinct),
    ] = 1
    """number of seeds (10 means 0 to 9), or a list of seeds"""
    trim: Annotated[str, Field(read=_trim)] = "none"
    """which jobs are measured; `tsafrir06` excludes warm-up and cool-down, `after:7` excludes the first seven days"""
    level: Annotated[float, Field(least=50, below=100)] = 100 * LEVEL
    """level of the confidence intervals in reports, percent"""
    dynamics: bool = False
    """whether to record the effects of backfilling"""
    keep: Annotated[str | None, Field(known=("schedules",))] = None
    """`schedules` keeps the schedule of each cell, from which reports can compute further metrics"""
    groups: Annotated[tuple[Annotated[str, Field(known=tuple(GROUPINGS))], ...], Field(read=_distinct)] = ()
    """groupings of jobs for which averages are reported as well"""


Lists = Annotated[Mapping[str, Any], _lists(_not_empty)]


@dataclass(frozen=True)
class PlanFile:
    """The content of a plan file; the parameters of its tables are in `DIMENSIONS`."""

    campaign: CampaignTable = CampaignTable()
    fixed: Annotated[Mapping[str, Any], Field(keys={d.name: d.type for d in DIMENSIONS.values()})] = field(default_factory=dict)
    """parameters with one value"""
    grid: Annotated[Mapping[str, Any], _lists(_not_empty, _distinct)] = field(default_factory=dict)
    """parameters with lists of values; all combinations are run"""
    zip: Lists | tuple[Lists, ...] = ()
    """parameters with lists of equal length; values at the same position are combined"""


PLAN_FILE = TomlFile(PlanFile, "a plan", "docs/guides/campaigns.md", PolicyError)


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of a campaign.

    `axes`: lists of choices, each a set of parameter values; the cells are all combinations, for every seed. A seed gives the same
    random numbers to all combinations, as in mualem01, section 4.2; a cell without randomness is run once.
    """

    path: Path
    name: str
    store: Path
    seeds: Sequence[int]
    trim: str
    dynamics: bool
    groups: Sequence[str]
    axes: Sequence[Sequence[Mapping[str, Any]]]
    level: float = LEVEL
    """level of the confidence intervals in reports"""
    keep: str | None = None
    """`schedules` to keep the schedules"""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """user files as the plan writes them, by the absolute paths used in the axes"""

    @property
    def folder(self) -> Path:
        """Return the folder of the plan, to which paths are relative."""
        return self.path.parent

    @property
    def python_files(self) -> list[str]:
        """Return the Python files that its cells run, sorted."""
        texts = [self.trim, *(str(choice.get(name)) for axis in self.axes for choice in axis for name in USER_FILE_SETTINGS)]
        return sorted({file for text in texts for file in python_files(text)})

    @cached_property
    def cells(self) -> list[Cell]:
        """Return the distinct cells, sorted so that cells with the same workload are adjacent."""
        return sorted(dict.fromkeys(self._combinations()), key=Cell.sort_key)

    @property
    def varied(self) -> list[str]:
        """Return the parameters with several values, in order."""
        values = {(name, value) for axis in self.axes for choice in axis for name, value in choice.items()}
        counts = Counter(name for name, _ in values)
        return [name for name in DIMENSIONS if counts[name] > 1]

    def _combinations(self) -> Iterator[Cell]:
        for choices in itertools.product(*self.axes):
            settings = {name: value for choice in choices for name, value in choice.items()}
            first = Cell.of(settings, 0, self.trim, self.dynamics, tuple(self.groups))
            for seed in self.seeds if first.is_random else (None,):
                yield Cell.of(settings, seed, self.trim, self.dynamics, tuple(self.groups))


def read_plan(path: str | Path, *, own: Sequence[str | Path] = (), run_files: bool = True) -> Plan:
    """Read and check a plan; raises PolicyError with the error, its location, and the valid values.

    `own`: the Python files that the plan may run; raises NotRunError, a PolicyError, for other files. With `run_files=False`, no file is
    run, and its definitions are not checked.
    """
    path = Path(path)
    content = PLAN_FILE.content(PLAN_FILE.text(path), printable(path))
    spelled: dict[str, str] = {}
    with only(*own) if own or not run_files else nullcontext():
        file = PLAN_FILE.value(_resolve_user_files(content, path.parent, spelled), printable(path), checked=run_files)
        try:
            campaign = file.campaign
            plan = Plan(
                path=path,
                name=campaign.name or path.stem,
                store=path.parent / (campaign.store or f"{path.stem}.results"),
                seeds=range(campaign.seeds) if isinstance(campaign.seeds, int) else campaign.seeds,
                trim=campaign.trim,
                dynamics=campaign.dynamics,
                groups=campaign.groups,
                axes=_axes(file),
                level=campaign.level / 100,
                keep=campaign.keep,
                spelled=spelled,
            )
            _check(plan)
            return plan
        except WalltimeError as error:
            raise PolicyError(f"{printable(path)}: {error}") from error


def _resolve_user_files(content: Any, folder: Path, spelled: dict[str, str], setting: bool = False) -> Any:
    """Return the content of a plan with user files resolved against its folder; `spelled` receives their original names.

    `setting`: whether the content is the value of one of `USER_FILE_SETTINGS`, or a trim.
    """
    if isinstance(content, Mapping):
        return {name: _resolve_user_files(value, folder, spelled, name in (*USER_FILE_SETTINGS, "trim")) for name, value in content.items()}
    if isinstance(content, list):
        return [_resolve_user_files(item, folder, spelled, setting) for item in content]
    if not setting or not isinstance(content, str) or (path := resolve_files(content, folder)) == content:
        return content
    spelled.setdefault(path, content)
    return path


def _axes(file: PlanFile) -> list[list[Mapping[str, Any]]]:
    """Return the axes of the tables fixed, grid and zip; raises PolicyError for a parameter in two of them."""
    axes: list[list[Mapping[str, Any]]] = [[{name: value}] for name, value in file.fixed.items()]
    axes += [[{name: value} for value in values] for name, values in file.grid.items()]
    zips = file.zip if isinstance(file.zip, tuple) else (file.zip,)
    tables = {"fixed": file.fixed, "grid": file.grid}
    tables |= {f"zip number {number}" if isinstance(file.zip, tuple) else "zip": table for number, table in enumerate(zips, 1)}
    where: dict[str, str] = {}
    for title, table in tables.items():
        for name in table:
            if name in where:
                raise PolicyError(f"{name} is in the tables {where[name]} and {title}; remove it from one of them")
            where[name] = title
        if title.startswith("zip") and table:
            if len({len(values) for values in table.values()}) > 1:
                counts = ", ".join(f"{name} has {len(values)}" for name, values in table.items())
                raise PolicyError(f"the lists of {title} must have the same length, but {counts}")
            axes.append([dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)])
    return axes


def _check(plan: Plan) -> None:
    """Check the combinations of settings."""
    count = math.prod(map(len, (plan.seeds, *plan.axes)))
    if count > MAX_CELLS:
        raise PolicyError(f"the plan has {count:,} cells, more than the maximum of {MAX_CELLS:,}; split it into several plans")
    named = {name for axis in plan.axes for choice in axis for name in choice}
    for settings in ({k: v for choice in choices for k, v in choice.items()} for choices in itertools.product(*plan.axes)):
        trace, model = settings.get("trace"), settings.get("model")
        if (trace is None) == (model is None):
            raise PolicyError("each cell needs either a trace or a model; put one of them into fixed, grid or zip")
        if trace is not None and settings.get("jobs") not in (None, DIMENSIONS["jobs"].default):
            raise PolicyError("jobs is the number of jobs of a model; with a trace, use head to limit their number")
        if settings.get("scale_by") is not None and settings.get("load") is None and "load" not in named:
            raise PolicyError("scale_by needs a load to scale to; add load, or leave scale_by out")
        try:
            scheduler_of(settings)
        except NotRunError:
            pass
        except PolicyError as error:
            raise PolicyError(f"backfill_order: {error}" if settings.get("backfill_order") else str(error)) from error
    if len(plan.seeds) > 1 and not any(cell.seed is not None for cell in plan.cells):
        raise PolicyError("the plan has several seeds but no randomness; shake the log, draw estimates, or leave seeds out")
