"""How one consumer's agent finds the leaders of its partitions, and stays in touch with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.service.groups.posts import LocalPost, RemotePost
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from angarium.ids import NodeId
    from angarium.lending.host import GroupHost
    from angarium.lending.ports import Membership
    from angarium.service.groups.attachment import Attachment
    from angarium.service.groups.posts import Post
    from angarium.service.own_node import OwnNode


class Reaching:
    """The nodes that lead for one consumer: one post at each, whatever it leads."""

    def __init__(self, node: OwnNode, host: GroupHost, membership: Membership) -> None:
        self._node = node
        self._host = host
        self._membership = membership
        self._posts: dict[NodeId, Post] = {}

    def leader_of(self, attachment: Attachment) -> NodeId:
        """Return who leads a partition, or who may; raises `NotLeader` or `Unreachable`."""
        node = self._node
        partition = node.catalog.partition(attachment.topic, attachment.partition)
        if partition.group in node.replicas.here:
            leader = node.leader_of(partition.group)
            if leader is None:
                raise node.quorum.no_leader(partition.group)
            return leader
        # Without a replica of its own a node asks one after the other; the wrong one says so.
        up = [one for one in partition.replicas if node.peers.is_up(one)]
        if not up:
            raise Unreachable(
                f"no replica of {attachment.topic} {attachment.partition} can be reached"
            )
        return up[attachment.failures % len(up)]

    def moved_to(self, attachment: Attachment) -> NodeId | None:
        """Return who leads an attachment by now, if that is another node than it is attached to."""
        if attachment.raft_group not in self._node.replicas.here:
            return None
        leader = self._node.leader_of(attachment.raft_group)
        return None if attachment.node in {None, leader} else leader

    def post(self, leader: NodeId) -> Post:
        """Return the way to a leader: this node itself, or a stream to another one."""
        post = self._posts.get(leader)
        if post is None:
            if leader == self._node.id:
                post = LocalPost(self._host, self._membership)
            else:
                connection = self._node.peers.link(leader).connection
                if connection is None:
                    raise Unreachable(f"node {leader} is not connected")
                post = RemotePost(
                    connection, self._membership, on_gone=lambda: self._gone(leader, post)
                )
            self._posts[leader] = post
        return post

    def close(self) -> None:
        """Let go of all of them."""
        for post in list(self._posts.values()):
            post.close()
        self._posts.clear()

    def _gone(self, leader: NodeId, post: Post | None) -> None:
        if self._posts.get(leader) is post:
            del self._posts[leader]
