"""The profile `geo`: package `broker`, service `Broker`, with names and passwords.

A message's id is a UUID made of topic, partition and offset, its timestamp the time at which it was
appended, and a subscription names for each topic the last timestamp seen. docs/reference/compat.md.
"""

from angarium_compat.geo.door import GeoDoor

__all__ = ["GeoDoor"]
