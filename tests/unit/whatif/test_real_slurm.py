"""A what-if against its truth: a real Slurm ran the same jobs with three more nodes."""

import pytest

import walltime as wt
from tests.slurm_text import samples
from walltime.slurm.cluster import read_cluster
from walltime.whatif import what_if

TRUTH = {"intel": 8.4, "amd": 29.0}
"""Mean waits (s) of a real Slurm 24.11 on the same jobs with three more nodes of this feature; without them, 43 to 48 s."""


@pytest.mark.slow
@pytest.mark.parametrize("run", ["run1", "run2", "run3"])
def test_more_nodes_with_a_feature(run):
    folder = samples().parent / "modern" / "c_feat" / run
    if not folder.is_dir():
        pytest.skip(f"no recorded run in {folder}; WALLTIME_SLURM names the folder above")
    machine = read_cluster(folder / "cluster.txt").machine
    pools = {feature: next(pool.name for pool in machine.pools if feature in pool.features) for feature in TRUTH}
    jobs = wt.read(folder / "jobs.txt.gz", procs=machine.procs)
    found = what_if(jobs, machine, [f"pool.{pool}.nodes+=3" for pool in pools.values()], replications=0)
    waits = [float(effect.schedule.wait.mean()) for effect in found.effects]
    assert waits == pytest.approx(list(TRUTH.values()), rel=0.35)
    assert float(found.today.wait.mean()) > 1.3 * max(waits)
