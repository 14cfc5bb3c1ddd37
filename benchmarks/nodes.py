"""Machines of nodes: real logs by policy, on a number of processors, on one pool, on several pools, and on Slurm's single nodes.

    python benchmarks/nodes.py [--only CASE ...] [--policies NAME ...] [--runs 5] [--out FILE] [--json]

A case is a log on its nodes, `million` (a million jobs on 10,000 nodes, about a thousand of them waiting), `forty shapes` (requests for
memory and GPUs on 2,000 and on 50,000 nodes) or `compilation`. Results are stored with the day and the machine, next to other cases of the
file, and shown on the page on performance. Everything of a case runs in turns; what takes seconds runs less often. All cases together take
about eight minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import (
    Numbers,
    Options,
    Result,
    child,
    cores,
    environment,
    find_log,
    log_name,
    lublin,
    read_log,
    show,
    spread,
)
from benchmarks.speed import ALSO_RUNNING
from walltime.estimates import FModel
from walltime.machine import Limit, Machine, Outage, Partition, Pool
from walltime.simulation import simulate
from walltime.workload import Workload

CASES = {
    "KTH, 100 x 1": ("KTH-SP2-1996-2.swf", 100, 1),
    "Theta, 4,392 x 1": ("ALCF-Theta", 4_392, 1),
    "Mira, 49,152 x 1": ("ALCF-Mira", 49_152, 1),
    "Gaia, 2,004 x 1": ("UniLu-Gaia", 2_004, 1),
    "BLUE, 144 x 8": ("SDSC-BLUE", 144, 8),
    "BLUE, 1,152 x 1": ("SDSC-BLUE", 1_152, 1),
    "CTC, 512 x 1": ("CTC-SP2", 512, 1),
}
"""By name: how the log's file begins, nodes, and processors of each."""
POLICIES = {
    "easy": "easy",
    "wfp": "easy:order=wfp",
    "EASY++": "easy:backfill-order=sjf,predictor=tsafrir07",
    "conservative": "conservative",
    "slurm": "slurm",
}
NUMBER, ONE, SEVERAL, NODES = "number", "one pool", "several pools", "nodes"
MILLION, COMPILATION = "million", "compilation"
SHAPES = {"forty shapes, 2,000 nodes": 2_000, "forty shapes, 50,000 nodes": 50_000}
"""Nodes, by name of a case."""
CORES = 64
"""Processors of each of these nodes."""
ENTRIES = ("easy", "easy-ordered", "conservative", "scratch", "cluster", "cluster-kept", "slurm")
"""Parts of the engine whose compilation is measured."""
DAY = 86_400
WARM = 1.0
"""Seconds from which the first run counts; a shorter one warms the caches."""
PATIENCE = 6.0
"""Seconds from which a cell is not run again."""
RUNNING_JOBS = 20
"""The most of one user that run at a time on several pools."""


def nodes(
    options: Options, only: Sequence[str] = (), policies: Sequence[str] = (), keep: Callable[[Result], None] = lambda found: None
) -> Result:
    """Seconds of simulation by policy and kind of machine, and memory; of the cases whose names contain one of `only`, all without.

    `keep` is called after each case with what has been measured so far.
    """
    result: Result = {}
    names = [*list(CASES)[: options.size(len(CASES), 1)], *([] if options.quick else [*SHAPES, MILLION, COMPILATION])]
    chosen = [name for name in names if not only or any(word.lower() in name.lower() for word in only)]

    def measured(name: str) -> None:
        about = environment()
        say(f"{name} ({chosen.index(name) + 1} of {len(chosen)})")
        found = _of(name, options, policies)
        if found:
            result[name] = found | {"environment": about}
            keep(result)

    for name in chosen:
        if name in CASES or name in SHAPES:
            measured(name)
    with ThreadPoolExecutor(min(2, cores())) as pool:  # each of these two works in processes of its own, on one core
        list(pool.map(measured, [name for name in chosen if name in (MILLION, COMPILATION)]))
    return result


