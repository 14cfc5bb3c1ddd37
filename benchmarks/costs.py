"""Costs besides the simulation: memory, generating workloads and estimates, the start of a command."""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.common import LOGS, Numbers, Options, Result, child, find_log, show, spread, wall_seconds
from walltime.estimates import FModel, Mualem01, Tsafrir05
from walltime.estimates.base import EstimateModel
from walltime.workload.models import MODELS

COMMAND = (sys.executable, "-m", "walltime.cli.main")
INTERRUPT_AFTER = 6
"""Seconds into a run of some minutes, after which it is interrupted."""
INTERRUPTED = 130
"""Exit status of a command ended by Ctrl-C."""


def memory(options: Options) -> Result:
    """Bytes per job above the loaded engine: workload, run and result."""
    jobs = options.size(1_000_000, 200_000)
    result = {policy: child("memory", jobs, policy)["bytes_per_job"] for policy in ("easy", "conservative")}
    show(f"peak memory above the loaded engine, {jobs:,} jobs", ("policy", "bytes/job"), [(p, f"{b:.0f}") for p, b in result.items()])
    return {"jobs": jobs, "bytes_per_job": result}


def making(options: Options) -> Result:
    """Seconds to generate jobs with each model, and to draw estimates for the same number."""
    count, procs = options.size(1_000_000, 5_000), 512
    jobs = MODELS["lublin99"].generate(count, procs, 0.7, 1)
    works: dict[str, Callable[[], object]] = {
        f"generate {name}": partial(model.generate, count, procs, 0.7, 1) for name, model in MODELS.items()
    }
    models: dict[str, EstimateModel] = {
        "f-model": FModel(4),
        "f-model, deterministic": FModel(4, deterministic=True),
        "mualem01": Mualem01(),
        "tsafrir05": Tsafrir05(emax=200_000),
    }
    works |= {f"estimates {name}": partial(model.draw, jobs, 1) for name, model in models.items()}
    seconds = {name: spread([wall_seconds(work) for _ in range(options.long_runs)]) for name, work in works.items()}
    show(f"{count:,} jobs", ("what", "s"), [(name, f"{s['median']:.3f}") for name, s in seconds.items()])
    return {"jobs": count, "seconds": seconds}


def start(options: Options) -> Result:
    """Seconds to compile, to load from the cache, until `--help` answers and until Ctrl-C ends a run; CPU time of a call."""
    with tempfile.TemporaryDirectory() as folder:
        kept = os.environ.get("WALLTIME_CACHE")
        os.environ["WALLTIME_CACHE"] = folder
        try:
            cold = child("load_entry", "easy")["seconds"]
            warm = spread([child("load_entry", "easy")["seconds"] for _ in range(options.runs)])
        finally:
            os.environ.pop("WALLTIME_CACHE")
            if kept is not None:
                os.environ["WALLTIME_CACHE"] = kept
    answers = spread([wall_seconds(lambda: _call("--help")) for _ in range(options.runs)])
    result: Result = {"seconds": {"compile": spread([cold]), "load from the cache": warm, "walltime --help": answers}}
    if not options.quick:
        stopped = interruption()
        if stopped is None:
            print("Ctrl-C was not measured: the run ended before it came")
        else:
            result["seconds"]["Ctrl-C until the end"] = spread([stopped])
    show("start", ("what", "s"), [(name, f"{s['median']:.2f}") for name, s in result["seconds"].items()])
    result["processor"] = processor(options)
    rows = [(name, f"{seconds:.2f}") for name, seconds in result["processor"]["seconds"].items()]
    show(f"walltime simulate {result['processor']['workload']} --policy easy", ("processor time", "s"), rows)
    return result


def processor(options: Options) -> Numbers:
    """CPU seconds of one whole command, of the kernel in it, and of everything before the kernel.

    Costs of a second start, with cached kernel and byte code.
    """
    with tempfile.TemporaryDirectory() as folder, _caching_bytecode(Path(folder)):
        log, name = find_log(LOGS["KTH"]), "KTH"
        if log is None:
            log, name = Path(folder) / "lublin.swf", "Lublin'99 at load 0.8"
            _call("generate", "lublin99", "--jobs", "30000", "--procs", "128", "--load", "0.8", "--seed", "1", "--out", str(log))
        call = ("simulate", str(log), "--policy", "easy", "--json")
        _call(*call)  # so that the caches are filled
        child("up_to_the_kernel", log)
        whole, kernel, before = [], [], []
        for _ in range(options.runs):
            begin = _children_seconds()
            said = _call(*call)
            whole.append(_children_seconds() - begin)
            kernel.append(json.loads(said)["seconds"]["simulate"])
            before.append(child("up_to_the_kernel", log)["seconds"])
    seconds = {
        "whole command": statistics.median(whole),
        "kernel": statistics.median(kernel),
        "whole command without the kernel": statistics.median([w - k for w, k in zip(whole, kernel, strict=True)]),
        "before the kernel runs": statistics.median(before),
    }
    return {"workload": name, "seconds": seconds, "runs": options.runs}


@contextmanager
def _caching_bytecode(folder: Path) -> Iterator[None]:
    """Make child processes keep their byte code in this folder, regardless of this process's setting."""
    before = dict(os.environ)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _children_seconds() -> float:
    """User and system seconds of all child processes so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _call(*arguments: str) -> str:
    """Call the command line; returns its output."""
    return subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def interruption() -> float | None:
    """Seconds from Ctrl-C to the end of the command, in the middle of a long conservative run; None if it was over by then."""
    with tempfile.TemporaryDirectory() as folder:
        log = str(Path(folder) / "long.swf")
        _call("generate", "lublin99", "--jobs", "100000", "--procs", "64", "--load", "1.5", "--estimates", "f:4", "--out", log)
        call = [*COMMAND, "simulate", log, "--policy", "conservative"]
        running = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(INTERRUPT_AFTER)
        begin = time.perf_counter()
        running.send_signal(signal.SIGINT)
        return time.perf_counter() - begin if running.wait() == INTERRUPTED else None
