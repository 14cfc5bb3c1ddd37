"""Steps per second, compared with the program of zhang20 where a checkout is available, on the same windows and decisions.

WALLTIME_RLSCHEDULER names the checkout, WALLTIME_PUBLISHED the folder that has `rlscheduler/lublin_256.swf.gz`. None of that program is
here: it runs in a process of its own.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import importlib
import io
import os
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import ROOT, Numbers, Options, Result, child, show, spread
from walltime import learn, read
from walltime.workload import Workload

PROGRAM = "HPCSimPickJobs"
SHOWN = 128
KINDS = {(jobs, backfilling): f"{jobs:,} jobs, {'' if backfilling else 'no '}backfilling" for jobs in (256, 1024) for backfilling in (0, 1)}


def beside_published(options: Options) -> Result | None:
    """A table of the steps per second of both; None where the program or the log is missing, which is then said."""
    folder = os.environ.get("WALLTIME_RLSCHEDULER")
    published = Path(os.environ.get("WALLTIME_PUBLISHED") or ROOT.parent / "shared" / "published")
    log = published / "rlscheduler" / "lublin_256.swf.gz"
    if folder is None or not (Path(folder) / f"{PROGRAM}.py").is_file():
        print("\nThe published program is not measured: WALLTIME_RLSCHEDULER names no checkout of it (DIR-LAB/deep-batch-scheduler).")
        return None
    if not log.is_file():
        print(f"\nThe published program is not measured: {log} is missing; WALLTIME_PUBLISHED names the folder of published results.")
        return None
    result: Result = {}
    rows, jobs = [], read(log)
    for (length, backfilling), kind in KINDS.items():
        starts = np.random.default_rng(1).integers(256, len(jobs) - length - 1, options.size(10, 2)).tolist()
        theirs: list[Numbers] = []
        ours: list[Numbers] = []
        for _ in range(options.long_runs):  # in turn, so that other work on the machine slows both down
            theirs.append(child("published_steps", folder, log, length, backfilling, *starts))
            ours.append(own_steps(jobs, length, bool(backfilling), starts))
        same = theirs[0]["observed"] == ours[0]["observed"] and np.allclose(theirs[0]["costs"], ours[0]["costs"], rtol=1e-12)
        rates = [spread([one["steps"] / one["seconds"] for one in each]) for each in (theirs, ours)]
        result[kind] = {"published": rates[0], "walltime": rates[1], "same": bool(same)}
        told = [f"{rate['median']:,.0f}" for rate in rates]
        rows.append((kind, *told, f"{rates[1]['median'] / rates[0]['median']:.0f}", "yes" if same else "NO"))
    head = ("sequences of", "published", "one environment", "times", "same observations and rewards")
    show("Steps per second, compared with the published program (Lublin-1, random decisions)", head, rows)
    return result


def own_steps(jobs: Workload, length: int, backfilling: bool, starts: list[int]) -> Numbers:
    """The same decisions in the environment of this package: steps, seconds, and of each window its cost and a digest of what was seen."""
    import gymnasium

    episodes = [jobs.take(np.arange(start, start + length), f"jobs from {start} on") for start in starts]
    scales = learn.Episode(jobs).scales
    rules: dict[str, Any] = {"dialect": "rlscheduler", "observation": "published", "backfilling": backfilling, "dense": False}
    given = [learn.Episode(one, int(one.submit[0]), scales=scales) for one in episodes]
    env = gymnasium.make("walltime/Backfilling-v0", jobs=given, overrun="continue", **rules)
    found: Numbers = {"steps": 0, "seconds": 0.0, "costs": [], "observed": []}
    for watched in (False, True):
        for number, start in enumerate(starts):
            draws, over, reward = _draws(start, length), False, 0.0
            seen, info = env.reset(options={"episode": number})
            digest = hashlib.sha256()
            begin, steps = time.perf_counter(), 0
            while not over:
                if watched:
                    digest.update(seen.tobytes())
                seen, reward, over, _, info = env.step(int(draws[steps] * np.count_nonzero(info["action_mask"])))
                steps += 1
            _note(found, watched, steps, time.perf_counter() - begin, -reward, digest.hexdigest())
    return found


def published_steps(folder: str, log: str, length: str, backfilling: str, *starts: str) -> Numbers:
    """The published program, on windows that begin at these jobs; runs in a process of its own."""
    _stand_in()
    sys.path.insert(0, folder)
    found: Numbers = {"steps": 0, "seconds": 0.0, "costs": [], "observed": []}
    with contextlib.redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "log.swf"
        path.write_bytes(gzip.decompress(Path(log).read_bytes()))
        program: Any = importlib.import_module(PROGRAM)
        program.JOB_SEQUENCE_SIZE = int(length)
        env = program.HPCEnv(backfil=backfilling == "1")
        env.my_init(workload_file=str(path))
        for watched in (False, True):
            for start in map(int, starts):
                draws, over, reward = _draws(start, int(length)), False, 0.0
                env.np_random = types.SimpleNamespace(randint=lambda *_, start=start: start)  # where the window begins
                seen = env.reset()[0]
                digest = hashlib.sha256()
                begin, steps = time.perf_counter(), 0
                while not over:
                    if watched:
                        digest.update(np.asarray(seen, np.float32).tobytes())
                    seen, reward, over = env.step(int(draws[steps] * min(len(env.job_queue), SHOWN)))[:3]
                    steps += 1
                _note(found, watched, steps, time.perf_counter() - begin, -reward, digest.hexdigest())
    return found


def _note(found: Numbers, watched: bool, steps: int, seconds: float, cost: float, digest: str) -> None:
    """Add an episode to what is found: its time, or what was seen in it."""
    if watched:
        found["costs"].append(cost)
        found["observed"].append(digest)
    else:
        found["steps"] += steps
        found["seconds"] += seconds


def _draws(start: int, length: int) -> list[float]:
    """Which of the jobs that are shown is chosen at each step, as a share."""
    drawn: list[float] = np.random.default_rng(start).random(length).tolist()
    return drawn


def _stand_in() -> None:
    """Modules that the program imports by names that are old: gymnasium for gym, and nothing for TensorFlow, which no step uses."""
    if importlib.util.find_spec("tensorflow") is None:
        sys.modules["tensorflow"] = types.ModuleType("tensorflow")
    if importlib.util.find_spec("gym") is None:
        import gymnasium
        import gymnasium.utils.seeding

        sys.modules |= {"gym": gymnasium, "gym.spaces": gymnasium.spaces, "gym.utils": gymnasium.utils}
