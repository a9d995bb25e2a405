"""Nodes with a bug planted in what they decide: the matrix has to find each.

    python -m tests.doors.matrix.planted NAME -m angarium serve …

runs what comes behind the name in a process where the bug is in place.
"""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING, Any, Final

from angarium.api.access import Action, Decision, Effect, Match, ResourceKind
from angarium.errors import PermissionDenied
from angarium.security import permissions
from angarium.service.access.permitted import PermittedBroker

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api.access import Grant


def _prefixes_end_anywhere() -> None:
    def names(grant: Grant, name: str) -> bool:
        if grant.match is Match.EXACT:
            return name == grant.name
        if not grant.name:
            return grant.effect is Effect.DENY or not name.startswith("angarium.")
        return name.startswith(grant.name)

    permissions.names = names


def _every_name_is_really_every_one() -> None:
    true = permissions.names
    permissions.names = lambda grant, name: (
        true(grant, name) or (grant.match is Match.PREFIX and not grant.name)
    )


def _deny_does_not_win() -> None:
    true = permissions._judged

    def judged(held: Any, action: str, kind: ResourceKind, name: str) -> Decision:
        allowing = [one for one in held if one[1].effect is Effect.ALLOW]
        return true(allowing, action, kind, name)

    permissions._judged = judged


def _a_token_may_what_its_owner_may() -> None:
    true = permissions.Permissions.decide

    def decide(self: Any, principal: Any, *asked: Any) -> Decision:
        from msgspec.structs import replace

        return true(self, replace(principal, token=None, since=None), *asked)

    setattr(permissions.Permissions, "decide", decide)  # noqa: B010


def _fetching_asks_nothing() -> None:
    async def fetch(self: Any, request: Any) -> Any:
        return await self._service.fetch(request)

    PermittedBroker.fetch = fetch  # type: ignore[method-assign]


def _what_is_hidden_is_told_apart() -> None:
    true = PermittedBroker.check

    def check(
        self: Any, action: Action, kind: ResourceKind, name: str = "", *, method: str = ""
    ) -> None:
        is_there = kind is ResourceKind.TOPIC and self._service.partition_count(name)
        if is_there and not self.may(action, kind, name):
            raise PermissionDenied(f"{self.principal.name!r} may not {action} on {name!r}")
        true(self, action, kind, name, method=method)

    PermittedBroker.check = check  # type: ignore[method-assign]


def _lists_show_everything() -> None:
    setattr(PermittedBroker, "_shown", lambda _, __, found: tuple(found))  # noqa: B010


def _letters_ask_nothing() -> None:
    from angarium.service.access.letters import PermittedLetters

    async def purge(self: Any, wanted: Any = None, *, dry_run: bool = False) -> Any:
        return await self._letters.purge(wanted, dry_run=dry_run)

    PermittedLetters.purge = purge  # type: ignore[method-assign]


def _inviting_asks_nothing() -> None:
    async def create_join_token(self: Any, *, until: Any = None) -> Any:
        return await self._access.join_tokens.create_join_token(until=until)

    setattr(PermittedBroker, "create_join_token", create_join_token)  # noqa: B010


BUGS: Final[dict[str, Callable[[], None]]] = {
    "prefixes-end-anywhere": _prefixes_end_anywhere,
    "every-name-is-really-every-one": _every_name_is_really_every_one,
    "deny-does-not-win": _deny_does_not_win,
    "a-token-may-what-its-owner-may": _a_token_may_what_its_owner_may,
    "fetching-asks-nothing": _fetching_asks_nothing,
    "what-is-hidden-is-told-apart": _what_is_hidden_is_told_apart,
    "lists-show-everything": _lists_show_everything,
    "letters-ask-nothing": _letters_ask_nothing,
    "inviting-asks-nothing": _inviting_asks_nothing,
}


if __name__ == "__main__":
    _, name, flag, module, *arguments = sys.argv
    assert flag == "-m"
    BUGS[name]()
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
