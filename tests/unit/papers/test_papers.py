"""Papers reproduced on small workloads: the inputs, the written files, and that no number on the page is typed in."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import walltime as wt
from tests.cli import call
from tests.errors import raises
from tests.profiles import PROFILE
from validation.paper_experiments import MODULES, experiments
from walltime.errors import PolicyError
from walltime.logs import write_swf
from walltime.metrics import rank_correlation
from walltime.papers.items import Item, items_of
from walltime.papers.mualem01.experiment import chaos
from walltime.papers.mualem01.months import infer_start
from walltime.papers.printed import PAPERS, Printed, paper_name, printed
from walltime.papers.results import Chart, Value
from walltime.papers.run import run_paper
from walltime.papers.study import Study
from walltime.papers.subjects import Subject, find_subjects
from walltime.papers.tsafrir06.sweep import Sweep, smooth

JOBS = 400


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Subject:
    """A small log of one's own, with users' estimates, status and users."""
    w = wt.workloads.Lublin99().generate(JOBS, 32, 0.9, seed=3)
    requested = np.maximum(w.runtime, 60) * 2
    columns = {"status": np.where(np.arange(JOBS) % 7 == 0, 0, 1), "user": np.arange(JOBS) % 5}
    log = wt.Workload.from_arrays(submit=w.submit, runtime=w.runtime, procs=w.procs, requested=requested, machine_procs=32, columns=columns)
    file = tmp_path_factory.mktemp("log") / "own.swf.gz"
    write_swf(file, log, extra_header=["; UnixStartTime: 851990400", "; TimeZoneString: UTC"])
    return Subject("own", "other", file, "not a log of the paper", {})


@pytest.fixture
def tiny(monkeypatch) -> None:
    """Few jobs, seeds and values of f everywhere, so that all items of a paper run in seconds."""
    from walltime.papers import subjects
    from walltime.papers.mualem01 import models
    from walltime.papers.tsafrir06 import performance, sweep

    for paper in PAPERS:
        given = printed(paper)
        logs = {name: {**facts, "jobs": 300} for name, facts in given.logs.items()}
        monkeypatch.setitem(given.__dict__, "logs", logs)
    monkeypatch.setattr(models, "FEW_BATCHES", 3)
    monkeypatch.setattr(models, "FEW_LOADS", (0.6,))
    monkeypatch.setattr(models, "MODELS", {name: (m, p, 60) for name, (m, p, _) in models.MODELS.items()})
    monkeypatch.setattr(sweep, "FEW_SEEDS", 2)
    for module in (sweep, performance):
        monkeypatch.setattr(module, "COARSE", (0.0, 1.0, 10.0))
    assert subjects.GENERATED


def draw_only(monkeypatch, wanted: Callable[[str], bool]) -> None:
    """Figures are made, but drawn only where the format is wanted: drawing takes most of the time."""
    draw = Figure.savefig

    def write(figure: Figure, file, **options) -> None:
        if wanted(options["format"]):
            draw(figure, file, **options)
        else:
            file.write("<svg viewBox=''></svg>" if options["format"] == "svg" else b"not drawn")

    monkeypatch.setattr(Figure, "savefig", write)


@pytest.fixture
def undrawn(monkeypatch) -> None:
    """No figure is drawn."""
    draw_only(monkeypatch, lambda kind: False)


@pytest.fixture
def drawn_once(monkeypatch) -> None:
    """Every figure is drawn for the page, and the first one into files too; all of them in a nightly run."""
    seen: set[str] = set()

    def wanted(kind: str) -> bool:
        first = kind not in seen
        seen.add(kind)
        return first or kind == "svg" or PROFILE == "nightly"

    draw_only(monkeypatch, wanted)


SOME_PAPERS = pytest.mark.parametrize(
    "paper", [paper if paper == "feitelson98" else pytest.param(paper, marks=pytest.mark.nightly) for paper in PAPERS]
)


@pytest.mark.slow
@SOME_PAPERS
def test_run_paper__without_logs_runs_every_item_on_generated_workloads_and_says_so(paper, tiny, drawn_once, tmp_path):
    names = [name for name, facts in printed(paper).logs.items() if not facts.get("substitute")][:2]
    subjects = find_subjects(printed(paper), only=names, folders=[tmp_path / "nowhere"], made=tmp_path)
    assert [s.kind for s in subjects] == ["generated"] * len(names)
    done = run_paper(paper, items_of(paper), subjects, tmp_path, quick=True)
    assert done.jobs > 0
    page = done.page.read_text()
    for result in done.results:
        assert result.title in page.replace("&#x27;", "'")
        for part in result.tables:
            assert (tmp_path / "numbers" / f"{part.name}.csv").is_file()
        if not next(item for item in items_of(paper, result.item)).where:
            assert "GENERATED" in result.where
    assert "Generated workloads stand for" in page
    figures = {file.suffix for file in (tmp_path / "figures").iterdir()}
    assert figures == ({".pdf", ".png"} if any(isinstance(part, Chart) for result in done.results for part in result.parts) else set())
    assert not any(value.printed is not None for result in done.results for value in result.values() if result.item in ("T3", "T4", "T1b"))


@pytest.mark.slow
@SOME_PAPERS
def test_run_paper__runs_every_item_on_any_other_log(paper, tiny, undrawn, small, tmp_path):
    done = run_paper(paper, items_of(paper), [small], tmp_path, quick=True)
    assert len(done.results) == len(items_of(paper))
    for item, result in zip(items_of(paper), done.results, strict=True):
        assert ("not a log of the paper" in result.where) == (not item.where)
        compared = [value for value in result.values() if not item.where]
        assert not compared, f"{item.name} compares another log with printed numbers"


@pytest.mark.nightly
def test_run_paper__counts_jobs_simulated_on_threads_without_a_campaign(small, tmp_path):
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[5, 5, 5], procs=[1, 2, 1], machine_procs=2)

    def simulates(study):
        study.kept("three", [{"number": number} for number in range(4)], lambda task, check: float(wt.simulate(jobs, "easy").wait.mean()))
        return []

    simulates.__module__ = "walltime.papers.tsafrir06.test"
    item = Item("X", "three jobs, four times", simulates)
    assert run_paper("tsafrir06", [item], [small], tmp_path, workers=2).jobs == 12
    assert run_paper("tsafrir06", [item], [small], tmp_path, workers=2).jobs == 0


@pytest.mark.slow
def test_run_paper__finds_what_was_run_before(tiny, small, tmp_path):
    first = run_paper("tsafrir06", items_of("tsafrir06", "F4"), [small], tmp_path, quick=True)
    again = run_paper("tsafrir06", items_of("tsafrir06", "F4"), [small], tmp_path, quick=True)
    assert first.jobs > 0
    assert again.jobs == 0
    assert again.page.read_bytes() == first.page.read_bytes()


def kth_like(small: Subject) -> Subject:
    """The small log in the place of the paper's KTH log, so that it is compared with the printed numbers."""
    return replace(small, name="KTH", kind="paper", facts={**printed("mualem01").logs["KTH"], "procs": 32})


