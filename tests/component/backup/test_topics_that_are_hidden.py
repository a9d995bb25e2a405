"""Backups and topics that somebody is kept from: nothing is left out in silence, nor got around."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.component.service.audit.audited_cluster import (
    PASSWORD,
    audited,
    client_of,
    there,
    until,
)
from tests.on_a_loop import on_a_loop

from angarium.api import TopicConfig
from angarium.api.access import (
    ADMIN,
    Effect,
    Grant,
    Match,
    Principal,
    Proof,
    ResourceKind,
    SubjectKind,
)
from angarium.api.audit import AuditEvent
from angarium.api.backups import KeptPositions, RestoreRequest
from angarium.backup.creating import Creation
from angarium.backup.folder import FolderStore
from angarium.errors import NotFound, OffsetOutOfRange, PermissionDenied
from angarium.ids import Offset

if TYPE_CHECKING:
    from pathlib import Path

    from angarium.client import Client

KEEPER = Principal(name="keeper", proof=Proof.PASSWORD)
BAN = Grant(
    actions=("*",),
    kind=ResourceKind.TOPIC,
    name="secret",
    match=Match.PREFIX,
    effect=Effect.DENY,
)


async def a_keeper(root: Client) -> None:
    """Make an administrator whom a ban keeps from some topics."""
    for name in ("orders", "secret", "secret.plans"):
        await root.create_topic(name, partitions=1)
        await root.publish(name, b"x")
    await root.create_user("keeper", password=PASSWORD, roles=[ADMIN])
    await root.create_grant(SubjectKind.USER, "keeper", BAN)


@on_a_loop
async def test_a_backup_says_how_many_topics_its_maker_may_not_see(tmp_path: Path) -> None:
    async with audited(tmp_path / "node", nodes=1) as broker, client_of(broker) as root:
        await a_keeper(root)
        whole = Creation(root, FolderStore(tmp_path / "whole"))
        manifest = await whole.run()
        assert {one.name for one in manifest.topics} == {"orders", "secret", "secret.plans"}
        assert whole.hidden == 0
        async with client_of(broker, user="keeper") as keeper:
            part = Creation(keeper, FolderStore(tmp_path / "part"))
            assert {one.name for one in (await part.run()).topics} == {"orders"}
            assert part.hidden == 2


@on_a_loop
async def test_a_ban_is_not_got_around_by_a_restore_and_restores_are_recorded(
    tmp_path: Path,
) -> None:
    async with audited(tmp_path / "node", nodes=1) as broker, client_of(broker) as root:
        await a_keeper(root)
        keeper = there(broker.accesses[0]).broker_for(KEEPER)

        def bringing(topic: str) -> RestoreRequest:
            return RestoreRequest(topic=topic, partition=0, next_offset=Offset(0))

        with pytest.raises(NotFound):
            await keeper.restore_records(bringing("secret"))
        with pytest.raises(NotFound):
            await keeper.restore_positions(KeptPositions(topic="secret", partition=0))
        with pytest.raises(NotFound):
            await keeper.read_positions("secret", 0)
        with pytest.raises(PermissionDenied):
            await keeper.restore_topic("secret.more", partitions=1, config=TopicConfig())
        with pytest.raises(OffsetOutOfRange):
            await keeper.restore_records(bringing("orders"))
        # Whatever is set about data: who may do that may do nearly everything.
        await until(
            broker,
            lambda some: any(
                (one.event, one.who, one.what, one.resource)
                == (AuditEvent.ACCESS, "keeper", "restore_records", "orders")
                for one in some
            ),
        )
