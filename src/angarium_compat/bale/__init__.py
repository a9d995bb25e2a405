"""The profile `bale`: package `broker`, service `Broker`, and the metrics of both its brokers.

A message's id is its offset, so a subject is a topic with one partition. docs/reference/compat.md.
"""

from angarium_compat.bale.door import BaleDoor
from angarium_compat.bale.metrics import BaleMetrics, BaleMetricsDoor

__all__ = ["BaleDoor", "BaleMetrics", "BaleMetricsDoor"]
