"""This version compared with an older one: compile time, speed, and whether the schedules are identical.

    python -m benchmarks.against FOLDER [--quick] [--out FILE]

FOLDER is a checkout of the older version. Both run in processes of their own and take turns; each uses only what both have:
the command line, `walltime.simulate`, and the method of `NumberEngine` that calls the compiled loop. CPU time is measured, so other work
on the machine counts only through caches and cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import LOGS, ROOT, Numbers, Options, Result, environment, find_log, show, spread
from benchmarks.run import store

OUT = ROOT / "docs" / "generators" / "performance.json"
COLD = {
    "easy": ["--policy", "easy"],
    "easy, backfill SJF": ["--policy", "easy", "--backfill-order", "sjf"],
    "easy with predictions": ["--policy", "easy", "--predictor", "tsafrir07"],
    "conservative-scratch": ["--policy", "conservative-scratch"],
    "conservative": ["--policy", "conservative"],
}
"""Calls of `walltime simulate`, each the first one of its kind on a machine."""
POLICIES = {
    "easy": ("Easy()", None),
    "easy, backfill SJF": ("Easy(backfill_order=SJF)", None),
    "easy, WFP": ("Easy(order=Wfp())", None),
    "easy++": ("Easy(backfill_order=SJF)", "Tsafrir07()"),
    "conservative": ("Conservative()", None),
}
DEEP = {"jobs": 300_000, "procs": 128, "load": 0.97}
"""A generated log whose queue is hundreds deep."""
NOT_DEEP = ("easy, backfill SJF", "easy++")
"""Policies that are left out there, since an older version may take many minutes."""
LONG = 2.0
"""Seconds: what takes longer is run twice only."""
SCRIPT = """
import dataclasses, hashlib, json, sys, time
import numpy as np
import walltime as wt
from walltime import *
from walltime.engine.interface.number import NumberEngine
from walltime.workload.models import MODELS
Tsafrir07 = wt.predictors.Tsafrir07
run, spent = NumberEngine.run, []
def timed(self, *given):
    begin = time.thread_time()
    run(self, *given)
    spent.append(time.thread_time() - begin)
NumberEngine.run = timed
if {log!r}:
    jobs = wt.read({log!r})
else:
    jobs = MODELS["lublin99"].generate({jobs}, {procs}, {load}, 1).with_estimates(wt.estimates.FModel(4), seed=1)
    users = np.random.default_rng(1).integers(0, 200, len(jobs))  # the model has none, and predictors ask for them
    jobs = dataclasses.replace(jobs, columns=jobs.columns | dict(user=users))
word = "prediction" if hasattr(wt, "Prediction") else "predictor"
wt.simulate(jobs, Easy())
for line in sys.stdin:
    policy, predictor = line.strip().split(";")
    schedule = wt.simulate(jobs, eval(policy), **{{word: eval(predictor)}})
    columns = [np.ascontiguousarray(getattr(schedule, name), np.int64).tobytes() for name in ("start", "kind", "promised")]
    depth = float((schedule.start - jobs.submit).sum() / max(int(np.ptp(jobs.submit)), 1))
    digest = hashlib.sha256(b"".join(columns)).hexdigest()
    print(json.dumps(dict(seconds=spent[-1], digest=digest, jobs=len(jobs), depth=depth)), flush=True)
