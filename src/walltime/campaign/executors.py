"""Execute tasks with threads on this machine, or with Dask workers, which may be Slurm jobs."""

import asyncio
import contextlib
import pickle
import re
import subprocess
import threading
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Protocol

from walltime.campaign.work import Report, Task, run_task
from walltime.declared import Field
from walltime.errors import EngineError, PolicyError
from walltime.simulation.threads import in_threads
from walltime.specification import Family, Specification, Variant

RESUBMIT_INTERVAL = 10.0
"""Time between checks for ended worker jobs, which are replaced, s."""
SBATCH_TIMEOUT = 60.0
"""Time limit for sbatch, s."""


class Workers(Specification):
    """Base of Dask workers that the campaign starts."""


@dataclass(frozen=True)
class LocalWorkers(Workers):
    """Dask workers as processes on this machine."""

    workers: Annotated[int | None, Field(least=1)] = None
    """number of processes with one thread each; default: Dask's"""

    def cluster(self) -> Any:
        """Start a Dask cluster of these workers, without a dashboard."""
        from distributed import LocalCluster

        threads = 1 if self.workers else None
        return LocalCluster(n_workers=self.workers, threads_per_worker=threads, dashboard_address=None, silence_logs=50)


@dataclass(frozen=True)
class SlurmWorkers(Workers):
    """Dask workers as Slurm jobs.

    >>> str(WORKERS.parse("slurm:jobs=10,cores=4,walltime=02:00:00"))
    'slurm:jobs=10,cores=4,walltime=02:00:00'
    """

    jobs: Annotated[int, Field(least=1)] = 1
    """number of jobs, with one worker each"""
    cores: Annotated[int, Field(least=1)] = 1
    """cores per job"""
    memory: str | None = None
    """memory per job, such as 16GB; default: 2 GB per core"""
    walltime: str | None = None
    """limit per job in Slurm's notation; default: dask-jobqueue's"""
    partition: str | None = None
    """partition of the jobs"""
    account: str | None = None
    """account of the jobs"""

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of dask-jobqueue."""
        given = {"walltime": self.walltime, "queue": self.partition, "account": self.account}
        return {"cores": self.cores, "memory": self.memory or f"{2 * self.cores}GB"} | {key: one for key, one in given.items() if one}


WORKERS = Family(Workers, "workers", {"local": Variant(LocalWorkers), "slurm": Variant(SlurmWorkers)})
"""Valid values of `--dask` other than an address."""


class SlurmJobs:
    """A Dask scheduler in this process with one worker per Slurm job; ended jobs are replaced until the cluster is closed.

    `workers`: the jobs; other settings are dask-jobqueue's configuration. `logs`: the folder of the jobs' outputs, None for the current
    one. Raises PolicyError if dask-jobqueue is missing, or if Slurm rejects the jobs.
    """

    def __init__(self, workers: SlurmWorkers, logs: Path | None = None):
        options = workers.options
        try:
            from dask_jobqueue.slurm import SLURMCluster
        except ImportError as error:
            raise PolicyError("dask-jobqueue is not installed; run: pip install 'walltime[dask]'") from error
        self._jobs = workers.jobs
        if logs is not None:
            options["log_directory"] = str(logs)
        try:
            self.cluster = SLURMCluster(processes=1, job_name="walltime-campaign", **options)
        except (ValueError, OSError) as error:
            raise PolicyError(f"the workers {str(workers)!r}: {error}") from error
        self._closed = threading.Event()
        if rejection := _rejection(self.cluster.job_script()):
            self.close()
            raise PolicyError(f"the workers {str(workers)!r}: Slurm rejects the jobs: {rejection}")
        self.cluster.scale(jobs=self._jobs)
        threading.Thread(target=self._replace_jobs, daemon=True).start()

    def _replace_jobs(self) -> None:
        while not self._closed.wait(RESUBMIT_INTERVAL):
            with contextlib.suppress(Exception):  # Slurm may be unavailable for a while
                self.cluster.scale(jobs=self._jobs)

    def close(self) -> None:
        """Cancel the jobs."""
        self._closed.set()
        with contextlib.suppress(Exception):
            self.cluster.close(timeout=30)


def _rejection(script: str) -> str:
    """Return Slurm's reason for rejecting a job; empty if Slurm accepts it."""
    try:
        done = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True, timeout=SBATCH_TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"no answer within {SBATCH_TIMEOUT:g} s"
    except OSError as error:
        return f"sbatch: {(error.strerror or str(error)).lower()}"
    return " ".join(done.stderr.replace("sbatch: error: ", "").replace("allocation failure: ", "").split()) if done.returncode else ""


