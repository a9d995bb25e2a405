"""Producers, topics and the cluster over a real connection."""

from __future__ import annotations

import grpc
from tests.component.doors.grpc.opened import opened, refusal
from tests.on_a_loop import run
from tests.unit.doors.grpc.memory_broker import CREATED_AT

from angarium.api import TopicConfig
from angarium.modes import DeliveryMode
from angarium.proto.v1 import broker_pb2 as pb


def test_a_producer_gets_an_identity_and_a_named_one_a_new_epoch_each_time() -> None:
    async def check() -> None:
        async with opened() as it:
            first = await it.stub.OpenProducer(pb.OpenProducerRequest())
            second = await it.stub.OpenProducer(pb.OpenProducerRequest())
            assert first.producer_id != second.producer_id
            named = [
                await it.stub.OpenProducer(pb.OpenProducerRequest(name="till")) for _ in range(2)
            ]
            assert named[0].producer_id == named[1].producer_id
            assert [one.epoch for one in named] == [0, 1]

    run(check())


def test_a_topic_is_made_as_it_was_asked_for() -> None:
    async def check() -> None:
        async with opened(topics={}) as it:
            config = pb.TopicConfig(
                replication=2,
                mode=pb.DELIVERY_MODE_EVENTUAL,
                retention_ms=1_000,
                retention_bytes=2_000,
                batch_bytes_max=3_000,
                expiry_ms=4_000,
                retention_groups=True,
                compact=True,
                tombstone_ms=5_000,
                dirty_percent=20,
                placement=pb.PLACEMENT_HOMED,
                regions=["eu", "us"],
                readers=["*"],
                key_order=pb.KEY_ORDER_GLOBAL,
                home_lost=pb.HOME_LOST_REFUSE,
            )
            answer = await it.stub.CreateTopic(
                pb.CreateTopicRequest(name="orders", partitions=4, config=config)
            )
            asked = TopicConfig(
                replication=2,
                mode=DeliveryMode.EVENTUAL,
                retention_ms=1_000,
                retention_bytes=2_000,
                batch_bytes_max=3_000,
                expiry_ms=4_000,
                retention_groups=True,
                cleanup="compact",
                tombstone_ms=5_000,
                dirty_percent=20,
                placement="homed",
                regions=("eu", "us"),
                readers=("*",),
                key_order="global",
                home_lost="refuse",
            )
            assert it.broker.calls == [("create_topic", "orders", 4, asked)]
            assert (answer.topic.id, answer.topic.name) == (1, "orders")
            assert answer.topic.config == config
            assert answer.topic.created_at_us == CREATED_AT
            one, _, three, _ = answer.topic.partitions
            assert (one.number, list(one.replicas), one.leader) == (0, [1, 2, 3], 1)
            assert (one.start_offset, one.end_offset) == (0, 0)
            assert list(one.in_sync.ids) == [1, 3]
            assert (one.trouble, three.trouble) == ("", "it has 1 of 3 replicas")
            # Where the answering node does not know, it does not pretend to.
            assert not any(
                three.HasField(name) for name in ("leader", "start_offset", "end_offset", "in_sync")
            )

    run(check())


def test_what_is_not_chosen_about_a_topic_has_its_default() -> None:
    async def check() -> None:
        async with opened(topics={}) as it:
            await it.stub.CreateTopic(pb.CreateTopicRequest(name="orders"))
            assert it.broker.calls == [("create_topic", "orders", 1, TopicConfig())]
            answer = await it.stub.DescribeTopic(pb.DescribeTopicRequest(name="orders"))
            assert not answer.topic.config.HasField("retention_ms")
            assert answer.topic.config.mode == pb.DELIVERY_MODE_CONSISTENT

    run(check())


def test_a_topic_is_altered_in_what_was_named_only() -> None:
    async def check() -> None:
        async with opened(topics={"orders": 1}) as it:
            answer = await it.stub.AlterTopic(pb.AlterTopicRequest(name="orders", partitions=3))
            assert len(answer.topic.partitions) == 3
            config = pb.TopicConfig(retention_ms=5)
            answer = await it.stub.AlterTopic(pb.AlterTopicRequest(name="orders", config=config))
            assert answer.topic.config.retention_ms == 5
            assert it.broker.calls[1:] == [
                ("alter_topic", "orders", 3, None),
                ("alter_topic", "orders", None, TopicConfig(retention_ms=5)),
            ]

    run(check())


