"""What lies in a query's checkpoint, beyond what Spark tells about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from angarium.spark.contents import ends_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_METADATA: Final = "metadata"
"""What Spark writes first: the query's id."""
_OFFSETS: Final = "offsets"
"""A file for each micro-batch that was planned, by its number."""


class CheckpointFolder:
    """A checkpoint wherever Spark can keep one: what Hadoop knows as a folder, asked through Java.

    Not through Spark Connect, whose checkpoints are the server's.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        context: Any = spark.sparkContext
        self._java = context._jvm
        self._path = self._java.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())

    def is_begun(self) -> bool:
        """Tell whether a query has been started with it."""
        return self._has(_METADATA)

    def is_anywhere(self) -> bool:
        """Tell whether a query has planned a micro-batch, so that it knows where it is."""
        offsets = self._below(_OFFSETS)
        return bool(self._files.exists(offsets)) and any(
            entry.getPath().getName().isdigit() for entry in self._files.listStatus(offsets)
        )

    def read_up_to(self, batch: int) -> str | None:
        """Return up to where a micro-batch reads, as Spark has written down before it began."""
        written = self.read(f"{_OFFSETS}/{batch}")
        return None if written is None else ends_in(written.decode())

    def read(self, name: str) -> bytes | None:
        """Return what a file in it says; None if there is none."""
        if not self._has(name):
            return None
        opened = self._files.open(self._below(name))
        try:
            return bytes(self._java.org.apache.commons.io.IOUtils.toByteArray(opened))
        finally:
            opened.close()

    def write(self, name: str, content: bytes) -> None:
        """Write a file of ours beside Spark's."""
        made = self._files.create(self._below(name), True)
        try:
            made.write(bytearray(content))
        finally:
            made.close()

    def _has(self, name: str) -> bool:
        return bool(self._files.exists(self._below(name)))

    def _below(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(self._path, name)
