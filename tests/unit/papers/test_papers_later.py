"""The later studies, on small inputs: the windows and sequences, and whole items without any log."""

import numpy as np
import pytest

import walltime as wt
from walltime.papers import zhang20
from walltime.papers.carastan17 import FIRST, LENGTH, sequences
from walltime.papers.items import items_of
from walltime.papers.printed import printed
from walltime.papers.run import run_paper
from walltime.papers.subjects import find_subjects


def log(count: int, gap: int = 600) -> wt.Workload:
    submit = gap * np.arange(count)
    procs, asked = 1 + np.arange(count) % 3, 1 + np.arange(count) % 4
    return wt.Workload.from_arrays(
        submit=submit, runtime=np.full(count, 900), procs=procs, machine_procs=4, columns={"requested_procs": asked, "user": procs}
    )


def test_windows__those_of_the_paper_or_as_many_as_there_are():
    ten = zhang20.windows(log(10_000))
    assert [int(one.submit[0]) // 600 for one in ten] == list(zhang20.STARTS)
    assert {len(one) for one in ten} == {1024}
    assert ten[0].procs.tolist()[:4] == [max(1 + k % 3, 1 + k % 4) for k in range(1981, 1985)]
    few = zhang20.windows(log(1026))
    assert [int(one.submit[0]) // 600 for one in few] == [0, 1, 2]
    assert [len(one) for one in zhang20.windows(log(1000))] == [1000]


def test_sequences__of_15_days_each_from_its_own_start():
    found = sequences(log(5000))
    assert [len(one) for one in found] == [LENGTH // 600, LENGTH // 600, 5000 - 2 * LENGTH // 600]
    assert all(one.submit[0] == 0 for one in found)
    assert all(one.columns["queue"].sum() == FIRST for one in found)
    assert sequences(log(50)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("paper", ["zhang20", "carastan17"])
def test_items__run_without_any_log(paper, tmp_path):
    subjects = find_subjects(printed(paper), made=tmp_path, generated=True, folders=[tmp_path])[:1]
    small = tmp_path / "small.swf"
    wt.logs.write_swf(small, wt.read(subjects[0].file).take(np.arange(6000), "the first 6,000"))
    subjects = find_subjects(printed(paper), made=tmp_path, traces=[small])
    done = run_paper(paper, items_of(paper), subjects, tmp_path / "out", quick=True)
    assert all(np.isfinite(value.ours) for result in done.results for value in result.values())
    assert any(claim.holds is not None for result in done.results for claim in result.claims)
    assert done.page.is_file()
    assert done.jobs > 0
    again = run_paper(paper, items_of(paper), subjects, tmp_path / "out", quick=True)
    assert [result.claims for result in again.results] == [result.claims for result in done.results]
