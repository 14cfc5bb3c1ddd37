"""Analyses the order that `walltime search` found: the effect of each term on each log, and the users who lose; stores the results.

    walltime search LOG... --out order.toml --store search
    python validation/order_judgement.py order.toml FINAL... --out final.json
    python validation/order_search.py order.toml final.json LOG... [--out FILE]
    python validation/final_logs.py FOLDER
    python validation/order_judgement.py known.toml FOLDER/*.swf.gz --copies 1 --out fresh.json
    python validation/order_search.py --fresh fresh.json [--judgement NUMBER] [--out FILE]
    python validation/order_search.py --apart validation/final_order.toml LOG... [--out FILE]
    python validation/order_search.py --fair LOG... [--out FILE]
    python validation/order_search.py --longer formula.toml [--out FILE]
    python validation/order_search.py --everywhere LOG... [--out FILE]

Stores everything in docs/generators/search.json, which docs/validation/found-order.md is made from. The logs of the first command are those
of the search. `--fresh` adds the table of a judgement on further logs (validation/final_logs.py), the first one without `--judgement`.
`--apart` stores the effects of the parts of the third order on these logs, and the users who lose. `--fair` stores how many jobs start
later, under it and under others, than they would without later arrivals (some minutes). `--longer` stores the steps of a longer search.
`--everywhere` compares the orders that were found with named ones on these logs, including the logs of the searches.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT
from walltime import Workload, read, simulate
from walltime.metrics import bounded_slowdown
from walltime.metrics.confidence import student_t
from walltime.policy import Easy
from walltime.policy.expressions import Expression
from walltime.simulation.fair_start import fairness
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.tuning.formula_search import LogPart, Parts
from walltime.tuning.order_file import read_order_file
from walltime.workload.scaling import shake

OUT = ROOT / "docs" / "generators" / "search.json"
JUDGEMENTS = ("fresh", "second", "third", "longer-real", "longer-generated")
FAIR = (
    "easy",
    "easy:backfill-order=lxf:max-wait-share=0.8,predictor=quantile:percent=100",
    "easy:predictor=quantile:percent=100",
    "easy:backfill-order=saf,predictor=quantile:percent=100",
    "easy:backfill-order=lxf:max-wait-share=0.8",
    "easy:order=lxf:max-wait-share=0.4",
    "easy:order=wfp:max-wait-share=0.4",
    "easy:order=wfp",
    "easy:order=f3",
    "conservative",
)
"""Schedulers whose fairness is compared: EASY, the one of the third judgement and its parts, bounded ones, named ones."""
BESIDE = (
    "easy:order=wfp:max-wait-share=0.4",
    "easy:order=lxf:max-wait-share=0.4",
    "easy:order=f2:max-wait-share=0.4",
    "easy:order=saf:max-wait-share=0.4",
    "easy:order=unicef:max-wait-share=0.4",
    "easy:order=unicef",
    "easy:order=lxf",
    "easy:order=wfp",
    "easy:order=saf",
    "easy:order=sqf",
    "easy:order=f3",
    "easy:backfill-order=lxf",
    "easy:predictor=tsafrir07,backfill-order=sjf",
    "easy:order=lxf:max-wait-share=0.4,predictor=tsafrir07,predictions-for=100",
)
"""Named schedulers that are compared with the found ones on every log."""
LONGEST_LOG, ASKED = 80_000, 100
"""Maximum number of jobs of logs for which delays beyond fair starts are computed."""
COPIES, SHAKEN = 3, 60
"""Shift of the submissions in the copies of each log, s; 0 is the log as recorded."""
SAMPLE = 500
"""Jobs of each log whose fair starts are found."""
SIZES, LENGTHS = (0.0, 0.01, 0.1, 0.3, 1.01), (0, 600, 3600, 6 * 3600, 10**9)
"""Bounds of shares of the machine, and of runtimes, s."""


def without(order: Expression) -> dict[str, Expression]:
    """The order without each of its terms, and without its limit; by what is left out."""
    terms: list[str] = []

    def split(node: ast.expr, sign: str) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            split(node.left, sign)
            split(node.right, "-" if isinstance(node.op, ast.Sub) else "+")
        else:
            terms.append(f"{sign}{ast.unparse(node)}")

    split(ast.parse(order.formula.replace(";", ","), mode="eval").body, "+")
    bounds = {"starvation": order.starvation, "max_wait_share": order.max_wait_share}
    found: dict[str, Expression] = {}
    for place, term in enumerate(terms):
        rest = "".join(terms[:place] + terms[place + 1 :]).removeprefix("+").replace(",", ";")
        if rest:
            history = "user_" in rest
            found[term.replace(" ", "")] = Expression(formula=rest, half_life=order.half_life if history else None, **bounds)
    found["the limit on waiting"] = Expression(formula=order.formula, half_life=order.half_life)
    return found


def ablation(scheduler: Scheduler, logs: Sequence[Workload]) -> list[dict[str, Any]]:
    """Mean bounded slowdown and longest wait over EASY's on each log, of the order and of it without each of its parts."""
    policy = scheduler.policy
    assert isinstance(policy, Easy)
    assert isinstance(policy.order, Expression)
    rows: dict[str, Scheduler] = {"": scheduler}
    for name, order in without(policy.order).items():
        rows[name] = Scheduler(Easy(order=order, backfill_order=policy.backfill_order))
    if policy.backfill_order is not None:
        rows["the order of backfilling"] = Scheduler(Easy(order=policy.order))
    return relative_rows(rows, logs)


