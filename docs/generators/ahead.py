"""Run long programs during the build, two at a time, on the other processors."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_pool = ThreadPoolExecutor(2)
_begun: dict[tuple[Any, ...], Future] = {}


def begin(function: Any, *arguments: Any) -> None:
    """Begin a call, once."""
    key = (function.__module__, function.__name__, *arguments)
    if key not in _begun:
        _begun[key] = _pool.submit(function, *arguments)


def result(function: Any, *arguments: Any) -> Any:
    """Return the result of a call, which starts now unless it was started before."""
    begin(function, *arguments)
    return _begun[function.__module__, function.__name__, *arguments].result()
