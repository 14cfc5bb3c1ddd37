"""The machine as data: pools of nodes, partitions, outages and limits, and jobs placed on it."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.machine.held import (
        HINDSIGHT as HINDSIGHT,
        hindsight_note as hindsight_note,
        reject_hindsight as reject_hindsight,
        with_hindsight as with_hindsight,
        write_held as write_held,
    )
    from walltime.machine.machine import Machine as Machine, read_machine as read_machine, write_machine as write_machine
    from walltime.machine.omissions import omission_sentences as omission_sentences, placing_notes as placing_notes
    from walltime.machine.placing import (
        PLACING_RULES as PLACING_RULES,
        Placement as Placement,
        place as place,
        with_omissions as with_omissions,
    )
    from walltime.machine.tables import (
        NO_OVERHEAD as NO_OVERHEAD,
        Failure as Failure,
        Limit as Limit,
        Note as Note,
        Outage as Outage,
        Overhead as Overhead,
        Partition as Partition,
        Pool as Pool,
        Qos as Qos,
        Reservation as Reservation,
        Share as Share,
        Window as Window,
    )

__getattr__, __dir__, __all__ = lazy(__name__)
