"""What takes long is begun when the build begins: programs that run beside it, two at a time, on the other processors."""

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
    """What the call gives; it is begun now if it was not."""
    begin(function, *arguments)
    return _begun[function.__module__, function.__name__, *arguments].result()
