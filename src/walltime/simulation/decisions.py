"""Simulations whose decisions come from outside: the caller starts, rejects and kills jobs, and the machine's rules are checked."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from walltime.engine.problem import State
from walltime.errors import EngineError, PolicyError, WorkloadError
from walltime.estimates import effective_times
from walltime.policy import PAPERS, Dialect, Kind, Policy
from walltime.policy.log_view import ALL, LogView
from walltime.policy.plain import JobViews, RunningJob, WaitingJob
from walltime.schedule.schedule import Schedule
from walltime.wording import counted, shown
from walltime.workload import Workload, check_workload


@dataclass(frozen=True)
class Decided(Policy):
    """The policy of schedules whose decisions come from a program outside the simulation."""

    display_name = "Decisions from outside"


class Happened(NamedTuple):
    """The events of an instant: the jobs that ended and the jobs that were submitted, both as indices into the workload."""

    ended: tuple[int, ...]
    submitted: tuple[int, ...]


@dataclass(frozen=True)
class _Job:
    """A job as `JobViews` needs it."""

    index: int
    submit: int
    planned: int
    procs: int
    start: int = -1
    expected_end: int = -1


class DecidedSimulation:
    """A simulation on a number of processors in which the caller decides; `wt.Simulation(workload)` without a policy makes one.

    `now`: the time, s. `free`: the number of free processors. `waiting`, `running`: views of the jobs as `walltime.PlainPolicy` gets them,
    without the future, in order of arrival and of start. `done`: whether every job has started and ended, or was rejected. Jobs are given
    as views or by number (`job_id`). Raises PolicyError for a prediction, a machine file or a dialect, WorkloadError for feedback.

    >>> import walltime as wt
    >>> jobs = wt.Workload.from_arrays(submit=[0, 1, 2], runtime=[10, 10, 5], procs=[3, 4, 1], machine_procs=4)
    >>> simulation = wt.Simulation(jobs)
    >>> while not simulation.done:
    ...     for job in simulation.waiting:
    ...         if job.procs <= simulation.free:
    ...             simulation.start(job)
    ...     _ = simulation.advance()
    >>> simulation.finish().start.tolist()
    [0, 10, 2]
    """

    engine = "decisions"

    def __init__(self, workload: Workload, policy: None = None, *, overrun: str = "kill", **others: Any):
        check_workload(workload)
        plain = {
            "coincident": (None, "batch"),
            "dialect": ("papers", PAPERS),
            "prediction": (None,),
            "machine": (None,),
            "engine": ("auto",),
        }
        for name, value in others.items():
            if value not in plain[name]:
                raise PolicyError(f"a simulation with decisions from outside has no {name}; leave it out", "unsupported_option")
        if workload.feedback:
            raise WorkloadError("decisions from outside need known submit times; use with_feedback(False)", "feedback")
        self._jobs, self._overrun = workload, overrun
        runtime, planned = effective_times(workload, overrun)
        self._runtime = runtime.tolist()
        columns = zip(range(len(workload)), workload.submit.tolist(), planned.tolist(), workload.procs.tolist(), strict=True)
        self._known = [_Job(*row) for row in columns]
        self._views = JobViews(LogView.of({ALL: "decisions from outside"}, workload, workload.requested))
        self._index = {number: k for k, number in enumerate(workload.job_id.tolist())}
        self._arrived, self._now = 0, 0
        self._queue, self._runs = dict[int, None](), dict[int, tuple[int, ...]]()  # waiting jobs; the processors of running ones
        self._idle = set(range(workload.machine_procs))
        self._ends: list[tuple[int, int]] = []
        self._start, self._end, self._kind = (np.full(len(workload), -1) for _ in range(3))
        self._given: dict[int, tuple[int, ...]] = {}

    def __repr__(self) -> str:
        return f"<Simulation of {self._jobs.origin.name} with decisions from outside: at {self.now} s>"

    @property
    def workload(self) -> Workload:
        """Return the jobs."""
        return self._jobs

    @property
    def now(self) -> int:
        """Return the time, s."""
        return self._now

    @property
    def free(self) -> int:
        """Return the number of free processors."""
        return len(self._idle)

    @property
    def waiting(self) -> tuple[WaitingJob, ...]:
        """Return the waiting jobs, in order of arrival."""
        self._views.now = self._now
        return tuple(self._views.waiting(self._known[k]) for k in self._queue)

    @property
    def running(self) -> tuple[RunningJob, ...]:
        """Return the running jobs, in the order of their starts."""
        self._views.now = self._now
        return tuple(self._views.running(self._with_start(k)) for k in self._runs)

    @property
    def done(self) -> bool:
        """Return whether every job has started and ended, or was rejected."""
        return self._arrived == len(self._known) and not self._queue and not self._runs

    def _with_start(self, k: int) -> _Job:
        start = int(self._start[k])
        return replace(self._known[k], start=start, expected_end=start + self._known[k].planned)

    def index_of(self, job: WaitingJob | int) -> int:
        """Return the index of a job in the workload; raises PolicyError for an unknown one."""
        if isinstance(job, WaitingJob):
            return job.index
        if isinstance(job, bool) or not isinstance(job, int | np.integer) or int(job) not in self._index:
            raise PolicyError(f"there is no job {shown(job)}; give a job that waits or runs, or its number", "unknown_job")
        return self._index[int(job)]

    def processors_of(self, job: WaitingJob | int) -> tuple[int, ...]:
        """Return the processors, from 0, that a job has or had; none before its start."""
        return self._given.get(self.index_of(job), ())

    def start(self, job: WaitingJob | int, processors: Iterable[int] | None = None) -> None:
        """Start a waiting job now, on these free processors (numbers from 0), by default on the first free ones.

        Raises PolicyError for a job that does not wait, too few free processors, or wrong ones.
        """
        k = self._waits(job)
        needed, name = self._known[k].procs, f"job {self._jobs.job_id[k]}"
        if needed > len(self._idle):
            message = f"{name} needs {counted(needed, 'processor')}, and {len(self._idle)} are free; start it later"
            raise PolicyError(message, "choice_too_large")
        chosen = tuple(sorted(self._idle)[:needed] if processors is None else sorted(processors))
        if len(chosen) != needed or len(set(chosen)) != needed or not self._idle.issuperset(chosen):
            busy = [one for one in chosen if one not in self._idle]
            why = f"processor {busy[0]} is not free" if busy else f"it needs {needed} different ones, not {list(chosen[:10])}"
            raise PolicyError(f"{name} cannot start on the given processors: {why}; choose free ones", "wrong_processors")
        ahead = next(iter(self._queue)) != k
        self._kind[k] = Kind.BACKFILLED if ahead else Kind.IMMEDIATE if self._known[k].submit == self._now else Kind.RESERVED
        del self._queue[k]
        self._start[k], self._runs[k], self._given[k] = self._now, chosen, chosen
        self._idle.difference_update(chosen)
        heapq.heappush(self._ends, (self._now + self._runtime[k], k))

    def reject(self, job: WaitingJob | int) -> None:
        """Take a waiting job out of the queue for good; the schedule leaves it out. Raises PolicyError if it does not wait."""
        del self._queue[self._waits(job)]

    def kill(self, job: WaitingJob | int) -> None:
        """End a running job now. Raises PolicyError if it does not run."""
        k = self.index_of(job)
        if k not in self._runs:
            raise PolicyError(f"job {self._jobs.job_id[k]} does not run; kill a running job", "not_running")
        self._finish_job(k)

    def _waits(self, job: WaitingJob | int) -> int:
        k = self.index_of(job)
        if k not in self._queue:
            raise PolicyError(f"job {self._jobs.job_id[k]} does not wait at {self._now} s; choose a waiting job", "not_waiting")
        return k

    def _finish_job(self, k: int) -> None:
        self._end[k] = self._now
        self._idle.update(self._runs.pop(k))

    @property
    def next_event(self) -> int | None:
        """Return the time, s, at which the next job ends or is submitted; None if there is no such event."""
        while self._ends and self._ends[0][1] not in self._runs:  # killed
            heapq.heappop(self._ends)
        coming = [self._known[self._arrived].submit] if self._arrived < len(self._known) else []
        return min([*coming, *(end for end, _ in self._ends[:1])], default=None)

    def advance(self, until: int | None = None) -> Happened:
        """Advance to the next instant at which jobs end or are submitted, and return these jobs; not beyond `until`, s.

        Raises EngineError if nothing will happen although jobs wait, PolicyError for a time in the past.
        """
        if until is not None and (isinstance(until, bool) or not isinstance(until, int | np.integer) or until < self._now):
            raise PolicyError(f"time must be a whole number of seconds of at least {self._now}, not {shown(until)}", "past_time")
        moment = self.next_event
        if moment is None and until is None:
            if self.done:
                return Happened((), ())
            message = f"{counted(len(self._queue), 'job')} will wait forever, as no job runs or will come; start or reject one"
            raise EngineError(message, "endless_wait")
        if moment is None or (until is not None and moment > until):
            self._now = self._now if until is None else until
            return Happened((), ())
        self._now, ended, first = moment, [], self._arrived
        while self._ends and self._ends[0][0] == moment:
            _, k = heapq.heappop(self._ends)
            if k in self._runs:
                self._finish_job(k)
                ended.append(k)
        while self._arrived < len(self._known) and self._known[self._arrived].submit == moment:
            self._queue[self._arrived] = None
            self._arrived += 1
        return Happened(tuple(ended), tuple(range(first, self._arrived)))

    def step(self) -> bool:
        """Advance to the next instant; return whether there was one."""
        if self.done:
            return False
        self.advance()
        return True

    def run_until(self, time: int) -> None:
        """Advance to a time, s, without decisions in between."""
        while self._now < time or self.next_event == time:
            self.advance(time)

    def state(self) -> State:
        """Return the same view as the `state` of other simulations; reserved starts are -1."""
        runs = sorted(self._runs, key=lambda k: self._start[k] + self._known[k].planned)
        columns = (list(self._queue), [self._known[k].planned for k in self._queue], [-1] * len(self._queue))
        ends = [self._with_start(k).expected_end for k in runs]
        return State(self._now, self.free, *(np.array(column, np.int64) for column in (*columns, runs, ends)))

    def copy(self) -> DecidedSimulation:
        """Return an independent simulation that continues from the same state."""
        return copy.deepcopy(self, {id(self._jobs): self._jobs, id(self._known): self._known})

    def finish(self) -> Schedule:
        """Return the schedule of the jobs that ran; raises EngineError before all have ended."""
        if not self.done:
            left = len(self._known) - self._arrived + len(self._queue) + len(self._runs)
            raise EngineError(f"{counted(left, 'job')} have not ended; go on with advance()", "not_done")
        ran = self._start >= 0
        jobs = self._jobs if ran.all() else self._jobs.take(ran, f"{(~ran).sum()} rejected by the scheduler")
        start, end, kind = self._start[ran], self._end[ran], self._kind[ran].astype(np.uint8)
        none = np.full(len(start), -1)
        return Schedule(jobs, Decided(), start, end, end - start, kind, none, overrun=self._overrun, engine=self.engine, dialect=Dialect())
