"""Draws the picture of the README: `python docs/generators/overview_figure.py`."""

from pathlib import Path

import walltime as wt
from walltime.report.stretch import choose_stretch

jobs = wt.workloads.Lublin99().generate(3000, 128, load=0.75, seed=5).with_estimates(wt.estimates.Tsafrir05(), seed=1)
schedules = [wt.simulate(jobs, name) for name in ("fcfs", "easy", "easy:backfill-order=sjf")]
figure, (left, right) = wt.figures.panels(1, 2, width="slide", height=3.2, width_ratios=(2, 3))
wt.figures.wait_distribution(*schedules, ax=left).set_title("how long jobs wait", loc="left")
begin, end = choose_stretch(schedules[1:], 150)
wt.figures.gantt(schedules[1], begin, end, ax=right)
wt.figures.save(figure, Path(__file__).parents[1] / "images" / "overview.svg")
