"""`walltime calibrate` and `walltime what-if`: what they print and write, and one line for what is wrong."""

import json
from pathlib import Path

import pytest

from tests.cli import call, one_line
from tests.pages import outline
from tests.sites import MACHINE, jobs_of, recorded_as, write_site
from walltime.machine import Machine, write_machine


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    return (*write_site(folder, recorded_as(jobs_of(MACHINE, jobs=2500), MACHINE, "easy", late=60), MACHINE), folder)


@pytest.mark.slow
def test_calibrate__prints_the_verdict_and_writes_what_what_if_reads(golden, capsys, site):
    log, cluster, folder = site
    status, out, err = call(
        capsys, "calibrate", log, "--machine", cluster, "--out", folder / "c.json", "--report", folder / "c.html", "--trim", "none"
    )
    assert (status, err) == (0, "")
    golden("calibrate", out)
    assert "calibration written to" in out
    page = (folder / "c.html").read_text()
    golden("calibrate", outline(page))
    status, out, _ = call(
        capsys, "what-if", log, "--machine", cluster, "--change", "nodes+=50%", "--calibration", folder / "c.json", "--replications", 0
    )
    assert status == 0
    assert out.startswith("50 % more nodes: ")
    assert len(out.splitlines()) < 40
    status, out, _ = call(capsys, "what-if", log, "--machine", cluster, "--change", "nodes+=50%", "--replications", 0, "--verbose")
    assert "pool thin: nodes 12 → 18" in out
    assert "Notes:" in out


def test_what_if__names_the_pools_that_a_percentage_changes(capsys, site):
    log, cluster, _ = site
    given = ("--change", "nodes+=50%", "--change", "pool.thin.nodes+=1", "--replications", 0)
    _, out, _ = call(capsys, "what-if", log, "--machine", cluster, *given)
    assert "pool thin: nodes 12 → 18; pool fat: nodes 2 → 3" in " ".join(out.split())
    assert "nodes 12 → 13" not in out, "the change names its pool itself"


def test_calibrate__json_has_everything(capsys, site):
    status, out, _ = call(capsys, "calibrate", site[0], "--machine", site[1], "--json", "--policy", "easy:order=sjf")
    found = json.loads(out)
    assert status == 0
    assert found["policy"] == "easy:order=sjf"
    assert found["rows"][0]["by"] == "all jobs"
    assert set(found) >= {"verdict", "months", "utilization", "evidence", "sha256", "machine_digest"}


def test_calibrate__of_a_window_begins_with_the_jobs_of_that_time(capsys, site):
    status, out, _ = call(capsys, "calibrate", site[0], "--machine", site[1], "--window", "2d:30d", "--json", "--trim", "none")
    assert status == 0
    assert json.loads(out)["rows"][0]["jobs"] < 2500


@pytest.mark.slow
def test_what_if_and_calibrate__without_a_file_take_one_pool_of_the_logs_processors(capsys, site, tmp_path):
    log, _, _ = site
    alike = tmp_path / "alike.toml"
    alike.write_text(write_machine(Machine.one_pool(MACHINE.procs, "log", "easy")))
    for command in (["calibrate"], ["what-if", "--change", "nodes+=10%", "--replications", 0]):
        said = [
            json.loads(call(capsys, command[0], log, *command[1:], *options, "--json")[1])
            for options in ((), ("--procs", MACHINE.procs), ("--machine", alike), ("--procs", 2 * MACHINE.procs))
        ]
        assert said[0] == said[1] == said[2] != said[3]


def test_what_if_calibrate_and_simulate__measure_jobs_with_gpus_on_a_number_of_processors(capsys, tmp_path):
    rows = "".join(f"{n},u{n % 3},{n % 3},4,{10**9 + 40 * n},{10**9 + 50 * n},{10**9 + 90 * n}\n" for n in range(1, 40))
    (tmp_path / "log.csv").write_text(f"job_id,user,gpus,cpus,submit_time,start_time,end_time\n{rows}")
    usual = (tmp_path / "log.csv", "--procs", 8, "--trim", "none", "--json")
    changed = json.loads(call(capsys, "what-if", *usual, "--change", "nodes+=50%", "--replications", 0)[1])
    assert (changed["today"]["jobs"], changed["left_out"]["rules"]) == (39, [])
    assert any("GPUs" in one for one in changed["caveats"])
    found = json.loads(call(capsys, "calibrate", *usual)[1])
    assert (found["rows"][0]["jobs"], found["drops"]) == (39, [])
    machine = tmp_path / "machine.toml"
    machine.write_text('policy = "easy"\n[[pool]]\nname = "a"\nnodes = 8\nprocs = 1\n[[partition]]\nname = "a"\npools = ["a"]\n')
    assert json.loads(call(capsys, "simulate", *usual, "--machine", machine)[1])["jobs"] == 39


