"""What the worked examples share: a table of jobs, and a check of both engines against a schedule made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import walltime as wt
from tests.strategies import COINCIDENT

LETTERS = "IRB"
"""Kinds of start in the expected schedules: immediate, reserved, backfilled."""


def jobs_of(machine: int, *rows: Sequence[int]) -> wt.Workload:
    """A workload from rows of submit, processors, estimate and runtime, the last left out where it equals the estimate."""
    submit, procs, estimate, runtime = zip(*((*row[:3], row[-1]) for row in rows), strict=True)
    return wt.Workload.from_arrays(submit=submit, procs=procs, requested=estimate, runtime=runtime, machine_procs=machine)


def check(
    workload: wt.Workload,
    policy: wt.policy.Policy,
    *,
    start: Sequence[int],
    kind: str | None = None,
    reserved_start: Sequence[int] | None = None,
    coincident: Sequence[str] = COINCIDENT,
    overrun: str = "kill",
) -> None:
    """Both engines, in these modes (default: both), must give this start, kind and first reservation of each job."""
    assert coincident, "nothing would be checked"
    for mode in coincident:
        for engine in ("kernel", "reference"):
            schedule = wt.simulate(workload, policy, coincident=mode, overrun=overrun, engine=engine)
            where = f"{policy.label}, {mode}, {engine}"
            assert schedule.start.tolist() == list(start), where
            if kind is not None:
                assert "".join(LETTERS[k] for k in schedule.kind) == kind.replace(" ", ""), where
            if reserved_start is not None:
                assert schedule.reserved_start.tolist() == list(reserved_start), where
