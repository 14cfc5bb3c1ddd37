"""The side-car's settings, each declared once: an option of `walltime slurm adjust`, and a key of its --settings file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from walltime.declared import Key, wrong_field
from walltime.errors import PolicyError
from walltime.toml_file import TomlFile

POLLS_IN_FLOOR = 5
"""The fewest rounds during the shortest limit of a shortened job, whatever the prediction."""


@dataclass(frozen=True)
class SidecarSettings:
    """How the side-car works, and how far it may go."""

    every: Annotated[float, Key(least=1, most=3600, meaning="Seconds from one round to the next.")] = 30.0
    timeout: Annotated[float, Key(least=1, most=60, meaning="Seconds after which a command of Slurm is given up.")] = 20.0
    self_test: Annotated[tuple[str, ...], Key(meaning="A word for sbatch of the self-test, as --partition=x; repeat it for more.")] = ()
    need_prolog: Annotated[bool, Key(meaning="Do not adjust while the prolog does not work.")] = False
    floor: Annotated[int, Key(least=1, meaning="Least TimeMin, minutes.")] = 10
    gain: Annotated[float, Key(least=0, most=1, meaning="Largest TimeMin that is worth setting, as a part of the limit.")] = 0.9
    changes: Annotated[int, Key(least=1, meaning="Most adjustments a minute.")] = 60
    share: Annotated[float, Key(least=0, most=1, meaning="Largest part of the waiting jobs.")] = 0.5
    tasks: Annotated[int, Key(least=1, meaning="Most tasks of an array, the next ones: each becomes a record of its own.")] = 10
    account: Annotated[tuple[str, ...], Key(meaning="Only this account; repeat it for more.")] = ()
    partition: Annotated[tuple[str, ...], Key(meaning="Only this partition; repeat it for more.")] = ()
    slip: Annotated[
        float,
        Key(
            least=0,
            meaning="Part of its wait by which the reserved start of a queue's head may pass; then nothing is adjusted until it started.",
        ),
    ] = 0.5
    overdue: Annotated[
        float, Key(least=0, meaning="Part of a partition that jobs of one user may hold beyond their TimeMin, over a week.")
    ] = 0.01
    misses: Annotated[
        int, Key(least=0, meaning="Jobs of a user that may outlive their TimeMin in a week before the next ones get a longer one.")
    ] = 3

    def __post_init__(self) -> None:
        if fault := wrong_field(self):
            raise PolicyError(fault, "number_out_of_range")
        if not self.share or not self.gain:
            raise PolicyError("the share and the gain are above 0 and at most 1", "number_out_of_range")
        if self.floor * 60 < POLLS_IN_FLOOR * self.every:
            raise PolicyError(
                f"a least TimeMin of {self.floor} minutes is less than {POLLS_IN_FLOOR} rounds of {self.every:g} s; "
                "raise it, or let less time pass between two rounds",
                "number_out_of_range",
            )


SETTINGS_FILE = TomlFile(SidecarSettings, "the side-car's settings, a TOML file", "the guide on the side-car", PolicyError)