def test_new_partitions_are_used_at_once_by_the_door_through_which_they_were_asked_for() -> None:
    async def check() -> None:
        async with opened(topics={"orders": 1}) as it:
            request = pb.PublishRequest(topic="orders", record=pb.NewRecord(value=b"v"))
            assert (await it.stub.Publish(request)).ack.partition == 0
            await it.stub.AlterTopic(pb.AlterTopicRequest(name="orders", partitions=3))
            found = {(await it.stub.Publish(request)).ack.partition for _ in range(3)}
            assert found == {0, 1, 2}

    run(check())


def test_topics_are_listed_and_a_deleted_one_is_gone() -> None:
    async def check() -> None:
        async with opened(topics={"orders": 1, "invoices": 2}) as it:
            answer = await it.stub.ListTopics(pb.ListTopicsRequest())
            assert [one.name for one in answer.topics] == ["invoices", "orders"]
            await it.stub.DeleteTopic(pb.DeleteTopicRequest(name="orders"))
            answer = await it.stub.ListTopics(pb.ListTopicsRequest())
            assert [one.name for one in answer.topics] == ["invoices"]
            for call in (
                it.stub.DeleteTopic(pb.DeleteTopicRequest(name="orders")),
                it.stub.DescribeTopic(pb.DescribeTopicRequest(name="orders")),
                it.stub.AlterTopic(pb.AlterTopicRequest(name="orders", partitions=2)),
            ):
                assert (await refusal(call)).status is grpc.StatusCode.NOT_FOUND

    run(check())


def test_a_taken_name_and_a_senseless_one_are_refused() -> None:
    async def check() -> None:
        async with opened() as it:
            refused = await refusal(it.stub.CreateTopic(pb.CreateTopicRequest(name="orders")))
            assert refused.status is grpc.StatusCode.ALREADY_EXISTS
            for name in ("", "../up", "a\x00b", "💥" * 5_000):
                refused = await refusal(it.stub.CreateTopic(pb.CreateTopicRequest(name=name)))
                assert refused.code == "INVALID_ARGUMENT"
            config = pb.TopicConfig(mode=44)  # type: ignore[arg-type]
            refused = await refusal(
                it.stub.CreateTopic(pb.CreateTopicRequest(name="other", config=config))
            )
            assert refused.code == "INVALID_ARGUMENT"

    run(check())


def test_the_cluster_is_shown_as_the_broker_sees_it() -> None:
    async def check() -> None:
        async with opened() as it:
            answer = await it.stub.GetClusterStatus(pb.GetClusterStatusRequest())
            assert (answer.cluster_id, answer.node, answer.catalog_leader) == ("c1", 1, 2)
            assert (answer.catalog_index, answer.topics, answer.partitions) == (41, 1, 4)
            assert (answer.feature_level, answer.version) == (1, "0.1.0")
            assert [node.id for node in answer.nodes] == [1, 2, 3]
            last = answer.nodes[2]
            assert dict(last.addresses) == {"wire": "10.0.0.3:7400", "grpc": "10.0.0.3:7401"}
            assert (last.region, last.zone, last.host) == ("eu", "z3", "h3")
            assert (last.draining, last.alive, last.leads, last.replicas) == (True, False, 3, 3)
            assert last.level_max == 4
            assert list(answer.catalog_in_sync.ids) == [2]

    run(check())


def test_nodes_are_drained_and_removed_and_leaders_moved() -> None:
    async def check() -> None:
        async with opened() as it:
            it.broker.calls.clear()
            await it.stub.DrainNode(pb.DrainNodeRequest(node=2))
            await it.stub.DrainNode(pb.DrainNodeRequest(node=2, undo=True))
            await it.stub.RemoveNode(pb.RemoveNodeRequest(node=3))
            await it.stub.TransferLeader(
                pb.TransferLeaderRequest(topic="orders", partition=1, to=2)
            )
            assert it.broker.calls == [
                ("drain_node", 2, True),
                ("drain_node", 2, False),
                ("remove_node", 3),
                ("transfer_leader", "orders", 1, 2),
            ]
            refused = await refusal(
                it.stub.TransferLeader(pb.TransferLeaderRequest(topic="orders", partition=-1, to=2))
            )
            assert refused.code == "INVALID_ARGUMENT"

    run(check())


def test_the_feature_level_is_raised_to_what_was_asked_for_or_to_what_all_know() -> None:
    async def check() -> None:
        async with opened() as it:
            assert (await it.stub.RaiseLevel(pb.RaiseLevelRequest(level=5))).level == 5
            assert (await it.stub.RaiseLevel(pb.RaiseLevelRequest())).level == 2
            assert it.broker.calls[1:] == [("raise_level", 5), ("raise_level", None)]

    run(check())
