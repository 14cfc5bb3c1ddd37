"""Run the experiments that go beyond a paper: `python -m validation.paper_experiments PAPER`."""

from __future__ import annotations

import argparse
from pathlib import Path

from validation.paper_experiments import MODULES, experiments
from walltime.papers.printed import printed
from walltime.papers.run import run_paper
from walltime.papers.subjects import find_subjects


def main() -> None:
    """Run the experiments into a folder, as `walltime paper run` does with the items of a paper."""
    parser = argparse.ArgumentParser(prog="validation.paper_experiments", description=__doc__)
    parser.add_argument("paper", choices=MODULES)
    parser.add_argument("--item", action="append", help="run only this experiment, by its name")
    parser.add_argument("--subject", action="append", default=[], help="use only this log of the paper")
    parser.add_argument("--logs", action="append", type=Path, default=[], help="a folder with the paper's logs")
    parser.add_argument("--out", type=Path, help="folder of the results; default: the paper's name")
    parser.add_argument("--quick", action="store_true", help="fewer seeds")
    given = parser.parse_args()
    out = given.out or Path(given.paper)
    out.mkdir(parents=True, exist_ok=True)
    chosen = [one for one in experiments(given.paper) if not given.item or one.name in given.item]
    subjects = find_subjects(printed(given.paper), only=given.subject, folders=given.logs, made=out)
    done = run_paper(given.paper, chosen, subjects, out, quick=given.quick, on_result=lambda result: print(result.title))
    print(f"page written to {done.page}; {done.jobs:,} jobs simulated in {done.seconds:,.1f} s")


if __name__ == "__main__":
    main()
