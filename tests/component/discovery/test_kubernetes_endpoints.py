"""Listing and watching EndpointSlices: tokens, watches that end, refusals, and bounds."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from tests.kubernetes_api import SERVICE, KubernetesApi, expired, write_event
from tests.on_a_loop import eventually, run

from angarium.addresses import Address
from angarium.discovery import kubernetes
from angarium.discovery.kubernetes import KubernetesDiscovery
from angarium.discovery.port import ADDRESSES_MAX, DiscoveryFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ONE, OTHER = Address("10.0.0.1", 7400), Address("10.0.0.2", 7400)
PAUSE_S = 0.5


def discovery_of(running: KubernetesApi, **other: object) -> KubernetesDiscovery:
    settings: dict[str, object] = {
        "api": running.address,
        "credentials": running.credentials,
        "port_name": "wire",
        "port": 1,
    }
    return KubernetesDiscovery(SERVICE, **{**settings, **other})  # type: ignore[arg-type]


async def failure(discovery: KubernetesDiscovery) -> str:
    with pytest.raises(DiscoveryFailed) as failed:
        await discovery.find()
    return str(failed.value)


@asynccontextmanager
async def followed(discovery: KubernetesDiscovery) -> AsyncIterator[list[set[Address]]]:
    """Collect what a follower yields, each time that is something new."""
    seen: list[set[Address]] = []

    async def follow() -> None:
        async with aclosing(discovery.follow()) as following:
            async for found in following:
                if not seen or seen[-1] != set(found.addresses):
                    seen.append(set(found.addresses))

    task = asyncio.create_task(follow())
    try:
        yield seen
    finally:
        if task.done():
            task.result()
        task.cancel()


def test_a_watch_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            api.bookmark_s = 0.05
            await api.set_slice("a", [ONE])
            async with followed(discovery_of(api)) as seen:
                await eventually(lambda: seen == [{ONE}])
                await api.set_slice("b", [OTHER])
                await eventually(lambda: seen[-1] == {ONE, OTHER})
                await api.delete_slice("a")
                await eventually(lambda: seen[-1] == {OTHER})
            lists = [one for one in api.requests if "watch" not in one]
            assert len(lists) == 1, "what a watch tells need not be listed again"

    run(story())


def test_what_a_watch_cannot_go_on_from_is_listed_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            await api.set_slice("a", [ONE])
            async with followed(discovery_of(api)) as seen:
                await eventually(lambda: seen == [{ONE}])
                await eventually(lambda: any("watch" in one for one in api.requests))
                api._slices.clear()  # what happened meanwhile is not told any more
                api._version += 5
                await api.forget_history()
                await api.set_slice("b", [OTHER])
                await eventually(lambda: seen[-1] == {OTHER})
            assert len([one for one in api.requests if "watch" not in one]) == 2

    run(story())


@pytest.mark.parametrize("is_outdated", [False, True])
def test_a_server_that_ends_watches_at_once_is_not_asked_in_a_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_outdated: bool
) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            began: list[float] = []

            async def watch(_: int, __: dict[str, str], writer: asyncio.StreamWriter) -> None:
                began.append(asyncio.get_running_loop().time())
                api._begin(writer)
                if is_outdated:
                    write_event(writer, {"type": "ERROR", "object": expired()})
                writer.write(b"0\r\n\r\n")

            monkeypatch.setattr(api, "_watch", watch)
            monkeypatch.setattr(kubernetes, "WATCH_S_MIN", PAUSE_S)
            await api.set_slice("a", [ONE])
            started = asyncio.get_running_loop().time()
            async with followed(discovery_of(api)) as seen:
                await eventually(lambda: len(began) >= 4)
            assert seen == [{ONE}]
            assert began[3] - started > 3 * PAUSE_S
            lists = [one for one in api.requests if "watch" not in one]
            assert len(lists) >= (4 if is_outdated else 1)

    run(story())


def test_a_token_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            await api.set_slice("a", [ONE])
            discovery = discovery_of(api)
            assert (await discovery.find()).addresses == (ONE,)
            api.rotate_token("second-token")
            assert (await discovery.find()).addresses == (ONE,)
            (api.credentials / "token").write_text("forged")
            said = await failure(discovery)
            assert "401 (Unauthorized): it does not accept the token in" in said
            assert "forged" not in said

    run(story())


def test_without_its_role_it_says_which_one_is_needed(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            api.is_allowed = False
            said = await failure(discovery_of(api))
            assert 'cannot list resource "endpointslices"' in said
            assert "the verbs get, list and watch on endpointslices of discovery.k8s.io" in said
            assert "in the namespace brokers" in said

    run(story())


def test_a_service_without_endpoints_says_what_to_look_at(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            said = await failure(discovery_of(api))
            assert "the service angarium has no endpoints in the namespace brokers" in said
            assert "publishNotReadyAddresses" in said
            # Who follows waits for them instead.
            async with followed(discovery_of(api)) as seen:
                await eventually(lambda: seen == [set()])
                await api.set_slice("a", [ONE])
                await eventually(lambda: seen[-1] == {ONE})

    run(story())


def test_a_pod_in_two_slices_is_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            await api.set_slice("a", [ONE, OTHER])
            await api.set_slice("b", [ONE])
            assert (await discovery_of(api).find()).addresses == (ONE, OTHER)

    run(story())


def test_an_answer_is_bounded(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            many = [Address(f"10.{number >> 8}.{number & 255}.1", 7400) for number in range(2_000)]
            await api.set_slice("a", many)
            assert len((await discovery_of(api).find()).addresses) == ADDRESSES_MAX

    run(story())


def test_a_server_that_cannot_be_believed_gets_no_token(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path / "one") as api:
            from tests.certificates import authority

            (api.credentials / "ca.crt").write_bytes(authority("somebody else").pem)
            said = await failure(discovery_of(api))
            assert "is not believed" in said
            assert api.requests == []

    run(story())


def test_without_a_service_account_it_says_what_is_missing(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            said = await failure(discovery_of(api, credentials=tmp_path / "nothing"))
            assert "automountServiceAccountToken" in said

    run(story())


def test_an_api_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:
            nowhere = discovery_of(api, api=Address("127.0.0.1", 1))
            assert (await failure(nowhere)).startswith(
                "the Kubernetes API at 127.0.0.1:1 cannot be reached"
            )

    run(story())


@pytest.mark.parametrize(
    "content",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: " + b"x" * 100_000,
        b"",
    ],
)
def test_an_answer_that_makes_no_sense_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    async def story() -> None:
        async with KubernetesApi(tmp_path) as api:

            async def answer(head: str, writer: asyncio.StreamWriter) -> None:
                writer.write(content)

            monkeypatch.setattr(api, "_answer", answer)
            said = await failure(discovery_of(api))
            assert said.startswith("the Kubernetes API")

    run(story())
