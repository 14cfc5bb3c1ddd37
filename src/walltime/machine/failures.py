"""Random node failures: turn a machine's tables of failures into outages."""

from dataclasses import replace

import numpy as np

from walltime.errors import WorkloadError
from walltime.machine.machine import Machine
from walltime.machine.tables import REPEATED_FOR, Failure, Outage, Pool, numbers_of
from walltime.workload import Array, Workload
from walltime.workload.draws import uniforms

STREAM_FAILURES = 1_000_000
MOST_FAILURES = 100_000
"""Maximum number of failures; with more, the simulation would be slow."""


def with_outages(workload: Workload, machine: Machine) -> Machine:
    """Return the machine with outages instead of tables of failures, from the beginning of the log until `REPEATED_FOR` after its end.

    A node's failures depend only on the seed, the node's number, its pool's position and the number of earlier tables of this pool, so they
    stay the same when nodes are added. Raises WorkloadError for more than `MOST_FAILURES`.
    """
    until = int(workload.submit.max(initial=0)) + REPEATED_FOR
    expected = 0.0
    found: list[Outage] = []
    for k, one in enumerate(machine.failures):
        pool = machine.pools[machine.place_of(one.pool)]
        stream = STREAM_FAILURES + 256 * machine.place_of(one.pool) + sum(other.pool == one.pool for other in machine.failures[:k])
        nodes = np.array(numbers_of(one.nodes, pool), np.int64)
        expected += len(nodes) * until / (one.mtbf + one.repair)
        if expected > MOST_FAILURES:
            raise WorkloadError(
                f"the tables of failures lead to about {expected:,.0f} failures in {until / 86_400:,.0f} days, more than "
                f"{MOST_FAILURES:,}; give a longer mtbf, fewer nodes or a part of the log",
                "too_many_failures",
            )
        found += _outages(one, pool, nodes, stream, until)
    return replace(machine, failures=(), outages=(*machine.outages, *found)) if machine.failures else machine


def _outages(failure: Failure, pool: Pool, nodes: Array, stream: int, until: int) -> list[Outage]:
    """Return the outages of nodes up to a time, s, in order of their starts."""
    time, left, count = np.zeros(len(nodes)), nodes, 0
    found: list[tuple[int, int, int]] = []
    while len(left):
        up, down = uniforms(failure.seed, (left << 32) + count, stream)
        begin = time - failure.mtbf * np.log1p(-up)
        end = begin - failure.repair * np.log1p(-down)
        within = begin < until
        rows = (np.floor(begin[within]), np.floor(end[within]) + 1, left[within])
        found += zip(*(values.astype(np.int64).tolist() for values in rows), strict=True)
        time, left, count = end[within] + 1, left[within], count + 1
    return [Outage(pool.name, begin, end, str(node + 1), jobs=failure.jobs) for begin, end, node in sorted(found)]
