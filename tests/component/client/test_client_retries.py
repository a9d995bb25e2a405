"""Publishing while things go wrong: every record once, in order, or a truthful error."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.component.client.fake_faults import delay, drop_after, drop_before, never_answer, refuse
from tests.component.client.fake_partition import Partition
from tests.component.client.harness import talking
from tests.on_a_loop import eventually

from angarium.batch import Batch
from angarium.client import Client
from angarium.client.calls import Calls
from angarium.client.settings import ClientSettings
from angarium.client.waiting import Waiting
from angarium.errors import (
    DiskFull,
    InvalidBatch,
    LimitExceeded,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    ProducerFenced,
    QuotaExceeded,
    SequenceGap,
    TooLarge,
    UnknownProducer,
    Unreachable,
)
from angarium.modes import DeliveryMode
from angarium.retrying import Backoff
from angarium.wire.operations import AlterTopicHeader, Operation

if TYPE_CHECKING:
    from tests.component.client.fake_broker import Node
    from tests.component.client.fake_faults import Fault
    from tests.component.wire.running import Runner

    from angarium.client.routes import Routes
    from angarium.wire import Connection, Request

PUBLISH = Operation.PUBLISH


def test_a_hint_leads_straight_to_the_leader(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3) as (cluster, client):
            cluster.forwards = False
            await client.publish("t", b"1")
            cluster.topics["t"].partitions[0].leader = 3
            before = [node.requests.count(PUBLISH) for node in cluster.nodes]
            await client.publish("t", b"2")
            after = [node.requests.count(PUBLISH) for node in cluster.nodes]
            assert [b - a for a, b in zip(before, after, strict=True)] == [1, 0, 1]
            assert cluster.topics["t"].partitions[0].values() == [b"1", b"2"]

    run(main())


def test_an_attempt_that_time_cuts_short_does_not_hide_what_an_earlier_one_met(
    run: Runner,
) -> None:
    """CI met it: nobody listened, and the second attempt began with a few milliseconds left."""

    class RefusedAndThenSilent:
        attempts = 0

        async def any_connection(self) -> Connection:
            self.attempts += 1
            if self.attempts > 1:
                await asyncio.Event().wait()
            raise Unreachable("no node can be reached at 127.0.0.1:1")

    async def main() -> None:
        routes = RefusedAndThenSilent()
        settings = ClientSettings(request_timeout_s=0.3, backoff=Backoff(first_s=0.01))
        calls = Calls(cast("Routes", routes), settings, Waiting())
        with pytest.raises(Unreachable, match="no node can be reached at"):
            await calls.ask(Operation.DESCRIBE_TOPIC)
        assert routes.attempts == 2

    run(main())


def test_without_a_known_leader_any_node_forwards(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3) as (cluster, client):
            partition = cluster.topics["t"].partitions[0]
            info = await client.describe_topic("t")
            client._reach.routes.learn_leader("t", 0, None)
            for number in range(20):
                assert (await client.publish("t", b"")).offset == number
            assert info.partitions[0].leader == partition.leader
            await eventually(lambda: client._reach.routes.leader_of("t", 0) == 1)

    run(main())


def test_an_election_is_waited_for(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3) as (cluster, client):
            partition = cluster.topics["t"].partitions[0]
            await client.publish("t", b"1")
            partition.leader = None
            waiting = asyncio.create_task(client.publish("t", b"2"))
            asked = sum(node.requests.count(PUBLISH) for node in cluster.nodes)
            await eventually(
                lambda: sum(node.requests.count(PUBLISH) for node in cluster.nodes) > asked + 3
            )
            partition.leader = 2
            assert (await waiting).offset == 1

    run(main())


REFUSALS = 7
"""So many in a row, each at once, as while a leader is elected."""


def test_refusals_do_not_make_a_publisher_wait_longer_for_an_answer_that_is_lost(
    run: Runner,
) -> None:
    """Nodes came and went: after some quick refusals one lost answer took all of 30 s."""

    async def main() -> None:
        async with talking(attempt_timeout_s=0.2) as (cluster, client):
            elected = [refuse(NotLeader("nobody leads yet"))] * REFUSALS
            cluster.plan(PUBLISH, *elected, never_answer)
            async with asyncio.timeout(8):  # with each refusal it was twice as long: 12.8 s
                assert (await client.publish("t", b"1")).offset == 0

    run(main())


def test_refusals_do_not_make_a_caller_wait_longer_for_an_answer_that_is_lost(
    run: Runner,
) -> None:
    async def main() -> None:
        async with talking(attempt_timeout_s=0.2) as (cluster, client):
            busy = [refuse(Unreachable("it is starting"))] * REFUSALS
            cluster.plan(Operation.DESCRIBE_TOPIC, *busy, never_answer)
            async with asyncio.timeout(8):
                assert (await client.describe_topic("t")).name == "t"

    run(main())


def test_a_caller_waits_longer_each_time_that_the_time_was_too_short(run: Runner) -> None:
    async def main() -> None:
        async with talking(attempt_timeout_s=0.1) as (cluster, client):
            slow = delay(0.6)  # it is answered once an attempt has 0.8 s
            cluster.plan(PUBLISH, *[slow] * 20)
            assert (await client.publish("t", b"1")).offset == 0
            cluster.plan(Operation.DESCRIBE_TOPIC, *[slow] * 20)
            assert (await client.describe_topic("t")).name == "t"

    run(main())


@pytest.mark.parametrize("fault", [drop_before, drop_after])
def test_a_lost_connection_neither_loses_nor_repeats_a_record(run: Runner, fault: Fault) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.plan(PUBLISH, None, fault, fault, fault)
            receipts = [await client.publish("t", b"%d" % number) for number in range(5)]
            assert [receipt.offset for receipt in receipts] == list(range(5))
            values = cluster.topics["t"].partitions[0].values()
            assert values == [b"%d" % number for number in range(5)]

    run(main())


def test_several_batches_on_their_way_survive_a_lost_connection_in_order(run: Runner) -> None:
    async def main() -> None:
        async with talking(batch_bytes=500) as (cluster, client):
            await client.publish("t", b"first")
            cluster.plan(PUBLISH, drop_after, drop_before, None, drop_before, drop_after, None)
            for number in range(100):
                client.publish_nowait("t", b"%03d" % number * 10)
            await client.flush()
            values = cluster.topics["t"].partitions[0].values()
            assert values == [b"first", *(b"%03d" % number * 10 for number in range(100))]

    run(main())


def test_a_node_that_does_not_answer_is_asked_again(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2, attempt_timeout_s=0.05) as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(PUBLISH, never_answer, None)
            assert (await client.publish("t", b"1")).offset == 1
            assert cluster.topics["t"].partitions[0].values() == [b"0", b"1"]

    run(main())


def test_what_cannot_be_repeated_is_waited_for_as_long_as_any_call_may_take(run: Runner) -> None:
    async def main() -> None:
        # An attempt is over after 50 ms, and nothing follows it: a busy node made the topic, and
        # the caller was told that nobody knows.
        async with talking(attempt_timeout_s=0.05) as (cluster, client):
            cluster.plan(Operation.CREATE_TOPIC, delay(0.2))
            assert (await client.create_topic("slow")).name == "slow"
            assert cluster.nodes[0].requests.count(Operation.CREATE_TOPIC) == 1

    run(main())


def test_a_late_answer_does_no_harm(run: Runner) -> None:
    async def main() -> None:
        async with talking(attempt_timeout_s=0.05) as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(PUBLISH, delay(0.1), delay(0.08))
            assert (await client.publish("t", b"1")).offset == 1
            assert (await client.publish("t", b"2")).offset == 2
            assert cluster.topics["t"].partitions[0].values() == [b"0", b"1", b"2"]

    run(main())


@pytest.mark.parametrize(
    "error",
    [DiskFull("full"), LimitExceeded("gather_bytes_max", "busy"), NotLeader(), NotFound("not yet")],
    ids=lambda error: type(error).__name__,
)
def test_what_may_pass_is_repeated(run: Runner, error: DiskFull) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.plan(PUBLISH, refuse(error), refuse(error), None)
            assert (await client.publish("t", b"x")).offset == 0

    run(main())


def test_what_no_waiting_makes_smaller_is_not_repeated(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            cluster.plan(PUBLISH, refuse(TooLarge("some_bytes_max", "5 where 4 is the most")))
            with pytest.raises(TooLarge, match="some_bytes_max") as refused:
                await client.publish("t", b"x")
            assert (refused.value.limit, refused.value.retriable) == ("some_bytes_max", False)
            assert cluster.nodes[0].requests.count(PUBLISH) == 1
            assert (await client.publish("t", b"y")).offset == 0

    run(main())


def test_at_the_deadline_a_refusal_is_told_as_it_was(run: Runner) -> None:
    async def main() -> None:
        # It is to wait when the deadline comes, and not for an answer: that would be unknown.
        patient = Backoff(first_s=4.0, longest_s=4.0, jitter=0)
        async with talking(publish_timeout_s=3.0, backoff=patient) as (cluster, client):
            cluster.plan(PUBLISH, *[refuse(DiskFull("full"))] * 20_000)
            with pytest.raises(DiskFull):
                await client.publish("t", b"x")
            cluster.plans.clear()
            assert (await client.publish("t", b"y")).offset == 0
            assert client.buffered_bytes == 0

    run(main())


def test_at_the_deadline_an_unknown_outcome_is_called_unknown(run: Runner) -> None:
    async def main() -> None:
        async with talking(publish_timeout_s=2.0, attempt_timeout_s=0.2) as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(PUBLISH, *[never_answer] * 100)
            with pytest.raises(OutcomeUnknown, match="may or may not be stored"):
                await client.publish("t", b"x")
            cluster.plans.clear()
            # The next one goes on under another identity: the old numbers are in doubt.
            assert (await client.publish("t", b"y")).offset == 1
            first, second = map(Batch.trusted, cluster.topics["t"].partitions[0].batches)
            assert first.producer_id != second.producer_id

    run(main())


def test_a_refused_batch_does_not_hold_up_those_behind_it(run: Runner) -> None:
    async def main() -> None:
        async with talking(batch_bytes=200) as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(PUBLISH, refuse(InvalidBatch("no")), None)
            jobs = [asyncio.create_task(client.publish("t", bytes([at]) * 300)) for at in range(8)]
            outcomes = await asyncio.gather(*jobs, return_exceptions=True)
            assert isinstance(outcomes[0], InvalidBatch)
            assert [outcome.offset for outcome in outcomes[1:]] == list(range(1, 8))  # type: ignore[union-attr]
            values = cluster.topics["t"].partitions[0].values()
            assert values == [b"0", *(bytes([at]) * 300 for at in range(1, 8))]

    run(main())


def test_a_batch_that_comes_too_early_waits_for_the_one_before(run: Runner) -> None:
    async def main() -> None:
        async with talking(batch_bytes=200) as (cluster, client):
            await client.publish("t", b"0")
            # The first of several batches is held up; those behind it overtake it.
            cluster.plan(PUBLISH, delay(0.05), None)
            await asyncio.gather(*(client.publish("t", bytes([at]) * 300) for at in range(8)))
            values = cluster.topics["t"].partitions[0].values()
            assert values == [b"0", *(bytes([at]) * 300 for at in range(8))]
            assert (
                len(
                    {
                        Batch.trusted(one).producer_id
                        for one in cluster.topics["t"].partitions[0].batches
                    }
                )
                == 1
            )

    run(main())


def test_a_stale_leaders_refusal_is_not_taken_for_a_loss(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=2) as (cluster, client):
            await client.publish("t", b"0", mode=DeliveryMode.EVENTUAL)
            cluster.plan(PUBLISH, drop_after, *[refuse(SequenceGap("expected 0"))] * 6)
            assert (await client.publish("t", b"1")).offset == 1
            assert cluster.topics["t"].partitions[0].values() == [b"0", b"1"]
            assert client.lost_records == 0

    run(main())


def test_a_forgotten_producer_takes_a_new_identity(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(PUBLISH, refuse(UnknownProducer("who?")))
            await client.publish("t", b"1")
            first, second = map(Batch.trusted, cluster.topics["t"].partitions[0].batches)
            assert first.producer_id != second.producer_id
            assert second.first_sequence == 0

    run(main())


def test_a_named_producer_that_was_taken_over_stops(run: Runner) -> None:
    async def main() -> None:
        async with talking(producer="billing") as (cluster, client):
            await client.publish("t", b"0")
            async with Client(*cluster.addresses, producer="billing") as other:
                await other.publish("t", b"1")
            for _ in range(2):
                with pytest.raises(ProducerFenced):
                    await client.publish("t", b"2")
            assert cluster.topics["t"].partitions[0].values() == [b"0", b"1"]

    run(main())


def test_performance_records_are_not_repeated_when_their_outcome_is_unknown(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            mode = DeliveryMode.PERFORMANCE
            await client.publish("t", b"", mode=mode)
            cluster.plan(PUBLISH, drop_before)
            with pytest.raises(OutcomeUnknown):
                await client.publish("t", b"", mode=mode)
            cluster.plan(PUBLISH, refuse(NotLeader()))
            await client.publish("t", b"", mode=mode)

    run(main())


def test_without_idempotence_an_unknown_outcome_is_told_at_once(run: Runner) -> None:
    async def main() -> None:
        async with talking(idempotent=False) as (cluster, client):
            await client.publish("t", b"")
            cluster.plan(PUBLISH, drop_before)
            with pytest.raises(OutcomeUnknown):
                await client.publish("t", b"")
            cluster.plan(PUBLISH, refuse(DiskFull("full")))
            assert (await client.publish("t", b"")).offset == 1

    run(main())


def test_a_topic_deleted_meanwhile_is_not_found(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (cluster, client):
            await client.publish("t", b"")
            del cluster.topics["t"]
            with pytest.raises(NotFound):
                await client.publish("t", b"")
            cluster.add_topic("t")
            assert (await client.publish("t", b"again")).offset == 0

    run(main())


def test_a_dead_leaders_records_go_to_the_next_one(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3, partitions=3) as (cluster, client):
            partitions = cluster.topics["t"].partitions

            async def worker(partition: int) -> None:
                for number in range(100):
                    value = b"%d" % number
                    receipt = await client.publish("t", value, partition=partition)
                    assert receipt.offset == number

            work = [asyncio.create_task(worker(at)) for at in range(3)]
            await eventually(lambda: all(one.end > 20 for one in partitions))
            await cluster.node(2).stop()
            partitions[1].leader = 3
            await asyncio.gather(*work)
            for one in partitions:
                assert one.values() == [b"%d" % number for number in range(100)]

    run(main())


def misfortune(chance: random.Random) -> Any:
    """Return a fault that does something else, or nothing, each time."""

    async def fault(node: Node, request: Request) -> bool:
        kind = chance.random()
        if kind < 0.10:
            return await (drop_before if kind < 0.05 else drop_after)(node, request)
        if kind < 0.15:
            raise DiskFull("full")
        if kind < 0.18:
            raise NotLeader(leader=chance.choice([None, 1, 2, 3]))
        if kind < 0.21:
            raise SequenceGap("so says a stale leader")
        if kind < 0.30:
            await asyncio.sleep(chance.random() * 0.08)
        elif kind < 0.32:
            chance.choice(node.cluster.topics["t"].partitions).leader = chance.choice([1, 2, 3])
        return False

    return fault


@pytest.mark.parametrize("seed", range(4))
def test_whatever_goes_wrong_each_record_is_stored_once_and_in_order(
    run: Runner, seed: int
) -> None:
    chance = random.Random(seed)

    async def worker(client: Client, name: int) -> None:
        for number in range(25):
            mode = chance.choice([DeliveryMode.CONSISTENT, DeliveryMode.EVENTUAL])
            value = b"%d %d " % (name, number) + bytes(chance.randrange(200))
            receipt = await client.publish("t", value, partition=name % 2, mode=mode)
            assert receipt.offset is not None

    async def main() -> None:
        async with talking(
            nodes=3, partitions=2, batch_bytes=300, attempt_timeout_s=0.05, publish_timeout_s=60
        ) as (cluster, client):
            cluster.forwards = bool(seed % 2)
            cluster.plan(PUBLISH, *[misfortune(chance)] * 10_000)
            await asyncio.gather(*(worker(client, name) for name in range(10)))
            for partition, one in enumerate(cluster.topics["t"].partitions):
                heads = [tuple(map(int, (value or b"").split()[:2])) for value in one.values()]
                assert len(heads) == len(set(heads)) == 125
                for name in range(partition, 10, 2):
                    assert [n for who, n in heads if who == name] == list(range(25))

    run(main())


def used_up(retry_after: float) -> Fault:
    return refuse(QuotaExceeded("bytes_in", "used up", retry_after=retry_after))


def test_who_is_told_when_to_come_again_comes_again_then(run: Runner) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with talking() as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(PUBLISH, used_up(0.3))
            began = loop.time()
            await client.publish("t", b"1")
            assert loop.time() - began >= 0.3
            cluster.plan(Operation.LIST_TOPICS, used_up(0.3), used_up(0.3))
            began = loop.time()
            await client.list_topics()
            assert loop.time() - began >= 0.6
            assert cluster.topics["t"].partitions[0].values() == [b"0", b"1"]

    run(main())


def test_nobody_waits_for_a_quota_longer_than_they_have(run: Runner) -> None:
    async def main() -> None:
        async with talking(request_timeout_s=2.0, publish_timeout_s=0.5) as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(Operation.LIST_TOPICS, used_up(1_000))
            with pytest.raises(QuotaExceeded):
                await client.list_topics()
            cluster.plan(PUBLISH, used_up(1_000))
            with pytest.raises(QuotaExceeded):
                await client.publish("t", b"1")
            await client.publish("t", b"2")
            assert cluster.topics["t"].partitions[0].values() == [b"0", b"2"]

    run(main())


def test_who_does_not_want_to_wait_for_a_quota_is_told_at_once(run: Runner) -> None:
    async def main() -> None:
        async with talking(waits_for_quota=False) as (cluster, client):
            await client.publish("t", b"0")
            cluster.plan(Operation.LIST_TOPICS, used_up(0.01))
            with pytest.raises(QuotaExceeded):
                await client.list_topics()
            cluster.plan(PUBLISH, used_up(0.01))
            with pytest.raises(QuotaExceeded):
                await client.publish("t", b"1")

    run(main())


async def alter_and_die(node: Node, request: Request) -> bool:
    """Add the partitions, and lose the connection before the answer."""
    header = request.read(AlterTopicHeader)
    topic = node.cluster.topic(header.name)
    while len(topic.partitions) < (header.partitions or 0):
        topic.partitions.append(Partition(leader=node.cluster.next_leader()))
    request.connection._abort()
    return True


def test_a_topic_is_altered_although_the_node_that_was_asked_dies(run: Runner) -> None:
    async def main() -> None:
        async with talking(nodes=3) as (cluster, client):
            for fault in (drop_before, alter_and_die):
                had = len(cluster.topics["t"].partitions)
                cluster.plan(Operation.ALTER_TOPIC, fault)
                info = await client.alter_topic("t", partitions=had + 1)
                assert len(info.partitions) == had + 1

    run(main())
