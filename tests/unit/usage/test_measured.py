"""Tables of use by job from other programs, joined to a log."""

import json

import numpy as np
import pytest

import walltime as wt
from tests.cli import call, one_line
from tests.jobstats_texts import node, summary
from tests.waste_month import month, sacct_text, write
from walltime.errors import LogError
from walltime.usage import suggest_requests, waste, with_use

JOBS = month()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("month"), JOBS)


def table(path, head, rows):
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def prometheus(path):
    """A row for each job, in Prometheus's units; nothing where the measurement was lost."""
    rows = [
        (job["job"], job["cpu"], job["used_mb"] * 2**20, "" if job["gpu_use"] is None else job["gpu_use"] / 100, job["joules"] or "")
        for job in JOBS
        if job["cpu"] is not None
    ]
    return table(path, "jobid,cpu_seconds_total,max_memory_bytes,gpu_utilization_ratio,energy_joules_total", rows)


@pytest.mark.slow
def test_table__gives_the_numbers_of_steps(files, tmp_path):
    joined = with_use(wt.read(files["nothing"], procs=10_000), prometheus(tmp_path / "use.csv"))
    known = sum(job["cpu"] is not None for job in JOBS)
    assert (joined.rows, joined.jobs, joined.unknown, joined.repeated) == (known, known, 0, 0)
    found, expected = waste(joined.workload), waste(wt.read(files["text"], procs=10_000))
    for name, hours in expected.total.hours.items():
        for kind in ("asked", "allocated", "measured", "used", "unmeasured_jobs"):
            assert getattr(found.total.hours[name], kind) == pytest.approx(getattr(hours, kind), rel=1e-9, nan_ok=True), (name, kind)


def test_table__rows_of_nodes_and_gpus_are_added_up_and_titles_have_units(files, tmp_path):
    rows = [("7", 0.5, 1, 0), ("7.server", 0.25, 2, 80), ("999999", 1, 1, 1), ("8", "", "", "")]
    job = next(k for k, one in enumerate(JOBS) if one["gpus"] == 2)
    rows = [(JOBS[job]["job"], *one[1:]) if one[0].startswith("7") else one for one in rows]
    joined = with_use(
        wt.read(files["nothing"], procs=10_000),
        table(tmp_path / "use.csv", "Job ID,CPU Hours,Max Memory (GB),GPU utilization %", rows),
    )
    w = joined.workload
    assert (joined.unknown, joined.jobs) == (1, 2)
    assert w.columns["cpu_time"][job] * w.procs[job] == 0.75 * 3600
    assert (w.columns["used_mem_mb"][job], w.columns["gpu_use"][job], w.columns["gpus_idle"][job]) == (3072, 40, 1)
    assert (np.delete(w.columns["used_mem_mb"], job) == -1).all()


def test_table__tasks_of_arrays(tmp_path):
    head = "JobIDRaw|JobID|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|State"
    times = "1772323200|1772323300|1772324300|1000|60|4|COMPLETED"
    (tmp_path / "log").write_text("\n".join([head, f"8|7_1|{times}", f"7|7_2|{times}", f"9|9|{times}"]) + "\n")
    joined = with_use(
        wt.read(tmp_path / "log", procs=8), table(tmp_path / "use.csv", "jobid,cpu_seconds", [("7_1", 40), ("7[2]", 80), (9, 4)])
    )
    by_number = dict(zip(joined.workload.job_id.tolist(), joined.workload.columns["cpu_time"].tolist(), strict=True))
    assert by_number == {8: 10, 7: 20, 9: 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "row", "code"),
    [
        ("cpu_seconds", (1,), "missing_column"),
        ("jobid,colour", (1, 2), "missing_column"),
        ("jobid,max_memory", (1, 2), "missing_column"),
        ("jobid,job_id,cpu_seconds", (1, 2, 3), "repeated_column"),
        ("jobid,cpu_seconds", (1, "many"), "not_a_number"),
        ("jobid,cpu_seconds", (1, -5), "not_a_number"),
    ],
)
def test_bad_tables(files, tmp_path, head, row, code):
    with pytest.raises(LogError) as caught:
        with_use(wt.read(files["nothing"], procs=10_000), table(tmp_path / "use.csv", head, [row]))
    assert caught.value.code == code


