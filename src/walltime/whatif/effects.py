"""The effects of a change relative to today's schedule: differences with intervals, by group, winners and losers, and the cost."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from walltime import metrics
from walltime.machine.placing import over_limits
from walltime.metrics.energy import Carbon, cost_of, energy_of
from walltime.metrics.intervals import SHOWN_LEVEL
from walltime.metrics.right_size import SHORT
from walltime.metrics.summary import Averages
from walltime.metrics.weekly_interval import LogWeeks, agreeing_share
from walltime.schedule.groups import UNKNOWN, Groups, group_jobs
from walltime.schedule.schedule import Schedule
from walltime.whatif.calibration import ALL, GROUPED_BY, MOST_GROUPS, Calibration
from walltime.whatif.setting import Setting
from walltime.whatif.track_record import TrackRecord
from walltime.wording import counted, human_time, numbered

Array = np.ndarray

Pairs = tuple[Array, Array]
"""Indices of the same jobs in two schedules, int64 each."""
MOST_NAMED = 5
"""Largest number of users or jobs that are named."""


@dataclass(frozen=True)
class Cost(Averages):
    """Node-hours from the first to the last submission, and the jobs that are worse off than under today's setting."""

    nodes: int
    capacity: float
    """node-hours available"""
    used: float
    """node-hours used"""
    idle: float
    """node-hours not used"""
    cut_jobs: int
    """number of jobs that are killed earlier than today, at a shorter limit"""
    cut: Sequence[str]
    """users of these jobs, in descending order of lost work"""
    lost_jobs: int
    """number of jobs that no longer fit and are left out"""
    lost: Sequence[str]
    """users of these jobs"""
    rules: Mapping[str, int]
    """number of jobs left out, by rule"""
    work_lost_hours: float
    """node-hours under today's setting of the jobs killed earlier, left out or out of memory at first: all their work is lost
    without checkpoints"""
    work_lost: float
    """these node-hours as a share of all node-hours under today's setting"""
    stranded_jobs: int = 0
    """number of jobs larger than a new limit, which a site would never start; the simulation starts them, exempt from the limit"""
    stranded: float = 0.0
    """node-hours of the stranded jobs, as a share of all node-hours under today's setting"""
    short_jobs: int = 0
    """number of jobs that run out of memory because of a smaller request, and run again"""
    energy: float = math.nan
    """energy of the jobs, kWh, from the log or the power of the machine file's pools; nan if unknown"""
    energy_cost: float = math.nan
    """cost of this energy; nan without a price"""
    grams: float = math.nan
    """CO2 emissions of this energy, g; nan without a carbon intensity"""
    energy_low: float = math.nan
    """lower end of the interval of the energy difference, kWh, under sampling of weeks, as in `Difference`; nan if withheld"""
    energy_high: float = math.nan
    grams_low: float = math.nan
    """the same for CO2, g"""
    grams_high: float = math.nan
    uncovered_jobs: int = 0
    """number of jobs with unknown CO2 emissions, because the carbon time series does not cover their simulated runs"""
    users_worse: int = 0
    """number of users whose jobs wait longer in total, are killed earlier or are left out"""

    @property
    def gone_jobs(self) -> int:
        """Return the number of jobs that are killed earlier, left out, or out of memory at first."""
        return self.cut_jobs + self.lost_jobs + self.short_jobs

    @property
    def energy_spans(self) -> list[tuple[float, float]]:
        """Return the intervals (low, high) of the differences in energy (kWh), its cost and CO2 (g)."""
        price = self.energy_cost / self.energy if self.energy else math.nan
        kwh = (self.energy_low, self.energy_high)
        return [kwh, (price * kwh[0], price * kwh[1]), (self.grams_low, self.grams_high)]

    @property
    def rules_text(self) -> str:
        """Return the numbers of jobs left out, by rule, as text."""
        return ", ".join(f"{count:,} {rule}" for rule, count in self.rules.items())