@pytest.mark.slow
def test_page__a_perturbed_result_changes_it(tiny, small, tmp_path, monkeypatch):
    subject = kth_like(small)
    plain = run_paper("mualem01", items_of("mualem01", "T4"), [subject], tmp_path / "a", quick=True)
    table = next(t for t in plain.results[0].tables if t.name == "table4")
    before = next(entry for entry in table.rows[0] if isinstance(entry, Value))
    cells = Study.cells

    def perturbed(self: Study, *args, **kwargs) -> pl.DataFrame:
        return cells(self, *args, **kwargs).with_columns(pl.col("mean_response") * 1.5)

    monkeypatch.setattr(Study, "cells", perturbed)
    changed = run_paper("mualem01", items_of("mualem01", "T4"), [subject], tmp_path / "b", quick=True)
    shown = f"{1.5 * before.ours:,.0f}"
    assert shown in changed.page.read_text()
    assert shown not in plain.page.read_text()
    deviation = f"{100 * (1.5 * before.ours / before.printed - 1):+.1f} %"
    assert deviation in changed.page.read_text()
    rows = list(csv.reader((tmp_path / "b" / "numbers" / "table4.csv").read_text().splitlines()))
    assert float(rows[1][3]) == pytest.approx(1.5 * before.ours)


@pytest.mark.slow
def test_page__the_printed_number_is_that_of_the_data_file(tiny, small, tmp_path, monkeypatch):
    subject = kth_like(small)
    tables = printed("mualem01").tables
    row = tables["T4"].find(log="KTH", policy="easy", estimates="user", metric="response")
    monkeypatch.setitem(row, "value", 12_345)
    done = run_paper("mualem01", items_of("mualem01", "T4"), [subject], tmp_path, quick=True)
    assert "12,345" in done.page.read_text()


def test_page__a_reproduced_number_and_one_that_is_off_look_different():
    assert Value(100, 101, 0.02).verdict == "reproduced"
    assert Value(100, 150, 0.02).verdict == "off"
    assert Value(100, 150, 0.02, band=(90, 160)).verdict == "chaos"
    assert Value(100, None, 0.02).verdict == ""
    assert Value(float("nan"), 100, 0.02).verdict == ""