def test_jobstats__shows_idle_gpus_next_to_busy_ones(tmp_path):
    head = "JobIDRaw|User|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|State|AllocTRES|AdminComment"
    own = summary(node(100, 2**30, [(90, 1), (0, 1), (0.5, 1), (70, 1)]))
    rows = [f"{k}|u|{1772323200 + k}|1772323300|1772330500|7200|240|4|COMPLETED|cpu=4,gres/gpu=4|{own}" for k in range(1, 13)]
    (tmp_path / "log").write_text("\n".join([head, *rows]) + "\n")
    jobs = wt.read(tmp_path / "log", procs=8)
    pattern = next(one for one in waste(jobs).patterns if one.name == "some_idle_gpus")
    assert (pattern.jobs, pattern.judged, pattern.unused) == (12, 12, 12 * 2 * 2)
    advice = {one.resource: one.amount for one in suggest_requests(jobs, np.arange(12))}
    assert advice["gpus"] == 2


@pytest.mark.slow
def test_suggest__with_a_table_has_the_requests_of_steps(files, tmp_path, capsys):
    words = ("--user", "u1", "--procs", 200, "--json")
    by_table = json.loads(call(capsys, "suggest", files["nothing"], *words, "--use", prometheus(tmp_path / "use.csv"))[1])
    by_steps = json.loads(call(capsys, "suggest", files["text"], *words)[1])
    assert [one["resource"] for one in by_table["requests"]] == ["memory", "cores", "gpus"]
    for one, other in zip(by_table["requests"], by_steps["requests"], strict=True):
        assert one == pytest.approx(other, nan_ok=True)


def test_suggest__has_a_request_for_each_kind_of_job(golden, tmp_path, capsys):
    alike = {"user": "ann", "partition": "main", "gpus": 0, "gpu_use": None, "nodes": 1, "procs": 1, "state": "COMPLETED", "limit": 86_400}
    kinds = ({"name": "short", "run": 600, "used_mb": 900}, {"name": "long", "run": 36_000, "used_mb": 9000})
    jobs = [one | alike | {"asked_mb": 16_384} | kinds[k % 2] for k, one in enumerate(month(60))]
    jobs = [one | {"cpu": one["run"]} for one in jobs]
    command = ("suggest", tmp_path / "log", "--procs", 64, "--user", "ann")
    (tmp_path / "log").write_text(sacct_text(jobs))
    found = json.loads(call(capsys, *command, "--json")[1])["kinds"]
    assert [(one["kind"]["executable"], one["jobs"], one["walltime"]) for one in found] == [("short", 30, 600), ("long", 30, 36_000)]
    assert [one["command"] for one in found] == ["sbatch --time=0:10:00 --mem=1024M", "sbatch --time=10:00:00 --mem=9216M"]
    golden("suggest", call(capsys, *command)[1].split("Other resources")[0])
    (tmp_path / "log").write_text(sacct_text([one | kinds[0] | {"name": one["name"]} for one in jobs]))
    assert json.loads(call(capsys, *command, "--json")[1])["kinds"] == []


@pytest.mark.slow
def test_command(golden, files, capsys, tmp_path):
    use = prometheus(tmp_path / "use.csv")
    status, out, _ = call(capsys, "waste", files["nothing"], "--use", use)
    assert status == 0
    golden("waste", out)
    page = tmp_path / "waste.html"
    record = json.loads(call(capsys, "waste", files["nothing"], "--use", use, "--json", "--report", page)[1])
    assert record["use"] == {
        "rows": sum(job["cpu"] is not None for job in JOBS),
        "jobs": record["use"]["rows"],
        "unknown": 0,
        "repeated": 0,
    }
    assert "The table of use has" in page.read_text()
    golden("waste", one_line(*call(capsys, "waste", files["nothing"], "--use", table(use, "jobid,cpu_seconds", [(1, "x")]))))
