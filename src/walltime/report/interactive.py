"""What a page needs to come alive: the columns of the schedules in a compact form, and the scripts (scripts/).

The line charts are drawn by uPlot (version 1.6.32, MIT licence), which is embedded unchanged; the Gantt chart, which has to show
hundreds of thousands of jobs, and the rest is this project's own.
"""

from __future__ import annotations

import base64
import json
import shlex
import zlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from walltime.report.stretch import assign_processors
from walltime.report.tables import spelled_options
from walltime.schedule.schedule import Schedule

Array = np.ndarray

LIBRARY = "uPlot-1.6.32.min"
TABLES = ("time", "tables", "page")
"""The scripts of a page of tables: they can be sorted."""
EVERYTHING = ("data", "time", "gantt", "explanation", "charts", "tables", "steer", "page")
MOST_JOBS = 1_000_000
"""A page of more jobs would take more than a hundred megabytes, and is made without drawings that live."""
LARGEST = 2**31 - 1
"""The columns are int32."""
DELTAS = frozenset({"id", "submit", "stripJob"})
"""Columns that grow, of which the differences are stored."""
DASHES: tuple[Sequence[float], ...] = ((), (11, 3), (3, 2), (12, 3, 3, 3))
"""As in the figures, in pixels."""

CHOICE = '<div id="live-choice" class="only-live"></div>'
CHARTS_OF_WAITS = """<div class="only-live">
<div class="pair">
<div role="group" aria-label="Share of jobs that wait less than a time"><h3>Wait</h3><div id="live-wait" class="chart"></div></div>
<div role="group" aria-label="Share of jobs with at most a bounded slowdown"><h3>Bounded slowdown</h3>
<div id="live-slowdown" class="chart"></div></div>
</div>
<p class="note">Point at a line to read it; drag to zoom, double-click for the whole. With the keyboard: Tab to a chart, then the
left and right arrows.</p>
</div>"""
CHARTS_OVER_TIME = """<div class="only-live">
<h3>Waiting jobs <small>(average over a 500th of what is shown)</small></h3><div id="live-queue" class="chart"></div>
<h3>Busy processors</h3><div id="live-busy" class="chart"></div>
<p class="note">Drag to zoom, double-click for the whole; the Gantt charts below show the same time.</p>
</div>"""
GANTTS = """<section class="only-live" aria-labelledby="live-title">
<h2 id="live-title">The schedules, job by job</h2>
<p class="note">The whole schedule: every pixel has the mean colour of the jobs in it, and is empty where nothing ran. Zoom in until
jobs become rectangles, their height the processors and their width the time. The model gives a job a number of processors and no
places; the places are chosen for the drawing, so a job may come in several strips.</p>
<p class="note" id="live-keys">Drag to move, Ctrl and the wheel (or two fingers, or a double click) to zoom, click on a job for its story.
With the keyboard: the arrows move, plus and minus zoom, Home shows the whole, n and p go to the next and the previous job,
Escape leaves it.</p>
<div id="live-controls"></div>
<div id="live-gantts"></div>
<div id="live-story" class="story" role="region" tabindex="-1" aria-label="The job that is looked at" aria-live="polite"></div>
</section>"""


def can_live(schedules: Sequence[Schedule]) -> bool:
    """Whether the schedules have jobs, not too many, and times that fit the columns."""
    jobs = len(schedules[0])
    return 0 < jobs <= MOST_JOBS and all(int(s.end.max()) < LARGEST and int(s.submit.min()) > -LARGEST for s in schedules)


def live_data(names: Sequence[str], schedules: Sequence[Schedule], masks: Sequence[Array]) -> str:
    """The schedules as elements of a page, for the scripts; about 3 bytes a job, and 10 for each policy."""
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
        colour = figures.COLOURS[k % len(figures.COLOURS)]
        policies.append(
            {
                "name": name,
                "layout": own_layout,
                "colour": "--blue" if colour == figures.BLUE else colour,
                "dash": DASHES[k % len(DASHES)],
                "command": _explain_command(schedule),
            }
        )
    origin, begin = w.origin, int(min(s.submit[0] for s in schedules))
    zone = origin.tzinfo()
    meta = {
        "machine": w.machine_procs,
        "users": [origin.name_of("user", k) for k in range(1, len(origin.names.get("user", ())) + 1)],
        "epoch": origin.unix_start_time,
        "zone": getattr(zone, "key", None),
        "offset": int((zone.utcoffset(None) or timedelta(0)).total_seconds()),
        "first": begin,
        "begin": begin,
        "end": int(max(s.end.max() for s in schedules)),
        "layout": layout,
        "policies": policies,
        "curves": {
            "wait": _curves(figures.wait_curves(schedules, masks)),
            "slowdown": _curves(figures.slowdown_curves(schedules, masks)),
        },
    }
    return "\n".join([_json("live-meta", meta), *blocks])


def scripts(names: Sequence[str], library: bool = False) -> str:
    """These scripts as one element of a page, behind the library if it is needed, with its licence."""
    parts = (
        [f"<style>{read_script(f'{LIBRARY}.css')}</style>\n<script>{_licence()}\n{read_script(f'{LIBRARY}.js')}</script>"]
        if library
        else []
    )
    own = "\n".join(read_script(f"{name}.js") for name in names)
    return "\n".join([*parts, f'<script>\n"use strict";\n(() => {{\n{own}}})();\n</script>'])


def _licence() -> str:
    return f"/*\n{read_script('uPlot-LICENSE.txt').strip()}\n*/"


@cache
def read_script(name: str) -> str:
    """A file of scripts/."""
    return (files("walltime.report") / "scripts" / name).read_text(encoding="utf-8")


def _of_policy(schedule: Schedule, same_submit: bool, same_runtime: bool) -> dict[str, Array]:
    """The columns of one schedule; `reserved` is the first reservation counted from the submission, -1 if there was none."""
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
    """The columns one behind the other, compressed, and the name, the length, and whether differences are stored, of each.

    A number is stored as int32, its sign in the lowest bit, and a column as its lowest bytes, then its second ones and so on: the
    bytes of one kind are alike, which makes them small.
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


def _json(name: str, value: Any) -> str:
    """A value as an element; `<` is written so that no name in it can end the element."""
    inside = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{inside}</script>'


def _curves(found: tuple[Array, Sequence[Array]]) -> dict[str, Any]:
    x, shares = found
    return {"x": [float(f"{value:.6g}") for value in x], "y": [[round(float(y), 3) for y in own] for own in shares]}


def _explain_command(schedule: Schedule) -> str | None:
    """The command that tells a job's whole story, without the job; None if no single command can."""
    options = spelled_options([schedule])
    if options is None:
        return None
    return shlex.join(["walltime", "explain", schedule.workload.origin.name, *options])