"""


def against(older: Path, options: Options) -> Result:
    """Both versions, side by side."""
    versions = {"before": older / "src", "now": ROOT / "src"}
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: Path(folder) / name for name in versions}
        return {"cold": cold(versions, options), "speed": speed(versions, caches, options)}


def cold(versions: dict[str, Path], options: Options) -> Result:
    """CPU seconds of commands that have to compile what they use, each with a cache of what the previous ones compiled."""
    log = find_log(LOGS["KTH"])
    call = [sys.executable, "-m", "walltime.cli.main", "simulate"]
    trivial = [processor_seconds([sys.executable, "-c", TRIVIAL], {}) for _ in range(options.long_runs)]
    result: Result = {"trivial": spread(trivial), "commands": {}}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if log is None:
            log = Path(folder) / "lublin.swf"
            made = ["generate", "lublin99", "--jobs", "30000", "--procs", "128", "--load", "0.8", "--seed", "1", "--out", str(log)]
            subprocess.run([*call[:-1], *made], check=True, env=os.environ | {"PYTHONPATH": str(versions["now"])})
        for name, arguments in COLD.items():
            seconds: dict[str, Any] = {}
            for version, source in versions.items():
                variables = {"PYTHONPATH": str(source), "WALLTIME_CACHE": str(Path(folder) / version)}
                seconds[version] = processor_seconds([*call, str(log), *arguments, "--json"], variables)
            result["commands"][name] = seconds
            ratios = {version: taken / result["trivial"]["median"] for version, taken in seconds.items()}
            rows.append((name, *(f"{seconds[v]:.1f}" for v in versions), *(f"{ratios[v]:.1f}" for v in versions)))
    head = ("first command of its kind", *(f"{v}, s" for v in versions), *(f"{v}, ratio" for v in versions))
    show("processor time with an empty cache; ratio to a process that compiles one trivial function", head, rows)
    return result


TRIVIAL = "import numba\nnumba.njit(lambda number: number + 1)(1)"


def processor_seconds(command: list[str], variables: dict[str, str]) -> float:
    """User and system seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(versions: dict[str, Path], caches: dict[str, Path], options: Options) -> Result:
    """Processor seconds of the compiled loop by log and policy; the schedules must be the same."""
    logs = {name: str(path) for name, beginning in {**LOGS, "Mira": "ALCF-Mira"}.items() if (path := find_log(beginning)) is not None}
    if options.quick:
        logs = {name: path for name, path in logs.items() if name == "KTH"}
    deep = DEEP | ({"jobs": 5_000} if options.quick else {})
    result: Result = {}
    for name, log in {**logs, f"Lublin'99, {deep['jobs']:,} jobs": ""}.items():
        result[name] = {"seconds": {}, "load": round(os.getloadavg()[0], 1)}
        script, processes = SCRIPT.format(log=log, **deep), {}
        for version, source in versions.items():
            environ = os.environ | {"PYTHONPATH": str(source), "WALLTIME_CACHE": str(caches[version])}
            call = [sys.executable, "-c", script]
            processes[version] = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
        for label, (policy, predictor) in POLICIES.items():
            if not log and label in NOT_DEEP:
                continue
            found = turns(processes, f"{policy};{predictor}", options.runs)
            if found["before"]["digest"] != found["now"]["digest"]:
                raise AssertionError(f"{label} on {name}: the two versions give different schedules")
            result[name]["jobs"] = found["now"]["jobs"]
            if label == "easy":
                result[name]["depth"] = found["now"]["depth"]
            result[name]["seconds"][label] = {version: f["seconds"] for version, f in found.items()}
        for process in processes.values():
            process.communicate()
        easy, rows = result[name]["seconds"]["easy"]["now"], []
        for label, seconds in result[name]["seconds"].items():
            cells = (f"{seconds['before'] * 1e3:.1f}", f"{seconds['now'] * 1e3:.1f}")
            rows.append((label, *cells, f"{seconds['before'] / seconds['now']:.2f}", f"{seconds['now'] / easy:.2f}"))
        title = f"{name}: {result[name]['jobs']:,} jobs, {result[name]['depth']:.0f} waiting under easy, load {result[name]['load']}"
        show(title, ("policy", "before, ms", "now, ms", "times faster", "of easy's time"), rows)
    return result


def turns(processes: dict[str, subprocess.Popen[str]], line: str, runs: int) -> dict[str, Numbers]:
    """Let each process run what the line says, in turns; of each the run that took the least."""
    found: dict[str, Numbers] = {}
    for turn in range(runs):
        for version, process in processes.items():
            assert process.stdin is not None
            assert process.stdout is not None
            print(line, file=process.stdin, flush=True)
            answer: Numbers = json.loads(process.stdout.readline())
            if turn == 0 or answer["seconds"] < found[version]["seconds"]:
                found[version] = answer
        if turn > 0 and max(answer["seconds"] for answer in found.values()) > LONG:
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a checkout of the older version")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try it out")
    parser.add_argument("--out", type=Path, help="the file that keeps the numbers (docs/generators/performance.json; with --quick none)")
    given = parser.parse_args()
    options = Options(runs=2 if given.quick else 7, long_runs=1 if given.quick else 5, quick=given.quick)
    about = environment() | {"quick": options.quick}
    print(f"load before: {about['load_before']:.2f} on {about['cores']} cores; {about['cpu']}", flush=True)
    section = {"environment": about, "result": against(given.folder.resolve(), options)}
    out = given.out or (None if given.quick else OUT)
    if out is not None:
        store(out, "against", section)


if __name__ == "__main__":
    main()
