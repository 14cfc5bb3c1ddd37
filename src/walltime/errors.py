"""Errors that a caller may want to catch; each message names the fault, its place and the remedy, in one line."""


class WalltimeError(Exception):
    """Base class of all errors that this package raises deliberately.

    `code` names the kind of fault for programs, such as `"unknown_partition"`; it stays the same when the sentence is rewritten. An error
    that is raised `from` another, to add a place, has that error's code.
    """

    def __init__(self, message: str = "", code: str = "") -> None:
        super().__init__(message)
        self._code = code

    @property
    def code(self) -> str:
        """Return the kind of fault as one word, or "" where it has none."""
        return self._code or (self.__cause__.code if isinstance(self.__cause__, WalltimeError) else "")


class LogError(WalltimeError, ValueError):
    """A job log or a schedule file violates its format."""


class WorkloadError(WalltimeError, ValueError):
    """The given jobs cannot be simulated as they are. `job`: the index of the job at fault, if it is one."""

    job: int | None = None


class PolicyError(WalltimeError, ValueError):
    """A policy, order or option is unknown or impossible."""


class OutputError(WalltimeError, OSError):
    """A result cannot be written to the requested place."""


class EngineError(WalltimeError, RuntimeError):
    """The simulation stopped before every job had started."""
