"""The load of partitions and pools that `info --machine` shows, worked by hand."""

import json

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from walltime.machine import Machine, Partition, Pool, write_machine
from walltime.preparation.machine_load import loads_table, offered_loads
from walltime.simulation.run import placed_on
from walltime.workload import Origin

MACHINE = Machine(
    (Pool("c", 3, 8, memory=100), Pool("g", 1, 8, 4, memory=100)),
    (Partition("cpu", ("c",)), Partition("gpu", ("g",)), Partition("all", ("c", "g"))),
)


def jobs_with(**columns):
    """Jobs of 50 s with 4 processors, submitted over 100 s: one in each partition, and one in `cpu` that is too wide."""
    known = {"partition": np.array([1, 2, 3, 1]), **{name: np.array(values) for name, values in columns.items()}}
    return wt.Workload.from_arrays(
        submit=[0, 10, 20, 100], runtime=[50] * 4, requested=[60] * 4, procs=[4, 4, 4, 32], machine_procs=32, columns=known,
        origin=Origin("site", names={"partition": ("cpu", "gpu", "all")}),
    )  # fmt: skip


def loads(machine=MACHINE, last=20, **columns):
    placed, placement = placed_on(jobs_with(**columns), machine)
    assert placed.submit[-1] == last
    return {(row["kind"], row["name"]): row for row in offered_loads(placed, placement)}


def test_offered_loads__of_partitions_and_pools_by_hand():
    """Each job has 200 processor-seconds in 20 s; the one in `all` counts by three quarters in the pool c."""
    found = loads(gpus=[0, 2, 0, 0], mem_mb=[10, 10, 10, 10], mem_mb_per_node=[10, 10, 10, 10])
    assert found["machine", "machine"]["procs"] == pytest.approx(600 / (32 * 20))
    assert found["partition", "cpu"]["procs"] == pytest.approx(200 / (24 * 20))
    assert found["pool", "c"]["procs"] == pytest.approx(350 / (24 * 20))
    assert found["pool", "g"]["procs"] == pytest.approx(250 / (8 * 20))
    assert found["pool", "g"]["second"] == pytest.approx(100 / (4 * 20))
    assert found["partition", "gpu"]["memory"] == pytest.approx(500 / (100 * 20))
    assert found["pool", "c"]["second"] is None
    assert [row["jobs"] for row in found.values()] == [3, 1, 1, 1, 2, 2]


def test_offered_loads__of_what_the_log_lacks_are_unknown():
    for row in loads().values():
        assert row["second"] is row["memory"] is None
    table = loads_table(list(loads().values()), MACHINE)
    assert table.columns == ["", "jobs", "processors"]


@pytest.mark.slow
def test_command__shows_loads_and_jobs_that_do_not_fit(capsys, tmp_path):
    lines = ["; MaxProcs: 40", *(f"{k} {10 * k} 0 50 {4 * k} -1 -1 {4 * k} 60 -1 1 1 -1 -1 -1 {1 + k % 2} -1 -1" for k in range(1, 8))]
    (tmp_path / "log.swf").write_text("\n".join(lines) + "\n")
    machine = Machine((Pool("c", 2, 8), Pool("d", 2, 8)), (Partition("1", ("c",)), Partition("2", ("c", "d"))), policy="easy")
    (tmp_path / "m.toml").write_text(write_machine(machine))
    status, out, err = call(capsys, "info", tmp_path / "log.swf", "--machine", tmp_path / "m.toml", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["procs"], found["machine"]["dropped"]) == (32, {"too_wide_for_partition": 1})
    assert [row["name"] for row in found["machine"]["loads"]] == ["machine", "1", "2", "c", "d"]
    _, out, _ = call(capsys, "info", tmp_path / "log.swf", "--machine", tmp_path / "m.toml", "--report", tmp_path / "p.html")
    assert "partition 2" in out
    assert "too_wide_for_partition" in out
    assert "partition 2" in (tmp_path / "p.html").read_text()
    assert json.loads(call(capsys, "info", tmp_path / "log.swf", "--json")[1])["machine"] is None


@pytest.mark.slow
def test_page__of_a_log_without_requests_gives_no_use_of_them(capsys, tmp_path):
    (tmp_path / "jobs.csv").write_text("id,submit,start,end,cpus\n" + "".join(f"{k},{k},{k + 5},{k + 60},2\n" for k in range(1, 40)))
    call(capsys, "info", tmp_path / "jobs.csv", "--procs", 8, "--report", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert "of their requested time" not in page
    assert "n/a" in page