def without_parts(scheduler: Scheduler, logs: Sequence[Workload]) -> list[dict[str, Any]]:
    """The same of a scheduler that orders backfilling only and plans by predictions, without each of these and its limit."""
    policy, prediction = scheduler.policy, scheduler.prediction
    assert isinstance(policy, Easy)
    assert policy.backfill_order is not None
    assert prediction is not None
    rows = {
        "": scheduler,
        "the predictions": Scheduler(policy),
        "predictions other than in the order": Scheduler(policy, replace(prediction, predictions_for="100")),
        "the order of backfilling": Scheduler(Easy(), prediction),
        "the limit on waiting": Scheduler(replace(policy, backfill_order=replace(policy.backfill_order, max_wait_share=None)), prediction),
    }
    return relative_rows(rows, logs)


def relative_rows(rows: dict[str, Scheduler], logs: Sequence[Workload]) -> list[dict[str, Any]]:
    """Mean bounded slowdown and longest wait of these over EASY's on each log."""
    parts = Parts([LogPart(k, log) for k, log in enumerate(logs)], Scheduler(Easy()))
    relative = np.exp(parts.relative(list(rows.values())))
    return [
        {"without": name, "slowdown": relative[k, :, 0].round(3).tolist(), "longest": relative[k, :, 3].round(3).tolist()}
        for k, name in enumerate(rows)
    ]


def late_percents(schedulers: Sequence[Scheduler], parts: Sequence[LogPart], sample: int) -> np.ndarray:
    """Per cent of a sample of the jobs that start later than their fair start, float64, per scheduler, in the first part, unshaken."""
    return np.array([fairness(simulate(parts[0].jobs, one), sample=sample).late_percent for one in schedulers], np.float64)


def fair(logs: Sequence[Workload]) -> list[dict[str, Any]]:
    """For each of the schedulers, per cent of the sampled jobs of each log that start later than their fair start, and by how much (s)."""
    rows = []
    for text in FAIR:
        found = [fairness(simulate(log, parse_scheduler(text)), sample=SAMPLE) for log in logs]
        rows.append({"scheduler": text, "late": [one.late_percent for one in found], "mean": [one.mean_miss for one in found]})
        print(f"{text}: {', '.join(f'{one.late_percent:.1f} %' for one in found)}", file=sys.stderr, flush=True)
    return rows


def everywhere(found: Sequence[str], logs: Sequence[Workload]) -> dict[str, Any]:
    """The objectives of the found schedulers and of `BESIDE` over EASY's on each log: means over its copies, and half-widths of intervals.

    The intervals, 90 %, are of the logarithms over the copies of a log, paired with EASY on the same copy. `late`: per cent of `ASKED` jobs
    of a log that start later than their fair start, under EASY, the first row, too; absent for logs of over `LONGEST_LOG` jobs.
    """
    schedulers = [*map(parse_scheduler, ("easy", *found, *BESIDE))]
    rows: list[dict[str, Any]] = [{"scheduler": one.label, "logs": []} for one in schedulers]
    for number, log in enumerate(logs):
        parts = [LogPart(number, log if k == 0 else shake(log, SHAKEN, 1000 + k)) for k in range(COPIES)]
        relative = Parts(parts, Scheduler(Easy())).relative(schedulers)
        half = student_t(0.95, COPIES - 1) * relative.std(axis=1, ddof=1) / np.sqrt(COPIES)
        for row, mean, width in zip(rows, np.exp(relative.mean(axis=1)), half, strict=True):
            row["logs"].append({"mean": mean.round(4).tolist(), "half": width.round(4).tolist()})
        if len(log) <= LONGEST_LOG:
            for row, late in zip(rows, late_percents(schedulers, parts, ASKED), strict=True):
                row["logs"][-1]["late"] = round(float(late), 1)
        print(log.origin.name, file=sys.stderr, flush=True)
    return {"logs": [log.origin.name for log in logs], "found": len(found), "sample": ASKED, "rows": rows}


