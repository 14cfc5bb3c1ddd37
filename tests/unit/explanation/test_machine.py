"""The explanation of a job on a machine of several pools, worked by hand."""

import json

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from walltime.explanation import Obstacles
from walltime.machine import Limit, Machine, Outage, Partition, Pool, write_machine
from walltime.workload import Origin

POOLS = (Pool("a", 4, 1), Pool("b", 2, 1, 1))
PARTITIONS = (Partition("1", ("a",)), Partition("2", ("b", "a")))


def workload(rows, **columns):
    """Rows of submit, runtime, procs, partition; requests are twice the runtimes."""
    submit, runtime, procs, partition = np.array(rows).T
    known = {"partition": partition, **{name: np.array(values) for name, values in columns.items()}}
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=runtime * 2, procs=procs, machine_procs=6, columns=known)


def explanation(rows, job, *, policy="easy", outages=(), limits=(), sooner=False, **columns):
    machine = Machine(POOLS, PARTITIONS, outages, limits)
    return wt.explain(wt.simulate(workload(rows, **columns), policy, machine=machine), job, sooner=sooner)


def test_too_few__until_another_one_ends(golden):
    told = explanation([(0, 10, 3, 1), (1, 10, 2, 1), (2, 5, 1, 1), (3, 5, 2, 2)], 2)
    assert (told.start, told.kind, told.partition, told.pools) == (10, "reserved", "1", ("a",))
    assert (told.capacity, told.free, told.ahead) == ((4, 0), (1, 0), 0)
    assert told.held_back == Obstacles(too_few=9)
    assert [one.job for one in told.overtaken_by] == [3], "job 4 is on the pool b, which job 2 cannot have"
    assert [change.start for change in told.reservations] == [20]
    text = str(told)
    golden("explain", text)


def test_outage_and_limit_and_order(golden):
    outage = (Outage("a", 10, 30, announced=0),)
    told = explanation([(0, 4, 4, 1), (12, 5, 2, 1)], 2, outages=outage)
    assert (told.start, told.held_back, told.free) == (30, Obstacles(outage=18), (0, 0))
    told = explanation([(0, 10, 1, 1), (1, 5, 1, 1)], 2, limits=(Limit(("user",), jobs=1),), user=[7, 7])
    assert (told.start, told.held_back) == (10, Obstacles(limit=9))
    golden("explain", str(told))
    told = explanation([(0, 10, 3, 1), (1, 5, 4, 1), (2, 30, 1, 1)], 3)
    assert (told.start, told.ahead) == (15, 1)
    assert told.held_back == Obstacles(others=8, too_few=5), "one is free until 10 s, and then the head has all"


def test_dependency__waits_from_the_end_of_the_other(golden):
    told = explanation([(0, 10, 1, 1), (1, 5, 1, 1)], 2, depends_on=[-1, 1])
    assert (told.submit, told.start, told.wait, told.depended) == (10, 10, 0, True)
    golden("explain", str(told))


def test_sooner__a_request_fewer_processors_another_partition(golden):
    rows = [(0, 20, 3, 1), (1, 10, 4, 1), (2, 10, 2, 1), (3, 4, 2, 1)]
    told = explanation(rows, 3, sooner=True)
    assert told.start == 30
    found = {(one.what, one.value): one.start for one in told.alternatives}
    assert found["partition", "2"] == 2
    assert found["procs", 1] == 2
    for (what, value), start in found.items():
        if what == "policy":
            machine = Machine(POOLS, PARTITIONS)
            assert wt.simulate(workload(rows), value, machine=machine).start[2] == start
    golden("explain", str(told))


@pytest.mark.parametrize("policy", ["easy", "conservative", "slurm"])
def test_spans__add_up_to_the_wait(policy):
    rng = np.random.default_rng(5)
    rows = list(zip(np.sort(rng.integers(0, 60, 40)), rng.integers(1, 20, 40), rng.integers(1, 5, 40), rng.integers(1, 3, 40), strict=True))
    machine = Machine(POOLS, PARTITIONS, (Outage("a", 30, 90, 2),), (Limit(("user",), jobs=3),))
    schedule = wt.simulate(workload(rows, user=rng.integers(1, 4, 40)), policy, machine=machine)
    for job in schedule.workload.job_id.tolist():
        told = wt.explain(schedule, job, sooner=False)
        held = told.held_back
        assert sum(vars(held).values()) == told.wait
        assert told.sentences


