"""A node that comes back waits a while for its port; a new one does not."""

from __future__ import annotations

import asyncio
import errno
import logging
from typing import TYPE_CHECKING

import pytest

from angarium.node.ports import listening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def taken(times: int, number: int = errno.EADDRINUSE) -> Callable[[], Awaitable[int]]:
    """Return a way to listen that works after so many refusals."""
    left = times

    async def listen() -> int:
        nonlocal left
        left -= 1
        if left >= 0:
            raise OSError(number, "port 50051 is taken")
        return 50051

    return listen


def test_a_port_that_is_free_again_is_had(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert asyncio.run(listening(taken(3), pause_s=0.0)) == 50051
    assert caplog.text.count("trying again for 30 s") == 1


def test_patience_ends() -> None:
    with pytest.raises(OSError, match="50051"):
        asyncio.run(listening(taken(10**9), patience_s=0.01, pause_s=0.0))


def test_a_new_node_and_another_error_are_told_at_once() -> None:
    with pytest.raises(OSError, match="50051"):
        asyncio.run(listening(taken(1), patience_s=0.0))
    with pytest.raises(OSError, match="50051"):
        asyncio.run(listening(taken(1, errno.EACCES)))
