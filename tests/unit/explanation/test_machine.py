"""The explanation of a job on a machine of several pools, worked by hand."""

import json
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.explanation import Obstacles, explain_recorded
from walltime.explanation.page import explanation_figure, explanation_page
from walltime.explanation.sentences import waits_table
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


@pytest.mark.slow
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
    return told.held_back, dict(told.texts)["reason"], dict(told.texts)["at submission"]


def test_nodes__name_the_features_and_the_type_of_gpus_that_were_in_use():
    pools = (Pool("i", 1, 4, features=("intel",)), Pool("a", 2, 4, features=("amd",)))
    held, reason, first = on_nodes(pools, [(0, 50, 4), (1, 10, 2)], 2, constraints=[1, 1])
    assert held == Obstacles(features=49)
    assert "the features intel" in reason
    assert "in the pool i, 0 of 4 processors free" in first
    pools = (Pool("a", 1, 8, 4, gpu_type="a100"), Pool("v", 1, 8, 4, gpu_type="v100"))
    both = {"gpus": [4, 4], "gpus_per_node": [4, 4]}
    held, reason, first = on_nodes(pools, [(0, 50, 1), (1, 10, 1)], 2, requested_gpu_type=[1, 1], **both)
    assert held == Obstacles(features=49)
    assert "GPUs of the type a100" in reason
    assert "in the pool a, 7 of 8 processors and 0 of 4 GPUs free" in first


def test_nodes__name_memory_the_second_resource_and_whole_nodes():
    memory = {"mem_mb": [60, 60, 50], "mem_mb_per_node": [60, 60, 50]}
    held, reason, _ = on_nodes((Pool("a", 2, 8, memory=100),), [(0, 50, 1), (0, 50, 1), (1, 5, 1)], 3, **memory)
    assert held == Obstacles(memory=49)
    assert "enough memory" in reason
    gpus = {"gpus": [2, 4], "nodes": [2, 1], "gpus_per_node": [1, 4]}
    held, reason, _ = on_nodes((Pool("a", 2, 8, 4),), [(0, 50, 2), (1, 9, 2)], 2, **gpus)
    assert held == Obstacles(resource=49)
    assert "enough GPUs" in reason
    held, reason, _ = on_nodes((Pool("a", 2, 8),), [(0, 50, 2), (1, 9, 8)], 2, nodes=[2, 1], exclusive=[-1, 1])
    assert held == Obstacles(nodes=49)
    assert "not in the requested distribution" in reason


def test_nodes__with_room_were_reserved_for_others():
    held, reason, _ = on_nodes((Pool("a", 2, 8),), [(0, 50, 8), (1, 50, 16), (2, 100, 1)], 3)
    assert held == Obstacles(others=48, too_few=50)
    assert "reserved for other jobs" in reason


CARDS = (Pool("a", 2, 8, 4, memory=100),)


@pytest.mark.parametrize(
    ("policy", "rows", "columns", "resource", "word"),
    [
        ("easy", [(0, 50, 2), (1, 9, 2)], {"gpus": [8, 2]}, "gpus", "GPUs"),
        (
            "slurm:bf_interval=1,bf_resolution=1",
            [(0, 50, 2), (1, 9, 2)],
            {"gpus": [8, 2], "gpus_per_node": [4, 2], "nodes": [2, 1]},
            "gpus",
            "GPUs",
        ),
        (
            "slurm:bf_interval=1,bf_resolution=1",
            [(0, 50, 2), (1, 9, 2)],
            {"gpus": [2, 4], "nodes": [2, 1], "gpus_per_node": [1, 4]},
            "gpus",
            "GPUs",
        ),
        ("easy", [(0, 50, 14), (1, 9, 4)], {"gpus": [1, 1]}, "procs", "processors"),
        ("easy", [(0, 50, 14), (1, 9, 4)], {"gpus": [8, 1]}, "gpus", "GPUs"),
        (
            "slurm:bf_interval=1,bf_resolution=1",
            [(0, 50, 1), (0, 50, 1), (1, 5, 1)],
            {"mem_mb": [60, 60, 50], "mem_mb_per_node": [60, 60, 50]},
            "mem_mb",
            "memory",
        ),
    ],
)
def test_causes__headline_reason_and_chart_name_one_resource(policy, rows, columns, resource, word):
    submit, length, procs = map(list, zip(*rows, strict=True))
    machine = Machine(CARDS, (Partition("main", ("a",)),))
    jobs = wt.Workload.from_arrays(
        submit=submit, runtime=length, requested=length, procs=procs, machine_procs=16,
        columns={name: np.array(values) for name, values in columns.items()},
    )  # fmt: skip
    told = wt.explain(wt.simulate(jobs, policy, machine=machine), len(rows), sooner=False)
    assert told.short_of == resource
    page = explanation_page(told, [])
    assert word in page.answer[0]
    assert word in page.picture.caption
    axes = explanation_figure(told).axes[0]
    assert word in axes.get_ylabel()
    top = max(path.vertices[:, 1].max() for drawn in axes.collections for path in drawn.get_paths())
    [line] = [one for one in axes.lines if one.get_linestyle() == "--"][:1]
    spread = told.held_back.resource + told.held_back.memory
    assert bool(spread) == ("not on nodes" in page.picture.caption)
    assert spread or top > line.get_ydata()[0], "the stack is over the line while the job waits"
    if resource == "gpus":
        assert "GPU" in told.texts[0][1]