def test_command__says_it_and_draws(capsys, tmp_path):
    log, cluster = tmp_path / "log.swf", tmp_path / "machine.toml"
    rows = [f"{k} {k} -1 10 {1 + k % 4} -1 -1 -1 20 -1 1 {k % 3} -1 -1 -1 {1 + k % 2} -1 -1" for k in range(1, 20)]
    log.write_text("\n".join(["; MaxProcs: 6", *rows]) + "\n")
    cluster.write_text(write_machine(Machine(POOLS, PARTITIONS, policy="conservative")))
    status, out, _ = call(capsys, "explain", log, "--machine", cluster, "--job", 9, "--figure", tmp_path / "s.png")
    assert status == 0
    assert "under conservative" in out
    assert (tmp_path / "s.png").stat().st_size > 10_000
    status, out, _ = call(capsys, "explain", log, "--machine", cluster, "--job", 9, "--json")
    told = json.loads(out)
    assert told["partition"] in ("1", "2")
    assert sum(told["held_back"].values()) == told["wait"]


def on_nodes(pools, rows, job, policy="slurm:bf_interval=1,bf_resolution=1", **columns):
    """The obstacles of a job, and its reason in words, on single nodes; rows of submit, length, procs."""
    submit, length, procs = map(list, zip(*rows, strict=True))
    machine = Machine(tuple(pools), (Partition("main", tuple(pool.name for pool in pools)),))
    names = {"constraints": ("intel", "amd"), "requested_gpu_type": ("a100", "v100")}
    jobs = wt.Workload.from_arrays(
        submit=submit, runtime=length, requested=length, procs=procs, machine_procs=machine.procs,
        columns={name: np.array(values) for name, values in columns.items()}, origin=Origin("log", names=names),
    )  # fmt: skip
    told = wt.explain(wt.simulate(jobs, policy, machine=machine), job, sooner=False)
    assert sum(vars(told.held_back).values()) == told.wait
    return told.held_back, dict(told.texts)["reason"]


def test_nodes__name_the_features_and_the_type_of_gpus_that_were_in_use():
    pools = (Pool("i", 1, 4, features=("intel",)), Pool("a", 2, 4, features=("amd",)))
    held, reason = on_nodes(pools, [(0, 50, 4), (1, 10, 2)], 2, constraints=[1, 1])
    assert held == Obstacles(features=49)
    assert "the features intel" in reason
    pools = (Pool("a", 1, 8, 4, gpu_type="a100"), Pool("v", 1, 8, 4, gpu_type="v100"))
    both = {"gpus": [4, 4], "gpus_per_node": [4, 4]}
    held, reason = on_nodes(pools, [(0, 50, 1), (1, 10, 1)], 2, requested_gpu_type=[1, 1], **both)
    assert held == Obstacles(features=49)
    assert "GPUs of the type a100" in reason


def test_nodes__name_memory_the_second_resource_and_whole_nodes():
    memory = {"mem_mb": [60, 60, 50], "mem_mb_per_node": [60, 60, 50]}
    held, reason = on_nodes((Pool("a", 2, 8, memory=100),), [(0, 50, 1), (0, 50, 1), (1, 5, 1)], 3, **memory)
    assert held == Obstacles(memory=49)
    assert "enough memory" in reason
    gpus = {"gpus": [2, 4], "nodes": [2, 1], "gpus_per_node": [1, 4]}
    held, reason = on_nodes((Pool("a", 2, 8, 4),), [(0, 50, 2), (1, 9, 2)], 2, **gpus)
    assert held == Obstacles(resource=49)
    assert "enough GPUs" in reason
    held, reason = on_nodes((Pool("a", 2, 8),), [(0, 50, 2), (1, 9, 8)], 2, nodes=[2, 1], exclusive=[-1, 1])
    assert held == Obstacles(nodes=49)
    assert "not in the requested distribution" in reason


def test_nodes__with_room_were_reserved_for_others():
    held, reason = on_nodes((Pool("a", 2, 8),), [(0, 50, 8), (1, 50, 16), (2, 100, 1)], 3)
    assert held == Obstacles(others=48, too_few=50)
    assert "reserved for other jobs" in reason
