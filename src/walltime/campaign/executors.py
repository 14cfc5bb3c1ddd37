"""Where tasks are run: threads on this machine, or a Dask cluster. Both take the same tasks and report the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from walltime.campaign.work import Report, Task, run_task
from walltime.errors import EngineError, PolicyError
from walltime.schedule.threads import in_threads

IN_FLIGHT = 3
"""Tasks that are sent to a Dask cluster per thread that it has; the others wait here, so that its memory stays flat."""


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
        from walltime.engine.run import load_all

        load_all()
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

    def __init__(self, address: Any):
        """`address`: of the scheduler, such as tcp://10.0.0.1:8786, or a distributed cluster object. Raises PolicyError."""
        try:
            from distributed import Client
        except ImportError as error:
            raise PolicyError("Dask is not installed; pip install 'walltime[dask]'") from error
        try:
            self.client = Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise PolicyError(f"no Dask scheduler answers at {address!r}; start one, or name another address") from error

    def run(self, tasks: Sequence[Task], done: Callable[[Report], None]) -> None:
        """Run all tasks, a few at a time for each thread of the cluster; a task whose worker dies is run again by another one."""
        from distributed import KilledWorker, as_completed

        waiting = iter(tasks)
        threads = max(1, sum(self.client.nthreads().values()))
        first = [self._submit(task) for task, _ in zip(waiting, range(IN_FLIGHT * threads), strict=False)]
        running = as_completed(first, loop=self.client.loop)
        del first
        try:
            for future in running:
                report = future.result()
                future.release()
                done(report)
                following = next(waiting, None)
                if following is not None:
                    running.add(self._submit(following))
        except KilledWorker as error:
            raise EngineError(
                "a task's worker died again and again; look at the workers' logs, give them more memory, and run again"
            ) from error
        finally:
            self.client.cancel(list(running.futures))

    def _submit(self, task: Task) -> Any:
        return self.client.submit(run_task, task, pure=False, retries=2)

    def close(self) -> None:
        """Leave the cluster."""
        self.client.close()