IN_FLIGHT = 3
"""Maximum number of unfinished tasks per thread of a Dask cluster, to limit its memory."""
ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx)://)?(\[[^\]\s]+\]|[^\s:/]+):[0-9]{1,5}")
"""Pattern of the address of a Dask scheduler."""
TIMEOUT = 10.0
"""Time limit for the response of a Dask scheduler, s."""


class Executor(Protocol):
    """The interface of all executors."""

    def run(self, tasks: Sequence[Task], done: Callable[[Report], None]) -> None:
        """Run all tasks; call `done` with each report, in the calling thread. Raises the tasks' errors."""


class Threads:
    """Threads on this machine, by default one per core."""

    def __init__(self, workers: int | None = None):
        self.workers = workers

    def run(self, tasks: Sequence[Task], done: Callable[[Report], None]) -> None:
        """Run all tasks."""
        finished: deque[Report] = deque()

        def report(_count: int) -> None:
            while finished:
                done(finished.popleft())

        in_threads(lambda number, check: finished.append(run_task(tasks[number], check)), len(tasks), self.workers, report)
        report(0)


class Dask:
    """The workers of a Dask scheduler; they must have the same files under the same names."""

    def __init__(self, address: Any, logs: Path | None = None):
        """Connect to the scheduler, or start workers.

        `address`: the address of the scheduler, such as tcp://10.0.0.1:8786; a `distributed` cluster object; `local` or `local:workers=4`
        for processes on this machine; or `slurm:jobs=10,cores=16` for Slurm jobs (see `SlurmWorkers`), whose outputs go to the folder
        `logs`. Raises PolicyError.
        """
        try:
            from distributed import Client
        except ImportError as error:
            raise PolicyError("Dask is not installed; run: pip install 'walltime[dask]'", "missing_library") from error
        workers = WORKERS.parse(address) if isinstance(address, str) and address.partition(":")[0] in WORKERS else None
        self._slurm = SlurmJobs(workers, logs) if isinstance(workers, SlurmWorkers) else None
        self._local = workers.cluster() if isinstance(workers, LocalWorkers) else None
        if workers is not None:
            address = self._local if self._slurm is None else self._slurm.cluster
        no_answer = f"no Dask scheduler answers at {address!r}; start one, or give an address such as tcp://host:8786"
        if isinstance(address, str) and not ADDRESS.fullmatch(address):
            raise PolicyError(no_answer)
        try:
            self.client = Client(address, timeout=TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise PolicyError(no_answer) from error

    def run(self, tasks: Sequence[Task], done: Callable[[Report], None]) -> None:
        """Run all tasks, a few at a time per thread of the cluster; if a worker fails, another one repeats its task."""
        from distributed import KilledWorker, as_completed
        from distributed.comm.core import CommClosedError

        waiting, warned = iter(tasks), set[str]()
        running = as_completed([self._submit(task) for task in islice(waiting, self._room())], loop=self.client.loop)
        try:
            for future in running:
                report = future.result()
                future.release()
                for text in report.warned:
                    if text not in warned:
                        warned.add(text)
                        warnings.warn(text, stacklevel=2)
                done(report)
                for following in islice(waiting, max(0, self._room() - running.count())):  # new workers make more room
                    running.add(self._submit(following))
        except KilledWorker as error:
            raise EngineError(
                "workers died repeatedly during one task; check their logs, give them more memory, and run the plan again"
            ) from error
        except (CancelledError, asyncio.CancelledError, CommClosedError) as error:
            raise EngineError(
                "the connection to the Dask scheduler was lost; finished results are kept, so start one and run the plan again"
            ) from error
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                self.client.cancel(list(running.futures))

    def _room(self) -> int:
        """Return the maximum number of unfinished tasks."""
        return IN_FLIGHT * max(1, sum(self.client.nthreads().values()))

    def _submit(self, task: Task) -> Any:
        return self.client.submit(_run_packed, zlib.compress(pickle.dumps(task)), pure=False, retries=2)

    def close(self) -> None:
        """Disconnect from the cluster and stop workers that were started here."""
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self.client.close(timeout=5)
        if self._slurm is not None:
            self._slurm.close()
        if self._local is not None:
            with contextlib.suppress(Exception):
                self._local.close(timeout=5)


def _run_packed(packed: bytes) -> Report:
    """Run a compressed task; tasks are compressed because a Dask scheduler keeps part of each in memory."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        report = run_task(pickle.loads(zlib.decompress(packed)))
    return replace(report, warned=tuple(str(one.message) for one in caught if issubclass(one.category, UserWarning)))
