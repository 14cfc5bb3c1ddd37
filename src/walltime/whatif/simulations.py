"""Run the simulations of a what-if: every setting under both assumptions on users, on shaken copies and on resampled logs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from walltime.errors import PolicyError, WalltimeError, WorkloadError
from walltime.machine import Machine, write_machine
from walltime.machine.warm_start import carried_over
from walltime.metrics.weekly_interval import FEWEST_WEEKS, weeks_of
from walltime.policy import Policy
from walltime.schedule.schedule import Schedule
from walltime.simulation.specification import Scheduler
from walltime.simulation.threads import in_threads
from walltime.whatif.change import Change
from walltime.whatif.change_names import change_name
from walltime.whatif.changes import apply_change
from walltime.whatif.effects import MEASURES, OtherUsers, measures_of, pairs
from walltime.whatif.finished import Finished, key_of
from walltime.whatif.setting import SHAKE, Setting
from walltime.wording import sanitize, shown
from walltime.workload import Array, Workload
from walltime.workload.resampling import resample_weeks, with_sessions

Check = Callable[[int], None]

TODAY = "today"
ALL_CHANGES = "all together"
MOST_LINES = 20
LONGEST = 500
"""Longest label, characters."""


class NamedSetting(NamedTuple):
    """A setting with its label, its name in sentences, and its changed values in words."""

    label: str
    name: str
    setting: Setting
    became: list[str]


@dataclass(frozen=True, eq=False)
class SettingSchedules:
    """The schedules of all settings, and the differences from today in each copy of the log.

    `measured`: the measured jobs, bool. `copies`: differences by measure, for each shaken copy and each changed setting; `resampled`: the
    same for resampled logs. `recorded`: today's schedule with submissions as recorded. `others`: the effect of each changed setting under
    the other assumption on users; empty if the log lacks the data, with the reason in `feedback`. `linked`: share of jobs that follow the
    end of an earlier job of their user. `reused`: the number of simulations from earlier runs.
    """

    schedules: Sequence[Schedule]
    measured: Array
    recorded: Schedule
    others: Sequence[OtherUsers]
    copies: Sequence[Sequence[Mapping[str, float]]] = ()
    resampled: Sequence[Sequence[Mapping[str, float]]] = ()
    feedback: str = ""
    linked: float = 0.0
    reused: int = 0


def simulate_all(
    settings: Sequence[NamedSetting],
    workload: Workload,
    *,
    react: bool,
    overrun: str,
    seed: int,
    replications: int,
    trim: str,
    progress: Callable[[int], None] | None,
) -> SettingSchedules:
    """Simulate every setting on all cores; `progress` is called with the number of completed simulations."""
    as_recorded = workload.with_feedback(False)
    sessions, feedback = _with_sessions(workload, react)
    worlds = [sessions, as_recorded] if react else [as_recorded] if feedback else [as_recorded, sessions]
    workload, count, finished, every_setting = worlds[0], len(settings), Finished(), [one.setting for one in settings]

    def run(one: NamedSetting, jobs: Workload, check: Check, **shaken: int) -> Schedule:
        return _explained(one.label, partial(one.setting.run, jobs, overrun=overrun, progress=check, **({"seed": seed} | shaken)))

    def single(k: int, check: Check) -> Schedule:
        one, jobs = settings[k % count].setting, worlds[k // count]
        simulate = partial(run, settings[k % count], jobs, check)
        return finished.schedule(one, jobs, key_of(jobs, [one], overrun, seed), simulate, overrun=overrun, seed=seed)

    every = in_threads(single, count * len(worlds), None, progress)
    schedules, otherwise = every[:count], every[count:]
    today = schedules[0]
    measured = today.measured(trim) & ~carried_over(today.workload)
    if not measured.any():
        raise PolicyError("no job is left to measure; use trim 'none' or a longer log")
    ids = today.workload.job_id[measured]

    def copy(number: int, check: Check) -> list[dict[str, float]]:
        def simulate() -> list[dict[str, float]]:
            first, *others = (run(one, workload, check, seed=seed + number, shaken=SHAKE) for one in settings)
            return [_minus(first, other, np.isin(first.workload.job_id, ids)) for other in others]

        return kept(key_of(workload, every_setting, overrun, seed + number, SHAKE, ids.tobytes()), simulate)

    def other_weeks(number: int, check: Check) -> list[dict[str, float]]:
        def simulate() -> list[dict[str, float]]:
            drawn = resample_weeks(sessions, seed + number)
            first, *others = (run(one, drawn, check) for one in settings)
            return [_minus(first, other, first.measured(trim)) for other in others]

        return kept(key_of(sessions, every_setting, overrun, seed, number, trim), simulate)

    def kept(key: str, simulate: Callable[[], list[dict[str, float]]]) -> list[dict[str, float]]:
        return finished.result(key, count, simulate, _as_columns, _as_rows)

    def report(before: int, done: int) -> None:
        if progress is not None:
            progress(count * (2 + before + done))

    report(0, 0)
    reacting = schedules if react else otherwise
    others = [_other_users(not react, (otherwise[0], otherwise[k]), (reacting[0], reacting[k]), ids) for k in range(1, len(otherwise))]
    known = (otherwise[0] if react else today, others)
    linked = 0.0 if feedback else float((sessions.dependencies()[0] >= 0).mean())
    if not replications:
        return SettingSchedules(schedules, measured, *known, feedback=feedback, linked=linked, reused=finished.reused)
    copies = in_threads(copy, replications, None, partial(report, 0))
    enough = int(weeks_of(workload.submit).max(initial=0)) + 1 >= FEWEST_WEEKS
    resampled = in_threads(other_weeks, replications, None, partial(report, replications)) if enough else []
    report(replications, replications)
    return SettingSchedules(schedules, measured, *known, copies, resampled, feedback, linked, finished.reused)


def _with_sessions(workload: Workload, needed: bool) -> tuple[Workload, str]:
    """Return the log with feedback and an empty string, or the unchanged log and why there is none; raises WorkloadError if `needed`."""
    if workload.feedback:
        return workload, ""
    try:
        return with_sessions(workload), ""
    except WorkloadError:
        if needed:
            raise
        return workload, "the log lacks the users or the ends of jobs"


def settings_of(
    machine: Machine,
    changes: Sequence[Change],
    policy: str | Policy | Scheduler | None = None,
    against: Sequence[Machine] = (),
    together: bool = False,
) -> list[NamedSetting]:
    """Return the settings to simulate: today, each change, each other machine and, on request, all changes together.

    Raises PolicyError for invalid changes.
    """
    today = Setting.of(machine, policy)
    texts = [change.label for change in changes]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    if twice is not None:
        raise PolicyError(f"the change {shown(twice)} is given twice; remove one", "repeated_change")
    settings = [NamedSetting(TODAY, TODAY, today, [])]
    for change in changes:
        setting, became = apply_change(change, today)
        label, name, *lines = (sanitize(text, LONGEST) for text in (change.label, change_name(change), *became))
        settings.append(NamedSetting(label, name, setting, lines))
    for other in against:
        name = sanitize(f"machine {other.name}", LONGEST)
        lines = [sanitize(line, LONGEST) for line in _differing_lines(machine, other)]
        settings.append(NamedSetting(f"against={name}", name, Setting.of(other, policy or other.policy or today.policy), lines))
    if together:
        _reject_one_value_twice(changes)
        setting, lines = today, []
        for change in changes:
            setting, became = _explained(ALL_CHANGES, partial(apply_change, change, setting))
            lines += [sanitize(line, LONGEST) for line in became]
        settings.append(NamedSetting(ALL_CHANGES, ALL_CHANGES, setting, lines))
    for one in settings:
        _explained(one.label, one.setting.scheduler)
    return settings


def _reject_one_value_twice(changes: Sequence[Change]) -> None:
    """Raise PolicyError for a single change, or if two changes set the same value."""
    if len(changes) < 2:
        raise PolicyError("together=True needs at least two changes, because it simulates them together; add a change", "no_change")
    targets = [change.target.lower() for change in changes if change.sign == "=" and change.target.lower() != "limit.new.by"]
    both = next(([one.label for one in changes if one.target.lower() == target] for target in targets if targets.count(target) > 1), None)
    if both is not None:
        said = " and ".join(map(shown, both))
        raise PolicyError(f"{said} set the same value, so they cannot be combined; simulate each of them alone", "same_setting")


def _differing_lines(machine: Machine, other: Machine) -> list[str]:
    """Return the differing lines of the two machine files as in a unified diff, at most `MOST_LINES`."""
    before, after = (write_machine(one).splitlines() for one in (machine, other))
    differing = [line for line in unified_diff(before, after, n=0, lineterm="") if line[:1] in "+-" and line[1:].strip(" +-")]
    rest = len(differing) - MOST_LINES
    return differing[:MOST_LINES] + ([f"and {rest:,} more lines"] if rest > 0 else [])


def _explained(label: str, make: Callable[[], Any]) -> Any:
    """Call a function, and add the name of the change to the errors that it raises."""
    try:
        return make()
    except WalltimeError as error:
        if label == TODAY:
            raise
        where = "with all changes together" if label == ALL_CHANGES else f"under the change {shown(label)}"
        raise type(error)(f"{where}: {error}") from error


def _other_users(react: bool, otherwise: tuple[Schedule, Schedule], reacting: tuple[Schedule, Schedule], ids: Array) -> OtherUsers:
    """Return the mean waits under the other assumption on users, and how much earlier reacting users submit."""
    mine, theirs = pairs(*otherwise, np.isin(otherwise[0].workload.job_id, ids))
    before, after = (measures_of(*one)["mean_wait"] for one in ((otherwise[0], mine), (otherwise[1], theirs)))
    mine, theirs = pairs(*reacting, np.isin(reacting[0].workload.job_id, ids))
    return OtherUsers(react, before, after, float((reacting[0].submit[mine] - reacting[1].submit[theirs]).mean()))


def _minus(today: Schedule, changed: Schedule, measured: Array) -> dict[str, float]:
    """Return the difference of each measure over the jobs that are measured (bool) and in both schedules."""
    both = pairs(today, changed, measured)
    before, after = measures_of(today, both[0]), measures_of(changed, both[1])
    return {name: after[name] - before[name] for name in MEASURES}


def _as_columns(rows: Sequence[Mapping[str, float]]) -> dict[str, Array]:
    return {name: np.array([row[name] for row in rows]) for name in MEASURES}


def _as_rows(columns: Mapping[str, Array]) -> list[dict[str, float]]:
    return [dict(zip(MEASURES, row, strict=True)) for row in zip(*(columns[name].tolist() for name in MEASURES), strict=True)]
