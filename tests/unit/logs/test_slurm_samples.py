"""Real outputs of three versions of Slurm; skipped where there are none."""

import numpy as np
import pytest

from tests.cli import call
from tests.slurm_text import job, samples
from walltime.logs import read_log


def test_transcript__of_several_calls(tmp_path):
    """With steps, and without them but with the runs of requeued jobs."""
    parts = (samples().parent / "sacct-sample.txt").read_text().split("\n\n")
    tables = [part.split("\n", 1)[1] for part in parts if part.startswith("$ sacct -a -P") and "\nJobID" in part]
    logs = []
    for table in tables[:2]:
        (tmp_path / "log").write_text(table)
        logs.append(read_log(tmp_path / "log"))
        assert logs[-1].records + sum(logs[-1].dropped.values()) == table.strip().count("\n")
        assert not logs[-1].bad_lines
    steps, runs = logs
    assert dict(steps.changed)["start_from_step"] == 1
    assert (dict(runs.dropped)["lost_start"], dict(runs.noticed)["requeued"]) == (1, 1)
    assert 1 in steps.column("job_id")
    assert 1 not in runs.column("job_id")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("sacct-wide.txt", marks=pytest.mark.nightly),
        "24.11/sacct-wide.txt",
        pytest.param("26.05/sacct.json", marks=pytest.mark.nightly),
    ],
)
def test_commands__on_real_outputs(name, tmp_path, capsys):
    path = samples() / name
    common = ("--procs", "16", "--time-zone", "Europe/Berlin")
    assert call(capsys, "info", path, *common)[0] == 0
    assert call(capsys, "simulate", path, *common, "--policy", "easy", "--by", "users")[0] == 0
    assert call(capsys, "compare", path, *common, "--report", tmp_path / "r.html")[0] == 0
    number = int(read_log(path).column("job_id")[0])
    assert call(capsys, "explain", path, *common, "--job", number, "--no-sooner")[0] == 0
    for ending in ("swf", "parquet", "csv"):
        assert call(capsys, "convert", path, "--out", tmp_path / f"a.{ending}", *common)[0] == 0
        assert read_log(tmp_path / f"a.{ending}").records == read_log(path).records


@pytest.mark.slow
def test_real_outputs__of_three_versions():
    for version, jobs, dropped in (("", 25, {"step": 26}), ("24.11", 20, {"step": 24, "still_pending": 3, "still_running": 1})):
        log = read_log(samples() / version / "sacct-wide.txt")
        assert (log.records, dict(log.dropped)) == (jobs, dropped)
    newest = read_log(samples() / "26.05" / "sacct-wide.txt")
    assert (newest.records, dict(newest.dropped)) == (20, dropped)
    assert dict(newest.changed) == {"eligible_later": 5, "unlimited": 1}  # it does not shrink limits to their least
    assert dict(read_log(samples() / "sacct-pending-array.txt").dropped) == {"still_pending": 2, "still_running": 1}


def test_real_json__says_the_same_as_the_text():
    text, data = (read_log(samples() / name).to_workload(procs=16) for name in ("sacct-wide.txt", "sacct.json"))
    assert all(np.array_equal(getattr(text, name), getattr(data, name)) for name in ("job_id", "submit", "runtime", "procs"))
    differs = text.requested != data.requested
    assert (text.requested[differs].tolist(), data.requested[differs].tolist()) == ([1200], [180])  # without the command line
    assert all(np.array_equal(text.columns[name], data.columns[name]) for name in ("wait", "status", "array_job", "sched_backfill"))
    for name in ("user", "group", "queue", "partition", "executable", "state"):
        names = [[w.origin.name_of(name, number) for number in w.columns[name].tolist()] for w in (text, data)]
        assert names[0] == names[1]


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_real_json__of_newer_versions(version):
    log, text = (read_log(samples() / version / name) for name in ("sacct.json", "sacct-wide.txt"))
    assert dict(log.dropped) == {"still_pending": 2, "still_running": 1}
    for number in log.column("job_id").tolist():
        data, line = job(log, number), job(text, number)
        names = (
            "wait",
            "runtime",
            "requested",
            "allocated_procs",
            "user",
            "group",
            "queue",
            "nodes",
            "sched_backfill",
            "state",
        )
        assert {name: data[name] for name in names} == {name: line[name] for name in names}
        assert line["executable"] in (data["executable"], None)  # None where the text has a separator in it


def test_squeue_json__gives_its_ended_jobs():
    log = read_log(samples() / "squeue.json")
    assert (log.records, dict(log.dropped)) == (19, {"still_pending": 6, "still_running": 1})
    assert {name: job(log, 2)[name] for name in ("runtime", "nodes", "state")} == {"runtime": 11, "nodes": 2, "state": "COMPLETED"}
    assert dict(log.to_workload(procs=16).origin.dropped)["cancelled_before_start"] == 1