def cost(
    today: Schedule,
    changed: Schedule,
    both: Pairs,
    kwh_price: float | None = None,
    carbon: Carbon | None = None,
    weeks: LogWeeks | None = None,
) -> Cost:
    """Return the cost of a change relative to today's schedule; `both`: the indices of the same jobs in both schedules.

    `weeks`: the weeks of today's submissions, for the intervals of energy and CO2.
    """
    mine, theirs = both
    before, after = node_hours(today), node_hours(changed)
    begin, end = int(changed.submit.min()), changed.last_submit
    length = changed.end - changed.start
    inside = np.maximum(np.minimum(changed.end, end) - np.maximum(changed.start, begin), 0)
    used = float((after * inside / np.maximum(length, 1)).sum())
    assert changed.placement is not None, "it ran on a machine of pools"
    nodes = sum(pool.nodes for pool in changed.placement.machine.pools)
    capacity = nodes * (end - begin) / 3600
    cut = changed.runtime[theirs] < today.runtime[mine]
    short = changed.workload.columns.get(SHORT, np.zeros(len(changed)))[theirs] > 0
    assert today.placement is not None, "it ran on a machine of pools"
    over = over_limits(changed.workload, changed.placement)[theirs] & ~over_limits(today.workload, today.placement)[mine]
    gone = np.ones(len(today), bool)
    gone[mine] = False
    old, new = today.workload.origin.dropped, changed.workload.origin.dropped
    return Cost(
        nodes=nodes,
        capacity=capacity,
        used=used,
        idle=capacity - used,
        cut_jobs=int(cut.sum()),
        cut=_named(today, mine[cut], before[mine[cut]]),
        lost_jobs=int(gone.sum()),
        lost=_named(today, np.flatnonzero(gone), before[gone]),
        rules={rule: count - old.get(rule, 0) for rule, count in new.items() if count > old.get(rule, 0)},
        work_lost_hours=(hours := float(before[mine[cut]].sum() + before[mine[short]].sum() + before[gone].sum())),
        work_lost=hours / max(float(before.sum()), 1e-9),
        stranded_jobs=int(over.sum()),
        stranded=float(before[mine[over]].sum() / max(before.sum(), 1e-9)),
        short_jobs=int(short.sum()),
        **_energy(today, changed, both, kwh_price, carbon, weeks),
        users_worse=_users_worse(today, changed, both, cut | short, gone),
    )


def _energy(
    today: Schedule, changed: Schedule, both: Pairs, kwh_price: float | None, carbon: Carbon | None, weeks: LogWeeks | None
) -> dict[str, Any]:
    """Return the energy fields of `Cost`, summed over the jobs with known energy."""
    after, fields = _energy_by_job(changed, carbon), dict[str, Any]()
    before = after if weeks is None else _energy_by_job(today, carbon)
    for name, old, new in zip(("energy", "grams"), before, after, strict=True):
        fields[name] = float(np.nansum(new)) if (~np.isnan(new)).any() else math.nan
        if weeks is not None and not math.isnan(fields[name]):
            mine, theirs = both
            base, difference = np.nan_to_num(old), -np.nan_to_num(old)
            difference[mine] += np.nan_to_num(new[theirs])
            ends = weeks.ends(difference, np.arange(len(today)), base)
            fields |= {f"{name}_low": ends[0] * len(today), f"{name}_high": ends[1] * len(today)}
    uncovered = 0 if carbon is None else int((np.isnan(after[1]) & ~np.isnan(after[0])).sum())
    return fields | {"energy_cost": cost_of(fields["energy"], kwh_price), "uncovered_jobs": uncovered}


def _energy_by_job(schedule: Schedule, carbon: Carbon | None) -> tuple[Array, Array]:
    """Return the energy, kWh, and the CO2 emissions, g, of each job, float64, nan if unknown."""
    jobs = schedule.workload
    assert schedule.placement is not None, "it ran on a machine of pools"
    kwh = energy_of(jobs, schedule.placement.machine)[0] * schedule.runtime / np.maximum(jobs.runtime, 1)
    return kwh, np.full(len(jobs), np.nan) if carbon is None else carbon.of(jobs, kwh, schedule.start, schedule.runtime)


def node_hours(schedule: Schedule) -> Array:
    """Return the node-hours of each job, float64; part of a node counts as a fraction."""
    assert schedule.placement is not None, "it ran on a machine of pools"
    assert schedule.given is not None, "it ran on a machine of pools"
    procs = np.array([pool.procs for pool in schedule.placement.machine.pools], np.float64)
    return (schedule.given[:, :, 0] / procs).sum(axis=1) * schedule.runtime / 3600


