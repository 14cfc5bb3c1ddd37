"""Plans: workloads, policies, estimates and seeds; read from TOML with strict checks, and expanded into cells."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from walltime.campaign.cell import SPELLED, Cell, scheduler_of
from walltime.campaign.dimensions import DIMENSIONS
from walltime.declared import Key
from walltime.errors import PolicyError, WalltimeError
from walltime.metrics import TRIMS
from walltime.permission import NotRunError, only, python_files
from walltime.policy import placed
from walltime.schedule.groups import GROUPINGS
from walltime.toml_file import TomlFile
from walltime.wording import printable

MOST_CELLS = 10_000_000
SEEDS = f"from 1 to {MOST_CELLS:,}, or a list of whole numbers from 0 (for more cells make several plans)"
LIST = "a list (a single value goes into the table fixed)"


def _distinct(what: str) -> Callable[[Any], Any]:
    def check(values: Any) -> Any:
        if isinstance(values, tuple) and len(set(values)) < len(values):
            raise PolicyError(f"names {what} twice")
        return values

    return check


def _not_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise PolicyError("is an empty list, so there is nothing to run")
    return values


def _lists(*checks: Callable[[Any], Any]) -> Key:
    """A table of parameters with a list for each."""

    def read(values: Any) -> Any:
        for check in checks:
            values = check(values)
        return values

    lists = {d.name: types.GenericAlias(tuple, (d.type, ...)) for d in DIMENSIONS.values()}
    return Key(keys={name: Annotated[kind, Key(said=LIST, read=read, meaning=DIMENSIONS[name].meaning)] for name, kind in lists.items()})


@dataclass(frozen=True)
class CampaignTable:
    """What holds for all cells."""

    name: str | None = None
    """of the campaign; without it the name of the file"""
    store: str | None = None
    """the folder of the results, beside the plan; without it PLAN.results"""
    seeds: Annotated[
        Annotated[int, Key(least=1, most=MOST_CELLS, said=SEEDS)]
        | Annotated[tuple[Annotated[int, Key(least=0, most=2**63 - 1)], ...], Key(least=1, said=SEEDS)],
        Key(said=SEEDS, read=_distinct("a seed")),
    ] = 1
    """how many (10 means 0 to 9), or which"""
    trim: Annotated[str, Key(known=TRIMS)] = "none"
    """which jobs are measured: with tsafrir06 without warm-up and cool-down"""
    dynamics: bool = False
    """whether to record what backfilling did"""
    groups: Annotated[tuple[Annotated[str, Key(known=tuple(GROUPINGS))], ...], Key(read=_distinct("a grouping"))] = ()
    """also report averages by groups of jobs"""


Lists = Annotated[Mapping[str, Any], _lists(_not_empty)]


@dataclass(frozen=True)
class PlanFile:
    """A plan as its file says it; the parameters of its tables are those of `DIMENSIONS`."""

    campaign: CampaignTable = CampaignTable()
    fixed: Annotated[Mapping[str, Any], Key(keys={d.name: d.type for d in DIMENSIONS.values()})] = field(default_factory=dict)
    """parameters with one value"""
    grid: Annotated[Mapping[str, Any], _lists(_not_empty, _distinct("a value"))] = field(default_factory=dict)
    """parameters with a list of values, of which all combinations are run"""
    zip: Lists | tuple[Lists, ...] = ()
    """parameters with lists that are taken together"""


PLAN_FILE = TomlFile(PlanFile, "a plan", "the guide on campaigns", PolicyError)


@dataclass(frozen=True, eq=False)
class Plan:
    """What a campaign computes.

    `axes`: each a list of choices, a choice being the parameters that it sets; the cells are all combinations, for every seed.
    A seed means the same random numbers for all combinations, as in mualem01, section 4.2; a cell in which nothing is random is run
    once.
    """

    path: Path
    name: str
    store: Path
    seeds: Sequence[int]
    trim: str
    dynamics: bool
    groups: Sequence[str]
    axes: Sequence[Sequence[Mapping[str, Any]]]
    spelled: Mapping[str, str] = field(default_factory=dict)
    """how the plan spells each order and policy that is taken from a file; in the axes the file has its whole path"""

    @property
    def folder(self) -> Path:
        """The folder of the traces that the plan names."""
        return self.path.parent

    @property
    def python_files(self) -> list[str]:
        """The Python files that its cells run, sorted."""
        texts = [str(choice.get(name)) for axis in self.axes for choice in axis for name in SPELLED]
        return sorted({file for text in texts for file in python_files(text)})

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell once, neighbours sharing their workload."""
        distinct = dict.fromkeys(self._combinations())
        return sorted(distinct, key=Cell.place)

    @property
    def varied(self) -> list[str]:
        """The parameters that do not have the same value in all cells, in their order."""
        values: dict[str, set[Any]] = {}
        for axis in self.axes:
            for choice in axis:
                for name, value in choice.items():
                    values.setdefault(name, set()).add(value)
        return [name for name in DIMENSIONS if len(values.get(name, ())) > 1]

    def _combinations(self) -> Iterator[Cell]:
        for choices in itertools.product(*self.axes):
            settings = {name: value for choice in choices for name, value in choice.items()}
            first = Cell.of(settings, 0, self.trim, self.dynamics, tuple(self.groups))
            for seed in self.seeds if first.is_random else (None,):
                yield Cell.of(settings, seed, self.trim, self.dynamics, tuple(self.groups))


