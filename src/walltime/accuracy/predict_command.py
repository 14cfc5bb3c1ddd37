"""`walltime predict`: how well runtimes could have been predicted, job by job, from the jobs that had ended before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, caveats, command_line, note, progress_bar, write_rows

if TYPE_CHECKING:
    import numpy as np

    from walltime.simulation.replay import Replay
    from walltime.tables import Table
    from walltime.workload import Workload

COLUMNS = ("mean_accuracy", "median_accuracy", "na_percent", "oe_percent", "ue_percent", "be_percent")
"""The printed fields of each predictor's summary."""


@dataclass(frozen=True)
class ReplayOptions:
    """The predictors, and how they learn."""

    predictor: list[str] | None = o.field(
        None,
        f"Predict runtimes by this predictor: {o.PREDICTORS}. Default: every key, statistic and window of tang13.",
        "--predictor",
        group=o.SCHEDULER,
        metavar="NAME",
    )
    threshold: float | None = o.field(
        None,
        "Set the lower bound of R for the default table, from 0 to 1 (tang13: 0.5). Default: 0.",
        group=o.SCHEDULER,
        advanced=True,
        min=0,
        max=1,
    )
    ends: str = o.field(
        "auto",
        "Learn from the recorded ends of jobs (log), from their ends in a simulation under EASY (easy), or from the log if it has wait "
        "times (auto).",
        group=o.SCHEDULER,
    )
    test_share: float = o.field(
        1.0,
        "Judge only this last share of the log, from 0 to 1; predictors learn from all earlier jobs. Default: 1, all jobs.",
        "--test-share",
        group=o.RUNS,
        min=0,
        max=1,
    )
    dialect: o.DialectOption = "papers"


@manual(
    "guides/predictions",
    ("Compare all forms of the predictor tang13 on a log.", "predict KTH-SP2"),
    ("Judge one predictor, and write the prediction of each job.", "predict KTH-SP2 --predictor tsafrir07 --out predictions.csv"),
)
def predict(
    trace: o.TraceArgument,
    *,
    replaying: ReplayOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    out: Annotated[Path | None, o.out("the table, or with a single --predictor the prediction of each job,", *o.TABLE)] = None,
    output: PageOutput,
) -> None:
    """Predict the runtimes of all jobs of a log, and show the accuracy of predictors; no schedule is simulated."""
    from walltime.accuracy.adjusted import tang13_schemes
    from walltime.errors import PolicyError
    from walltime.predictors import PlainPredictor, below_remark, parse_predictor
    from walltime.simulation.replay import held_out
    from walltime.simulation.replay import predict as replay

    if replaying.ends not in ("auto", "log", "easy"):
        raise PolicyError(f"unknown ends {replaying.ends!r}. Valid values: auto, log, easy")
    if replaying.predictor and replaying.threshold is not None:
        raise PolicyError("--threshold is for the default table; a predictor has its own: tang13:threshold=0.5")
    given, rules = [parse_predictor(text) for text in replaying.predictor or []], o.read_dialect(replaying.dialect, None)
    workload, seconds = reading.load(trace)
    workload = stretch.alone(workload)
    chosen, judged = given or tang13_schemes(workload, replaying.threshold or 0.0), held_out(workload, replaying.test_share)
    with progress_bar(len(chosen), "predictors") as show:
        replays = replay(workload, chosen, replaying.ends, dialect=rules, progress=show)
    rows = [row(replay, judged) for replay in replays]
    if out is not None:
        _write(out, replays, rows)
    from walltime.provenance import version

    head = {"trace": str(trace), "sha256": workload.origin.sha256, "procs": workload.machine_procs, "jobs": len(workload)}
    head |= {"test_share": replaying.test_share, "judged": int(judged.sum())}
    record = head | {"dropped": dict(workload.origin.dropped), "ends": replays[0].ends, "unknown_ends": replays[0].unknown_ends}
    record |= {
        "dialect": rules.label,
        "predictors": rows,
        "out": out,
        "report": output.report,
        "seconds": {"read": seconds},
        "version": version(),
    }
    if replays[0].unknown_ends:
        note(f"{replays[0].unknown_ends:,} jobs have no wait times, so nothing is learned from them")
    remarks = [
        line for one in replays if isinstance(one.predictor, PlainPredictor) for line in below_remark(one.predictor.label, one.basis)
    ]
    remarks += [line for one in given for line in one.remarks(workload, workload.requested, workload.runtime)]
    record["caveats"] = remarks
    blocks = [*_blocks(workload, rows, bool(given), _source(replays[0].ends, replaying.ends, rules.label)), *caveats(remarks)]
    if output.report is not None:
        from walltime.accuracy.prediction_pages import replays_page

        output.write(replays_page(workload, rows, blocks, command_line(), int(judged.sum())))
    output.show(record, blocks, **{"predictions" if len(replays) == 1 else "table": out})


