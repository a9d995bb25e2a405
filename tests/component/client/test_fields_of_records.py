"""What can be said of a record is declared once, and every word that publishes takes it."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import pytest
from tests.component.client.harness import talking

from angarium import Client, SyncClient
from angarium.client.publishing.columns import Table
from angarium.client.publishing.fields import RecordColumns, RecordFields
from angarium.client.publishing.outgoing import outgoing
from angarium.client.transactions.staged import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.wire.running import Runner


def keywords(word: Callable[..., Any]) -> set[str]:
    every = signature(word).parameters.values()
    return {one.name for one in every if one.kind is Parameter.KEYWORD_ONLY}


def test_what_is_declared_is_what_is_taken() -> None:
    assert keywords(outgoing) == RecordFields.__annotations__.keys()
    assert keywords(Table.of) == RecordColumns.__annotations__.keys()


def test_each_field_is_shown_by_help() -> None:
    fields = set(RecordFields.__annotations__)
    for word in (Client.publish, Client.publish_nowait, SyncClient.publish):
        assert keywords(word) == fields | {"mode", "delay"}
    assert keywords(Client.publish_once) == fields | {"sequence", "producer"}
    assert keywords(Stage.publish) == fields
    shown = signature(SyncClient.publish).parameters["key"]
    assert (shown.annotation, shown.default) == ("Text | None", None)


def test_a_field_that_there_is_not_is_refused(run: Runner) -> None:
    async def main() -> None:
        async with talking() as (_, client):
            given: dict[str, Any] = {"kee": b"k"}
            with pytest.raises(TypeError, match="kee"):
                await client.publish("t", b"", **given)
            with pytest.raises(TypeError, match="kee"):
                await client.publish_batch("t", [b""], **given)
            staged: dict[str, Any] = {"mode": None}
            with pytest.raises(TypeError, match="mode"):
                await client.publish_once("t", b"", sequence=1, producer="p", **staged)

    run(main())
