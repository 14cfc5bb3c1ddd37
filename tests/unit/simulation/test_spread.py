"""How far averages move when the log is shaken, and what is said of differences that this can undo."""

import json
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from tests.traces import trace_path
from walltime.comparison.answers import answer, distinct
from walltime.comparison.caveats import caveats_of, longest_queue
from walltime.metrics import Summary
from walltime.schedule.schedule import labels
from walltime.simulation import Spread, shaking_spread

JOBS = wt.workloads.Lublin99().generate(400, 32, 0.8, 3)


@pytest.fixture(scope="module")
def schedules():
    return [wt.simulate(JOBS, policy) for policy in ("fcfs", "easy", "conservative")]


def spread_of(schedules, waits, slowdowns) -> Spread:
    """A spread with these values for each schedule: the first is the log's own."""

    def summaries(k: int) -> list[Summary]:
        base = schedules[k].summary()
        return [replace(base, mean_wait=w, mean_bounded_slowdown=s) for w, s in zip(waits[k], slowdowns[k], strict=True)]

    of = [summaries(k) for k in range(len(waits))]
    return Spread(30, [one[0] for one in of], [one[1:] for one in of])


def test_spread__worked_by_hand(schedules):
    found = spread_of(schedules[:2], [[10, 10, 10], [12, 13, 14]], [[1, 1, 1], [1, 2, 0]])
    mean, scatter = found.difference("mean_wait", 0, 1)
    assert mean == 3
    assert scatter == pytest.approx(2.919986 * 1 * np.sqrt(1 + 1 / 3))  # t of 2 degrees of freedom, standard deviation 1
    assert not found.clear("mean_wait", 0, 1)
    assert found.difference("mean_wait", 1, 0) == (-3, scatter)
    assert spread_of(schedules[:2], [[10, 10], [12, 12]], [[1, 1], [1, 1]]).clear("mean_wait", 0, 1)


def test_shaking_spread__simulates_the_same_copies_under_every_policy(schedules):
    found = shaking_spread(schedules)
    assert found is not None
    assert (found.seconds, found.copies) == (30, 5)
    for schedule, summaries, own in zip(schedules, found.shaken, found.own, strict=True):
        assert own.as_dict() == schedule.summary().as_dict()
        for seed, summary in enumerate(summaries):
            assert summary.as_dict() == wt.simulate(wt.workloads.shake(JOBS, 30, seed), schedule.policy).summary().as_dict()
    assert found.clear("mean_wait", 0, 1), "first come, first served waits much longer"


def test_shaking_spread__is_unknown_where_it_would_take_long(schedules):
    assert shaking_spread([replace(schedules[0], seconds={"simulate": 1.1})]) is None
    assert shaking_spread([wt.simulate(JOBS, "fcfs", engine="reference")]) is None
    assert shaking_spread([wt.simulate(wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=1), "fcfs")]) is None


def said(schedules, summaries, spread) -> str:
    return answer("log", labels(schedules), schedules, summaries, spread)


def test_answer__a_difference_within_the_scatter_is_none(golden, schedules):
    two = schedules[1:]
    both = spread_of(two, [[7860, 7860, 7860], [7680, 8000, 7700]], [[37.4, 37, 37], [36.2, 38, 36]])
    told = said(two, both.own, both)
    golden("compare", told)
    assert "cuts" not in told
    assert "raises" not in told
    one = spread_of(two, [[7860, 7860, 7860], [3600, 3610, 3605]], [[37.4, 37, 37], [36.2, 38, 36]])
    golden("compare", said(two, one.own, one))
    clear = spread_of(two, [[7860, 7860, 7860], [3600, 3610, 3605]], [[37, 37, 37], [20, 20.5, 20]])
    told = said(two, clear.own, clear)
    golden("compare", told)
    assert "other logs" not in said(two, both.own, both)
    assert "other logs" not in said(two, clear.own, None), "without copies nothing is called clear"


def test_answer__a_small_difference_of_unknown_scatter_is_none(golden, schedules):
    two = schedules[1:]
    summaries = spread_of(two, [[7860, 1], [7680, 1]], [[37.4, 1], [20, 1]]).own
    told = said(two, summaries, None)
    golden("compare", told)
    assert distinct("mean_bounded_slowdown", 0, 1, summaries, None)


