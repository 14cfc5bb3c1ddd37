"""Compiles the missing parts of the engine on two cores, with progress.

python tools/warm.py [COUNTS.json]

With a file it compiles in one process, and notes there how many functions each entry adds to those before it. A folder of kernels that is
whole has a mark, so that nothing is loaded a second time only to find that it is there.
"""

import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path

import numpy as np

import walltime
from walltime import Workload
from walltime.compiled.compilation import Compilation, listen
from walltime.compiled.folder import cache_folder
from walltime.engine.interface.load import ENTRIES, load, load_predictor
from walltime.predictors import PREDICTORS as BY_NAME, Jobs
from walltime.syntax import syntax_hash

PREDICTORS = "predictors"


def say(state: Compilation) -> None:
    """Print the part that is about to be compiled."""
    if state.done == 0 and not state.finished:
        print(f"warm: {state}", flush=True)


def warm(names: list[str]) -> None:
    """Compile these entries, which share most of their functions."""
    listen(say)
    for name in names:
        if name == PREDICTORS:
            load_predictors()
        else:
            load(name)


def load_predictors() -> None:
    """Compile all of them."""
    columns = {name: np.zeros(1, np.int64) for name in ("user", "group", "executable")}
    nothing = Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1, columns=columns)
    for variant in BY_NAME.variants.values():
        if variant.loaded.positional:
            continue  # made elsewhere: there is nothing to compile
        load_predictor(variant.loaded().compiled(Jobs(nothing, nothing.requested, nothing.requested, nothing.runtime)))


def counts() -> dict[str, int]:
    """Compile everything, and count the functions that each entry adds."""
    added = dict.fromkeys(ENTRIES, 0)

    def note(state: Compilation) -> None:
        added[state.entry] = state.done

    listen(note)
    for name in ENTRIES:
        load(name)
    load_predictors()
    return added


def mark() -> Path:
    """Return the file that marks the folder of kernels as whole: its name is a hash of all compiled code besides the kernels themselves."""
    package = Path(walltime.__file__).parent
    files = [package / "engine" / "interface" / "load.py", *sorted((package / "predictors").glob("*.py"))]
    return cache_folder() / f"whole-{syntax_hash(files, package)[:16]}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(counts()))
    elif not mark().exists():
        families = [list(names) for _, names in groupby([*ENTRIES, PREDICTORS], key=lambda name: name.partition("-")[0])]
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
            list(pool.map(warm, families))
        mark().touch()
