"""Replays workloads from a JSON file in another process: `python replay.py CORPUS RESULTS`, so that the kernel can be built otherwise."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import walltime as wt

POLICIES = ("fcfs", "easy", "conservative", "conservative-scratch", "hybrid:0", "hybrid:3")
ORDERS = ("fcfs", "sjf", "wfp")


def corpus(count: int, seed: int, jobs: int = 25) -> list[dict]:
    """So many random workloads, each with a policy, orders and modes; some jobs outlive their estimates."""
    draw = random.Random(seed)
    cases = []
    for _ in range(count):
        machine = draw.choice((1, 2, 4, 6, 16))
        now, rows = 0, []
        for _ in range(draw.randint(1, jobs)):
            now += draw.choice((0, 0, 0, 1, 2, 5))
            runtime = draw.choice((0, 1, 2, 3, 5, 8, 13, 30))
            requested = max(1, runtime + draw.choice((0, 0, 0, 1, 3, 10, -1, -5)))
            planned = requested if draw.random() < 0.7 else draw.randint(1, 20)
            rows.append((now, runtime, requested, planned, draw.choice((1, 1, machine, draw.randint(1, machine)))))
        case = dict(zip(("submit", "runtime", "requested", "planned", "procs"), map(list, zip(*rows, strict=True)), strict=True))
        case |= {"machine_procs": machine, "policy": draw.choice(POLICIES), "order": draw.choice(ORDERS)}
        case |= {"backfill_order": draw.choice((None, *ORDERS)), "coincident": draw.choice(("batch", "sequential"))}
        case["overrun"] = draw.choice(("kill", "extend", "continue"))
        cases.append(case)
    return cases


def schedule_of(case: dict, engine: str = "kernel") -> wt.Schedule:
    """The schedule of one case."""
    case = dict(case)
    order, backfill = wt.policy.parse_order(case.pop("order")), case.pop("backfill_order")
    name = case.pop("policy")
    own = backfill if name.startswith(("easy", "hybrid")) else None
    orders = {"order": order} | ({"backfill_order": wt.policy.parse_order(own)} if own else {})
    policy = wt.policy.POLICIES.parse(name, **orders)
    modes = {name: case.pop(name) for name in ("coincident", "overrun")}
    return wt.simulate(wt.Workload.from_arrays(**case), policy, engine=engine, **modes)


def replay(case: dict, engine: str = "kernel") -> dict[str, list[int]]:
    """What becomes of the jobs of one case."""
    schedule = schedule_of(case, engine)
    return {name: getattr(schedule, name).tolist() for name in ("start", "end", "kind", "reserved_start")}


def main(source: str, target: str) -> None:
    """Replay a file of cases; note how the kernel was built."""
    from numba import config

    results = [replay(case) for case in json.loads(Path(source).read_text())]
    Path(target).write_text(json.dumps({"disable_jit": config.DISABLE_JIT, "boundscheck": config.BOUNDSCHECK, "results": results}))


if __name__ == "__main__":
    main(*sys.argv[1:])
