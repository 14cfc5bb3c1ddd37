"""Encode schedules for interactive pages: columns in a compact form, which the files in scripts/ decode.

The line charts use uPlot (version 1.6.32, MIT licence), which is embedded unchanged. The Gantt chart, which must show
hundreds of thousands of jobs, and all other scripts are part of this project.
"""

import base64
import json
import math
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

import numpy as np

from walltime.errors import PolicyError
from walltime.metrics import LAST
from walltime.report.page import Chart
from walltime.report.stretch import assign_processors
from walltime.schedule.schedule import Schedule
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.workload.origin import Origin

Array = np.ndarray

MOST_JOBS = 1_000_000
"""Pages with more jobs than this are static, because they would exceed a hundred megabytes."""
LARGEST = 2**31 - 1
"""Largest value of the columns, which are int32."""
DELTAS = frozenset({"id", "submit", "stripJob"})
"""Ascending columns, which are stored as differences."""
DASHES: tuple[Sequence[float], ...] = ((), (11, 3), (3, 2), (12, 3, 3, 3))
"""The dash patterns of the figures, in pixels."""


def can_live(schedules: Sequence[Schedule]) -> bool:
    """Return whether a page of these schedules can be interactive: it has jobs, not too many, and times that fit int32."""
    jobs = len(schedules[0])
    return 0 < jobs <= MOST_JOBS and all(int(s.end.max()) < LARGEST and int(s.submit.min()) > -LARGEST for s in schedules)


def live_data(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[Array]) -> str:
    """Return the schedules as script elements of a page: about 3 bytes per job, and 10 per job and policy."""
    from walltime.report import figures  # matplotlib is slow to load; only a page needs it

    w, first = schedules[0].workload, schedules[0]
    same_submit = all(s.submitted is None for s in schedules)
    same_runtime = all(np.array_equal(s.runtime, first.runtime) for s in schedules)
    shared = {"id": w.job_id, "procs": w.procs, "requested": np.minimum(w.requested, LARGEST)}
    if "user" in w.columns:
        shared["user"] = w.columns["user"]
    if same_submit:
        shared["submit"] = first.submit
    if same_runtime:
        shared["runtime"] = first.runtime
    layout, jobs = _pack(shared)
    blocks = [_block("live-jobs", jobs)]
    policies = []
    for k, (name, schedule) in enumerate(zip(names, schedules, strict=True)):
        own_layout, own = _pack(_of_policy(schedule, same_submit, same_runtime))
        blocks.append(_block(f"live-policy-{k}", own))
        colour, options = figures.COLOURS[k % len(figures.COLOURS)], spelled_options([schedule])
        look = {"colour": "--blue" if colour == figures.BLUE else colour, "dash": DASHES[k % len(DASHES)]}
        command = None if options is None else shlex.join(["walltime", "explain", w.origin.name, *options])
        policies.append({"name": name, "layout": own_layout, **look, "command": command})
    origin, begin = w.origin, int(min(s.submit[0] for s in schedules))
    meta = {
        "machine": w.machine_procs,
        "users": [origin.name_of("user", k) for k in range(1, len(origin.names.get("user", ())) + 1)],
        **clock_of(origin, begin),
        "begin": begin,
        "end": int(max(s.end.max() for s in schedules)),
        "layout": layout,
        "policies": policies,
        "curves": {
            "wait": _curves(figures.WAITS.curves(schedules, masks)),
            "slowdown": _curves(figures.SLOWDOWNS.curves(schedules, masks)),
        },
    }
    return "\n".join([f'<script type="application/json" id="live-meta">{json_text(meta)}</script>', *blocks])


def clock_of(origin: Origin, first: int) -> dict[str, Any]:
    """Return the data with which the scripts show log times as dates or, if the log has no dates, as times after `first`, s."""
    zone = origin.tzinfo()
    offset = int((zone.utcoffset(None) or timedelta(0)).total_seconds())
    return {"epoch": origin.unix_start_time, "zone": getattr(zone, "key", None), "offset": offset, "first": first}


