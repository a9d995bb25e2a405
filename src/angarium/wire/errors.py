"""What can go wrong between two processes, and how much is known then.

Two things matter to a caller: did the request leave, and may it have taken effect? `Unreachable`
is definite: nothing was sent. `ConnectionLost` and `DeadlineExceeded` are outcomes that nobody
here can know, so they are `OutcomeUnknown`.
"""

from __future__ import annotations

from angarium.errors import (
    AngariumError,
    ConnectionLost,
    DeadlineExceeded,
    Fault,
    Unreachable,
    WireError,
)

__all__ = [
    "AddressDisputed",
    "CertificateRefused",
    "ClosedAfterHandshake",
    "ClusterSucceeded",
    "ConnectionLost",
    "DeadlineExceeded",
    "FrameTooLarge",
    "HandshakeRefused",
    "InvalidFrame",
    "NodeIsAlive",
    "NodeRemoved",
    "NotRegistered",
    "RemoteError",
    "StillJoining",
    "StreamCancelled",
    "TlsMismatch",
    "Unreachable",
    "UnsupportedOperation",
    "VersionMismatch",
    "WireError",
    "WrongCluster",
    "WrongNode",
]


class InvalidFrame(WireError):
    """The peer's bytes are no frame of ours, or one that makes no sense here.

    The connection is closed: after one such frame nothing that follows can be trusted.
    """

    code = "INVALID_FRAME"
    fault = Fault.CALLER


class FrameTooLarge(InvalidFrame):
    """The peer announced more bytes than this side takes; not one of them was allocated."""

    code = "FRAME_TOO_LARGE"


class HandshakeRefused(WireError):
    """The two sides do not fit together; the message says what to change."""

    code = "HANDSHAKE_REFUSED"
    fault = Fault.CALLER


class TlsMismatch(HandshakeRefused):
    """One side speaks TLS, and the other does not."""

    code = "TLS_MISMATCH"


class CertificateRefused(HandshakeRefused):
    """One side does not believe the other's certificate, or asks for one and gets none."""

    code = "CERTIFICATE_REFUSED"


class ClosedAfterHandshake(Unreachable):
    """Somebody spoke TLS and left without a word: a refusal, or a process that ends."""


class VersionMismatch(HandshakeRefused):
    """There is no wire version that both sides speak."""

    code = "VERSION_MISMATCH"


class WrongCluster(HandshakeRefused):
    """The two sides belong to different clusters."""

    code = "WRONG_CLUSTER"


class ClusterSucceeded(WrongCluster):
    """The cluster went on under another id, without the node that is refused; it must end."""

    code = "CLUSTER_SUCCEEDED"

    def __init__(self, message: str, *, former: str = "") -> None:
        super().__init__(message)
        self.former = former
        """The id that the refused one still has: both sides read this."""


class WrongNode(HandshakeRefused):
    """Another node than the expected one answers at this address."""

    code = "WRONG_NODE"


class NodeRemoved(HandshakeRefused):
    """The node does not belong to its cluster any more, or not with these data; it must end."""

    code = "NODE_REMOVED"


class RolledBack(HandshakeRefused):
    """The node's log ends before where it was durable: its data are an older copy; it must end."""

    code = "ROLLED_BACK"


class NodeIsAlive(HandshakeRefused):
    """Somebody would stand in the place of a node that is there; `address` says where, if known."""

    code = "NODE_IS_ALIVE"

    def __init__(self, message: str, *, address: str = "") -> None:
        super().__init__(message)
        self.address = address


class AddressDisputed(HandshakeRefused):
    """A node that answers does not go by the addresses that it is to be registered with."""

    code = "ADDRESS_DISPUTED"


class UnsupportedOperation(WireError):
    """The peer does not serve this operation, or not to somebody in our role."""

    code = "UNSUPPORTED_OPERATION"
    fault = Fault.CALLER


class NotRegistered(Unreachable):
    """Who answers does not know the caller as a node of its cluster, or not yet."""

    code = "NOT_REGISTERED"


class StillJoining(Unreachable):
    """Who answers has asked to be let into the cluster and waits to hear under which id."""


class StreamCancelled(WireError):
    """The other side no longer wants this stream."""

    code = "STREAM_CANCELLED"
    fault = Fault.CALLER


class RemoteError(AngariumError):
    """An error whose code this version does not know, as its sender described it."""

    def __init__(self, message: str, *, code: str, retriable: bool, fault: Fault) -> None:
        super().__init__(message)
        # The root declares these per class; here the sender's word counts, for each instance.
        self.__dict__.update(code=code, retriable=retriable, fault=fault)
