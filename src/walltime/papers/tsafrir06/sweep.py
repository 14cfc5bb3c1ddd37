"""Repeat tsafrir06's experiment: simulate a log with f-model estimates from perfect to very bad and many seeds, and draw curves over f."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from walltime.papers import drawing
from walltime.papers.results import Chart
from walltime.papers.study import Study
from walltime.papers.subjects import Subject

Array = np.ndarray

FINE = tuple(k / 10 for k in range(101))
"""tsafrir06's values of the badness f."""
COARSE = tuple(k / 2 for k in range(21))
BEYOND = (12.0, 15.0, 20.0, 30.0, 50.0, 70.0, 100.0)
"""Larger values, which tsafrir06 examined without showing them (its footnote 2)."""
FAR = (200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0)
"""Still larger values, in search of later crossings; tsafrir06 examined values up to 10,000."""
SEEDS, FEW_SEEDS = 100, 10
LOAD_SEEDS = 20
LOADS = {"high": 0.85, "low": 0.55}
"""tsafrir06 does not state its high and low loads; these are ours, around the loads of its logs."""
SMOOTH = 0.2
"""A smoothed curve is the mean over the points within this distance in f."""
RISE = 0.2
"""A curve is V-shaped if it rises again by more than this fraction of its initial fall, else L-shaped; our rule."""


@dataclass(frozen=True)
class Sweep:
    """The results of a log: for each f, with the random and the deterministic model of the same mean; and with real estimates."""

    subject: Subject
    f: Array
    """badness, float64, ascending from 0"""
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    """the results for each kind of estimates, one per seed; a single one if nothing is random"""
    truncated: bool

    @property
    def log(self) -> str:
        """Return the name of the log."""
        return self.subject.name

    def real(self, metric: str) -> float:
        """Return a metric with user estimates, truncated like the model's; nan if the log has none."""
        value = self.rows[_real_name(self._emax)][0][metric] if self.subject.has_estimates else None
        return math.nan if value is None else value

    def twin(self, metric: str) -> Array:
        """Return a metric with the deterministic model of the same mean, float64, one per f."""
        return np.array([self.rows[_name(f / 2, self._emax, deterministic=True)][0][metric] for f in self.f], np.float64)

    def random(self, metric: str) -> list[Array]:
        """Return a metric under the random model: for each f, an array with one value per seed in order; for f = 0, a single value."""
        return [np.array([row[metric] for row in self.rows[_name(f, self._emax)]], np.float64) for f in self.f]

    def mean(self, metric: str) -> Array:
        """Return the mean of the random model, one per f; nan if no seed has a value."""
        finite = [values[np.isfinite(values)] for values in self.random(metric)]
        return np.array([float(values.mean()) if len(values) else math.nan for values in finite])

    def at(self, metric: str, f: float) -> float:
        """Return the mean of the random model at the grid's value nearest to f."""
        return float(self.mean(metric)[int(np.argmin(np.abs(self.f - f)))])

    def band(self, metric: str) -> tuple[Array, Array]:
        """Return the 5th and 95th percentile of the results over the seeds, one per f."""
        bands = [np.nanpercentile(v, [5, 95]) if np.isfinite(v).any() else [math.nan, math.nan] for v in self.random(metric)]
        low, high = np.array(bands).T
        return low, high

    def error(self, metric: str) -> Array:
        """Return the standard error of the mean, one per f."""
        return np.array([float(np.std(v, ddof=1)) / math.sqrt(len(v)) if len(v) > 1 else 0.0 for v in self.random(metric)])

    def shape(self, metric: str) -> tuple[str, float, float]:
        """Return the shape, `V`, `L`, `rising` or `flat`, the fall of the smoothed mean from f = 0, and its rise after the lowest point.

        Falls and rises are relative to the value at f = 0. A curve is V-shaped if it rises again by more than `RISE` of its
        fall, and by more than noise; the paper judges by eye.
        """
        mean = self.mean(metric)
        smoothed = smooth(self.f, mean)
        lowest = int(np.argmin(smoothed))
        fall, rise = (mean[0] - smoothed[lowest]) / mean[0], (smoothed[-1] - smoothed[lowest]) / mean[0]
        noise = 2 * float(self.error(metric)[1:].max()) / mean[0]
        if fall <= noise:
            return ("rising" if rise > noise else "flat"), fall, rise
        return ("V" if rise > max(RISE * fall, noise) else "L"), fall, rise

    def crossing(self, metric: str) -> float | None:
        """Return the largest f at which the mean of the random model rises above the result with real estimates; None if it never does.

        Between two values of f the curve is interpolated linearly in f up to 10, in log f beyond.
        """
        above = self.mean(metric) - self.real(metric)
        rising = [k for k in range(1, len(above)) if above[k - 1] < 0 <= above[k]]
        if not rising:
            return None
        k = rising[-1]
        share = -above[k - 1] / (above[k] - above[k - 1])
        low, high = self.f[k - 1], self.f[k]
        return float(low + share * (high - low)) if high <= FINE[-1] else float(low * (high / low) ** share)

    @property
    def _emax(self) -> int | None:
        return self.subject.emax if self.truncated else None


