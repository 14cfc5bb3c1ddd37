"""The loop of the side-car: rounds until a stop is requested, and then the withdrawal of all adjustments."""

from collections.abc import Callable

from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.round import Sidecar
from walltime.wording import counted

LAST_ROUNDS = 3
"""After a stop is requested, the side-car ends after this many rounds in a row that could remove no TimeMin and raise no limit."""
PATIENCE = 120
"""Seconds by which the timeout of systemd is extended for each round after a stop is requested."""


def run_rounds(
    sidecar: Sidecar,
    every: float,
    stop_requested: Callable[[], bool],
    wait: Callable[[float], None],
    after_round: Callable[[Report], None],
    notify: Callable[..., None] = lambda *words: None,
) -> None:
    """Run a round every `every` seconds until a stop is requested; then run rounds that withdraw all adjustments.

    `sidecar.stopped` must return True once a stop is requested. `notify`: sends messages to systemd.
    """
    while not stop_requested():
        begin = sidecar.clock.monotonic()
        after_round(sidecar.round())
        notify("READY=1", "WATCHDOG=1")
        wait(max(every - (sidecar.clock.monotonic() - begin), 1.0))
    if sidecar.ledger is None:
        return
    notify("STOPPING=1")
    idle = 0
    while idle < LAST_ROUNDS:
        notify(f"EXTEND_TIMEOUT_USEC={PATIENCE * 1_000_000}", "WATCHDOG=1")
        report = sidecar.round()
        after_round(report)
        if report.answered and not (report.failures or report.adjusted or report.with_time_min or report.removed or report.restored):
            break
        idle = 0 if report.removed or report.restored else idle + 1
        if report.with_time_min or sidecar.short:
            sidecar.say(f"stopping: {counted(sidecar.short, 'job')} with a shortened limit, {report.with_time_min:,} with a TimeMin")
    if sidecar.watched:
        left = counted(len(sidecar.watched), "job")
        sidecar.say(f"ended with {left} that may have a shortened limit or a TimeMin: {', '.join(sidecar.watched[:20])}")
