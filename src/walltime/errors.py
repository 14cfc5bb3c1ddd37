"""The errors of this package; each message states the fault, its location and the remedy on one line."""


class WalltimeError(Exception):
    """Base class of the errors that report a fault in data, options, files or a simulation.

    `code` identifies the kind of fault for programs, such as `"unknown_partition"`; it does not change when the message is rewritten. An
    error that is raised `from` another, to add a location, has that error's code.
    """

    def __init__(self, message: str = "", code: str = "") -> None:
        super().__init__(message)
        self._code = code

    @property
    def code(self) -> str:
        """Return the identifier of the kind of fault, or an empty string if it has none."""
        return self._code or (self.__cause__.code if isinstance(self.__cause__, WalltimeError) else "")


class LogError(WalltimeError, ValueError):
    """A job log or a schedule file violates its format."""


class WorkloadError(WalltimeError, ValueError):
    """The given jobs cannot be simulated as they are. `job`: the index of the job at fault, if there is a single one."""

    job: int | None = None


class PolicyError(WalltimeError, ValueError):
    """A policy, order or option is unknown or invalid."""


class OutputError(WalltimeError, OSError):
    """A result cannot be written to the requested location."""


class EngineError(WalltimeError, RuntimeError):
    """The simulation stopped before every job had started."""
