"""P2 Tables 3 and 4 computed anew, beside the printed numbers: the effect of the estimates' quality, and of doubling them.

    python validation/p2_tables.py KTH-SP2-1996-2.swf.gz
    python validation/p2_tables.py CTC-SP2-1996-3.1-cln.swf.gz --procs 512

The log is known by its name: KTH-SP2, CTC-SP2 (P2 simulated 512 processors) or SDSC-SP2. Estimates of the f-model are
uniform in [r, f r] and the kill limit too; each result is the mean over the seeds, with the standard deviation of one run
beside it. The bounded slowdown is in the form of P1 and P2. Takes some ten seconds for KTH.

Source: P2 section 4.2, Tables 3 and 4 (SPEC X-P2-T3, X-P2-T4).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import walltime as wt
from walltime.cli.common import print_table
from walltime.estimates import EstimateModel, FactorEstimates, FModel, UserEstimates
from walltime.schedule.replication import Replications, replicate

FACTORS = (1, 2, 4, 11, 31, 101, 301)
POLICIES = {"EASY": wt.Easy(), "conservative": wt.Conservative()}
METRICS = {"mean_response": "response", "mean_bounded_slowdown_p1": "bounded slowdown"}
# for each log, metric and scheduler: the original estimates, the seven factors, and twice the original
PRINTED = {
    ("KTH", "response", "EASY"): (15568, 15001, 14717, 14645, 14880, 15028, 15110, 15127, 15060),
    ("KTH", "response", "conservative"): (16288, 16098, 14940, 14878, 15095, 15391, 15538, 15651, 15147),
    ("KTH", "bounded slowdown", "EASY"): (84.0, 67.6, 67.0, 62.7, 63.7, 64.7, 64.9, 65.8, 80.0),
    ("KTH", "bounded slowdown", "conservative"): (89.7, 68.7, 50.0, 49.3, 47.5, 47.4, 49.4, 49.8, 69.1),
    ("CTC", "response", "EASY"): (12053, 12234, 11976, 11923, 11896, 11895, 11889, 11890, 11944),
    ("CTC", "response", "conservative"): (12495, 12639, 12201, 12062, 11983, 11965, 11964, 11964, 12291),
    ("CTC", "bounded slowdown", "EASY"): (3.82, 4.10, 3.12, 3.04, 3.02, 3.06, 3.03, 3.01, 3.5),
    ("CTC", "bounded slowdown", "conservative"): (5.00, 3.71, 2.62, 2.39, 2.38, 2.37, 2.40, 2.37, 4.1),
    ("SDSC", "response", "EASY"): (24519, 21976, 21801, 22451, 23148, 23977, 24739, 24978, 24134),
    ("SDSC", "response", "conservative"): (29422, 23239, 21550, 22800, 25220, 29284, 32999, 32862, 26222),
    ("SDSC", "bounded slowdown", "EASY"): (84.2, 70.1, 72.7, 76.3, 76.3, 78.9, 82.0, 83.9, 88.1),
    ("SDSC", "bounded slowdown", "conservative"): (96.0, 68.3, 56.0, 58.9, 63.9, 63.3, 67.8, 67.3, 82.4),
}


def main() -> None:
    """Read the log, run what the tables need, print ours beside the printed numbers."""
    parser = argparse.ArgumentParser(description="P2 Tables 3 and 4, computed anew beside the printed numbers.")
    parser.add_argument("trace", type=Path, help="one of the logs KTH-SP2, CTC-SP2 and SDSC-SP2")
    parser.add_argument("--procs", type=int, help="processors, instead of the log's; P2 simulated CTC with 512")
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds, 0, 1, ... (default: 10, as in P2)")
    options = parser.parse_args()
    jobs = wt.read(options.trace, procs=options.procs)
    log = next((name for name in ("KTH", "CTC", "SDSC") if jobs.origin.name.upper().startswith(f"{name}-SP2")), None)
    if log is None:
        parser.error(f"{jobs.origin.name} is none of the logs of P2: KTH-SP2, CTC-SP2, SDSC-SP2")
    for scheduler, policy in POLICIES.items():
        results = run(jobs, policy, range(options.seeds))
        for field, metric in METRICS.items():
            title = f"{log} on {jobs.machine_procs}, {scheduler}: {metric}"
            print_table(
                title, ["estimates", "P2", "ours", "difference", "sd of a run"], rows(results, field, PRINTED[log, metric, scheduler])
            )


def run(jobs: wt.Workload, policy: wt.Policy, seeds: Sequence[int]) -> list[tuple[str, Replications]]:
    """All columns of the tables for one scheduler; what has no chance in it is run once."""
    models: list[tuple[str, EstimateModel]] = [("original", UserEstimates())]
    models += [(f"f = {factor}", FModel(factor)) for factor in FACTORS]
    models.append(("original x 2", FactorEstimates(factor=2.0)))

    def one(name: str, model: EstimateModel) -> tuple[str, Replications]:
        chance = isinstance(model, FModel) and model.F > 1
        return name, replicate(lambda seed: jobs.with_estimates(model, seed), policy, seeds if chance else [0])

    return [one(name, model) for name, model in models]


def rows(results: Sequence[tuple[str, Replications]], field: str, printed: Sequence[float]) -> list[list[str]]:
    """One row per kind of estimates."""
    digits = 0 if field == "mean_response" else 2
    table = []
    for (name, runs), value in zip(results, printed, strict=True):
        values = runs.values(field)
        ours = float(values.mean())
        spread = f"{values.std(ddof=1):,.{digits}f}" if len(values) > 1 else ""
        table.append([name, f"{value:,}", f"{ours:,.{digits}f}", f"{100 * (ours / value - 1):+.1f} %", spread])
    return table


if __name__ == "__main__":
    main()
