"""What results look like in a notebook, and how they get into other libraries' tables."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import walltime as wt
from walltime.campaign import Store, read_plan, run_campaign

JOBS = wt.Workload.from_arrays(
    submit=[0, 1, 2],
    runtime=[10, 10, 5],
    procs=[3, 4, 1],
    machine_procs=4,
    columns={"user": np.array([1, 2, -1])},
    origin=wt.workloads.Origin(name="<log> & co"),
)
EASY = wt.simulate(JOBS, "easy")


class Cells(HTMLParser):
    """Texts of an HTML fragment whose tags must close."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_workload__shows_its_jobs_and_machine():
    texts = Cells(JOBS._repr_html_()).texts
    assert texts[0] == "<log> & co"
    assert texts[texts.index("jobs") + 1] == "3"
    assert texts[texts.index("users") + 1] == "2"


def test_schedule_and_summary__show_the_averages():
    for thing in (EASY, EASY.summary()):
        texts = Cells(thing._repr_html_()).texts
        assert texts[texts.index("mean wait") + 1] == "3"
    assert Cells(EASY._repr_html_()).texts[0] == "EASY on <log> & co"


def test_comparison__has_a_row_for_each_policy():
    compared = wt.compare(wt.simulate(JOBS, "fcfs"), EASY)
    texts = Cells(compared._repr_html_()).texts
    assert texts[texts.index("EASY") + 1] == "3"
    assert texts[-1] == "-66.7 %"
    assert repr(compared) == "<Comparison of fcfs, easy>"


def test_audit__shows_what_is_broken():
    assert Cells(EASY.audit()._repr_html_()).texts[0].startswith("ok: ")
    columns = EASY.columns() | {"start": EASY.start + 1, "end": EASY.end + 1}
    broken = wt.audit(JOBS, columns, wt.Easy())
    texts = Cells(broken._repr_html_()).texts
    assert "head_waits" in texts
    assert repr(broken).startswith("<AuditReport: ")


@pytest.mark.slow
def test_store__shows_its_cells(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('[fixed]\nmodel = "lublin99"\njobs = 50\n[grid]\npolicy = ["easy", "fcfs"]\n')
    run_campaign(read_plan(plan))
    texts = Cells(Store(read_plan(plan).store)._repr_html_()).texts
    assert texts[texts.index("cells") + 1] == "2"
    assert texts[texts.index("policies") + 1] == "easy, fcfs"


@pytest.mark.parametrize("thing", [JOBS, EASY], ids=["workload", "schedule"])
def test_tables__are_arrow_for_whoever_reads_it(thing):
    table = thing.table()
    assert table.height == 3
    assert pl.DataFrame(thing).equals(table)
    assert table["job_id"].to_list() == [1, 2, 3]


def test_pandas__gets_the_same_columns():
    pytest.importorskip("pandas", reason="pandas is not installed; it is an extra")
    for thing in (JOBS, EASY):
        frame = thing.to_pandas()
        assert list(frame.columns) == thing.table().columns
        assert frame["submit"].tolist() == [0, 1, 2]
