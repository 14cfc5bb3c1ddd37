"""What engines give back."""

from __future__ import annotations

import numpy as np

from walltime.engine.machines import NodeRanges, Nodes


def test_node_ranges__are_the_four_arrays_in_order_of_job_and_node():
    two, one = np.array([1, 0, 0]), np.array([4, 3, 0])
    slots = NodeRanges(two, one, np.array([1, 2, 2]), np.array([8, 2, 1]), np.array([0, 1, 0]))
    job, node, procs, second = slots
    assert job.tolist() == [0, 0, 0, 0, 1]
    assert node.tolist() == [0, 1, 3, 4, 4]
    assert procs.tolist() == [1, 1, 2, 2, 8]
    assert second.tolist() == [0, 0, 1, 1, 0]
    assert len(slots) == 4
    assert slots[1].tolist() == node.tolist()


def test_given__by_ranges_equals_that_by_nodes():
    nodes = Nodes(np.array([0, 0, 1, 1, 0]), np.full(5, 8), np.ones(5, np.int64), np.zeros(5, np.int64), np.ones(5, np.int64), *([[]] * 5))
    slots = NodeRanges(np.array([0, 0, 2]), np.array([0, 4, 1]), np.array([3, 1, 2]), np.array([2, 8, 1]), np.array([0, 1, 1]))
    given = nodes.given(slots, 3)
    assert given.tolist() == nodes.given(tuple(slots), 3).tolist()
    assert given.tolist() == [[[12, 1], [2, 0]], [[0, 0], [0, 0]], [[1, 1], [1, 1]]]