def test_answer__the_best_of_many_names_its_equals(golden, schedules):
    five = [schedules[1]] * 5
    waits = [[100 + 100 * (k // 2), 101 + 100 * (k // 2) + k % 2, 100 + 100 * (k // 2)] for k in range(5)]
    found = spread_of(five, waits, [[9 - k, 9 - k, 9 - k] for k in range(5)])
    waits[1][0] = 101
    golden("compare", said(five, found.own, found))
    found = spread_of(five, waits, [[9 - k, 9 - k, 9 - k] for k in range(5)])
    golden("compare", said(five, found.own, found))


def test_caveats__say_what_shaking_can_undo(golden, schedules):
    two = schedules[1:]
    wait = two[0].summary().mean_wait
    waits = [[wait, wait, wait], [two[1].summary().mean_wait, 0, 3 * wait]]
    near = spread_of(schedules, [[9 * wait] * 3, *waits], [[1, 1, 1]] * 3)
    golden("compare", caveats_of(schedules, "none", spread=near))
    assert not any("No clear" in line for line in caveats_of(two, "none", spread=spread_of(two, waits, [[1, 1, 1]] * 2)))
    assert any("No intervals" in line for line in caveats_of(two, "none"))
    assert not any("No intervals" in line for line in caveats_of(two[:1], "none"))


# ------------------------------------------------------------------------------------------------------------- saturation


def test_longest_queue__worked_by_hand():
    """Ten jobs wait from 10 to 20, one job from 30 to 90, the last arrival."""
    submit = [0, *[10] * 10, 30, 90]
    start = [0, *[20] * 10, 90, 90]
    one = np.ones(len(submit), np.int64)
    workload = wt.Workload.from_arrays(submit=submit, runtime=one, procs=one, machine_procs=20)
    start = np.array(start)
    schedule = wt.Schedule(workload, wt.Easy(), start, start + 1, one, one.astype(np.uint8), -one)
    assert longest_queue(schedule) == (10, 10 / 90), "one waiting job is no queue to speak of"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "saturated"), [("KTH-SP2-1996-2.1-cln", ["FCFS"]), ("CTC-SP2-1996-3.1-cln.recon", ["FCFS"]), ("ALCF-Theta-2022-23", ["FCFS"])]
)
def test_caveats__first_come_first_served_saturates_real_logs(log, saturated):
    workload = wt.read(trace_path(log))
    schedules = [wt.simulate(workload, policy) for policy in ("fcfs", "easy", "conservative")]
    told = [line for line in caveats_of(schedules, "none") if " is saturated: " in line]
    assert [line.split()[0] for line in told] == saturated


# ------------------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    wt.logs.write_swf(path, JOBS)
    return path


@pytest.mark.slow
def test_commands__print_the_caveats_of_the_page(capsys, log, tmp_path):
    page = tmp_path / "report.html"
    status, out, _ = call(capsys, "compare", log, "--report", page)
    assert status == 0
    printed = [line.removeprefix("* ") for line in out.splitlines() if line.startswith("* ")]
    found = json.loads(call(capsys, "compare", log, "--json")[1])
    assert found["caveats"] == printed
    assert any(line.startswith("Averages include") for line in printed)
    for line in printed:
        assert line.split(":")[0] in page.read_text().replace("&nbsp;", " ")
    status, out, _ = call(capsys, "simulate", log)
    assert "Notes:" in out
    assert any(line.startswith("Only 400 jobs") for line in json.loads(call(capsys, "simulate", log, "--json")[1])["caveats"])


def test_compare__the_spread_can_be_left_out(capsys, log):
    found = json.loads(call(capsys, "compare", log, "--json")[1])["spread"]
    assert (found["shake"], found["copies"], len(found["differences"])) == (30, 5, 2)
    assert (found["of"], found["level"]) == ("shaken copies of this log", 0.9)
    assert set(found["differences"][0]["mean_wait"]) == {"mean", "scatter", "clear"}
    assert [one["mean_wait"] > 0 for one in found["scatter"]] == [True] * 3
    without = json.loads(call(capsys, "compare", log, "--no-spread", "--json")[1])
    assert without["spread"] is None
    assert any("No intervals" in line for line in without["caveats"])


def test_copies__as_many_as_asked_for(schedules):
    assert shaking_spread(schedules[:2], copies=2).copies == 2
    with raises(wt.PolicyError, "number_out_of_range", "1", "0"):
        shaking_spread(schedules[:2], copies=0)
