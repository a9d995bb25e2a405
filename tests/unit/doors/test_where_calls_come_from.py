"""Doors say where a call comes from, where somebody wants to know, and not otherwise."""

from __future__ import annotations

import asyncio
from contextvars import copy_context
from typing import TYPE_CHECKING

from tests.accounts import AccountsInMemory, account, authenticator

from angarium.doors.callers import Callers, Faces
from angarium.security.origin import NOWHERE, ORIGIN, Origin

if TYPE_CHECKING:
    from angarium.api.access import Principal

CATALOG = AccountsInMemory(account("alice", "right"))


class Call:
    source = "10.0.0.7"


def faces(*, are_traced: bool) -> Faces[Principal, Principal]:
    callers: Callers[Principal] = Callers(
        authenticator(CATALOG), lambda principal: principal, are_traced=are_traced
    )
    return Faces(callers, lambda principal: principal, door="http")


def test_a_call_of_somebody_who_is_known_has_its_origin() -> None:
    token = CATALOG.issue("alice")

    def serve(are_traced: bool) -> Origin:
        assert faces(are_traced=are_traced).known(f"Bearer {token}", Call()) is not None
        return ORIGIN.get()

    assert copy_context().run(serve, True) == Origin("http", "10.0.0.7")
    assert copy_context().run(serve, False) is NOWHERE


def test_a_login_that_takes_work_has_it_too_and_so_does_what_it_starts() -> None:
    async def serve() -> Origin:
        token = CATALOG.issue("alice")
        await faces(are_traced=True).found(f"Bearer {token}", source="10.0.0.8")

        async def later() -> Origin:
            return ORIGIN.get()

        return await asyncio.create_task(later())

    assert asyncio.run(serve()) == Origin("http", "10.0.0.8")
