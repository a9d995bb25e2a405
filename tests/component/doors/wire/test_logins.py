"""Logins on the wire: nothing is served before a proof, and guesses cost others nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.accounts import AccountsInMemory, account, authenticator
from tests.on_a_loop import SOON_S

from angarium.api.access import ANONYMOUS, Principal
from angarium.client.addresses import Address
from angarium.client.login import Login
from angarium.client.pool import Pool
from angarium.client.settings import ClientSettings
from angarium.doors.wire import logins as page
from angarium.doors.wire.logins import Logins
from angarium.errors import AngariumError, LimitExceeded, Unauthenticated
from angarium.security.authenticating import WRONG
from angarium.security.scram import ClientExchange, Mechanism, salted_password
from angarium.wire import (
    Connection,
    ConnectionLost,
    Handlers,
    Hello,
    Request,
    Role,
    Server,
    UnsupportedOperation,
    WireError,
    dial,
)
from angarium.wire.operations import Operation
from angarium.wire.operations.logins import BEARER, AuthenticateAnswer, AuthenticateHeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

WHO = 1_000
"""An operation that tells a principal's name."""


class Door:
    """A listening port with logins, which serves one operation to those who are in."""

    def __init__(self, server: Server, accounts: AccountsInMemory) -> None:
        self.server = server
        self.accounts = accounts

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.server.port)

    async def dialled(self, auth: bytes = b"") -> Connection:
        hello = Hello(role=Role.CLIENT, auth=auth)
        return await dial(host="127.0.0.1", port=self.server.port, hello=hello)


@contextlib.asynccontextmanager
async def opened(**changes: Any) -> AsyncIterator[Door]:
    accounts = AccountsInMemory(account("alice", "right"), account("eve", "e", is_locked=True))

    def attend(principal: Principal, end: Callable[[AngariumError], None]) -> Callable[[], None]:
        """End what is open with its proof, as `Access` does."""
        if principal.until is None:
            return lambda: None
        left_s = principal.until / 1_000_000 - time.time()
        expired = Unauthenticated(f"{principal.token!r} of {principal.name!r} has expired")
        return asyncio.get_running_loop().call_later(left_s, end, expired).cancel

    def served(principal: Principal) -> Handlers:
        def who(request: Request) -> None:
            request.answer(b"", [principal.name.encode()])

        return Handlers(requests={WHO: who})

    logins = Logins(
        authenticator(accounts, **changes),
        served=served,
        attend=attend,
        enter=lambda _: lambda: None,
    )
    server = await Server.listen(
        host="127.0.0.1",
        port=0,
        greeting=lambda: Hello(role=Role.PEER, node=1),
        welcome=lambda connection: logins.welcome(connection, {}),
    )
    try:
        yield Door(server, accounts)
    finally:
        await server.drain(timeout_s=1.0)


async def name_of(connection: Connection) -> str:
    frame = await connection.request(WHO, timeout_s=5.0)
    return bytes(frame.payload).decode()


async def who_is(door: Door, **login: Any) -> str:
    """Log in as a client does, and return who the node says it is."""
    pool = Pool(ClientSettings(), Login(**login))
    try:
        return await name_of(await pool.connection(door.address))
    finally:
        await pool.close(timeout_s=1.0)


async def said(connection: Connection, way: str, line: str) -> str:
    header = AuthenticateHeader(way, line.encode())
    frame = await connection.request(int(Operation.AUTHENTICATE), header, timeout_s=5.0)
    return frame.read(AuthenticateAnswer).line.decode()


def test_a_password_a_token_and_one_that_is_made_anew_let_somebody_in() -> None:
    async def scenario() -> None:
        async with opened() as door:
            assert await who_is(door, user="alice", password="right") == "alice"
            token = door.accounts.issue("alice")
            assert await who_is(door, token=token) == "alice"
            assert await who_is(door, token=lambda: token) == "alice"

    asyncio.run(scenario())


