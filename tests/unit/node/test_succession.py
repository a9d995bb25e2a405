"""Which copy of the catalog a cluster goes on with, and who may follow."""

from __future__ import annotations

import pytest

from angarium.errors import InvalidArgument
from angarium.ids import Incarnation, Index, NodeId, ReplicaId, Term, replica_id
from angarium.log.folder_identity import FolderIdentity
from angarium.machine.catalog import CatalogMachine
from angarium.node.succession import (
    End,
    Invitation,
    confirmation,
    invitation,
    may_lose,
    objection_to_following,
    objection_to_going_on,
)
from angarium.replica.catalog_copy import CatalogCopy

OLD, NEW = f"{1:032x}", f"{2:032x}"
VOTERS = tuple(replica_id(NodeId(node), Incarnation(7)) for node in (1, 2, 3))
IDENTITY = FolderIdentity(cluster_id=1, node_id=NodeId(1), incarnation=Incarnation(7))


def end(term: int, entry: int) -> End:
    return End(Term(term), Index(entry))


def copy(term: int = 7, entry: int = 42, *, voters: tuple[ReplicaId, ...] = VOTERS) -> CatalogCopy:
    return CatalogCopy(
        own=VOTERS[0],
        last_term=Term(term),
        last_index=Index(entry),
        commit=Index(40),
        voters=voters,
        machine=CatalogMachine(),
    )


def test_the_one_that_ends_in_the_later_term_has_more_however_short_it_is() -> None:
    assert objection_to_going_on(copy(7, 42), [end(6, 99), end(7, 42)]) == ""
    assert "which has more" in objection_to_going_on(copy(7, 42), [end(8, 3)])
    assert "which has more" in objection_to_going_on(copy(7, 42), [end(7, 43)])


def test_who_alone_votes_needs_nobody() -> None:
    assert "needs nobody" in objection_to_going_on(copy(voters=VOTERS[:1]), [])


def test_who_ends_earlier_may_follow_and_who_ends_later_may_not() -> None:
    invited = invitation(previous=OLD, cluster=NEW, end=end(7, 42))
    again = Invitation.parse(str(invited))
    assert again == invited
    for term, entry in ((7, 42), (7, 1), (6, 99)):
        assert not objection_to_following(again, IDENTITY, copy(term, entry), cluster=OLD)
    for term, entry in ((7, 43), (8, 1)):
        said = objection_to_following(again, IDENTITY, copy(term, entry), cluster=OLD)
        assert "this one has more" in said


def test_nobody_follows_into_a_cluster_that_was_another_one() -> None:
    invited = invitation(previous=f"{3:032x}", cluster=NEW, end=end(7, 42))
    assert "another cluster" in objection_to_following(invited, IDENTITY, copy(), cluster=OLD)
    own = invitation(previous=OLD, cluster=NEW, end=end(7, 42))
    assert "already" in objection_to_following(own, IDENTITY, copy(), cluster=NEW)
    slip = Invitation(cluster=NEW, end=end(7, 99), check=own.check)
    assert "a slip" in objection_to_following(slip, IDENTITY, copy(), cluster=OLD)


@pytest.mark.parametrize("text", ["", "7", "7.", "7.1.2", "a.b", "7.-1"])
def test_what_is_no_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        End.parse(text)


@pytest.mark.parametrize("text", ["", NEW, f"{NEW}-7.42", f"{NEW}-7.42-1F0A93C7", "x" * 999])
def test_what_is_no_invitation_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        Invitation.parse(text)


def test_the_code_stands_for_exactly_this() -> None:
    codes = {
        confirmation(copy(), cluster=OLD),
        confirmation(copy(), cluster=NEW),
        confirmation(copy(7, 43), cluster=OLD),
        confirmation(copy(8, 42), cluster=OLD),
        confirmation(copy(voters=VOTERS[:2]), cluster=OLD),
        confirmation(copy(), cluster=OLD, into=NEW),
    }
    assert len(codes) == 6


def test_who_only_listened_says_so() -> None:
    assert not any("only listened" in one for one in may_lose(copy()))
    assert any("only listened" in one for one in may_lose(copy(voters=VOTERS[1:])))
