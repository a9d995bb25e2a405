"""Registers Angarium's data source with Spark, which looks for modules named `pyspark_*`.

Nothing else lives here: `angarium.spark` has the source itself.
"""

from angarium.spark.source import AngariumSource as DefaultSource

__all__ = ["DefaultSource"]
