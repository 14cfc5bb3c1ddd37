"""Options that would let the side-car adjust more jobs, and sentences on the jobs that it leaves alone, by partition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from walltime.predictors import Tang13
from walltime.slurm.sidecar.advice import Advice
from walltime.slurm.sidecar.report import Report
from walltime.slurm.sidecar.selection import time_min_of
from walltime.slurm.sidecar.settings import POLLS_IN_FLOOR, SidecarSettings
from walltime.slurm.squeue_fields import QueueJob
from walltime.wording import counted, human_percent, sanitize

MOST = 3
"""The maximum number of options that are suggested, those for most jobs first."""


@dataclass(frozen=True)
class Measure:
    """An option, as typed, that would let the side-car adjust `jobs` of the jobs that it leaves alone."""

    option: str
    jobs: int


def class_sentences(report: Report, jobs: Mapping[str, QueueJob], min_jobs: int) -> Iterator[str]:
    """Yield a sentence for each partition: how many jobs would be adjusted, have nothing to gain, or have too few similar jobs.

    `jobs`: the waiting jobs by key; `min_jobs`: the smallest number of similar jobs for a prediction.
    """
    decided = {**dict.fromkeys(report.wanted), **report.unadjusted}
    for partition in sorted({jobs[key].partitions[0] for key in decided}):
        mine = [key for key in decided if jobs[key].partitions[0] == partition]
        shares = [share for key in mine if key in report.unadjusted and (share := report.unadjusted[key]) is not None]
        unknown = sum(key in report.unadjusted and report.unadjusted[key] is None for key in mine)
        texts = [f"{len(mine) - len(shares) - unknown:,} of {counted(len(mine), 'job')} would be adjusted"]
        if shares:
            used = human_percent(100 * median(shares))
            texts.append(f"{len(shares):,} have nothing to gain (their predicted runtimes are {used} of the limits)")
        if unknown:
            texts.append(f"too little is known about {unknown:,} (the log has fewer than {min_jobs} similar jobs)")
        yield f"partition {sanitize(partition, 40)}: {'; '.join(texts)}"


def measures(jobs: Sequence[QueueJob], advice: Advice, predictor: Tang13, settings: SidecarSettings, now: float) -> list[Measure]:
    """Return up to three options that would let the side-car adjust the most of `jobs`, now left alone; `now`: Unix time."""
    least = -int(-POLLS_IN_FLOOR * settings.every // 60)
    variants = {
        "--gain 1": (predictor, replace(settings, gain=1.0)),
        f"--floor {least}": (predictor, replace(settings, floor=min(least, settings.floor))),
    }
    for name, value in {"window": None, "key": "user", "statistic": "median", "min_jobs": 3}.items():
        changed = replace(predictor, **{name: value})
        variants[f"--predictor {changed.label}"] = changed, settings
    found = []
    for option, (changed, limits) in variants.items():
        own = advice if changed == predictor else Advice(changed, advice.learned)
        count = sum(job.limit is not None and time_min_of(own.predict(job, now), job.limit, limits) is not None for job in jobs)
        found += [Measure(option, count)] if count else []
    return sorted(found, key=lambda one: -one.jobs)[:MOST]


def measures_sentence(found: Sequence[Measure], left: int) -> str:
    """Return the options in a sentence; `left`: the number of jobs that are left alone."""
    if not found:
        return "no option of the predictor or of the limits would adjust any of them; a log of more jobs, or more accurate limits, would"
    return "; ".join(f"{one.option} would adjust {one.jobs:,} of these {counted(left, 'job')}" for one in found)
