"""On a real Slurm at night: a user who games the predictions, with the bounds off and on, and a hundred thousand waiting jobs."""

from __future__ import annotations

import os
import re
import resource
import time
from datetime import datetime

import pytest

from tests.slurm.beside import HEADING, Adjuster, as_user, block, cancel, cluster, end_all, history, runs, shown, small, start_tested
from tests.slurm.conftest import started
from tests.slurm.lab import Lab, wait_until
from walltime.slurm.commands.adjust import PREDICTOR
from walltime.slurm.sidecar.host import systemd_units

DAY = "1-00:00:00"
BOUNDS = {
    "off": ("--predictor=tang13:key=request,statistic=p95,window=3", "--floor=10", "--every=2"),
    "on": (f"--predictor={PREDICTOR}", "--floor=10", "--every=2", "--misses=3", "--overdue=0.01", "--slip=0.5"),
}
LARGE = ("-t1440", "-N1", "--exclusive", "-JG", "--wrap=sleep 3600")


def reserved(lab: Lab, number: int) -> float:
    """Unix time at which a waiting job is to start by Slurm's plan."""
    told = shown(lab, number, "StartTime")
    return 0.0 if told == "Unknown" else datetime.fromisoformat(f"{told}+00:00").timestamp()


@pytest.mark.nightly
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("bounds", BOUNDS)
def test_ten_jobs_of_a_second_and_then_a_large_one_for_a_day(tmp_path, bounds):
    """Without the bounds it starts ahead of B, whose nodes it takes for a day; with them it waits, and an honest job is adjusted."""
    adjusters: list[Adjuster] = []
    with cluster("22.05") as lab:
        try:
            for _ in range(10):
                as_user(lab, "sbatch", "-D/tmp", "-o/dev/null", "-t1440", "-n1", "--wrap=sleep 1")
            fields = ("--starttime=now-1day", f"--format={HEADING.replace('|', ',')}", "--noconvert")

            def junk() -> str:
                return lab.run("env", "SLURM_TIME_FORMAT=%s", "sacct", "-nPXa", *fields)

            wait_until("the accounting of ten jobs", lambda: junk().count("|COMPLETED|") == 10, 120)
            # a day earlier, as what has just ended is not learned from yet
            real = re.sub(r"\b1\d{9}\b", lambda found: str(int(found.group()) - 86_400), junk())
            b = block(lab)
            wait_until("B's reserved start", lambda: reserved(lab, b) > time.time() + 1800, 60)
            gamer = int(as_user(lab, "sbatch", "--parsable", "-D/tmp", "-o/dev/null", *LARGE))
            log = tmp_path / "sacct.txt"
            log.write_text(history() + real)
            begin = time.time()
            one = start_tested(lab, tmp_path, adjusters, *BOUNDS[bounds], f"--history={log}")
            if bounds == "off":
                wait_until("the gamer's job", lambda: runs(lab, gamer), 120)
                wait_until("its limit", lambda: shown(lab, gamer, "TimeLimit") == DAY, 30)
                wait_until("B's new start", lambda: reserved(lab, b) > begin + 23 * 3600, 60)
            else:
                e = small(lab, "E")
                wait_until("E", lambda: runs(lab, e), 120)
                wait_until("a round after it", lambda: one.says(": 2 waiting, 0 adjusted"), 60)
                assert (shown(lab, gamer, "JobState"), shown(lab, gamer, "TimeMin")) == ("PENDING", "N/A")
                cancel(lab, "E")
                wait_until("B's start as before", lambda: begin < reserved(lab, b) < begin + 3700, 60)
            hours = (reserved(lab, b) - begin) / 3600
            print(f"bounds {bounds}: the gamer's job {shown(lab, gamer, 'JobState')}, B is to start in {hours:.1f} h")
        finally:
            end_all(lab, adjusters)


ARRAYS, TASKS = 1000, 100


@pytest.mark.nightly
def test_a_hundred_thousand_waiting_jobs(tmp_path):
    """A thousand arrays of a hundred tasks: what a round takes, and that its memory is within what the unit allows."""
    adjusters: list[Adjuster] = []
    with started(cpus=16, accounting=False, settings={"MaxArraySize": "1001", "MaxJobCount": "200000"}) as lab:
        block(lab)
        submit = f"sbatch -Q -o/dev/null -JF -t400 -N2 --exclusive --array=1-{TASKS} --wrap='sleep 1'"
        lab.shell(f"for n in $(seq {ARRAYS}); do {submit} >/dev/null || exit 1; done")
        metrics = tmp_path / "walltime.prom"
        begin = time.monotonic()
        one = Adjuster(lab, tmp_path, "--once", f"--metrics={metrics}")
        adjusters.append(one)
        pid, status, used = os.wait4(one.process.pid, 0)
        one.process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begin
        assert (pid, one.process.returncode) == (one.process.pid, 0), one.told[-2000:]
        records = len(lab.run("squeue", "--noheader", "--format=%i").splitlines())
        largest = max(used.ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
        allowed = int(re.search(r"MemoryMax=(\d+)G", systemd_units(["walltime"], "walltime", []))[1]) * 1024
        waiting = next(int(line.split()[1]) for line in metrics.read_text().splitlines() if line.startswith("walltime_adjust_jobs_pending"))
        print(f"{ARRAYS * TASKS:,} waiting jobs in {records:,} records: {seconds:.1f} s with the start, {largest:.0f} MiB of {allowed}")
        assert waiting >= ARRAYS * 10
        assert largest < allowed
        lab.run("scancel", "--name=F")
