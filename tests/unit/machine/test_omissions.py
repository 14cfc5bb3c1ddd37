"""What a machine does not model, with the share of the work that requests it, worked by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from walltime.machine import Machine, Note, Partition, Pool, omission_sentences, write_machine
from walltime.machine.omissions import REQUESTS
from walltime.machine.placing import place, with_omissions
from walltime.slurm.features import NAMES

NOTES = (
    Note("SelectTypeParameters=CR_CORE_MEMORY", "memory", {"a": 100, "b": 500}),
    Note("intel, amd", "node features", {"a": 0}),
    Note("PreemptType=preempt/qos", "preemption"),
    Note("1 node was left out (FUTURE)."),
)
MACHINE = Machine((Pool("all", 2, 4),), (Partition("a", ("all",)), Partition("b", ("all",))), notes=NOTES)


def jobs(**columns):
    known = {name: np.array(values) for name, values in columns.items()}
    origin = wt.workloads.Origin("log", names={"partition": ("a", "b")})
    given = {"submit": [0, 0, 0, 0], "runtime": [10, 10, 10, 70], "procs": [1, 1, 1, 1], "requested": [100] * 4}
    return wt.Workload.from_arrays(machine_procs=8, columns={"partition": np.array([1, 1, 2, 2])} | known, origin=origin, **given)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({}, {"memory": None, "node features": None, "preemption": None}),
        (
            {"mem_mb": [100, 101, 500, 501]},
            {"memory beyond the processors' share": 0.8, "node features": None, "preemption": None},
        ),
        ({"mem_mb": [1, 1, 1, 1], "constraints": [-1, 1, 1, -1]}, {"node features": 0.1, "preemption": None}),
        ({"mem_mb": [1] * 4, "constraints": [-1] * 4, "reservation": [-1, -1, -1, 1]}, {"preemption": None, "reservations": 0.7}),
        ({"mem_mb": [1] * 4, "constraints": [-1] * 4, "exclusive": [1] * 4}, {"preemption": None}),
    ],
)
def test_omissions__share_of_the_work(columns, expected):
    assert place(jobs(**columns), MACHINE)[0].origin.omissions == pytest.approx(expected)
    assert with_omissions(jobs(**columns), MACHINE).origin.omissions == pytest.approx(expected)


def test_omissions__limits_by_a_missing_column():
    machine = replace(MACHINE, notes=(), limits=(wt.machine.Limit(("queue", "user"), jobs=1, only=("long",)),))
    assert place(jobs(user=[1] * 4), machine)[0].origin.omissions == {"limits by queue, which the log lacks": None}
    assert place(jobs(user=[1] * 4, queue=[1] * 4), machine)[0].origin.omissions == {}


def test_omissions__names_are_those_of_the_features_of_slurm():
    assert REQUESTS.keys() <= NAMES


def test_omissions__settings_of_slurm_are_told_once():
    machine = replace(MACHINE, policy="slurm", slurm={"PreemptType": "preempt/none", "SchedulerParameters": "bf_hurry"})
    schedule = wt.simulate(jobs(mem_mb=[1] * 4), "slurm", machine=machine)
    assert list(schedule.workload.origin.omissions) == ["node features", "preemption", "bf_hurry"]


def test_omissions__one_line(golden):
    several = [
        with_omissions(jobs(**columns), MACHINE) for columns in ({}, {"mem_mb": [100, 101, 500, 501], "reservation": [1, -1, -1, -1]})
    ]
    for workloads in (several[:1], several[1:], [jobs()]):
        golden("simulate", omission_sentences(workloads))


@pytest.mark.slow
def test_omissions__in_every_answer(capsys, tmp_path):
    log, machine = tmp_path / "log.swf", tmp_path / "machine.toml"
    rows = [f"{k} {k} 5 10 {1 + k % 4} -1 -1 -1 20 -1 1 1 -1 -1 -1 1 -1 -1" for k in range(1, 40)]
    log.write_text("\n".join(["; UnixStartTime: 1000000000", *rows]) + "\n")
    one = replace(MACHINE, partitions=MACHINE.partitions[:1], policy="easy", notes=(Note("PreemptType=preempt/qos", "preemption"),))
    machine.write_text(write_machine(one))
    line, common = "Not modelled: preemption.", (log, "--machine", machine)
    commands = (
        ("simulate", *common),
        ("simulate", *common, "--shake", 5, "--replications", 2),
        ("compare", *common, "--policy", "easy", "--policy", "fcfs", "--no-spread"),
        ("what-if", *common, "--change", "nodes+=1", "--replications", 0),
        ("calibrate", *common),
        ("explain", *common, "--longest", 1),
        ("explain", *common, "--job", 9, "--no-sooner"),
        ("report", *common),
    )
    for words in commands:
        status, out, _ = call(capsys, *words)
        assert (status, out.count(line)) == (0, 1), words
        page = tmp_path / "page.html"
        record = json.loads(call(capsys, *words, "--json", "--report", page)[1])
        assert line in json.dumps(record) or record["not_modelled"] == {"preemption": None}, words
        assert line in page.read_text(), words
