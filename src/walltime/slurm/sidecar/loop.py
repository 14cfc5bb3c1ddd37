"""Round after round, until a signal."""

from __future__ import annotations

from collections.abc import Callable

from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.round import Sidecar

LAST_ROUNDS = 3
"""So many rounds in which nothing more could be given or taken back end a side-car that is to end."""
PATIENCE = 120
"""Seconds for which systemd is asked to wait for each of them."""


def keep_on(
    sidecar: Sidecar,
    every: float,
    asked: Callable[[], bool],
    wait: Callable[[float], None],
    done: Callable[[Report], None],
    tell: Callable[..., None] = lambda *words: None,
) -> None:
    """Rounds every so many seconds until asked to end; then rounds that take everything back, as nobody watches any more.

    `sidecar.stopped` must say yes once it is asked to end. `tell`: of systemd, which is asked to wait.
    """
    while not asked():
        begin = sidecar.clock.monotonic()
        done(sidecar.round())
        tell("READY=1", "WATCHDOG=1")
        wait(max(every - (sidecar.clock.monotonic() - begin), 1.0))
    if sidecar.ledger is None:
        return
    tell("STOPPING=1")
    idle = 0
    while idle < LAST_ROUNDS:
        tell(f"EXTEND_TIMEOUT_USEC={PATIENCE * 1_000_000}", "WATCHDOG=1")
        report = sidecar.round()
        done(report)
        if report.answered and not (report.failures or report.adjusted or report.untaken or report.taken_back or report.given_back):
            break
        idle = 0 if report.taken_back or report.given_back else idle + 1
        if report.untaken or sidecar.short:
            sidecar.say(f"before the end: {sidecar.short} jobs are short, {report.untaken} have a TimeMin")
    if sidecar.watched:
        sidecar.say(f"ended with {len(sidecar.watched)} jobs that may be short or have a TimeMin: {', '.join(sidecar.watched[:20])}")
