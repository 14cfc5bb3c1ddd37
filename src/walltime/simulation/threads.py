"""Independent simulations on all cores: kernels release the interpreter lock, so threads with shared arrays suffice."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
Worker = Callable[[int, Callable[[int], None]], T]
PROGRESS_INTERVAL = 0.1
"""Seconds between two checks of the threads' progress."""


def in_threads(worker: Worker[T], count: int, workers: int | None = None, progress: Callable[[int], None] | None = None) -> list[T]:
    """Return the results of `worker(number, check)` for the numbers 0 to count - 1, in this order.

    The worker must call `check` from time to time with any number; it raises an error after a failure in another thread, or after Ctrl-C.
    `progress` is called in the calling thread with the number of results. `workers`: threads, by default one per core.
    """
    numbers: Iterator[int] = iter(range(count))
    taking = threading.Lock()
    stop = threading.Event()
    results: dict[int, T] = {}

    def check(_done: int = 0) -> None:
        if stop.is_set():
            raise CancelledError

    def work() -> None:
        while True:
            check()
            with taking:
                number = next(numbers, None)
            if number is None:
                return
            results[number] = worker(number, check)

    with ThreadPoolExecutor(min(workers or os.cpu_count() or 1, max(count, 1))) as pool:
        running: set[Future[None]] = {pool.submit(work) for _ in range(pool._max_workers)}
        try:
            while running:
                done, running = wait(running, timeout=PROGRESS_INTERVAL, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                if progress is not None:
                    progress(len(results))
        except BaseException:
            stop.set()
            raise
    return [results[number] for number in range(count)]
