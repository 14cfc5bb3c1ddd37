"""What changes are called: every target has a name without its spelling's signs."""

import pytest

from walltime.whatif.change_names import change_name
from walltime.whatif.changes import parse_change


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nodes-=4", "4 fewer nodes"),
        ("nodes*=1.5", "1.5 times the nodes"),
        ("nodes=120", "120 nodes"),
        ("pool.thin.nodes+=10%", "10 % more nodes in pool thin"),
        ("partition.all.MaxTime=720", "limit of 12 h"),
        ("partition.long.max_time=UNLIMITED", "no time limit in partition long"),
        ("partition.long.OverSubscribe=EXCLUSIVE", "whole nodes in partition long"),
        ("partition.long.exclusive=no", "shared nodes in partition long"),
        ("partition.long.PriorityTier+=2", "priority tier +2 in partition long"),
        ("partition.long.pools+=fat,gpu", "also pools fat,gpu in partition long"),
        ("limit.1.jobs=none", "no limit 1"),
        ("qos.high.priority=100", "priority 100 for quality of service high"),
        ("share.physics.ann.shares=3", "3 shares for physics.ann"),
        ("policy=easy:order=sjf", "policy easy:order=sjf"),
        ("requested*=0.8", "requests 20 % shorter"),
        ("load*=1.25", "25 % more load"),
        ("SchedulerParameters-=bf_window", "no bf_window"),
        ("PriorityWeightAge=5000", "PriorityWeightAge = 5000"),
    ],
)
def test_change_name__is_what_people_say(text, name):
    assert change_name(parse_change(text)) == name
