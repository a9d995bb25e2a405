"""A request begun without a task: sent at once, answered through a future."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.component.wire.running import joined

from angarium.errors import LimitExceeded, NotFound
from angarium.wire import ConnectionLost, DeadlineExceeded, Handlers, Unreachable, WireLimits

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire import Request


def answer(request: Request) -> None:
    request.answer(request.frame.header)


def refuse(request: Request) -> None:
    raise NotFound("nothing here")


def forget(request: Request) -> None:
    """Leave the caller waiting."""


def test_every_request_ends_with_its_answer_or_a_typed_error(run: Runner) -> None:
    async def main() -> None:
        handlers = Handlers(requests={1: answer, 2: refuse, 3: forget})
        async with joined(handlers) as (client, _):
            assert (await client.begin_request(1, b"hello", timeout_s=30)).header == b"hello"
            with pytest.raises(NotFound):
                await client.begin_request(2, timeout_s=30)
            with pytest.raises(DeadlineExceeded):
                await client.begin_request(3, timeout_s=0.01)
            lost = client.begin_request(3, timeout_s=30)
            client._abort()
            with pytest.raises(ConnectionLost):
                await lost
            with pytest.raises(Unreachable):
                client.begin_request(1, timeout_s=30)

    run(main())


def test_requests_are_counted_against_the_same_bound(run: Runner) -> None:
    async def main() -> None:
        limits = WireLimits(requests_in_flight_max=2)
        async with joined(Handlers(requests={3: forget}), limits=limits) as (client, _):
            waiting = [client.begin_request(3, timeout_s=0.05) for _ in range(2)]
            with pytest.raises(LimitExceeded):
                client.begin_request(3, timeout_s=1)
            for one in waiting:
                with pytest.raises(DeadlineExceeded):
                    await one

    run(main())
