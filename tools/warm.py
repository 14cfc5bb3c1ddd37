"""Compiles all of the engine, and notes how many functions each entry adds to those before it.

python tools/warm.py COUNTS.json
"""

import json
import sys
from pathlib import Path

from walltime.engine.compilation import Compilation, listen
from walltime.engine.load import ENTRIES, load, load_predictor, predictors

done: dict[str, int] = dict.fromkeys(ENTRIES, 0)


def note(state: Compilation) -> None:
    """Keep the latest count of the entry."""
    done[state.entry] = state.done


listen(note)
for name in ENTRIES:
    load(name)
for kind in predictors():
    load_predictor(kind)
Path(sys.argv[1]).write_text(json.dumps(done))
