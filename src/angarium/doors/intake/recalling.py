"""Asking whether a request that comes again was stored before its topic was given partitions.

Added partitions begin a new layout, by which a request may go to another partition than before; its
key is remembered where it was. So the partitions to which earlier layouts have sent it are asked
first, by the same publish under the earlier layout. Each of them has the fence of a newer one, so
it stores nothing: it recognises the key, or says that the layout has changed. That stays true for
ever, for what lies before a fence does not change. What is asked here and published afterwards
therefore cannot meet the same request on its way by the older layout.

A topic that was never given partitions has no earlier layouts, and nothing is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from angarium.batch import Batch
from angarium.doors.intake.acks import error_of_ack
from angarium.doors.intake.outgoing import single_batch
from angarium.doors.intake.packing import packed
from angarium.errors import LayoutChanged
from angarium.modes import DeliveryMode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api import Ack
    from angarium.doors.intake.once import Once
    from angarium.doors.intake.outgoing import Outgoing
    from angarium.doors.intake.partitions import TopicShape
    from angarium.ids import Buffer


class Asking(Protocol):
    """What is needed of an `Intake` here."""

    async def publish_each(
        self,
        topic: str,
        per_partition: Mapping[int, tuple[Buffer, ...]],
        mode: DeliveryMode | None,
        layout: int | None = None,
    ) -> list[tuple[Ack, ...] | Exception]:
        """Publish the batches of each partition."""


class Recalled(NamedTuple):
    """What earlier layouts have of a request's records."""

    acks: list[Ack]
    """Of the batches that are stored."""
    partitions: dict[int, int]
    """Where they are, by the record's number in the request."""


def named(once: Once, shape: TopicShape, layout: int) -> Once:
    """Return the key of a request of many records where `layout` has sent them.

    Each layout cuts a request into other batches, and some of them may be stored: one of another
    layout must not be taken for them. Layouts of before the feature level know the key as it is.
    """
    return once.under(layout) if shape.is_timed(layout) else once


async def recalled_one(
    intake: Asking, topic: str, record: Outgoing, shape: TopicShape, once: Once
) -> Ack | None:
    """Return where a request of one record is that was stored before; raises what refuses it."""
    key = once.key if record.key is None else record.key
    # A partition knows a key whichever layout has sent it there.
    for partition, layout in dict(shape.formerly(lambda one: one.of_key(key))).items():
        # CONSISTENT, so that a leader which was deposed without knowing it cannot answer.
        batch = single_batch(record, once.at())
        (answer,) = await intake.publish_each(
            topic, {partition: (batch,)}, DeliveryMode.CONSISTENT, layout
        )
        for ack in _told(answer):
            if not _is_unknown(ack):
                return ack
    return None


async def recalled(
    intake: Asking, topic: str, records: Sequence[Outgoing], shape: TopicShape, once: Once
) -> Recalled:
    """Return what is stored of a request of many records, of which some may have been stored."""
    found = Recalled([], {})
    left = list(range(len(records)))
    for former in shape.former:
        # Two layouts that know a request by the same key cannot be told apart.
        if not left or not shape.is_timed(former.number + 1):
            continue
        some = [records[at] for at in left]
        batches, partitions = packed(
            some,
            shape.under(former),
            partition=None,
            producers=named(once, shape, former.number),
        )
        answers = await intake.publish_each(topic, batches, DeliveryMode.CONSISTENT, former.number)
        for (partition, sent), answer in zip(batches.items(), answers, strict=True):
            there = [at for at, to in zip(left, partitions, strict=True) if to == partition]
            for batch, ack in zip(sent, _told(answer), strict=True):
                count = Batch.trusted(batch).header.count
                own, there = there[:count], there[count:]
                if not _is_unknown(ack):
                    found.acks.append(ack)
                    found.partitions.update(dict.fromkeys(own, partition))
        left = [at for at in left if at not in found.partitions]
    return found


def _told(answer: tuple[Ack, ...] | Exception) -> tuple[Ack, ...]:
    if isinstance(answer, Exception):
        raise answer
    return answer


def _is_unknown(ack: Ack) -> bool:
    """Tell whether a batch was not stored by the layout that was asked about."""
    if ack.code and ack.code != LayoutChanged.code:
        raise error_of_ack(ack)
    return bool(ack.code)
