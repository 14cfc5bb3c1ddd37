"""`walltime predict`: measure how accurately each job's runtime could have been predicted from the jobs that had already ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from walltime.cli import options as o
from walltime.cli.command_lines import command_line
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import PageOutput, caveats, note, progress_bar, write_rows
from walltime.tables import Cell, Table
from walltime.wording import counted, on_log

if TYPE_CHECKING:
    from walltime.simulation.replay import Replay
    from walltime.workload import Workload

COLUMNS = {
    "mean_accuracy": "accuracy",
    "na_percent": "none",
    "oe_percent": "too long",
    "ue_percent": "too short",
    "be_percent": "> 30 min too short",
}
"""The fields of a predictor's summary in the table, and their column heads."""
ENDS = ("auto", "log", "easy")
"""Valid values of --ends, the source of the job ends from which predictors learn."""
NOTES = (
    "Accuracy: the smaller of runtime and prediction divided by the larger (tang13, eq. 3).",
    "Too long, too short: share of jobs with such a prediction; too short means by up to 30 min.",
)


@dataclass(frozen=True)
class ReplayOptions:
    """Options for the predictors and their training data."""

    predictor: list[str] | None = o.field(
        None,
        f"Predict runtimes with this predictor: {o.PREDICTORS}. Default: all variants of tang13 (each key, statistic and window).",
        group=o.SCHEDULER,
        metavar="NAME",
    )
    threshold: float | None = o.field(
        None,
        "Let the default predictors predict at least this share of the request, from 0 to 1 (0.5 in the paper tang13). Default: 0.",
        group=o.SCHEDULER,
        advanced=True,
        min=0,
        max=1,
    )
    ends: str = o.field(
        "auto",
        "Learn from the recorded ends of jobs (log), from their ends in a simulation under EASY (easy), or from the log if it has "
        "wait times, else from the simulation (auto).",
        group=o.SCHEDULER,
    )
    test_share: float = o.field(
        1.0,
        "Evaluate only this final share of the log, above 0 and up to 1; predictors learn from all earlier jobs. Default: 1, all jobs.",
        group=o.RUNS,
        min=0,
        max=1,
    )
    dialect: o.DialectOption = "papers"


@manual(
    "guides/predictions",
    ("Compare all variants of the predictor tang13 on a log.", "predict KTH-SP2"),
    ("Evaluate one predictor, and write the prediction of each job.", "predict KTH-SP2 --predictor tsafrir07 --out predictions.csv"),
)
def predict(
    trace: o.TraceArgument,
    *,
    replaying: ReplayOptions,
    stretch: RecordedWindow,
    reading: LogOptions,
    verbose: o.VerboseOption = False,
    out: Annotated[Path | None, o.out("the table, or with a single --predictor the prediction of each job,", *o.TABLE)] = None,
    output: PageOutput,
) -> None:
    """Predict the runtimes of all jobs of a log, and show the accuracy of predictors; no schedule is simulated."""
    from walltime.accuracy.adjusted import tang13_schemes
    from walltime.errors import PolicyError
    from walltime.predictors import PlainPredictor, below_remark, parse_predictor
    from walltime.simulation.replay import held_out, predict as replay

    if replaying.ends not in ENDS:
        raise PolicyError(f"unknown ends {replaying.ends!r}. Valid values: {', '.join(ENDS)}")
    if replaying.predictor and replaying.threshold is not None:
        raise PolicyError("--threshold is for the default table; write it into the predictor instead: tang13:threshold=0.5")
    given, rules = [parse_predictor(text) for text in replaying.predictor or []], o.read_dialect(replaying.dialect, None)
    workload, seconds = reading.load(trace)
    workload = stretch.alone(workload)
    chosen, judged = given or tang13_schemes(workload, replaying.threshold or 0.0), held_out(workload, replaying.test_share)
    with progress_bar(len(chosen), "predictors") as show:
        replays = replay(workload, chosen, replaying.ends, dialect=rules, progress=show)
    rows = [{"predictor": one.predictor.label, **one.summary(judged).as_dict()} for one in replays]
    if out is not None:
        _write(out, replays, rows)
    from walltime.provenance import version

    head = {"trace": str(trace), "sha256": workload.origin.sha256, "procs": workload.machine_procs, "jobs": len(workload)}
    head |= {"test_share": replaying.test_share, "judged": int(judged.sum())}
    record = head | {"dropped": dict(workload.origin.dropped), "ends": replays[0].ends, "unknown_ends": replays[0].unknown_ends}
    record |= {"dialect": rules.label, "predictors": rows, "out": out, "report": output.report}
    record |= {"seconds": {"read": seconds}, "version": version()}
    if replays[0].unknown_ends:
        note(f"{counted(replays[0].unknown_ends, 'job')} without a wait time cannot be learned from")
    remarks = [
        line for one in replays if isinstance(one.predictor, PlainPredictor) for line in below_remark(one.predictor.label, one.basis)
    ]
    remarks += [line for one in given for line in one.remarks(workload, workload.requested, workload.runtime)]
    record["caveats"] = remarks
    source = "the log"
    if replays[0].ends != "log":
        source = f"a simulation under EASY{'' if rules.label == 'papers' else f', dialect {rules.label}'}"
        source += ", as the log has no wait times" if replaying.ends == "auto" else ""
    learned = f"Predictors learn only from jobs that have ended, with the end times of {source}."
    answer, table = _answer(workload, rows, int(judged.sum())), _table(workload, rows, None if given else MOST_PREDICTORS[verbose], verbose)
    blocks = [table, *caveats([*remarks, *NOTES, learned])]
    if output.report is not None:
        from walltime.accuracy.prediction_pages import replays_page

        output.write(replays_page(workload, rows, answer, blocks, command_line()))
    output.show(record, [answer, *blocks], **{"predictions" if len(replays) == 1 else "table": out})


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
    write_rows(out, table)


