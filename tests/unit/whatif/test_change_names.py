"""What changes are called: every target has a name without its spelling's signs."""

import pytest

from walltime.whatif.change import parse_change
from walltime.whatif.change_names import change_name


@pytest.mark.parametrize(
    "text",
    [
        "nodes-=4",
        "nodes*=1.5",
        "nodes=120",
        "pool.thin.nodes+=10%",
        "pool.thin.nodes+=1",
        "partition.all.MaxTime=720",
        "partition.long.max_time=UNLIMITED",
        "partition.long.OverSubscribe=EXCLUSIVE",
        "partition.long.exclusive=no",
        "partition.long.PriorityTier+=2",
        "partition.long.pools+=fat,gpu",
        "limit.1.jobs=none",
        "qos.high.priority=100",
        "share.physics.ann.shares=3",
        "policy=easy:order=sjf",
        "requested*=0.8",
        "load*=1.25",
        "SchedulerParameters-=bf_window",
        "PriorityWeightAge=5000",
    ],
)
def test_change_name__is_what_people_say(golden, text):
    golden("infer", change_name(parse_change(text)))
