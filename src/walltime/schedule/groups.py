"""Groups of jobs by calendar, size, length, user or queue, and averages of their simulated and recorded waits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np

from walltime.declared import Field
from walltime.errors import PolicyError, WorkloadError
from walltime.metrics import bounded_slowdown, month_starts, recorded_waits
from walltime.policy import Calendar
from walltime.specification import Family, Specification, Variant
from walltime.wording import numbered, shown
from walltime.workload import Array, Workload
from walltime.workload.columns import GROUPING_COLUMNS
from walltime.workload.filters import UNITS, parse_seconds

MEASURES = ("jobs", "share_of_use", "mean_wait", "median_wait", "p90_wait", "max_wait", "mean_response", "mean_bounded_slowdown")
"""The columns of a breakdown."""

LONG = 3600
"""Jobs with longer runtimes than this, s, are long."""
WIDE = 8
"""Jobs with more processors than this are wide."""
HEAVY, MEDIUM = 0.5, 0.9
"""The heaviest users are heavy up to the first share of all processor time, and medium up to the second; the others are light."""
LENGTHS = (600, 3600, 4 * 3600, 12 * 3600, 86_400)
"""Default upper edges of groups by requested time, s."""
USERS = 10
"""Default number of users with a group of their own."""
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = tuple(f"{hour:02d}" for hour in range(24))
HOURS_OF_WEEK = tuple(f"{day} {hour}" for day in DAYS for hour in HOURS)
GROUPINGS: Mapping[str, str] = {
    "month": "calendar month in which the job ends",
    "class": f"short or long (over {LONG:,} s), narrow or wide (over {WIDE} processors)",
    "user": "users by processor time: heavy (the largest, 50 % together), medium (the next 40 %) or light",
    "users": f"the {USERS} single users with the most processor time, the others together",
    "size": "processors, by powers of two up to the widest job",
    "length": "requested time: up to 10 min, 1 h, 4 h, 12 h, 1 d, more",
    "size-length": "size and length together",
    "hour": "hour of the day of the submission, local time of the site",
    "weekday": "day of the week of the submission, local time of the site",
    "hour-of-week": "hour and day of the submission together",
    **{column: f"{column.replace('_', ' ').replace('gpu', 'GPU')} in the log" for column in GROUPING_COLUMNS},
}
TITLES: Mapping[str, str] = {
    "class": "short and long (over 1 h), narrow and wide (over 8 processors) jobs",
    "user": "heavy, medium and light users",
    "users": "the users with most processor time",
    "size": "processors",
    "length": "requested time",
    **{column: column.replace("_", " ") for column in GROUPING_COLUMNS},
}
"""Titles of tables of groups on pages, which follow the word "by"."""
CLASSES = ("short narrow", "short wide", "long narrow", "long wide")
USE = ("heavy", "medium", "light")
_NUMBER = re.compile(r"\d+")
_TIME = re.compile(r"(\d+) (s|min|h|d)\b")
UNKNOWN = "unknown"
Edges = Sequence[int] | Sequence[Sequence[int]] | int | None


@dataclass(frozen=True, eq=False)
class Groups:
    """The names of groups in their natural order, and the index of each job's group, int64, shape (jobs,)."""

    names: Sequence[str]
    of: Array

    def __mul__(self, other: Groups) -> Groups:
        """Return the combinations of two groupings, the first one outermost, without empty groups."""
        pairs, of = np.unique(self.of * len(other.names) + other.of, return_inverse=True)
        return Groups([f"{self.names[p // len(other.names)]}, {other.names[p % len(other.names)]}" for p in pairs.tolist()], of)

    def members(self, mask: Array) -> list[tuple[str, Array]]:
        """Return each group with jobs in this mask (bool, shape (jobs,)), and their indices, int64, by arrival."""
        chosen = np.flatnonzero(mask)
        order = chosen[np.argsort(self.of[chosen], kind="stable")]
        numbers, first = np.unique(self.of[order], return_index=True)
        return [(self.names[k], part) for k, part in zip(numbers.tolist(), np.split(order, first[1:]), strict=True)] if len(order) else []


