"""`walltime predict`: how well runtimes could have been predicted, job by job, from the jobs that had ended before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from walltime.cli import options as o
from walltime.cli.groups import Reading

if TYPE_CHECKING:
    from walltime.simulation.replay import Replay
    from walltime.workload import Workload

COLUMNS = ("mean_accuracy", "median_accuracy", "na_percent", "oe_percent", "ue_percent", "be_percent")
"""The printed fields of each predictor's summary."""


def predict(
    trace: o.TraceArgument,
    *,
    predictor: Annotated[
        list[str] | None,
        typer.Option(
            "--predictor",
            metavar="NAME",
            help="tang13, tsafrir07, last, mualem01-history, gaussier15, ... with options: tang13:key=user,statistic=p90,window=all; "
            "repeat it. Default: every key, statistic and window of tang13.",
            rich_help_panel=o.RUN,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", min=0, max=1, help="For the default table: lower bound of R (tang13: 0.5).", rich_help_panel=o.RUN),
    ] = None,
    ends: Annotated[
        str,
        typer.Option(
            "--ends",
            help="Ends of earlier jobs: from the log, from EASY with user estimates, or auto: the log if it has wait times.",
            rich_help_panel=o.RUN,
        ),
    ] = "auto",
    dialect: o.DialectOption = "papers",
    reading: Reading,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write the table, or with one --predictor each job's prediction: .csv or .parquet.", rich_help_panel=o.OUTPUT
        ),
    ] = None,
    as_json: o.JsonOption = False,
) -> None:
    """Replay a log with predictors: accuracy, and how many jobs are over- and underestimated; nothing is scheduled."""
    from walltime.cli import common
    from walltime.errors import PolicyError
    from walltime.predictors import parse_predictor
    from walltime.simulation.adjusted import tang13_schemes
    from walltime.simulation.replay import predict as replay

    if ends not in ("auto", "log", "easy"):
        raise PolicyError(f"unknown ends {ends!r}; known are auto, log, easy")
    if predictor and threshold is not None:
        raise PolicyError("--threshold is for the default table; a predictor has its own: tang13:threshold=0.5")
    given, rules = [parse_predictor(text) for text in predictor or []], o.read_dialect(dialect, None)
    if out is not None:
        common.check_output(out, (".csv", ".parquet"))
    workload, seconds = reading.load(trace)
    chosen = given or tang13_schemes(workload, threshold or 0.0)
    with common.progress_bar(len(chosen), "predictors") as show:
        found = replay(workload, chosen, ends, dialect=rules, progress=show)
    rows = [row(replay) for replay in found]
    if out is not None:
        _write(out, found, rows)
    if as_json:
        common.print_json(_record(trace, workload, found, rows, out, seconds, rules.label))
        return
    _print(workload, found, rows, bool(given), ends, rules.label)
    if out is not None:
        typer.echo(f"{'predictions' if len(found) == 1 else 'table'} written to {out}")


def row(replay: Replay) -> dict[str, Any]:
    """The row of one predictor."""
    return {"predictor": replay.predictor.label, **replay.summary().as_dict()}


def _write(out: Path, found: list[Replay], rows: list[dict[str, Any]]) -> None:
    import polars as pl

    from walltime.files import whole_file, write_as_parquet
    from walltime.metrics import AdjustmentClass, adjustment_classes

    if len(found) == 1:
        w, replay = found[0].workload, found[0]
        kinds = adjustment_classes(w.runtime, w.requested, replay.predicted, replay.basis)
        names = [AdjustmentClass(kind).name for kind in kinds.tolist()]
        columns = {"job_id": w.job_id, "submit": w.submit, "runtime": w.runtime, "requested": w.requested, "procs": w.procs}
        table = pl.DataFrame({**columns, "predicted": replay.predicted, "class": names})
    else:
        table = pl.DataFrame(rows, infer_schema_length=None)
    with whole_file(out) as sink:
        if out.name.lower().endswith(".csv"):
            table.write_csv(sink)
        else:
            write_as_parquet(table, sink)


def _record(
    trace: Path, w: Workload, found: list[Replay], rows: list[dict[str, Any]], out: Path | None, seconds: float, dialect: str
) -> dict[str, Any]:
    from walltime.provenance import version

    head = {"trace": str(trace), "sha256": w.origin.sha256, "procs": w.machine_procs, "jobs": len(w), "dropped": dict(w.origin.dropped)}
    ends = {"ends": found[0].ends, "unknown_ends": found[0].unknown_ends, "dialect": dialect}
    return {
        **head,
        **ends,
        "predictors": rows,
        "out": None if out is None else str(out),
        "seconds": {"read": seconds},
        "version": version(),
    }


def _print(w: Workload, found: list[Replay], rows: list[dict[str, Any]], named: bool, ends: str, dialect: str) -> None:
    from walltime.cli.common import note, print_table, print_text

    own = rows[0]["mean_accuracy_of_requests"]
    ordered = rows if named else sorted(rows, key=lambda r: -(r["mean_accuracy"] or 0))
    shown = ordered if named else ordered[:MOST]
    lines = [[r["predictor"], *(_number(r[name]) for name in COLUMNS)] for r in shown]
    head = ["predictor", "accuracy", "median", "no adjustment", "over", "under", "30 min under"]
    title = f"{w.origin.name}: {len(w):,} jobs" + ("" if named else f", the {len(shown)} most accurate of {len(rows)} schemes")
    print_table(title, head, lines)
    print_text(f"mean accuracy of the users' requests: {own:.3f}")
    print_text("accuracy: the smaller of runtime and prediction over the larger (tang13, eq. 3).")
    print_text("over, under, 30 min under: percent of the jobs whose adjusted walltime is too long, too short, or that much too short.")
    source = "the log"
    if found[0].ends != "log":
        source = "a simulation under EASY" + ("" if dialect == "papers" else f", dialect {dialect}")
        source += ", as the log has no wait times" if ends == "auto" else ""
    print_text(f"Each prediction knows only the jobs that had ended when the job was submitted; ends are those of {source}.")
    if found[0].unknown_ends:
        note(f"{found[0].unknown_ends:,} jobs have no wait times, so nothing is learned from them")


MOST = 12
"""Rows of the default table; `--json` and `--out` have all."""


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}" if value <= 1 else f"{value:.1f}"
