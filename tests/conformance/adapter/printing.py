"""How the peer names and prints things.

The scripts of etcd-io/raft drive nodes by commands and compare what is printed. What is theirs is
in this folder: names of states and messages, the layout of what is printed, texts of errors, the
small cluster around the nodes. The core knows nothing of it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from angarium.ids import ReplicaId
from angarium.raft import (
    APPEND_THREAD,
    APPLY_THREAD,
    Change,
    ChangeKind,
    ConfChangeFault,
    ConfState,
    Entry,
    EntryKind,
    InvalidConfChange,
    Message,
    MessageKind,
    ProgressState,
    ProgressView,
    ProposalDropped,
    Ready,
    Role,
    Snapshot,
    Transition,
    UnknownPeer,
    decode_conf_change,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.errors import AngariumError

# --- names -----------------------------------------------------------------------------------

ROLES = {
    Role.FOLLOWER: "StateFollower",
    Role.CANDIDATE: "StateCandidate",
    Role.LEADER: "StateLeader",
    Role.PRE_CANDIDATE: "StatePreCandidate",
}

PROGRESS_STATES = {
    ProgressState.PROBE: "StateProbe",
    ProgressState.REPLICATE: "StateReplicate",
    ProgressState.SNAPSHOT: "StateSnapshot",
}

ENTRY_KINDS = {
    EntryKind.NORMAL: "EntryNormal",
    EntryKind.CONF_CHANGE: "EntryConfChange",
    EntryKind.CONF_CHANGE_V2: "EntryConfChangeV2",
}

MESSAGE_KINDS = {
    MessageKind.HUP: "MsgHup",
    MessageKind.BEAT: "MsgBeat",
    MessageKind.PROPOSE: "MsgProp",
    MessageKind.APPEND: "MsgApp",
    MessageKind.APPEND_RESPONSE: "MsgAppResp",
    MessageKind.HEARTBEAT: "MsgHeartbeat",
    MessageKind.HEARTBEAT_RESPONSE: "MsgHeartbeatResp",
    MessageKind.VOTE: "MsgVote",
    MessageKind.VOTE_RESPONSE: "MsgVoteResp",
    MessageKind.PRE_VOTE: "MsgPreVote",
    MessageKind.PRE_VOTE_RESPONSE: "MsgPreVoteResp",
    MessageKind.SNAPSHOT: "MsgSnap",
    MessageKind.SNAPSHOT_STATUS: "MsgSnapStatus",
    MessageKind.UNREACHABLE: "MsgUnreachable",
    MessageKind.CHECK_QUORUM: "MsgCheckQuorum",
    MessageKind.TRANSFER_LEADER: "MsgTransferLeader",
    MessageKind.TIMEOUT_NOW: "MsgTimeoutNow",
    MessageKind.READ_INDEX: "MsgReadIndex",
    MessageKind.READ_INDEX_RESPONSE: "MsgReadIndexResp",
    MessageKind.FORGET_LEADER: "MsgForgetLeader",
    MessageKind.STORAGE_APPEND: "MsgStorageAppend",
    MessageKind.STORAGE_APPEND_RESPONSE: "MsgStorageAppendResp",
    MessageKind.STORAGE_APPLY: "MsgStorageApply",
    MessageKind.STORAGE_APPLY_RESPONSE: "MsgStorageApplyResp",
}

CONF_CHANGE_TEXTS = {
    ConfChangeFault.NOT_JOINT: "can't leave a non-joint config",
    ConfChangeFault.ALREADY_JOINT: "config is already joint",
    ConfChangeFault.NOTHING_TO_JOIN: "can't make a zero-voter config joint",
    ConfChangeFault.SIMPLE_WHILE_JOINT: "can't apply simple config change in joint config",
    ConfChangeFault.SEVERAL_VOTERS: ("more than one voter changed without entering joint config"),
    ConfChangeFault.NO_VOTER_LEFT: "removed all voters",
}

LETTERS = {
    "v": ChangeKind.ADD_VOTER,
    "l": ChangeKind.ADD_LEARNER,
    "r": ChangeKind.REMOVE,
    "u": ChangeKind.UPDATE,
}
LETTER_OF = {kind: letter for letter, kind in LETTERS.items()}

TRANSITIONS = {
    "auto": Transition.AUTO,
    "implicit": Transition.IMPLICIT,
    "explicit": Transition.EXPLICIT,
}

LOG_LEVELS = ("DEBUG", "INFO", "WARN", "ERROR", "FATAL", "NONE")


def error_text(error: AngariumError) -> str:
    """Return how the peer words `error`."""
    match error:
        case ProposalDropped():
            return "raft proposal dropped"
        case UnknownPeer():
            return "raft: cannot step as peer not found"
        case InvalidConfChange():
            return CONF_CHANGE_TEXTS.get(error.reason, str(error))
    return str(error)


# --- printing --------------------------------------------------------------------------------


def describe_entry(entry: Entry) -> str:
    if entry.kind is EntryKind.NORMAL:
        text = json.dumps(bytes(entry.data).decode())
    else:
        text = describe_changes(decode_conf_change(entry).changes)
    return f"{entry.term}/{entry.index} {ENTRY_KINDS[entry.kind]} {text}".rstrip()


def describe_changes(changes: Sequence[Change]) -> str:
    return " ".join(f"{LETTER_OF[change.kind]}{change.replica}" for change in changes)


def describe_target(replica: ReplicaId) -> str:
    if replica == APPEND_THREAD:
        return "AppendThread"
    if replica == APPLY_THREAD:
        return "ApplyThread"
    return f"{replica:x}" if replica else "None"


def describe_snapshot(snapshot: Snapshot) -> str:
    state = snapshot.conf_state

    def ids(replicas: Sequence[ReplicaId]) -> str:
        return f"[{' '.join(map(str, replicas))}]"

    return (
        f"Index:{snapshot.index} Term:{snapshot.term} ConfState:Voters:{ids(state.voters)} "
        f"VotersOutgoing:{ids(state.voters_outgoing)} Learners:{ids(state.learners)} "
        f"LearnersNext:{ids(state.learners_next)} AutoLeave:{str(state.auto_leave).lower()}"
    )


def describe_message(m: Message, indent: str = "") -> str:
    text = (
        f"{indent}{describe_target(m.sender)}->{describe_target(m.to)} {MESSAGE_KINDS[m.kind]} "
        f"Term:{m.term} Log:{m.log_term}/{m.index}"
    )
    if m.reject:
        text += f" Rejected (Hint: {m.reject_hint})"
    if m.commit:
        text += f" Commit:{m.commit}"
    if m.vote:
        text += f" Vote:{m.vote}"
    if len(m.entries) == 1:
        text += f" Entries:[{describe_entry(m.entries[0])}]"
    elif m.entries:
        lines = "".join(f"\n{indent}  {describe_entry(entry)}" for entry in m.entries)
        text += f" Entries:[{lines}\n{indent}]"
    if m.snapshot is not None:
        text += f"\n{indent}  Snapshot: {describe_snapshot(m.snapshot)}"
    if m.responses:
        lines = "".join("\n" + describe_message(r, indent + "  ") for r in m.responses)
        text += f" Responses:[{lines}\n{indent}]"
    return text


def describe_ready(ready: Ready) -> str:
    lines = []
    if ready.soft_state is not None:
        soft = ready.soft_state
        lines.append(f"Lead:{soft.leader} State:{ROLES[soft.role]}")
    if ready.hard_state is not None:
        hard = ready.hard_state
        vote = f" Vote:{hard.vote}" if hard.vote else ""
        lines.append(f"HardState Term:{hard.term}{vote} Commit:{hard.commit}")
    if ready.read_states:
        states = " ".join(f"{{{r.index} {list(r.context)}}}" for r in ready.read_states)
        lines.append(f"ReadStates [{states}]")
    if ready.entries:
        lines += ["Entries:", *map(describe_entry, ready.entries)]
    if ready.snapshot is not None:
        lines.append(f"Snapshot {describe_snapshot(ready.snapshot)}")
    if ready.committed:
        lines += ["CommittedEntries:", *map(describe_entry, ready.committed)]
    if ready.messages:
        lines += ["Messages:", *map(describe_message, ready.messages)]
    if not lines:
        return "<empty Ready>"
    return "\n".join([f"Ready MustSync={str(ready.must_sync).lower()}:", *lines])


def describe_progress(replica: ReplicaId, view: ProgressView) -> str:
    text = f"{replica}: {PROGRESS_STATES[view.state]} match={view.match} next={view.next_index}"
    if view.is_learner:
        text += " learner"
    if view.is_paused:
        text += " paused"
    if view.pending_snapshot:
        text += f" pendingSnap={view.pending_snapshot}"
    if not view.recently_active:
        text += " inactive"
    if view.inflight_messages:
        full = "[full]" if view.window_is_full else ""
        text += f" inflight={view.inflight_messages}{full}"
    return text


def describe_config(state: ConfState) -> str:
    def ids(replicas: Sequence[ReplicaId]) -> str:
        return f"({' '.join(map(str, replicas))})"

    text = f"voters={ids(state.voters)}"
    if state.voters_outgoing:
        text += f"&&{ids(state.voters_outgoing)}"
    if state.learners:
        text += f" learners={ids(state.learners)}"
    if state.learners_next:
        text += f" learners_next={ids(state.learners_next)}"
    return text + " autoleave" * state.auto_leave


def without_log_lines(text: str) -> str:
    """Return `text` without lines of the peer's own log; nothing at all counts as `ok`."""
    lines = [line.rstrip() for line in text.splitlines()]
    levels = tuple(f"{level} " for level in LOG_LEVELS)
    kept = [line for line in lines if not line.lstrip().startswith(levels)]
    return "\n".join(kept).rstrip("\n") or "ok"


def parse_changes(text: str) -> tuple[Change, ...]:
    return tuple(Change(LETTERS[token[0]], ReplicaId(int(token[1:]))) for token in text.split())
