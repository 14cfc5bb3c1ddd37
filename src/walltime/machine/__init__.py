"""The machine as data: pools of nodes, partitions, outages and limits, and jobs placed on it."""

from typing import TYPE_CHECKING

from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.machine.held import HINDSIGHT as HINDSIGHT
    from walltime.machine.held import hindsight_note as hindsight_note
    from walltime.machine.held import reject_hindsight as reject_hindsight
    from walltime.machine.held import with_hindsight as with_hindsight
    from walltime.machine.held import write_held as write_held
    from walltime.machine.machine import Machine as Machine
    from walltime.machine.machine import read_machine as read_machine
    from walltime.machine.machine import write_machine as write_machine
    from walltime.machine.omissions import omission_sentences as omission_sentences
    from walltime.machine.placing import PLACING_RULES as PLACING_RULES
    from walltime.machine.placing import Placement as Placement
    from walltime.machine.placing import place as place
    from walltime.machine.placing import placing_notes as placing_notes
    from walltime.machine.placing import with_omissions as with_omissions
    from walltime.machine.tables import NO_OVERHEAD as NO_OVERHEAD
    from walltime.machine.tables import Failure as Failure
    from walltime.machine.tables import Limit as Limit
    from walltime.machine.tables import Note as Note
    from walltime.machine.tables import Outage as Outage
    from walltime.machine.tables import Overhead as Overhead
    from walltime.machine.tables import Partition as Partition
    from walltime.machine.tables import Pool as Pool
    from walltime.machine.tables import Qos as Qos
    from walltime.machine.tables import Reservation as Reservation
    from walltime.machine.tables import Share as Share
    from walltime.machine.tables import Window as Window

__getattr__, __dir__, __all__ = lazy(__name__)
