"""Producers belong to who opened them: nobody can speak with another's number.

Who could would make the victim's next batch a repetition, which is acknowledged and not stored, or
fence it by a newer epoch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.component.service.access.test_who_may_on_real_nodes import (
    PASSWORD,
    eventually,
    secured,
    there,
)
from tests.on_a_loop import on_a_loop

from angarium.api import PublishRequest
from angarium.api.access import Grant, Principal, Proof, ResourceKind, SubjectKind
from angarium.batch import BatchBuilder
from angarium.client import Client
from angarium.errors import InvalidArgument, PermissionDenied, UnknownProducer
from angarium.ids import Epoch, ProducerId, Sequence
from angarium.machine.keys import identity_of
from angarium.machine.producers import NAMED_FROM
from angarium.testing.broker import in_process_broker

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.api import Ack, Producer
    from angarium.client import Client as AnyClient
    from angarium.errors import AngariumError
    from angarium.service.access import PermittedBroker

ALICE = Principal(name="alice", proof=Proof.PASSWORD)
MALLORY = Principal(name="mallory", proof=Proof.PASSWORD)
PUBLISHING = Grant(
    actions=("topic.publish", "topic.describe"), kind=ResourceKind.TOPIC, name="orders"
)


def batch(producer: int, epoch: int, sequence: int, value: bytes = b"x") -> bytes:
    builder = BatchBuilder()
    builder.add(value)
    return bytes(
        builder.build(
            producer_id=ProducerId(producer), epoch=Epoch(epoch), sequence=Sequence(sequence)
        )
    )


def publishing(*batches: bytes) -> PublishRequest:
    return PublishRequest(topic="orders", partition=0, batches=batches)


async def users(root: AnyClient, *names: str) -> None:
    for name in names:
        await root.create_user(name, password=PASSWORD)
        await root.create_grant(SubjectKind.USER, name, PUBLISHING)


@on_a_loop
async def test_nobody_makes_anothers_batches_repetitions_or_fences_them(tmp_path: Path) -> None:
    async with (
        secured(tmp_path, nodes=1) as broker,
        Client(*broker.addresses, user="root", password=PASSWORD) as root,
    ):
        await users(root, "alice", "mallory")
        access = there(broker.accesses[0])
        alice, mallory = access.broker_for(ALICE), access.broker_for(MALLORY)
        mine: Producer = await alice.open_producer()
        (first,) = await alice.publish(publishing(batch(mine.id, mine.epoch, 0)))
        assert not first.code
        for stolen in (
            batch(mine.id, mine.epoch, 1, b"instead of hers"),
            batch(mine.id, mine.epoch + 1, 0, b"to fence her"),
        ):
            with pytest.raises(PermissionDenied, match="was opened by somebody else"):
                await mallory.publish(publishing(stolen))
            for taken in (mallory.begin_publish, mallory.take_publish):
                with pytest.raises(PermissionDenied):
                    taken(publishing(stolen), lambda _: None)
        (second,) = await alice.publish(publishing(batch(mine.id, mine.epoch, 1)))
        assert (second.code, second.duplicate) == ("", False)
        # Whoever it opened for itself it may use, with every proof of the same user.
        theirs = await mallory.open_producer()
        assert theirs.id != mine.id
        (own,) = await mallory.publish(publishing(batch(theirs.id, theirs.epoch, 0)))
        assert not own.code
        by_token = access.broker_for(Principal(name="alice", proof=Proof.PASSWORD, roles=("x",)))
        (third,) = await by_token.publish(publishing(batch(mine.id, mine.epoch, 2)))
        assert not third.code


def under_key(key: bytes, value: bytes) -> PublishRequest:
    producer, sequence = identity_of(key, value)
    return publishing(batch(producer, 0, sequence, value))


async def taken(broker: PermittedBroker, request: PublishRequest) -> Ack:
    """Publish as doors do that have no task for each request."""
    heard: asyncio.Future[tuple[Ack, ...] | AngariumError]
    heard = asyncio.get_running_loop().create_future()
    if not broker.take_publish(request, heard.set_result):
        (ack,) = await broker.publish_taken(request)
        return ack
    told = await heard
    assert isinstance(told, tuple)
    return told[0]


@on_a_loop
async def test_a_key_is_of_who_brings_it_and_of_nobody_else(tmp_path: Path) -> None:
    async with (
        secured(tmp_path) as broker,
        Client(*broker.addresses, user="root", password=PASSWORD) as root,
    ):
        await users(root, "alice", "mallory")
        accesses = [there(one) for one in broker.accesses]

        async def are_known() -> bool:
            asked = [("topic.publish", ResourceKind.TOPIC, "orders")]
            return all(
                one.permissions.decide(who, *asked[0]).is_allowed
                for one in accesses
                for who in (ALICE, MALLORY)
            )

        await eventually(are_known)
        # Whoever guesses her key, and is first, neither swallows her record nor keeps it out.
        for access in accesses:
            (guessed,) = await access.broker_for(MALLORY).publish(under_key(b"order-1", b"theirs"))
            assert not guessed.code
        same = under_key(b"order-2", b"pay")
        (first,) = await accesses[0].broker_for(MALLORY).publish(same)
        hers = [await taken(one.broker_for(ALICE), same) for one in accesses]
        assert [one.duplicate for one in hers] == [False] + [True] * (len(accesses) - 1)
        assert {one.base_offset for one in hers} == {hers[0].base_offset}
        assert hers[0].base_offset != first.base_offset
        (other,) = await accesses[-1].broker_for(ALICE).publish(under_key(b"order-1", b"hers"))
        assert (other.code, other.duplicate) == ("", False)
        (reused,) = await accesses[0].broker_for(ALICE).publish(under_key(b"order-1", b"changed"))
        assert reused.code == "KEY_REUSED"


@on_a_loop
async def test_a_named_producer_is_for_who_may_write_as_it(tmp_path: Path) -> None:
    async with (
        secured(tmp_path) as broker,
        Client(*broker.addresses, user="root", password=PASSWORD) as root,
    ):
        await users(root, "alice", "mallory")
        named = Grant(actions=("producer.write",), kind=ResourceKind.PRODUCER, name="billing")
        await root.create_grant(SubjectKind.USER, "alice", named)
        accesses = [there(one) for one in broker.accesses]

        async def is_granted() -> bool:
            decided = [
                one.permissions.decide(ALICE, "producer.write", ResourceKind.PRODUCER, "billing")
                for one in accesses
            ]
            return all(one.is_allowed for one in decided)

        await eventually(is_granted)
        mine = await accesses[0].broker_for(ALICE).open_producer("billing")
        assert mine.id >= NAMED_FROM
        for sequence, access in enumerate(accesses):
            # Also at a node that has not heard of the name when the batch comes.
            sent = publishing(batch(mine.id, mine.epoch, sequence))
            (ack,) = await access.broker_for(ALICE).publish(sent)
            assert not ack.code
            with pytest.raises(PermissionDenied):
                await access.broker_for(MALLORY).publish(
                    publishing(batch(mine.id, mine.epoch + 1, 0))
                )
            with pytest.raises(UnknownProducer):
                await access.broker_for(ALICE).publish(publishing(batch(NAMED_FROM + 999, 0, 0)))


@on_a_loop
async def test_a_user_made_anew_is_somebody_else_and_clients_notice_nothing(
    tmp_path: Path,
) -> None:
    async with (
        secured(tmp_path, nodes=1) as broker,
        Client(*broker.addresses, user="root", password=PASSWORD) as root,
    ):
        await users(root, "alice")
        access = there(broker.accesses[0])
        old = await access.broker_for(ALICE).open_producer()
        async with Client(*broker.addresses, user="alice", password=PASSWORD) as client:
            for number in range(5):
                await client.publish("orders", b"%d" % number)
        await root.delete_user("alice")
        await users(root, "alice")
        new = Principal(name="alice", proof=Proof.PASSWORD, roles=("another",))
        with pytest.raises(PermissionDenied):
            await access.broker_for(new).publish(publishing(batch(old.id, old.epoch, 0)))


@on_a_loop
async def test_numbers_from_before_there_were_users_stay_usable(tmp_path: Path) -> None:
    async with (
        secured(tmp_path, nodes=1) as broker,
        Client(*broker.addresses, user="root", password=PASSWORD) as root,
    ):
        await users(root, "alice")
        alice = there(broker.accesses[0]).broker_for(ALICE)
        (ack,) = await alice.publish(publishing(batch(7, 0, 0)))
        assert not ack.code


@on_a_loop
async def test_names_of_series_and_of_the_cluster_are_no_names_of_producers(
    tmp_path: Path,
) -> None:
    async with (
        in_process_broker(tmp_path, nodes=1, tick_ms=200) as broker,
        Client(*broker.addresses) as client,
    ):
        async with client.transaction("series") as transaction:
            await transaction.publish("orders", b"1")
        for name in ("t:series", "s:series", "angarium.dlq/1/2/x"):
            with pytest.raises(InvalidArgument, match="a producer's name does not begin with"):
                await client.open_producer(name)
        async with client.transaction("series") as transaction:
            await transaction.publish("orders", b"2")
        one, two = await client.open_producer(), await client.open_producer("tea")
        assert one.id < NAMED_FROM <= two.id
