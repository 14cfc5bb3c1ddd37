"""Assert that an error is raised by its class and its code, not by its sentence, which may be rewritten at any time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from walltime.errors import WalltimeError


@contextmanager
def raises(
    kind: type[Exception] | tuple[type[Exception], ...], code: str, *naming: object
) -> Iterator[pytest.ExceptionInfo[WalltimeError]]:
    """Like pytest.raises: the error has this code, and its one line names these values, such as a file, a line number or a key."""
    with pytest.raises(kind) as caught:
        yield caught
    message = str(caught.value)
    missing = [value for value in naming if not re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", message)]
    assert (caught.value.code, missing) == (code, []), message
    assert "\n" not in message