def _users_worse(today: Schedule, changed: Schedule, both: Pairs, failed: Array, gone: Array) -> int:
    """Return the number of users whose jobs wait longer in total, fail or are left out."""
    user, (mine, theirs) = today.workload.columns.get("user"), both
    if user is None:
        return 0
    known, place = np.unique(user, return_inverse=True)
    longer = np.bincount(place[mine], changed.wait[theirs] - today.wait[mine], len(known))
    hurt = np.bincount(np.concatenate([place[mine[failed]], place[gone]]), minlength=len(known))
    return int((((longer > 0) | (hurt > 0)) & (known >= 0)).sum())


def _named(schedule: Schedule, jobs: Array, hours: Array) -> list[str]:
    """Describe the users with the most node-hours among these jobs; single jobs if the log has no users."""
    workload, users = schedule.workload, schedule.workload.columns.get("user")
    single = users is None or (users[jobs] < 0).all()
    known, place = np.unique((workload.job_id if users is None or single else users)[jobs], return_inverse=True)
    total, count = np.bincount(place, weights=hours), np.bincount(place)
    named = []
    for k in np.argsort(-total, kind="stable")[:MOST_NAMED].tolist():
        number = int(known[k])
        name = workload.origin.name_of("user", number) if number >= 0 else "unknown"
        who = f"job {number} (" if single else f"{numbered('user', name)} ({counted(int(count[k]), 'job')}, "
        named.append(f"{who}{total[k]:,.0f} node-hours)")
    return named


MEASURES = ("mean_wait", "median_wait", "p90_wait", "mean_bounded_slowdown")
"""The statistics that a what-if compares."""


@dataclass(frozen=True)
class Difference(Averages):
    """A statistic under today's setting and under the changed one, over the measured jobs that run in both.

    `scatter`: half width of the 90 % prediction interval of the difference in one more shaken copy, estimated from `copies` shaken copies.
    `low`, `high`: today's mean times the 90 % interval of the relative change under sampling of weeks; `withheld`: the reason if there is
    none. `agree`: share of weeks with the sign of the difference. `other_low`, `other_high`: range of the difference over `others` logs
    resampled from weeks. Unknown values are nan.
    """

    measure: str
    today: float
    changed: float
    difference: float
    scatter: float = float("nan")
    copies: int = 0
    low: float = float("nan")
    high: float = float("nan")
    other_low: float = float("nan")
    other_high: float = float("nan")
    others: int = 0
    agree: float = float("nan")
    withheld: str = ""


@dataclass(frozen=True)
class GroupEffect(Averages):
    """Mean waits of a group of jobs, s, with the interval of the difference under sampling of weeks.

    `trusted`: whether the difference exceeds the group's calibration error.
    """

    by: str
    group: str
    jobs: int
    today: float
    changed: float
    difference: float
    low: float
    high: float
    trusted: bool


