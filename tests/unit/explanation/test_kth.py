"""Three jobs of a real log, their explanations beside what follows from the starts, ends and requests in the schedule's file alone."""

from __future__ import annotations

import csv
from itertools import pairwise

import pytest

import walltime as wt
from tests.traces import trace_path

PROCS = 100


@pytest.fixture(scope="module")
def schedule():
    return wt.simulate(wt.read(trace_path("KTH-SP2-1996-2")), "easy", dynamics=True)


@pytest.fixture(scope="module")
def rows(schedule, tmp_path_factory) -> list[dict[str, int]]:
    """The schedule as it stands in its file."""
    path = schedule.write(tmp_path_factory.mktemp("kth") / "kth.csv")
    with path.open() as file:
        return [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]


def arrival(row):
    return row["submit"], row["job_id"]


def expected_end(row):
    return row["start"] + row["requested"]


def real_end(row):
    return row["end"]


def in_use(rows, time):
    return sum(row["procs"] for row in rows if row["start"] <= time < row["end"])


def fits_at(running, wanted, end):
    """When so many processors are free if nobody else starts, and how many."""
    free = PROCS - sum(row["procs"] for row in running)
    time = None
    for row in sorted(running, key=end):
        if free >= wanted:
            break
        free, time = free + row["procs"], end(row)
    return time, free


@pytest.mark.slow
@pytest.mark.parametrize("job", [4034, 4050, 14708])
def test_kth__facts_follow_from_the_file(schedule, rows, job):
    explanation = wt.explain(schedule, job, sooner=False)
    (me,) = [row for row in rows if row["job_id"] == job]
    submit, start = me["submit"], me["start"]
    earlier = [row for row in rows if arrival(row) < arrival(me)]
    later = [row for row in rows if arrival(row) > arrival(me)]
    assert (explanation.submit, explanation.start, explanation.wait) == (submit, start, start - submit)
    assert explanation.submission.free == PROCS - in_use(rows, submit)
    assert {one.job for one in explanation.submission.running} == {row["job_id"] for row in rows if row["start"] <= submit < row["end"]}
    assert explanation.submission.ahead == sum(row["start"] > submit for row in earlier)
    assert {one.job for one in explanation.overtaken_by} == {row["job_id"] for row in later if row["start"] < start}
    assert {one.job for one in explanation.let_in} == {row["job_id"] for row in rows if row["end"] == start}
    head_since = max(row["start"] for row in earlier)
    assert explanation.head_since == (head_since if head_since < start else None)
    times = sorted({submit, start} | {row[name] for row in rows for name in ("start", "end") if submit < row[name] < start})
    held = sum(b - a for a, b in pairwise(times) if PROCS - in_use(rows, a) >= me["procs"])
    assert (explanation.too_few, explanation.held) == (start - submit - held, held)


@pytest.mark.slow
def test_kth__longest_wait(schedule, rows):
    explanation = wt.explain(schedule, 4034)
    assert wt.explanation.longest_waits(schedule, 1)[0].job == 4034
    assert (explanation.wait, explanation.head_since - explanation.submit, len(explanation.overtaken_by)) == (262_194, 248_196, 122)
    running = [row for row in rows if row["start"] <= explanation.head_since < row["end"]]
    assert [row["job_id"] for row in running] == [4033, 4096, 4128]  # of 98, 1 and 1 processors
    assert fits_at(running, 98, expected_end) == (5_430_788, 98)
    assert [(change.what, change.start) for change in explanation.reservations] == [("made", 5_430_788)]
    assert {one.job for one in explanation.let_in} == {4033}
    assert {(one.what, one.value, one.gain) for one in explanation.sooner} >= {("policy", "conservative", 13_136)}


def test_kth__backfilled(schedule, rows):
    explanation = wt.explain(schedule, 4050, sooner=False)
    assert (explanation.kind, explanation.head_since, explanation.reservations) == ("backfilled", None, ())
    head = min((row for row in rows if row["submit"] <= explanation.start < row["start"]), key=arrival)
    assert (head["job_id"], head["procs"]) == (4031, 98)
    running = [row for row in rows if row["start"] <= explanation.start < row["end"] and row["job_id"] != 4050]
    assert PROCS - sum(row["procs"] for row in running) == 89  # enough for its 84
    assert fits_at(running, 98, expected_end) == (5_391_080, 98)
    assert explanation.start + explanation.requested == 5_374_233  # by then it is to end


@pytest.mark.slow
def test_kth__delayed_by_wild_backfills(schedule, rows):
    explanation = wt.explain(schedule, 14708, sooner=False)
    found = {}
    for row in rows:
        now = row["start"]
        if not (explanation.head_since <= now < explanation.start) or row["job_id"] == explanation.job:
            continue
        # Who ran by then; of those that started at the same time, the ones that had arrived before it.
        running = [one for one in rows if one["start"] <= now < one["end"] and (one["start"] < now or arrival(one) < arrival(row))]
        before, _ = fits_at(running, 96, real_end)
        after, _ = fits_at([*running, row], 96, real_end)
        if after > before:
            found[row["job_id"]] = after - before
    assert found == {14744: 17_005, 14750: 21_417}
    assert {one.job: one.delay for one in explanation.delayed_by} == found
    index = int((schedule.workload.job_id == 14708).argmax())
    assert schedule.dynamics.suffered[index] == 2
    assert schedule.dynamics.delay[index] == schedule.dynamics.delay.max()
    made, moved = explanation.reservations
    assert (made.time, made.start) == (explanation.head_since, 16_521_494)
    assert [cause.job for cause in moved.causes] == [14702]
    running = [one for one in rows if one["start"] <= moved.time < one["end"]]
    assert fits_at(running, 96, expected_end)[0] == moved.start