@pytest.mark.slow
def test_what_if__writes_a_page_a_table_and_json(capsys, site):
    log, cluster, folder = site
    files = ("--report", folder / "w.html", "--out", folder / "w.csv")
    changes = ("--change", "nodes+=50%", "--change", "partition.1.MaxTime=2h")
    status, out, err = call(capsys, "what-if", log, "--machine", cluster, *changes, "--replications", 2, "--verbose", *files)
    assert (status, err) == (0, "")
    for said in (
        "Uncertainty of the difference in mean wait",
        "Ranking of the changes",
        "node-hours",
        "Winners and losers",
        "report written to",
        "3 rows written to",
    ):
        assert said in out
    page = (folder / "w.html").read_text()
    for said in ("Effect of each change", "Uncertainty", "Winners and losers", "Cost", "Command to reproduce this page"):
        assert said in page
    assert (folder / "w.csv").read_text().startswith("change,jobs,mean_wait")
    status, out, _ = call(capsys, "what-if", log, "--machine", cluster, *changes, "--replications", 0, "--json")
    found = json.loads(out)
    assert [effect["change"] for effect in found["effects"]] == ["nodes+=50%", "partition.1.MaxTime=2h"]
    assert sorted(found["ranking"]) == sorted(effect["change"] for effect in found["effects"])
    assert found["best"] == found["ranking"][0]
    assert found["calibration"]["verdict"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["what-if"],
        ["what-if", "--change", "colour=red"],
        ["what-if", "--change", "nodes+=4"],
        ["what-if", "--change", "SchedulerParameters+=bf_continue"],
        ["what-if", "--change", "nodes+=50%", "--policy", "fastest"],
        ["what-if", "--change", "nodes+=50%", "--calibration", "missing.json"],
        ["what-if", "--change", "nodes+=50%", "--out", "table.xlsx"],
        ["what-if", "--change", "nodes+=50%", "--window", "soon"],
        ["what-if", "--change", "nodes+=50%", "--submissions", "leave"],
        ["what-if", "--change", "policy=easy:extra=literal", "--replications", "0"],
        ["calibrate", "--out", "table.csv"],
        ["calibrate", "--window", "9000d:9001d"],
        ["calibrate", "--policy", "slurm:fast=yes"],
    ],
)
def test_wrong_calls__get_one_line(golden, capsys, site, arguments):
    command, *rest = arguments
    golden(command, one_line(*call(capsys, command, site[0], "--machine", site[1], *rest)))


def test_wrong_files__get_one_line(golden, capsys, site, tmp_path):
    log, cluster, _ = site
    bare = tmp_path / "bare.toml"
    bare.write_text("".join(line for line in Path(cluster).read_text().splitlines(True) if not line.startswith("policy")))
    golden("calibrate", one_line(*call(capsys, "calibrate", log, "--machine", bare)))
    assert "cannot be read" in one_line(*call(capsys, "calibrate", log, "--machine", tmp_path / "none.toml"))
    other = tmp_path / "other.json"
    other.write_text("{}")
    change = ("--change", "nodes+=50%", "--calibration", other)
    assert "not a calibration" in one_line(*call(capsys, "what-if", log, "--machine", cluster, *change))
    unknown = tmp_path / "unknown.swf"
    unknown.write_text("; MaxProcs: 128\n1 0 -1 10 1 -1 -1 1 10 -1 1 1 -1 -1 -1 1 -1 -1\n")
    assert "records no waits" in one_line(*call(capsys, "calibrate", unknown, "--machine", cluster))