@dataclass(frozen=True)
class OtherUsers(Averages):
    """Mean waits, s, under the alternative assumption on users: they react, or they submit as recorded.

    `react`: whether the other assumption is that users react. `earlier`: how much earlier than today, s, reacting users submit on average.
    """

    react: bool
    today: float
    changed: float
    earlier: float

    @property
    def difference(self) -> float:
        """Return the difference in mean wait, s."""
        return self.changed - self.today


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one change, or of all of them together.

    `label`: the text of the change; `name`: the change in words. `became`: the old and new values, in words. `doubts`: reasons not to trust
    the difference in mean wait.
    """

    label: str
    name: str
    setting: Setting
    became: Sequence[str]
    schedule: Schedule
    jobs: int
    differences: Mapping[str, Difference]
    utilization: float
    groups: Sequence[GroupEffect]
    gains: metrics.Gains
    cost: Cost
    doubts: Sequence[str]
    other_users: OtherUsers | None = None
    """the effect under the other assumption on users; None if the log lacks the users or ends of jobs"""
    nodes_added: float = 0.0
    """nodes added, as a share of today's nodes"""
    record: TrackRecord | None = None
    """the expected change, with the track record of such predictions on synthetic sites; None without a calibration"""

    @property
    def is_known(self) -> bool:
        """Return whether the direction is known: such predictions were right often enough, and the effect exceeds chance."""
        return self.record is not None and self.record.is_known and not self.is_chance

    @property
    def is_chance(self) -> bool:
        """Return whether small shifts of the submissions change the mean wait by as much as this change does."""
        one = self.differences["mean_wait"]
        return one.copies > 0 and abs(one.difference) <= one.scatter

    @property
    def percent(self) -> float:
        """Return the relative change of the mean wait, percent; 0 if no job waits today."""
        one = self.differences["mean_wait"]
        return 100 * one.difference / one.today if one.today else 0.0

    @property
    def worth(self) -> float:
        """Return the gain minus the cost, percent: the decrease of the mean wait minus the work lost or stranded and the nodes added."""
        return -self.percent - 100 * (self.cost.work_lost + self.cost.stranded) - 100 * max(self.nodes_added, 0.0)

    @property
    def turns_round(self) -> bool:
        """Return whether the mean wait changes in the opposite direction under the other assumption about users."""
        return self.other_users is not None and self.differences["mean_wait"].difference * self.other_users.difference < 0

    @property
    def nothing(self) -> bool:
        """Return whether every wait is unchanged and no job is left out or killed earlier."""
        return not any((self.gains.shorter.jobs, self.gains.longer.jobs, self.cost.cut_jobs, self.cost.lost_jobs))

    def as_dict(self) -> dict[str, Any]:
        """Return the effect as a dictionary for JSON, without the setting and the schedule."""
        values: dict[str, Any] = {"change": self.label, "policy": self.schedule.label}
        values |= {
            name: getattr(self, name) for name in ("name", "became", "jobs", "utilization", "doubts", "percent", "worth", "nodes_added")
        }
        values |= {name: getattr(self, name) and getattr(self, name).as_dict() for name in ("gains", "cost", "other_users", "record")}
        values["measures"] = {name: one.as_dict() for name, one in self.differences.items()}
        return values | {"groups": [row.as_dict() for row in self.groups]}


def pairs(today: Schedule, changed: Schedule, measured: Array) -> Pairs:
    """Return the indices of the measured jobs in both schedules; `measured`: bool, shape (jobs,), for today's schedule."""
    mine = np.flatnonzero(measured)
    _, here, there = np.intersect1d(today.workload.job_id[mine], changed.workload.job_id, assume_unique=True, return_indices=True)
    return mine[here], there


def measures_of(schedule: Schedule, jobs: Array) -> dict[str, float]:
    """Return the value of each measure over the jobs at these indices."""
    wait, runtime = schedule.wait[jobs], schedule.runtime[jobs]
    if not len(wait):
        return dict.fromkeys(MEASURES, float("nan"))
    median, p90 = np.percentile(wait, [50, 90]).tolist()
    ratio = float(metrics.bounded_slowdown(wait, runtime).mean())
    return dict(zip(MEASURES, (float(wait.mean()), median, p90, ratio), strict=True))


def differences(
    today: Schedule,
    changed: Schedule,
    both: Pairs,
    weeks: LogWeeks,
    shaken: Sequence[Mapping[str, float]],
    resampled: Sequence[Mapping[str, float]] = (),
) -> dict[str, Difference]:
    """Return the difference of each measure; `shaken`, `resampled`: the differences in each shaken copy and each resampled log."""
    before, after = measures_of(today, both[0]), measures_of(changed, both[1])
    by_measure = {}
    for name in MEASURES:
        values = [after[name] - before[name], *(copy[name] for copy in shaken)]
        known: dict[str, Any] = {"copies": len(shaken), "others": len(resampled)}
        if len(values) > 2:
            known["scatter"] = metrics.prediction_interval(np.array(values)).half_width
        if resampled:
            span = metrics.range_of_runs(np.array([copy[name] for copy in resampled]))
            known |= {"other_low": span.low, "other_high": span.high}
        if name.startswith("mean"):
            if len(both[0]):
                base, other = (_single(name, one, jobs) for one, jobs in zip((today, changed), both, strict=True))
                single = other - base
                known["low"], known["high"] = weeks.ends(single, both[0], base)
                known["agree"] = agreeing_share(single, weeks.weeks[both[0]])
            if not math.isfinite(known.get("low", math.nan)):
                known["withheld"] = weeks.withheld or "a part of the log has no such jobs"
        by_measure[name] = Difference(name, before[name], after[name], values[0], **known)
    return by_measure


