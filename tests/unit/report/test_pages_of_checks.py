"""The pages of what one command says: why a job waited, what an audit found."""

from dataclasses import replace

import numpy as np
import pytest

from tests.cli import call
from tests.pages import outline
from walltime import Conservative, Easy, Workload, simulate
from walltime.auditor import audit
from walltime.checking.audit_page import audit_page
from walltime.explanation import explain
from walltime.explanation.page import explanation_page
from walltime.report.html import render
from walltime.workload.models import Lublin99


@pytest.fixture(scope="module")
def jobs():
    return Lublin99().generate(300, 64, load=0.9, seed=2)


@pytest.fixture(scope="module")
def easy(jobs):
    return simulate(jobs, Easy())


def longest(schedule):
    return int(schedule.workload.job_id[np.argmax(schedule.wait)])


@pytest.mark.slow
def test_explanation__says_why_and_what_would_have_helped(golden):
    w = Workload.from_arrays(submit=[0, 1, 2], runtime=[100, 10, 50], requested=[100, 10, 200], procs=[3, 4, 1], machine_procs=4)
    page = explanation_page(explain(simulate(w, Easy()), 3), ["walltime"])
    golden("explain", page.answer[0])
    assert [value for _, value in page.numbers] == ["1 min 48 s", "n/a", "0", "1 min 48 s"]
    html = render(page)
    golden("explain", outline(html))
    assert "Jobs that overtook it" not in html


@pytest.mark.slow
def test_explanation__of_a_job_that_started_at_once_or_was_not_varied(golden, easy):
    at_once = int(easy.workload.job_id[np.flatnonzero(easy.wait == 0)[0]])
    page = explanation_page(explain(easy, at_once), [])
    golden("explain", page.answer)
    assert page.picture is None
    page = explanation_page(explain(easy, longest(easy)), [])
    assert " processors instead of " not in page.answer[0]  # as it would not run as long on them
    page = explanation_page(explain(easy, longest(easy), sooner=False), [])
    assert page.numbers[-1][1] == "not tried"
    assert "It would have" not in page.answer[0]


def test_audit__says_what_is_kept_or_broken_first(golden, jobs, easy):
    columns = {"job_id": jobs.job_id, "start": easy.start, "end": easy.end}
    page = audit_page(jobs, columns, audit(jobs, columns, Easy()), "ours.csv", "EASY", [])
    golden("audit", page.answer[0])
    assert page.numbers[0] == ("rules broken", "0")
    broken = audit(jobs, columns, Conservative())
    page = audit_page(jobs, columns, broken, "ours.csv", "conservative", [])
    golden("audit", page.answer[0])
    assert f"first at {jobs.origin.when(broken.first.time)}: job " in page.answer[0]
    assert [section.title for section in page.sections] == ["Broken rules", "Checked rules"]
    alone = audit_page(jobs, columns, audit(jobs, columns), "ours.csv", None, [])
    golden("audit", alone.answer[0])


def test_audit__the_axis_has_dates_if_the_log_has(jobs, easy):
    columns = {"job_id": jobs.job_id, "start": easy.start, "end": easy.end}
    for start, label in ((1_600_000_000, ""), (None, "hours since the first start")):
        dated = replace(jobs, origin=replace(jobs.origin, unix_start_time=start))
        page = audit_page(dated, columns, audit(dated, columns), "the recorded schedule", None, [])
        [axes] = page.picture.figure.axes
        assert axes.get_xlabel() == label
        assert page.answer[0].startswith("The recorded schedule ")


def test_audit__jobs_that_the_log_lacks_are_not_drawn(jobs, easy):
    columns = {"job_id": np.append(jobs.job_id, 10**6), "start": np.append(easy.start, 0), "end": np.append(easy.end, 5)}
    render(audit_page(jobs, columns, audit(jobs, columns), "theirs.csv", None, []))


@pytest.mark.slow
def test_commands__write_them(tmp_path, capsys):
    log = tmp_path / "a.swf"
    assert call(capsys, "generate", "lublin99", "--jobs", 120, "--out", log)[0] == 0
    assert call(capsys, "simulate", log, "--policy", "easy", "--out", tmp_path / "easy.csv")[0] == 0
    for name, words in {
        "explain": ("explain", log, "--job", 5, "--no-sooner"),
        "waits": ("explain", log, "--longest", 3),
        "audit": ("audit", log, tmp_path / "easy.csv", "--policy", "easy"),
        "clean": ("clean", log, "--head", 50),
    }.items():
        status, out, _ = call(capsys, *words, "--report", tmp_path / f"{name}.html")
        assert status == 0
        assert f"report written to {tmp_path / name}.html" in out
        assert "walltime:" in (tmp_path / f"{name}.html").read_text()
