"""What is read of a real Slurm's logs, on logs of three jobs; `validation/slurm_noise.py` makes the page's table of it."""

import gzip
from types import SimpleNamespace

import numpy as np
import pytest

from validation.slurm_noise import Log, apart, latencies_of, main, shares_in_order

LOG = """\
[2026-11-26T17:00:00.000] debug:  sched: Running job scheduler for full queue.
[2026-11-26T17:00:00.100] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=1 usec=242
[2026-11-26T17:00:00.500] debug:  sched: Running job scheduler for default depth.
[2026-11-26T17:00:00.502] sched: Allocate JobId=1 NodeList=n2 #CPUs=4 Partition=main
[2026-11-26T17:00:00.600] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=1 usec=242
[2026-11-26T17:00:00.700] _slurm_rpc_submit_batch_job: JobId=3 InitPrio=1 usec=242
[2026-11-26T17:00:02.000] sched/backfill: _attempt_backfill: beginning
[2026-11-26T17:00:02.003] sched/backfill: _start_job: Started JobId=3 in main on n1
[2026-11-26T17:00:02.004] sched/backfill: _attempt_backfill: completed testing 2(2) jobs, usec=3900
[2026-11-26T17:00:05.540] _job_complete: JobId=1 WEXITSTATUS 0
[2026-11-26T17:00:05.540] _job_complete: JobId=1 done
[2026-11-26T17:00:06.000] debug:  sched: Running job scheduler for default depth.
[2026-11-26T17:00:06.000] sched: Allocate JobId=2 NodeList=n2 #CPUs=4 Partition=main
slurmctld: a line without a time
[2026-11-26T17:00:07.040] _job_complete: JobId=3 done
[2026-11-26T17:00:10.030] _job_complete: JobId=2 done
"""
NODES = """\
[2026-11-26T17:00:00.512] Launching batch job 1 for UID 0
[2026-11-26T17:00:02.008] Launching batch job 3 for UID 0
[2026-11-26T17:00:06.006] Launching batch job 2 for UID 0
[2026-11-26T17:00:10.029] [2.batch] done with job
"""
SDIAG = """\
Main schedule statistics (microseconds):
	Last cycle:   44
	Max cycle:    520
	Total cycles: 21
	Mean cycle:   154
Backfilling stats
	Max cycle:  4847
	Mean cycle: 1280
"""


@pytest.fixture
def folder(tmp_path):
    for name, text in (("log", LOG), ("nodes", NODES)):
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "sdiag.txt").write_text(SDIAG)
    return tmp_path


def test_log__gives_each_latency(folder):
    log = Log.read(folder)
    assert list(log.started) == [1, 3, 2]
    np.testing.assert_allclose(log.in_pass, [0.002, 0.003, 0], atol=1e-6)
    np.testing.assert_allclose(log.launches, [0.010, 0.005, 0.006], atol=1e-6)
    np.testing.assert_allclose(log.until_pass(log.submitted), [0.4, 5.4, 5.3], atol=1e-6)
    np.testing.assert_allclose(log.until_pass(log.ended), [0.46], atol=1e-6)  # no pass comes after the others
    np.testing.assert_allclose(log.over, [0.038, 0.037, 0.030], atol=1e-6)
    assert log.testing.tolist() == [0.0039]
    assert log.main == (0.000154, 0.00052)
    assert log.priority == {1: 1, 2: 1, 3: 1}
    assert np.isnan(log.since)


def test_latencies__are_medians_means_and_high_ones_of_all_runs(folder):
    found = latencies_of([Log.read(folder)] * 2)
    np.testing.assert_allclose(found["from a start to the launch on the node"], [0.006, 0.007, 0.01], atol=1e-6)


def test_apart__is_over_jobs_then_over_pairs():
    starts = np.array([0.0, 10.0, 20.0])
    assert apart([(starts, starts + np.array([0, 1, 5])), (starts, starts)]) == [0.5, 1.0]  # medians 1 and 0, means 2 and 0


def test_folder_without_runs__is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "has no scenario with two runs and their logs" in capsys.readouterr().err


@pytest.mark.parametrize(("second", "alike"), [((7500, 5000), 1), ((5000, 7500), 0)])
def test_shares_in_order__tells_whether_the_use_explains_the_priorities(folder, second, alike):
    """Two accounts, of 1 and 3 shares, use as much in the first minute; in the second, who has used less of his share is first."""
    log = Log.read(folder)
    since = log.passes[0]
    number = dict(zip(range(1, 5), (0, 1, 70, 71), strict=True))
    log = Log(
        *(log.passes, {job: since + at for job, at in number.items()}, {1: since, 2: since + 30}, {1: since + 10, 2: since + 40}, {}),
        *(log.in_pass, log.testing, log.main, dict(zip(number, (9, 9, *second), strict=True)), since),
    )
    jobs = SimpleNamespace(
        job_id=np.array(list(number)),
        columns={"group": np.array([1, 2, 2, 1]), "allocated_procs": np.full(4, 8)},
        origin=SimpleNamespace(names={"group": ("few", "many")}),
    )
    shares = [SimpleNamespace(account=name, user=None, shares=count) for name, count in (("few", 1), ("many", 3))]
    slurm = {"PriorityDecayHalfLife": "00:02:00", "PriorityCalcPeriod": "00:01:00", "PriorityWeightFairShare": "10000"}
    run = SimpleNamespace(jobs=jobs, machine=SimpleNamespace(shares=shares, slurm=slurm))
    assert shares_in_order(run, log) == (alike, 1)
