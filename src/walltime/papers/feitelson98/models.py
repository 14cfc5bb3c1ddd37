"""feitelson98, Fig. 3: FCFS, EASY and conservative backfilling on a workload model, over the load."""

from __future__ import annotations

import numpy as np

from walltime.papers.item import Item
from walltime.papers.mualem01.models import BATCH_NOTE, MODEL_NOTE, SCHEDULERS, curve_chart, differences, largest, run_models, steady
from walltime.papers.results import Claim, Claims, Notes, Part
from walltime.papers.study import Study


def figure_3(study: Study) -> list[Part]:
    """feitelson98: three schedulers on the general model: slowdown, and how many jobs are backfilled."""
    curves = run_models(study, ["F"], list(SCHEDULERS))
    metrics = {"slowdown": "average bounded slowdown", "backfilled_percent": "backfilled jobs (%)"}
    rows = curves["F"]
    worst = largest(differences(rows, "slowdown"))
    f_load, f_slow = steady(rows["fcfs"], "slowdown")
    e_load, e_slow = steady(rows["easy"], "slowdown")
    shared = np.intersect1d(f_load, e_load)
    ratio = max(float(f_slow[f_load == x][0] / e_slow[e_load == x][0]) for x in shared) if len(shared) else float("nan")
    _, share = steady(rows["easy"], "backfilled_percent")
    _, other = steady(rows["conservative"], "backfilled_percent")
    count = min(len(share), len(other))
    more = float(np.mean(other[:count] >= share[:count] - 0.5))
    claims: list[Claim] = [
        ("conservative and EASY are practically the same", worst < 0.15, f"slowdowns differ by at most {100 * worst:.0f} %"),
        ("both are far better than FCFS", ratio > 2, f"FCFS is up to {ratio:.1f} times worse where it has a steady state"),
        ("FCFS saturates first", len(f_load) < len(e_load), f"steady up to a load of {f_load.max():g}, EASY up to {e_load.max():g}"),
        ("nearly all jobs are backfilled at high load", float(share[-1]) > 80, f"{share[-1]:.0f} % under EASY at {e_load[-1]:g}"),
        ("conservative backfills slightly more", more > 0.5, f"at {100 * more:.0f} % of the loads"),
    ]
    chart = curve_chart("fig3", curves, metrics, "Perfect estimates. FCFS, EASY and conservative backfilling.")
    return [chart, Claims(claims), Notes([BATCH_NOTE, MODEL_NOTE])]


ITEMS = (Item("feitelson98", "F3", "Fig. 3: FCFS, EASY and conservative on a model", figure_3, where="workload models"),)
