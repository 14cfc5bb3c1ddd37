"""The data and the scripts of the live page; how they behave is tested in a browser, in tests/browser."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from tests.pages import render
from walltime import simulate
from walltime.report import interactive
from walltime.report.html import LIBRARY
from walltime.report.stretch import assign_processors
from walltime.workload import Origin, Workload


def unpack(page, name, layout):
    """The columns of an element, read back without what wrote them."""
    data = zlib.decompress(base64.b64decode(re.search(rf'id="{name}">(.*?)</script>', page)[1]))
    columns, at = {}, 0
    for column, length, differences in layout:
        planes = np.frombuffer(data, np.uint8, 4 * length, at).reshape(4, length).T
        coded = np.ascontiguousarray(planes).view("<u4").reshape(length).astype(np.int64)
        values = np.where(coded % 2, -(coded + 1) // 2, coded // 2)
        columns[column] = np.cumsum(values) if differences else values
        at += 4 * length
    assert at == len(data)
    return columns


def meta(page):
    return json.loads(re.search(r'id="live-meta">(.*?)</script>', page)[1])


@pytest.fixture(scope="module")
def workload():
    rng = np.random.default_rng(1)
    return Workload.from_arrays(
        submit=np.sort(rng.integers(-50, 5000, 400)) + 50,
        runtime=rng.integers(0, 900, 400),
        requested=rng.integers(1, 900, 400),
        procs=rng.integers(1, 33, 400),
        machine_procs=64,
        columns={"user": rng.integers(-1, 9, 400)},
        origin=Origin("log", sha256="ab" * 32, records=400, unix_start_time=10**9, time_zone="Europe/Stockholm"),
    )


@pytest.mark.slow
def test_data__read_back(workload):
    schedules = [simulate(workload, policy) for policy in ("easy", "conservative")]
    page = render(schedules)
    about = meta(page)
    jobs = unpack(page, "live-jobs", about["layout"])
    assert set(jobs) == {"id", "procs", "requested", "user", "submit", "runtime"}
    for name, values in jobs.items():
        own = {"id": workload.job_id, "user": workload.columns["user"], "runtime": schedules[0].runtime}
        np.testing.assert_array_equal(values, own[name] if name in own else getattr(workload, name))
    for k, schedule in enumerate(schedules):
        columns = unpack(page, f"live-policy-{k}", about["policies"][k]["layout"])
        np.testing.assert_array_equal(columns["wait"], schedule.wait)
        np.testing.assert_array_equal(columns["kind"], schedule.kind)
        had = schedule.reserved_start >= 0
        np.testing.assert_array_equal(columns["reserved"] >= 0, had)
        np.testing.assert_array_equal(columns["reserved"][had], (schedule.reserved_start - schedule.submit)[had])
        strips = assign_processors(schedule.start, schedule.end, workload.procs, 64)
        for name, values in zip(("stripJob", "stripFirst", "stripCount"), strips, strict=True):
            np.testing.assert_array_equal(columns[name], values)
    assert (about["machine"], about["epoch"], about["zone"]) == (64, 10**9, "Europe/Stockholm")
    command = about["policies"][1]["command"]
    assert command == "walltime explain log --procs 64 --policy conservative --overrun kill --simultaneous batch"


@pytest.mark.slow
def test_data__runtimes_and_submissions_of_each_schedule(workload):
    own = [simulate(workload, "easy"), simulate(workload, "easy", overrun="extend")]
    page = render(own)
    about = meta(page)
    assert "runtime" not in [name for name, *_ in about["layout"]]
    for k, schedule in enumerate(own):
        np.testing.assert_array_equal(unpack(page, f"live-policy-{k}", about["policies"][k]["layout"])["runtime"], schedule.runtime)
    later = replace(own[0], submitted=own[0].submit + 1, start=own[0].start + 1, end=own[0].end + 1)
    page = render([own[0], later])
    columns = unpack(page, "live-policy-1", meta(page)["policies"][1]["layout"])
    np.testing.assert_array_equal(columns["submit"], later.submit)


@pytest.mark.slow
def test_live__only_where_it_can(workload):
    schedule = simulate(workload, "easy")
    assert interactive.can_live([schedule])
    assert not interactive.can_live([replace(schedule, end=schedule.end + 2**31)])
    still = render([schedule], live=False)
    assert 'id="live-meta"' not in still
    assert "var uPlot" not in still
    empty = Workload.from_arrays(submit=[], runtime=[], procs=[], machine_procs=4)
    assert 'id="live-meta"' not in render([simulate(empty, "easy")])


@pytest.mark.slow
def test_library__is_the_one_that_was_released():
    """The checksum of the file in the released package; its licence goes with it into every page."""
    library = (files("walltime.report") / "scripts" / f"{LIBRARY}.js").read_bytes()
    assert hashlib.sha256(library).hexdigest() == "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
    assert library.startswith(b"/*! https://github.com/leeoniya/uPlot (v1.6.32) */")
    jobs = Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    assert "Permission is hereby granted" in render([simulate(jobs, "easy")])


def test_assign_processors__never_twice_and_never_too_few(workload):
    for policy in ("fcfs", "easy", "conservative"):
        schedule = simulate(workload, policy)
        job, first, count = assign_processors(schedule.start, schedule.end, workload.procs, 64)
        ran = schedule.end > schedule.start
        np.testing.assert_array_equal(np.bincount(job, weights=count, minlength=400)[ran], workload.procs[ran])
        for processor in range(64):
            on = job[(first <= processor) & (processor < first + count)]
            assert (schedule.end[on[:-1]] <= schedule.start[on[1:]]).all()
