"""What `walltime simulate --batch-means` says: the mean response of a run without end, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walltime.metrics import BatchMeans


def batches_object(found: BatchMeans, asked: int) -> dict[str, Any]:
    """All of it for `--json`; `asked`: jobs in a batch as asked for."""
    interval = found.interval
    return {
        "mean_response": found.mean,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "what": None if interval is None else interval.what,
        "mean_of_all_jobs": found.whole,
        "batches": found.batches,
        "jobs_per_batch": found.batch,
        "correlation": found.correlation,
        "asked": {"jobs_per_batch": asked, "correlation": found.correlation_asked},
        "jobs_alike": found.alike,
        "jobs_needed": found.needed,
        "verdict": found.verdict,
        "reason": found.reason,
        "contradiction": found.contradiction,
    }


def batches_lines(found: BatchMeans, asked: int) -> list[str]:
    """The same in sentences, without digits beyond the error."""
    from walltime.metrics.intervals import SHOWN_LEVEL
    from walltime.wording import to_error

    merged = "" if found.batch == asked else f"; between batches of {asked:,}, as asked for: {found.correlation_asked:+.2f}"
    made = f"{found.batches} batches of {found.batch:,} jobs, correlation between neighbours {found.correlation:+.2f}{merged}"
    if found.interval is None:
        lines = [f"mean response after the warm-up {found.mean:,.0f} s, with no interval: {found.reason} ({made})"]
    else:
        half = found.interval.half_width
        mean, low, high = (to_error(value, half) for value in (found.mean, found.interval.low, found.interval.high))
        what = f"{SHOWN_LEVEL} interval of the mean in the long run"
        lines = [f"mean response by batch means {mean} s ({low} to {high}: {what}; {found.verdict}; {made})"]
    return [*lines, *([found.contradiction] if found.contradiction else [])]
