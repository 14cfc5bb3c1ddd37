"""The explanation of a job: small workloads worked out by hand, what cannot be told, errors, the command, and a real log."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import HEADER, call, one_line, record
from tests.errors import raises
from walltime.explanation.alternatives import requests, sizes, with_request
from walltime.explanation.records import Alternative, Cause, Change, Overtaker, Reservation, RunningJob

# On 4 processors: job 1 ends early, and job 3 has by then been backfilled, in time for what was expected of job 1, but not for what it did.
WILD = wt.Workload.from_arrays(
    submit=[0, 10, 20, 30],
    runtime=[50, 10, 70, 20],
    requested=[100, 10, 80, 20],
    procs=[3, 4, 1, 1],
    machine_procs=4,
)
# Job 2 needs all 4 processors; job 3 and job 6 fit before it, job 4 is too long for that, and job 5 too wide.
JOBS = wt.Workload.from_arrays(
    submit=[0, 10, 20, 30, 40, 50],
    runtime=[90, 60, 30, 200, 20, 10],
    requested=[100, 60, 60, 200, 20, 30],
    procs=[3, 4, 1, 1, 2, 1],
    machine_procs=4,
)


def explanation(jobs: wt.Workload, policy: object, job: int, **rules: str) -> wt.explanation.SinglePoolExplanation:
    return wt.explain(wt.simulate(jobs, policy, **rules), job)


# ------------------------------------------------------------------------------------------------------ by hand


def test_easy__head_with_a_wild_backfill(golden):
    told = explanation(WILD, "easy", 2)
    assert (told.submit, told.start, told.wait, told.kind) == (10, 90, 80, "reserved")
    met = told.submission
    assert (met.free, met.ahead, met.held_back, met.extra) == (1, 0, "too few", None)
    assert met.running == (RunningJob(1, 3, 100, 50),)
    assert met.reserved == ()
    assert told.head_since == 10
    assert told.reservations == (Change(10, "made", 100),)
    # Without job 3 job 2 would have started at 50, when job 1 ends; with it at 90, when job 3 does.
    assert told.overtaken_by == (
        Overtaker(3, 1, 20, 80, 70, "in time", 2, 40),
        Overtaker(4, 1, 50, 20, 20, "in time", 2, 0),
    )
    assert [one.job for one in told.delayed_by] == [3]
    assert (told.too_few, told.held) == (80, 0)
    assert told.let_in == (RunningJob(3, 1, 100, 90),)
    golden("explain", str(told))


def test_easy__job_that_fits_but_is_held_back_for_the_head(golden):
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[20, 5, 30], procs=[2, 3, 2], machine_procs=4)
    told = explanation(jobs, "easy", 3)
    # Job 2 is to start at 20, on 3 processors, which leaves 1 over; job 3 is to run until 32, on 2.
    assert (told.submission.free, told.submission.held_back, told.submission.extra) == (2, "head", 1)
    assert told.submission.reserved == (Reservation(2, 3, 20),)
    assert (told.start, told.too_few, told.held) == (25, 5, 18)
    assert told.reservations == (Change(20, "made", 25),)
    golden("explain", str(told))


def test_easy__reservation_moves_back_behind_an_overdue_job(golden):
    jobs = wt.Workload.from_arrays(submit=[0, 1, 40], runtime=[60, 5, 3], requested=[30, 5, 3], procs=[3, 4, 1], machine_procs=4)
    told = explanation(jobs, "easy", 2, overrun="continue")
    assert told.reservations == (Change(1, "made", 30), Change(40, "back", 40, (Cause("overdue", 1, 10),)))
    assert told.start == 60
    golden("explain", str(told))


def test_fcfs__nobody_overtakes_and_nobody_has_a_reservation(golden):
    told = explanation(JOBS, "fcfs", 4)
    assert (told.start, told.submission.free, told.submission.ahead, told.submission.held_back) == (150, 1, 2, "order")
    assert (told.overtaken_by, told.reservations, told.head_since) == ((), (), None)
    assert (told.too_few, told.held) == (60, 60)  # from 90 to 150 job 2 has all processors
    assert told.let_in == (RunningJob(2, 4, 150, 150),)
    assert "without backfilling no job overtakes" in str(told)
    golden("explain", str(told))


def test_conservative__reservation_moves_forward_when_a_job_ends_early(golden):
    told = explanation(JOBS, "conservative", 4)
    # Job 2 has all processors from 100 to 160, job 3 the one that is left until 80; at 90 job 1 ends, 10 s early.
    assert told.submission.reserved == (Reservation(2, 4, 100),)
    assert told.reservations == (Change(30, "made", 160), Change(90, "forward", 150, (Cause("ended early", 1, 10),)))
    assert told.overtaken_by == (Overtaker(6, 1, 50, 30, 10, "hole", 2, 0),)
    assert told.head_since == 90
    golden("explain", str(told))


def test_hybrid__reservation_once_it_is_among_the_first(golden):
    told = explanation(JOBS, "hybrid:2", 5)
    assert told.submission.reserved == (Reservation(2, 4, 100), Reservation(4, 1, 160))
    assert told.reservations == (Change(90, "made", 150),)  # when job 2 has started
    assert told.start == 150
    deeper = explanation(JOBS, "conservative-scratch", 5)
    assert deeper.reservations == (Change(40, "made", 160), Change(90, "forward", 150, (Cause("ended early", 1, 10),)))
    none = explanation(JOBS, "hybrid:0", 4)
    assert none.reservations == ()
    golden("explain", str(none))


def test_order__a_job_of_another_order_overtakes_and_takes_the_reservation(golden):
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[50, 30, 9, 5], procs=[3, 3, 4, 2], machine_procs=4)
    told = explanation(jobs, "easy:order=sjf", 2)
    # Job 3 is shorter, and is at the head from 2 on; so is job 4 from 3 on. They start at 50 and 55.
    assert told.reservations == (Change(1, "made", 50), Change(2, "given up", -1), Change(55, "made", 64))
    assert [(one.job, one.how, one.start) for one in told.overtaken_by] == [(4, "order", 50), (3, "order", 55)]
    assert told.submission.ahead == 0
    golden("explain", str(told))


def test_prediction__a_correction_moves_the_reservation_back(golden):
    jobs = wt.Workload.from_arrays(
        submit=[0, 20, 30, 31],
        runtime=[10, 50, 10, 5],
        requested=[100, 100, 100, 100],
        procs=[1, 3, 4, 4],
        machine_procs=4,
        columns={"user": np.ones(4, np.int64)},
    )
    told = explanation(jobs, "easy:predictor=last,correction=double", 3)
    # Job 2 is predicted to run as long as job 1 did, 10 s; twice as long is expected at 30, and again at 40 and 60.
    assert told.planned == 10
    assert told.reservations[0] == Change(30, "made", 40)
    assert told.reservations[1:] == (
        Change(40, "back", 60, (Cause("expected longer", 2, 20),)),
        Change(60, "back", 100, (Cause("expected longer", 2, 40),)),
    )
    assert told.start == 70
    golden("explain", str(told))


def test_job_that_starts_at_once__has_a_short_explanation(golden):
    first = explanation(WILD, "easy", 1)
    assert (first.wait, first.submission.free, first.submission.held_back) == (0, 4, "nothing")
    assert (first.alternatives, first.reservations, first.overtaken_by, first.let_in) == ((), (), (), ())
    assert "started at once" in str(first)
    third = explanation(WILD, "easy", 3)
    assert third.kind == "backfilled"
    assert third.submission.reserved == (Reservation(2, 4, 100),)
    golden("explain", str(third))


# ------------------------------------------------------------------------------------------ what would have helped


def test_alternatives__say_what_would_have_let_it_start_sooner(golden):
    hour = 3600
    jobs = wt.Workload.from_arrays(
        submit=[0, 1, 2],
        runtime=[3 * hour, hour, 1500],
        requested=[3 * hour, hour, 10 * hour],
        procs=[2, 4, 2],
        machine_procs=4,
    )
    told = explanation(jobs, "easy", 3)
    assert told.start == 4 * hour
    # Up to 3 hours less a little it ends before job 2 can start.
    requested = [one for one in told.alternatives if one.what == "request"]
    assert [one.value for one in requested] == [8 * hour, 6 * hour, 4 * hour, 3 * hour, 2 * hour, hour, 1800, 1500]
    assert [one.start for one in requested] == [4 * hour] * 4 + [2] * 4
    assert [one for one in told.alternatives if one.what == "procs"] == [Alternative("procs", 1, 4 * hour, 0)]
    assert [one.value for one in told.alternatives if one.what == "policy"] == ["fcfs", "easy:backfill-order=sjf", "conservative"]
    assert [one.value for one in told.sooner] == [2 * hour, hour, 1800, 1500]
    golden("explain", str(told))
    assert wt.explain(wt.simulate(jobs, "easy"), 3, sooner=False).alternatives == ()


def test_alternatives__what_is_tried():
    assert requests(7200, 1000) == [3600, 1800, 1000]
    assert requests(60, 0) == [1]
    assert requests(60, 60) == requests(60, 99) == []
    assert sizes(96) == [64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1]
    assert sizes(1) == []
    jobs = WILD.with_planned([40, 10, 80, 20])
    for seconds, planned in ((60, 40), (30, 30)):
        changed = with_request(jobs, 0, seconds)
        assert (changed.requested.tolist(), changed.planned.tolist()) == ([seconds, 10, 80, 20], [planned, 10, 80, 20])


# ------------------------------------------------------------------------------------- what cannot be told, and errors


@dataclass(frozen=True)
class Narrow(wt.PlainPolicy):
    """Whoever fits, narrow jobs first."""

    def choose(self, now, waiting, running, free):
        for job in sorted(waiting, key=lambda job: job.procs):
            if job.procs <= free:
                free -= job.procs
                yield job


def test_plain_policy__tells_what_is_certain(golden):
    told = wt.explain(wt.simulate(WILD, Narrow()), 2, sooner=False)
    assert [(one.job, one.how) for one in told.overtaken_by] == [(3, "policy"), (4, "policy")]
    assert told.reservations == ()
    golden("explain", str(told))


@pytest.mark.parametrize("policy", [wt.Easy(extra="literal"), wt.Easy(shadow="kept"), wt.Conservative(compression="always")])
def test_reference_policies__have_explanations(policy):
    told = wt.explain(wt.simulate(JOBS, policy), 4)
    assert told.start == 150
    assert told.reservations[-1].start == 150


def test_one_by_one__have_explanations():
    schedule = wt.simulate(JOBS, "easy", coincident="one-by-one")
    assert [wt.explain(schedule, job, sooner=False).start for job in range(1, 7)] == schedule.start.tolist()


@pytest.mark.parametrize(("job", "shown"), [(7, "7"), (0, "0"), ("2", "'2'"), (True, "True"), (2.0, "2.0")])
def test_unknown_job__is_an_error_that_says_which_there_are(job, shown):
    with raises(wt.WorkloadError, "unknown_job", shown, "6", "1"):
        wt.explain(wt.simulate(JOBS, "easy"), job)


def test_empty_workload__has_no_explanations():
    empty = wt.simulate(wt.Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=4), "easy")
    with raises(wt.WorkloadError, "empty_workload"):
        wt.explain(empty, 1)
    assert wt.explanation.longest_waits(empty) == []


@pytest.mark.parametrize("policy", ["easy", "conservative", Narrow()])
def test_schedule_of_another_scheduler__is_refused(policy):
    schedule = wt.simulate(JOBS, policy)
    for moved in (schedule.start[3] + 1, schedule.start[3] - 1):
        wrong = replace(schedule, start=np.where(np.arange(6) == 3, moved, schedule.start))
        with raises(wt.errors.EngineError, "other_schedule", moved, "4"):
            wt.explain(wrong, 4, sooner=False)


# --------------------------------------------------------------------------------------------- JSON, list, picture


def test_as_dict__is_json_with_everything(golden):
    told = json.loads(json.dumps(explanation(WILD, "easy", 2).as_dict()))
    assert (told["job"], told["wait"], told["log"], told["policy"]) == (2, 80, "workload", "easy")
    assert told["submission"]["running"] == [{"job": 1, "procs": 3, "expected_end": 100, "end": 50}]
    assert told["reservations"] == [{"time": 10, "what": "made", "start": 100, "causes": []}]
    assert [one["delay"] for one in told["overtaken_by"]] == [40, 0]
    assert {one["what"] for one in told["alternatives"]} == {"procs", "policy"}
    golden("explain", told["sentences"][0])


def test_longest_waits__the_worst_first():
    waits = wt.explanation.longest_waits(wt.simulate(JOBS, "easy"))
    assert [(one.job, one.wait, one.ahead, one.overtaken_by) for one in waits] == [(4, 120, 1, 1), (5, 110, 2, 1), (2, 80, 0, 2)]
    line = "job 4 (1 processor for 3 min 20 s) waited 2 min 00 s and started in its turn; 1 job ahead of it in the queue, 1 overtook it"
    assert str(waits[0]) == line
    assert [one.job for one in wt.explanation.longest_waits(wt.simulate(JOBS, "easy"), 1)] == [4]


@pytest.mark.parametrize(("policy", "job"), [("easy", 1), ("easy", 2), ("fcfs", 4), ("conservative", 4)])
def test_figure__shows_the_job_its_reservations_and_who_overtook(policy, job):
    from walltime.explanation.page import explanation_figure

    told = wt.explain(wt.simulate(JOBS, policy), job, sooner=False)
    figure = explanation_figure(told)
    assert figure.axes[0].get_title(loc="left").startswith(f"job {job} under")
    assert len(figure.axes) == (2 if told.overtaken_by else 1)
    assert any("reservations" in text.get_text() for text in figure.legends[0].texts) == bool(told.reservations)
    if told.overtaken_by:
        assert sum(len(patch.get_path().vertices) // 5 for patch in figure.axes[1].patches) == len(told.overtaken_by)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_figure__is_drawn_the_same_every_time(tmp_path, kind):
    from walltime.explanation.page import explanation_figure
    from walltime.report.figure_files import write_figure

    told = wt.explain(wt.simulate(WILD, "easy"), 2, sooner=False)
    for name in ("a", "b"):
        write_figure(tmp_path / f"{name}.{kind}", explanation_figure(told))
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


# ----------------------------------------------------------------------------------------------------- the command


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    rows = zip(*(getattr(WILD, name).tolist() for name in ("job_id", "submit", "runtime", "procs", "requested")), strict=True)
    path.write_text(HEADER + "".join(record(*row) for row in rows))
    return path


def test_command__tells_the_explanation(golden, log, capsys):
    status, out, err = call(capsys, "explain", log, "--job", 2)
    assert (status, err) == (0, "")
    golden("explain", out)
    assert "sooner with" in out
    status, out, _ = call(capsys, "explain", log, "--job", 2, "--no-sooner", "--policy", "conservative")
    assert "sooner with" not in out


def test_command__json_and_figure(log, tmp_path, capsys):
    figure = tmp_path / "explanation.svg"
    status, out, _ = call(capsys, "explain", log, "--job", 2, "--json", "--figure", figure)
    told = json.loads(out)
    assert (status, told["trace"], told["policy"], told["start"], told["figure"]) == (0, str(log), "easy", 90, str(figure))
    assert figure.read_text().startswith("<?xml")


def test_command__lists_the_longest_waits(log, capsys):
    status, out, _ = call(capsys, "explain", log, "--longest", 10)
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["2", "1", "min", "20", "s", "4", "10", "s", "0", "2", "in", "turn"] in rows
    assert sum(row[-2:] == ["in", "turn"] for row in rows) + sum(row[-1:] == ["backfill"] for row in rows) == 2
    told = json.loads(call(capsys, "explain", log, "--longest", 1, "--json")[1])
    assert [one["job"] for one in told["longest_waits"]] == [2]
    assert call(capsys, "explain", log, "--longest", 1, "--head", 1)[1] == "Under EASY, no job waits.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--job", 1, "--longest", 2),
        ("--job", 9),
        ("--longest", 2, "--no-sooner"),
        ("--job", 1, "--replications", 3),
        ("--job", 1, "--figure", "explanation.jpg"),
    ],
)
def test_command__errors_are_one_line(golden, log, capsys, arguments):
    golden("explain", one_line(*call(capsys, "explain", log, *arguments)))


def test_explanation__is_a_table_in_notebooks():
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    why = wt.explain(wt.simulate(jobs, "easy"), 2, sooner=False)
    shown = why._repr_html_()
    assert shown.startswith("<table>")
    assert why.texts[0][1] in shown
    assert shown.count("<tr>") == len(why.texts) - 1
