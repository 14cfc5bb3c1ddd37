"""The side-car's settings, each declared once: an option of `walltime slurm adjust`, and a key of its --settings file."""

from dataclasses import dataclass
from typing import Annotated

from walltime.declared import Field, wrong_field
from walltime.errors import PolicyError
from walltime.toml_file import TomlFile
from walltime.wording import counted

POLLS_IN_FLOOR = 5
"""The minimum number of rounds within the shortest limit that backfill can set."""


@dataclass(frozen=True)
class SidecarSettings:
    """The settings of the side-car, and their valid ranges."""

    every: Annotated[float, Field(least=1, most=3600, meaning="Run a round every N seconds, from 1 to 3600.")] = 30.0
    timeout: Annotated[float, Field(least=1, most=60, meaning="Give up on a Slurm command after N seconds, from 1 to 60.")] = 20.0
    self_test: Annotated[tuple[str, ...], Field(meaning="Pass this option to sbatch for the self-test job, such as --partition=x.")] = ()
    need_prolog: Annotated[bool, Field(meaning="Adjust jobs only while the prolog works.")] = False
    floor: Annotated[int, Field(least=1, meaning="Set no TimeMin below N minutes.")] = 10
    gain: Annotated[
        float,
        Field(least=0, most=1, meaning="Adjust a job only if its TimeMin would be at most this share of its limit, above 0 and up to 1."),
    ] = 0.9
    changes: Annotated[int, Field(least=1, meaning="Make at most N adjustments per minute.")] = 60
    share: Annotated[float, Field(least=0, most=1, meaning="Adjust at most this share of the waiting jobs, above 0 and up to 1.")] = 0.5
    tasks: Annotated[
        int, Field(least=1, meaning="Adjust at most the next N tasks of a job array; each adjusted task becomes a separate record.")
    ] = 10
    account: Annotated[tuple[str, ...], Field(meaning="Adjust only jobs of this account.")] = ()
    partition: Annotated[tuple[str, ...], Field(meaning="Adjust only jobs of this partition.")] = ()
    slip: Annotated[
        float,
        Field(least=0, meaning="Pause adjustments while the job at the head of a queue is overdue by more than this share of its wait."),
    ] = 0.5
    overdue: Annotated[
        float,
        Field(least=0, meaning="Let one user's jobs occupy at most this share of a partition's weekly capacity beyond their TimeMin."),
    ] = 0.01
    misses: Annotated[
        int,
        Field(least=0, meaning="After N jobs of a user have exceeded their TimeMin within a week, lengthen it for the user's next jobs."),
    ] = 3

    def __post_init__(self) -> None:
        if fault := wrong_field(self):
            raise PolicyError(fault, "number_out_of_range")
        if not self.share or not self.gain:
            raise PolicyError("share and gain must be above 0, not 0", "number_out_of_range")
        if self.floor * 60 < POLLS_IN_FLOOR * self.every:
            raise PolicyError(
                f"a floor of {counted(self.floor, 'minute')} for TimeMin is less than {POLLS_IN_FLOOR} rounds of {self.every:g} s; "
                "raise it, or shorten the time between rounds",
                "number_out_of_range",
            )


SETTINGS_FILE = TomlFile(SidecarSettings, "the side-car's settings, a TOML file", "docs/guides/adjust.md", PolicyError)
