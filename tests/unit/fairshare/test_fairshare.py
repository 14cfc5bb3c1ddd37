"""Shares, decayed use, factors, recovery and cost of fair share, by hand and by small steps."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.cli import call, one_line
from tests.errors import raises
from walltime.errors import WorkloadError
from walltime.fairshare.shares import cost_in_waits, fair_share
from walltime.logs import write_swf
from walltime.machine import Machine, Partition, Pool, Share, write_machine
from walltime.workload import Origin, Workload

HALF_LIFE = 1000
NAMES = {"user": ("ann", "bob", "carl"), "group": ("physics", "optics")}
SHARES = (Share("physics", shares=3), Share("optics", shares=1), Share("physics", "dora"), Share("optics", "carl", shares=2))
SETTINGS = {
    "PriorityType": "priority/multifactor",
    "PriorityDecayHalfLife": "00:16:40",
    "PriorityWeightFairShare": "1000",
    "PriorityWeightAge": "1",
}


def machine_of(shares=SHARES, **settings: str) -> Machine:
    return Machine((Pool("a", 2, 4),), (Partition("main", ("a",)),), policy="slurm", slurm=SETTINGS | settings, shares=shares)


def log_of(wait=(0, 5, 10)) -> Workload:
    """ann in physics for 600 s on 4 processors, bob in physics for 100 s on 2, carl in optics for 300 s on 4; the end is at 1000 s."""
    return Workload.from_arrays(
        submit=[0, 100, 690], runtime=[600, 100, 300], requested=[600, 100, 300], procs=[4, 2, 4], machine_procs=8,
        columns={"user": [1, 2, 3], "group": [1, 1, 2], "wait": list(wait)}, origin=Origin("log", names=NAMES),
    )  # fmt: skip


def decayed(procs: int, start: int, end: int, at: int) -> float:
    """The use by steps of a tenth of a second."""
    times = np.arange(start, end, 0.1) + 0.05
    return float((procs * 0.1 * 0.5 ** ((at - times) / HALF_LIFE)).sum()) / 3600


def test_use__decays():
    found = fair_share(log_of(), machine_of())
    use = {one.user or one.account: one.use for one in found.associations}
    expected = {"ann": decayed(4, 0, 600, 1000), "bob": decayed(2, 105, 205, 1000), "carl": decayed(4, 700, 1000, 1000), "dora": 0}
    assert found.at == 1000
    assert {name: use[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert use["physics"] == pytest.approx(expected["ann"] + expected["bob"], rel=1e-6)
    assert use[""] == pytest.approx(sum(expected.values()), rel=1e-6)


def test_shares__are_products_along_the_tree():
    """Physics has 3 of 4 shares, of which its three users have a third each; carl has all of optics."""
    found = fair_share(log_of(), machine_of())
    share = {one.user or one.account: one.share for one in found.associations}
    assert share == pytest.approx({"": 1, "physics": 0.75, "optics": 0.25, "ann": 0.25, "bob": 0.25, "dora": 0.25, "carl": 0.25})


def test_factors__of_the_tree():
    """Optics used more than its share, so carl is last; dora, who has no jobs, is first of four."""
    found = fair_share(log_of(), machine_of())
    factors = {one.user: one.factor for one in found.associations if one.user}
    assert factors == {"dora": 1.0, "bob": 0.75, "ann": 0.5, "carl": 0.25}
    assert found.rank(found.find("ann", None)) == (3, 4)


def test_level__is_that_of_sshare():
    """Among its siblings: ann has a third of the shares of physics, and almost all of its use."""
    found = fair_share(log_of(), machine_of())
    level = {one.user or one.account: one.level for one in found.associations}
    ann, bob, carl = decayed(4, 0, 600, 1000), decayed(2, 105, 205, 1000), decayed(4, 700, 1000, 1000)
    expected = {"ann": (ann + bob) / ann / 3, "bob": (ann + bob) / bob / 3, "carl": 1, "physics": 0.75 * (1 + carl / (ann + bob))}
    assert {name: level[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert level["dora"] == math.inf


def test_factors__are_known_without_a_weight():
    without = fair_share(log_of(), machine_of(PriorityWeightFairShare="0"))
    assert [one.factor for one in without.associations if one.user] == [0.5, 0.75, 0.25, 1.0]


def test_factors__classic_ones():
    found = fair_share(log_of(), machine_of((), PriorityFlags="NO_FAIR_TREE"))
    use = {one.user: one.use for one in found.associations if one.user}
    carl = found.associations[found.find("carl", None)]
    assert carl.factor == pytest.approx(2 ** -(use["carl"] / sum(use.values()) / 0.5), rel=1e-3)


@pytest.mark.parametrize("half_life", [HALF_LIFE, 0])
@pytest.mark.parametrize("name", ["ann", "carl"])
def test_recovery__by_small_steps(half_life, name):
    """The others go on at their rate: ann and carl have a quarter of the shares each."""
    found = fair_share(log_of(), machine_of(PriorityDecayHalfLife=str(half_life // 60) if half_life == 0 else "00:16:40"))
    k = found.find(name, None)
    one, step = found.associations[k], 0.5
    total = sum(other.use for other in found.associations if other.user) * 3600
    mine, others, rate = one.use * 3600, total - one.use * 3600, float(found.rate[0] - found.rate[k])
    decay, seconds = 0.5 ** (step / half_life) if half_life else 1.0, 0.0
    while mine > one.share * (mine + others):
        mine, others, seconds = mine * decay, others * decay + rate * step, seconds + step
    assert seconds > 0
    assert found.recovery(k) == pytest.approx(seconds, abs=3)


def test_recovery__within_the_share_and_alone():
    found = fair_share(log_of(), machine_of())
    assert found.recovery(found.find("bob", None)) == 0
    alone = fair_share(log_of().take(np.array([True, False, False]), "one job"), machine_of())
    assert math.isinf(alone.recovery(alone.find("ann", None)))


def test_cost__is_what_the_weight_changes():
    """ann's second job competes with bob's, submitted one second later: bob has used less, so his goes first."""
    jobs = Workload.from_arrays(
        submit=[0, 10, 700, 701], runtime=[600, 990, 50, 50], requested=[600, 990, 50, 50], procs=[4, 4, 8, 8], machine_procs=8,
        columns={"user": [1, 3, 1, 2], "group": [1, 2, 1, 1], "wait": [0, 0, 350, 299]}, origin=Origin("log", names=NAMES),
    )  # fmt: skip
    found = fair_share(jobs, machine_of(()))
    cost = cost_in_waits(found, found.find("ann", None))
    other = cost_in_waits(found, found.find("bob", None))
    assert (cost.jobs, other.jobs) == (2, 1)
    assert cost.with_weight - cost.without == pytest.approx(25)  # 50 s for one of two jobs
    assert other.with_weight - other.without == pytest.approx(-50)


def test_errors():
    with raises(WorkloadError, "no_waits"):
        fair_share(log_of(wait=(-1, -1, -1)), machine_of())
    with raises(WorkloadError, "no_users"):
        fair_share(replace(log_of(), columns={"wait": np.zeros(3, int)}), machine_of())
    found = fair_share(log_of(), machine_of())
    for name in (("anna", None), (None, "chemistry"), ("carl", "physics")):
        with raises(WorkloadError, "unknown_association"):
            found.find(*name)
    twice = log_of()
    several = fair_share(replace(twice, columns={**twice.columns, "user": np.array([1, 2, 1])}), machine_of())
    with raises(WorkloadError, "several_accounts"):
        several.find("ann", None)
    assert several.associations[several.find("ann", "optics")].use > 0


@pytest.mark.slow
def test_command(golden, tmp_path, capsys):
    log, machine = tmp_path / "log.swf", tmp_path / "machine.toml"
    write_swf(log, log_of())
    numbered = tuple(
        Share(one.account.replace("physics", "1").replace("optics", "2"), one.user, one.parent, one.shares) for one in SHARES[:2]
    )
    machine.write_text(write_machine(machine_of(numbered)))
    common = (log, "--machine", machine)
    golden(
        "fairshare", *(call(capsys, "fairshare", *common, *words)[1] for words in ((), ("--user", "1"), ("--account", "2", "--no-waits")))
    )
    record = json.loads(call(capsys, "fairshare", *common, "--user", "3", "--json", "--report", tmp_path / "page.html")[1])
    assert record["association"] == {"account": "2", "user": "3"}
    assert record["recovery"] > 0
    assert len(record["associations"]) == 5
    assert "Shares and use" in (tmp_path / "page.html").read_text()
    golden("fairshare", *(one_line(*call(capsys, "fairshare", *words)) for words in ((log,), (*common, "--user", "9"))))
