"""Reservations of particular processors, as in Batsim's batsched: kernel equals reference, and both equal the published schedule."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import given, note, strategies as st

import walltime as wt
from tests.strategies import OVERRUN, crowded, examples, orders, shrunk, workloads
from tests.traces import field_path

POLICIES = (wt.Easy, wt.Conservative, lambda order: wt.Conservative(order=order, variant="scratch"))
RUNS = st.one_of(workloads(max_size=25), crowded())


def processors_of(schedule: wt.Schedule) -> list[set[int]]:
    """The processors of each job."""
    sets = [set() for _ in range(len(schedule))]
    for job, processor in zip(*(column.tolist() for column in schedule.slots[:2]), strict=True):
        sets[job].add(processor)
    return sets


@examples(150)
@given(workload=RUNS, order=orders(), policy=st.sampled_from(POLICIES), overrun=st.sampled_from(OVERRUN))
def test_kernel__equals_the_reference_and_passes_the_audit(workload, order, policy, overrun):
    note(shrunk(workload))
    one, other = (
        wt.simulate(workload, policy(order=order), dialect="batsched", overrun=overrun, engine=e) for e in ("kernel", "reference")
    )
    for name in ("start", "kind", "reserved_start"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    sets = processors_of(one)
    assert sets == processors_of(other)
    assert [len(own) for own in sets] == workload.procs.tolist()
    for k, start in enumerate(one.start.tolist()):
        others = np.flatnonzero((one.start <= start) & (start < one.end) & (np.arange(len(one)) != k))
        assert one.end[k] == start or not any(sets[k] & sets[other] for other in others.tolist())
    assert one.audit().ok, one.audit().first


def microseconds(job: dict, profiles: dict) -> list[int]:
    """Submission, runtime, request and size of a job of Batsim; its times in microseconds, as the file has fractions of seconds."""
    return [*(round(1e6 * float(time)) for time in (job["subtime"], profiles[job["profile"]]["delay"], job["walltime"])), job["res"]]


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_easy__equals_the_schedule_of_batsched(engine):
    document = json.loads(field_path("batsim/medium_late.json").read_text())
    with field_path("batsim/easy.out_jobs.csv").open() as file:
        theirs = {int(row["job_id"]): row for row in csv.DictReader(file)}
    rows = [(job["id"], *microseconds(job, document["profiles"])) for job in document["jobs"]]
    number, submit, runtime, requested, procs = (list(column) for column in zip(*rows, strict=True))
    jobs = wt.Workload.from_arrays(job_id=number, submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=32)
    schedule = wt.simulate(jobs, "easy", dialect="batsched", engine=engine)
    rows = [theirs[number] for number in jobs.job_id.tolist()]
    starts = [round(1e6 * float(row["starting_time"])) for row in rows]
    assert np.abs(schedule.start - starts).max() <= 1  # their file is rounded to microseconds
    spans = [[part.split("-") for part in row["allocated_resources"].split(" ")] for row in rows]
    assert processors_of(schedule) == [{n for span in own for n in range(int(span[0]), int(span[-1]) + 1)} for own in spans]
    assert len(schedule) == len(theirs) == 801


@pytest.mark.parametrize("options", ["window=3", "extra=none", "backfill-order=sjf", "shadow=once"])
def test_easy_with_particular_processors__has_no_other_interpretations(options):
    with pytest.raises(wt.PolicyError) as error:
        wt.policy.parse_policy(f"easy:processors=particular,{options}")
    assert error.value.code == "conflicting_options"


@pytest.mark.parametrize("rules", [{"prediction": "tsafrir07"}, {"coincident": "one-by-one"}])
def test_particular_processors__need_requests_and_one_pass_for_each_instant(rules):
    jobs = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    with pytest.raises(wt.PolicyError) as error:
        wt.simulate(jobs, "easy", dialect="batsched", **rules)
    assert error.value.code == "unsupported_policy"
