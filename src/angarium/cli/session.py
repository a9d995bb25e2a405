"""A command's conversation with a cluster: one client, one event loop, and an end to both."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import uvloop

from angarium.cli.profiles import LOCAL_FOLDER, choices
from angarium.client import Client, ClientSettings
from angarium.wire import Unreachable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable

    from angarium.cli.profiles import Choices

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
        publish_timeout_s=chosen.timeout_s, request_timeout_s=chosen.timeout_s
    )
    async with Client(*map(str, chosen.servers), settings=settings) as client:
        return await work(client, chosen)
