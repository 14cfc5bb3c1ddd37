"""No ledger and no room for one, a single round after a lost ledger, and jobs of self-tests that nobody needs any more."""

import os
import subprocess
from contextlib import suppress

import pytest

from tests.adjust.test_rules import crowd, sidecar
from tests.adjust.test_unlucky import end_short, go, short_soon, until
from walltime.slurm.sidecar.ledger import Ledger
from walltime.slurm.sidecar.prolog import Spool


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("with_lock", [True, False], ids=["lock", "no lock"])
def test_a_full_disk_without_a_ledger_at_the_start_gives_back_and_goes_on_once_there_is_room(tmp_path, with_lock):
    cluster = short_soon(3)
    folder = tmp_path / "ledger"
    for one in (tmp_path / "before", folder):
        one.mkdir()
    end_short(cluster, sidecar(cluster, tmp_path / "before")[0])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=9", "none", str(folder)], check=True)
    try:
        if with_lock:
            (folder / "lock").write_text("a mark of what was here")
        with (folder / "full").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        with suppress(OSError):
            for number in range(0 if with_lock else 9):  # no file can be made, either
                (folder / str(number)).touch()
        one, said = sidecar(cluster, folder)
        go(cluster, one, 1800)
        assert any("ALARM" in text for text in said)
        assert not any(job.time_min for job in cluster.waiting())
        assert not any("can be written again" in text for text in said)
        for file in folder.iterdir():
            if file.name != "lock":
                file.unlink()
        go(cluster, one, 6200)
        assert sum("can be written again" in text for text in said) == 1
        assert cluster.violations == []
        assert cluster.jobs["3"].state == "COMPLETED"
        assert "4" in Ledger.entries(one.ledger)
        one.ledger.close()
        again = Ledger(folder)  # what is on the disk is what it was
        assert not again.lost
        assert again.entries() == one.entries
        again.close()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("with_spool", [True, False], ids=["spool", "no spool"])
def test_a_single_round_gives_back_what_a_lost_ledger_has_left(tmp_path, with_spool):
    cluster = short_soon(3)
    folder, spool = tmp_path / "ledger", tmp_path / "spool"
    folder.mkdir()
    spool.mkdir(mode=0o755)
    end_short(cluster, sidecar(cluster, folder, spool=Spool(spool))[0])
    for file in folder.glob("ledger.sqlite*"):
        file.unlink()
    if not with_spool:
        for file in spool.iterdir():
            file.unlink()
    one, said = sidecar(cluster, folder, stays=False, spool=Spool(spool) if with_spool else None)
    assert one.once().answered
    assert any("ALARM" in text and "not in the ledger" in text for text in said)
    assert cluster.jobs["3"].limit == (600 if with_spool else 130)  # in doubt it is raised in steps
    assert not any(job.time_min for job in cluster.waiting())
    assert self_tests(cluster) == []
    one.ledger.close()


@pytest.mark.parametrize("when", ["held", "runs"])
def test_an_unknown_job_that_ends_leaves_no_job_of_the_self_test_behind(tmp_path, when):
    cluster = crowd()
    cluster.nodes += when == "runs"  # room for it
    one, _ = sidecar(cluster, tmp_path)
    one.blocked = lambda: "there is no job log"
    cluster.jobs["3"].time_min = 7
    states = []
    until(cluster, one, lambda: states.append([(job.held, job.state) for job in self_tests(cluster)]) or states[-1][-1:] == STATES[when])
    cluster(("scancel", "3"), 10)
    go(cluster, one, 120)
    assert self_tests(cluster) == []
    one.ledger.close()


STATES = {"held": [(True, "PENDING")], "runs": [(False, "RUNNING")]}


def self_tests(cluster):
    """Jobs of self-tests that wait or run."""
    return [job for job in (*cluster.waiting(), *cluster.running()) if job.name.startswith("walltime-self-test")]


@pytest.mark.parametrize("by", ["a stop", "soft limits"])
def test_what_ends_the_self_test_leaves_no_job_of_it_behind(tmp_path, by):
    cluster = crowd()
    one, _ = sidecar(cluster, tmp_path)
    one.round()
    assert self_tests(cluster)
    if by == "a stop":
        one.stopped = lambda: True
    else:
        cluster.soft = True
    cluster.fault = lambda words: "fail" if words[0] == "scancel" else None
    assert one.round().failures == 1
    cluster.fault = lambda words: None
    one.round()
    assert self_tests(cluster) == []
    one.ledger.close()
