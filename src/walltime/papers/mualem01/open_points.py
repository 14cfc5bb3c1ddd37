"""What mualem01 leaves open: each reading of it on one log against print, and the months under the closest one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from walltime.papers.item import Item
from walltime.papers.mualem01.readings import READINGS, Reading, Row, printed_of, readings_table
from walltime.papers.results import Claim, Claims, Entry, Notes, Part, Table, Value
from walltime.papers.study import Study
from walltime.papers.subjects import PAPER, Subject
from walltime.simulation import simulate

NUMBERS = (
    ("easy_response", "response, EASY", 0),
    ("easy_slowdown", "slowdown, EASY", 1),
    ("conservative_response", "response, conservative", 0),
    ("conservative_slowdown", "slowdown, conservative", 1),
    ("jobs_off", "jobs in other months", 0),
    ("load_off", "load off by", 4),
    ("slowdown_off", "EASY's months off by (%)", 1),
)
SEEDS, FEW_SEEDS = 3, 1
EXACT = 0.0015
"""Relative difference within which a month counts as found to the printed digit."""


def readings(study: Study) -> list[Part]:
    """The table of all interpretations, and the months under the last of them."""
    subject = next((s for s in study.subjects if s.name == "KTH"), study.subjects[0])
    printed = printed_of(study.printed, subject.name) if subject.kind == PAPER else {}
    rows = readings_table(subject.workload, printed=printed, source="in print", seeds=FEW_SEEDS if study.quick else SEEDS)
    lines: list[list[Entry]] = [[*_name(row), *(_number(row, field, digits) for field, _, digits in NUMBERS), row.note] for row in rows]
    columns = ["open point", "reading", *(name for _, name, _ in NUMBERS), ""]
    note = (
        "The default comes first within each open point, marked *. The last three columns of numbers compare EASY's months with print, or "
        "with the default where nothing is printed. Interpretations that the compiled engine lacks run on the reference engine."
    )
    table = Table("readings", f"Interpretations on {subject.label}", columns, lines, note)
    recovered, claims = _months(study, subject)
    return [table, *recovered, Claims(claims), Notes([CONCLUSION])]


CONCLUSION = (
    "The last interpretation was found by searching some 20,000 combinations on KTH, so the fit alone proves nothing; that months agree "
    "to the last printed digit, and that CTC's slowdowns are closer to print too, supports it: extra nodes are not used up by "
    "the jobs backfilled into them, they and the shadow time are computed only at a termination or for a new head, and jobs "
    "that exceed their request run on. It breaks mualem01's own Property 2, that the first job of the queue is not delayed; so the default "
    "stays as mualem01 writes."
)


def _name(row: Row) -> list[Entry]:
    return [row.question, f"{row.reading}{' *' if row.default else ''}"]


def _number(row: Row, field: str, digits: int) -> Entry:
    value = float(getattr(row, field))
    return None if math.isnan(value) else Value(value, digits=digits)


def _months(study: Study, subject: Subject) -> tuple[list[Part], list[Claim]]:
    """EASY's months under the last interpretation, compared with print."""
    reading: Reading = READINGS[-1]
    if subject.kind != PAPER or subject.unix_start_time is None or reading.easy is None:
        return [], []
    printed, criteria = study.printed.tables["T1"], study.printed.criteria
    schedule = simulate(reading.change(subject.workload), reading.easy, coincident=reading.coincident, overrun=reading.overrun)
    rows: list[list[Entry]] = []
    exact = loads = 0
    for month in schedule.monthly():
        line = printed.find(log=subject.name, year=month.year, month=month.month)
        if line is None:
            continue
        slowdown = month.mean_bounded_slowdown
        response = Value(month.mean_response, line["response_easy"], EXACT)
        rows.append(
            [
                f"{month.year}-{month.month:02d}",
                Value(month.load, line["load"], criteria["month_load"] / line["load"], 3),
                Value(month.jobs, line["jobs"], criteria["month_jobs"]),
                response,
                Value(slowdown, line["slowdown_easy"], EXACT, 1),
            ]
        )
        exact += response.verdict == "reproduced"
        loads += round(month.load, 3) == line["load"]
    if not rows:
        return [], []
    head = ["month", "load", "jobs", "response, EASY", "slowdown, EASY"]
    table = Table("readings-months", f"EASY's months, {reading.name}", head, rows, f"Green: within {100 * EXACT:g} % of print.")
    claims: list[Claim] = [
        ("half of the months have the printed response, to a tenth of a percent", exact >= len(rows) / 2, f"{exact} of {len(rows)}"),
        ("all months have the printed load, to its last digit", loads == len(rows), f"{loads} of {len(rows)}"),
    ]
    return [table], claims


ITEMS: Sequence[Item] = (Item("mualem01", "readings", "What the paper leaves open: interpretations", readings),)
