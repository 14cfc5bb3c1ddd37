"""The simulations of a what-if: every setting once, and every setting on each shaken copy of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from walltime import metrics
from walltime.errors import PolicyError, WalltimeError, WorkloadError, shown
from walltime.machine import Machine
from walltime.policy import Policy
from walltime.schedule.schedule import Schedule
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.whatif.changes import Change
from walltime.whatif.effects import MEASURES, measures_of, pairs
from walltime.whatif.setting import SHAKE, Setting
from walltime.whatif.warm_start import carried_over
from walltime.whatif.weekly_interval import FEWEST_WEEKS, weeks_of
from walltime.wording import harmless
from walltime.workload import Workload
from walltime.workload.resampling import resample_weeks, with_sessions

__all__ = ["TODAY", "SettingSchedules", "settings_of", "simulate_all"]

Array = np.ndarray
Named = tuple[str, Setting, list[str]]
"""The label of a setting, the setting, and what became of what."""
Check = Callable[[int], None]

TODAY = "today"
TOGETHER = "all together"
LONGEST = 500
"""Characters of a label."""


@dataclass(frozen=True, eq=False)
class SettingSchedules:
    """The schedules of all settings, which of today's jobs are measured (bool), and how measures differ from today's in each copy.

    `copies`: for each shaken copy of the log, and each setting but today's, the differences by measure; `resampled`: the same for logs of
    its weeks. `feedback`: whether users react there, or why they do not.
    """

    schedules: Sequence[Schedule]
    measured: Array
    copies: Sequence[Sequence[Mapping[str, float]]]
    resampled: Sequence[Sequence[Mapping[str, float]]] = ()
    feedback: str = ""


def simulate_all(
    settings: Sequence[Named],
    workload: Workload,
    *,
    overrun: str,
    seed: int,
    replications: int,
    trim: str,
    progress: Callable[[int], None] | None,
) -> SettingSchedules:
    """Simulate every setting, on all cores; `progress` is called with the number of simulations done."""

    def single(k: int, check: Check) -> Schedule:
        label, setting, _ = settings[k]
        return _run(label, setting, workload, overrun, {"seed": seed}, check)

    schedules = in_threads(lambda: single, len(settings), None, progress)
    today = schedules[0]
    measured = metrics.measured(today.end, today.last_submit, trim) & ~carried_over(today.workload)
    if not measured.any():
        raise PolicyError("no job is left to measure; use trim 'none' or a longer log")
    ids = today.workload.job_id[measured]

    def copy(number: int, check: Check) -> list[dict[str, float]]:
        shaken = {"seed": seed + number, "shaken": SHAKE}
        first, *others = (_run(label, setting, workload, overrun, shaken, check) for label, setting, _ in settings)
        chosen = np.isin(first.workload.job_id, ids)
        return [_minus(first, other, chosen) for other in others]

    sessions, feedback = _with_sessions(workload)

    def other_weeks(number: int, check: Check) -> list[dict[str, float]]:
        drawn = resample_weeks(sessions, seed + number)
        first, *others = (_run(label, setting, drawn, overrun, {"seed": seed}, check) for label, setting, _ in settings)
        chosen = metrics.measured(first.end, first.last_submit, trim)
        return [_minus(first, other, chosen) for other in others]

    def report(before: int, done: int) -> None:
        if progress is not None:
            progress(len(settings) * (1 + before + done))

    if not replications:
        return SettingSchedules(schedules, measured, [])
    copies = in_threads(lambda: copy, replications, None, partial(report, 0))
    enough = int(weeks_of(workload.submit).max(initial=0)) + 1 >= FEWEST_WEEKS
    resampled = in_threads(lambda: other_weeks, replications, None, partial(report, replications)) if enough else []
    report(replications, replications)
    return SettingSchedules(schedules, measured, copies, resampled, feedback)


def _with_sessions(workload: Workload) -> tuple[Workload, str]:
    """The log with feedback, so that users of logs of its weeks submit when their jobs have ended, and whether that is known."""
    if workload.feedback:
        return workload, ""
    try:
        return with_sessions(workload), ""
    except WorkloadError:
        return workload, "the log does not say who submitted what, or when it ended"


def settings_of(machine: Machine, changes: Sequence[Change], policy: str | Policy | Scheduler | None = None) -> list[Named]:
    """The label of each setting, the setting, and what became of what; today's is the first. Raises PolicyError."""
    today = Setting.of(machine, policy)
    texts = [change.text for change in changes]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise PolicyError(f"the change {shown(twice)} is given twice")
    settings: list[Named] = [(TODAY, today, [])]
    for change in changes:
        setting, became = change.apply(today)
        settings.append((harmless(change.text, LONGEST), setting, [harmless(line, LONGEST) for line in became]))
    if len(changes) > 1:
        setting, became = today, []
        for change in changes:
            setting, more = _explained(TOGETHER, partial(change.apply, setting))
            became += [harmless(line, LONGEST) for line in more]
        settings.append((TOGETHER, setting, became))
    for label, setting, _ in settings:
        _explained(label, setting.scheduler)
    return settings


def _run(
    label: str, setting: Setting, workload: Workload, overrun: str, shaken: Mapping[str, int], check: Callable[[int], None]
) -> Schedule:
    return _explained(label, lambda: setting.run(workload, overrun=overrun, progress=check, **shaken))


def _explained(label: str, make: Callable[[], Any]) -> Any:
    """What this makes; an error says under which change."""
    try:
        return make()
    except WalltimeError as error:
        if label == TODAY:
            raise
        raise type(error)(
            f"under the change {shown(label)}: {error}" if label != TOGETHER else f"with all changes together: {error}"
        ) from error


def _minus(today: Schedule, changed: Schedule, measured: Array) -> dict[str, float]:
    both = pairs(today, changed, measured)
    before, after = measures_of(today, both[0]), measures_of(changed, both[1])
    return {name: after[name] - before[name] for name in MEASURES}
