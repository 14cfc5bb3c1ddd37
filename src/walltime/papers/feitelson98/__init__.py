"""feitelson98: EASY and conservative backfilling on the logs of two IBM SP2, and on a workload model (1998).

The same experiments as in `mualem01`, which extends this paper; shared code is there.

Tables 1 and 2: slowdowns by month, and with estimates of the f-model. Fig. 3: three schedulers over the load. Fig. 4: fraction of the
requested time used. The printed numbers are in printed.toml.
"""

import numpy as np

from walltime.metrics.estimates import estimate_use
from walltime.papers.items import item
from walltime.papers.mualem01 import experiment
from walltime.papers.mualem01.estimates import NEAR, killed_jobs, use_chart
from walltime.papers.mualem01.models import BATCH_NOTE, MODEL_NOTE, SCHEDULERS, curve_chart, differences, largest, run_models, steady
from walltime.papers.mualem01.months import correlated, months_of
from walltime.papers.results import Claim, Entry, Parts, Rows, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import Subject

FACTORS = (1, 4, 11, 31, 101, 301)


@item("T1")
def table_1(study: Study) -> Parts:
    """Table 1: bounded slowdown by month."""
    printed = study.printed.tables["T1b"]
    record = study.printed.tables["T1a"]
    rows: Rows = []
    for subject in study.subjects:
        months = {policy: months_of(subject, policy, None) for policy in experiment.POLICIES}
        pairs: dict[str, list[tuple[float, float]]] = {policy: [] for policy in experiment.POLICIES}
        for easy, conservative in zip(*months.values(), strict=True):
            row: list[Entry] = [subject.name, f"{easy.year}-{easy.month:02d}", Value(easy.jobs)]
            for policy, month in zip(experiment.POLICIES, (easy, conservative), strict=True):
                value = study.printed_value(subject, "T1b", policy, year=month.year, month=month.month)
                row.append(Value(month.mean_bounded_slowdown_p1, value, digits=1))
                if value is not None:
                    pairs[policy].append((value, month.mean_bounded_slowdown_p1))
            rows.append(row)
        for policy, values in pairs.items():
            if len(values) > 2:
                yield correlated(f"{subject.name}, {policy}: monthly slowdowns", values)
    yield Table(
        "table1b", printed.title, ["log", "month", "jobs", "EASY", "conservative"], rows, "Single months are chaotic: no criterion."
    )
    lost: Rows = [[str(row["month"]), *(float(row[c]) for c in list(row)[1:])] for row in record.rows]
    heads = ["month", *(f"{c[:2]} nodes, {'EASY' if c.endswith('easy') else 'conservative'}" for c in list(record.rows[0])[1:])]
    yield Table("table1a-printed", f"{record.title}: printed numbers only", heads, lost, record.note)
    yield "feitelson98's months start with September 1996; today's log has eight days of it."


@item("T2")
def table_2(study: Study) -> Parts:
    """Table 2: bounded slowdown with f-model estimates."""
    names = [*(f"f:{factor}" for factor in FACTORS), "user"]
    rows: Rows = []
    for subject in study.subjects:

        def print_of(metric: str, policy: str, name: str, of: Subject = subject) -> float | None:
            return study.printed_value(of, "T2", policy, estimates=name) if metric == "slowdown" else None

        values = experiment.measure(study, subject, names, print_of)
        for name in names:
            easy, conservative = (values["slowdown", policy, name] for policy in experiment.POLICIES)
            rows.append([subject.name, experiment.label(name), easy, conservative])
            yield from experiment.compared(f"{subject.name}, {experiment.label(name)}: conservative against EASY", easy, conservative)
    yield Table("table2", study.printed.tables["T2"].title, ["log", "estimates", "EASY", "conservative"], rows)
    yield "feitelson98 seems to have run each once; ours are means of 10 seeds."
    yield experiment.CHAOS_NOTE


FOUR_HOURS = 14_400


@item("F4")
def figure_4(study: Study) -> Parts:
    """Fig. 4: share of the requested time used."""
    rows: Rows = []
    for subject in study.subjects:
        w, killed = subject.workload, killed_jobs(subject)
        peak = estimate_use(w.runtime, w.requested) == 99
        ours = {"jobs in the peak": int(peak.sum())}
        if killed is not None:
            ours["killed jobs in the peak"] = int((peak & killed).sum())
            ours["of these with a request of 4 h"] = int((peak & killed & (w.requested == FOUR_HOURS)).sum())
        for name, count in ours.items():
            rows.append([subject.name, name, Value(count, study.printed_value(subject, "F4", "value", quantity=name), NEAR)])
    yield use_chart("fig4", study.subjects)
    yield Table("fig4-peak", study.printed.tables["F4"].title, ["log", "", "jobs"], rows)
    yield "The peak is the bin of 99 % here, which gives feitelson98's number; mualem01's peak has the bin of 100 % too."


@item("F3", where="workload models")
def figure_3(study: Study) -> Parts:
    """Fig. 3: FCFS, EASY and conservative on a model."""
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
    claims = (
        ("conservative and EASY are practically the same", worst < 0.15, f"slowdowns differ by at most {100 * worst:.0f} %"),
        ("both are far better than FCFS", ratio > 2, f"FCFS is up to {ratio:.1f} times worse where it has a steady state"),
        ("FCFS saturates first", len(f_load) < len(e_load), f"steady up to a load of {f_load.max():g}, EASY up to {e_load.max():g}"),
        ("nearly all jobs are backfilled at high load", float(share[-1]) > 80, f"{share[-1]:.0f} % under EASY at {e_load[-1]:g}"),
        ("conservative backfills slightly more", more > 0.5, f"at {100 * more:.0f} % of the loads"),
    )
    yield from map(Claim._make, claims)
    yield curve_chart("fig3", curves, metrics, "Perfect estimates. FCFS, EASY and conservative backfilling.")
    yield BATCH_NOTE
    yield MODEL_NOTE
