"""Recovering the catalog on the data folder of a stopped node, and what its node tells of it later.

Two steps, as for a partition: `looked_at` changes nothing and says what would be done, what it may
lose, and a code that stands for exactly this; `carry_out` does it if that is still so. What was
begun and did not end is ended by the same call with the same code.
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import secrets
import socket
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from angarium.addresses import dialled
from angarium.errors import AngariumError, CorruptData, InvalidArgument, PreconditionFailed
from angarium.ids import Index, NodeId, Term
from angarium.log import folder_identity, successions
from angarium.log.folder_identity import draw_incarnation
from angarium.log.folder_lock import lock_folder
from angarium.log.os_disk import OsDisk
from angarium.log.successions import Succession
from angarium.machine.catalog import RECOVERY_LEVEL
from angarium.node import succession
from angarium.node.greetings import greetings_at
from angarium.node.joining import cluster_name
from angarium.node.succession import End, Invitation
from angarium.replica.catalog_copy import CatalogCopy, read_copy
from angarium.retrying import Backoff, Tries
from angarium.wire import Hello, Unreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from angarium.log.folder_identity import FolderIdentity
    from angarium.node.node import Node
    from angarium.security.tls import Dialling
    from angarium.service.audit import Audit

PAUSES: Final = Backoff(first_s=0.2, longest_s=5.0)
"""Between two attempts to have the record of a recovery written."""

SOMEBODY: Final = "somebody"
"""So begins what is told of whoever answers and cannot be understood."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherNode:
    """Another node that the catalog knows."""

    node: NodeId
    address: str
    votes: bool
    answers: str
    """What is known of whoever answers at its address; empty if nobody does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was found on a folder, and what would be done."""

    node: NodeId
    cluster: str
    """To which it belongs now."""
    end: End
    commit: Index
    voters: tuple[NodeId, ...]
    topics: int
    users: int
    changed_at: int
    """When the catalog was last changed, as far as this node knows; µs."""
    others: tuple[OtherNode, ...] = ()
    may_lose: tuple[str, ...] = ()
    objection: str = ""
    code: str = ""
    begun: Succession | None = None
    """What was begun here before, and has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What was done."""

    node: NodeId
    cluster: str
    previous: str
    invitation: str
    """By which other survivors follow; empty if this one did."""


def looked_at(
    folder: Path,
    *,
    others: Sequence[End] = (),
    follow: Invitation | None = None,
    tls: Dialling | None = None,
) -> Looked:
    """Say what would be done on a folder; raises `FolderInUse` unless its node is stopped.

    With the `tls` of its node the others are asked as nodes ask each other. Where they speak TLS
    nobody else can tell one of them from a stranger.
    """
    with _opened(folder) as (disk, identity):
        begun = successions.load(disk)
        if begun is not None and not begun.is_done:
            return _unfinished(identity, begun)
        looked = _judged(read_copy(disk, identity), identity, others, follow)
        if begun is not None and follow is None and looked.objection:
            looked = replace(looked, objection=f"{looked.objection}. {_done_before(begun)}")
    if looked.objection or follow is not None:
        return looked
    return asyncio.run(_asked(looked, tls))


def carry_out(
    folder: Path,
    code: str,
    *,
    others: Sequence[End] = (),
    follow: Invitation | None = None,
    tls: Dialling | None = None,
) -> Recovered:
    """Do what `looked_at` has said under this code; raises why not."""
    looked = looked_at(folder, others=others, follow=follow, tls=tls)
    if looked.objection:
        raise PreconditionFailed(looked.objection)
    if code != looked.code:
        raise InvalidArgument(
            "the code confirms something else: what would be done has changed since, or the code "
            "is of another node. Look again without it"
        )
    with _opened(folder) as (disk, identity):
        wanted = looked.begun
        if wanted is None:
            # Its node may have run since: what was looked at has to be what is here.
            looked = _judged(read_copy(disk, identity), identity, others, follow)
            if code != looked.code:
                raise PreconditionFailed("the folder has changed meanwhile: look again")
            wanted = _drawn(looked, cluster_name(identity), follow)
            successions.begin(disk, wanted)
        successions.carry_out(disk, wanted)
    end = End(wanted.last_term, wanted.alone_from)
    invited = succession.invitation(previous=wanted.previous, cluster=wanted.cluster, end=end)
    return Recovered(
        node=looked.node,
        cluster=wanted.cluster,
        previous=wanted.previous,
        invitation="" if wanted.follows else str(invited),
    )


