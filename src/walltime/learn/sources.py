"""Create episodes from windows of a log, or from workloads."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from walltime.errors import WorkloadError
from walltime.estimates import effective_times
from walltime.learn.features import scales_of
from walltime.policy import Policy
from walltime.simulation.run import simulate
from walltime.simulation.specification import Scheduler
from walltime.wording import counted
from walltime.workload import Array, Workload, check_workload

PARTS = ("all", "train", "test")


@dataclass(frozen=True, eq=False)
class Episode:
    """Jobs to schedule, and the initial state of the machine.

    `workload`: the jobs, in order of arrival; the first `waiting` ones wait already at `begin` (s). `running`: jobs that run at `begin`,
    in order of start, an int64 row of start, runtime, planned runtime (s) and processors each. `scales`: the largest values of the log's
    columns, by which the published observation is scaled (default: those of the jobs).
    """

    workload: Workload
    begin: int = 0
    waiting: int = 0
    running: Array = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    scales: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.scales:
            object.__setattr__(self, "scales", scales_of(self.workload))


def windows(
    workload: Workload,
    jobs: int = 256,
    *,
    part: str = "all",
    test_share: float = 0.3,
    warm: Policy | Scheduler | str | None = None,
    overrun: str = "kill",
) -> list[Episode]:
    """Return consecutive, disjoint windows of a log with `jobs` jobs each, as episodes.

    `part`: `all`, `train` or `test`. Tests get the last `test_share` of the windows, training the earlier ones without the one between.
    `warm`: a scheduler that ran the machine before, so that each window begins with its running and waiting jobs (simulated with this
    `overrun`); by default the machine is empty.

    Raises WorkloadError for an unknown part, a log with fewer jobs than a window, and feedback.

    >>> import walltime as wt
    >>> log = wt.Workload.from_arrays(submit=[0, 1, 2, 3], runtime=[9, 9, 9, 9], procs=[1, 1, 1, 1], machine_procs=2)
    >>> [(one.begin, one.waiting, len(one.running), len(one.workload)) for one in windows(log, 2, warm="easy")]
    [(0, 0, 0, 2), (2, 0, 2, 2)]
    """
    begin, end = _part(workload, jobs, part, test_share)
    return _cut(workload, list(range(begin, end - jobs + 1, jobs)), jobs, "", warm, overrun)


def overlapping(
    workload: Workload,
    jobs: int = 256,
    episodes: int = 1000,
    seed: int = 0,
    *,
    part: str = "all",
    test_share: float = 0.3,
    warm: Policy | Scheduler | str | None = None,
    overrun: str = "kill",
) -> list[Episode]:
    """Return random windows of a log, which may overlap, as in the training of zhang20's program.

    There are more of them than of `windows`, but they are not independent, so intervals over them are too narrow for comparisons. Training
    and test windows share no jobs. Other arguments are as in `windows`.
    """
    begin, end = _part(workload, jobs, part, test_share)
    first = np.random.default_rng(seed).integers(begin, end - jobs + 1, episodes)
    return _cut(workload, first.tolist(), jobs, " (windows that overlap)", warm, overrun)


def _part(workload: Workload, jobs: int, part: str, test_share: float) -> tuple[int, int]:
    """Return the first job of a part of a log, and the first job after it."""
    check_workload(workload)
    if part not in PARTS:
        raise WorkloadError(f"unknown part {part!r} of a log. Valid parts: {', '.join(PARTS)}", "unknown_part")
    if jobs < 1 or len(workload) < jobs:
        raise WorkloadError(f"a log of {counted(len(workload), 'job')} has no window of {jobs}; use fewer jobs per window", "log_too_short")
    if workload.feedback:
        raise WorkloadError("a workload with feedback cannot be cut into windows; use with_feedback(False)")
    count = len(workload) // jobs
    tested = max(1, round(count * test_share))
    begin, end = {"all": (0, count), "train": (0, count - tested - 1), "test": (count - tested, count)}[part]
    if end <= begin:
        raise WorkloadError(f"the part {part!r} needs more than {counted(count, 'window')}; use fewer jobs per window", "too_few_windows")
    return begin * jobs, end * jobs


def _cut(workload: Workload, first: list[int], jobs: int, note: str, warm: Policy | Scheduler | str | None, overrun: str) -> list[Episode]:
    """Return the windows that begin with these jobs."""
    scales, episodes = scales_of(workload), []
    start: Array = np.full(len(workload), -1, np.int64)  # without a scheduler, all earlier jobs have ended
    end = start
    if warm is not None:
        schedule = simulate(workload, warm, overrun=overrun)
        start, end, note = schedule.start, schedule.end, f", and waiting jobs{note}"
    runtime, planned = effective_times(workload, overrun)
    for i in first:
        begin = int(workload.submit[i])
        before = np.arange(i)
        ran = before[(start[:i] < begin) & (end[:i] >= begin)]
        ran = ran[np.argsort(start[ran], kind="stable")]
        wait = before[start[:i] >= begin]
        own = workload.take(np.concatenate([wait, np.arange(i, i + jobs)]), f"jobs {i} to {i + jobs - 1}{note}")
        running = np.column_stack([start[ran], runtime[ran], planned[ran], workload.procs[ran]])
        episodes.append(Episode(own, begin, len(wait), running, scales))
    return episodes


def as_episodes(source: Workload | Episode | Sequence[Workload | Episode]) -> list[Episode]:
    """Return a list of episodes from one or several episodes or workloads; a workload starts on an empty machine."""
    given = [source] if isinstance(source, Workload | Episode) else list(source)
    jobs: list[object] = [one.workload if isinstance(one, Episode) else one for one in given]
    for one in jobs:
        check_workload(one)
    episodes = [one if isinstance(one, Episode) else Episode(one, int(one.submit[0]) if len(one) else 0) for one in given]
    if not episodes or min(len(one.workload) for one in episodes) == 0:
        raise WorkloadError("an environment needs at least one episode, and every episode a job", "no_episode")
    if len({one.workload.machine_procs for one in episodes}) > 1:
        raise WorkloadError("all episodes of an environment must have the same number of processors", "mixed_machines")
    return episodes
