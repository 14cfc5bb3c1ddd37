"""Return the tables that compare trained agents with schedulers."""

from walltime.learn.evaluation import Evaluation
from walltime.report.changes import change_ends, metric_name
from walltime.tables import Row, Table
from walltime.wording import human_number


def learned_tables(evaluation: Evaluation) -> list[Table]:
    """Return the tables of agents and schedulers."""
    rows: list[Row] = [["agent", human_number(evaluation.mean), _days(evaluation.longest_wait), "", "", "", ""]]
    for one in evaluation.compared:
        verdict = "no clear difference" if not one.is_clear else "the agent is better" if one.change.mean < 0 else "the agent is worse"
        rows.append([one.scheduler, human_number(one.mean), _days(one.longest_wait), *change_ends(one.change), verdict])
    seeds = f"{len(evaluation.agents)} agent{'s' * (len(evaluation.agents) > 1)}"
    trained = f" trained on {evaluation.trained_on}" if evaluation.trained_on else ""
    title = f"{evaluation.log}: {evaluation.windows} held-out windows of {evaluation.window} jobs, {seeds}{trained}"
    head = (
        "scheduler",
        f"mean {metric_name(evaluation.metric)}",
        "longest wait",
        "agent compared with it",
        "90 % interval from",
        "to",
        "verdict",
    )
    return [Table(head, rows, title)]


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} d"
