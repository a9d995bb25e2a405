"""What jobs read of a record: everything, with its headers and both of its times."""

from typing import Final

RECORD: Final = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
    "headers map<string,binary>, producer_timestamp timestamp"
)
"""A schema for reads, in the order of `angarium.spark.rows.COLUMNS`."""
