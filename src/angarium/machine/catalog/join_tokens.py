"""Join tokens: each lets one node in, once, until its time is up.

Of a token only its digest is here. Whether it is still good is decided when the entry that brings
it is applied, so of two nodes with one token exactly one comes in, whichever nodes they ask. A node
that is known already, by the incarnation of its data, uses up nothing: it repeats its wish until it
hears the answer. With a certificate of another NAME than before it needs one all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import AlreadyExists, InvalidArgument, JoinRefused, NotFound
from angarium.ids import Micros, NodeId
from angarium.machine.catalog.values import NodeRegistered
from angarium.machine.outcomes import Done, Refused, limited, refused

if TYPE_CHECKING:
    from angarium.machine.catalog.commands import JoinTokenDelete, JoinTokenPut, NodeJoin
    from angarium.machine.catalog.nodes import Nodes

JOIN_TOKENS_MAX: Final = 1_000
"""Tokens that are good, or were used and would be. At the limit a new one is refused."""

DIGEST_BYTES: Final = 32
"""Of a token: SHA-256."""

UNKNOWN: Final = "the join token is unknown, was withdrawn, or has expired"


class JoinTokenRow(msgspec.Struct, frozen=True, array_like=True):
    """One token."""

    id: int
    digest: bytes
    created_at: Micros
    until: Micros
    used_by: NodeId | None = None
    """The node that it let in; it lets in nobody else."""
    issuer: str = ""
    """The user whose deletion withdraws it while it is unused; empty: it stays until it expires."""

    def __repr__(self) -> str:
        return f"JoinTokenRow({self.id}, until={self.until}, used_by={self.used_by})"


class JoinTokens:
    """The tokens that were issued, by digest, until their time is up."""

    __slots__ = ("by_digest", "next_id")

    def __init__(self) -> None:
        self.by_digest: dict[bytes, JoinTokenRow] = {}
        self.next_id = 1

    def put(self, command: JoinTokenPut) -> Done | Refused:
        """Issue a token; those whose time is up are forgotten."""
        if len(command.digest) != DIGEST_BYTES:
            return refused(InvalidArgument, f"a join token's digest has {DIGEST_BYTES} bytes")
        if command.until <= command.time:
            return refused(InvalidArgument, "a join token that has expired lets nobody in")
        if command.digest in self.by_digest:
            return refused(AlreadyExists, "another join token has the same digest")
        kept = {one.digest: one for one in self.by_digest.values() if one.until > command.time}
        if len(kept) >= JOIN_TOKENS_MAX:
            return limited("JOIN_TOKENS_MAX", f"there are {JOIN_TOKENS_MAX} join tokens")
        row = JoinTokenRow(
            self.next_id, command.digest, command.time, command.until, issuer=command.issuer
        )
        self.by_digest = {**kept, row.digest: row}
        self.next_id += 1
        return Done()

    def delete(self, command: JoinTokenDelete) -> Done | Refused:
        """Withdraw a token; the node that it let in stays."""
        for row in self.by_digest.values():
            if row.id == command.token:
                del self.by_digest[row.digest]
                return Done()
        return refused(NotFound, f"there is no join token {command.token}")

    def forget(self, issuer: str) -> None:
        """Withdraw the unused tokens of a user that is deleted."""
        self.by_digest = {
            digest: row
            for digest, row in self.by_digest.items()
            if row.issuer != issuer or row.used_by is not None
        }

    def join(self, command: NodeJoin, nodes: Nodes) -> NodeRegistered | Refused:
        """Let a node in that has a token, and use the token up."""
        registration = command.registration
        if nodes.knows(registration) and nodes.lacks_invitation(registration) is None:
            return nodes.register(registration)
        row = self.by_digest.get(command.digest)
        if row is None or row.until <= command.time:
            return refused(JoinRefused, UNKNOWN)
        if row.used_by is not None:
            return refused(JoinRefused, used_up(row.used_by))
        outcome = nodes.register(registration, invited=True)
        if isinstance(outcome, NodeRegistered):
            self.by_digest[row.digest] = msgspec.structs.replace(row, used_by=outcome.node)
        return outcome


def used_up(node: NodeId) -> str:
    """Say who had the token before."""
    return f"the join token was used already, by node {node}, and lets in nobody else"
