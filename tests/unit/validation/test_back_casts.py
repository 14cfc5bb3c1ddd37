"""Rules of before a recorded change, with the change, predict the waits after it (validation/back_casts.py)."""

from __future__ import annotations

import pytest

import walltime as wt
from tests.traces import trace_path
from validation import back_casts
from walltime.logs.convert import write_workload


def test_back_cast__of_a_log_without_waits_is_refused_in_one_line(tmp_path, capsys):
    path = tmp_path / "log.swf"
    write_workload(path, wt.workloads.Lublin99().generate(jobs=200, machine_procs=64, load=0.7, seed=1))
    assert back_casts.main([str(path), "--date", "2d"]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.nightly
def test_back_cast__of_kth_is_right_about_may_1997():
    rows = {row["machine"]: row for row in back_casts.back_cast(wt.read(trace_path("KTH-SP2-1996-2")), "1997-05-01", "08:00")["rows"]}
    names = ("plain EASY", "the rules of before", "the rules of before, changed")
    plain, kept, changed = (abs(rows[name]["error_after"]) for name in names)
    assert changed < min(plain, kept)
    assert rows[names[-1]]["within"]
