"""What three versions of Slurm printed after one job of every kind (tests/slurm/test_kinds.py): every form is read, and all agree."""

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from tests.errors import raises
from walltime.errors import LogError
from walltime.machine import Partition, Pool, read_machine
from walltime.slurm import read_cluster

OUTPUTS = Path(__file__).parents[2] / "slurm" / "outputs"
VERSIONS = ("22.05", "24.11", "26.05")


def values_of(log, name):
    """A column in order of jobs and their runs, with names in place of their numbers."""
    values = log.column(name)[np.lexsort((log.column("submit"), log.column("job_id")))].tolist()
    return [log.names[name][k - 1] if k > 0 else None for k in values] if name in log.names else values


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_both_forms_of_the_job_log_agree(version):
    text, other = (wt.logs.read_log(OUTPUTS / version / name, time_zone="UTC") for name in ("jobs.txt", "jobs.json.gz"))
    assert text.records == other.records >= 21
    assert dict(text.dropped) == dict(other.dropped) == {}
    # 22.05's JSON has neither exit codes nor the command lines, which have the limit of a shrunk job
    old = {"exit_code", "requested"} if version == "22.05" else set()
    assert dict(text.changed) == {**other.changed, "shrunk_limit": 1}
    apart = {name for name in set(text.columns) & set(other.columns) if values_of(text, name) != values_of(other, name)}
    assert apart == old | {"executable"}  # a name with the separator in it


@pytest.mark.parametrize("version", VERSIONS)
def test_every_form_of_the_description_says_the_same(version):
    folder = OUTPUTS / version
    whole = read_cluster(folder / "cluster.txt")
    gpus = 2 if version == "22.05" else 0
    assert whole.machine.pools == (Pool("n", 2, 4, gpus), Pool("n-2", 1, 4, gpus), Pool("n-3", 1, 4, gpus))
    assert whole.machine.partitions == (
        Partition("main", ("n", "n-2", "n-3"), tier=1, max_time=604_800),
        Partition("debug", ("n", "n-2"), tier=5, job_factor=3),
        Partition("whole", ("n",), exclusive=True, tier=1, max_time=1800),
    )
    assert [(one.pool, one.nodes, one.announced) for one in whole.machine.outages] == [("n", 1, 0), ("n-2", 1, 0), ("n-3", 1, None)]
    down = whole.machine.outages[-1]
    assert (down.end is not None) == (version == "22.05")  # the others printed their settings in the second of the reason
    assert len(whole.machine.limits) == (2 if version == "22.05" else 0)  # not enforced in the others
    assert whole.machine.slurm["SLURM_VERSION"].startswith(version)
    assert not any("not understood" in note for note in whole.notes)
    lines = read_cluster(folder / "node.txt", folder / "partition.txt")
    assert (lines.machine.pools, lines.machine.partitions) == (whole.machine.pools, whole.machine.partitions)
    assert not any("not understood" in note for note in lines.notes)
    by_json = read_cluster(folder / "sinfo.json").machine
    assert by_json.pools == whole.machine.pools
    assert by_json.outages == (replace(down, end=None),)
    if version != "22.05":  # which has nothing of partitions but their names
        assert by_json.partitions == whole.machine.partitions


ODD = (
    "(null)",
    "-1",
    "9" * 20,
    "n[1-",
    "\x1b[31m",
    '"',
    "\\",
    "NodeName=",
    "Infinity",
    "null",
    "[]",
    "|",
    "\n",
    "",
    "State=DOWN",
    "\u0663",
)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_descriptions_are_read_or_refused_in_one_line(version, tmp_path):
    draw, messages = random.Random(7), []
    for name in ["cluster.txt", "sinfo.json"] * 40:
        text = (OUTPUTS / version / name).read_text()
        for _ in range(draw.randint(1, 4)):
            value = draw.choice(list(re.finditer(r"(?<==)[^\s=]+|(?<=: )[^,\n]+|\w+(?==)", text)))
            text = text[: value.start()] + draw.choice(ODD) + text[value.end() :]
        (tmp_path / "cluster.txt").write_text(text)
        try:
            found = read_cluster(tmp_path / "cluster.txt")
        except LogError as error:
            messages.append(str(error))
            continue
        assert all(note.isprintable() for note in found.notes)
        (tmp_path / "machine.toml").write_text(found.text())
        assert read_machine(tmp_path / "machine.toml") == found.machine
    assert 0 < len(messages) < 80
    assert all(message.isprintable() for message in messages)


def test_times_with_a_zone_and_records_without_a_name(golden, tmp_path):
    text = (OUTPUTS / "22.05" / "cluster.txt").read_text()
    (tmp_path / "x.txt").write_text(text.replace("T08:00:00", "T08:00:00+01:00") + "NodeName= CPUTot=4\n")
    found = read_cluster(tmp_path / "x.txt")
    assert found.machine == read_cluster(OUTPUTS / "22.05" / "cluster.txt").machine
    golden("slurm-cluster", found.notes)


@pytest.mark.parametrize("kind", ["nodes", "partitions", "sinfo", "qos", "reservations", "associations"])
@pytest.mark.parametrize(
    "begin", ["", '"meta": {"plugin": {"data_parser": "data_parser/v0.0.44"}, "command": [], "slurm": {"release": "25.11.0"}}, ']
)
def test_descriptions_are_not_read_as_jobs(tmp_path, kind, begin):
    entry = {"name": "n1", "cpus": 4, "real_memory": 1, "state": ["IDLE"], "partitions": ["main"], "limits": {"max": {"jobs": {}}}}
    for name in ("slurm.json", "slurm.txt"):
        (tmp_path / name).write_text(f'{{{begin}"{kind}": [{json.dumps(entry)}], "errors": [], "warnings": []}}')
        with raises(LogError, "cluster_description", kind):
            wt.logs.read_log(tmp_path / name)
