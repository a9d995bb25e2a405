"""The sink: rows become records of a topic, exactly once.

Tasks stage what they write; nobody sees it. The driver commits once, naming the stages of the
attempts that count: what retried and speculative attempts left behind is dropped. For a stream the
commit is that of (query id, batch id), so that a batch repeated after a crash is recognised, and
runs are numbered, so that a driver thought dead is refused (`runs`). A batch write has an id of its
own, or the one in the option `writeId`: then a second run changes nothing, and runs are numbered as
well: one that follows a run that failed may write what that has not. Each commit says what it is
of, and something else under a number that was committed is refused (`contents`, `repeats`).
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from angarium.api.transactions import ONE_TIME
from angarium.errors import InvalidArgument, PermissionDenied, PreconditionFailed
from angarium.spark.arrow_types import arrow_columns
from angarium.spark.contents import Tally, contents, local_folder, read_up_to
from angarium.spark.dealing import check_columns
from angarium.spark.filling import staged
from angarium.spark.link import Link, link_for
from angarium.spark.repeats import check_batch, check_write
from angarium.spark.runs import Runs, batch_write, fence, write_epoch
from angarium.spark.values.writing import check_structs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from angarium.client.transactions.staged import StagedWrite, Ticket
    from angarium.spark.write_options import WriteOptions

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    HAS_STREAM_SINK = True
except ImportError:  # before PySpark 4.1
    from pyspark.sql.datasource import (  # type: ignore[assignment]
        DataSourceStreamWriter as DataSourceStreamArrowWriter,
    )

    HAS_STREAM_SINK = False

QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"
RUN_ID: Final = "spark.jobGroup.id"
"""Properties that Spark gives the tasks of a stream. They are not documented; a test pins them."""

_log = logging.getLogger(__name__)
_runs: dict[Link, Runs] = {}
_fenced: set[tuple[str, int]] = set()
"""Queries and epochs for which this process has fenced older runs."""


@dataclass(frozen=True, slots=True)
class TaskWrote(WriterCommitMessage):
    """What a task tells the driver."""

    ticket: Ticket
    tally: Tally
    query: str = ""
    epoch: int = 0


class AngariumWriter(DataSourceArrowWriter):
    """Writes a DataFrame once."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        _check(options, schema)
        self._options = options
        self._id = options.write_id or uuid.uuid4().hex
        # An id is one of its topic: a job may write several under the id of its run.
        topic = None if options.write_id is None else options.topic
        self._name = f"{ONE_TIME}{self._id}" if topic is None else f"spark-write-{topic}/{self._id}"
        self._epoch = 0
        if options.write_id is not None:
            self._epoch = write_epoch(link_for(options), self._name)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Stage the rows of one task."""
        link = link_for(self._options)
        is_named = self._options.write_id is not None and self._options.write_of is None
        return TaskWrote(*staged(link, self._options, self._write(link), iterator, hashes=is_named))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make everything visible at once, unless a run with the same id has done so before."""
        link = link_for(self._options)
        told = wrote(messages)
        tickets = [message.ticket for message in told]
        write = self._write(link)
        own = contents(
            (message.tally for message in told),
            into=self._options.topic,
            read=self._options.write_of,
        )
        committed = link.call(write.commit(tickets, content=own.encode()))
        if self._options.write_id is None:
            # Nobody else has this id: if it had been committed, then by this call, asked again.
            topics = {stage.topic for ticket in tickets for stage in ticket.stages}
            try:
                link.call(write.forget(*sorted(topics)))
            except PermissionDenied as error:
                # What was written is there for good; only a slot is taken that nobody needs.
                _log.warning("the write %s is committed and stays remembered: %s", self._id, error)
        elif committed.repeated:
            if self._options.check_repeats:
                check_write(self._id, self._options.write_version, own, committed)
            _log.warning("the write %s is there and was committed once; not again", self._id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop what the tasks that got that far have staged."""
        link = link_for(self._options)
        link.call(self._write(link).abort([message.ticket for message in wrote(messages)]))

    def _write(self, link: Link) -> StagedWrite:
        return link.staged(self._name, epoch=self._epoch, sequence=self._options.write_version)


class AngariumStreamWriter(DataSourceStreamArrowWriter):
    """Writes every micro-batch of a query once."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        if not HAS_STREAM_SINK:
            raise InvalidArgument(
                "the sink of a stream needs PySpark 4.1 or newer; this is "
                f"{pyspark.__version__}. foreachBatch does as well: write with writeId, the name "
                "of the query, and writeVersion, the number of the batch"
            )
        _check(options, schema)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWrote:
        """Stage the rows of one task of a micro-batch."""
        query, run, batch = (_property(name) for name in (QUERY_ID, RUN_ID, BATCH_ID))
        link = link_for(self._options)
        epoch = _runs.setdefault(link, Runs(link)).epoch(query, run)
        if (query, epoch) not in _fenced:
            fence(link, query, epoch, int(batch))
            _fenced.add((query, epoch))
        write = batch_write(link, query, epoch, int(batch))
        # The driver looks up what was read; rows are hashed where it cannot.
        hashes = local_folder(self._options.checkpoint) is None
        wrote = staged(link, self._options, write, iterator, hashes=hashes)
        return TaskWrote(*wrote, query, epoch)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Make the micro-batch visible at once, unless that was done before."""
        told = wrote(messages)
        if not told:
            return  # a batch without a task
        link = link_for(self._options)
        query, epoch = told[0].query, told[0].epoch
        write = batch_write(link, query, epoch, batchId)
        own = contents(
            (message.tally for message in told),
            into=self._options.topic,
            read=read_up_to(local_folder(self._options.checkpoint), query, batchId),
        )
        tickets = [message.ticket for message in told]
        committed = link.call(write.commit(tickets, content=own.encode()))
        if committed.repeated:
            # Nothing of ours has reached the transaction's home, so older runs are fenced there
            # only now.
            fence(link, query, epoch, batchId + 1)
            if self._options.check_repeats:
                check_batch(query, batchId, own, committed)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Leave the micro-batch open: Spark repeats it, in this run or the next.

        What was staged is dropped by the commit that follows, or when its time is up. To abort
        would close the batch's number for good.
        """


def wrote(messages: Iterable[WriterCommitMessage | None]) -> list[TaskWrote]:
    """Return what tasks have told; one that failed has told nothing."""
    return [message for message in messages if isinstance(message, TaskWrote)]


def _check(options: WriteOptions, schema: StructType) -> None:
    check_columns(check_structs(arrow_columns(schema), options.values), topic=options.topic)


def _property(name: str) -> str:
    context = TaskContext.get()
    value: Any = None if context is None else context.getLocalProperty(name)
    if not value:
        raise PreconditionFailed(f"Spark does not tell {name}; this version cannot write once")
    return str(value)


def refuse_overwrite(*, overwrite: bool) -> None:
    """Raise `InvalidArgument` for a mode that a topic cannot have."""
    if overwrite:
        raise InvalidArgument("a topic is appended to, never overwritten: use mode('append')")
