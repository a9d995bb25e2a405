"""What goes through a broker is counted, with labels that have few and known values."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from angarium.api import Ack, Handed, PublishRequest, Settled, Settlement, Verb
from angarium.batch import encode
from angarium.ids import Offset
from angarium.modes import DeliveryMode
from angarium.telemetry.metering import CountedConsumption, count_published
from angarium.telemetry.meters import DECISIONS, VERBS, Meters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence


def ack(**more: Any) -> Ack:
    return Ack(mode=DeliveryMode.CONSISTENT, topic="t", partition=0, **more)


def test_a_publish_counts_what_was_stored_and_what_had_been() -> None:
    meters = Meters()
    batches = (encode([b"a", b"b"]), encode([b"c"]), encode([b"d"]))
    request = PublishRequest(topic="t", partition=0, batches=batches)
    answers = (
        ack(base_offset=Offset(0), next_offset=Offset(2)),
        ack(base_offset=Offset(0), next_offset=Offset(1), duplicate=True),
        ack(code="KEY_REUSED"),
    )
    count_published(meters, request, answers)
    assert (meters.total.published, meters.duplicates) == (2, 1)
    assert meters.total.published_bytes == len(batches[0])


class Inner:
    """A member that is handed one delivery, and whose first settlement is refused."""

    async def __aiter__(self) -> AsyncIterator[Handed]:
        yield Handed(topic="t", partition=0, batches=(), ranges=(0, 3, 7, 8), attempt=2)

    async def settle(self, settlements: Sequence[Settlement]) -> tuple[Settled, ...]:
        return tuple(Settled(2, "GROUP_FENCED" if not at else "") for at in range(len(settlements)))

    async def close(self, *, lost: bool = False) -> None:
        assert not lost


def test_a_member_counts_while_it_is_there_and_what_it_says() -> None:
    async def story() -> None:
        meters = Meters()
        member = CountedConsumption(cast("Any", Inner()), meters, {"t"})
        assert meters.members == meters.total.subscribers == 1
        assert [handed.attempt async for handed in member] == [2]
        assert (meters.total.delivered, meters.redelivered) == (4, 4)
        wishes = [Settlement("t", 0, verb, (0, 1)) for verb in (Verb.ACK, Verb.ACK, Verb.NACK)]
        await member.settle(wishes)
        assert meters.settled_by_verb == {
            "ack": 2,
            "nack": 2,
            "release": 0,
            "extend": 0,
            "reject": 0,
        }
        await member.close()
        await member.close()
        assert meters.members == meters.total.subscribers == 0

    asyncio.run(story())


def test_labels_are_those_of_the_contract_and_no_others() -> None:
    assert tuple(one.name.lower() for one in Verb) == VERBS
    meters = Meters()
    for what in DECISIONS:
        meters.decided(what)
    assert meters.decisions == dict.fromkeys(DECISIONS, 1)
    with pytest.raises(KeyError):
        meters.decided("something that a user chose")
