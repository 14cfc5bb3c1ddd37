"""Assert that an error is raised by its class and its code, not by its sentence, which may be rewritten at any time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from walltime.errors import WalltimeError


@contextmanager
def raises(kind: type[WalltimeError], code: str, *naming: object) -> Iterator[pytest.ExceptionInfo[WalltimeError]]:
    """Like pytest.raises: the error has this code, and its one line names these values, such as a file, a line number or a key."""
    with pytest.raises(kind) as caught:
        yield caught
    message = str(caught.value)
    assert (caught.value.code, [value for value in naming if str(value) not in message]) == (code, []), message
    assert "\n" not in message
