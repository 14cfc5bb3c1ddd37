"""Draws the picture of the README and of the first page: `python docs/generators/overview_figure.py`."""

from pathlib import Path

import walltime as wt

HOURS = 12
jobs = wt.workloads.Lublin99().generate(3000, 128, load=0.75, seed=5).with_estimates(wt.estimates.Tsafrir05(), seed=1)
schedules = [wt.simulate(jobs, name) for name in ("fcfs", "easy", "easy:backfill-order=sjf")]
figure, (left, right) = wt.figures.panels(1, 2, width="slide", height=3.2, width_ratios=(2, 3))
wt.figures.wait_distribution(*schedules, ax=left).set_title("Share of jobs that wait less than a time", loc="left", fontsize=9)
timeline = schedules[1].timeline(interval=3600)
begin = int(timeline["time"][int(timeline["queued_jobs"].arg_max() or 0)])
wt.figures.gantt(schedules[1], begin, begin + HOURS * 3600, ax=right)
right.set_title(f"EASY: {HOURS} hours of the schedule, a rectangle per job", loc="left", fontsize=9, pad=22)
right.set_xlabel("hours")
wt.figures.save(figure, Path(__file__).parents[1] / "images" / "overview.svg")
