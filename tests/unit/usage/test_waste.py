"""`walltime waste` on a synthetic month whose numbers are computed here a second time, from the jobs and in polars."""

import json
import math

import polars as pl
import pytest

import walltime as wt
from tests.accounting_records import fifty_jobs, lsf
from tests.waste_month import month, write
from walltime.errors import WorkloadError
from walltime.logs import read_log
from walltime.usage.records import GROUPINGS

FORMS = ("text", "json", "jobstats", "pbs")
JOBS = month()
OF_STATE = {"OUT_OF_MEMORY": "out_of_memory", "TIMEOUT": "limit", "NODE_FAIL": "node_failure", "PREEMPTED": "preempted"}
OF_STATE |= {"CANCELLED by 1000": "cancelled", "FAILED": "failed"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("month"), JOBS)


@pytest.fixture(scope="module")
def found(files):
    return {name: wt.waste(wt.read(path, procs=10_000)) for name, path in files.items()}


def by_hand(jobs, *keys):
    """The hours of each group, as `cores:used` and so on, by an independent computation."""
    hours = pl.col("run") / 3600
    known = pl.col("cpu").is_not_null()
    gpus_known = known | (pl.col("gpus") == 0)
    limit = pl.col("limit") / 3600
    table = pl.DataFrame(jobs, infer_schema_length=None).with_columns(
        (pl.col("procs") * limit).alias("cores:asked"),
        (pl.col("procs") * hours).alias("cores:allocated"),
        pl.when(known).then(pl.col("procs") * hours).alias("cores:measured"),
        (pl.col("cpu") / 3600).alias("cores:used"),
        (pl.col("gpus") * limit).alias("gpus:asked"),
        (pl.col("gpus") * hours).alias("gpus:allocated"),
        pl.when(gpus_known).then(pl.col("gpus") * hours).alias("gpus:measured"),
        pl.when(gpus_known).then(pl.col("gpus") * hours * pl.col("gpu_use").fill_null(0) / 100).alias("gpus:used"),
        (pl.col("asked_mb") / 1024 * limit).alias("memory:asked"),
        (pl.col("asked_mb") / 1024 * hours).alias("memory:allocated"),
        pl.when(known).then(pl.col("asked_mb") / 1024 * hours).alias("memory:measured"),
        (pl.col("used_mb") / 1024 * hours).alias("memory:used"),
        (pl.col("nodes") * hours).alias("nodes:allocated"),
        pl.when(pl.col("state") != "COMPLETED").then(pl.col("procs") * hours).otherwise(0).alias("lost"),
    )
    sums = [pl.col(name).sum() for name in table.columns if ":" in name or name == "lost"]
    rows = (
        table.group_by(*keys).agg(pl.len().alias("jobs"), *sums).to_dicts()
        if keys
        else table.select(pl.len().alias("jobs"), *sums).to_dicts()
    )
    return {tuple(row[key] for key in keys): row for row in rows}


def compare(group, row, without=()):
    assert group.jobs == row["jobs"]
    for resource, hours in group.hours.items():
        for kind in ("asked", "allocated", "measured", "used"):
            name = f"{resource}:{kind}"
            if name in row and resource not in without:
                assert getattr(hours, kind) == pytest.approx(row[name], rel=1e-9), (group.group, name)


@pytest.mark.parametrize("form", FORMS)
def test_totals__are_equal_in_each_form(found, form):
    row = by_hand(JOBS)[()]
    compare(found[form].total, row, without=("gpus",) if form == "pbs" else ())
    assert found[form].total.lost == pytest.approx(row["lost"], rel=1e-9)
    assert set(found[form].total.hours) == {"cores", "gpus", "memory", "nodes"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("by", "key"), [("user", "user"), ("group", "account"), ("executable", "name")])
def test_groups__are_equal_in_each_form(found, form, by, key):
    rows = by_hand(JOBS, key)
    groups = found[form].groups[by]
    assert {group.group for group in groups} == {name for (name,) in rows}
    for group in groups:
        compare(group, rows[(group.group,)], without=("gpus",) if form == "pbs" else ())
    unused = [group.hours["cores"].unused for group in groups]
    assert unused == sorted(unused, reverse=True)


@pytest.mark.parametrize("form", ["text", "json", "jobstats"])
def test_groups__of_gpu_types(found, form):
    rows = by_hand([job for job in JOBS if job["gpus"]], "kind")
    assert {group.group for group in found[form].groups["gpu_type"]} == {"a100", "v100"}
    for group in found[form].groups["gpu_type"]:
        compare(group, rows[(group.group,)])


@pytest.mark.parametrize("form", FORMS)
def test_lost__by_cause(found, form):
    rows = by_hand(JOBS, "state")
    expected = {OF_STATE[state]: row for (state,), row in rows.items() if state in OF_STATE}
    if form == "pbs":  # whose records have only exit codes
        merged = [expected.pop(name) for name in ("preempted", "cancelled", "failed")]
        expected["failed"] = {name: sum(row[name] for row in merged) for name in ("jobs", "cores:allocated", "gpus:allocated")}
    assert {one.cause for one in found[form].lost} == set(expected)
    for one in found[form].lost:
        assert one.jobs == expected[one.cause]["jobs"]
        assert one.hours["cores"] == pytest.approx(expected[one.cause]["cores:allocated"])
        assert one.hours["gpus"] == pytest.approx(expected[one.cause]["gpus:allocated"])


