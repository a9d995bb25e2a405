"""What a subscriber of the profile gets, whichever listener it came through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.api import ConsumeRequest, GroupConfig
from angarium.doors.feeds.feed import GroupFeed, TopicFeed
from angarium.doors.feeds.following import EARLIEST, Whole
from angarium.doors.feeds.passing import passing_id, time_us
from angarium.doors.feeds.positions import LIVE as LATEST
from angarium_compat.hermes.joined_feed import JoinedFeed
from angarium_compat.subscribing import listening, subscribed_live

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.api import GroupBroker
    from angarium.doors.feeds.feed import Feed, Portion
    from angarium_compat.subscribing import LiveBroker


LIVE: Final = ""
REPLAY: Final = "__REPLAY__"
DEAD_LETTERS: Final = "hermes.dlq"
"""Where the profile's groups send what they gave up."""

CREDIT: Final = 1_000

GROUP: Final = GroupConfig(dead_letter_topic=DEAD_LETTERS)
"""How the profile's groups are."""

_OFFSET_END: Final = 1 << 63
_PARTITION_END: Final = 1 << 31


class Sent(NamedTuple):
    """A message of the profile."""

    id: str
    topic: str
    payload: bytes
    time_us: int


class Spot(NamedTuple):
    """Where a record is."""

    topic: str
    partition: int
    offset: int


def spot_in(message_id: str) -> Spot | None:
    """Return where the record with an id is; None for one that was never given to anything."""
    topic, _, rest = message_id.partition("/")
    partition, _, offset = rest.partition("/")
    if not (topic and partition.isdecimal() and offset.isdecimal()):
        return None
    spot = Spot(topic, int(partition), int(offset))
    return spot if spot.partition < _PARTITION_END and spot.offset < _OFFSET_END - 1 else None


async def begun(broker: LiveBroker, groups: GroupBroker, topic: str, group: str) -> Feed:
    """Begin; a topic that is not there is made.

    A member of a group also gets, as the profile's broker did it, whatever passes in PERFORMANCE
    mode, which is handed to everybody who is there.
    """
    if group in (LIVE, REPLAY):
        return TopicFeed(
            await subscribed_live(broker, Whole(topic, EARLIEST if group == REPLAY else LATEST))
        )
    passing, _ = await listening(broker, topic)
    try:
        consumption = await groups.consume(
            ConsumeRequest(group=group, topics=(topic,), config=GROUP, credit=CREDIT)
        )
    except BaseException:
        await passing.close()
        raise
    return JoinedFeed(GroupFeed(consumption), TopicFeed(passing))


async def acknowledge(feed: Feed, topic: str, message_id: str) -> None:
    """Settle a message; an id that nothing on loan has is no matter, as it was none there."""
    spot = spot_in(message_id)
    if spot is not None and spot.topic == topic:
        await feed.acknowledge(topic, spot.partition, (spot.offset, spot.offset + 1))


def messages(portion: Portion) -> Iterator[Sent]:
    """Yield records as the profile shows them; the id of a stored one says where it is."""
    topic, number, records, is_live, *_ = portion
    for one in records:
        name = passing_id(topic, number) if is_live else f"{topic}/{number}/{one.offset}"
        yield Sent(name, topic, one.value or b"", time_us(one))
