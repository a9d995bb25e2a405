"""The profile `hermes`: package `broker`, service `BrokerService`, and its HTTP routes.

Groups are of our kind *queue*; group "" is what comes from now on, "__REPLAY__" everything from the
start. A message id says where the record is: topic, partition and offset in one word.
docs/reference/compat.md.
"""

from angarium_compat.hermes.door import HermesDoor
from angarium_compat.hermes.joining import Joining
from angarium_compat.hermes.pages import HermesHttpDoor

__all__ = ["HermesDoor", "HermesHttpDoor", "Joining"]