def test_patterns(found):
    ran = [job for job in JOBS if job["cpu"] is not None]
    idle = [job for job in ran if job["gpus"] and job["gpu_use"] < 1]
    tenfold = [job for job in ran if job["asked_mb"] >= 10 * job["used_mb"]]
    sessions = [job for job in ran if job["name"] in ("bash", "sys/dashboard/jupyter") and job["cpu"] < 0.05 * job["procs"] * job["run"]]
    single = [job for job in ran if job["procs"] // job["nodes"] == 8 and job["cpu"] <= 1.1 * job["run"]]
    for form in ("text", "json", "jobstats"):
        patterns = {one.name: one for one in found[form].patterns}
        assert {name: one.jobs for name, one in patterns.items()} == {
            **{"idle_gpus": len(idle), "one_core": len(single), "memory_tenfold": len(tenfold), "idle_sessions": len(sessions)},
            **({"some_idle_gpus": 0} if form == "jobstats" else {}),
        }
        assert all(len(jobs) > 3 for jobs in (idle, tenfold, sessions, single))
        assert patterns["idle_gpus"].judged == sum(job["gpus"] > 0 for job in ran)
        assert patterns["idle_gpus"].unused == pytest.approx(sum(job["gpus"] * job["run"] / 3600 for job in idle))
        assert patterns["memory_tenfold"].unused == pytest.approx(
            sum((job["asked_mb"] - job["used_mb"]) / 1024 * job["run"] / 3600 for job in tenfold)
        )


def test_unmeasured_jobs__are_counted_and_never_zero_use(found, files):
    lost = sum(job["cpu"] is None for job in JOBS)
    for form in FORMS:
        assert found[form].total.hours["cores"].unmeasured_jobs == lost
        assert found[form].total.hours["memory"].unmeasured_jobs == lost
    nothing = found["nothing"]
    assert nothing.total.hours["cores"].unmeasured_jobs == len(JOBS)
    for hours in nothing.total.hours.values():
        assert all(map(math.isnan, (hours.measured, hours.used, hours.unused, hours.efficiency)))
    assert all(one.judged == 0 and math.isnan(one.unused) for one in nothing.patterns)
    assert nothing.total.hours["cores"].allocated == pytest.approx(by_hand(JOBS)[()]["cores:allocated"])


def test_energy(found):
    known = [job["joules"] for job in JOBS if job["joules"] is not None]
    for form in ("text", "json", "jobstats"):
        assert found[form].energy == pytest.approx(sum(known) / 3.6e6)
        assert found[form].energy_jobs == len(known)
    assert math.isnan(found["pbs"].energy)


def test_others__are_one_group(files):
    few = wt.waste(wt.read(files["text"], procs=10_000), by=["user"], listed=2)
    rows = few.groups["user"]
    assert [row.group for row in rows][2:] == ["4 others"]
    assert sum(row.jobs for row in rows) == len(JOBS)
    for kind in ("asked", "allocated", "measured", "used"):
        assert sum(getattr(row.hours["cores"], kind) for row in rows) == pytest.approx(getattr(few.total.hours["cores"], kind))


def test_earlier_runs__are_lost(tmp_path):
    head = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|State"
    first = "7|1772323200|1772323300|1772324300|1000|60|4|NODE_FAIL"
    last = "7|1772324300|1772324400|1772326400|2000|60|4|COMPLETED"
    (tmp_path / "log").write_text(f"{head}\n{first}\n{last}\n")
    log = read_log(tmp_path / "log", join_runs=True)
    (lost,) = wt.waste(log.to_workload(procs=8)).lost
    assert (lost.cause, lost.jobs, lost.hours["cores"]) == ("earlier_runs", 1, pytest.approx(4000 / 3600))
    (lost,) = wt.waste(read_log(tmp_path / "log").to_workload(procs=8)).lost
    assert (lost.cause, lost.jobs, lost.hours["cores"]) == ("node_failure", 1, pytest.approx(4000 / 3600))


def test_gpus_without_requests__are_not_requested_as_none(tmp_path):
    # LSF records the GPUs of a job with the allocation, and no number of requested ones
    (tmp_path / "log").write_text("".join(lsf(job) for job in fifty_jobs()))
    gpus = wt.waste(wt.read(tmp_path / "log", procs=100)).total.hours["gpus"]
    assert gpus.allocated > 0
    assert math.isnan(gpus.asked)


def test_log_without_use(tmp_path):
    jobs = wt.Workload.from_arrays(submit=[0, 1], runtime=[3600, 7200], procs=[2, 1], machine_procs=4)
    found = wt.waste(jobs)
    assert found.groups == {}
    assert found.total.hours["cores"].allocated == 4
    assert math.isnan(found.total.hours["cores"].used)
    assert json.loads(json.dumps(found.as_dict()))["total"]["cores"]["used"] is None
    assert "core-hours" in found._repr_html_()
    with pytest.raises(WorkloadError) as caught:
        found.table("user")
    assert caught.value.code == "unknown_grouping"


@pytest.mark.parametrize(("arguments", "code"), [({"by": ["month"]}, "unknown_grouping"), ({"listed": 0}, "number_out_of_range")])
def test_bad_arguments(arguments, code):
    jobs = wt.Workload.from_arrays(submit=[0], runtime=[1], procs=[1], machine_procs=1)
    with pytest.raises(WorkloadError) as caught:
        wt.waste(jobs, **arguments)
    assert caught.value.code == code


def test_table(found):
    table = found["text"].table("group")
    assert table.column(0) == [group.group for group in found["text"].groups["group"]]
    assert set(found["text"].groups) == set(GROUPINGS) - {"queue"}
