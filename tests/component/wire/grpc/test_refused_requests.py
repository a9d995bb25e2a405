"""What is no call of ours is told so, however much its client has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from tests.component.wire.grpc.serving import serving
from tests.unit.wire.http2.client_bytes import data

from angarium.wire.grpc import unary
from angarium.wire.grpc.messages import framed

if TYPE_CHECKING:
    from tests.component.wire.running import Runner

    from angarium.wire.grpc import Call


def test_a_large_request_for_a_method_that_is_not_there_is_told_so(run: Runner) -> None:
    async def story() -> None:
        async with serving({}) as it:
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await it.unary()(bytes(2 << 20), timeout=20)
            assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED

    run(story())


@pytest.mark.parametrize(
    "timeouts", [(b"soon",), (b"1 S",), (b"123456789S",), (b"1" * 40,), (b"1S", b"2S")]
)
def test_a_deadline_that_is_none_is_refused(run: Runner, timeouts: tuple[bytes, ...]) -> None:
    async def echo(message: bytes, _: Call) -> bytes:
        return message

    async def story() -> None:
        async with serving(unary(echo)) as it:
            client = await it.dialled()
            client.call(1, *[(b"grpc-timeout", one) for one in timeouts])
            client.say(data(1, framed(b"x"), ends=True))
            assert (await client.trailers(1))[b"grpc-status"] == b"13"
            client.call(3, (b"grpc-timeout", b"60S"))
            client.say(data(3, framed(b"x"), ends=True))
            assert (await client.trailers(3))[b"grpc-status"] == b"0"
            assert it.server.calls == 0

    run(story())
