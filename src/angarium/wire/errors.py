"""What can go wrong between two processes, and how much is known then.

Two things matter to a caller: did the request leave, and may it have taken effect? `Unreachable`
is definite: nothing was sent. `ConnectionLost` and `DeadlineExceeded` are outcomes that nobody
here can know, so they are `OutcomeUnknown`.
"""

from __future__ import annotations

from angarium.errors import AngariumError, Fault, OutcomeUnknown


class WireError(AngariumError):
    """Something about the connection itself, not about what was asked over it."""

    code = "WIRE"


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


class VersionMismatch(HandshakeRefused):
    """There is no wire version that both sides speak."""

    code = "VERSION_MISMATCH"


class WrongCluster(HandshakeRefused):
    """The two sides belong to different clusters."""

    code = "WRONG_CLUSTER"


class WrongNode(HandshakeRefused):
    """Another node than the expected one answers at this address."""

    code = "WRONG_NODE"


class UnsupportedOperation(WireError):
    """The peer does not serve this operation, or not to somebody in our role."""

    code = "UNSUPPORTED_OPERATION"
    fault = Fault.CALLER


class Unreachable(WireError):
    """There is no open connection to the peer. Nothing was sent; trying again is safe."""

    code = "UNREACHABLE"
    retriable = True


class StillJoining(Unreachable):
    """Who answers has asked to be let into the cluster and waits to hear under which id."""


class ConnectionLost(OutcomeUnknown):
    """The connection ended while something was under way on it."""

    code = "CONNECTION_LOST"


class DeadlineExceeded(OutcomeUnknown):
    """The answer did not come in time."""

    code = "DEADLINE_EXCEEDED"


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