def test_a_token_needs_no_round_trip_of_its_own() -> None:
    async def scenario() -> None:
        async with opened() as door:
            connection = await door.dialled(door.accounts.issue("alice").encode())
            assert connection.peer.hello.auth == b""
            assert await name_of(connection) == "alice"

    asyncio.run(scenario())


def test_with_authentication_off_nothing_is_asked_and_nothing_that_is_brought_matters() -> None:
    async def scenario() -> None:
        async with opened(anonymous=ANONYMOUS) as door:
            for login in ({}, {"user": "x", "password": "y"}, {"token": "tökén"}):
                assert await who_is(door, **login) == "anonymous"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("login", "said_then"),
    [
        ({}, "ANGARIUM_TOKEN"),
        ({"user": "alice", "password": "wrong"}, WRONG),
        ({"user": "nobody", "password": "right"}, WRONG),
        ({"user": "eve", "password": "e"}, WRONG),
        ({"token": "angt_" + "A" * 43}, "revoked"),
        ({"token": "tökén"}, "revoked"),
        ({"token": ""}, "revoked"),
        ({"token": "a.b.c"}, "revoked"),
    ],
)
def test_everybody_else_is_refused_with_a_sentence(login: dict[str, str], said_then: str) -> None:
    async def scenario() -> None:
        async with opened() as door:
            begun = time.monotonic()
            with pytest.raises(Unauthenticated) as caught:
                await who_is(door, **login)
            assert said_then in str(caught.value)
            assert time.monotonic() - begun < SOON_S

    asyncio.run(scenario())


def test_nothing_is_served_before_a_proof_and_streams_are_not_either() -> None:
    async def scenario() -> None:
        async with opened() as door:
            connection = await door.dialled()
            assert connection.peer.hello.auth.split() == [
                b"SCRAM-SHA-256",
                b"SCRAM-SHA-512",
                b"BEARER",
            ]
            for operation in (WHO, int(Operation.PUBLISH), 65_000):
                with pytest.raises(Unauthenticated, match="wants to know who asks"):
                    await connection.request(operation, timeout_s=5.0)
            stream = connection.open_stream(int(Operation.SUBSCRIBE))
            with pytest.raises(Unauthenticated):
                await stream.receive()
            # What is one-way ends the connection, as everything that is not taken does.
            connection.send(1, b"", [b"raft"])
            await connection.wait_closed()

    asyncio.run(scenario())


def test_who_is_in_is_told_what_is_not_served_in_other_words() -> None:
    async def scenario() -> None:
        async with opened() as door:
            connection = await door.dialled(door.accounts.issue("alice").encode())
            with pytest.raises(UnsupportedOperation):
                await connection.request(65_000, timeout_s=5.0)

    asyncio.run(scenario())


@pytest.mark.parametrize("mechanism", list(Mechanism))
def test_both_mechanisms_are_understood_and_a_replayed_exchange_is_not(
    mechanism: Mechanism,
) -> None:
    async def scenario() -> None:
        async with opened() as door:
            connection = await door.dialled()
            exchange = ClientExchange("alice", mechanism)
            challenge = await said(connection, mechanism, exchange.first())
            salt, iterations = exchange.challenge(challenge)
            salted = salted_password("right", mechanism, salt=salt, iterations=iterations)
            proof = exchange.final(challenge, salted)
            exchange.check(await said(connection, mechanism, proof))
            assert await name_of(connection) == "alice"
            # On the same connection, and on a new one, line by line.
            with pytest.raises(UnsupportedOperation):
                await said(connection, mechanism, exchange.first())
            again = await door.dialled()
            await said(again, mechanism, exchange.first())
            with pytest.raises((Unauthenticated, ConnectionLost)):
                await said(again, mechanism, proof)
            await again.wait_closed()
            early = await door.dialled()
            with pytest.raises((Unauthenticated, ConnectionLost)):
                await said(early, mechanism, proof)

    asyncio.run(scenario())


