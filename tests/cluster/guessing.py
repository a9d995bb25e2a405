"""A guesser in a process of its own: bad logins over the wire, as fast as they go.

    python -m tests.cluster.guessing PORT SOURCE RATE SECONDS

Prints how many it tried, by how they ended. Each try is a connection of its own, from the address
SOURCE, with a name that changes half of the time.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from typing import Final

from angarium.errors import AngariumError
from angarium.security.scram import ClientExchange, Mechanism
from angarium.wire import Connection, Handlers, Hello, Role, WireLimits
from angarium.wire.operations import Operation
from angarium.wire.operations.logins import AuthenticateAnswer, AuthenticateHeader

UNDER_WAY_MAX: Final = 200
TRY_S_MAX: Final = 20.0


async def guess(port: int, source: str, number: int, ended: Counter[str]) -> None:
    """Try one login with a wrong proof."""
    exchange = ClientExchange("mallory" if number % 2 else f"user-{number}")
    connection: Connection | None = None
    try:
        async with asyncio.timeout(TRY_S_MAX):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(
                    hello=Hello(role=Role.CLIENT),
                    welcome=lambda _: Handlers(),
                    limits=WireLimits(),
                    is_dialled=True,
                ),
                "127.0.0.1",
                port,
                local_addr=(source, 0),
            )
            await connection.opened()
            challenge = await _said(connection, exchange.first())
            await _said(connection, exchange.final(challenge, bytes(32)))
            ended["LET_IN"] += 1
    except AngariumError as error:
        ended[(connection.error if connection and connection.error else error).code] += 1
    except (OSError, TimeoutError) as error:
        ended[type(error).__name__] += 1
    finally:
        if connection is not None:
            connection.abort()


async def _said(connection: Connection, line: str) -> str:
    header = AuthenticateHeader(Mechanism.SHA_256, line.encode())
    frame = await connection.request(int(Operation.AUTHENTICATE), header, timeout_s=TRY_S_MAX)
    return frame.read(AuthenticateAnswer).line.decode()


async def main(port: int, source: str, rate: float, seconds: float) -> None:
    """Guess for so long, at that rate at the most."""
    loop, ended = asyncio.get_running_loop(), Counter[str]()
    under_way: set[asyncio.Task[None]] = set()
    began, tried = loop.time(), 0
    while loop.time() - began < seconds:
        while tried < (loop.time() - began) * rate and len(under_way) < UNDER_WAY_MAX:
            task = loop.create_task(guess(port, source, tried, ended))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            tried += 1
        await asyncio.sleep(0.005)
    took_s = loop.time() - began
    if under_way:
        await asyncio.wait(under_way)
    print(json.dumps({"tried": tried, "seconds": took_s, **ended}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
