"""Tables in a terminal: the first column keeps its width, and no cell is cut."""

import pytest

from walltime.report.page import Items
from walltime.report.terminal import at_commas, print_block, print_blocks
from walltime.tables import Cell, Facts, Table

NAMES = ["KTH-SP2-1996-2.1-cln", "SDSC-BLUE-2000-4.2-cln", "a"]
WORDS = "28,490 jobs on 100 processors, before the first jobs were removed"
LONG = "tang13:key=user,statistic=median,window=2"


def printed(capsys, monkeypatch, block, width) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    print_block(block)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_table_of_texts__keeps_its_first_column_at_every_width(capsys, monkeypatch, width):
    rows = [[name, f"{name}.swf.gz", "1,152", WORDS, ""] for name in NAMES]
    lines = printed(capsys, monkeypatch, Table(["name", "file", "processors", "used by", "here"], rows, "logs", texts=-1), width)
    blocks = sum(line.split()[:1] == ["name"] for line in lines)
    assert all(sum(line.split()[:1] == [name] for line in lines) == blocks for name in NAMES)
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= width
    assert set(WORDS.split()) <= set(" ".join(lines).split())
    assert "here" not in " ".join(lines).split()  # no cell of this column has a text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_table_of_numbers__keeps_its_first_column_at_every_width(capsys, monkeypatch, width):
    lines = printed(capsys, monkeypatch, Table(["policy", "mean wait", "slowdown"], [[LONG, "1 h 55 min", "6,829"]], "waits"), width)
    assert any(line.split()[:1] == [LONG] for line in lines)
    assert max(map(len, lines)) <= width


def test_table__with_a_first_column_wider_than_the_terminal_breaks_names_after_commas_only(capsys, monkeypatch):
    lines = printed(capsys, monkeypatch, Table(["policy", "mean wait"], [[LONG, "1 h 55 min"]]), 30)
    assert "".join(line.split()[0] for line in lines[2:] if line.strip()) == LONG
    assert any("1 h 55 min" in line for line in lines)


def test_facts__keep_names_and_break_remarks(capsys, monkeypatch):
    lines = printed(capsys, monkeypatch, Facts("log", [("span of submissions", "332.9 days", WORDS)]), 50)
    assert lines[1].startswith("span of submissions")
    assert "332.9 days" in lines[1]
    assert max(map(len, lines)) <= 50
    assert set(WORDS.split()) <= set(" ".join(lines).split())


def test_cells_that_may_wrap__leave_room_for_the_first_column(capsys, monkeypatch):
    rows = [["with the rules", "5 h 21 min", Cell(WORDS, look="wrap")]]
    lines = printed(capsys, monkeypatch, Table(["run", "mean wait", "reasons"], rows), 60)
    assert any(line.strip().startswith("with the rules   5 h 21 min") for line in lines)
    assert max(map(len, lines)) <= 60


def test_blocks__have_an_empty_line_around_tables_and_before_headings(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    table = Table(["policy", "mean wait"], [["easy", "1 min"]], "Waits")
    print_blocks(["An answer.", "A second sentence.", table, Facts("", [("jobs", "3")]), "Notes:", Items(["one", "two"]), "written"])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    rule = lines[5]
    assert set(rule) == {"─"}
    assert lines == [
        *("An answer.", "A second sentence.", ""),
        *("Waits", "policy   mean wait", rule, "easy         1 min", ""),
        *("jobs  3", ""),
        *("Notes:", "* one", "* two", "written"),
    ]


def test_name__is_not_broken_within_a_time():
    assert at_commas("no job is planned to run across 17:00 (mon-fri)", 20).splitlines() == [
        "no job is planned to",
        "run across 17:00",
        "(mon-fri)",
    ]