def test_chaos__means_over_seeds_and_single_runs():
    cells = np.array([90.0, 110.0])
    low, high = chaos(cells, None)
    assert low == pytest.approx(100 - 1.645 * cells.std(ddof=1))
    assert high == pytest.approx(200 - low)
    assert chaos(np.array([100.0]), np.arange(101.0)) == (5.0, 95.0)
    assert chaos(np.array([100.0]), None) is None


def test_printed__sums_and_differences_of_the_tables_agree_with_the_papers():
    months = printed("mualem01").tables["T1"].rows
    sums = {log: sum(row["jobs"] for row in months if row["log"] == log) for log in ("CTC", "KTH", "SDSC", "Par", "CM5")}
    assert sums == {"CTC": 79_289, "KTH": 26_443, "SDSC": 67_665, "Par": 113_978, "CM5": 96_386}
    both = [printed("mualem01").tables[name] for name in ("T3", "T4")]
    for row in both[1].rows:  # what both tables print is the same, but for the number of digits
        if row["estimates"] == "user":
            where = {name: row[name] for name in ("log", "policy", "estimates", "metric")}
            assert both[0].value("value", **where) == pytest.approx(row["value"], abs=0.05)
    assert len(printed("feitelson98").tables["T1b"].rows) == 12
    assert all(printed(paper).source for paper in PAPERS)


def test_items__every_printed_table_and_figure_is_there():
    names = {paper: {item.name for item in items_of(paper)} for paper in PAPERS}
    assert names["feitelson98"] >= {"T1", "T2", "F3", "F4"}
    assert names["mualem01"] >= {"T1", "T2", "T3", "T4", *(f"F{k}" for k in range(1, 10)), "S43"}
    assert names["tsafrir06"] >= {"T1", "T2", *(f"F{k}" for k in range(1, 14))}
    assert names["gaussier15"] >= {"triples", "best"}
    assert names["tang13"] >= {"T1", "T2", "T3", "F1", "F2", *(f"F{k}" for k in range(4, 18))}
    assert {name: [item.name for item in experiments(name)] for name in MODULES} == {
        "mualem01": ["readings"],
        "tang13": ["easypp"],
        "gaussier15": ["readings", "shaken"],
        "zhang20": ["meant", "easy"],
    }
    assert len({(item.paper, item.name) for paper in PAPERS for item in items_of(paper)}) == sum(len(items_of(paper)) for paper in PAPERS)


def test_paper_name__in_any_case():
    assert [paper_name(name.upper()) for name in PAPERS] == list(PAPERS)
    assert items_of("mualem01", "T3") == items_of("mualem01", "t3")
    with raises(PolicyError, "unknown_paper"):
        printed("P9")


def test_items__come_in_the_order_of_the_papers_and_lie_in_their_folders():
    for paper in PAPERS:
        assert {item.paper for item in items_of(paper)} == {paper}
        assert items_of(paper) == sorted(items_of(paper), key=Item.place)


def test_reproduction_tables__read_files_that_name_papers_by_label(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[3] / "docs" / "generators")
    tables = importlib.import_module("reproduction_tables")
    file = tmp_path / "stored.json"
    part = {"claims": {}, "tables": {"table3": {"columns": ["log"], "rows": [["KTH"]]}}}
    file.write_text(json.dumps({"tang13": part, "mualem01": part, "feitelson98": part}))
    assert list(tables.load(file)) == ["feitelson98", "mualem01", "tang13"]
    assert "KTH" in tables.reproduction("mualem01/table3", file)
    assert "mualem01" in tables.reproduction("summary", file)


def test_infer_start__finds_the_start_from_the_months_counts():
    from datetime import UTC, datetime

    random = np.random.default_rng(1)
    begin = round(datetime(1998, 4, 20, 13, 30, tzinfo=UTC).timestamp())
    end = np.sort(random.integers(11 * 86_400, 100 * 86_400, 5000))
    bounds = [round(datetime(1998, month, 1, tzinfo=UTC).timestamp()) - begin for month in (5, 6, 7)]
    counts = np.diff(np.searchsorted(end, bounds)).tolist()
    found, away = infer_start(end, counts, (1998, 5), UTC)
    assert away == 0
    assert abs(found - begin) < 3 * 3600


def test_rank_correlation__shares_ranks_of_equal_values():
    assert rank_correlation(np.array([1, 2, 2, 4.0]), np.array([1, 2, 2, 4.0])) == pytest.approx(1)
    assert rank_correlation(np.array([1, 2, 3.0]), np.array([3, 2, 1.0])) == pytest.approx(-1)


class Curve(Sweep):
    """A sweep whose mean curve is given."""

    def mean(self, metric):
        return self.rows

    def error(self, metric):
        return np.full(len(self.f), 0.001)

    def real(self, metric):
        return 95.0