def say(line: str) -> None:
    """Progress, on standard error."""
    print(line, file=sys.stderr, flush=True)


def _of(name: str, options: Options, policies: Sequence[str]) -> Result:
    if name == MILLION:
        return million()
    if name == COMPILATION:
        return compilation(options)
    if name in SHAPES:
        return of_shapes(SHAPES[name], options)
    beginning, count, procs = CASES[name]
    file = find_log(beginning)
    if file is None:
        say(f"skipped: there is no log {beginning}* in the folder of logs")
        return {}
    return of_log(file, count, procs, options, policies or tuple(POLICIES))


def of_log(file: Path, nodes: int, procs: int, options: Options, policies: Sequence[str]) -> Result:
    """Measure one log under these policies on machines of each kind with this many processors."""
    workload = replace(read_log(file), machine_procs=nodes * procs)
    whole, (split, machine) = machine_of(nodes, procs), several_pools(workload, nodes, procs)
    works: dict[str, Callable[[], float]] = {}
    waits: dict[str, float] = {}
    for policy in policies:
        kinds = {NODES: (workload, whole)}
        if policy != "slurm":
            kinds = {NUMBER: (workload, None), ONE: (workload, whole), SEVERAL: (split, machine)}
        for kind, (jobs, on) in kinds.items():
            cell = f"{policy}, {kind}"
            works[cell] = partial(_seconds, cell, waits, jobs, POLICIES[policy], on)
    seconds = repeated(works, options.runs)
    result: Result = {"log": log_name(file), "jobs": len(workload), "seconds": seconds, "mean_wait": waits}
    result["ratio"] = {cell: one["median"] / _plain(seconds, cell) for cell, one in seconds.items() if _plain(seconds, cell)}
    if "slurm" in policies:
        result["memory"] = child("slurm_memory", file, nodes, procs)
    rows = [(cell, f"{one['median']:.4f}", f"{result['ratio'].get(cell, 0):.1f}", f"{waits[cell]:.0f}") for cell, one in seconds.items()]
    show(f"{log_name(file)} on {nodes:,} nodes of {procs}", ("policy, machine", "s", "of the same on a number", "mean wait, s"), rows)
    return result


def repeated(works: Mapping[str, Callable[[], float]], runs: int) -> dict[str, Numbers]:
    """Run all in turns, each `repetitions` times or until it has taken `PATIENCE`; each returns its seconds."""
    taken: dict[str, list[float]] = {}
    for cell, work in works.items():
        first = work()
        say(f"  {cell}: {first:.3f} s, the first time")
        taken[cell] = [first] if first > WARM else []
    for _ in range(runs):
        for cell, work in works.items():
            if len(taken[cell]) < runs and sum(taken[cell]) < PATIENCE:
                taken[cell].append(work())
    return {cell: spread(seconds) for cell, seconds in taken.items()}


def _plain(seconds: dict[str, Numbers], cell: str) -> float:
    """The median of the same policy on a number of processors; for Slurm's, which does not run there, that of EASY; 0 if not measured."""
    policy = cell.rpartition(", ")[0]
    return float(seconds.get(f"{'easy' if policy == 'slurm' else policy}, {NUMBER}", {"median": 0})["median"])


def _seconds(cell: str, waits: dict[str, float], workload: Workload, policy: str, machine: Machine | None) -> float:
    schedule = simulate(workload, policy, machine=machine)
    waits[cell] = float((schedule.start - schedule.submit).mean())
    return schedule.seconds["simulate"]


def machine_of(nodes: int, procs: int) -> Machine:
    """A machine of equal nodes in one partition."""
    return Machine((Pool("all", nodes, procs),), (Partition("all", ("all",)),))


