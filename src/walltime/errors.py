"""Errors that a caller may want to catch: each says what, where, and what to do about it, in one line."""


class WalltimeError(Exception):
    """Base of all errors that this package raises on purpose."""


class LogError(WalltimeError, ValueError):
    """A job log or a schedule file is not what its format says."""


class WorkloadError(WalltimeError, ValueError):
    """The jobs given cannot be simulated as they are."""


class PolicyError(WalltimeError, ValueError):
    """A policy, order or option is unknown or impossible."""


class OutputError(WalltimeError, OSError):
    """A result cannot be written where it was asked for."""


class EngineError(WalltimeError, RuntimeError):
    """The simulation stopped before every job had started."""


def shown(value: object) -> str:
    """A value as an error repeats it: on one line, and of at most 60 characters.

    >>> shown([1, "a"]), len(shown("x" * 100))
    ("[1, 'a']", 60)
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
