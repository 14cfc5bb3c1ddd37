"""Compiles what is not compiled yet of the engine. Says so, or notes how many functions each entry adds to those before it.

python tools/warm.py [COUNTS.json]
"""

import json
import sys
from pathlib import Path

from walltime.engine.compilation import Compilation, listen
from walltime.engine.load import ENTRIES, load, load_predictor, predictors

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
for kind in predictors():
    load_predictor(kind)
for file in counts:
    file.write_text(json.dumps(done))