def json_text(value: Any) -> str:
    """Return a value as JSON that is safe inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def chart_json(chart: Chart) -> str:
    """Return a chart as JSON for the scripts, with six significant digits."""

    def numbers(values: Sequence[float]) -> list[float | None]:
        return [float(f"{value:.6g}") if math.isfinite(value) else None for value in map(float, values)]

    given = {field.name: getattr(chart, field.name) for field in fields(chart)}
    own = {"names": list(chart.lines), "lines": [numbers(line) for line in chart.lines.values()]}
    return json_text(given | own | {"x": [round(float(x), 3) for x in chart.x], "dashes": DASHES})


def _of_policy(schedule: Schedule, same_submit: bool, same_runtime: bool) -> dict[str, Array]:
    """Return the columns of one schedule; `reserved`: time from submission to the first reserved start, s, -1 without a reservation."""
    w = schedule.workload
    job, first, count = assign_processors(schedule.start, schedule.end, w.procs, w.machine_procs)
    reserved = np.where(schedule.reserved_start < 0, -1, np.clip(schedule.reserved_start - schedule.submit, 0, LARGEST))
    columns = {"wait": schedule.wait, "kind": schedule.kind, "reserved": reserved}
    columns |= {"stripJob": job, "stripFirst": first, "stripCount": count}
    if not same_submit:
        columns["submit"] = schedule.submit
    if not same_runtime:
        columns["runtime"] = schedule.runtime
    return columns


def _pack(columns: Mapping[str, Array]) -> tuple[list[tuple[str, int, bool]], bytes]:
    """Return the layout (name, length, whether differences are stored) of each column, and all columns compressed.

    Numbers are 32 bits with the sign in the lowest bit. The bytes of a column are stored by significance, because similar bytes compress
    well.
    """
    planes = []
    for name, values in columns.items():
        numbers = np.diff(values.astype(np.int64), prepend=0) if name in DELTAS else values.astype(np.int64)
        unsigned = np.where(numbers < 0, -2 * numbers - 1, 2 * numbers).astype("<u4")
        planes.append(unsigned.view(np.uint8).reshape(-1, 4).T.tobytes())
    layout = [(name, len(values), name in DELTAS) for name, values in columns.items()]
    return layout, zlib.compress(b"".join(planes), 6)


def _block(name: str, data: bytes) -> str:
    return f'<script type="text/plain" id="{name}">{base64.b64encode(data).decode()}</script>'


def _curves(steps: tuple[Array, Sequence[Array]]) -> dict[str, Any]:
    x, shares = steps
    return {"x": [float(f"{value:.6g}") for value in x], "y": [[round(float(y), 3) for y in own] for own in shares]}


def repeat_command(schedules: Sequence[Schedule], trim: str) -> str | None:
    """Return the command line that produces these schedules; None if no single command can."""
    options = spelled_options(schedules)
    if options is None:
        return None
    measured = ["--test-share", trim.removeprefix(LAST)] if trim.startswith(LAST) else ["--trim", trim]
    return shlex.join(["walltime", "compare", schedules[0].workload.origin.name, *options, *measured, "--report", "report.html"])


def spelled_options(schedules: Sequence[Schedule]) -> list[str] | None:
    """Return the command-line options that produce these schedules from the log; None if no options can."""
    workload = schedules[0].workload
    runs = {(s.overrun, s.dialect) for s in schedules}
    replaced = any(not np.array_equal(s.workload.planned, s.workload.requested) for s in schedules)
    varied = bool(workload.origin.steps) or any(s.workload.feedback for s in schedules)
    on_pools = any(s.placement is not None for s in schedules)
    if on_pools or len(runs) > 1 or replaced or varied or not workload.origin.sha256 or not all(_can_be_spelled(s) for s in schedules):
        return None
    ((overrun, dialect),) = runs
    rules = ["--simultaneous", dialect.coincident] if dialect.label in ("papers", "pyss") else ["--dialect", dialect.label]
    policies = [word for s in schedules for word in ("--policy", s.label)]
    return ["--procs", str(workload.machine_procs), *policies, "--overrun", overrun, *rules]


def _can_be_spelled(schedule: Schedule) -> bool:
    """Return whether the scheduler's label is valid on the command line; labels of users' own policies, orders and predictors are not."""
    prediction = None if schedule.predictions is None else schedule.predictions.prediction
    try:
        return parse_scheduler(schedule.label).label == Scheduler(schedule.policy, prediction).label
    except PolicyError:
        return False
