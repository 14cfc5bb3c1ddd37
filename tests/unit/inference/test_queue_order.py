"""The order of the queue as a rule: what a doubling of a job's processors or of its request is worth."""

import pytest

from walltime.inference.queue_order import order_text, weighted
from walltime.policy import parse_policy

DOUBLING = 4 * 3600


def testweighted__moves_a_job_back_by_the_weight_for_each_doubling():
    order = weighted((DOUBLING, 0)).order
    assert order.score(wait=0, believed=60, procs=8, submit=0) == pytest.approx(-3 * DOUBLING, abs=2)
    assert order.score(wait=0, believed=60, procs=4, submit=DOUBLING) == pytest.approx(-3 * DOUBLING, abs=2)
    assert not order.reads_time  # so it is sorted once, and not at every pass


def testweighted__is_a_policy_that_a_file_can_name():
    for weights in ((DOUBLING, 0), (0, -DOUBLING), (DOUBLING, -DOUBLING)):
        assert parse_policy(weighted(weights).label) == weighted(weights)


def test_order_text__names_both_weights(golden):
    text = order_text((DOUBLING, -DOUBLING))
    golden("infer", text)