def group_jobs(workload: Workload, by: str, submit: Array, end: Array, edges: Edges = None, runtime: Array | None = None) -> Groups:
    """Put the jobs into groups; jobs without the needed data in the log form the group "unknown".

    * `submit`, `end`, `runtime`: int64 s, shape (jobs,); `runtime` is the simulated one, by default the log's
    * `edges`: for `size` and `length`, the largest processors or requested seconds of each group but the last; for `size-length`, both; for
      `users`, the number of single users

    Raises PolicyError for an unknown grouping or wrong edges.
    """
    runtime = workload.runtime if runtime is None else runtime
    if by not in GROUPINGS:
        raise PolicyError(f"jobs cannot be grouped by {shown(by)}. Valid options: {', '.join(GROUPINGS)}", "unknown_grouping")
    if edges is not None and by not in ("size", "length", "size-length", "users"):
        raise PolicyError(f"groups by {by} have no edges; leave them out, or group by size, length, size-length or users", "wrong_edges")
    use = workload.procs.astype(np.float64) * runtime
    match by:
        case "month":
            return _months(workload, end)
        case "class":
            return _nonempty(CLASSES, 2 * (runtime > LONG) + (workload.procs > WIDE))
        case "user":
            return _user_classes(workload, use)
        case "users":
            most = USERS if edges is None else edges
            if isinstance(most, bool) or not isinstance(most, int) or most < 1:
                raise PolicyError(f"the number of single users must be a whole number from 1, not {shown(most)}", "number_out_of_range")
            return largest_groups(workload, "user", use, most)
        case "size":
            return _sizes(workload.procs, edges)
        case "length":
            return _lengths(workload.requested, edges)
        case "size-length":
            both: Any = (None, None) if edges is None else edges
            if not isinstance(both, Sequence) or len(both) != 2:
                raise PolicyError(f"edges of size-length are a list of sizes and a list of lengths, not {shown(edges)}", "wrong_edges")
            return _sizes(workload.procs, both[0]) * _lengths(workload.requested, both[1])
        case "hour" | "weekday" | "hour-of-week":
            return _clock(workload, submit, by)
    return largest_groups(workload, by)


def check_known(workload: Workload, by: str, groups: Groups) -> None:
    """Raise WorkloadError if all jobs are in the group "unknown"."""
    if list(groups.names) != [UNKNOWN]:
        return
    name, remedy = workload.origin.name, "group them by another property"
    if by in ("user", "users", *GROUPING_COLUMNS):
        raise WorkloadError(f"{name} does not record the {by.removesuffix('s')} of its jobs; {remedy}", "missing_column")
    remedy += ", or add a line to its header, such as '; UnixStartTime: 1262304000'"
    raise WorkloadError(f"{name} does not record its start (UnixStartTime), so its jobs have no {by}; {remedy}", "unknown_start_time")


def check_same_jobs(first: Workload, other: Workload) -> None:
    """Raise WorkloadError if two workloads have different jobs."""
    if other is first:
        return
    if len(other) != len(first) or (other.job_id != first.job_id).any() or (other.submit != first.submit).any():
        raise WorkloadError(
            f"the schedules of {first.origin.name} and {other.origin.name} have different jobs; use schedules of the same jobs",
            "other_jobs",
        )


def _times(text: str) -> tuple[int, ...]:
    return tuple(parse_seconds(one) for one in text.split("/"))


