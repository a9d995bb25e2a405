"""A command's conversation with a cluster: one client, one event loop, and an end to both."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, TypeVar

import uvloop

from angarium.cli.guesses import add_guess
from angarium.cli.profiles import choices
from angarium.client import Client, ClientSettings
from angarium.client.local_access import LOCAL_FOLDER
from angarium.errors import NotFound, Unreachable
from angarium.telemetry.logs import escaped

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable

    from angarium.cli.profiles import Choices
    from angarium.errors import AngariumError

_T = TypeVar("_T")

_GUESSED = (
    f"No address was named, and no cluster runs in {LOCAL_FOLDER} of this folder: these are the"
    " ports that `angarium up` takes by itself."
)


def talk(options: Namespace, work: Callable[[Client, Choices], Awaitable[_T]]) -> _T:
    """Connect to the cluster that `options` name, do `work` there, and hang up."""
    chosen = choices(options)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_talk(chosen, work))
    except Unreachable as error:
        if chosen.are_guessed:
            error.add_note(_GUESSED)
        raise


async def _talk(chosen: Choices, work: Callable[[Client, Choices], Awaitable[_T]]) -> _T:
    settings = ClientSettings(
        publish_timeout_s=chosen.timeout_s,
        request_timeout_s=chosen.timeout_s,
        region=chosen.region,
    )
    servers = map(str, chosen.servers)
    async with Client(*servers, settings=settings, on_wait=_tell_wait) as client:
        try:
            return await work(client, chosen)
        except NotFound as error:
            await add_guess(client, error)
            raise


def _tell_wait(why: AngariumError) -> None:
    print(f"angarium: waiting: {escaped(str(why))}", file=sys.stderr, flush=True)
