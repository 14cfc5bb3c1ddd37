"""Plans: workloads, policies, estimates and seeds; read from TOML with strict checks, and expanded into cells."""

from __future__ import annotations

import difflib
import itertools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from walltime.campaign.cell import SPELLED, Cell, scheduler_of
from walltime.campaign.dimensions import DEFAULT, DIMENSIONS
from walltime.errors import PolicyError, WalltimeError
from walltime.files import printable
from walltime.metrics import TRIMS
from walltime.policy import NotRunError, only, placed
from walltime.schedule.groups import GROUPINGS

MOST_CELLS = 10_000_000
SETTINGS: Mapping[str, type] = {"name": str, "store": str, "seeds": object, "trim": str, "dynamics": bool, "groups": list}
"""The keys of the table `campaign`."""
TABLES = ("campaign", "fixed", "grid", "zip")


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

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell once, neighbours sharing their workload."""
        found = dict.fromkeys(self._combinations())
        return sorted(found, key=Cell.place)

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


def read_plan(path: str | Path, *, run_files: bool = True) -> Plan:
    """Read and check a plan; raises PolicyError with the error, its place, and the known values.

    `run_files`: whether the Python files that it names may be run; if not, what they define is not checked.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"{printable(path)}: cannot be read ({(error.strerror or str(error)).lower()}); name a plan") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{printable(path)}: is no text in UTF-8; a plan is a TOML file") from error
    try:
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists thousands deep
        raise PolicyError(f"{printable(path)}: is no TOML: {error}") from error
    try:
        spelled: dict[str, str] = {}
        with nullcontext() if run_files else only():
            return _plan(path, _with_own_files(given, path.parent, spelled), spelled)
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


def _plan(path: Path, given: Mapping[str, Any], spelled: Mapping[str, str]) -> Plan:
    _known("table", given, TABLES)
    campaign = _table(given, "campaign")
    _known("key", campaign, SETTINGS, "campaign")
    for key, kind in SETTINGS.items():
        if key in campaign and not isinstance(campaign[key], kind):
            raise PolicyError(f"campaign.{key} must be {_kind_name(kind)}, not {campaign[key]!r}")
    trim = campaign.get("trim", "none")
    if trim not in TRIMS:
        raise PolicyError(f"campaign.trim: unknown trim {trim!r}; known are {', '.join(TRIMS)}")
    groups = campaign.get("groups", [])
    for group in groups:
        if not isinstance(group, str) or group not in GROUPINGS:
            near = _nearest(str(group), GROUPINGS)
            raise PolicyError(f"campaign.groups: unknown grouping {group!r}{near}; known are {', '.join(GROUPINGS)}")
    if len(set(groups)) < len(groups):
        raise PolicyError("campaign.groups names a grouping twice")
    axes = _axes(given)
    plan = Plan(
        path=path,
        name=campaign.get("name", path.stem),
        store=path.parent / campaign.get("store", f"{path.stem}.results"),
        seeds=_seeds(campaign.get("seeds", 1)),
        trim=trim,
        dynamics=campaign.get("dynamics", False),
        groups=groups,
        axes=axes,
        spelled=spelled,
    )
    _check(plan)
    return plan


