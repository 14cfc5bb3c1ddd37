"""Parts for walltime: one of each kind. `walltime list policies` and so on list them when the package is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import walltime as wt


class WidestFirst:
    """Start the widest waiting job that fits, as long as there is one."""

    def choose(self, now, waiting, running, free):
        """Return the jobs that start now."""
        for job in sorted(waiting, key=lambda job: -job.procs):
            if job.procs <= free:
                free -= job.procs
                yield job


@wt.order
def smallest_work(planned, procs):
    """Order jobs by their planned work, the smallest first."""
    return -planned * procs


class Half:
    """Predict half of the requested time."""

    def predict(self, job):
        """Return seconds."""
        return job.requested / 2

    def observe(self, job):
        """Learn from a job that has ended."""


def whole_hours(workload):
    """Return the runtimes, rounded up to whole hours."""
    return -(-workload.runtime // 3600) * 3600


def uniform(jobs, procs, seed, longest=7200):
    """Return jobs with uniform runtimes, sizes and times between arrivals."""
    draw = np.random.default_rng(seed)
    return wt.Workload.from_arrays(
        submit=np.cumsum(draw.integers(1, 600, jobs)),
        runtime=draw.integers(1, longest, jobs),
        procs=draw.integers(1, procs + 1, jobs),
        machine_procs=procs,
    )


def second_half(submit, end):
    """Measure the jobs that were submitted in the second half of the log."""
    return submit >= (submit.min() + submit.max()) / 2


def share_without_wait(schedule, measured):
    """Return the share of jobs that started at their submission."""
    return float(np.mean(schedule.wait[measured] == 0))


def pipes(path):
    """Read lines such as `0|ann|4|3600`: submission (s), user, processors and runtime (s), on a machine of 64 processors."""
    rows = [line.split("|") for line in Path(path).read_text().splitlines() if line]
    submit, user, procs, runtime = zip(*rows, strict=True)
    numbers = {"submit": submit, "procs": procs, "runtime": runtime}
    return wt.Workload.from_arrays(
        **{name: np.array(texts, np.int64) for name, texts in numbers.items()}, machine_procs=64, columns={"user": list(user)}
    )
