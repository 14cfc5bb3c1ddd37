"""The reference engine's fair shares, by hand."""

import pytest

import walltime as wt
from walltime.engine.reference.shares import FairShares
from walltime.machine import Machine, Partition, Pool
from walltime.machine.tables import Share
from walltime.node_demands import nodes_of
from walltime.simulation.nodes import place_on_nodes
from walltime.slurm_priorities import with_priorities

USERS = range(6)


def factors(shares, flags, periods, **options):
    """The factors of one job of each user after these periods of use (processor-seconds by user), in order of the users."""
    machine = Machine((Pool("a", 1, 4),), (Partition("main", ("a",)),), shares=tuple(shares))
    origin = {"user": [*USERS], "group": [k % 3 for k in USERS]}
    jobs = wt.Workload.from_arrays(submit=[0] * 6, runtime=[1] * 6, procs=[1] * 6, machine_procs=4, columns=origin)
    policy = wt.Slurm(priority_type="multifactor", priority_weight_fairshare=1000, priority_flags=flags, **options)
    settings = policy.settings()
    placed, placement, demands = place_on_nodes(jobs, machine)
    demands, tree = with_priorities(placed, placement, settings, demands, nodes_of(machine, placement, placed))
    found = FairShares(tree, settings)
    for used in periods:
        found.add({int(demands.association[user]): amount for user, amount in enumerate(used)})
    return [found.factor(one) for one in demands.association.tolist()]


NAMED = [Share("0", shares=2), Share("1"), Share("2", shares=0)]
"""Accounts 0 to 2 with shares 2, 1 and 0; users 0 and 3 are in account 0, 1 and 4 in 1, 2 and 5 in 2."""


def test_fair_tree__ranks_users_below_their_accounts_and_ties_equal_levels():
    # levels: account 0 has 2/200, account 1 has 1/10, account 2 has 0; user 4 has used nothing
    found = factors(NAMED, "", [[100, 10, 5, 100, 0, 6]])
    assert found == [4 / 6, 5 / 6, 2 / 6, 4 / 6, 6 / 6, 1 / 6]


def test_classic_fair_share__halves_for_each_share_that_was_used():
    # of 210 in all account 0 has used 200: effective use of its users 100/210 + (200/210 - 100/210) / 2 = 5/7, share 1/3
    found = factors(NAMED, "NO_FAIR_TREE", [[100, 10, 0, 100, 0, 0]])
    assert found == pytest.approx([2 ** (-15 / 7), 2 ** (-2 / 7), 0, 2 ** (-15 / 7), 2 ** (-1 / 7), 0])


def test_classic_fair_share__dampening_divides_the_use():
    found = factors(NAMED, "NO_FAIR_TREE", [[100, 10, 0, 100, 0, 0]], fair_share_dampening_factor=5)
    assert found == pytest.approx([2 ** (-3 / 7), 2 ** (-2 / 35), 0, 2 ** (-3 / 7), 2 ** (-1 / 35), 0])
    assert factors(NAMED, "", [[100, 10, 5, 100, 0, 6]], fair_share_dampening_factor=5) == factors(NAMED, "", [[100, 10, 5, 100, 0, 6]])
