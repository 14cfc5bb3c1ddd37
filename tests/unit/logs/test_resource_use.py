"""The use of processors, memory and GPUs that batch systems record, read from their files."""

import base64
import gzip
import json
import re

import pytest

from tests.accounting_records import BEGIN, class_ads, condor, grid_engine, lsf, pbs, qacct
from tests.jobstats_texts import node, packed, summary
from walltime.logs import read_log

JOB = (101, BEGIN, BEGIN + 100, BEGIN + 1100, 2, 4, 1, 3600, True)
"""Two nodes with 4 processors and a GPU each, for 1,000 s."""
HEAD = "JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|State|AllocTRES|TotalCPU|MaxRSS|AdminComment"


def read(tmp_path, text, name="log"):
    (tmp_path / name).write_text(text)
    return read_log(tmp_path / name)


def values(log, *names):
    return [float(log.column(name)[0]) if name in log.columns else -1 for name in names]


def slurm(tmp_path, *comments):
    tres = "cpu=8,mem=64G,node=2,gres/gpu=3"
    times = f"{BEGIN}|{BEGIN + 100}|{BEGIN + 1100}|1000|60"
    jobs = [f"{k}|{times}|8|COMPLETED|{tres}|00:20:00||{comment}" for k, comment in enumerate(comments, 1)]
    steps = [f"{k}.batch|{times}|8|COMPLETED|{tres}|00:20:00|1024K|" for k in range(1, len(comments) + 1)]
    return read(tmp_path, "\n".join([HEAD, *jobs, *steps]) + "\n")


@pytest.mark.parametrize(("text", "seconds"), [("00:00.043", 0.043), ("00:06.016", 6.016), ("1-00:00:01.5", 86_401.5), ("00:00:00", -8)])
def test_slurm__processor_time_below_a_second_is_known(tmp_path, text, seconds):
    times = f"{BEGIN}|{BEGIN + 100}|{BEGIN + 1100}|1000|60|8|COMPLETED|cpu=8"
    log = read(tmp_path, f"{HEAD}\n1|{times}|{text}||\n")
    assert values(log, "cpu_time") == [seconds / 8]


def test_slurm__processor_time_of_json_has_microseconds(tmp_path):
    job = {
        **{"job_id": 1, "user": "ann", "partition": "p", "state": {"current": ["COMPLETED"]}, "allocation_nodes": 1},
        "time": {"submission": BEGIN, "eligible": BEGIN, "start": BEGIN, "end": BEGIN + 100, "elapsed": 100, "limit": 60}
        | {"total": {"seconds": 0, "microseconds": 43_000}},
        **{
            "required": {"CPUs": 4},
            "tres": {"allocated": [{"type": "cpu", "name": "", "id": 1, "count": 4}], "requested": []},
            "steps": [],
        },
    }
    jobs = [job, job | {"job_id": 2, "time": job["time"] | {"total": {"seconds": 8, "microseconds": 0}}}]
    log = read(tmp_path, json.dumps({"jobs": jobs, "meta": {"slurm": {}}}), "log.json")
    assert log.column("cpu_time").tolist() == [0.043 / 4, 2]


def test_jobstats__sums_nodes_and_averages_gpus(tmp_path):
    text = summary(node(4000.5, 3 * 2**30, [(90, 2**30)]), node(2000, 2**30, [(30, 2**31), (0, 0)]))
    log = slurm(tmp_path, text)
    assert values(log, "cpu_time", "used_mem_mb", "gpu_use", "gpu_mem_mb") == [6000.5 / 8, 4096, 40, 3072]


@pytest.mark.parametrize("text", ["JS1:None", "JS1:Short", "", "see ticket 12"])
def test_jobstats__without_a_summary_the_steps_count(tmp_path, text):
    log = slurm(tmp_path, text, summary(node(1, 2**20)))
    assert values(log, "cpu_time", "used_mem_mb", "gpu_use") == [150, 1, -1]
    assert "unreadable_value" not in log.noticed


def test_jobstats__a_measure_that_one_node_lacks_is_unknown(tmp_path):
    lacking = {name: value for name, value in node(10, 1).items() if name != "used_memory"}
    log = slurm(tmp_path, summary(node(800, 2**30), lacking))
    assert values(log, "cpu_time", "used_mem_mb") == [810 / 8, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        packed({"nodes": []}),
        packed({"nodes": {"n1": 5}}),
        packed([1]),
        packed({"nodes": {"n1": {"total_time": "x", "used_memory": 1}}}),
        packed({"nodes": {"n1": {"total_time": -5, "used_memory": 1}}}),
        summary(node(1, 1))[:-8],
        "JS1:abc",
        f"JS1:{base64.b64encode(gzip.compress(b'0' * 2**25)).decode()}",
    ],
    ids=["list", "number", "whole list", "text", "negative", "cut", "no gzip", "huge"],
)
def test_jobstats__unreadable_summaries_are_counted(tmp_path, text):
    log = slurm(tmp_path, text)
    assert log.noticed["unreadable_value"] == 1
    assert values(log, "cpu_time", "used_mem_mb") == [150, 1]