def group_effects(today: Schedule, changed: Schedule, both: Pairs, weeks: LogWeeks, calibration: Calibration | None) -> list[GroupEffect]:
    """Return the mean waits of each group, for every grouping that the log supports."""
    mine, theirs = both
    before, after = today.wait[mine], changed.wait[theirs]
    rows = []
    for by in GROUPED_BY:
        groups = group_jobs(today.workload, by, today.submit, today.end, runtime=today.runtime)
        if list(groups.names) == [UNKNOWN] or len(groups.names) > MOST_GROUPS:
            continue
        for name, inside in Groups(groups.names, groups.of[mine]).members(np.ones(len(mine), bool)):
            a, b = float(before[inside].mean()), float(after[inside].mean())
            low, high = weeks.ends((after - before)[inside], mine[inside], before[inside])
            trusted = calibration is not None and calibration.trusts(by, name, b - a)
            rows.append(GroupEffect(by, name, len(inside), a, b, b - a, low, high, trusted))
    return rows


def gains_of(today: Schedule, changed: Schedule, both: Pairs) -> metrics.Gains:
    """Return the gains and losses of jobs and users, over the jobs in both schedules."""
    mine, theirs = both
    jobs = today.workload
    user = jobs.columns.get("user")
    gains = metrics.gains(
        before=today.wait[mine],
        after=changed.wait[theirs],
        procs=jobs.procs[mine],
        runtime=changed.runtime[theirs],
        job_id=jobs.job_id[mine],
        user=None if user is None else user[mine],
    )
    return gains.with_names(partial(jobs.origin.name_of, "user")) if "user" in jobs.origin.names else gains


def doubts(difference: Difference, calibration: Calibration | None, other_users: OtherUsers | None = None) -> list[str]:
    """Return the reasons not to trust a difference in mean wait."""
    why = []
    if other_users is not None and difference.difference * other_users.difference < 0:
        why.append(f"the sign changes under the other assumption on users ({signed(other_users.difference)})")
    if difference.copies and not abs(difference.difference) > difference.scatter:  # which may be nan
        known = f"small shifts of the submissions change it by ±{human_time(difference.scatter)}, {SHOWN_LEVEL}"
        why.append(f"it may be chance ({known if np.isfinite(difference.scatter) else 'small shifts of the submissions were not tried'})")
    if difference.others and not (difference.other_low > 0 or difference.other_high < 0):
        ends = f"from {signed(difference.other_low)} to {signed(difference.other_high)}"
        why.append(f"not every resampled log shows it ({ends} in {difference.others} logs)")
    if difference.low <= 0 <= difference.high:
        share = f", and {100 * difference.agree:.0f} % of the weeks change in this direction" if np.isfinite(difference.agree) else ""
        ends = f"from {signed(difference.low)} to {signed(difference.high)}"
        why.append(f"the {SHOWN_LEVEL} interval over weeks includes 0 ({ends}){share}")
    elif "queue" in difference.withheld:
        why.append(f"the interval over weeks is unknown: {difference.withheld}")
    if calibration is None:
        why.append("the simulation is not calibrated")
    elif calibration.overall.doubt:
        why.append(f"the simulation has not been shown to resemble the machine ({calibration.overall.doubt})")
    elif not calibration.trusts(ALL, ALL, difference.difference):
        why.append(f"it is within the calibration error of {human_time(calibration.overall.threshold)}")
    return why


def signed(value: float, show: Callable[[float], str] = human_time) -> str:
    """Return a number with its sign; by default it is a time, s.

    >>> signed(60), signed(-60), signed(0.0)
    ('+1 min 00 s', '-1 min 00 s', '±0 s')
    """
    return show(value) if value < 0 else f"{'+' if value > 0 else '±'}{show(value)}"


def _single(measure: str, schedule: Schedule, jobs: Array) -> Array:
    """Return the wait, s, or the bounded slowdown of each of these jobs, float64."""
    wait = schedule.wait[jobs]
    return wait.astype(np.float64) if measure == "mean_wait" else metrics.bounded_slowdown(wait, schedule.runtime[jobs])