def losers(scheduler: Scheduler, log: Workload) -> dict[str, Any]:
    """Mean waits (s) and bounded slowdowns under EASY and under the order, by size and length; and how many users wait longer."""
    before, after = (simulate(log, one) for one in (parse_scheduler("easy"), scheduler))
    rows: list[dict[str, Any]] = []
    for kind, values, bounds in (("share of the machine", log.procs / log.machine_procs, SIZES), ("runtime, s", before.runtime, LENGTHS)):
        for low, high in itertools.pairwise(bounds):
            inside = (values > low) & (values <= high) if kind.startswith("share") else (values >= low) & (values < high)
            if inside.sum() >= 100:
                row = {"kind": kind, "low": low, "high": high, "jobs": int(inside.sum())}
                for name, one in (("easy", before), ("found", after)):
                    slowdown = bounded_slowdown(one.wait[inside], one.runtime[inside])
                    row[name] = [float(one.wait[inside].mean()), float(slowdown.mean())]
                rows.append(row)
    users = log.columns.get("user")
    worse = None
    if users is not None:
        means = [
            (before.wait[users == user].mean(), after.wait[users == user].mean())
            for user in np.unique(users)
            if (users == user).sum() >= 20
        ]
        worse = [len(means), int(sum(b > 1.1 * a + 60 for a, b in means))]
    return {"log": log.origin.name, "rows": rows, "users": worse}


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the order apart, and store what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("order", type=Path, nargs="?")
    parser.add_argument("final", type=Path, nargs="?")
    parser.add_argument("logs", type=Path, nargs="*")
    parser.add_argument("--fresh", type=Path)
    parser.add_argument("--judgement", type=int, choices=range(1, 1 + len(JUDGEMENTS)), default=1)
    parser.add_argument("--apart", type=Path, nargs="+")
    parser.add_argument("--fair", type=Path, nargs="+")
    parser.add_argument("--longer", type=Path)
    parser.add_argument("--everywhere", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args(arguments)
    if given.fresh is not None:
        kept = json.loads(given.out.read_text()) | {JUDGEMENTS[given.judgement - 1]: json.loads(given.fresh.read_text())}
        given.out.write_text(json.dumps(kept, indent=1) + "\n")
        return 0
    if given.fair is not None:
        logs = [read(log) for log in given.fair]
        kept = {"fair": {"logs": [log.origin.name for log in logs], "sample": SAMPLE, "rows": fair(logs)}}
        given.out.write_text(json.dumps(json.loads(given.out.read_text()) | kept, indent=1) + "\n")
        return 0
    if given.longer is not None:
        kept = {"longer": read_order_file(given.longer).as_dict()}
        given.out.write_text(json.dumps(json.loads(given.out.read_text()) | kept, indent=1) + "\n")
        return 0
    if given.everywhere is not None:
        stored = json.loads(given.out.read_text())
        found = [stored["longer"]["scheduler"], stored["third"]["rows"][0]["scheduler"]]
        stored["everywhere"] = everywhere(found, [read(log) for log in given.everywhere])
        given.out.write_text(json.dumps(stored, indent=1) + "\n")
        return 0
    if given.apart is not None:
        scheduler, logs = parse_scheduler(read_order_file(given.apart[0]).scheduler), [read(log) for log in given.apart[1:]]
        names = [log.origin.name for log in logs]
        apart = {"logs": names, "rows": without_parts(scheduler, logs), "losers": [losers(scheduler, log) for log in logs]}
        given.out.write_text(json.dumps(json.loads(given.out.read_text()) | {"apart": apart}, indent=1) + "\n")
        return 0
    if not given.logs:
        parser.error("name the order, the final table and the logs of the search, or use one of the options")
    found = read_order_file(given.order)
    scheduler, logs = parse_scheduler(found.scheduler), [read(log) for log in given.logs]
    stored = {
        "search": found.as_dict(),
        "final": json.loads(given.final.read_text()),
        "ablation": {"logs": [log.origin.name for log in logs], "rows": ablation(scheduler, logs)},
        "losers": [losers(scheduler, log) for log in logs],
    }
    given.out.write_text(json.dumps(json.loads(given.out.read_text()) | stored, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
