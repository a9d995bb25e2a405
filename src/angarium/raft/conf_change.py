"""A change of membership as a value, and as the bytes of an entry.

A bare `Change` is one replica more or less (`EntryKind.CONF_CHANGE`). A `ConfChange` carries any
number of them (`EntryKind.CONF_CHANGE_V2`) and says how to get there; one without changes leaves
a joint configuration, and its bytes are empty, so that no bound on bytes can ever hold it back.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from angarium.ids import ReplicaId
from angarium.raft.errors import ConfChangeFault, InvalidConfChange
from angarium.raft.messages import EntryKind

if TYPE_CHECKING:
    from angarium.ids import Buffer
    from angarium.raft.messages import Entry


class ChangeKind(IntEnum):
    """What becomes of a replica."""

    ADD_VOTER = 0
    """A newcomer votes, or a learner is promoted."""
    REMOVE = 1
    UPDATE = 2
    """Nothing changes for Raft; the entry's context means something to the machine."""
    ADD_LEARNER = 3
    """A newcomer listens, or a voter is demoted."""


class Transition(IntEnum):
    """How a change is carried out."""

    AUTO = 0
    """In one step where there is one change, else through a joint configuration left by itself."""
    IMPLICIT = 1
    """Through a joint configuration, left by itself as soon as it is safe."""
    EXPLICIT = 2
    """Through a joint configuration that is left only when somebody proposes to."""


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One replica's change."""

    kind: ChangeKind
    replica: ReplicaId
    """0 stands for nobody: the change is ignored."""


class ConfChange(msgspec.Struct, frozen=True, array_like=True):
    """Changes that take effect together."""

    changes: tuple[Change, ...] = ()
    transition: Transition = Transition.AUTO
    context: bytes = b""
    """Whatever the proposer wants to tell the machines that apply it."""

    @property
    def leaves_joint(self) -> bool:
        """Whether this is the step out of a joint configuration."""
        return not self.changes and self.transition is Transition.AUTO

    @property
    def enters_joint(self) -> bool:
        """Whether this goes through a joint configuration."""
        return len(self.changes) > 1 or self.transition is not Transition.AUTO

    @property
    def auto_leave(self) -> bool:
        """Whether the joint configuration it enters is left without being asked."""
        return self.enters_joint and self.transition is not Transition.EXPLICIT


_encode = msgspec.msgpack.Encoder().encode
_decode_change = msgspec.msgpack.Decoder(Change).decode
_decode_conf_change = msgspec.msgpack.Decoder(ConfChange).decode


def encode_conf_change(change: Change | ConfChange) -> tuple[EntryKind, bytes]:
    """Return what an entry that carries `change` holds."""
    if isinstance(change, Change):
        return EntryKind.CONF_CHANGE, _encode(change)
    if change == ConfChange():
        return EntryKind.CONF_CHANGE_V2, b""
    return EntryKind.CONF_CHANGE_V2, _encode(change)


def decode_conf_change(entry: Entry) -> ConfChange:
    """Return the change that `entry` carries; raises `InvalidConfChange` for other bytes."""
    return decode_conf_change_data(entry.kind, entry.data)


def decode_conf_change_data(kind: EntryKind, data: Buffer) -> ConfChange:
    """Return the change in the `data` of an entry of this `kind`."""
    assert kind is not EntryKind.NORMAL, "only membership entries carry a membership change"
    try:
        if kind is EntryKind.CONF_CHANGE:
            return ConfChange(changes=(_decode_change(data),))
        return _decode_conf_change(data) if data else ConfChange()
    except msgspec.MsgspecError as error:
        raise InvalidConfChange(ConfChangeFault.MALFORMED, str(error)) from error