def curve(f, values) -> Curve:
    return Curve(None, np.array(f, float), np.array(values, float), False)


@pytest.mark.parametrize(
    ("values", "shape"),
    [([100, 90, 80, 80, 80], "L"), ([100, 90, 80, 90, 95], "V"), ([100, 101, 103, 110, 120], "rising"), ([100] * 5, "flat")],
)
def test_sweep__shapes(values, shape):
    assert curve([0, 1, 2, 3, 4], values).shape("any")[0] == shape


def test_sweep__crossing_is_the_last_one_upwards():
    assert curve([0, 1, 2, 3], [100, 90, 85, 105]).crossing("any") == pytest.approx(2.5)
    assert curve([0, 1, 2, 3], [100, 90, 85, 90]).crossing("any") is None
    assert curve([0, 10, 100], [100, 85, 105]).crossing("any") == pytest.approx(10**1.5)


def test_smooth__keeps_the_exact_point_and_averages_neighbours():
    f = np.array([0, 0.1, 0.2, 0.3, 5.0])
    found = smooth(f, np.array([9.0, 1.0, 2.0, 3.0, 7.0]))
    assert found.tolist() == [9.0, 2.0, 2.0, 2.0, 7.0]


def test_find_subjects__takes_the_papers_log_where_it_is_and_another_version_where_not(tmp_path):
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").write_bytes(b"")
    (tmp_path / "SDSC-SP2-1998-4.recon.swf.gz").write_bytes(b"")
    given = printed("mualem01")
    kth, sdsc = find_subjects(given, only=["KTH", "SDSC"], folders=[tmp_path], made=tmp_path)
    assert kth.file.name == "KTH-SP2-1996-2.1-cln.swf.gz"
    assert "reconstruction" in sdsc.about
    (tmp_path / "KTH-SP2-1996-2.swf.gz").write_bytes(b"")
    assert find_subjects(given, only=["KTH"], folders=[tmp_path], made=tmp_path)[0].file.name == "KTH-SP2-1996-2.swf.gz"
    with raises(PolicyError, "unknown_log", "'XYZ'"):
        find_subjects(given, only=["XYZ"], folders=[tmp_path], made=tmp_path)


def test_generated__has_the_size_and_the_load_of_the_log(tmp_path):
    facts = {**printed("tsafrir06").logs["KTH"], "jobs": 2000}
    given = Printed("tsafrir06", "", "", {"KTH": facts}, {}, {}, {})
    subject = find_subjects(given, folders=[tmp_path], made=tmp_path)[0]
    w = subject.workload
    assert (len(w), w.machine_procs) == (2000, 100)
    assert w.offered_load == pytest.approx(0.69, abs=0.03)
    assert w.requested.max() <= 216_000
    assert (w.requested >= w.runtime).all()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (
            ["paper", "run", "P9"],
            2,
        ),
        (["paper", "run", "tsafrir06", "--item", "F99"], 2),
        (["paper", "run", "tsafrir06", "--subject", "NIX"], 2),
        (["paper", "run", "tsafrir06", "--logs", "nowhere"], 2),
        (["paper", "run", "tsafrir06", "--trace", "a.swf", "--subject", "KTH"], 2),
        (["paper", "run", "tsafrir06", "--trace", "nothing.swf"], 1),
        (["paper", "list", "P9"], 2),
    ],
)
def test_cli__bad_calls_give_one_line(golden, arguments, status, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found, out, err = call(capsys, *arguments)
    assert (found, out) == (status, "")
    golden("paper", err)
    assert err.count("\n") == 1


@pytest.mark.slow
def test_cli__list_and_run(golden, small, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    listed = json.loads(call(capsys, "paper", "list", "--json")[1])["papers"]
    assert list(listed) == list(PAPERS)
    assert json.loads(call(capsys, "paper", "list", "tsafrir06", "--json")[1])["papers"] == {"tsafrir06": listed["tsafrir06"]}
    golden("paper", call(capsys, "paper", "list", "tsafrir06")[1], listed["tsafrir06"]["items"])
    arguments = ["paper", "run", "tsafrir06", "--item", "F2", "--trace", str(small.file), "--out", "here"]
    status, out, err = call(capsys, *arguments)
    assert status == 0, err
    assert "Fig. 2" in out
    assert (tmp_path / "here" / "index.html").is_file()
    record = json.loads(call(capsys, *arguments, "--json")[1])
    assert record["items"][0]["item"] == "F2"
    assert record["paper"] == "tsafrir06"
    assert record["source"].startswith("Tsafrir and Feitelson")
    assert "Tsafrir and Feitelson" in err
    assert "tsafrir06 reproduced" in (tmp_path / "here" / "index.html").read_text()
    assert record["jobs_simulated"] == 0
