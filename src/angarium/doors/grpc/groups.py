"""Looking after groups: one call of the contract each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.api import Checkpoint, GroupConfig
from angarium.doors.grpc.group_values import settled_message, settlements_of
from angarium.doors.grpc.values import config_of, message_of, partition_of, start_of
from angarium.ids import Offset
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from angarium.api import GroupBroker
    from angarium.doors.grpc.calls import Context


class Groups:
    """The unary calls about groups."""

    def __init__(self, broker: GroupBroker) -> None:
        self._broker = broker

    async def settle(self, request: pb.SettleRequest, _: Context) -> pb.SettleResponse:
        """Settle records for a member."""
        settled = await self._broker.settle(
            request.group, request.member, settlements_of(request.settlements)
        )
        return pb.SettleResponse(settled=map(settled_message, settled))

    async def list_groups(self, _: pb.ListGroupsRequest, __: Context) -> pb.ListGroupsResponse:
        """Return all groups."""
        return pb.ListGroupsResponse(
            groups=[message_of(pb.GroupInfo, one) for one in await self._broker.list_groups()]
        )

    async def describe_group(
        self, request: pb.DescribeGroupRequest, _: Context
    ) -> pb.DescribeGroupResponse:
        """Return one group."""
        group = await self._broker.describe_group(request.group)
        return pb.DescribeGroupResponse(group=message_of(pb.GroupInfo, group))

    async def alter_group(self, request: pb.AlterGroupRequest, _: Context) -> pb.AlterGroupResponse:
        """Give a group other settings."""
        group = await self._broker.alter_group(
            request.group, config_of(GroupConfig, request.config)
        )
        return pb.AlterGroupResponse(group=message_of(pb.GroupInfo, group))

    async def seek_group(self, request: pb.SeekGroupRequest, _: Context) -> pb.SeekGroupResponse:
        """Move a group."""
        moved = await self._broker.seek_group(
            request.group,
            topic=request.topic if request.HasField("topic") else None,
            partition=partition_of(request.partition) if request.HasField("partition") else None,
            start=start_of(request.start),
            dry_run=request.dry_run,
        )
        return pb.SeekGroupResponse(
            moved=[message_of(pb.SeekGroupResponse.Moved, one) for one in moved]
        )

    async def pause_group(self, request: pb.PauseGroupRequest, _: Context) -> pb.PauseGroupResponse:
        """Hand nothing more out, or go on."""
        await self._broker.pause_group(request.group, paused=not request.undo)
        return pb.PauseGroupResponse()

    async def delete_group(
        self, request: pb.DeleteGroupRequest, _: Context
    ) -> pb.DeleteGroupResponse:
        """Forget a group."""
        topic = request.topic if request.HasField("topic") else None
        await self._broker.delete_group(request.group, topic=topic)
        return pb.DeleteGroupResponse()

    async def report_checkpoints(
        self, request: pb.ReportCheckpointsRequest, _: Context
    ) -> pb.ReportCheckpointsResponse:
        """Note how far a group has come."""
        checkpoints = [
            Checkpoint(one.topic, partition_of(one.partition), Offset(one.offset))
            for one in request.checkpoints
        ]
        await self._broker.report_checkpoints(request.group, checkpoints)
        return pb.ReportCheckpointsResponse()