def smooth(f: Array, values: Array) -> Array:
    """Return means over the points within `SMOOTH`: five in the paper's grid, one in a coarser one; f = 0 is kept, because it is exact."""
    near = np.abs(f[:, None] - f[None, :]) <= SMOOTH + 1e-9
    near[0], near[:, 0] = False, False
    near[0, 0] = True
    return np.array([values[mine].mean() for mine in near])


def run_sweep(
    study: Study,
    subject: Subject,
    *,
    truncated: bool = False,
    load: float | None = None,
    seeds: int | None = None,
    f: Sequence[float] | None = None,
    dynamics: bool = True,
) -> Sweep:
    """Simulate EASY on the log for every f and seed, trimmed as in tsafrir06; with `dynamics`, also measure the dynamics of backfilling."""
    grid = f if f is not None else f_values(study.quick)
    count = seeds if seeds is not None else seeds_of(study)
    emax = subject.emax if truncated else None
    names = [_name(value, emax) for value in grid] + [_name(value / 2, emax, deterministic=True) for value in grid]
    names.append(_real_name(emax))
    choices = [{"estimates": name} for name in dict.fromkeys(names)]
    loads = [[{"load": load}]] if load is not None else []
    label = f"{subject.name}: {'truncated ' if truncated else ''}f-model{f' at load {load:g}' if load is not None else ''}"
    table = study.cells(label, subject, choices, *loads, seeds=count, trim="tsafrir06", dynamics=dynamics)
    rows = {str(key[0]): part.rows(named=True) for key, part in table.sort("seed").group_by("estimates", maintain_order=True)}
    return Sweep(subject, np.array(grid), rows, truncated)


def seeds_of(study: Study, count: int = SEEDS) -> int:
    """Return the number of seeds: `count`, or few in a quick run."""
    return FEW_SEEDS if study.quick else count


def f_values(quick: bool, far: bool = False) -> tuple[float, ...]:
    """Return the values of f in a figure, followed by larger values."""
    beyond = BEYOND[2::2] if quick else BEYOND
    return (COARSE if quick else FINE) + beyond + ((FAR[::2] if quick else FAR) if far else ())


def _name(f: float, emax: int | None = None, deterministic: bool = False) -> str:
    """Return the name of an estimate model; perfect estimates have the same name in the random and in the deterministic model."""
    f = round(f, 6)
    name = f"badness:{f:g}"
    if deterministic and f > 0:
        name += ",deterministic=yes"
    return name if emax is None else f"{name},truncated={emax}"


def _real_name(emax: int | None) -> str:
    return "user" if emax is None else f"user:truncated={emax}"


def sweep_chart(
    name: str, sweeps: Sequence[Sweep], caption: str, rows: Mapping[str, tuple[str, float]], *, bands: bool = True, wide: bool = False
) -> Chart:
    """Return the chart with one column per log and one row per metric, given with its unit and the divisor for it, over f."""

    def draw(axes: Axes, sweep: Sweep, metric: str) -> None:
        chosen, scale = sweep.f > 0 if wide else sweep.f <= FINE[-1], rows[metric][1]
        x = sweep.f[chosen]
        if bands:
            low, high = (end[chosen] / scale for end in sweep.band(metric))
            axes.fill_between(x, low, high, color="#9aa1ab", alpha=0.45, linewidth=0, label="5th to 95th percentile")
        drawing.line(axes, x, sweep.mean(metric)[chosen] / scale, 0, "random, mean" if bands else "random")
        drawing.line(axes, x, sweep.twin(metric)[chosen] / scale, 1, "deterministic", linewidth=0.9)
        real = sweep.real(metric)
        if math.isfinite(real):
            drawing.level(axes, real / scale, "real")
        if wide:
            axes.set_xscale("log")

    data: dict[str, list[object]] = {"log": [], "f": []}
    for sweep in sweeps:
        data["log"] += [sweep.log] * len(sweep.f)
        data["f"] += sweep.f.tolist()
        for metric in rows:
            low, high = sweep.band(metric)
            columns = {"mean": sweep.mean(metric), "p5": low, "p95": high, "deterministic": sweep.twin(metric)}
            columns["real"] = np.full(len(sweep.f), sweep.real(metric))
            for column, values in columns.items():
                data.setdefault(f"{metric}_{column}", []).extend(values.tolist())
    units = {metric: unit for metric, (unit, _) in rows.items()}
    return drawing.chart(name, caption, data, {sweep.log: sweep for sweep in sweeps}, units, draw, x="f")