@dataclass(frozen=True)
class Grouping(Specification):
    """A way to put jobs into groups, with optional edges.

    Raises PolicyError for `size-length` with only one kind of edges.
    """

    positional: ClassVar[tuple[str, ...]] = ("sizes", "lengths", "most")
    by: str
    """a name of GROUPINGS"""
    sizes: Annotated[tuple[int, ...] | None, Field(least=1)] = None
    """the most processors in each group but the last, such as 8/64"""
    lengths: Annotated[tuple[int, ...] | None, Field(read=_times, label="lengths of time such as 1h/1d", least=1)] = None
    """the longest requested time in each group but the last"""
    most: Annotated[int | None, Field(least=1)] = None
    """number of single users to show"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by == "size-length" and (self.sizes is None) != (self.lengths is None):
            raise PolicyError("give both sizes and lengths, as in size-length:8/64,1h/1d", "missing_option")

    @property
    def edges(self) -> Edges:
        """Return the edges in the form that `group_jobs` takes."""
        if self.by == "size-length":
            return None if self.sizes is None or self.lengths is None else [self.sizes, self.lengths]
        return self.most if self.by == "users" else self.sizes if self.by == "size" else self.lengths


_OF_GROUPING = {"size": ("sizes",), "length": ("lengths",), "size-length": ("sizes", "lengths"), "users": ("most",)}
GROUPED = Family(
    Grouping,
    "grouping",
    {
        name: Variant(Grouping, {"by": name}, _OF_GROUPING.get(name, ()), meaning=f"{text[0].upper()}{text[1:]}.")
        for name, text in GROUPINGS.items()
    },
)
"""The groupings of `--by`."""


def parse_grouping(text: str) -> tuple[str, Edges]:
    """Parse a grouping of the command line into its name and edges; raise PolicyError if it is invalid.

    >>> parse_grouping("size:8/64"), parse_grouping("size-length:8/64,1h/1d"), parse_grouping("users:20"), parse_grouping("month")
    (('size', (8, 64)), ('size-length', [(8, 64), (3600, 86400)]), ('users', 20), ('month', None))
    """
    grouping = GROUPED.parse(text)
    return grouping.by, grouping.edges


def local_seconds(workload: Workload, submit: Array) -> Array | None:
    """Return the site's local time at each submission, int64 s from a Monday at midnight; None if the log's start is unknown."""
    from walltime.engine.interface.orders import clock_of

    origin = workload.origin
    if origin.unix_start_time is None or not len(submit):
        return None
    clock = clock_of(Calendar(origin.unix_start_time, origin.tzinfo()), int(submit.min()), int(submit.max()) + 1)
    offsets, changes = np.array(clock[0::2], np.int64), np.array(clock[1::2], np.int64)
    return submit + offsets[np.searchsorted(changes, submit, side="right")]


def _nonempty(names: Sequence[str], of: Array) -> Groups:
    """Return groups without the empty ones."""
    numbers, place = np.unique(of, return_inverse=True)
    return Groups([names[k] for k in numbers.tolist()], place)


def _unknown(jobs: int) -> Groups:
    return Groups([UNKNOWN], np.zeros(jobs, np.int64))


def _months(workload: Workload, end: Array) -> Groups:
    begin = workload.origin.unix_start_time
    if begin is None or not len(workload):
        return _unknown(len(workload))
    months = month_starts(begin + int(end.min()), begin + int(end.max()), workload.origin.tzinfo())
    names = [f"{year}-{month:02d}" for year, month, _ in months]
    return _nonempty(names, np.searchsorted([first for _, _, first in months], begin + end, side="right") - 1)


def _user_classes(workload: Workload, use: Array) -> Groups:
    users = workload.columns.get("user")
    if users is None or not len(workload) or (users < 0).all():
        return _unknown(len(workload))
    known, place = np.unique(users, return_inverse=True)
    area = np.bincount(place, weights=use)
    order = np.argsort(-area, kind="stable")
    before = np.empty(len(known))
    before[order] = np.concatenate([[0.0], np.cumsum(area[order])[:-1]]) / max(area.sum(), 1.0)
    classes = np.where(before < HEAVY, 0, np.where(before < MEDIUM, 1, 2))
    return _nonempty([*USE, UNKNOWN], np.where(users < 0, 3, classes[place]))


SELF_EVIDENT = ("user", "account")
"""Columns whose values, if they have names, are names of groups by themselves; numbers follow the name of the column."""


def largest_groups(
    workload: Workload, column: str, weight: Array | None = None, most: int | None = None, word: str | None = None
) -> Groups:
    """Group jobs by the values of a column: the `most` values with the largest weight, the largest first, then others, then unknown ones.

    `weight`: float64, shape (jobs,); without it, all values have groups, in ascending order. `word`: the name for a value, by default the
    column's.
    """
    word = word or column
    values = workload.columns.get(column)
    if values is None or not len(workload) or (values < 0).all():
        return _unknown(len(workload))
    known, place = np.unique(values, return_inverse=True)
    chosen = np.flatnonzero(known >= 0)
    if weight is not None:
        chosen = chosen[np.argsort(-np.bincount(place, weights=weight)[chosen], kind="stable")][:most]
    rank = np.where(known < 0, len(chosen) + 1, len(chosen))
    rank[chosen] = np.arange(len(chosen))
    names = [workload.origin.name_of(column, number) for number in known[chosen].tolist()]
    single = [numbered(word, name) if word in SELF_EVIDENT else f"{word} {name}" for name in names]
    return _nonempty([*single, f"other {word}s", UNKNOWN], rank[place])


def alike_columns(workload: Workload, columns: Iterable[str]) -> list[list[str]]:
    """Return lists of the columns that the log records; columns that group the jobs equally are in the same list."""
    found: list[list[str]] = []
    places: list[Array] = []
    for column in columns:
        values = workload.columns.get(column)
        if values is None or not (values >= 0).any():
            continue
        place = np.unique(values, return_inverse=True)[1]
        same = [k for k, other in enumerate(places) if _are_alike(place, other)]
        if same:
            found[same[0]].append(column)
        else:
            found.append([column])
            places.append(place)
    return found


def _are_alike(place: Array, other: Array) -> bool:
    count = int(other.max()) + 1
    return bool(place.max() + 1 == count == len(np.unique(place * count + other)))


def _sizes(procs: Array, edges: Any) -> Groups:
    if edges is None:
        if not len(procs):
            return Groups([], np.zeros(0, np.int64))
        edges = [2**k for k in range(int(procs.max() - 1).bit_length() + 1)]
    bounds = _checked(edges, "size")
    names = [f"{low + 1}-{high}" if low + 1 < high else str(high) for low, high in zip([0, *bounds[:-1]], bounds, strict=True)]
    return _nonempty([*names, f"over {bounds[-1]}"], np.searchsorted(bounds, procs, side="left"))


def _lengths(requested: Array, edges: Any) -> Groups:
    bounds = _checked(LENGTHS if edges is None else edges, "length")
    times = [round_time(seconds) for seconds in bounds]
    names = [f"up to {times[0]}", *(f"{low} to {high}" for low, high in pairwise(times)), f"over {times[-1]}"]
    return _nonempty(names, np.searchsorted(bounds, requested, side="left"))


def round_time(seconds: int) -> str:
    """Return a time as a number of its largest whole unit.

    >>> round_time(5400), round_time(7200), round_time(59)
    ('90 min', '2 h', '59 s')
    """
    units = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    return next(f"{seconds // length} {unit}" for length, unit in units if not seconds % length)


def _checked(edges: Any, what: str) -> list[int]:
    whole = isinstance(edges, Sequence | np.ndarray) and len(edges) and all(isinstance(edge, int | np.integer) for edge in edges)
    if not whole or edges[0] < 1 or any(b <= a for a, b in pairwise(edges)):
        raise PolicyError(f"edges of {what} must be increasing whole numbers, such as [8, 64], not {shown(edges)}", "wrong_edges")
    return [int(edge) for edge in edges]


def _clock(workload: Workload, submit: Array, by: str) -> Groups:
    local = local_seconds(workload, submit)
    if local is None:
        return _unknown(len(workload))
    hour = local // 3600
    names, of = {"hour": (HOURS, hour % 24), "weekday": (DAYS, hour // 24 % 7), "hour-of-week": (HOURS_OF_WEEK, hour % 168)}[by]
    return _nonempty(names, of)


def breakdown(groups: Groups, wait: Array, runtime: Array, procs: Array, measured: Array) -> list[dict[str, Any]]:
    """Return averages over the measured jobs of each group with such jobs, in the order of the groups.

    `wait, runtime`: int64 s, `procs`: int64 processors, `measured`: bool; each of shape (jobs,). A row has the `group`, the number of
    `jobs`, their `share_of_use` (of the processor time of all measured jobs), and waits, responses (s) and bounded slowdowns.
    """
    use = procs.astype(np.float64) * runtime
    total = float(use[measured].sum())
    slowdown = bounded_slowdown(wait, runtime)
    rows = []
    for name, inside in groups.members(measured):
        waits = wait[inside]
        share = use[inside].sum() / total if total else math.nan
        values = (
            share,
            waits.mean(),
            *np.percentile(waits, [50, 90]),
            waits.max(),
            (waits + runtime[inside]).mean(),
            slowdown[inside].mean(),
        )
        rows.append({"group": name, "jobs": len(inside)} | dict(zip(MEASURES[1:], map(float, values), strict=True)))
    return rows


def recorded_groups(workload: Workload, by: str, runtime: Array) -> Groups:
    """Return the groups, with months by submission, so that recorded and simulated waits share them; `runtime`: simulated, int64 s."""
    try:
        return group_jobs(workload, by, workload.submit, workload.submit, runtime=runtime)
    except WorkloadError:  # its times are outside the range of the calendar
        return _unknown(len(workload))


def recorded_rows(groups: Groups, recorded: Array, simulated: Array, measured: Array) -> list[dict[str, Any]]:
    """Return a row for each group with measured jobs and known waits: its name as `group`, then the fields of `recorded_waits`.

    `recorded, simulated`: int64 s, `measured`: bool; each of shape (jobs,).
    """
    parts = groups.members(measured & (recorded >= 0))
    return [{"group": name, **recorded_waits(recorded[inside], simulated[inside]).as_dict()} for name, inside in parts]


def group_rank(by: str, name: str) -> tuple[Any, ...]:
    """Return the sort key of a group by its name, so that campaigns list groups like the breakdowns of single runs.

    Sizes, lengths, numbers, months and hours ascend, days begin on Monday, users go from heavy to light; the unknown group comes last.

    >>> sorted(["9-16", "over 64", "1", "17-32"], key=lambda name: group_rank("size", name))
    ['1', '9-16', '17-32', 'over 64']
    >>> sorted(["over 1 d", "1 h to 4 h", "10 min to 1 h", "up to 10 min"], key=lambda name: group_rank("length", name))
    ['up to 10 min', '10 min to 1 h', '1 h to 4 h', 'over 1 d']
    >>> sorted(["Sun 03", "Mon 12", "Mon 03"], key=lambda name: group_rank("hour-of-week", name))
    ['Mon 03', 'Mon 12', 'Sun 03']
    """
    if name == UNKNOWN:
        return (1,)
    usual = {"weekday": DAYS, "hour-of-week": HOURS_OF_WEEK, "class": CLASSES, "user": USE}.get(by)
    if usual is not None:
        return (0, usual.index(name) if name in usual else len(usual), name)
    size, _, length = ("", "", name) if by == "length" else name.partition(", ") if by == "size-length" else (name, "", "")
    return (0, _size(size), _length(length), name)


def _size(name: str) -> float:
    """Return the number of processors by which a group is sorted: its smallest or, for the last group, its edge plus one."""
    number = _NUMBER.search(name)
    return math.inf if number is None else int(number[0]) + (1 if name.startswith("over") else 0)


def _length(name: str) -> float:
    """Return the time, s, by which a group is sorted: its shortest."""
    if name.startswith("up to"):
        return 0
    number = _TIME.search(name)
    return math.inf if number is None else int(number[1]) * UNITS["m" if number[2] == "min" else number[2]]
