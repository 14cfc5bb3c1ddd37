"""feitelson98, Tables 1 and 2: EASY against conservative backfilling on logs, by month and with estimates of the f-model."""

from __future__ import annotations

from walltime.papers.item import Item
from walltime.papers.mualem01.experiment import (
    CHAOS_NOTE,
    FEW_SEEDS,
    POLICIES,
    SEEDS,
    chaos,
    compared,
    label,
    shaken_cells,
    sweep_cells,
    values_of,
)
from walltime.papers.mualem01.months import correlated, months_of
from walltime.papers.results import Claim, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER

FACTORS = (1, 4, 11, 31, 101, 301)


def table_1(study: Study) -> list[Part]:
    """feitelson98: bounded slowdown by month."""
    printed = study.printed.tables["T1b"]
    record = study.printed.tables["T1a"]
    rows: list[list[Entry]] = []
    correlations: list[Claim] = []
    for subject in study.subjects:
        months = {policy: months_of(subject, policy, None) for policy in POLICIES}
        pairs: dict[str, list[tuple[float, float]]] = {policy: [] for policy in POLICIES}
        for easy, conservative in zip(*months.values(), strict=True):
            row: list[Entry] = [subject.name, f"{easy.year}-{easy.month:02d}", Value(easy.jobs)]
            for policy, month in zip(POLICIES, (easy, conservative), strict=True):
                value = printed.value(policy, year=month.year, month=month.month) if subject.kind == PAPER else None
                row.append(Value(month.mean_bounded_slowdown_p1, value, digits=1))
                if value is not None:
                    pairs[policy].append((value, month.mean_bounded_slowdown_p1))
            rows.append(row)
        correlations += [
            correlated(f"{subject.name}, {policy}: monthly slowdowns", found) for policy, found in pairs.items() if len(found) > 2
        ]
    lost: list[list[Entry]] = [[str(row["month"]), *(Value(float(row[c])) for c in list(row)[1:])] for row in record.rows]
    heads = ["month", *(f"{c[:2]} nodes, {'EASY' if c.endswith('easy') else 'conservative'}" for c in list(record.rows[0])[1:])]
    return [
        Table("table1b", printed.title, ["log", "month", "jobs", "EASY", "conservative"], rows, "Single months are chaotic: no criterion."),
        Claims(correlations),
        Table("table1a-printed", f"{record.title}: printed numbers only", heads, lost, record.note),
        Notes(["feitelson98's months start with September 1996, of which today's log has eight days."]),
    ]


def table_2(study: Study) -> list[Part]:
    """feitelson98: the whole log with estimates of the f-model."""
    printed = study.printed.tables["T2"]
    names = [*(f"f:{factor}" for factor in FACTORS), "user"]
    rows: list[list[Entry]] = []
    claims: list[Claim] = []
    for subject in study.subjects:
        table = sweep_cells(study, subject, names, FEW_SEEDS if study.quick else SEEDS)
        shaken = shaken_cells(study, subject, ["user", "f:1"])
        for name in names:
            row: list[Entry] = [subject.name, label(name)]
            seen, print_ = [], []
            for policy in POLICIES:
                cells = values_of(table, policy, name, "slowdown")
                band = chaos(cells, values_of(shaken, policy, name, "slowdown"))
                value = printed.value(policy, estimates=name) if subject.kind == PAPER else None
                row.append(Value(float(cells.mean()), value, study.printed.criteria["slowdown"], 1, band))
                seen.append(float(cells.mean()))
                print_.append(value)
            rows.append(row)
            claims += compared(f"{subject.name}, {label(name)}: conservative against EASY", print_, seen)
    table_part = Table("table2", printed.title, ["log", "estimates", "EASY", "conservative"], rows)
    return [table_part, Claims(claims), Notes(["feitelson98 seems to have run each once; ours are means of 10 seeds.", CHAOS_NOTE])]


ITEMS = (
    Item("feitelson98", "T1", "Table 1: bounded slowdown by month", table_1),
    Item("feitelson98", "T2", "Table 2: the quality of the estimates", table_2),
)