def several_pools(workload: Workload, nodes: int, procs: int) -> tuple[Workload, Machine]:
    """The machine as a half and two quarters, and the jobs in three partitions by their users, or where there is room for them.

    A tenth of the nodes is missing for two days in the middle of the log, announced a day before; a user has at most 20 running jobs.
    """
    quarter = nodes // 4
    sizes = {"a": nodes - 2 * quarter, "b": quarter, "c": quarter}
    partitions = (Partition("1", ("a", "b", "c")), Partition("2", ("b", "a")), Partition("3", ("c", "b")))
    room = np.array([sum(sizes[pool] for pool in part.pools) * procs for part in partitions])
    user = workload.columns.get("user", np.zeros(len(workload), np.int64))
    wanted = np.maximum(user, 0) % len(partitions)
    partition = np.where(workload.procs <= room[wanted], wanted, 0) + 1
    middle = int(np.median(workload.submit))
    outage = Outage("b", middle, middle + 2 * DAY, max(1, min(nodes // 10, quarter)), middle - DAY)
    pools = tuple(Pool(name, count, procs) for name, count in sizes.items())
    machine = Machine(pools, partitions, (outage,), (Limit(("user",), jobs=RUNNING_JOBS),))
    return replace(workload, columns=workload.columns | {"partition": partition}), machine


def with_shapes(nodes: int, jobs: int = 12_000) -> tuple[Workload, Workload, Machine, Machine]:
    """Return jobs that request processors only, the same with requests of forty kinds, and a machine of nodes for each.

    Sizes in nodes and runtimes are from lublin99, estimates are up to 4 times the runtime. Each job requests the same part of each of its
    nodes. A quarter of the nodes has four GPUs, an eighth has large memory.
    """
    model = lublin(jobs, 1.2, nodes).with_estimates(FModel(4), seed=1)
    model = replace(model, submit=model.submit // 2)  # as jobs request only a part of their nodes
    part = np.array([1, 4, 16, 32, CORES])  # processors of each node
    memory = np.array([1, 2, 4, 8])  # GB of each processor
    shape = np.random.default_rng(1).integers(0, len(part) * len(memory) * 2, jobs)
    gpus = np.where((shape % 2 == 1) & (model.procs <= nodes // 8), 1 + shape // 2 % 4, 0)
    procs, each = part[shape // 8], memory[shape // 2 % 4] * 1024
    large = (procs * each > 256 * 1024) & (gpus == 0) & (model.procs <= nodes // 16)
    each = np.where(large, each, np.minimum(each, 256 * 1024 // procs))
    plain = replace(model, procs=model.procs * procs, machine_procs=nodes * CORES)
    plain = replace(plain, columns=plain.columns | {"nodes": model.procs, "requested_nodes": model.procs})
    requests = {"mem_mb_per_cpu": each, "gpus_per_node": gpus, "gpus": gpus * model.procs}
    shaped = replace(plain, columns=plain.columns | {name: values.astype(np.int64) for name, values in requests.items()})
    pools = (
        Pool("thin", nodes - nodes // 4 - nodes // 8, CORES, memory=256 * 1024),
        Pool("gpu", nodes // 4, CORES, second=4, memory=256 * 1024),
        Pool("large", nodes // 8, CORES, memory=1024 * 1024),
    )
    every = tuple(pool.name for pool in pools)
    bare = tuple(replace(pool, memory=0, second=0) for pool in pools)
    return plain, shaped, Machine(bare, (Partition("all", every),)), Machine(pools, (Partition("all", every),), second="gpus")


def of_shapes(nodes: int, options: Options) -> Result:
    """Measure Slurm's scheduling on nodes with memory and GPUs, against the same jobs that request processors only."""
    plain, shaped, bare, machine = with_shapes(nodes)
    cells = {"processors only": (plain, bare), "forty shapes": (shaped, machine)}
    waits: dict[str, float] = {}
    seconds = repeated({cell: partial(_seconds, cell, waits, jobs, "slurm", on) for cell, (jobs, on) in cells.items()}, options.runs)
    ratio = seconds["forty shapes"]["median"] / seconds["processors only"]["median"]
    show(
        f"12,000 jobs on {nodes:,} nodes, slurm",
        ("requests", "s", "mean wait, s"),
        [(c, f"{seconds[c]['median']:.3f}", f"{waits[c]:.0f}") for c in cells],
    )
    return {"nodes": nodes, "seconds": seconds, "mean_wait": waits, "shapes": ratio}


def closed_system(waiting: int, jobs: int, nodes: int) -> Workload:
    """Return jobs of users who submit at most ten minutes after the end of their last job, so about this many wait all the time.

    Sizes and runtimes are from lublin99, estimates are up to 4 times the runtime.
    """
    users, model = waiting + ALSO_RUNNING, lublin(jobs, 1.0, nodes).with_estimates(FModel(4), seed=1)
    before = np.maximum(np.arange(jobs) - users, -1)
    columns = {
        "preceding_job": np.where(before < 0, -1, model.job_id[before]),
        "think_time": np.random.default_rng(1).integers(1, 600, jobs),
    }
    return replace(model, submit=np.zeros(jobs, np.int64), columns=model.columns | columns, feedback=True)


def million() -> Result:
    """A million jobs on 10,000 nodes under Slurm's scheduling, about 1,000 of them waiting."""
    found = child("slurm_million", 1_000_000, 10_000, 1_000)
    rows = [(name, f"{value:,.0f}") for name, value in found.items()]
    show("a million jobs on 10,000 nodes, slurm", ("what", "s, jobs, bytes"), rows)
    return found


def compilation(options: Options) -> Result:
    """Processor seconds to compile parts of the engine with an empty cache, as a multiple of compiling one trivial function."""
    from benchmarks.against import TRIVIAL, processor_seconds

    trivial = statistics.median(processor_seconds([sys.executable, "-c", TRIVIAL], {}) for _ in range(options.long_runs))
    seconds = {}
    for name in ENTRIES:
        say(f"  compiling {name}")
        with tempfile.TemporaryDirectory() as folder:
            seconds[name] = child("load_entry", name, variables={"WALLTIME_CACHE": folder})["processor"]
    rows = [(name, f"{taken:.1f}", f"{taken / trivial:.1f}") for name, taken in seconds.items()]
    show("compilation with an empty cache", ("part", "processor s", "of a trivial function"), rows)
    return {"trivial": trivial, "seconds": seconds}


def main(arguments: Sequence[str] | None = None) -> None:
    from benchmarks.run import OUT, store

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ", ".join([*CASES, *SHAPES, MILLION, COMPILATION])
    parser.add_argument("--only", nargs="+", default=(), metavar="CASE", help=f"cases, by a part of their names: {known}")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=(), metavar="NAME", help=f"only these: {', '.join(POLICIES)}")
    parser.add_argument("--runs", type=int, default=5, help="runs of each cell; the median counts (5)")
    parser.add_argument("--out", type=Path, default=OUT, help="the file that keeps the numbers (docs/generators/performance.json)")
    parser.add_argument("--json", action="store_true", help="print the numbers as one JSON object, and store nothing")
    given = parser.parse_args(arguments)
    options = Options(runs=given.runs, long_runs=given.runs)
    about = environment() | {"quick": False}
    if given.json:
        standard, sys.stdout = sys.stdout, sys.stderr  # the tables go where the progress does
        found = nodes(options, given.only, given.policies)
        sys.stdout = standard
        print(json.dumps({"environment": about, "result": found}))
        return
    before: Numbers = json.loads(given.out.read_text()).get("nodes", {}).get("result", {}) if given.out.exists() else {}

    def keep(found: Result) -> None:
        cases = {name: (before | found)[name] for name in (*CASES, *SHAPES, MILLION, COMPILATION) if name in before | found}
        store(given.out, "nodes", {"environment": about, "result": cases})

    nodes(options, given.only, given.policies, keep)


if __name__ == "__main__":
    main()
