"""The peer's tables of quorums and of membership changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.adapter.printing import (
    describe_config,
    describe_progress,
    error_text,
    parse_changes,
)

from angarium.ids import Index, ReplicaId
from angarium.raft import NO_LIMIT, InvalidConfChange
from angarium.raft.membership import entered_joint, left_joint, simply_changed
from angarium.raft.quorum import UNBOUNDED, VoteResult, committed_index, vote_result
from angarium.raft.status import view_of
from angarium.raft.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.conformance.datadriven import Directive


def run_quorum_table(directive: Directive) -> str:
    """Return what a `committed` or `vote` directive prints."""
    voters = [ReplicaId(int(i)) for i in directive.options.get("cfg", ())]
    joint = directive.options.get("cfgj")
    outgoing = [ReplicaId(int(i)) for i in joint or () if i != "zero"]
    values = directive.options.get("idx" if directive.command == "committed" else "votes", ())
    given = dict(zip(dict.fromkeys(voters + outgoing), values, strict=True))
    if directive.command == "vote":
        votes = {voter: value == "y" for voter, value in given.items() if value != "_"}
        result = vote_result(set(voters), votes, outgoing=set(outgoing))
        assert result is vote_result(set(outgoing), votes, outgoing=set(voters)) or joint is None
        names = {VoteResult.WON: "Won", VoteResult.LOST: "Lost", VoteResult.PENDING: "Pending"}
        return f"Vote{names[result]}"
    acked = {voter: Index(int(value)) for voter, value in given.items() if value != "_"}
    index = committed_index(set(voters), acked, outgoing=set(outgoing))
    text = _describe_acks(sorted(given), acked)
    return f"{text}{'∞' if index == UNBOUNDED else index}"


def _describe_acks(voters: Sequence[ReplicaId], acked: Mapping[ReplicaId, Index]) -> str:
    if not voters:
        return "<empty majority quorum>"
    count = len(voters)
    lines = [" " * count + "    idx"]
    for voter in voters:
        index = acked.get(voter, 0)
        bar = sum(acked.get(other, 0) < index for other in voters)
        drawn = "x" * bar + ">" + " " * (count - bar) if voter in acked else "?" + " " * count
        lines.append(f"{drawn} {index:5d}    (id={voter})")
    return "\n".join(lines) + "\n"


class MembershipTable:
    """One file of `simple`, `enter-joint` and `leave-joint` directives."""

    def __init__(self) -> None:
        self._tracker = Tracker(inflight_messages_max=10, inflight_bytes_max=NO_LIMIT)
        self._last_index = Index(0)

    def run(self, directive: Directive) -> str:
        """Return what one directive prints."""
        last_index = self._last_index
        self._last_index = Index(last_index + 1)
        tracker = self._tracker
        changes = parse_changes(directive.input)
        try:
            match directive.command:
                case "simple":
                    membership = simply_changed(tracker.membership, changes)
                case "enter-joint":
                    auto_leave = directive.option("autoleave", "false") == "true"
                    membership = entered_joint(tracker.membership, changes, auto_leave=auto_leave)
                case "leave-joint":
                    if changes:
                        return "this command takes no input"
                    membership = left_joint(tracker.membership)
                case unknown:
                    raise NotImplementedError(unknown)
        except InvalidConfChange as error:
            return error_text(error)
        tracker.adopt(membership, last_index=last_index)
        lines = [describe_config(tracker.conf_state)]
        lines += [describe_progress(r, view_of(p)) for r, p in tracker.progress.items()]
        return "\n".join(lines)
