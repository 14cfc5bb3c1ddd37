"""What `infer` says of a machine's description that it does not read."""

from walltime.machine import Limit, Machine, Outage, Partition, Pool
from walltime.whatif.inference import unread_of

NODES = Pool("all", 4, 8)
MAIN = Partition("main", ("all",))


def test_unread__is_nothing_for_one_pool_of_equal_nodes():
    assert unread_of(None) == unread_of(Machine((NODES,), (MAIN,))) == []


def test_unread__names_everything_else_that_the_file_says():
    big = Pool("big", 2, 64)
    outage, limit = Outage("big", 0, 10, announced=0), Limit(("user",), jobs=3)
    [note] = unread_of(Machine((NODES, big), (MAIN, Partition("big", ("big",))), (outage,), (limit,), "site", policy="slurm"))
    assert note.startswith("Of site only the numbers of processors are used")
    for what in ("2 pools", "2 partitions", "outages", "limits", "the policy", "nodes of different sizes (8, 64 processors"):
        assert what in note
    assert "windows" not in note
