"""Suggested memory, processors and GPUs, on logs with known use."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.waste_month import month, sacct_text, write
from walltime.accuracy.requests import judge_requests, sbatch_line
from walltime.errors import WorkloadError
from walltime.metrics.right_size import right_sized
from walltime.usage import suggest_requests, waste

COUNT = 600


def jobs_with(need, state=None, **columns):
    names = ("COMPLETED", "OUT_OF_MEMORY")
    whole = {"used_mem_mb": need, "requested_mem_mb": np.full(len(need), 65_536.0), "mem_mb": np.full(len(need), 65_536.0)} | columns
    whole |= {"user": np.full(len(need), 1), "state": np.ones(len(need), np.int64) if state is None else state}
    origin = wt.workloads.Origin(names={"state": names})
    time = np.arange(len(need))
    return wt.Workload.from_arrays(
        submit=time, runtime=np.full(len(need), 100), procs=np.full(len(need), 8), machine_procs=8, columns=whole, origin=origin
    )


@pytest.mark.parametrize("risk", [1.0, 5.0, 20.0])
def test_memory__keeps_its_risk_on_jobs_that_do_not_change(risk):
    need = np.random.default_rng(3).lognormal(8, 0.6, COUNT)
    (advice,) = suggest_requests(jobs_with(need), np.arange(COUNT), risk)
    assert advice.resource == "memory"
    deviation = 100 * math.sqrt(risk / 100 * (1 - risk / 100) / COUNT)
    assert abs(advice.short - risk) < 4 * deviation + 1
    assert (need > advice.amount).mean() <= risk / 100
    assert advice.amount - 256 < np.sort(need)[-1 - int(risk * COUNT / 100)]
    assert advice.over < advice.over_requests


def test_memory__suggestions_never_use_later_jobs():
    need = np.concatenate([np.full(300, 1000.0), np.full(300, 5000.0)])
    (advice,) = suggest_requests(jobs_with(need), np.arange(COUNT), 5.0)
    # the first large jobs are short, until over 5 % of the jobs so far are large: 16 of 316
    assert advice.short == pytest.approx(100 * 16 / (COUNT - 10))


def test_memory__jobs_out_of_memory_count_as_more():
    need, state = np.full(100, 1000.0), np.ones(100, np.int64)
    state[::5] = 2
    (advice,) = suggest_requests(jobs_with(need, state), np.arange(100), 5.0)
    assert advice.amount > 65_536
    (ignored,) = suggest_requests(jobs_with(need), np.arange(100), 5.0)
    assert ignored.amount == 1024


def test_memory__jobs_out_of_memory_alone_are_no_record_of_use():
    state = np.where(np.arange(100) % 5, 1, 2)
    jobs = jobs_with(np.full(100, -1.0), state)
    assert suggest_requests(jobs, np.arange(100), 5.0) == []
    assert judge_requests(jobs) == []


def test_memory__failures_have_their_price():
    # twelve small jobs, then one that needs 3 times and one that needs 1.5 times the suggested 1,024 MB
    need = np.array([1000.0] * 12 + [3000.0, 1500.0])
    (advice,) = suggest_requests(jobs_with(need), np.arange(14), 20.0)
    hours = 100 / 3600
    assert advice.lost == pytest.approx(3 * 8 * hours)  # the first one fails twice
    assert advice.short_twice == pytest.approx(100 / 4)
    held = 4 * 1024 + 2 * 2048 + 65_536
    assert advice.saved == pytest.approx(100 * (1 - held / (4 * 65_536)))


def test_judgement__needs_of_all_jobs_by_hand():
    # half of the jobs need 1,000 MB and half 5,000; from the eleventh on, 10 earlier jobs are known
    need, state = np.where(np.arange(40) % 4 == 3, 5000.0, 1000.0), np.ones(40, np.int64)
    state[20], asked = 2, np.full(40, 4096.0)
    jobs = jobs_with(need, state, requested_mem_mb=asked, mem_mb=asked)
    jobs = replace(jobs, submit=np.arange(40) * 1000)
    requests, suggestions = (one for one in judge_requests(jobs, [5.0]) if one.resource == "memory")
    assert (requests.jobs, suggestions.jobs) == (30, 30)
    large = sum(job % 4 == 3 for job in range(10, 40))
    assert requests.under == pytest.approx(100 * (large + 1) / 30)  # the job that ran out of memory needed more
    small = 30 - large - 1
    assert requests.over == pytest.approx(100 * (4096 * small - 1000 * small) / (1000 * small))
    assert suggestions.under == 0
    assert suggestions.over == pytest.approx(100 * (5120 * 29 - 1000 * small - 5000 * large) / (1000 * small + 5000 * large))
    assert math.isnan(suggestions.under_low)


def test_judgement__of_a_swf_log_uses_its_memory_by_processor():
    use = np.random.default_rng(5).lognormal(8, 0.6, 400)
    per_proc = {"memory": use * 1024 / 8, "requested_memory": np.full(400, 8192.0)}
    jobs = jobs_with(use)
    columns = {name: values for name, values in jobs.columns.items() if "mem" not in name} | per_proc
    swf = replace(jobs, submit=np.arange(400) * 40_000, columns=columns)
    asked = replace(jobs, submit=swf.submit, columns=jobs.columns | dict.fromkeys(("requested_mem_mb", "mem_mb"), np.full(400, 64.0)))
    assert judge_requests(swf)[1] == judge_requests(asked)[1]
    requests, suggestions = judge_requests(swf)
    with pytest.raises(WorkloadError) as caught:
        right_sized(swf, "memory", "suggested")
    assert caught.value.code == "use_unknown"
    assert requests.under == 100
    assert suggestions.under_low < suggestions.under < suggestions.under_high
    memory = waste(swf).total.hours["memory"]  # the log does not record allocations, and each job used more than it requested
    assert memory.allocated == memory.used == pytest.approx(use.sum() / 1024 * 100 / 3600)


def test_suggestions_that_allocate_more_than_the_requests_do_not_help():
    need = np.where(np.arange(200) % 2, 500.0, 5000.0)
    exact = jobs_with(need, requested_mem_mb=need + 1)
    (advice,) = suggest_requests(exact, np.arange(200), 5.0)
    assert advice.over > advice.over_requests
    assert not advice.helps
    assert suggest_requests(jobs_with(need), np.arange(200), 5.0)[0].helps


@pytest.mark.slow
def test_command__warns_of_suggestions_that_are_worse_than_requests(golden, tmp_path, capsys):
    jobs = [job | {"user": "u1", "asked_mb": (job["used_mb"] or 2) + 2} for job in month(60)]
    path = write(tmp_path, jobs)["text"]
    golden("suggest", call(capsys, "suggest", path, "--procs", 200, "--user", "u1", "--risk", 5)[1].split("\n\n")[0])


def test_cores_and_gpus():
    need = np.full(50, 1000.0)
    more = {"cpu_time": np.full(50, 100 * 2.5 / 8), "gpus": np.full(50, 2), "gpu_use": np.full(50, 40.0), "requested_gpus": np.full(50, 2)}
    found = {one.resource: one for one in suggest_requests(jobs_with(need, **more), np.arange(50))}
    assert (found["cores"].amount, found["cores"].median_request, found["gpus"].amount) == (3, 8, 2)
    assert found["cores"].over == pytest.approx(20)
    idle = suggest_requests(jobs_with(need, **more | {"gpu_use": np.zeros(50)}), np.arange(50))
    assert idle[-1].amount == 0
    assert sbatch_line("1:00:00", idle, True) == "sbatch --time=1:00:00 --mem=1024M --cpus-per-task=3"
    # on several nodes, processors are not suggested, and memory is by processor: 1,024 MB of the job divided by its eight
    assert sbatch_line("1:00:00", list(found.values()), False) == "sbatch --time=1:00:00 --gpus=2"
    assert sbatch_line("1:00:00", [found["memory"]], False, procs=8) == "sbatch --time=1:00:00 --mem-per-cpu=128M"
    assert sbatch_line("1:00:00", [found["memory"]], False) == "sbatch --time=1:00:00"


def test_use_of_a_few_kilobytes__has_no_absurd_percentages(golden, tmp_path, capsys):
    # 4 KB of 1 GB on two nodes of one or two processors, and idle GPUs; then requests of 1 MB, which the smallest suggestion exceeds
    jobs = [
        job | {"user": "u1", "used_mb": 2, "cpu": 100, "gpu_use": 0, "gpus": 2, "nodes": 2, "procs": 2 + 2 * (k % 2)}
        for k, job in enumerate(month(40))
    ]
    for asked in (1024, 2):
        path = tmp_path / f"{asked}.log"
        path.write_text(
            sacct_text([job | {"asked_mb": asked, "state": "COMPLETED", "run": 3600} for job in jobs]).replace("mem=2048K", "mem=4K")
        )
        out = call(capsys, "suggest", path, "--procs", 200, "--user", "u1", "--risk", 5)[1]
        golden("suggest", out.split("Walltimes by")[0])


def test_varied_jobs__are_told_by_name(golden, tmp_path, capsys):
    jobs = [
        job | {"user": "u1", "name": "align" if k % 3 else "train", "run": 100 if k % 3 else 9000, "limit": 86_400}
        for k, job in enumerate(month(40))
    ]
    path = tmp_path / "site.log"
    path.write_text(sacct_text(jobs))
    golden(
        "suggest",
        *(
            call(capsys, "suggest", path, "--procs", 200, "--user", "u1", *words)[1].split("Other")[0]
            for words in ((), ("--job-name", "align"))
        ),
    )


def test_unknown_use__gives_nothing():
    need = np.full(50, -1.0)
    need[:9] = 1000
    assert suggest_requests(jobs_with(need), np.arange(50)) == []


@pytest.mark.slow
def test_command(golden, tmp_path, capsys, monkeypatch):
    path = write(tmp_path, month(300))["text"]
    golden("suggest", call(capsys, "suggest", path, "--procs", 200, "--user", "u1", "--risk", 5)[1])
    monkeypatch.setattr("getpass.getuser", lambda: "u1")
    status, out, _ = call(capsys, "suggest", path, "--procs", 200, "--user", "me", "--risk", 5, "--json")
    assert status == 0
    assert [one["resource"] for one in json.loads(out)["requests"]] == ["memory", "cores", "gpus"]
