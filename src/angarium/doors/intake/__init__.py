"""Intake: how what one door is given, record by record or many at once, becomes shared batches.

A door parses a record into an `Outgoing` and says where it goes; the rest is the same for all of
them. `partitions` knows where a record without a partition goes, `lanes` lets single records travel
together and `parcels` packs them, `packing` makes batches of a request's records, `once` recognises
what comes again.
"""

from angarium.doors.intake.intake import Intake
from angarium.doors.intake.lanes import LaneKey, Placed
from angarium.doors.intake.outgoing import NOBODY, Outgoing, ProducerIdentity

__all__ = ["NOBODY", "Intake", "LaneKey", "Outgoing", "Placed", "ProducerIdentity"]
