"""Compiles what is not compiled yet of the engine. Says so, or notes how many functions each entry adds to those before it.

python tools/warm.py [COUNTS.json]
"""

import json
import sys
from pathlib import Path

import numpy as np

from walltime import Workload
from walltime.engine.compilation import Compilation, listen
from walltime.engine.load import ENTRIES, load, load_predictor
from walltime.predictors import PREDICTOR_NAMES, Jobs, predictor_class

done: dict[str, int] = dict.fromkeys(ENTRIES, 0)
counts = [Path(name) for name in sys.argv[1:]]


def note(state: Compilation) -> None:
    """Keep the latest count of the entry."""
    if not counts and state.done == 0 and not state.finished:
        print(f"warm: {state}", flush=True)
    done[state.entry] = state.done


listen(note)
for name in ENTRIES:
    load(name)
columns = {name: np.zeros(1, np.int64) for name in ("user", "group", "executable")}
nothing = Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1, columns=columns)
for predictor in PREDICTOR_NAMES:
    load_predictor(predictor_class(predictor)().compiled(Jobs(nothing, nothing.requested, nothing.requested, nothing.runtime)))
for file in counts:
    file.write_text(json.dumps(done))
