"""Dask workers as jobs of a Slurm cluster, by dask-jobqueue."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from walltime.errors import PolicyError

__all__ = ["SlurmJobs", "is_slurm", "read_options"]

KINDS: dict[str, Callable[[str], Any]] = {"jobs": int, "cores": int, "memory": str, "walltime": str, "partition": str, "account": str}
"""What `slurm:` may be followed by."""
AGAIN = 10.0
"""Seconds after which jobs that have ended are looked for, to be submitted again."""
PATIENCE = 60.0
"""Seconds in which sbatch must answer."""


def is_slurm(address: Any) -> bool:
    """Whether it names a Slurm cluster, not a Dask scheduler."""
    return isinstance(address, str) and address.partition(":")[0] == "slurm"


def read_options(text: str) -> dict[str, Any]:
    """The options of `slurm:jobs=10,cores=16`, with defaults; raises PolicyError.

    >>> read_options("slurm:jobs=10,cores=4,walltime=02:00:00")
    {'jobs': 10, 'cores': 4, 'memory': '8GB', 'walltime': '02:00:00'}
    """
    options: dict[str, Any] = {"jobs": 1, "cores": 1, "memory": ""}
    for part in filter(None, text.partition(":")[2].split(",")):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in KINDS or not equals or not value:
            raise PolicyError(f"{part!r} of the workers {text!r} is not of the form NAME=VALUE; names are {', '.join(KINDS)}")
        try:
            options[name] = KINDS[name](value)
        except ValueError:
            options[name] = 0
        if options[name] in (0, "") or (KINDS[name] is int and options[name] < 1):
            raise PolicyError(f"{name} of the workers {text!r} is a whole number above 0, not {value!r}")
    options["memory"] = options["memory"] or f"{2 * options['cores']}GB"
    return options


class SlurmJobs:
    """Dask workers, one a job, and their scheduler in this process; jobs that end are replaced until it is closed.

    `text`: as `read_options` reads it; all else is dask-jobqueue's own configuration. `logs`: the folder of the jobs' outputs, None for
    the current one. Raises PolicyError if there is no dask-jobqueue, or if Slurm does not take the jobs.
    """

    def __init__(self, text: str, logs: Path | None = None):
        options = read_options(text)
        try:
            from dask_jobqueue.slurm import SLURMCluster
        except ImportError as error:
            raise PolicyError("dask-jobqueue is not installed; pip install 'walltime[dask]'") from error
        self._jobs = options.pop("jobs")
        if "partition" in options:
            options["queue"] = options.pop("partition")
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
