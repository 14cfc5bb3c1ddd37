"""Errors that a caller may want to catch: each message says what, where, and what to do about it, in one line."""


class WalltimeError(Exception):
    """Base class of all errors that this package raises deliberately."""


class LogError(WalltimeError, ValueError):
    """A job log or a schedule file violates its format."""


class WorkloadError(WalltimeError, ValueError):
    """The given jobs cannot be simulated as they are."""


class PolicyError(WalltimeError, ValueError):
    """A policy, order or option is unknown or impossible."""


class OutputError(WalltimeError, OSError):
    """A result cannot be written to the requested place."""


class EngineError(WalltimeError, RuntimeError):
    """The simulation stopped before every job had started."""
