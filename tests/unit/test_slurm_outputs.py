"""What three versions of Slurm printed after one job of every kind (tests/slurm/test_kinds.py): every form is read, and all agree."""

from pathlib import Path

import numpy as np
import pytest

import walltime as wt
from walltime.machine import Partition, Pool, read_slurm

OUTPUTS = Path(__file__).parents[1] / "slurm" / "outputs"
VERSIONS = ("22.05", "24.11", "26.05")


def values_of(log, name):
    """A column in order of jobs and their runs, with names in place of their numbers."""
    values = log.column(name)[np.lexsort((log.column("submit"), log.column("job_id")))].tolist()
    return [log.names[name][k - 1] if k > 0 else None for k in values] if name in log.names else values


@pytest.mark.parametrize("version", VERSIONS)
def test_both_forms_of_the_job_log_agree(version):
    text, other = (wt.read_log(OUTPUTS / version / name, time_zone="UTC") for name in ("jobs.txt", "jobs.json.gz"))
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
    whole = read_slurm(folder / "cluster.txt")
    gpus = 2 if version == "22.05" else 0
    assert whole.machine.pools == (Pool("n", 2, 4, gpus), Pool("n-2", 1, 4, gpus), Pool("n-3", 1, 4, gpus))
    assert whole.machine.partitions == (
        Partition("main", ("n", "n-2", "n-3"), tier=1, max_time=604_800),
        Partition("debug", ("n", "n-2"), tier=5, job_factor=3),
        Partition("whole", ("n",), exclusive=True, tier=1, max_time=1800),
    )
    assert [(one.pool, one.nodes, one.announced) for one in whole.machine.outages] == [("n-3", 1, None), ("n", 1, 0), ("n-2", 1, 0)]
    assert len(whole.machine.limits) == (2 if version == "22.05" else 0)  # not enforced in the others
    assert whole.machine.slurm["SLURM_VERSION"].startswith(version)
    assert not any("not understood" in note for note in whole.notes)
    lines = read_slurm(folder / "node.txt", folder / "partition.txt")
    assert (lines.machine.pools, lines.machine.partitions) == (whole.machine.pools, whole.machine.partitions)
    assert not any("not understood" in note for note in lines.notes)
    by_json = read_slurm(folder / "sinfo.json").machine
    assert by_json.pools == whole.machine.pools
    assert by_json.outages == whole.machine.outages[:1]
    if version != "22.05":  # which has nothing of partitions but their names
        assert by_json.partitions == whole.machine.partitions