def _answer(w: Workload, rows: Sequence[dict[str, Any]], judged: int) -> str:
    """Return a sentence on the accuracy of the best predictor and of the users' requests."""
    log = on_log(w.origin.name)
    if judged < len(w):
        log = f"On the last {judged:,} of the {len(w):,} jobs of {w.origin.name}, after learning from all earlier jobs"
    known = [row for row in rows if row["mean_accuracy"] is not None]
    if not known:
        return "No job could be predicted."
    best = max(known, key=lambda row: row["mean_accuracy"])
    against = "" if best["predictor"] == "user" else f"; the users' requests have {rows[0]['mean_accuracy_of_requests']:.2f}"
    first = f"has the highest mean accuracy of {len(rows)} predictors," if len(rows) > 1 else "has a mean accuracy of"
    return f"{log}, {best['predictor']} {first} {best['mean_accuracy']:.2f} (1 is exact){against}."


def _table(w: Workload, rows: list[dict[str, Any]], most: int | None, full: bool) -> Table:
    """Return a table of the users' requests and the predictors: all in the given order, or the `most` most accurate ones.

    The second form shows only one of several predictors with equal results. `full`: include the share of jobs without a prediction.
    """
    shown = rows
    if most is not None:
        ranked = sorted(rows, key=lambda row: -(row["mean_accuracy"] or 0))
        shown = list({tuple(_number(row[name]) for name in COLUMNS): row for row in reversed(ranked)}.values())[::-1][:most]
    first = Cell(_number(rows[0]["mean_accuracy_of_requests"]), value=rows[0]["mean_accuracy_of_requests"])
    heads = {name: head for name, head in COLUMNS.items() if full or name != "na_percent"}
    lines = [["(users' requests)", first, *["-"] * (len(heads) - 1)]]
    lines += [[row["predictor"], *(Cell(_number(row[name], name), value=row[name]) for name in heads)] for row in shown]
    jobs = f"{len(w):,} jobs" if rows[0]["jobs"] == len(w) else f"the last {rows[0]['jobs']:,} of {len(w):,} jobs"
    chosen = "" if most is None else f", the {len(shown)} most accurate of {len(rows)} predictors"
    return Table(["predictor", *heads.values()], lines, f"{w.origin.name}: {jobs}{chosen}")


MOST_PREDICTORS = {False: 3, True: 12}
"""Number of rows of the default table, without and with --verbose; `--json` and `--out` contain all predictors."""


def _number(value: float | None, name: str = "") -> str:
    return "n/a" if value is None else f"{value:.1f} %" if name.endswith("percent") else f"{value:.3f}"