def read_plan(path: str | Path, *, own: Sequence[str | Path] = (), run_files: bool = True) -> Plan:
    """Read and check a plan; raises PolicyError with the error, its place, and the known values.

    `own`: the Python files that the plan may run; raises NotRunError, a PolicyError, if it names another one. `run_files`: if not, none
    is run, and what they define is not checked.
    """
    path = Path(path)
    content = PLAN_FILE.content(PLAN_FILE.text(path), printable(path))
    spelled: dict[str, str] = {}
    with only(*own) if own or not run_files else nullcontext():
        file = PLAN_FILE.value(_with_own_files(content, path.parent, spelled), printable(path), checked=run_files)
        try:
            return _plan(path, file, spelled)
        except WalltimeError as error:
            raise PolicyError(f"{printable(path)}: {error}") from error


def _with_own_files(given: Any, folder: Path, spelled: dict[str, str]) -> Any:
    """The same, with the files of custom orders and policies, FILE.py:NAME, resolved against the plan's folder; notes their spelling."""

    def place(value: Any) -> Any:
        if isinstance(value, list):
            return [place(item) for item in value]
        if not isinstance(value, str) or (whole := placed(value, folder)) == value:
            return value
        spelled.setdefault(whole, value)
        return whole

    if isinstance(given, Mapping):
        own = {name: given[name] for name in SPELLED if name in given}
        others = {name: _with_own_files(value, folder, spelled) for name, value in given.items() if name not in own}
        return others | {name: place(value) for name, value in own.items()}
    return [_with_own_files(item, folder, spelled) for item in given] if isinstance(given, list) else given


def _plan(path: Path, file: PlanFile, spelled: Mapping[str, str]) -> Plan:
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
        spelled=spelled,
    )
    _check(plan)
    return plan


def _axes(file: PlanFile) -> list[list[Mapping[str, Any]]]:
    """The axes of the tables fixed, grid and zip; no parameter may be in two of them."""
    axes: list[list[Mapping[str, Any]]] = [[{name: value}] for name, value in file.fixed.items()]
    axes += [[{name: value} for value in values] for name, values in file.grid.items()]
    zips = file.zip if isinstance(file.zip, tuple) else (file.zip,)
    tables = {"fixed": file.fixed, "grid": file.grid}
    tables |= {f"zip number {number}" if isinstance(file.zip, tuple) else "zip": table for number, table in enumerate(zips, 1)}
    where: dict[str, str] = {}
    for title, table in tables.items():
        for name in table:
            if name in where:
                raise PolicyError(f"{name} stands in {where[name]} and in {title}; one place is enough")
            where[name] = title
        if title.startswith("zip") and table:
            if len({len(values) for values in table.values()}) > 1:
                counts = ", ".join(f"{name} has {len(values)}" for name, values in table.items())
                raise PolicyError(f"{title}: its lists are taken together and must be of one length, but {counts}")
            axes.append([dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)])
    return axes


def _check(plan: Plan) -> None:
    """Checks of the tables combined."""
    count = len(plan.seeds)
    for axis in plan.axes:
        count *= len(axis)
    if count > MOST_CELLS:
        raise PolicyError(f"it has {count:,} cells, more than the {MOST_CELLS:,} that a campaign takes; make several plans of it")
    named = {name for axis in plan.axes for choice in axis for name in choice}
    for settings in ({k: v for choice in choices for k, v in choice.items()} for choices in itertools.product(*plan.axes)):
        trace, model = settings.get("trace"), settings.get("model")
        if (trace is None) == (model is None):
            raise PolicyError("each cell needs a trace or a model, and not both; put one into fixed, grid or zip")
        if trace is not None and settings.get("jobs") not in (None, DIMENSIONS["jobs"].default):
            raise PolicyError("jobs says how many a model makes up; a trace has its own, and head takes the first of them")
        if settings.get("scale_by") is not None and settings.get("load") is None and "load" not in named:
            raise PolicyError("scale_by says how to reach a load; give both")
        try:
            scheduler_of(settings)
        except NotRunError:
            pass
        except PolicyError as error:
            raise PolicyError(f"backfill_order: {error}" if settings.get("backfill_order") else str(error)) from error
    if len(plan.seeds) > 1 and not any(cell.seed is not None for cell in plan.cells):
        raise PolicyError("nothing in it is random, so its seeds all give the same; shake the log, draw estimates, or leave seeds out")