OTHERS = (
    ("limit", {"limits": (Limit(("user",), second=4),)}, [(0, 50, 1), (1, 9, 1)], [4, 4], "a limit"),
    ("outage", {"outages": (Outage("a", 1, 40),)}, [(0, 50, 1), (2, 9, 1)], [0, 4], "outage"),
    ("others", {}, [(0, 50, 1), (1, 10, 1), (2, 100, 1)], [6, 8, 1], "reserved for other jobs"),
)


@pytest.mark.parametrize(("cause", "more", "rows", "gpus", "word"), OTHERS, ids=[one[0] for one in OTHERS])
def test_causes__other_than_resources_are_in_the_reason_and_beside_the_chart_of_gpus(cause, more, rows, gpus, word):
    submit, length, procs = map(list, zip(*rows, strict=True))
    jobs = wt.Workload.from_arrays(
        submit=submit, runtime=length, requested=length, procs=procs, machine_procs=16,
        columns={"gpus": np.array(gpus), "user": np.full(len(rows), 1)},
    )  # fmt: skip
    machine = Machine(CARDS, (Partition("main", ("a",)),), **more)
    told = wt.explain(wt.simulate(jobs, "easy", machine=machine), len(rows), sooner=False)
    held = vars(told.held_back)
    assert max(held, key=lambda name: held[name]) == cause
    assert told.short_of == "gpus"
    page = explanation_page(told, [])
    assert word in page.answer[0]
    assert "below the dashed line, but" in page.picture.caption
    assert "GPUs" in explanation_figure(told).axes[0].get_ylabel()


def test_recorded__is_beside_the_simulated_wait():
    told = explanation([(0, 10, 3, 1), (1, 10, 2, 1)], 2, wait=[0, 777])
    assert (told.wait, told.recorded_wait) == (9, 777)
    assert told.as_dict()["recorded_wait"] == 777
    assert dict(told.texts)["simulated wait"].startswith("9 s; the log records 12 min 57 s")
    assert explanation([(0, 10, 3, 1), (1, 10, 2, 1)], 2).recorded_wait is None


def recorded_jobs():
    """Job 3 waits for GPUs from 10 to 100 s, in the log; job 4 overtakes it; job 5 is in the other partition."""
    return wt.Workload.from_arrays(
        submit=[0, 5, 10, 20, 30], runtime=[90, 95, 50, 5, 5], requested=[100] * 5, procs=[1, 1, 2, 1, 4], machine_procs=24,
        columns={"wait": np.array([0, 0, 90, 5, 0]), "gpus": np.array([6, 1, 4, 0, 0]), "partition": np.array([2, 2, 2, 2, 1])},
        origin=Origin("log", names={"partition": ("cpu", "gpu")}),
    )  # fmt: skip


RECORDED = Machine((Pool("c", 1, 8), Pool("g", 2, 8, 4)), (Partition("cpu", ("c",)), Partition("gpu", ("g",))), policy="easy")


def test_explain_recorded__goes_by_the_log():
    told = explain_recorded(recorded_jobs(), 3, RECORDED)
    assert (told.wait, told.partition, told.second, told.ahead) == (90, "gpu", 4, 0)
    assert told.causes["second"] == 80, "until job 1 ends at 90 s"
    assert told.causes["unknown"] == 10
    assert [(one.job, one.after) for one in told.overtaken_by] == [(4, 15)]
    assert [one.job for one in told.running] == [1, 2]
    assert [(one.after, one.procs, one.second) for one in told.instants] == [(0, 14, 1), (15, 13, 1), (20, 14, 1), (80, 15, 7)]
    assert "GPUs" in told.reason
    assert explain_recorded(recorded_jobs(), 5, RECORDED).facts.rows
    with raises(WorkloadError, "unknown_job", "9"):
        explain_recorded(recorded_jobs(), 9, RECORDED)
    with raises(WorkloadError, "no_waits"):
        explain_recorded(workload([(0, 10, 3, 1)]), 1)