def test_jobstats__in_json(tmp_path):
    job = {
        **{"job_id": 1, "user": "ann", "partition": "p", "state": {"current": ["COMPLETED"]}, "allocation_nodes": 1},
        **{"time": {"submission": BEGIN, "eligible": BEGIN, "start": BEGIN, "end": BEGIN + 100, "elapsed": 100, "limit": 60}},
        **{"required": {"CPUs": 4}, "tres": {"allocated": [{"type": "cpu", "name": "", "id": 1, "count": 4}], "requested": []}},
        **{"comment": {"administrator": summary(node(200, 2**30)), "job": "", "system": ""}, "steps": []},
    }
    log = read(tmp_path, json.dumps({"jobs": [job], "meta": {"slurm": {}}}), "log.json")
    assert values(log, "cpu_time", "used_mem_mb", "gpu_use") == [50, 1024, -1]


def test_pbs(tmp_path):
    line = pbs(JOB).strip() + " resources_used.cput=01:00:00 resources_used.mem=1048576kb\n"
    log = read(tmp_path, line)
    assert values(log, "cpu_time", "used_mem_mb", "requested_mem_mb", "mem_mb") == [450, 1024, 4096, 4096]
    log = read(tmp_path, line.replace("Exit_status=0", "Exit_status=-27"))
    assert log.names["state"] == ("OUT_OF_MEMORY",)
    assert values(log, "status", "state") == [0, 1]


@pytest.mark.parametrize(
    ("items", "requested", "allocated"),
    [
        ("Resource_List.select=1:ncpus=8:mem=64gb", 65_536, 65_536),
        ("Resource_List.select=2:ncpus=3:mem=512mb+2:mem=1gb:ncpus=1", 3072, 3072),
        ("Resource_List.mem=3gb Resource_List.select=1:ncpus=8:mem=64gb", 3072, 3072),
        ("Resource_List.nodes=2:ppn=4 Resource_List.pmem=1gb", 8192, 8192),
        ("Resource_List.select=2:ncpus=4 exec_vnode=(n1:ncpus=4:mem=1048576kb)+(n2[0]:mem=1gb:ncpus=4)", -1, 2048),
        ("Resource_List.select=2:ncpus=4", -1, -1),
    ],
)
def test_pbs__memory_in_every_place_of_a_request(items, requested, allocated, tmp_path):
    line = re.sub(r" (Resource_List\.(ncpus|mem|select|nodect)|exec_vnode)=\S+", "", pbs(JOB).strip())
    log = read(tmp_path, f"{line} {items}\n")
    assert values(log, "requested_mem_mb", "mem_mb") == [requested, allocated]
    assert values(log, "requested_memory") == [requested * 128 if requested > 0 else -1]  # KB for each of 8 processors


def test_lsf(tmp_path):
    log = read(tmp_path, lsf(JOB))
    assert values(log, "cpu_time", "used_mem_mb") == [2 / 8, 5000 / 1024]
    killed = lsf((*JOB[:-1], False)).replace(' 0 "" 0 "" -1 "/a"', ' 0 "" 16 "" -1 "/a"')
    assert read(tmp_path, killed).names["state"] == ("OUT_OF_MEMORY",)


def test_grid_engine(tmp_path):
    line = grid_engine(JOB).replace("-l h_rt=", "-l h_vmem=2G,h_rt=")
    assert values(read(tmp_path, line), "used_mem_mb", "requested_mem_mb") == [1.2 * 1024, 8 * 2048]
    assert values(read(tmp_path, line), "memory", "requested_memory") == [1.2 * 1024**2 / 8, 2 * 1024**2]
    per_slot = line.replace("h_vmem", "m_mem_free"), line.replace("h_vmem", "mem_free"), line.replace("-l h_vmem=2G,", "-l h_vmem=2G -l ")
    assert [values(read(tmp_path, one), "requested_mem_mb") for one in per_slot] == [[8 * 2048]] * 3
    block = qacct(JOB).replace("category     -l h_rt", "maxvmem      512.000M\ncategory     -l h_vmem=1g,h_rt")
    assert values(read(tmp_path, block), "used_mem_mb", "requested_mem_mb") == [512, 8 * 1000**3 / 1024**2]
    assert read(tmp_path, line.replace(":0:0:1000:", ":37:0:1000:")).names["state"] == ("TIMEOUT",)


def test_htcondor(tmp_path):
    used = {"RemoteUserCpu": 4000.0, "RemoteSysCpu": 16.0, "MemoryUsage": 1536, "GPUsAverageUsage": 0.5}
    log = read(tmp_path, class_ads([JOB]).replace("ClusterId", "\n".join(f"{k} = {v}" for k, v in used.items()) + "\nClusterId"))
    assert values(log, "cpu_time", "used_mem_mb", "gpu_use", "requested_mem_mb") == [4016 / 8, 1536, 25, 4096]
    ads = json.dumps([condor(JOB) | used | {"MemoryUsage": "((ResidentSetSize + 1023) / 1024)", "ResidentSetSize": 2048}], indent=1)
    assert values(read(tmp_path, ads), "used_mem_mb") == [2]
    twice = json.dumps([condor(JOB) | used | {"JobStartDate": BEGIN, "RemoteWallClockTime": 1050.0, "LastRemoteWallClockTime": 1000.0}])
    log = read(tmp_path, twice)
    assert len(log) == 2
    assert values(log, "cpu_time", "used_mem_mb") == [-1, -1]
