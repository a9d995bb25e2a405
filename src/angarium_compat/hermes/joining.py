"""Join, as the profile's nodes ask for it: answered only to callers with the token.

A node of the earlier broker cannot take part in this cluster's Raft, and one of ours comes in with
`angarium serve --join`. So what is answered is whether a node with that address is a member, which
is what scripts that call Join again and again want to know; the call itself adds no member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.security import Users
from angarium.wire.grpc import GrpcCode
from angarium_compat.listening import Refused

if TYPE_CHECKING:
    from angarium.api import Broker

_SCHEME: Final = "bearer "
_HOLDER: Final = "join"


class Joining:
    """Answers Join."""

    def __init__(self, broker: Broker, *, token: str) -> None:
        """Take the hash of the token; with an empty one nobody is answered."""
        self._broker = broker
        self._holders = Users({_HOLDER: token}) if token else None

    async def asked(self, address: str, authorization: str) -> str:
        """Return why the node at `address` is no member, empty if it is; `Refused` to strangers."""
        token = authorization[len(_SCHEME) :].strip()
        is_bearer = authorization[: len(_SCHEME)].lower() == _SCHEME
        if self._holders is None or not is_bearer or not await self._holders.knows(_HOLDER, token):
            raise Refused(
                GrpcCode.PERMISSION_DENIED,
                "Join needs `authorization: bearer TOKEN` with the token whose hash is"
                " compat.hermes_join_token",
            )
        nodes = (await self._broker.cluster_status()).nodes
        if any(address in one.addresses.values() for one in nodes):
            return ""
        return (
            f"no member of this cluster is at {address!r}; a node comes in with"
            " `angarium serve --join HOST:PORT`"
        )
