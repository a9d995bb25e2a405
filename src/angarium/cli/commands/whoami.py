"""`angarium whoami`, `angarium can`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from angarium.cli.grammar.quantities import shown_time
from angarium.cli.output import print_json
from angarium.cli.resources import kind_of, resource_in
from angarium.cli.session import talk
from angarium.doors.status import Exit

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.cli.profiles import Choices
    from angarium.client import Client


def whoami(options: Namespace) -> int:
    """Print who asks."""

    async def work(client: Client, chosen: Choices) -> int:
        caller = await client.whoami()
        if chosen.is_json:
            print_json(msgspec.to_builtins(caller))
            return 0
        principal = caller.principal
        print(f"name            {principal.name}")
        print(f"roles           {', '.join(caller.roles) or '-'}")
        print(f"proved by       {principal.proof}")
        if principal.token is not None:
            print(f"token           {principal.token}")
        if principal.until is not None:
            print(f"until           {shown_time(principal.until)}")
        print(f"authentication  {caller.authentication}")
        return 0

    return talk(options, work)


def can(options: Namespace) -> int:
    """Print whether a user may do something, and why."""
    kind = kind_of(options.action)
    asked = resource_in(options.resource or kind.value, kind=kind)

    async def work(client: Client, chosen: Choices) -> int:
        decision = await client.can(options.user, options.action, kind=asked.kind, name=asked.name)
        if chosen.is_json:
            print_json(msgspec.to_builtins(decision))
        else:
            print(f"{'yes' if decision.is_allowed else 'no'}: {decision.why}")
        return Exit.OK if decision.is_allowed else Exit.DENIED

    return talk(options, work)
