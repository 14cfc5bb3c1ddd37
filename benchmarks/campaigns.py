"""Campaigns: the share of CPU time spent in kernels, and whether memory stays constant over many cells."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common import LOGS, Numbers, Options, Result, child, find_log, peak_bytes, show

COMMAND = [sys.executable, "-m", "walltime.cli.main"]
CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
LOOKS = 10
"""Number of memory samples during a campaign."""


def campaign(options: Options) -> Result:
    """Share of CPU time in kernels for a campaign of cells of KTH's size; memory over many small cells."""
    estimates, seeds = (4, 5) if options.quick else (100, 100)
    result: Result = {"share": child("campaign_share", estimates, seeds), "memory": []}
    share = result["share"]
    rows = [(f"{share['cells']:,}", f"{share['processor']:.1f}", f"{share['kernel']:.1f}", f"{100 * share['share']:.0f} %")]
    show(f"campaign of cells of {share['workload']}", ("cells", "processor s", "in kernels s", "share"), rows)
    for executor in ("threads", "dask"):
        found = child("campaign_memory", executor, 500 if options.quick else 50_000)
        result["memory"].append({"executor": executor} | found)
        for who, values in found["megabytes"].items():
            show(f"MB of {who}, {executor}, {found['cells']:,} cells", ("cells done", "MB"), list(zip(found["done"], values, strict=True)))
    return result


def campaign_share(estimates: str, seeds: str) -> Numbers:
    """CPU seconds of a whole campaign, as a command, and of the kernels in it: as many as one simulation takes, for each cell."""
    with tempfile.TemporaryDirectory() as folder:
        log, workload = find_log(LOGS["KTH"]), "KTH"
        if log is None:
            log, workload = Path(folder) / "log.swf", "Lublin'99"
            made = ["generate", "lublin99", "--jobs", "28000", "--procs", "128", "--out", str(log)]
            subprocess.run([*COMMAND, *made], stdout=subprocess.DEVNULL, check=True)
        grid = [f"badness:{(i + 1) * 10 / int(estimates):g}" for i in range(int(estimates))]
        values = ", ".join(map(json.dumps, grid))
        plan = Path(folder) / "plan.toml"
        plan.write_text(
            f'[campaign]\nseeds = {seeds}\ntrim = "tsafrir06"\n[fixed]\ntrace = {json.dumps(str(log))}\n[grid]\nestimates = [{values}]\n'
        )
        single = [*COMMAND, "simulate", str(log), "--policy", "easy", "--estimates", grid[len(grid) // 2], "--json"]
        one = json.loads(subprocess.run(single, stdout=subprocess.PIPE, check=True).stdout)["seconds"]["simulate"]
        before = _children_seconds()
        call = [*COMMAND, "campaign", "run", str(plan), "--json"]
        said = json.loads(subprocess.run(call, stdout=subprocess.PIPE, check=True).stdout)
        processor = _children_seconds() - before
    kernel = one * said["cells"]
    return {"workload": workload, "cells": said["cells"], "processor": processor, "kernel": kernel, "share": kernel / processor}


def campaign_memory(executor: str, cells: str) -> Numbers:
    """Samples of resident memory while a campaign of many small cells runs: of all processes that take part."""
    from walltime.campaign import Dask, Threads, read_plan, run_campaign

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.swf"
        call = [*COMMAND, "generate", "lublin99", "--jobs", "100", "--procs", "64", "--load", "0.8", "--out", str(log)]
        subprocess.run(call, stdout=subprocess.DEVNULL, check=True)
        plan = Path(folder) / "plan.toml"
        seeds = int(cells) // 10
        values = ", ".join(f'"badness:{i + 1}"' for i in range(10))
        plan.write_text(f'[campaign]\nseeds = {seeds}\n[fixed]\ntrace = "log.swf"\n[grid]\nestimates = [{values}]\n')
        done: list[int] = []
        megabytes: dict[str, list[float]] = {}

        def look(state: Any, others: Callable[[], dict[str, int]]) -> None:
            if state.done >= (len(done) + 1) * state.cells / LOOKS and len(done) < LOOKS:
                done.append(state.done)
                for who, size in ({"this process": resident_bytes()} | others()).items():
                    megabytes.setdefault(who, []).append(round(size / 1e6, 1))

        if executor == "threads":
            run_campaign(read_plan(plan), executor=Threads(), progress=lambda state: look(state, dict))
        else:
            with subprocess.Popen([sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
                assert cluster.stdout is not None
                assert cluster.stdin is not None
                dask = Dask(cluster.stdout.readline().strip())

                def others() -> dict[str, int]:
                    sizes = sorted(dask.client.run(resident_bytes).items())
                    return {"scheduler": dask.client.run_on_scheduler(resident_bytes)} | {
                        f"worker {number}": size for number, (_, size) in enumerate(sizes, 1)
                    }

                run_campaign(read_plan(plan), executor=dask, progress=lambda state: look(state, others))
                dask.close()
                cluster.stdin.close()
    return {"cells": int(cells), "done": done, "megabytes": megabytes, "peak_bytes": peak_bytes()}


def resident_bytes() -> int:
    """Resident memory of this process (Linux)."""
    import resource
    from pathlib import Path

    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
