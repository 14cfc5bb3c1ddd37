"""The machine as data: pools of nodes, partitions, outages and limits, and jobs placed on it."""

from walltime.machine.held import HINDSIGHT, hindsight_note, reject_hindsight, with_hindsight, write_held
from walltime.machine.machine import (
    NO_OVERHEAD,
    Limit,
    Machine,
    Note,
    Outage,
    Overhead,
    Partition,
    Pool,
    Qos,
    Share,
    Window,
    read_machine,
    write_machine,
)
from walltime.machine.omissions import omission_sentences
from walltime.machine.placing import PLACING_RULES, Placement, place, placing_notes, with_omissions

__all__ = [
    "HINDSIGHT",
    "NO_OVERHEAD",
    "PLACING_RULES",
    "Limit",
    "Machine",
    "Note",
    "Outage",
    "Overhead",
    "Partition",
    "Placement",
    "Pool",
    "Qos",
    "Share",
    "Window",
    "hindsight_note",
    "omission_sentences",
    "place",
    "placing_notes",
    "read_machine",
    "reject_hindsight",
    "with_hindsight",
    "with_omissions",
    "write_held",
    "write_machine",
]
