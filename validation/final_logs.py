"""Generates the final logs on which an order is judged: several models, machines of 100 to 49,152 processors, loads of 0.6 to 0.95.

    python validation/final_logs.py FOLDER
    python validation/order_judgement.py known.toml FOLDER/*.swf.gz --copies 1 --out fresh.json

The estimates are those of tsafrir05, and each log has 60 users with jobs of similar length.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

LOGS = (
    ("lublin99", 100, 0.6),
    ("lublin99", 256, 0.75),
    ("lublin99", 1024, 0.9),
    ("lublin99", 49_152, 0.95),
    ("jann97", 322, 0.7),
    ("jann97", 322, 0.9),
    ("downey97", 512, 0.7),
    ("downey97", 4392, 0.85),
    ("feitelson96", 128, 0.7),
    ("feitelson96", 512, 0.9),
    ("feitelson96-fl", 256, 0.8),
    ("lublin99-typeless", 2048, 0.8),
)
"""Model, processors and load."""
JOBS, USERS, SEED = 12_000, 60, 5100


def main() -> None:
    """Write the logs, and print their names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=SEED, help="of the first log; each has one of its own")
    given = parser.parse_args()
    folder = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    for number, (model, procs, load) in enumerate(LOGS):
        out = folder / f"{model}-{procs}-{round(100 * load)}.swf.gz"
        options = {
            "jobs": JOBS,
            "procs": procs,
            "load": load,
            "seed": given.seed + number,
            "users": USERS,
            "estimates": "tsafrir05",
            "out": out,
        }
        written = [text for name, value in options.items() for text in (f"--{name}", str(value))]
        subprocess.run(["walltime", "generate", model, *written], check=True, stdout=subprocess.DEVNULL)
        print(out)


if __name__ == "__main__":
    main()
