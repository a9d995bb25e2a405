"""The archive: topics flow into a table of a lake, every record once.

Records do not pass through Java. The source hands out ranges of offsets instead of rows; Spark's
Python workers fetch them, and write Parquet straight from Arrow; the driver makes the files part of
the table, together with how far each partition is archived. A micro-batch that is repeated, by a
restarted query or by another one with a checkpoint of its own, finds that its offsets are there and
writes nothing. If another driver archives them while it has its files written, the commit is
refused, and the micro-batch begins again where the table ends by then.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from angarium.errors import ArchiveAdvanced, InvalidArgument, PreconditionFailed
from angarium.pipelines.archive_files import BYTES_PER_FILE, FILES, file_of, writes_files
from angarium.pipelines.claims import Claim, claim
from angarium.pipelines.jobs import archive_source
from angarium.spark.lake import Lake, LakeForm, Stretch
from angarium.spark.options import read_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

RECORDS_PER_BATCH: Final = 4_000_000
"""`maxOffsetsPerTrigger` unless given: what one commit of the table brings at the most. A PySpark
before 4.2 has no such limit, and a commit brings everything that is there."""

BATCHES_PER_JOINING: Final = 100
"""Small files are joined every this many micro-batches, unless told otherwise. Plain Parquet is
left alone: there old files leave their paths while somebody may be reading them."""

REFUSALS_MAX: Final = 9
"""How often a micro-batch begins again because another query has archived the same meanwhile. It
goes on from that one's marks; refused once more, the query fails with `ArchiveAdvanced`."""

_log = logging.getLogger(__name__)


def archive(
    spark: SparkSession,
    path: str,
    *,
    checkpoint: str,
    options: Mapping[str, str],
    once: bool = False,
    interval: str = "10 seconds",
    form: LakeForm | None = None,
) -> StreamingQuery:
    """Start to archive topics into the table at `path`; what the log still has comes first.

    `options` are those of the source (`subscribe`, `servers`, …). `once` ends the query when
    everything that is there now has been archived. `form` is how a new table is kept, a Delta
    table unless it says otherwise.
    """
    from angarium.spark.stream import HAS_LIMITS  # noqa: PLC0415 (an extra)

    # Executors may know other servers than the driver does, so they are told.
    given = {**options, "servers": ",".join(archive_source(options).servers)}
    lake = Lake(path, form)
    claim(spark, checkpoint, Claim(kind="archive", of=f"the archive {lake.path.absolute()}"))
    lake.create()
    reader = spark.readStream.format("angarium")
    if HAS_LIMITS:
        reader = reader.option("maxOffsetsPerTrigger", RECORDS_PER_BATCH)
    rows = reader.options(**given).options(rows="ranges", startingOffsets="earliest").load()
    writer = rows.writeStream.foreachBatch(_Archivist(path, given))
    writer = writer.option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=interval)
    return writer.start()


class _Archivist:
    """Does one micro-batch after the other, on the driver."""

    def __init__(self, path: str, options: dict[str, str]) -> None:
        self._path = path
        self._options = options

    def __call__(self, ranges: DataFrame, batch: int) -> None:
        lake = Lake(self._path)
        wanted = {_stretch(row) for row in ranges.collect()}
        for _ in range(REFUSALS_MAX):
            try:
                has_added = self._archive(lake, ranges, wanted)
                break
            except ArchiveAdvanced as refused:
                _log.warning("batch %d begins again at the archive's new marks: %s", batch, refused)
        else:
            has_added = self._archive(lake, ranges, wanted)
        if not has_added:
            _log.info("batch %d had been archived before", batch)
        elif batch % BATCHES_PER_JOINING == BATCHES_PER_JOINING - 1:
            self._join(lake)

    def _archive(self, lake: Lake, ranges: DataFrame, wanted: set[Stretch]) -> bool:
        """Archive what is not there yet; return whether anything was.

        Raises `ArchiveAdvanced` if another query has done so since the marks were read.
        """
        archived = lake.archived_to(wanted)
        told = ranges.mapInArrow(writes_files(self._path, archived, self._options), FILES).collect()
        begins: dict[Stretch, int] = {}
        ends: dict[Stretch, int] = {}
        for row in told:
            one = _stretch(row)
            begins[one] = min(begins.get(one, row.begins), row.begins)
            ends[one] = max(ends.get(one, 0), row.stop)
        self._refuse_gaps(begins, archived)
        news = {one: end for one, end in ends.items() if end > archived.get(one, 0)}
        if not news:
            return False
        files = [file_of(row) for row in told if row.path]
        lake.add(files, news, since=archived)
        records = sum(one.records for one in files)
        _log.info("archived %d records in %d files", records, len(files))
        return True

    def _join(self, lake: Lake) -> None:
        if lake.form is LakeForm.PARQUET:
            return
        try:
            lake.compact(file_bytes=BYTES_PER_FILE)
        except PreconditionFailed as error:
            _log.info("small files are joined another time: %s", error)

    def _refuse_gaps(self, begins: Mapping[Stretch, int], archived: Mapping[Stretch, int]) -> None:
        """A table whose partitions have holes would be believed to have none."""
        if not read_options(self._options, is_stream=True).fail_on_data_loss:
            return
        for one, start in begins.items():
            if start > archived.get(one, start):
                raise InvalidArgument(
                    f"{one.topic} partition {one.partition} is archived up to {archived[one]}, and "
                    f"this query goes on at {start}: give it a new checkpoint"
                )


def _stretch(row: Row) -> Stretch:
    return Stretch(row.topic, row.topic_id, row.partition)
