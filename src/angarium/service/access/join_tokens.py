"""Join tokens behind the contract: made here, kept in the catalog as digests.

The node that is asked makes the secret and tells it once; what goes into the log, and to other
nodes, lets nobody in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.api.access import IssuedJoinToken, JoinTokenInfo
from angarium.errors import InvalidArgument, NotFound, PreconditionFailed
from angarium.ids import JoinTokenId, Micros
from angarium.machine.catalog import JoinTokenDelete, JoinTokenPut
from angarium.node.release import JOIN_TOKENS_LEVEL
from angarium.security.tokens import new_join_token, token_digest
from angarium.service.makers import current_maker

if TYPE_CHECKING:
    from angarium.machine.catalog import JoinTokenRow
    from angarium.service.own_node import OwnNode

GOOD_FOR_S: Final = 3_600
"""How long a join token is good if nobody says otherwise."""

GOOD_FOR_S_MAX: Final = 7 * 86_400
"""The longest that one may be good: whoever finds it later finds nothing."""


class JoinTokenCalls:
    """Implements `api.access.JoinTokenBroker` on a node."""

    def __init__(self, node: OwnNode) -> None:
        self._node = node

    async def create_join_token(self, *, until: Micros | None = None) -> IssuedJoinToken:
        """Issue a token that lets one node in, once."""
        self._check_level()
        now = self._node.now()
        until = Micros(now + GOOD_FOR_S * 1_000_000) if until is None else until
        if until > now + GOOD_FOR_S_MAX * 1_000_000:
            raise InvalidArgument(
                f"a join token is good for {GOOD_FOR_S_MAX // 86_400} days at most"
            )
        secret = new_join_token().reveal()
        digest = token_digest(secret)
        await self.put(digest, until=until)
        row = self._node.catalog.join_token(digest)
        if row is None:
            raise NotFound("the join token was withdrawn as soon as it was made")
        return IssuedJoinToken(info=_info(row), secret=secret)

    async def put(self, digest: bytes, *, until: Micros | None = None) -> None:
        """Let the token in that has this digest."""
        self._check_level()
        until = Micros(self._node.now() + GOOD_FOR_S * 1_000_000) if until is None else until
        maker = current_maker()
        issuer = "" if maker is None else maker.user
        await self._node.catalog.submit(JoinTokenPut(digest=digest, until=until, issuer=issuer))

    async def delete_join_token(self, token: int) -> None:
        """Withdraw one."""
        self._check_level()
        await self._node.catalog.submit(JoinTokenDelete(token=token))

    async def list_join_tokens(self) -> tuple[JoinTokenInfo, ...]:
        """Return those that were issued and are not forgotten, the oldest first."""
        rows = sorted(self._node.catalog.join_tokens(), key=lambda row: row.id)
        return tuple(map(_info, rows))

    def _check_level(self) -> None:
        level = self._node.catalog.level
        if level < JOIN_TOKENS_LEVEL:
            raise PreconditionFailed(
                f"join tokens need feature level {JOIN_TOKENS_LEVEL}, the cluster works at {level}:"
                " upgrade every node, then `angarium cluster raise-level`"
            )


def _info(row: JoinTokenRow) -> JoinTokenInfo:
    return JoinTokenInfo(
        id=JoinTokenId(row.id), created_at=row.created_at, until=row.until, used_by=row.used_by
    )
