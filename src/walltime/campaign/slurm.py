"""Dask workers that are started here: processes of this machine, or jobs of a Slurm cluster, by dask-jobqueue."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.specification import Family, Specification, Variant

AGAIN = 10.0
"""Seconds after which jobs that have ended are looked for, to be submitted again."""
PATIENCE = 60.0
"""Seconds in which sbatch must answer."""


class Workers(Specification):
    """Base of the workers that are started here."""


@dataclass(frozen=True)
class LocalWorkers(Workers):
    """Workers as processes of this machine."""

    workers: Annotated[int | None, Key(least=1)] = None
    """how many, each of one thread; without it, Dask decides"""

    def cluster(self) -> Any:
        """A Dask cluster of them, without a dashboard."""
        from distributed import LocalCluster

        threads = 1 if self.workers else None
        return LocalCluster(n_workers=self.workers, threads_per_worker=threads, dashboard_address=None, silence_logs=50)


@dataclass(frozen=True)
class SlurmWorkers(Workers):
    """Workers as jobs of a Slurm cluster.

    >>> str(WORKERS.parse("slurm:jobs=10,cores=4,walltime=02:00:00"))
    'slurm:jobs=10,cores=4,walltime=02:00:00'
    """

    jobs: Annotated[int, Key(least=1)] = 1
    """how many, a worker each"""
    cores: Annotated[int, Key(least=1)] = 1
    """of each"""
    memory: str | None = None
    """of each, such as 16GB; without it, 2 GB a core"""
    walltime: str | None = None
    """limit of each, as Slurm writes it; without it, dask-jobqueue's own"""
    partition: str | None = None
    """where they run"""
    account: str | None = None
    """who pays"""

    @property
    def of_cluster(self) -> dict[str, Any]:
        """What dask-jobqueue is told."""
        said = {"walltime": self.walltime, "queue": self.partition, "account": self.account}
        return {"cores": self.cores, "memory": self.memory or f"{2 * self.cores}GB"} | {key: one for key, one in said.items() if one}


WORKERS = Family(Workers, "workers", {"local": Variant(LocalWorkers), "slurm": Variant(SlurmWorkers)})
"""What `--dask` takes besides an address."""


def workers_of(address: Any) -> Workers | None:
    """The workers that a text names; None for the address of a Dask scheduler, or a cluster. Raises PolicyError."""
    return WORKERS.parse(address) if isinstance(address, str) and address.partition(":")[0] in WORKERS else None


class SlurmJobs:
    """Dask workers, one a job, and their scheduler in this process; jobs that end are replaced until it is closed.

    `workers`: what is asked for; all else is dask-jobqueue's own configuration. `logs`: the folder of the jobs' outputs, None for
    the current one. Raises PolicyError if there is no dask-jobqueue, or if Slurm does not take the jobs.
    """

    def __init__(self, workers: SlurmWorkers, logs: Path | None = None):
        options = workers.of_cluster
        try:
            from dask_jobqueue.slurm import SLURMCluster
        except ImportError as error:
            raise PolicyError("dask-jobqueue is not installed; pip install 'walltime[dask]'") from error
        self._jobs = workers.jobs
        if logs is not None:
            options["log_directory"] = str(logs)
        try:
            self.cluster = SLURMCluster(processes=1, job_name="walltime-campaign", **options)
        except (ValueError, OSError) as error:
            raise PolicyError(f"the workers {str(workers)!r}: {error}") from error
        self._closed = threading.Event()
        refused = _refused(self.cluster.job_script())
        if refused:
            self.close()
            raise PolicyError(f"the workers {str(workers)!r}: Slurm does not take the jobs: {refused}")
        self.cluster.scale(jobs=self._jobs)
        threading.Thread(target=self._replace, daemon=True).start()

    def _replace(self) -> None:
        while not self._closed.wait(AGAIN):
            with contextlib.suppress(Exception):  # Slurm may be away for a while
                self.cluster.scale(jobs=self._jobs)

    def close(self) -> None:
        """Cancel the jobs."""
        self._closed.set()
        with contextlib.suppress(Exception):
            self.cluster.close(timeout=30)


def _refused(script: str) -> str:
    """What Slurm says against a job; empty if nothing."""
    try:
        done = subprocess.run(["sbatch", "--test-only"], input=script, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE:g} s"
    except OSError as error:
        return f"sbatch: {(error.strerror or str(error)).lower()}"
    return " ".join(done.stderr.replace("sbatch: error: ", "").replace("allocation failure: ", "").split()) if done.returncode else ""
