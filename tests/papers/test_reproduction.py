"""What the three papers print and what comes out here, on the logs at hand: numbers, signs, shapes; the misses are named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.traces import trace_folder, trace_path
from walltime.papers.items import items_of
from walltime.papers.printed import printed
from walltime.papers.results import Result, Value
from walltime.papers.run import describe
from walltime.papers.study import Study
from walltime.papers.subjects import find_subjects
from walltime.papers.tsafrir06.sweep import Sweep, run_sweep

FILES = {
    "KTH": "KTH-SP2-1996-2",
    "CTC": "CTC-SP2-1996-3.1-cln.recon",
    "SDSC": "SDSC-SP2-1998-4.x-cln.recon",
    "BLUE": "SDSC-BLUE-2000-4.x-cln.recon",
    "CM5": "LANL-CM5-1994-4.1-cln",
}
MUALEM01_FILES = FILES | {"SDSC": "SDSC-SP2-1998-4.recon"}
F = (0.0, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 100.0)


def study(paper: str, log: str, folder) -> Study:
    trace_path((MUALEM01_FILES if paper == "mualem01" else FILES)[log])
    subjects = find_subjects(printed(paper), only=[log], folders=[trace_folder()], made=folder)
    assert subjects[0].kind == "paper"
    return Study(printed(paper), subjects, folder)


def run(paper: str, item: str, log: str, folder):
    found = Result(item, "", "", list(items_of(paper, item)[0].run(study(paper, log, folder))))
    return found.values(), found.claims, found


def failing(claims) -> set[str]:
    return {what.split(":")[0] for what, holds, _ in claims if holds is not None and not holds}


def test_p2_table_1_kth__jobs_and_loads_of_all_ten_months(tmp_path):
    values, claims, found = run("mualem01", "T1", "KTH", tmp_path)
    judged = [value.verdict for value in values if value.within is not None]
    assert judged == ["reproduced"] * 30
    assert len(found.tables[0].rows) == 10
    # EASY's slowdown by month correlates with print by 0.88; conservative is better than EASY here, worse in print
    assert failing(claims) == {"KTH, slowdown, easy", "KTH, slowdown"}
    assert any("without kills" in what and holds for what, holds, _ in claims)


def test_p2_table_1_ctc__start_inferred_and_all_months_but_that_of_the_flurry(tmp_path):
    values, _, found = run("mualem01", "T1", "CTC", tmp_path)
    jobs = {row[1]: row[4] for row in found.tables[0].rows}
    off = {month for month, value in jobs.items() if value.verdict != "reproduced"}
    assert len(jobs) == 11
    assert off == {"1997-01"}  # the cleaned log lacks the flurry of that month
    assert all(row[2].verdict == "reproduced" for row in found.tables[0].rows)  # loads
    assert "June 1996" in found.notes[0]
    assert values


def test_p2_table_1_sdsc__start_inferred_and_months_agree(tmp_path):
    _, claims, found = run("mualem01", "T1", "SDSC", tmp_path)
    jobs = [row[4] for row in found.tables[0].rows]
    assert len(jobs) == 24
    assert max(abs(value.deviation) for value in jobs) < 0.015
    loads = {row[1]: row[2] for row in found.tables[0].rows}
    assert {month for month, value in loads.items() if value.verdict == "off"} == {"1998-08", "1998-10", "2000-02"}  # overruns are cut off
    assert "SDSC, response, conservative" not in failing(claims)


def test_p2_table_1_cm5__months_of_the_cleaned_log(tmp_path):
    _, claims, found = run("mualem01", "T1", "CM5", tmp_path)
    assert len(found.tables[0].rows) == 20
    assert not failing(claims) & {"CM5, response, easy", "CM5, response, conservative", "CM5, slowdown, easy"}


def test_p2_table_2_kth__every_number(tmp_path):
    values, _, _ = run("mualem01", "T2", "KTH", tmp_path)
    assert [value.verdict for value in values] == ["reproduced"] * 7


@pytest.mark.parametrize(("item", "count", "off"), [pytest.param("T3", 32, [15_391, 15_651], marks=pytest.mark.nightly), ("T4", 8, [])])
def test_p2_tables_3_and_4_kth__within_the_criteria_or_the_chaos(item, count, off, tmp_path):
    values, claims, _ = run("mualem01", item, "KTH", tmp_path)
    assert len(values) == count
    # the response of conservative backfilling at f = 31 and 301 is 2.2 and 2.4 % under print
    assert [value.printed for value in values if value.verdict == "off"] == off
    # EASY against conservative with the users' estimates is the one comparison that is the other way round
    assert failing(claims) == {"KTH, slowdown, original"}


@pytest.mark.nightly
def test_p1_table_2_kth__every_comparison_of_the_policies(tmp_path):
    values, claims, _ = run("feitelson98", "T2", "KTH", tmp_path)
    assert len(values) == 14
    # feitelson98 and mualem01 print other numbers for the same experiments; ours are nearer to mualem01's
    assert sum(value.verdict == "reproduced" for value in values) == 7
    assert failing(claims) <= {"KTH, original"}


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """A coarse sweep of each log of tsafrir06, a few seeds."""
    found: dict[tuple[str, bool], Sweep] = {}

    def get(log: str, truncated: bool = False) -> Sweep:
        if (log, truncated) not in found:
            s = study("tsafrir06", log, tmp_path_factory.mktemp(log))
            f = F if not truncated else (*F, 1000.0)
            found[log, truncated] = run_sweep(
                s, s.subjects[0], seeds=20 if log == "BLUE" and not truncated else 6, f=f, truncated=truncated, dynamics=not truncated
            )
        return found[log, truncated]

    return get


CTC, SDSC, BLUE = (pytest.param(log, marks=pytest.mark.nightly) for log in ("CTC", "SDSC", "BLUE"))
LOGS = pytest.mark.parametrize("log", [CTC, "KTH", SDSC, BLUE])


@pytest.mark.parametrize("metric", ["mean_wait", "mean_bounded_slowdown"])
@pytest.mark.parametrize("log", [CTC, "KTH", BLUE])
def test_p3__almost_all_f_over_0_are_better_than_0(log, metric, sweeps):
    mean = sweeps(log).mean(metric)
    assert (mean[1:7] < mean[0]).all()


@pytest.mark.nightly
def test_p3__sdsc_is_the_exception(sweeps):
    mean = sweeps("SDSC").mean("mean_wait")
    assert (mean[5:] > mean[0]).all()


@pytest.mark.parametrize(
    ("log", "metric", "shape"),
    [
        ("CTC", "mean_wait", "L"),
        ("CTC", "mean_bounded_slowdown", "L"),
        ("BLUE", "mean_wait", "V"),
        ("BLUE", "mean_bounded_slowdown", "V"),
        ("SDSC", "mean_wait", "V"),
    ],
)
@pytest.mark.nightly
def test_p3__shapes(log, metric, shape, sweeps):
    sweep = sweeps(log)
    if log == "SDSC":  # its first fall is 3 % and ends at f = 0.2, too short for a coarse grid's smoothing
        mean = sweep.mean(metric)
        assert mean[1:3].min() < mean[0] < mean[-1]
    else:
        assert sweep.shape(metric)[0] == shape


@LOGS
def test_p3__backfilling_rises_with_f(log, sweeps):
    for metric in ("backfilled_percent", "mean_runtime_backfilled"):
        mean = sweeps(log).mean(metric)[[0, 3, 4, 5, 6]]
        assert (np.diff(mean) > 0).all()


@LOGS
def test_p3__no_wild_backfill_with_perfect_estimates_and_more_with_f(log, sweeps):
    wild = sweeps(log).mean("wild_percent")
    assert wild[0] == 0
    assert (np.diff(wild) > 0).all()
    assert 1.5 < wild[6] < 5
    assert sweeps(log).mean("shadow_moves")[0] == 0


@LOGS
def test_p3__sjfness_is_an_inverted_v(log, sweeps):
    values = sweeps(log).mean("sjfness")
    top = int(np.argmax(values))
    assert 0 < top < len(values) - 1
    assert values[0] < values[top] > values[-1]


@LOGS
@pytest.mark.parametrize("metric", ["mean_wait", "mean_bounded_slowdown"])
def test_p3__the_truncated_model_crosses_the_real_line_and_the_vanilla_one_does_not(log, metric, sweeps):
    assert sweeps(log, truncated=True).crossing(metric) is not None
    assert sweeps(log).crossing(metric) is None


@pytest.mark.nightly
def test_p3_sdsc__the_modal_model_comes_nearest(tmp_path):
    _, claims, _ = run("tsafrir06", "modal", "SDSC", tmp_path)
    assert any("nearer to the real estimates" in what and holds for what, holds, _ in claims)


def test_titles__say_what_a_reconstruction_is(tmp_path):
    s = study("mualem01", "SDSC", tmp_path)
    assert "reconstruction" in describe(s.subjects, False)
    assert isinstance(Value(1.0).verdict, str)