def row(replay: Replay, judged: np.ndarray | None = None) -> dict[str, Any]:
    """The row of one predictor, over the jobs that are judged."""
    return {"predictor": replay.predictor.label, **replay.summary(judged).as_dict()}


def _write(out: Path, replays: list[Replay], rows: list[dict[str, Any]]) -> None:
    import polars as pl

    from walltime.metrics import AdjustmentClass, adjustment_classes

    if len(replays) == 1:
        w, replay = replays[0].workload, replays[0]
        kinds = adjustment_classes(w.runtime, w.requested, replay.predicted, replay.basis)
        names = [AdjustmentClass(kind).name for kind in kinds.tolist()]
        columns = {"job_id": w.job_id, "submit": w.submit, "runtime": w.runtime, "requested": w.requested, "procs": w.procs}
        table = pl.DataFrame({**columns, "predicted": replay.predicted, "class": names})
    else:
        table = pl.DataFrame(rows, infer_schema_length=None)
    write_rows(table, out)


def _source(source: str, asked: str, dialect: str) -> str:
    """Whose ends the predictors have learned from."""
    if source == "log":
        return "the log"
    why = ", as the log has no wait times" if asked == "auto" else ""
    return f"a simulation under EASY{'' if dialect == 'papers' else f', dialect {dialect}'}{why}"


def _blocks(w: Workload, rows: list[dict[str, Any]], named: bool, source: str) -> Iterator[Table | str]:
    from walltime.tables import Cell, Table

    alike: dict[Any, list[dict[str, Any]]] = {}
    for k, r in enumerate(rows if named else sorted(rows, key=lambda r: -(r["mean_accuracy"] or 0))):
        alike.setdefault(k if named else tuple(_number(r[name]) for name in COLUMNS), []).append(r)
    shown = list(alike.values())[:MOST_PREDICTORS] if not named else list(alike.values())
    lines = []
    for first, *others in shown:
        label = Cell(first["predictor"], [f"and {len(others)} more with the same numbers"] if others else [])
        lines.append([label, *(Cell(_number(first[name]), value=first[name]) for name in COLUMNS)])
    head = ["predictor", "accuracy", "median", "no adjustment", "over", "under", "30 min under"]
    yield Table(
        head,
        lines,
        f"{w.origin.name}: {_jobs(len(w), rows[0]['jobs'])}"
        + ("" if named else f", the {sum(map(len, shown))} most accurate of {len(rows)} schemes"),
    )
    yield f"mean accuracy of the users' requests: {rows[0]['mean_accuracy_of_requests']:.3f}"
    yield "accuracy: the smaller of runtime and prediction over the larger (tang13, eq. 3)."
    yield "over, under, 30 min under: percent of the jobs whose adjusted walltime is too long, too short, or that much too short."
    yield f"Each prediction knows only the jobs that had ended when the job was submitted; ends are those of {source}."


def _jobs(jobs: int, judged: int) -> str:
    return f"{jobs:,} jobs" if judged == jobs else f"the last {judged:,} of {jobs:,} jobs"


MOST_PREDICTORS = 12
"""Rows of the default table; `--json` and `--out` have all."""


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}" if value <= 1 else f"{value:.1f}"
