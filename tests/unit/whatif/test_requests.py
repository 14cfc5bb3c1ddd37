"""Changes of requests of memory, processors, GPUs and time to suggestions or to the use of jobs."""

import json
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from walltime.errors import PolicyError, WorkloadError
from walltime.machine import read_machine
from walltime.metrics.right_size import SHORT, right_sized
from walltime.whatif import parse_change, what_if
from walltime.whatif.changes import apply_change
from walltime.whatif.setting import Setting

COUNT = 60
MACHINE = """
policy = "slurm"
[[pool]]
name = "n"
nodes = 1
procs = 8
memory = 65536
gpus = 4
[[partition]]
name = "all"
pools = ["n"]
"""


def jobs_with(**columns):
    """Jobs of 100 s, one every 100 s, of one user, which ask for half of the node's memory, 4 processors and 2 GPUs."""
    time = 100 * np.arange(COUNT)
    usual = {"user": 1, "partition": 1, "nodes": 1, "mem_mb": 32_768.0, "requested_mem_mb": 32_768.0, "used_mem_mb": 1000.0, "gpus": 2}
    usual |= {"gpu_use": 0.0, "cpu_time": 50.0, "executable": 1, "requested_gpus": 2}
    given = {name: np.broadcast_to(np.asarray(one), COUNT).copy() for name, one in (usual | columns).items()}
    return wt.Workload.from_arrays(
        submit=time, runtime=np.full(COUNT, 300), requested=np.full(COUNT, 3600), procs=np.full(COUNT, 4), machine_procs=8, columns=given,
        origin=wt.workloads.Origin(names={"partition": ("all",), "state": ("COMPLETED", "OUT_OF_MEMORY")}),
    )  # fmt: skip


def test_suggested__uses_only_jobs_that_ended_before():
    need = np.where(np.arange(COUNT) < 30, 1000.0, 9000.0)
    sized = right_sized(jobs_with(used_mem_mb=need), "memory", "suggested")
    memory = sized.columns["mem_mb"]
    assert (memory[:13] == 32_768).all()
    assert memory[13] == 1024  # submitted at 1300 s, after the tenth end at 1200 s
    first = np.flatnonzero(sized.columns[SHORT])[0]
    assert first == 30
    assert memory[30] == 32_768  # 9,000 MB are more than twice 1,024 MB
    assert sized.runtime[30] == 600
    assert (sized.columns[SHORT][:30] == 0).all()
    assert memory[-1] == 9216


def test_suggested__small_requests_say_nothing_about_large_ones():
    # one job in thirty requests four times as much, and needs it; 5 % of the others may need more than is suggested
    large = np.arange(COUNT) % 30 == 29
    asked, need = np.where(large, 32_768.0, 8192.0), np.where(large, 30_000.0, 4000.0)
    sized = right_sized(jobs_with(mem_mb=asked, requested_mem_mb=asked, used_mem_mb=need), "memory", "suggested")
    assert sized.columns[SHORT].sum() == 0
    assert (sized.runtime == 300).all()
    assert (sized.columns["mem_mb"][large] == 32_768).all()
    assert (sized.columns["mem_mb"][13:29] == 4096).all()


def test_suggested__small_jobs_say_nothing_about_large_ones():
    # every fifth job is large and needs four times the memory of the others
    large = np.arange(COUNT) % 5 == 4
    jobs = jobs_with(used_mem_mb=np.where(large, 4000.0, 1000.0))
    sized = right_sized(replace(jobs, procs=np.where(large, 8, 4)), "memory", "suggested")
    assert sized.columns[SHORT].sum() == 0
    assert (sized.columns["mem_mb"][~large][-10:] == 1024).all()
    assert (sized.columns["mem_mb"][large][:10] == 32_768).all()  # fewer than ten earlier ones
    assert sized.columns["mem_mb"][-1] == 4096


def test_short_jobs__retry_with_twice_the_memory():
    need = np.where(np.arange(COUNT) == 40, 1500.0, 1000.0)
    sized = right_sized(jobs_with(used_mem_mb=need), "memory", "suggested")
    assert (sized.columns["mem_mb"][40], sized.runtime[40], sized.requested[40]) == (2048, 600, 7200)
    assert sized.columns[SHORT].sum() == 1