def _drawn(looked: Looked, previous: str, follow: Invitation | None) -> Succession:
    return Succession(
        cluster=f"{secrets.randbits(128):032x}" if follow is None else follow.cluster,
        previous=previous,
        incarnation=draw_incarnation(secrets.randbits),
        alone_from=Index(0) if follow is not None else looked.end.entry,
        last_term=Term(0) if follow is not None else looked.end.term,
        level=RECOVERY_LEVEL,
        by=f"{_user()}@{socket.gethostname()}",
        code=looked.code,
    )


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[OsDisk, FolderIdentity]]:
    if not (folder / folder_identity.IDENTITY_NAME).is_file():
        raise InvalidArgument(f"{folder} is no data folder of a node")
    lock = lock_folder(folder)
    try:
        disk = OsDisk(folder)
        identity = folder_identity.load(disk)
        assert identity is not None
        yield disk, identity
    finally:
        lock.release()


def _done_before(done: Succession) -> str:
    if done.follows:
        return f"It follows the cluster {done.cluster}"
    end = End(done.last_term, done.alone_from)
    invited = succession.invitation(previous=done.previous, cluster=done.cluster, end=end)
    return f"It was recovered as the cluster {done.cluster}; others follow with --follow {invited}"


def _unfinished(identity: FolderIdentity, begun: Succession) -> Looked:
    return Looked(
        node=identity.node_id,
        cluster=begun.previous,
        end=End(begun.last_term, begun.alone_from),
        commit=Index(0),
        voters=(),
        topics=0,
        users=0,
        changed_at=0,
        code=begun.code,
        begun=begun,
    )


def _judged(
    copy: CatalogCopy,
    identity: FolderIdentity,
    others: Sequence[End],
    follow: Invitation | None,
) -> Looked:
    cluster, machine = cluster_name(identity), copy.machine
    if machine.cluster != cluster and not set(copy.voters) == {copy.own}:
        raise CorruptData(f"the catalog is of the cluster {machine.cluster}, the folder {cluster}")
    if follow is None:
        objection = succession.objection_to_going_on(copy, others)
    else:
        objection = succession.objection_to_following(follow, identity, copy, cluster=cluster)
    voters = copy.voting_nodes
    return Looked(
        node=identity.node_id,
        cluster=cluster,
        end=succession.end_of(copy),
        commit=copy.commit,
        voters=voters,
        topics=len(machine.topics.by_id),
        users=len(machine.access.users),
        changed_at=machine.clock,
        others=tuple(
            OtherNode(
                node=one,
                address=dict(machine.nodes.by_id[one].addresses).get("wire", ""),
                votes=one in voters,
                answers="",
            )
            for one in succession.others(copy)
        ),
        may_lose=succession.may_lose(copy) if follow is None else (),
        objection=objection,
        code=""
        if objection
        else succession.confirmation(
            copy, cluster=cluster, into="" if follow is None else follow.cluster
        ),
    )


async def _asked(looked: Looked, tls: Dialling | None) -> Looked:
    """Look whether nodes that should be off answer, and object if they do."""
    addresses = {one.node: dialled(one.address) for one in looked.others}
    found = await greetings_at([one for one in addresses.values() if one is not None], tls=tls)
    others, alive = [], []
    for one in looked.others:
        address = addresses[one.node]
        greeting = None if address is None else found[address]
        answers = ""
        if isinstance(greeting, Hello):
            answers = f"node {greeting.node} of the cluster {greeting.cluster or 'nobody knows'}"
            if greeting.cluster == looked.cluster:
                alive.append(one)
        elif greeting is not None and type(greeting) is not Unreachable:
            # Its kinds come from somebody: who does not believe this node's certificate is there.
            answers = f"{SOMEBODY}: {greeting}"
        others.append(
            OtherNode(node=one.node, address=one.address, votes=one.votes, answers=answers)
        )
    objection = ""
    if alive:
        named = ", ".join(f"node {one.node} ({one.address})" for one in alive)
        objection = (
            f"{named} of this cluster answers: it is not lost. Start this node, and bring back "
            "enough of them; or stop all of them first, if they are too few"
        )
    return _replaced(looked, tuple(others), objection)


def _replaced(looked: Looked, others: tuple[OtherNode, ...], objection: str) -> Looked:
    code = "" if objection else looked.code
    return replace(looked, others=others, objection=objection, code=code)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return "somebody"


class RecoveryRecord:
    """Has the audit log say that the catalog was recovered on this node's folder."""

    def __init__(self, node: Node, audit: Audit | None) -> None:
        self._node = node
        self._audit = audit

    async def run(self) -> None:
        """Do it as soon as the audit log can be written, then forget it; again after a crash."""
        tries = Tries(PAUSES)
        found = await asyncio.to_thread(self._node.succession)
        while found is not None:
            try:
                await self._node.catalog.catch_up()
                if self._node.catalog.cluster == found.cluster:
                    if self._audit is not None:
                        await self._audit.catalog_recovered(found)
                    await asyncio.to_thread(self._node.forget_succession)
                    return
            except AngariumError as error:
                _log.debug("the recovery is not recorded yet: %s", error)
            await tries.pause()
