"""Policies that run on several pools by the reference engine: small cases by hand."""

import numpy as np

import walltime as wt
from tests.errors import raises
from walltime.errors import EngineError
from walltime.machine import Limit, Machine, Partition, Pool
from walltime.policy.plain import Choice, PlainPolicy

MACHINE = Machine((Pool("a", 4, 1), Pool("b", 2, 1)), (Partition("1", ("a",)), Partition("2", ("b",))))


def jobs(*rows, **columns):
    """Jobs of (submit, runtime, requested, procs, partition)."""
    submit, runtime, requested, procs, partition = map(list, zip(*rows, strict=True))
    columns = {name: np.array(values) for name, values in {"partition": partition, **columns}.items()}
    return wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=6, columns=columns)


def starts(workload, policy, machine=MACHINE):
    schedule = wt.simulate(workload, policy, machine=machine)
    assert (schedule.engine, schedule.simulated_on) == ("reference", "pools")
    report = schedule.audit()
    assert (report.violations, report.decided, report.ok) == ((), 0.0, False), "its decisions are not checked"
    return schedule.start.tolist()


def test_double__is_doubled_where_nobody_ahead_waits_for_the_same_pool():
    """As on a number of processors (test_double.py) in pool a; in pool b a job starts meanwhile, and nobody there waits."""
    rows = [(0, 5, 10, 3, 1), (1, 10, 10, 4, 1), (2, 9, 16, 1, 1), (2, 3, 3, 2, 2), (6, 6, 12, 1, 1), (6, 1, 13, 1, 1), (6, 5, 5, 1, 2)]
    assert starts(jobs(*rows), "double") == [0, 12, 2, 2, 6, 22, 6]


def test_multiqueue__reserves_for_the_first_of_each_length_in_each_pool():
    """All processors are in use until 10. The second job waits for all of pool a: it is the first of the short ones there. The third,
    short as well, has no reservation, but needs none: it fits beside. The fourth is the first of the short ones of pool b."""
    rows = [(0, 10, 10, 3, 1), (0, 10, 10, 2, 2), (1, 4, 4, 4, 1), (2, 8, 8, 1, 1), (3, 4, 4, 2, 2), (4, 20, 20, 1, 1)]
    assert starts(jobs(*rows), "multiqueue:bounds=5") == [0, 0, 10, 2, 10, 14]


def test_relaxed__puts_off_the_head_of_one_pool_by_its_own_wait():
    """The second job waits for pool a from 0 on, could start at 10, and may be put off by half of these 10 s: so a job that ends at 14
    starts at 2 under it and not under EASY; one that would end at 16 does not."""
    rows = [(0, 10, 10, 3, 1), (0, 5, 5, 4, 1), (2, 12, 12, 1, 1), (3, 9, 9, 2, 2)]
    assert starts(jobs(*rows), "relaxed") == [0, 14, 2, 3]
    assert wt.simulate(jobs(*rows), "easy", machine=MACHINE).start.tolist() == [0, 10, 15, 3]
    assert starts(jobs(*rows[:2], (2, 14, 14, 1, 1), rows[3]), "relaxed") == [0, 10, 15, 3]


class InTurn(PlainPolicy):
    """Every waiting job in order of arrival, whether it fits or not."""

    def choose(self, now, waiting, running, free):
        self.seen = [*getattr(self, "seen", []), (int(now), free)]
        return waiting


class Late(PlainPolicy):
    """Everybody, but not before 20."""

    def choose(self, now, waiting, running, free):
        return waiting if now >= 20 else Choice((), wake_at=20)


def test_own_policy__starts_what_its_pools_and_limits_let_start():
    rows = [(0, 10, 10, 4, 1), (0, 10, 10, 2, 1), (0, 10, 10, 1, 2), (0, 5, 5, 1, 2)]
    workload = jobs(*rows, user=[1, 1, 2, 2])
    assert starts(workload, InTurn()) == [0, 10, 0, 0]
    limited = Machine(MACHINE.pools, MACHINE.partitions, limits=(Limit(("user",), jobs=1),))
    assert starts(workload, InTurn(), limited) == [0, 10, 0, 10]


def test_own_policy__is_woken_on_pools_too():
    assert starts(jobs((0, 10, 10, 4, 1), (1, 10, 10, 2, 2)), Late()) == [20, 20]


def test_own_policy__that_starts_nobody_is_named():
    class Never(PlainPolicy):
        def choose(self, now, waiting, running, free):
            return ()

    with raises(EngineError, "endless_wait", "2", "1", "0"):
        wt.simulate(jobs((0, 10, 10, 4, 1), (0, 10, 10, 2, 2)), Never(), machine=MACHINE)
