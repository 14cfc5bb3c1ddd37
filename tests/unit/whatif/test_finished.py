"""Finished simulations are kept: an interrupted what-if continues, an equal one simulates nothing, and results are the same."""

import os
from dataclasses import replace

import numpy as np
import pytest

from tests.sites import MACHINE, jobs_of, recorded_as
from walltime.machine import Failure, Machine, Pool
from walltime.simulation.run import counted_simulations
from walltime.tuning.order_file import OrderFile, write_order_file
from walltime.whatif import finished, runs, what_if
from walltime.whatif.finished import key_of
from walltime.whatif.setting import Setting

NODES = Machine(
    pools=(Pool("thin", 12, 8, memory=1000), Pool("fat", 2, 16, memory=4000)),
    partitions=MACHINE.partitions,
    name="nodes",
    policy="slurm",
    failures=(Failure("thin", mtbf=20 * 86400, repair=86400),),
)
JOBS = 60
CHANGES = ["nodes+=50%", "policy=easy++"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder, in which also short simulations are kept."""
    monkeypatch.setattr(finished, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(finished, "LEAST_SECONDS", 0.0)
    return tmp_path / finished.FOLDER


@pytest.fixture(scope="module")
def jobs():
    return recorded_as(jobs_of(MACHINE, jobs=JOBS), MACHINE, "easy")


def counted(*arguments, **options):
    """The result, and the number of simulations that ran."""
    with counted_simulations() as numbers:
        return what_if(*arguments, trim="none", **options), len(numbers)


def test_an_interrupted_what_if_continues_after_its_finished_simulations(jobs, monkeypatch):
    ran, run = [], Setting.run

    def interrupted(*arguments, **options):
        if ran:
            raise KeyboardInterrupt
        ran.append(1)
        return run(*arguments, **options)

    with monkeypatch.context() as one_thread:
        one_thread.setattr(os, "cpu_count", lambda: 1)
        one_thread.setattr(Setting, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            what_if(jobs, MACHINE, CHANGES, replications=2, trim="none")
    every = runs(len(CHANGES), 2) - 2 * 3  # no resampled logs, as this log has few weeks
    second, count = counted(jobs, MACHINE, CHANGES, replications=2)
    assert (second.reused, count) == (1, every - 1)
    third, count = counted(jobs, MACHINE, CHANGES, replications=2)
    assert (third.reused, count) == (every, 0)
    assert third.as_dict() == second.as_dict()


@pytest.mark.parametrize(("machine", "changes"), [(MACHINE, CHANGES), (NODES, ["nodes+=50%", "adjust=last"])])
def test_kept_schedules_are_the_simulated_ones(jobs, machine, changes):
    first, again = (what_if(jobs, machine, changes, replications=0, trim="none") for _ in range(2))
    assert (first.reused, again.reused) == (0, runs(len(changes), 0))
    assert (first.today.lost is not None) == (machine is NODES)
    pairs = zip(first.effects, again.effects, strict=True)
    for one, other in [(first.today, again.today), *((before.schedule, after.schedule) for before, after in pairs)]:
        assert one.columns().keys() == other.columns().keys()
        for name, values in one.columns().items():
            assert np.array_equal(values, other.columns()[name]), name
        assert one.audit().ok
        assert other.audit().ok
        assert (one.slots is None) == (other.slots is None)
        assert one.slots is None or all(map(np.array_equal, one.slots, other.slots))
        assert (one.lost is None) == (other.lost is None)
        assert one.lost is None or all(map(np.array_equal, one.lost, other.lost))
    assert again.as_dict() == first.as_dict()


def test_a_key_names_all_that_a_result_depends_on(jobs, tmp_path):
    other_queue = replace(jobs, columns=jobs.columns | {"partition": 3 - jobs.columns["partition"]})
    today = Setting.of(MACHINE)
    keys = [key_of(jobs, [today], "kill", 0), key_of(other_queue, [today], "kill", 0), key_of(jobs, [today], "kill", 1)]
    keys += [key_of(jobs, [Setting.of(one)], "kill", 0) for one in (replace(MACHINE, pools=(Pool("thin", 13, 8), MACHINE.pools[1])), NODES)]
    keys += [key_of(jobs, [replace(today, estimates="exact")], "kill", 0), key_of(jobs, [Setting.of(MACHINE, "fcfs")], "kill", 0)]
    assert len(set(keys)) == len(keys)
    assert keys[0] == key_of(jobs, [Setting.of(MACHINE)], "kill", 0)
    own = tmp_path / "own.py"
    own.write_text("import walltime as wt\n@wt.order\ndef widest(procs):\n    return -procs\n")
    assert not key_of(jobs, [Setting.of(MACHINE, f"easy:order={own}:widest")], "kill", 0)
    assert not key_of(jobs, [replace(today, estimates=f"{own}:Model")], "kill", 0)
    assert not key_of(jobs, [Setting.of(replace(MACHINE, eligible="held.csv"))], "kill", 0)


def test_a_key_depends_on_the_content_of_an_order_file(jobs, tmp_path):
    file, keys = tmp_path / "order.toml", []
    for formula in ("log(wait+60)", "wait/planned"):
        write_order_file(file, OrderFile(scheduler=f"easy:order=expr:{formula}"))
        keys.append(key_of(jobs, [Setting.of(MACHINE, f"easy:order={file}")], "kill", 0))
    assert all(keys)
    assert keys[0] != keys[1]


def test_damaged_files_are_simulated_again(jobs, folder):
    first = what_if(jobs, MACHINE, "policy=fcfs", replications=0, trim="none")
    for file in folder.iterdir():
        file.write_bytes(file.read_bytes()[:-30])
    again, count = counted(jobs, MACHINE, "policy=fcfs", replications=0)
    assert (again.reused, count) == (0, runs(1, 0))
    assert again.as_dict() == first.as_dict()


def test_the_oldest_files_make_room_but_not_those_of_the_same_run(jobs, folder, monkeypatch):
    what_if(jobs, MACHINE, "policy=fcfs", replications=0, trim="none")
    size, names = max(file.stat().st_size for file in folder.iterdir()), {file.name for file in folder.iterdir()}
    for file in folder.iterdir():
        os.utime(file, (1, 1))
    monkeypatch.setattr(finished, "KEPT_UNUSED", 10**12)
    monkeypatch.setattr(finished, "MOST_BYTES", 4 * size)
    what_if(jobs, MACHINE, "nodes+=50%", replications=0, trim="none")
    left = {file.name for file in folder.iterdir()}
    assert names - left
    assert left - names
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 4 * size
