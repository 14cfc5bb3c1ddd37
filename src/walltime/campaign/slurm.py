"""Dask workers as jobs of a Slurm cluster, by dask-jobqueue."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from walltime.declared import Key
from walltime.errors import PolicyError
from walltime.specification import Family, Form, Specified

__all__ = ["WORKERS", "SlurmJobs", "Workers", "is_slurm"]

AGAIN = 10.0
"""Seconds after which jobs that have ended are looked for, to be submitted again."""
PATIENCE = 60.0
"""Seconds in which sbatch must answer."""


def is_slurm(address: Any) -> bool:
    """Whether it names a Slurm cluster, not a Dask scheduler."""
    return isinstance(address, str) and address.partition(":")[0] == "slurm"


@dataclass(frozen=True)
class Workers(Specified):
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


WORKERS = Family(Workers, "workers", {"slurm": Form(Workers)})
"""What `--dask` takes besides an address."""


class SlurmJobs:
    """Dask workers, one a job, and their scheduler in this process; jobs that end are replaced until it is closed.

    `text`: a specification of `Workers`; all else is dask-jobqueue's own configuration. `logs`: the folder of the jobs' outputs, None for
    the current one. Raises PolicyError if there is no dask-jobqueue, or if Slurm does not take the jobs.
    """

    def __init__(self, text: str, logs: Path | None = None):
        workers = WORKERS.parse(text)
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
            raise PolicyError(f"the workers {text!r}: {error}") from error
        self._closed = threading.Event()
        refused = _refused(self.cluster.job_script())
        if refused:
            self.close()
            raise PolicyError(f"the workers {text!r}: Slurm does not take the jobs: {refused}")
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
