"""Predicts start times at many moments of simulated schedules, with what was known then, and measures how good that was.

    python validation/start_times.py [--only LOG ...] [--samples N] [--out FILE]

The truth is a log's schedule under EASY; a prediction knows the jobs that run and wait at its moment, and of the log those that had ended.
Moments are drawn from the last three quarters of the log, and predictions are made at moments with waiting jobs. Calibrated intervals use
the known outcomes of earlier predictions. Stores what it finds in docs/generators/start-times.json, which
docs/guides/start-times.md is made from. Logs are looked for in the folder that WALLTIME_TRACES names. One core takes one to three
minutes for each log.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT, find_log
from validation.interval_factors import DAY, LATEST, apply_factors, learn_factors
from validation.run import rounded
from walltime.errors import PolicyError
from walltime.logs import read
from walltime.schedule import Schedule
from walltime.simulation import simulate
from walltime.slurm import Draws, Outcome, score_outcomes, snapshot_at, start_times
from walltime.slurm.starts.forecast import USUAL
from walltime.workload import Workload

OUT = ROOT / "docs" / "generators" / "start-times.json"
LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln", 400),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln", 150),
    "SDSC-BLUE": ("SDSC-BLUE-2000-4.x-cln", 250),
    "UniLu-Gaia": ("UniLu-Gaia-2014", 2_000),
}
"""The beginning of each file's name, and how many moments are drawn. On Gaia, which has a queue for a twentieth of the time, many more."""
SEED = 20


def to_history(schedule: Schedule) -> Workload:
    """Return the jobs of a log that records this schedule."""
    w = schedule.workload
    return replace(w, runtime=schedule.runtime, columns={**w.columns, "wait": schedule.start - schedule.submit})


def replay_outcomes(
    schedule: Schedule,
    moments: Sequence[int],
    *,
    policy: str = "easy",
    draws: Draws = USUAL,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Outcome]:
    """Predict the starts of all jobs that wait at these moments (s), with only earlier information, and add the real starts."""
    history = to_history(schedule)
    started = dict(zip(schedule.workload.job_id.tolist(), schedule.start.tolist(), strict=True))
    outcomes: list[Outcome] = []
    for done, moment in enumerate(moments):
        snapshot = snapshot_at(schedule, moment, policy)
        try:
            made = start_times(snapshot, history, draws=replace(draws, seed=draws.seed + done), workers=workers)
        except PolicyError:  # no job waits
            continue
        for one in made.jobs:
            times = (one.early, one.median, one.late, one.by_limits)
            early, median, late, by_limits = (np.inf if time is None else float(time - snapshot.time) for time in times)
            real = float(started[one.job.job] - moment)
            outcomes.append(Outcome(one.job.label, snapshot.time, early, median, late, by_limits, np.nan, real))
        if progress is not None:
            progress(done + 1)
    return outcomes


def calibrate_outcomes(outcomes: Sequence[Outcome], longest: int = LATEST) -> list[Outcome]:
    """Adjust each prediction with the factors learned from earlier ones whose jobs had started by then; return them in order of time.

    Only predictions of the last `longest` s are learned from.
    """
    adjusted: list[Outcome] = []
    for moment in sorted({one.made for one in outcomes}):
        past = [one for one in outcomes if one.made >= moment - longest and one.made + one.real < moment]
        adjusted += apply_factors([one for one in outcomes if one.made == moment], learn_factors(past))
    return adjusted


def measure(prefix: str, drawn: int, samples: int) -> dict[str, Any] | None:
    """The scores on a log; None where it is not there."""
    file = find_log(prefix)
    if file is None:
        return None
    workload = read(file)
    truth = simulate(workload, "easy")
    first, last = int(workload.submit[-1]) // 4, int(workload.submit[-1])
    moments = np.sort(np.random.default_rng(SEED).integers(first, last, drawn)).tolist()
    chosen = [time for time in moments if ((truth.submit <= time) & (truth.start > time)).any()]
    begin = time.perf_counter()
    found = replay_outcomes(truth, chosen, draws=Draws(samples, seed=SEED))
    seconds = time.perf_counter() - begin
    return {
        "moments": drawn,
        "samples": samples,
        "snapshots": len({one.made for one in found}),
        "predictions": len(found),
        "seconds": seconds,
        "raw": _rows(found),
        "calibrated": _rows(calibrate_outcomes(found)),
    }


def _rows(found: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The scores, with the number of days on which predictions were made, and the mean over these of the part inside the intervals.

    `even_days`: the effective number of days (Kish, Survey Sampling, 1965). `inside_error`: the standard
    error of the part inside, if days are independent and the predictions of one are not.
    """
    rows = []
    for score in score_outcomes(found):
        by_day: dict[int, list[bool]] = {}
        for one in found:
            if score.name in ("all", one.name):
                by_day.setdefault(one.made // DAY, []).append(one.inside)
        row = {name: value for name, value in asdict(score).items() if value == value}
        count = np.array([len(day) for day in by_day.values()])
        off = np.array([sum(day) for day in by_day.values()]) - score.inside * count
        row |= {"days": len(by_day), "inside_by_day": float(np.mean([np.mean(day) for day in by_day.values()]))}
        rows.append(row | {"even_days": count.sum() ** 2 / (count**2).sum(), "inside_error": float(np.sqrt((off**2).sum()) / count.sum())})
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, store, and print one line for each log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=LOGS, metavar="LOG", help=f"of {', '.join(LOGS)}")
    parser.add_argument("--samples", type=int, default=100, help="simulations from each (100)")
    parser.add_argument("--out", type=Path, default=OUT, help="the file that keeps what is found (docs/generators/start-times.json)")
    given = parser.parse_args(arguments)
    stored = json.loads(given.out.read_text()) if given.out.exists() else {}
    for name in given.only or LOGS:
        found = measure(*LOGS[name], given.samples)
        if found is None:
            print(f"{name}: not there")
            continue
        stored = {one: rounded(found) if one == name else stored[one] for one in LOGS if one == name or one in stored}
        given.out.write_text(json.dumps(stored, indent=1, allow_nan=False) + "\n")
        for kind in ("raw", "calibrated"):
            shown = [(row["name"], row["jobs"], f"{row['inside']:.1%}", f"{row['error'] / 60:.0f} min") for row in found[kind]]
            print(name, kind, shown, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
