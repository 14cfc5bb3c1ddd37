"""The result of a simulation (start, end and kind of start of every job), and its longest waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from walltime import metrics
from walltime.dataframes import pl
from walltime.engine.machines import LostRuns
from walltime.errors import PolicyError
from walltime.machine import Placement
from walltime.policy import PAPERS, Dialect, Kind, Policy
from walltime.policy.log_view import LogView
from walltime.predictors.prediction import Prediction, with_prediction
from walltime.schedule.elsewhere import fields_of
from walltime.schedule.files import table_of_jobs, write_schedule
from walltime.schedule.groups import (
    MEASURES,
    UNKNOWN,
    Edges,
    breakdown,
    check_known,
    check_same_jobs,
    group_jobs,
    recorded_groups,
    recorded_rows,
)
from walltime.tables import Facts, number
from walltime.wording import counted, human_percent, human_time
from walltime.workload import Array, Workload

if TYPE_CHECKING:
    from walltime.auditor import AuditReport


@dataclass(frozen=True, eq=False)
class PredictionRecord:
    """The predictions of a simulation; arrays have one entry per job.

    * `predicted`: int64 s, before corrections: the prediction at submission, or the last one before the start if the predictor predicts
      waiting jobs again
    * `basis`: uint8, a `walltime.predictors.Basis`
    * `corrections`: int64, number of corrections while the job ran
    """

    prediction: Prediction
    predicted: Array
    basis: Array
    corrections: Array


@dataclass(frozen=True, eq=False)
class Schedule:
    """Start, end and kind of start of every job of a workload, in the workload's order of arrival.

    If the jobs were given in another order, `schedule.workload.in_given_order` restores it for an array.

    The fields, with one entry per job in arrays; times are int64 seconds:

    * `start`, `end`; `runtime`: the effective runtime, at most the kill limit with `overrun="kill"`; `kind`: uint8, a `Kind`
    * `reserved_start`: the start of the job's first reservation, -1 without one
    * `submitted`: the submit times if they depend on the schedule (feedback), else None
    * `dialect`: the interpretations of the papers; `dynamics`: the effects of backfilling, None unless requested
    * `predictions`: None without a predictor; `seconds`: the duration of each stage of the run; `engine`: `kernel` or `reference`
    * `simulated_on`: the simulated kind of machine: `number` (a number of processors), `pools` or `nodes`; pools that act as a single one
      for these jobs are simulated as `number`
    * `placement`: the jobs' needs on a machine with several pools; `given`: the processors and units of the second resource that each job
      has in each pool, int64, shape (jobs, pools, 2)
    * `slots`: the jobs' shares of nodes under Slurm's scheduling, four int64 arrays: the job's index, the node, processors, and units of
      the second resource; under the dialect `batsched`, each processor is a node
    * `limit`: the jobs' limits, None if they equal the requests
    * `seed`: the seed of the run, for orders that read random numbers
    * `lost`: the runs that ended early because of a preemption or a failed node; None if there cannot be any. A requeued job has the times
      of its last run, and its wait ends at the start of that run.
    """

    workload: Workload
    policy: Policy
    start: Array
    end: Array
    runtime: Array
    kind: Array
    reserved_start: Array
    overrun: str = "kill"
    dialect: Dialect = PAPERS
    submitted: Array | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    dynamics: metrics.Dynamics | None = None
    predictions: PredictionRecord | None = None
    engine: str = "kernel"
    simulated_on: str = "number"
    placement: Placement | None = None
    given: Array | None = None
    slots: Sequence[Array] | None = None
    limit: Array | None = None
    lost: LostRuns | None = None
    seed: int = 0

    @classmethod
    def from_table(cls, table: Any, workload: Workload, name: str = "another program") -> Schedule:
        """Return the schedule that another program made for a workload, for metrics, tables, figures and the auditor.

        `table`: a file as in `walltime.schedule.read_schedule`, a data frame of polars or pandas, or a dictionary, with the columns
        `job_id`, `start` and `end` (s), or Batsim's columns. `job_id` may be a text. A job counts as backfilled if an earlier one starts
        later, unless there is a column `kind`. Raises LogError for missing or unknown jobs, and for impossible times.

        >>> jobs = Workload.from_arrays(submit=[0, 1], runtime=[10, 10], procs=[3, 4], machine_procs=4)
        >>> Schedule.from_table({"job_id": ["1", "2"], "start": [0, 10], "end": [10, 20]}, jobs, "mine").summary().mean_wait
        4.5
        """
        return cls(**fields_of(table, workload, name))

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        return f"<Schedule {self.label}: {counted(len(self), 'job')} of {self.workload.origin.name}>"

    @property
    def coincident(self) -> str:
        """Return how simultaneous events were handled."""
        return self.dialect.coincident

    @property
    def label(self) -> str:
        """Return the specification of the whole scheduler: the policy with its orders, and the prediction."""
        return with_prediction(self.policy.label, None if self.predictions is None else self.predictions.prediction)

    @property
    def title(self) -> str:
        """Return the scheduler's name in text and figures."""
        return self.policy.title + ("" if self.predictions is None else f", {self.predictions.prediction.title}")

    @property
    def wait(self) -> Array:
        """Return the wait of each job, int64 seconds."""
        return self.start - self.submit

    @property
    def submit(self) -> Array:
        """Return the submit time of each job, int64 seconds."""
        return self.workload.submit if self.submitted is None else self.submitted

    @property
    def last_submit(self) -> int:
        """Return the last arrival, s; 0 without jobs."""
        return int(self.submit.max()) if len(self) else 0

    @property
    def offered_load(self) -> float:
        """Return the offered load of the log with the simulated runtimes, in which killed jobs count up to their limits."""
        w = self.workload
        return metrics.offered_load(w.submit, self.runtime, w.procs, w.machine_procs)

    def summary(self, trim: str = "none", jobs: Array | slice = slice(None)) -> metrics.Summary:
        """Return the usual averages, of all jobs or of some (bool, one per job).

        `trim="tsafrir06"` excludes warm-up and cool-down as in tsafrir06, section II.
        """
        machine = self.workload.machine_procs
        measures = {name: values[jobs] for name, values in self._jobs.items()} | {"backfilled": self.kind[jobs] == Kind.BACKFILLED}
        return metrics.summarize(**measures, machine_procs=machine, offered_load=self.offered_load, trim=trim)

    @property
    def _jobs(self) -> dict[str, Array]:
        return {"submit": self.submit, "start": self.start, "runtime": self.runtime, "procs": self.workload.procs}

    def dynamics_summary(self, trim: str = "none") -> metrics.DynamicsSummary:
        """Return averages of the effects of backfilling over the measured jobs of `summary`. Raises PolicyError if not recorded."""
        if self.dynamics is None:
            raise PolicyError("the starts were not recorded; simulate with dynamics=True")
        return metrics.summarize_dynamics(self.dynamics, self.runtime, self.measured(trim))

    def metric(self, name: str | Callable[..., float], trim: str = "none") -> float:
        """Return a metric over the measured jobs: a field of `summary`, one of `walltime.metrics.FURTHER`, a percentile, or your own.

        `name`: such as `p99_wait`, `jain_users`, a function of the schedule and the measured jobs (bool, shape (jobs,)), or
        `FILE.py:NAME` for one in a file. Raises PolicyError for an unknown metric or trim.
        """
        return metrics.metric(name).function(self, self.measured(trim))

    def measured(self, trim: str = "none") -> Array:
        """Return a mask (bool, shape (jobs,)) of the jobs that `summary` measures; see `walltime.metrics.measured`."""
        return metrics.measured(self.end, self.last_submit, trim, submit=self.submit)

    def prediction_summary(self, trim: str = "none") -> metrics.PredictionSummary:
        """Return the quality of the predictions over the measured jobs of `summary`. Raises PolicyError if nothing was predicted."""
        if self.predictions is None:
            raise PolicyError("no runtime was predicted; simulate with a predictor", "no_predictions")
        mask, own, requested = self.measured(trim), self.predictions, self.workload.requested
        columns = (self.runtime, requested, own.predicted, own.basis, self.start, self.reserved_start, own.corrections)
        return metrics.summarize_predictions(*(column[mask] for column in columns))

    def weighted_wait(self) -> float:
        """Return the mean wait weighted by each job's priority at its start, by the policy's order and the requests, s (tang13, eq. 4)."""
        w = self.workload
        known = LogView.of(self.policy.reads, w, w.requested)
        return metrics.weighted_wait_under(self.policy.order, self.submit, self.start, w.requested, w.procs, known)

    def batch_means(self, **options: Any) -> metrics.BatchMeans:
        """Return the mean response with a confidence interval by batch means, jobs in order of termination.

        `options`: the options of `walltime.metrics.batch_means`; `least` follows from the utilization by default. Raises WorkloadError for
        few jobs.
        """
        in_order = np.lexsort((self.start, self.end))
        least = {"least": metrics.jobs_needed(self.summary().utilization)} | options
        return metrics.batch_means((self.end - self.submit)[in_order], **least)

    def monthly(self, by: str = "end") -> list[metrics.Month]:
        """Return averages for each calendar month, in the site's time zone, as in feitelson98 and mualem01, Table 1.

        `by`: the event, end, start or submit, that determines a job's month; by default the end, our interpretation of "each month
        individually". Raises WorkloadError if the log does not record its start time.
        """
        origin = self.workload.origin
        return metrics.monthly(
            **self._jobs, machine_procs=self.workload.machine_procs, unix_start_time=origin.unix_start_time, tzinfo=origin.tzinfo(), by=by
        )

    def breakdown(self, by: str, edges: Edges = None, trim: str = "none") -> pl.DataFrame:
        """Return averages of groups of jobs as a polars table: one row for each group, in the order of the groups.

        `by`: month, class, user, users, size, length, size-length, hour, weekday, hour-of-week, queue or partition. `edges`: for `size`
        (processors) and `length` (requested s) the largest value of each group but the last, for `size-length` both, for `users` their
        number. Columns: `group`, `jobs`, `share_of_use` (of all processor time), `mean_wait`, `median_wait`, `p90_wait`, `max_wait`,
        `mean_response` (s), `mean_bounded_slowdown`; over the measured jobs of `summary`. Raises PolicyError for an unknown grouping,
        WorkloadError if the log describes the group of no job.
        """
        groups = group_jobs(self.workload, by, self.submit, self.end, edges, self.runtime)
        check_known(self.workload, by, groups)
        rows = breakdown(groups, self.wait, self.runtime, self.workload.procs, self.measured(trim))
        return pl.DataFrame(rows, schema={"group": pl.String, "jobs": pl.Int64} | dict.fromkeys(MEASURES[1:], pl.Float64))

    def gains(self, other: Schedule, trim: str = "none", most: int = 5) -> metrics.Gains:
        """Return the jobs and users that gain or lose if this schedule is replaced by another one of the same jobs.

        Only jobs that `summary` measures in both schedules count. `most`: number of winners and of losers to name. Raises WorkloadError if
        the jobs differ.
        """
        check_same_jobs(self.workload, other.workload)
        mask, w = self.measured(trim) & other.measured(trim), self.workload
        columns = {"before": self.wait, "after": other.wait, "procs": w.procs, "runtime": other.runtime, "job_id": w.job_id}
        user = w.columns.get("user")
        named = {name: values[mask] for name, values in columns.items()}
        gains = metrics.gains(**named, user=None if user is None else user[mask], most=most)
        return gains.with_names(partial(w.origin.name_of, "user")) if "user" in w.origin.names else gains

    def recorded(self, trim: str = "none") -> metrics.RecordedWaits | None:
        """Compare recorded and simulated waits over the measured jobs of `summary`; None if the log records no waits."""
        recorded, mask = self.workload.recorded_wait, self.measured(trim)
        return None if recorded is None else metrics.recorded_waits(recorded[mask], self.wait[mask])

    def recorded_by(self, by: str, trim: str = "none") -> list[dict[str, Any]]:
        """Return `recorded` for groups of jobs (see `breakdown`; months by submission): rows of `group`, `jobs` and averages.

        The list is empty if the log records no waits, or describes the group of no job.
        """
        recorded, groups = self.workload.recorded_wait, recorded_groups(self.workload, by, self.runtime)
        if recorded is None or list(groups.names) == [UNKNOWN]:
            return []
        return recorded_rows(groups, recorded, self.wait, self.measured(trim))

    def timeline(self, interval: int | None = None) -> pl.DataFrame:
        """Return the queue and the machine over time, with all jobs, as a polars table.

        Columns: `time` (s), `queued_jobs`, `queued_work` (processor-seconds that the waiting jobs request), `busy_procs`, `running_jobs`.
        One row for each change, valid until the next row; or, with an `interval` (s), means over each interval. Raises PolicyError for an
        interval below 1 s, or so short that there are over 10 million.
        """
        w = self.workload
        columns = {"submit": self.submit, "start": self.start, "end": self.end, "procs": w.procs, "requested": w.requested}
        return pl.DataFrame(metrics.timeline(**columns, interval=interval))

    def columns(self) -> dict[str, Array]:
        """Return the columns of `walltime.workload.SCHEDULE_COLUMNS`, one entry per job in the workload's order.

        If Slurm has shortened limits, there is also a column `limit`. If runs ended early, the column `interrupted` is 1 for jobs whose
        last run ended early.
        """
        w = self.workload
        columns = {"job_id": w.job_id, "submit": self.submit, "start": self.start, "end": self.end, "procs": w.procs}
        columns |= {"requested": w.requested, "runtime": self.runtime, "planned": w.planned}
        columns |= {"kind": self.kind, "reserved_start": self.reserved_start}
        columns |= {} if self.limit is None else {"limit": self.limit}
        if self.lost is None or not len(self.lost.job):
            return columns
        interrupted = np.zeros(len(self), np.int64)
        interrupted[self.lost.job[self.lost.requeued == 0]] = 1
        return columns | {"interrupted": interrupted}

    def rows(self) -> dict[str, Array]:
        """Return the rows of a schedule file: `columns`, with one row for each run of a requeued job, in order of the runs.

        In the rows of runs that ended early, `interrupted` is 1.
        """
        columns = self.columns()
        if "interrupted" not in columns or self.lost is None:
            return columns
        lost = LostRuns(*(values[self.lost.requeued > 0] for values in self.lost))
        runs = {name: values[lost.job] for name, values in columns.items()}
        runs |= {"start": lost.start, "end": lost.end, "runtime": lost.end - lost.start, "kind": lost.kind.astype(np.uint8)}
        runs["interrupted"] = np.ones(len(lost.job), np.int64)
        order = np.argsort(np.concatenate([lost.job, np.arange(len(self))]), kind="stable")
        return {name: np.concatenate([runs[name], values])[order] for name, values in columns.items()}

    def interruptions(self) -> dict[str, dict[str, float]]:
        """Return, by cause (`preemption`, `failure`), the number of jobs and runs that ended early, and the lost processor-seconds."""
        assert self.placement is not None
        causes = {"preemption": self.placement.machine.preempts, "failure": self.placement.machine.loses_jobs}
        found: dict[str, dict[str, float]] = {}
        for failed, cause in enumerate(causes):
            if self.lost is not None and causes[cause]:
                job, start, end = (values[self.lost.failed == failed] for values in self.lost[:3])
                seconds = float((self.workload.procs[job] * (end - start)).sum())
                found[cause] = {"jobs": len(np.unique(job)), "runs": len(job), "lost_procseconds": seconds}
        return found

    @property
    def interruption_notes(self) -> list[str]:
        """Return sentences on jobs that ended early, and on requeued runs that are separate jobs; an empty list if no job can end early."""
        if self.lost is None:
            return []
        rows, said = self.rows(), []
        total = max(float((rows["procs"] * (rows["end"] - rows["start"])).sum()), 1.0)
        for cause, found in self.interruptions().items():
            jobs = f"{found['jobs']:,} of {len(self):,} jobs ({counted(int(found['runs']), 'run')})"
            share = human_percent(100 * found["lost_procseconds"] / total)
            what = f"{self.title} preempts {jobs}" if cause == "preemption" else f"Under {self.title}, failures of nodes end {jobs}"
            said.append(f"{what}; {share} of the processor time is lost.")
        if separate := self.workload.origin.noticed.get("requeued", 0):
            said.append(f"The log's {counted(separate, 'run')} of requeued jobs count as separate jobs; --join-runs joins them.")
        return said

    def audit(self) -> AuditReport:
        """Check this schedule against its workload and the guarantees of its policy (see `walltime.audit`)."""
        from walltime.auditor import audit

        columns = self.rows()
        if self.given is not None:
            columns["given"] = self.given[self.workload.places_of(columns["job_id"])]
        prediction = None if self.predictions is None else self.predictions.prediction
        rules: dict[str, Any] = {"overrun": self.overrun, "dialect": self.dialect, "prediction": prediction, "seed": self.seed}
        return audit(self.workload, columns, self.policy, placement=self.placement, slots=self.slots, **rules)

    def table(self) -> pl.DataFrame:
        """Return the schedule as a polars table, one row per job by arrival.

        It has the columns of a schedule file (`walltime.workload.SCHEDULE_COLUMNS`), with `kind` in words and null without a reservation,
        and `wait` (s). It also has the log's other columns, such as `user` and `queue`, by name if the log has names, and its waits as
        `recorded_wait`. If the log records its start, `submit_time`, `start_time` and `end_time` are in local time.
        """
        return table_of_jobs(self.workload, self.columns())

    def to_pandas(self) -> Any:
        """Return `table` as a pandas data frame; needs pandas (`pip install walltime[pandas]`)."""
        import pandas as pd

        return pd.DataFrame({column.name: column.to_numpy() for column in self.table()})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table for any library that reads Arrow."""
        return self.table().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = [(name.replace("_", " "), number(value)) for name, value in self.summary().as_dict().items()]
        return Facts(f"{self.title} on {self.workload.origin.site}", rows)._repr_html_()

    def write(self, path: str | Path) -> Path:
        """Write atomically to .csv, .parquet, .swf or .swf.gz, and return the path. Raises OutputError."""
        rules = {"overrun": self.overrun, "coincident": self.dialect.coincident, "dialect": self.dialect.label}
        columns = self.columns() if ".swf" in Path(path).suffixes else self.rows()
        return write_schedule(Path(path), self.workload, columns, policy=self.label, **rules)


def labels(schedules: Sequence[Schedule]) -> list[str]:
    """Return a name for each schedule; if several have the same policy, their names are numbered.

    >>> labels([])
    []
    """
    names = [s.title for s in schedules]
    return [f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name for i, name in enumerate(names)]


@dataclass(frozen=True)
class LongWait:
    """One of the longest waits.

    `submit`, `wait`, `requested`: s; `ahead`: earlier jobs waiting at its submission; `overtaken_by`: later jobs that started earlier.
    """

    job: int
    submit: int
    wait: int
    procs: int
    requested: int
    ahead: int
    overtaken_by: int
    kind: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        size = f"{counted(self.procs, 'processor')} for {human_time(self.requested)}"
        how = "was backfilled" if self.kind == "backfilled" else "started in its turn"
        others = f"{counted(self.ahead, 'job')} ahead of it in the queue, {self.overtaken_by:,} overtook it"
        return f"job {self.job} ({size}) waited {human_time(self.wait)} and {how}; {others}"


def longest_waits(schedule: Schedule, count: int = 10) -> list[LongWait]:
    """Return the longest waits above 0, the longest first, ties by arrival; each prints as one line."""
    w, submit, start = schedule.workload, schedule.submit, schedule.start
    worst = np.argsort(submit - start, kind="stable")[: max(count, 0)]
    place = np.arange(len(w))
    waits = []
    for job in worst[start[worst] > submit[worst]].tolist():
        earlier = (submit < submit[job]) | ((submit == submit[job]) & (place < job))
        ahead = int((earlier & (start > submit[job])).sum())
        overtook = int((~earlier & (start < start[job])).sum())
        numbers = (int(w.job_id[job]), int(submit[job]), int(start[job] - submit[job]), int(w.procs[job]), int(w.requested[job]))
        waits.append(LongWait(*numbers, ahead, overtook, Kind(schedule.kind[job]).name.lower()))
    return waits
