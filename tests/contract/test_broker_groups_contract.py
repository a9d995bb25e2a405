"""One suite for every broker: groups that share records, and what becomes of each."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.contract.brokers import GROUPED, SOON_S, Subject, kept_by_all
from tests.contract.reading_back import stored, subscribed, values_in

from angarium.api import (
    Checkpoint,
    ConsumeRequest,
    GroupConfig,
    Interest,
    Settlement,
    Start,
    StartAt,
    Verb,
)
from angarium.api.groups import SETTLEMENTS_MAX
from angarium.batch import Batch
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    GroupFenced,
    InvalidArgument,
    NotFound,
    PreconditionFailed,
    TooLarge,
)
from angarium.kinds import GroupKind
from angarium.machine.partition_limits import NAME_CHARACTERS_MAX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from angarium.api import Broker, Consumption, GroupPosition, Handed, Settled

pytestmark = pytest.mark.parametrize("subject", GROUPED, indirect=True)

HASTY = GroupConfig(max_attempts=3, backoff_min_ms=1, backoff_max_ms=2)
LATEST = Start(StartAt.LATEST)


class Member:
    """A consumer, read by a test."""

    def __init__(self, consumption: Consumption) -> None:
        self.consumption = consumption
        self._handed = aiter(consumption)

    async def next(self) -> Handed:
        async with asyncio.timeout(SOON_S):
            return await anext(self._handed)

    async def take(self, number: int) -> list[Handed]:
        """Return deliveries of exactly so many records."""
        found: list[Handed] = []
        while sum(map(len, map(offsets, found))) < number:
            found.append(await self.next())
        assert sum(map(len, map(offsets, found))) == number
        return found

    async def say(self, *said: Settlement) -> tuple[Settled, ...]:
        async with asyncio.timeout(SOON_S):
            return await self.consumption.settle(said)

    async def is_over(self) -> bool:
        async with asyncio.timeout(SOON_S):
            return await anext(self._handed, None) is None


@asynccontextmanager
async def joined(broker: Broker, group: str, *topics: str, **more: object) -> AsyncIterator[Member]:
    request = ConsumeRequest(group=group, topics=topics, **more)  # type: ignore[arg-type]
    consumption = await broker.consume(request)
    try:
        yield Member(consumption)
    finally:
        await consumption.close()


def offsets(handed: Handed) -> list[int]:
    pairs = zip(handed.ranges[::2], handed.ranges[1::2], strict=True)
    return [offset for start, end in pairs for offset in range(start, end)]


def values(handed: Handed) -> list[bytes | None]:
    wanted = set(offsets(handed))
    records = [record for one in handed.batches for record in Batch.parse(one)]
    return [one.value for one in records if one.offset in wanted]


def said(
    topic: str,
    verb: Verb,
    first: int,
    past: int,
    *,
    delay_ms: int | None = None,
    reason: str = "",
    cumulative: bool = False,
) -> Settlement:
    return Settlement(topic, 0, verb, (first, past), delay_ms, reason, cumulative)


async def position(broker: Broker, group: str) -> GroupPosition:
    (found,) = (await broker.describe_group(group)).positions
    return found


async def settled_up_to(broker: Broker, group: str, floor: int) -> GroupPosition:
    """Return where a group stands, once its floor is there."""
    async with asyncio.timeout(SOON_S):
        while True:
            found = await position(broker, group)
            if found.floor == floor:
                return found
            await asyncio.sleep(0.01)


async def is_gone(broker: Broker, group: str) -> None:
    """Wait until a group is forgotten: a follower that has not heard of it yet still has it."""
    async with asyncio.timeout(SOON_S):
        while True:
            try:
                await broker.describe_group(group)
            except NotFound:
                return
            await asyncio.sleep(0.01)


# --- delivering and settling ---------------------------------------------------------------------


@kept_by_all
async def test_what_is_acknowledged_never_comes_again(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a", b"b")
    async with joined(subject.broker, group, topic) as member:
        assert member.consumption.kind is GroupKind.QUEUE
        assert member.consumption.config == GroupConfig()
        assert member.consumption.member
        (handed,) = await member.take(2)
        assert (handed.topic, handed.partition, handed.attempt) == (topic, 0, 1)
        assert (values(handed), handed.lease_ms) == ([b"a", b"b"], 30_000)
        (settled,) = await member.say(said(topic, Verb.ACK, 0, 2))
        assert (settled.records, settled.code) == (2, "")
        (again,) = await member.say(said(topic, Verb.ACK, 0, 2))
        assert (again.records, again.code) == (0, ""), "settled before"
    await stored(subject.broker, topic, b"c")
    async with joined(subject.broker, group, topic) as member:
        (handed,) = await member.take(1)
        assert values(handed) == [b"c"]
    assert (await settled_up_to(subject.broker, group, 2)).lag == 1


@kept_by_all
async def test_what_failed_comes_again_with_its_attempt(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a", b"b")
    async with joined(subject.broker, group, topic, config=HASTY) as member:
        await member.take(2)
        answers = await member.say(
            said(topic, Verb.ACK, 1, 2), said(topic, Verb.NACK, 0, 1, delay_ms=1, reason="no")
        )
        assert [(one.records, one.code) for one in answers] == [(1, ""), (1, "")]
        (again,) = await member.take(1)
        assert (values(again), again.attempt) == ([b"a"], 2)


@kept_by_all
async def test_what_is_given_back_untried_does_not_count(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic) as member:
        await member.take(1)
        (settled,) = await member.say(said(topic, Verb.RELEASE, 0, 1))
        assert settled.code == ""
        (again,) = await member.take(1)
        assert again.attempt == 1


@kept_by_all
async def test_a_lease_can_be_extended(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic) as member:
        await member.take(1)
        (settled,) = await member.say(said(topic, Verb.EXTEND, 0, 1, delay_ms=60_000))
        assert settled.code == ""
        (settled,) = await member.say(said(topic, Verb.ACK, 0, 1))
        assert (settled.records, settled.code) == (1, "")


@kept_by_all
async def test_a_lease_that_ends_is_an_attempt(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    config = GroupConfig(ack_timeout_ms=100, backoff_min_ms=1, backoff_max_ms=2)
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic, config=config) as member:
        await member.take(1)
        (again,) = await member.take(1)
        assert again.attempt == 2


@pytest.mark.parametrize("verb", [Verb.REJECT, Verb.NACK])
@kept_by_all
async def test_what_is_given_up_becomes_a_dead_letter(subject: Subject, verb: Verb) -> None:
    topic, group, letters = await subject.topic(), subject.fresh("group"), await subject.topic()
    config = GroupConfig(
        max_attempts=1 if verb is Verb.NACK else 5,
        backoff_min_ms=1,
        backoff_max_ms=2,
        dead_letter_topic=letters,
    )
    await stored(subject.broker, topic, b"bad")
    earliest = Interest(topic=letters, partition=0, start=Start(StartAt.EARLIEST))
    async with (
        joined(subject.broker, group, topic, config=config) as member,
        subscribed(subject.broker, earliest) as dead,
    ):
        await member.take(1)
        (settled,) = await member.say(said(topic, verb, 0, 1, reason="it is bad"))
        assert (settled.records, settled.code) == (1, "")
        delivery = await dead.next()
        (letter,) = Batch.parse(delivery.batches[0])
    told = {name: content for name, content in letter.headers if name.startswith("angarium-dlq-")}
    assert values_in(delivery.batches) == [b"bad"]
    assert told["angarium-dlq-topic"] == topic.encode()
    assert told["angarium-dlq-group"] == group.encode()
    assert told["angarium-dlq-offset"] == b"0"
    assert told["angarium-dlq-attempts"] == b"1"
    assert b"it is bad" in (told["angarium-dlq-reason"] or b"")
    await settled_up_to(subject.broker, group, 1)


@kept_by_all
async def test_an_acknowledgement_may_mean_everything_below(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, *(b"%d" % at for at in range(5)))
    stream = GroupKind.STREAM
    async with joined(subject.broker, group, topic, kind=stream) as member:
        assert member.consumption.kind is stream
        await member.take(5)
        (settled,) = await member.say(said(topic, Verb.ACK, 3, 4, cumulative=True))
        assert (settled.records, settled.code) == (4, "")
    await settled_up_to(subject.broker, group, 4)


@kept_by_all
async def test_nobody_is_handed_more_than_its_credit(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    for at in range(6):
        await stored(subject.broker, topic, b"%d" % at)
    async with joined(subject.broker, group, topic, credit=2) as member:
        await member.take(2)
        await member.consumption.set_credit(5)
        await member.take(3)
        await member.say(said(topic, Verb.ACK, 0, 5))
        await member.take(1)


@kept_by_all
async def test_members_share_and_what_one_leaves_another_gets(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a", b"b")
    async with joined(subject.broker, group, topic, member="one", credit=2) as one:
        await one.take(2)
        async with joined(subject.broker, group, topic, member="other") as other:
            names = [who.name for who in (await subject.broker.describe_group(group)).members]
            assert names == ["one", "other"]
            await one.consumption.close()
            found = await other.take(2)
            assert {handed.attempt for handed in found} == {1}, "untried"


@kept_by_all
async def test_who_comes_again_under_its_name_takes_over(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic, member="me") as earlier:
        await earlier.take(1)
        async with joined(subject.broker, group, topic, member="me"):
            with pytest.raises(GroupFenced) as refused:
                await earlier.is_over()
            assert refused.value.code == GroupFenced.code


@kept_by_all
async def test_a_closed_consumption_ends(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    async with joined(subject.broker, group, topic) as member:
        ending = asyncio.create_task(member.is_over())
        await asyncio.sleep(0)
        await member.consumption.close()
        assert await ending


@kept_by_all
async def test_a_group_begins_where_it_was_told(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"before")
    async with joined(subject.broker, group, topic, start=LATEST) as member:
        await settled_up_to(subject.broker, group, 1)
        await stored(subject.broker, topic, b"after")
        (handed,) = await member.take(1)
        assert values(handed) == [b"after"]


@kept_by_all
async def test_records_are_settled_request_by_request(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic, member="me") as member:
        await member.take(1)
        ack = said(topic, Verb.ACK, 0, 1)
        (settled,) = await subject.broker.settle(group, "me", [ack])
        assert (settled.records, settled.code) == (1, "")


# --- what is refused -----------------------------------------------------------------------------


@kept_by_all
async def test_what_is_not_on_loan_cannot_be_settled(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic, member="one") as one:
        await one.take(1)
        async with joined(subject.broker, group, topic, member="other") as other:
            (refused,) = await other.say(said(topic, Verb.ACK, 0, 1))
            assert refused.code
            assert (refused.records, bool(refused.message)) == (0, True)
            (asked,) = await subject.broker.settle(group, "other", [said(topic, Verb.ACK, 0, 1)])
            assert asked.code == refused.code
    assert (await position(subject.broker, group)).floor == 0


@kept_by_all
async def test_too_many_settlements_at_once_are_refused_together(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic, member="me") as member:
        await member.take(1)
        too_many = [said(topic, Verb.ACK, 0, 1)] * (SETTLEMENTS_MAX + 1)
        with pytest.raises(TooLarge):
            await subject.broker.settle(group, "me", too_many)
        assert (await position(subject.broker, group)).floor == 0


@kept_by_all
async def test_ranges_that_cannot_be_are_refused(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a")
    async with joined(subject.broker, group, topic) as member:
        await member.take(1)
        for ranges in ((0,), (1, 0), (-1, 1)):
            (refused,) = await member.say(Settlement(topic, 0, Verb.ACK, ranges))
            assert (refused.records, refused.code) == (0, InvalidArgument.code)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"group": ""}, InvalidArgument),
        ({"group": "x" * (NAME_CHARACTERS_MAX + 1)}, InvalidArgument),
        ({"topics": ()}, InvalidArgument),
        ({"topics": ("nowhere-at-all",)}, NotFound),
        ({"credit": 0}, InvalidArgument),
        ({"kind": GroupKind.CHECKPOINT}, InvalidArgument),
        ({"config": GroupConfig(max_attempts=0)}, InvalidArgument),
        ({"config": GroupConfig(ack_timeout_ms=0)}, InvalidArgument),
        ({"start": Start(StartAt.OFFSET, -1)}, InvalidArgument),
    ],
    ids=["nameless", "long", "no topic", "gone", "credit", "kind", "attempts", "lease", "start"],
)
@kept_by_all
async def test_nobody_joins_as_what_cannot_be(
    subject: Subject, wrong: dict[str, object], error: type[AngariumError]
) -> None:
    topic = await subject.topic()
    request: dict[str, object] = {"group": subject.fresh("group"), "topics": (topic,), **wrong}
    with pytest.raises(error) as refused:
        await subject.broker.consume(ConsumeRequest(**request))  # type: ignore[arg-type]
    assert refused.value.code == error.code


@kept_by_all
async def test_a_group_keeps_its_kind_and_its_settings(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    async with joined(subject.broker, group, topic, config=HASTY):
        with pytest.raises(AlreadyExists) as refused:
            await subject.broker.consume(
                ConsumeRequest(group=group, topics=(topic,), kind=GroupKind.STREAM)
            )
        assert refused.value.code == AlreadyExists.code
        async with joined(subject.broker, group, topic, config=GroupConfig()) as member:
            assert member.consumption.config == HASTY


# --- looking after groups ------------------------------------------------------------------------


@kept_by_all
async def test_a_group_is_described_and_listed(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a", b"b", b"c")
    async with joined(subject.broker, group, topic, member="me", config=HASTY) as member:
        await member.take(3)
        await member.say(said(topic, Verb.ACK, 0, 1))
        found = await subject.broker.describe_group(group)
        assert (found.name, found.kind, found.config) == (group, GroupKind.QUEUE, HASTY)
        (who,) = found.members
        assert (who.name, who.partitions, who.pending) == ("me", ((topic, 0),), 2)
        (place,) = found.positions
        assert (place.topic, place.partition, place.floor) == (topic, 0, 1)
        assert (place.end_offset, place.lag, place.pending) == (3, 2, 2)
        assert (found.lag, found.paused) == (2, False)
    (listed,) = [one for one in await subject.broker.list_groups() if one.name == group]
    assert (listed.positions, listed.lag) == ((), 2)
    names = [one.name for one in await subject.broker.list_groups()]
    assert names == sorted(names)


@kept_by_all
async def test_a_group_is_given_other_settings(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    async with joined(subject.broker, group, topic):
        pass
    assert (await subject.broker.alter_group(group, HASTY)).config == HASTY
    assert (await subject.broker.describe_group(group)).config == HASTY
    with pytest.raises(InvalidArgument):
        await subject.broker.alter_group(group, GroupConfig(max_attempts=0))


@kept_by_all
async def test_a_group_is_moved(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a", b"b")
    async with joined(subject.broker, group, topic) as member:
        await member.take(2)
        await member.say(said(topic, Verb.ACK, 0, 2))

    async def sought(value: int, *, dry_run: bool = False) -> tuple[int, int]:
        (moved,) = await subject.broker.seek_group(
            group,
            topic=topic,
            partition=0,
            start=Start(StartAt.OFFSET, value),
            dry_run=dry_run,
        )
        assert (moved.topic, moved.partition) == (topic, 0)
        return moved.old_floor, moved.new_floor

    with pytest.raises(InvalidArgument):
        await sought(-1)
    assert await sought(1, dry_run=True) == (2, 1)
    assert (await position(subject.broker, group)).floor == 2
    assert await sought(1) == (2, 1)
    async with joined(subject.broker, group, topic) as member:
        (handed,) = await member.take(1)
        assert values(handed) == [b"b"]


@kept_by_all
async def test_a_group_that_is_paused_is_handed_nothing(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    async with joined(subject.broker, group, topic) as member:
        await subject.broker.pause_group(group, paused=True)
        assert (await subject.broker.describe_group(group)).paused
        await stored(subject.broker, topic, b"a")
        coming = asyncio.create_task(member.next())
        # What must not come is looked for this long.
        assert not (await asyncio.wait([coming], timeout=0.2))[0]
        await subject.broker.pause_group(group, paused=False)
        assert values(await coming) == [b"a"]


@kept_by_all
async def test_a_group_is_forgotten_once_nobody_takes_part(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    async with joined(subject.broker, group, topic):
        with pytest.raises(PreconditionFailed) as refused:
            await subject.broker.delete_group(group, topic=None)
        assert refused.value.code == PreconditionFailed.code
    await subject.broker.delete_group(group, topic=None)
    await is_gone(subject.broker, group)


@kept_by_all
async def test_a_group_that_keeps_its_own_offsets_says_how_far_it_is(subject: Subject) -> None:
    topic, group = await subject.topic(), subject.fresh("group")
    await stored(subject.broker, topic, b"a", b"b", b"c")
    await subject.broker.report_checkpoints(group, [Checkpoint(topic, 0, 2)])  # type: ignore[arg-type]
    found = await subject.broker.describe_group(group)
    assert (found.kind, found.positions[0].floor, found.lag) == (GroupKind.CHECKPOINT, 2, 1)


@kept_by_all
async def test_what_is_asked_of_a_group_that_is_not_there_is_told_alike(subject: Subject) -> None:
    broker, group = subject.broker, subject.fresh("group")
    start = Start(StartAt.EARLIEST)
    for attempt in (
        broker.describe_group(group),
        broker.alter_group(group, HASTY),
        broker.seek_group(group, topic=None, partition=None, start=start, dry_run=False),
        broker.pause_group(group, paused=True),
        broker.delete_group(group, topic=None),
    ):
        with pytest.raises(NotFound) as refused:
            await attempt
        assert refused.value.code == NotFound.code
