"""One Raft group, sans-IO: it decides what to do and leaves the doing to a driver.

Start reading at `node` (the replica as a driver sees it) and `ready` (what a driver has to do);
then `core` (what a replica knows) and `stepping` (which rule a message meets).
"""

from angarium.raft.conf_change import (
    Change,
    ChangeKind,
    ConfChange,
    Transition,
    decode_conf_change,
    encode_conf_change,
)
from angarium.raft.config import ENTRY_OVERHEAD_BYTES, NO_LIMIT, Config
from angarium.raft.core import Role
from angarium.raft.errors import (
    Compacted,
    ConfChangeFault,
    Contradicted,
    InvalidConfChange,
    LocalMessage,
    LogContradiction,
    ProposalDropped,
    RaftError,
    SnapshotTemporarilyUnavailable,
    Unavailable,
    UncommittedLimit,
    UnknownPeer,
)
from angarium.raft.messages import (
    APPEND_THREAD,
    APPLY_THREAD,
    ConfState,
    Entry,
    EntryKind,
    HardState,
    Message,
    MessageKind,
    Snapshot,
)
from angarium.raft.node import RaftNode
from angarium.raft.progress import ProgressState
from angarium.raft.read_only import ReadState
from angarium.raft.ready import Ready, SoftState
from angarium.raft.status import ProgressView, Status
from angarium.raft.storage import MemoryStorage, Storage, within_bytes

__all__ = [
    "APPEND_THREAD",
    "APPLY_THREAD",
    "ENTRY_OVERHEAD_BYTES",
    "NO_LIMIT",
    "Change",
    "ChangeKind",
    "Compacted",
    "ConfChange",
    "ConfChangeFault",
    "ConfState",
    "Config",
    "Contradicted",
    "Entry",
    "EntryKind",
    "HardState",
    "InvalidConfChange",
    "LocalMessage",
    "LogContradiction",
    "MemoryStorage",
    "Message",
    "MessageKind",
    "ProgressState",
    "ProgressView",
    "ProposalDropped",
    "RaftError",
    "RaftNode",
    "ReadState",
    "Ready",
    "Role",
    "Snapshot",
    "SnapshotTemporarilyUnavailable",
    "SoftState",
    "Status",
    "Storage",
    "Transition",
    "Unavailable",
    "UncommittedLimit",
    "UnknownPeer",
    "decode_conf_change",
    "encode_conf_change",
    "within_bytes",
]