def test_jobs_out_of_memory__need_more_and_fail_as_today():
    state = np.where(np.arange(COUNT) % 5 == 0, 2, 1)
    sized = right_sized(jobs_with(state=state), "memory", "suggested")
    assert (sized.columns["mem_mb"] == 32_768).all()  # more than 5 % needed more than all of it
    used = right_sized(jobs_with(state=state), "memory", "used")
    assert set(used.columns["mem_mb"][state == 2]) == {32_768}
    assert set(used.columns["mem_mb"][state == 1]) == {1024}
    assert used.columns[SHORT].sum() == 0


def test_used_processors_gpus_and_time():
    jobs = jobs_with(gpu_use=np.where(np.arange(COUNT) % 2, 0.0, 80.0))
    assert set(right_sized(jobs, "cores", "used").procs) == {1}  # 50 s of 300 s on each of 4
    gpus = right_sized(jobs, "gpus", "used").columns
    assert (gpus["gpus"][::2] == 2).all()
    assert (gpus["gpus"][1::2] == 0).all()
    assert set(right_sized(jobs, "time", "used").requested) == {300}
    assert set(right_sized(jobs, "memory", 0.5).columns["mem_mb"]) == {16_384}
    several = jobs_with(nodes=2)
    assert set(right_sized(several, "cores", "used").procs) == {4}


def test_unknown_use():
    with pytest.raises(WorkloadError) as caught:
        right_sized(jobs_with(used_mem_mb=-1.0, state=1), "memory", "suggested")
    assert caught.value.code == "use_unknown"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("requests.memory=twice", "wrong_value"),
        ("requests.memory=suggested,nodes=5", "wrong_value"),
        ("requests.memory=suggested,requests.memory=used", "same_setting"),
        ("requests.memory+=5", "wrong_operator"),
        ("requests.disk=used", "unknown_name"),
    ],
)
def test_bad_changes(text, code, tmp_path):
    (tmp_path / "m.toml").write_text(MACHINE)
    with pytest.raises(PolicyError) as caught:
        apply_change(parse_change(text), Setting.of(read_machine(tmp_path / "m.toml")))
    assert caught.value.code == code


def test_what_if__smaller_requests_shorten_waits_and_count_jobs_out_of_memory(tmp_path):
    (tmp_path / "m.toml").write_text(MACHINE)
    need = np.where(np.arange(COUNT) == 40, 1500.0, 1000.0)
    found = what_if(
        jobs_with(used_mem_mb=need),
        read_machine(tmp_path / "m.toml"),
        ["requests.memory=suggested,requests.gpus=used,requests.procs=used", "requests.gpus=used"],
        replications=0,
        trim="none",
    )
    both, gpus = found.effects
    assert both.name == "memory requests as suggested, GPU requests as used and processor requests as used"
    assert found.today.wait.mean() > 0
    assert both.schedule.wait.mean() < found.today.wait.mean() / 2
    assert gpus.schedule.wait.tolist() == found.today.wait.tolist()  # memory and processors are short, too
    assert (both.cost.short_jobs, gpus.cost.short_jobs) == (1, 0)
    assert both.cost.users_worse == 1  # the only user, whose job runs out of memory
    assert both.cost.work_lost_hours == pytest.approx(300 * 4 / 8 / 3600)
    assert "out of memory at first" in found.answer()


@pytest.mark.slow
def test_command__joins_a_table_of_use(tmp_path, capsys):
    (tmp_path / "m.toml").write_text(MACHINE)
    head = "JobIDRaw|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes|State|AllocTRES|ReqTRES"
    begin, rows = 1_772_323_200, []
    for k in range(COUNT):
        start = begin + 10 * k + 300 * (k // 2)
        tres = "cpu=4,mem=32G,node=1"
        rows.append(f"{k + 1}|u|all|{begin + 10 * k}|{start}|{start + 300}|300|60|4|1|COMPLETED|{tres}|{tres}")
    (tmp_path / "log").write_text("\n".join([head, *rows]) + "\n")
    arguments = ("what-if", tmp_path / "log", "--machine", tmp_path / "m.toml", "--replications", 0, "--trim", "none")
    arguments += ("--change", "requests.memory=used,requests.procs=used")
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (1, "")
    assert "does not record the memory that its jobs used" in err.splitlines()[-1]
    (tmp_path / "use.csv").write_text("job_id,max_memory_gb,cpu_seconds\n" + "".join(f"{k + 1},2,300\n" for k in range(COUNT)))
    status, out, err = call(capsys, *arguments, "--use", tmp_path / "use.csv", "--json")
    assert status == 0, err
    assert "60 of 60 jobs" in err
    (effect,) = json.loads(out)["effects"]
    assert effect["percent"] < 0