def test_one_connection_has_one_try() -> None:
    async def scenario() -> None:
        async with opened() as door:
            for lines in (
                [(BEARER, "x")],
                [("PLAIN", "\0alice\0right")],
                [(Mechanism.SHA_256, "n,,n=alice,r=abc"), (BEARER, "x")],
                [(Mechanism.SHA_256, "n,,n=alice,r=abc"), (Mechanism.SHA_512, "n,,n=a,r=b")],
                [(Mechanism.SHA_256, "\ufffe")],
            ):
                connection = await door.dialled()
                with contextlib.suppress(Unauthenticated, ConnectionLost):
                    for way, line in lines:
                        await said(connection, way, line)
                    pytest.fail("was let in")
                await connection.wait_closed()
                assert isinstance(connection.error, Unauthenticated)

    asyncio.run(scenario())


def test_a_guest_may_send_no_long_frames() -> None:
    async def scenario() -> None:
        async with opened() as door:
            connection = await door.dialled()
            with pytest.raises((AngariumError, WireError)):
                await connection.request(
                    int(Operation.AUTHENTICATE), b"", [bytes(1_000_000)], timeout_s=5.0
                )
            await connection.wait_closed()
            with pytest.raises(AngariumError):
                await who_is(door, token="angt_" + "A" * 1_000_000)
            assert await who_is(door, user="alice", password="right") == "alice"

    asyncio.run(scenario())


def test_who_never_says_who_it_is_does_not_keep_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page, "LOGIN_S_MAX", 0.2)

    async def scenario() -> None:
        async with opened() as door:
            connection = await door.dialled()
            async with asyncio.timeout(10):
                await connection.wait_closed()
            assert "proved who they are" in str(connection.error)
            stays = await door.dialled(door.accounts.issue("alice").encode())
            await asyncio.sleep(0.3)
            assert await name_of(stays) == "alice"

    asyncio.run(scenario())


def test_a_connection_ends_with_the_token_it_was_opened_with() -> None:
    async def scenario() -> None:
        async with opened() as door:
            connection = await door.dialled(
                door.accounts.issue("alice", "ci", seconds=0.5).encode()
            )
            assert await name_of(connection) == "alice"
            async with asyncio.timeout(10):
                await connection.wait_closed()
            assert isinstance(connection.error, Unauthenticated)
            assert "'ci' of 'alice' has expired" in str(connection.error)

    asyncio.run(scenario())


def test_many_bad_logins_do_not_disturb_a_good_client() -> None:
    async def scenario() -> None:
        async with opened() as door:
            good = await door.dialled(door.accounts.issue("alice").encode())
            refused: list[type[BaseException]] = []

            async def guess(number: int) -> None:
                name = "mallory" if number % 2 else f"user-{number}"
                exchange = ClientExchange(name)
                connection = await door.dialled()
                try:
                    challenge = await said(connection, Mechanism.SHA_256, exchange.first())
                    await said(connection, Mechanism.SHA_256, exchange.final(challenge, bytes(32)))
                except AngariumError as error:
                    refused.append(type(connection.error or error))
                finally:
                    connection.abort()

            async def flood() -> None:
                for begin in range(0, 500, 50):
                    await asyncio.gather(*(guess(begin + at) for at in range(50)))

            flooding = asyncio.create_task(flood())
            longest = 0.0
            logins = 0
            while not flooding.done():
                begun = time.monotonic()
                assert await name_of(good) == "alice"
                longest = max(longest, time.monotonic() - begun)
                assert await who_is(door, user="alice", password="right") == "alice"
                logins += 1
            await flooding
            assert logins > 0
            assert len(refused) == 500
            assert set(refused) <= {Unauthenticated, LimitExceeded}
            assert refused.count(LimitExceeded) > 100
            assert longest < 2.0

    asyncio.run(scenario())
