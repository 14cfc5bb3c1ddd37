"""Executors: threads on this machine, or a Dask cluster. Both take the same tasks and report in the same way."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import re
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from walltime.campaign.slurm import LocalWorkers, SlurmJobs, SlurmWorkers, workers_of
from walltime.campaign.work import Report, Task, case_of, run_task
from walltime.errors import EngineError, PolicyError
from walltime.simulation.batch import compile_for
from walltime.simulation.threads import in_threads

IN_FLIGHT = 3
"""Tasks sent to a Dask cluster at a time, per thread; the others wait here, to bound its memory."""


ADDRESS = re.compile(r"((tcp|tls|ws|wss|ucx)://)?(\[[^\]\s]+\]|[^\s:/]+):[0-9]{1,5}")
"""Form of a Dask scheduler's address."""
PATIENCE = 10.0
"""Seconds in which a Dask scheduler must answer."""


class Executor(Protocol):
    """Runs tasks."""

    def run(self, tasks: Sequence[Task], done: Callable[[Report], None]) -> None:
        """Run all tasks; `done` is called with the report of each, in the calling thread. Raises what a task raises."""


class Threads:
    """Threads on this machine, by default one per core."""

    def __init__(self, workers: int | None = None):
        self.workers = workers

    def run(self, tasks: Sequence[Task], done: Callable[[Report], None]) -> None:
        """Run all tasks."""
        kinds = {
            (cell.settings["policy"], cell.settings["order"], cell.settings["backfill_order"], cell.settings["predictor"]): cell
            for task in tasks
            for cell in task.cells
        }
        compile_for([case_of(cell) for cell in kinds.values()], dynamics=any(cell.dynamics for task in tasks for cell in task.cells))
        finished: list[Report] = []
        told = 0

        def make_worker() -> Callable[[int, Callable[[int], None]], None]:
            return lambda number, check: finished.append(run_task(tasks[number], check))

        def tell(_count: int) -> None:
            nonlocal told
            while told < len(finished):
                done(finished[told])
                told += 1

        in_threads(make_worker, len(tasks), self.workers, tell)
        tell(0)


class Dask:
    """The workers of a Dask scheduler; they must see the same files under the same names."""

    def __init__(self, address: Any, logs: Path | None = None):
        """Find the scheduler, or submit the workers to Slurm.

        `address`: the scheduler's, such as tcp://10.0.0.1:8786, a `distributed` cluster object, `local` or `local:workers=4` for
        processes on this machine, or `slurm:jobs=10,cores=16`, as `walltime.campaign.slurm` reads it; `logs` is the folder of such jobs'
        outputs. Raises PolicyError.
        """
        try:
            from distributed import Client
        except ImportError as error:
            raise PolicyError("Dask is not installed; pip install 'walltime[dask]'", "missing_library") from error
        workers = workers_of(address)
        self._slurm = SlurmJobs(workers, logs) if isinstance(workers, SlurmWorkers) else None
        self._local = workers.cluster() if isinstance(workers, LocalWorkers) else None
        if workers is not None:
            address = self._local if self._slurm is None else self._slurm.cluster
        nobody = f"no Dask scheduler answers at {address!r}; start one, or name an address such as tcp://host:8786"
        if isinstance(address, str) and not ADDRESS.fullmatch(address):
            raise PolicyError(nobody)
        try:
            self.client = Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise PolicyError(nobody) from error

    def run(self, tasks: Sequence[Task], done: Callable[[Report], None]) -> None:
        """Run all tasks, a few at a time for each thread of the cluster; a task whose worker dies is run again by another one."""
        from distributed import KilledWorker, as_completed
        from distributed.comm.core import CommClosedError

        waiting = iter(tasks)
        running = as_completed([self._submit(task) for task in islice(waiting, self._room())], loop=self.client.loop)
        try:
            for future in running:
                report = future.result()
                future.release()
                done(report)
                for following in islice(waiting, max(0, self._room() - running.count())):  # more if workers have come since
                    running.add(self._submit(following))
        except KilledWorker as error:
            raise EngineError("workers died repeatedly while running one task; see their logs, give them more memory, run again") from error
        except (CancelledError, asyncio.CancelledError, CommClosedError) as error:
            raise EngineError(
                "the connection to the Dask scheduler was lost; finished results are kept, so start one and run the plan again"
            ) from error
        finally:
            with contextlib.suppress(Exception):  # a scheduler that has gone cannot be told
                self.client.cancel(list(running.futures))

    def _room(self) -> int:
        """How many tasks may be in flight."""
        return IN_FLIGHT * max(1, sum(self.client.nthreads().values()))

    def _submit(self, task: Task) -> Any:
        return self.client.submit(_run_packed, zlib.compress(pickle.dumps(task)), pure=False, retries=2)

    def close(self) -> None:
        """Leave the cluster."""
        with contextlib.suppress(Exception):  # it may have gone
            self.client.close(timeout=5)
        if self._slurm is not None:
            self._slurm.close()
        if self._local is not None:
            with contextlib.suppress(Exception):
                self._local.close(timeout=5)


def _run_packed(packed: bytes) -> Report:
    """Run a serialized task; it is serialized since a scheduler keeps part of every task that it has seen."""
    return run_task(pickle.loads(zlib.decompress(packed)))
