"""Use of processors and memory that a real Slurm records, with jobs that measure their own."""

from __future__ import annotations

import json
import shlex

import pytest

import walltime as wt
from tests.cli import call
from tests.slurm.conftest import started

SETTINGS = {
    "JobAcctGatherType": "jobacct_gather/linux",
    "JobAcctGatherFrequency": "task=1",
    "SelectTypeParameters": "CR_Core_Memory",
    "DefMemPerCPU": "256",
    "AccountingStorageTRES": "cpu,mem,node",
}
PROGRAM = """
import json, os, resource, sys, time
block = bytearray(os.urandom(1 << 20)) * int(sys.argv[2])
while time.process_time() < float(sys.argv[1]):
    pass
time.sleep(3)
used = resource.getrusage(resource.RUSAGE_SELF)
with open(sys.argv[3], "w") as file:
    json.dump({"cpu": used.ru_utime + used.ru_stime, "kilobytes": used.ru_maxrss}, file)
"""
"""Burns processor time (s), holds memory (MB), and writes what it used."""
JOBS = {"busy": (6.0, 50, 1, 1024), "large": (1.0, 400, 4, 2048), "idle": (0.0, 10, 2, 1024)}
"""Processor time (s), memory (MB), processors, and requested memory (MB) of each job."""


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The log of `walltime slurm sacct-command`, and the processor time and the peak memory that each job measured."""
    folder = tmp_path_factory.mktemp("use")
    folder.chmod(0o755)
    (folder / "burn.py").write_text(PROGRAM)
    measured = tmp_path_factory.mktemp("measured")
    measured.chmod(0o777)
    with started(nodes=1, cpus=8, settings=SETTINGS) as lab:
        for name, (seconds, megabytes, procs, asked) in JOBS.items():
            words = ("/usr/bin/python3", f"{folder}/burn.py", f"{seconds}", f"{megabytes}", f"{measured}/{name}")
            lab.submit("-J", name, "-t", "5", "-n", "1", "-c", f"{procs}", f"--mem={asked}M", wrap=f"srun -n 1 {shlex.join(words)}")
        lab.wait_for_jobs(180)
        yield lab, folder, {name: json.loads((measured / name).read_text()) for name in JOBS}


def test_use__is_what_the_jobs_measured(log, tmp_path, capsys):
    lab, _folder, measured = log
    command = call(capsys, "slurm", "sacct-command", "--since", "now-1day", "--out", tmp_path / "jobs.txt.gz")[1]
    lab.shell(command)
    jobs = wt.read(tmp_path / "jobs.txt.gz", procs=8)
    names = [jobs.origin.name_of("executable", number) for number in jobs.columns["executable"].tolist()]
    assert sorted(names) == sorted(JOBS)
    for k, name in enumerate(names):
        _, megabytes, procs, asked = JOBS[name]
        own = measured[name]
        assert own["kilobytes"] / 1024 > megabytes
        assert jobs.procs[k] == procs
        assert jobs.columns["requested_mem_mb"][k] == asked
        # srun and the script of the job use a little as well
        assert own["cpu"] - 0.1 <= jobs.columns["cpu_time"][k] * procs <= own["cpu"] + 1.5
        assert own["kilobytes"] / 1024 - 8 <= jobs.columns["used_mem_mb"][k] <= own["kilobytes"] / 1024 + 40
    status, out, _ = call(capsys, "waste", tmp_path / "jobs.txt.gz", "--procs", 8, "--by", "executable", "--json")
    assert status == 0
    record = json.loads(out)
    assert record["total"]["cores"]["unmeasured_jobs"] == 0
    used = {one["group"]: one["cores"]["used"] * 3600 for one in record["groups"]["executable"]}
    assert all(measured[name]["cpu"] - 0.1 <= used[name] <= measured[name]["cpu"] + 1.5 for name in JOBS)
