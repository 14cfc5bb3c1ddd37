"""Copies of a simulation have what a predictor reads, and no more; they go on as the whole does, under every built-in predictor."""

from __future__ import annotations

import random

import numpy as np
import pytest

import walltime as wt
from tests.oracle.test_stepping_machines import step_about
from tests.profiles import scaled
from walltime.machine import Machine, Partition, Pool

PREDICTORS = (
    "tsafrir07",
    "tsafrir07:k=1,recompute=yes",
    "tsafrir07:k=3,key=double",
    "last",
    "mualem01-history:key=user",
    "mualem01-history:key=size,week=sliding",
    "mualem01-history:week=global,key=user",
    "mualem01-history:week=none,key=user,sample=yes",
    "similar15",
    "similar15:min-jobs=2,last=2",
    "quantile:min-jobs=1",
    "quantile:min-jobs=2,last=3",
    "tang13:min-jobs=1,key=user",
    "tang13:min-jobs=2,key=user,window=all,refresh=7",
    "gaussier15",
    "exact",
    "user:factor=2",
)
ORDERED = ("easy:backfill-order=sjf", "easy:order=sjf", "easy:order=wfp", "conservative:order=sjf")
POLICIES = ("easy", "hybrid:depth=2", "conservative", *ORDERED, "slack")
CORRECTIONS = ("tsafrir07", "double", "half", "estimate", "none")
COLUMNS = ("start", "end", "kind", "reserved_start", "runtime")


def jobs_of(draw: random.Random) -> wt.Workload:
    """Jobs of few users, of which some take longer than a week and some are of nobody."""
    count, now, rows = draw.randint(5, 60), 0, []
    for _ in range(count):
        now += draw.choice((0, 0, 1, 5, 300_000 if draw.random() < 0.2 else 2))
        runtime = draw.choice((0, 1, 3, 8, 30, 900_000 if draw.random() < 0.2 else 20))
        rows.append((now, runtime, max(1, runtime + draw.choice((0, 3, 40, -2))), draw.choice((1, 1, 2, 3, 8))))
    submit, runtime, requested, procs = map(list, zip(*rows, strict=True))
    columns = {name: np.array([draw.choice((1, 1, 2, 3, -1)) for _ in rows]) for name in ("user", "group", "executable")}
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=8, columns=columns)


def said(schedule):
    """All that is known of the jobs."""
    made = schedule.predictions
    columns = [*(getattr(schedule, name) for name in COLUMNS), made.predicted, made.basis, made.corrections]
    return [values.tolist() for values in columns]


@pytest.mark.parametrize("predictor", PREDICTORS)
def test_copies__predict_what_the_whole_predicts(predictor):
    pools = Machine((Pool("a", 4, 1), Pool("b", 4, 1)), (Partition("1", ("a", "b")),))
    for seed in range(scaled(60)):
        draw = random.Random(f"{predictor} {seed}")
        jobs, on_pools = jobs_of(draw), draw.random() < 0.4
        policy = draw.choice(POLICIES[:-1] if on_pools else POLICIES)
        prediction = wt.Prediction(
            predictor, predictions_for=draw.choice(("111", "011", "001", "110")), correction=draw.choice(CORRECTIONS)
        )
        options = {"machine": pools} if on_pools else {"dialect": draw.choice(("papers", "pyss"))}
        options |= {"prediction": prediction, "overrun": draw.choice(("kill", "extend", "continue"))}
        expected = said(wt.simulate(jobs, policy, **options))
        simulations = [wt.Simulation(jobs, policy, **options)]
        for _ in range(draw.randrange(20)):
            chosen = draw.choice(simulations)
            if draw.random() < 0.4 and len(simulations) < 5:
                simulations.append(chosen.copy())
            elif draw.random() < 0.3:
                chosen.run_until(chosen.now + draw.choice((1, 20, 500_000)))
            else:
                step_about(draw, chosen, 4)
        for one in simulations:
            assert said(one.finish()) == expected, f"seed {seed}"