def _axes(given: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """The axes of the tables fixed, grid and zip; no parameter may be in two of them."""
    axes: list[list[Mapping[str, Any]]] = []
    where: dict[str, str] = {}

    def claim(name: str, table: str) -> None:
        if name in where:
            raise PolicyError(f"{name} stands in {where[name]} and in {table}; one place is enough")
        where[name] = table

    for name, value in _table(given, "fixed").items():
        _known("key", [name], DIMENSIONS, "fixed")
        claim(name, "fixed")
        axes.append([{name: _value(name, value, "fixed")}])
    for name, values in _table(given, "grid").items():
        _known("key", [name], DIMENSIONS, "grid")
        claim(name, "grid")
        axes.append([{name: value} for value in _values(name, values, "grid")])
    zips = given.get("zip", [])
    if not isinstance(zips, Mapping | list):
        raise PolicyError("zip must be a table, written [zip], or several, each written [[zip]]")
    for number, table in enumerate([zips] if isinstance(zips, Mapping) else zips, 1):
        title = "zip" if isinstance(zips, Mapping) else f"zip number {number}"
        if not isinstance(table, Mapping):
            raise PolicyError(f"{title} must be a table of lists")
        _known("key", table, DIMENSIONS, title)
        lists = {name: _values(name, values, title) for name, values in table.items()}
        lengths = {name: len(values) for name, values in lists.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
            raise PolicyError(f"{title}: its lists are taken together and must be of one length, but {counts}")
        for name in lists:
            claim(name, title)
        if lists:
            axes.append([dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)])
    return axes


def _values(name: str, values: Any, table: str) -> list[Any]:
    if not isinstance(values, list):
        raise PolicyError(f"{table}.{name} must be a list, not {values!r}; a single value goes into the table fixed")
    if not values:
        raise PolicyError(f"{table}.{name} is an empty list, so there is nothing to run")
    checked = [_value(name, value, table) for value in values]
    if table == "grid" and len(set(checked)) < len(checked):
        raise PolicyError(f"{table}.{name} names a value twice")
    return checked


def _value(name: str, value: Any, table: str) -> Any:
    dimension = DIMENSIONS[name]
    if value == DEFAULT:
        return dimension.default
    if dimension.kind is float and type(value) is int:
        value = float(value)
    if type(value) is not dimension.kind:
        raise PolicyError(f"{table}.{name} must be {_kind_name(dimension.kind)}, not {value!r}")
    if dimension.check is not None:
        try:
            dimension.check(value)
        except NotRunError:
            pass
        except WalltimeError as error:
            raise PolicyError(f"{table}.{name}: {error}") from error
    return value


def _seeds(given: Any) -> Sequence[int]:
    if type(given) is int:
        if not 1 <= given <= MOST_CELLS:
            raise PolicyError(f"campaign.seeds must be from 1 to {MOST_CELLS:,}, not {given}; for more cells make several plans")
        return range(given)
    if not isinstance(given, list) or not given or any(type(seed) is not int or not 0 <= seed < 2**63 for seed in given):
        raise PolicyError(f"campaign.seeds must be how many there are, or a list of whole numbers from 0, not {given!r}")
    if len(set(given)) < len(given):
        raise PolicyError("campaign.seeds names a seed twice")
    return given


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
        if settings.get("cluster") is not None and (
            plan.dynamics or settings.get("coincident", "batch") != "batch" or settings.get("dialect", "papers") != "papers"
        ):
            what = "dynamics are" if plan.dynamics else "dialects, and coincident events one by one, are"
            raise PolicyError(f"{what} not known on a machine of several pools; leave them out, or the cluster")
        try:
            scheduler_of(settings)
        except NotRunError:
            pass
        except PolicyError as error:
            raise PolicyError(f"backfill_order: {error}" if settings.get("backfill_order") else str(error)) from error
    if len(plan.seeds) > 1 and not any(cell.seed is not None for cell in plan.cells):
        raise PolicyError("nothing in it is random, so its seeds all give the same; shake the log, draw estimates, or leave seeds out")


def _table(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = given.get(name, {})
    if not isinstance(table, Mapping):
        raise PolicyError(f"{name} must be a table, written [{name}]")
    return table


def _known(what: str, given: Any, known: Any, table: str = "") -> None:
    for key in given:
        if key not in known:
            inside = f" in {table}" if table else ""
            raise PolicyError(f"unknown {what} {key!r}{inside}{_nearest(key, known)}; known are {', '.join(known)}")


def _nearest(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else ""


def _kind_name(kind: type) -> str:
    return {str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list"}.get(kind, "a value")