def test_explain_recorded__names_the_lacking_memory_the_limit_and_the_pools_with_its_type_of_gpus():
    """Job 2 lacks memory until 50 s, and then waits for its user's limit until 80 s; only the pool h has its GPUs."""
    jobs = wt.Workload.from_arrays(
        submit=[0, 10, 20], runtime=[50, 50, 60], requested=[100] * 3, procs=[1, 1, 1], machine_procs=24,
        columns={
            "wait": np.array([0, 70, 0]), "gpus": np.array([1, 1, 2]), "mem_mb": np.array([80, 50, 5]), "user": np.array([1, 2, 2]),
            "requested_gpu_type": np.array([1, 1, 2]),
        },
        origin=Origin("log", names={"requested_gpu_type": ("h100", "a100")}),
    )  # fmt: skip
    pools = (Pool("h", 1, 8, 4, memory=100, gpu_type="h100"), Pool("a", 2, 8, 4, memory=100, gpu_type="a100"))
    machine = Machine(pools, (Partition("gpu", ("h", "a")),), limits=(Limit(("user",), second=2),))
    told = explain_recorded(jobs, 2, machine)
    assert {cause: seconds for cause, seconds in told.causes.items() if seconds} == {"limit": 60, "memory": 10}
    assert (told.pools, told.limits, told.memory) == (("h",), ("2 GPUs",), 50)
    assert "at most 2 GPUs at a time" in told.reason
    assert dict(told.facts.rows)["at submission"].startswith("7 processors, 3 GPUs and 20 MB of memory free in the pool h;")
    assert [str(head) for head in told.table().columns] == ["after", "processors free", "GPUs free", "memory free, MB"]
    assert [one.memory for one in told.instants] == [20, 100], "job 1 ends at 50 s"
    assert explain_recorded(jobs, 3, machine).table().columns == ["after", "processors free", "GPUs free"]


def test_command__recorded(capsys, tmp_path):
    log, cluster = tmp_path / "log.swf", tmp_path / "machine.toml"
    rows = [f"{k} {k} {5 * (k % 3)} 10 {1 + k % 4} -1 -1 -1 20 -1 1 {k % 3} -1 -1 -1 {1 + k % 2} -1 -1" for k in range(1, 20)]
    log.write_text("\n".join(["; MaxProcs: 6", *rows]) + "\n")
    cluster.write_text(write_machine(Machine(POOLS, PARTITIONS, policy="conservative")))
    given = ("explain", log, "--machine", cluster, "--job", 8, "--recorded")
    status, out, err = call(capsys, *given, "--report", tmp_path / "p.html")
    assert (status, err) == (0, "")
    assert "in the log" in out
    assert (tmp_path / "p.html").read_text().count("processors free") >= 1
    assert json.loads(call(capsys, *given, "--json")[1])["wait"] == 10
    listed = ("explain", log, "--machine", cluster, "--recorded", "--longest", 3)
    assert "longest cause" in call(capsys, *listed)[1]
    waits = json.loads(call(capsys, *listed, "--json")[1])["recorded_waits"]
    assert [one["wait"] for one in waits] == [10, 10, 10]
    single = json.loads(call(capsys, "explain", log, "--machine", cluster, "--job", waits[0]["job"], "--recorded", "--json")[1])
    assert waits[0]["causes"] == single["causes"]
    assert call(capsys, *given, "--policy", "easy")[0] == 2


def test_longest__shows_the_recorded_wait_beside_and_the_second_resource(capsys, tmp_path, monkeypatch):
    jobs = recorded_jobs()
    schedule = wt.simulate(jobs, "easy", machine=RECORDED)
    waits = wt.explanation.longest_waits(schedule, 2)
    table = waits_table(schedule, waits)
    assert table.columns[1:5] == ["simulated wait", "recorded wait", "procs", "GPUs"]
    assert [getattr(cell, "value", cell) for cell in table.rows[0][:5]] == [3, 80, 90, "2", "4"]
    assert waits_table(explanation_of_one_pool(), waits[:1]).columns[1] == "wait"
    log, cluster = tmp_path / "log.swf", tmp_path / "machine.toml"
    rows = [f"{k} {k} {5 * (k % 3)} 10 {1 + k % 4} -1 -1 -1 20 -1 1 {k % 3} -1 -1 -1 {1 + k % 2} -1 -1" for k in range(1, 20)]
    log.write_text("\n".join(["; MaxProcs: 6", *rows]) + "\n")
    cluster.write_text(write_machine(Machine(POOLS, PARTITIONS, policy="conservative")))
    _, out, _ = call(capsys, "explain", log, "--machine", cluster, "--longest", 2, "--json")
    for row in json.loads(out)["longest_waits"]:
        assert row["recorded_wait"] == 5 * (row["job"] % 3)
    words = ["explain", str(log), "--machine", str(cluster), "--policy", "easy", "--longest", "2"]
    monkeypatch.setattr("sys.argv", ["walltime", *words])
    told = call(capsys, *words)[1]
    assert "the log records" in told
    [command] = re.findall(r"walltime (explain .*)", told)
    status, out, _ = call(capsys, *shlex.split(command), "--json", "--no-sooner")
    assert (status, json.loads(out)["policy"]) == (0, "easy")


def explanation_of_one_pool():
    """A schedule of the same jobs in one pool, from a log that records no waits."""
    jobs = recorded_jobs()
    return wt.simulate(replace(jobs, columns={"user": jobs.columns["partition"]}), "easy")
