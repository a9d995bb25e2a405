"""Rows of one task on their way into a stage of a transaction.

A row with a key is dealt by the topic's layout, and its batch names that: partitions that have the
fence of a newer one refuse it. As long as nothing of the task is staged, its rows are kept, and
dealt anew when the topic has been given partitions. Once something is, no fence comes before the
transaction has ended (`node.spanning`), so that the rest follows by the same layout.
"""

from __future__ import annotations

import uuid
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext

from angarium.errors import LayoutChanged, LimitExceeded, TransactionAborted
from angarium.spark.contents import Tally, tally
from angarium.spark.dealing import Dealer
from angarium.spark.values.writing import with_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    import pyarrow as pa

    from angarium.api.layout import Layout
    from angarium.client.transactions.staged import Stage, StagedWrite, Ticket
    from angarium.spark.link import Link
    from angarium.spark.write_options import WriteOptions

DEALT_ANEW_MAX: Final = 8
"""How often a task deals its rows anew. A topic that is given partitions more often meanwhile fails
the task, which Spark repeats."""


def staged(
    link: Link,
    options: WriteOptions,
    write: StagedWrite,
    rows: Iterable[pa.RecordBatch],
    *,
    hashes: bool,
) -> tuple[Ticket, Tally]:
    """Stage all rows under a name that no other attempt has; return what to commit, and what it is.

    With `hashes` the rows are recognised if they come again.
    """
    kept: list[pa.RecordBatch] = []
    coming = iter(rows)
    layouts: dict[str, Layout] = {}
    for attempt in range(DEALT_ANEW_MAX):
        stage = write.stage(uuid.uuid4().hex)
        dealer = _dealer(link, options, layouts)
        again = chain(kept[:], _keeping(coming, kept, stage))
        try:
            counted = _filled(link, stage, dealer, again, options, hashes=hashes)
            return link.call(stage.close()), counted
        except LimitExceeded as error:
            raise _told_what_to_do(error) from None
        except (TransactionAborted, LayoutChanged):
            link.call(stage.settle())
            if not stage.outdated or not stage.is_empty or attempt + 1 == DEALT_ANEW_MAX:
                raise
            for topic, number in stage.outdated.items():
                layouts[topic] = link.layout_beyond(topic, number)
    raise AssertionError("returned or raised")


def _dealer(link: Link, options: WriteOptions, known: dict[str, Layout]) -> Dealer:
    context = TaskContext.get()
    turn = 0 if context is None else context.partitionId()
    # Asked once in each task: a topic may have grown since the last one.
    ask = cache(partial(link.layout, creates=options.creates_topic))

    def layout_of(topic: str) -> Layout:
        return known[topic] if topic in known else ask(topic)

    return Dealer(options.topic, layout_of, codec=options.codec, turn=turn)


def _keeping(
    rows: Iterator[pa.RecordBatch], kept: list[pa.RecordBatch], stage: Stage
) -> Iterator[pa.RecordBatch]:
    """Yield rows, and keep them while they may have to be dealt anew.

    A part leaves for its partition when it has grown to a size (`stages.PART_BYTES`), so no more
    than about that is kept for each of them.
    """
    for some in rows:
        if stage.is_empty:
            kept.append(some)
        else:
            kept.clear()
        yield some


def _filled(
    link: Link,
    stage: Stage,
    dealer: Dealer,
    rows: Iterable[pa.RecordBatch],
    options: WriteOptions,
    *,
    hashes: bool,
) -> Tally:
    """Put rows into a stage, and count them."""
    counted = Tally()
    going: Future[None] | None = None
    for some in rows:
        if not some.num_rows:
            continue
        encoded = with_values(some, options.values)
        counted = counted.plus(tally(encoded, hashes=hashes))
        for one in dealer.packed(encoded):
            # One batch is on its way to the stage while Spark's next rows are packed.
            if going is not None:
                going.result()
            going = link.begin(
                stage.put_batch(one.topic, one.partition, one.batch, layout=one.layout)
            )
    if going is not None:
        going.result()
    return counted


def _told_what_to_do(error: LimitExceeded) -> LimitExceeded:
    """Return the error with what helps, where a partition has no room for what is not committed."""
    if "staged_bytes_max" not in str(error):
        return error
    return LimitExceeded(
        "staged_bytes_max",
        "a write, or a micro-batch, has more for one partition than can wait there for its commit "
        "(as packed; 16 GiB unless node.toml says otherwise, [cluster] staged_bytes_max); raise "
        "that, or write with compression=zstd, to a topic of more partitions, in smaller "
        "micro-batches (maxOffsetsPerTrigger), or in several writes",
    )
