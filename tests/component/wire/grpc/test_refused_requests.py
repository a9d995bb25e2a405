"""What is no call of ours is told so, however much its client has to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import grpc.aio
import pytest
from tests.component.wire.grpc.serving import serving

if TYPE_CHECKING:
    from tests.component.wire.running import Runner


def test_a_large_request_for_a_method_that_is_not_there_is_told_so(run: Runner) -> None:
    async def story() -> None:
        async with serving({}) as it:
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await it.unary()(bytes(2 << 20), timeout=20)
            assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED

    run(story())
