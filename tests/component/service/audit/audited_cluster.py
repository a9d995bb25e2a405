"""Nodes in this process that record who did what, and a reader of what they wrote."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from angarium.api import FetchRequest
from angarium.api.access import ADMIN, Principal, Proof
from angarium.api.audit import AUDIT_TOPIC, HASH_HEADER, AuditRecord, decoded
from angarium.api.stored_records import fetched_records
from angarium.client import Client, ClientSettings
from angarium.errors import AngariumError
from angarium.ids import Offset
from angarium.security.audit import Report, Verifier
from angarium.service.audit import AuditChoices
from angarium.testing.broker import InProcessBroker, in_process_broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from angarium.batch import Record
    from angarium.service.access import Access

PASSWORD = "a good password"
ROOT = Principal(name="root", proof=Proof.PASSWORD)
SOON_S = 60.0
"""How long anything may take on a busy machine."""


@asynccontextmanager
async def audited(
    folder: Path, *, nodes: int = 3, choices: AuditChoices | None = None
) -> AsyncIterator[InProcessBroker]:
    """A cluster with authentication, audit records, and an administrator `root`."""
    async with in_process_broker(
        folder,
        nodes=nodes,
        tick_ms=200,
        is_authentication_required=True,
        audit=choices or AuditChoices(),
    ) as broker:
        await there(broker.accesses[0]).calls.create_user("root", password=PASSWORD, roles=[ADMIN])
        await broker.have_heard_of("root")
        yield broker


def client_of(
    broker: InProcessBroker, at: int = 0, *, user: str = "root", password: str = PASSWORD
) -> Client:
    """Return somebody's client of one node, which waits as long as a busy machine may take."""
    settings = ClientSettings(
        request_timeout_s=SOON_S, publish_timeout_s=SOON_S, attempt_timeout_s=SOON_S / 3
    )
    return Client(broker.addresses[at], user=user, password=password, settings=settings)


def there(access: Access | None) -> Access:
    assert access is not None
    return access


async def stored(broker: InProcessBroker, *, at: int = 0) -> list[Record]:
    """Return what is in the topic, as the leader has it."""
    service = broker.services[at]
    assert service is not None
    found: list[Record] = []
    after = 0
    while True:
        request = FetchRequest(
            topic=AUDIT_TOPIC, partition=0, offset=Offset(after), fresh=True, bytes_max=1 << 20
        )
        try:
            result = await service.fetch(request)
        except AngariumError:
            await asyncio.sleep(0.05)
            continue
        records, after = fetched_records(result, request, limit=100_000)
        if not records:
            return found
        found += records


async def audit_records(broker: InProcessBroker, *, at: int = 0) -> list[AuditRecord]:
    """Return the audit records in the topic."""
    found = [decoded(one.value or b"") for one in await stored(broker, at=at)]
    assert None not in found
    return [one for one in found if one is not None]


async def checked(broker: InProcessBroker, *, at: int = 0) -> Report:
    """Return what a check of the topic finds."""
    return checked_records(await stored(broker, at=at))


def checked_records(records: list[Record]) -> Report:
    verifier = Verifier()
    for one in records:
        told = dict(one.headers)[HASH_HEADER]
        verifier.take(one.offset, one.value, told_hash=None if told is None else told.decode())
    return verifier.report()


async def until(
    broker: InProcessBroker, is_there: Callable[[list[AuditRecord]], bool], *, at: int = 0
) -> list[AuditRecord]:
    """Return the audit records as soon as they are as they should be."""
    async with asyncio.timeout(SOON_S):
        while True:
            records = await audit_records(broker, at=at)
            if is_there(records):
                return records
            await asyncio.sleep(0.05)
