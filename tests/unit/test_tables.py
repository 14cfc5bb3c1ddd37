"""Tables as files: LaTeX, Markdown, CSV and JSON by the extension, from Python and from every command."""

from __future__ import annotations

import csv
import json

from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from walltime.errors import OutputError
from walltime.tables import Cell, Table, time_cell, write_tables

WAITS = Table(["policy", "mean wait"], [["EASY", Cell("1 h 00 min", ["50 %"], value=3600.5)], ["A_1 & B", "2 h"]], "Waits")


def test_write__takes_the_format_from_the_extension(tmp_path):
    latex = WAITS.write(tmp_path / "a.tex").read_text()
    assert r"\toprule" in latex
    assert r"A\_1 \& B & 2 h \\" in latex
    assert "| EASY | 1 h 00 min (50 %) |" in WAITS.write(tmp_path / "a.md").read_text()
    assert list(csv.reader(WAITS.write(tmp_path / "a.csv").read_text().splitlines()))[1] == ["EASY", "3600.5"]
    assert json.loads(write_tables(tmp_path / "a.json", [WAITS, WAITS]).read_text())[1]["rows"][0]["mean wait"] == 3600.5
    with raises(OutputError, "unknown_file_extension"):
        WAITS.write(tmp_path / "a.xlsx")


def test_latex__has_minus_signs_and_breaks_long_tables():
    rows = [[f"p-{k}", "-1.5 ± 0.2", "2026-01-02", "1e-6"] for k in range(41)]
    short, long = (Table(["a", "b", "c", "d"], rows[:n], "Title").latex() for n in (40, 41))
    assert r"p-0 & $-$1.5 $\pm$ 0.2 & 2026-01-02 & 1e-6 \\" in short
    assert short.startswith("\\begin{table}")
    assert long.startswith("\\begin{longtable}{lrrr}\n\\caption{Title}\\\\\n\\toprule\n")
    assert long.count("\\endhead") == long.count("\\endfoot") == long.count("\\end{longtable}") == 1
    assert "{table}" not in long


def test_command__writes_what_it_prints(golden, capsys, tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(HEADER + "".join(record(k + 1, 60 * k, 600, 2, 6000) for k in range(8)))
    file = tmp_path / "waits.tex"
    status, out, errors = call(capsys, "compare", log, "--policy", "fcfs", "--policy", "easy", "--tables", file)
    assert (status, errors) == (0, "")
    assert f"tables written to {file}" in out
    assert file.read_text().count(r"\begin{tabular}") == 1
    assert call(capsys, "info", log, "--json", "--tables", tmp_path / "facts.md")[0] == 0
    assert "| machine | 4 processors |" in (tmp_path / "facts.md").read_text()
    golden("info", one_line(*call(capsys, "info", log, "--tables", tmp_path / "facts.doc")))


def test_times_of_a_column__have_one_form():
    rows = [[name, time_cell(wait), time_cell(least), f"{wait:.0f}"] for name, wait, least in [("a", 168_060, 0), ("b", 230_400, 41.5)]]
    table = Table(["job", "wait", "runtime", "text"], rows)
    assert table.column(1) == ["46 h 41 min", "64 h 00 min"]
    assert table.column(2) == ["0 s", "42 s"]
    assert table.csv().splitlines()[1:] == ["a,168060,0,168060", "b,230400,41.5,230400"]
    days = Table(["wait"], [[time_cell(wait)] for wait in (353_000, 948_000)])
    assert days.column(0) == ["4 d 02 h", "10 d 23 h"]


def test_times_of_a_column__leave_undefined_values_and_other_cells():
    table = Table(["wait"], [[time_cell(float("nan"))], [time_cell(7500)], [time_cell(-59)], [Cell("60 s", value=3)]])
    assert table.column(0) == ["n/a", "2 h 05 min", "-0 h 01 min", "60 s"]
