"""Pages of other origins in a real browser: what they can make it do at the doors of a node.

    make browser

Chromium is shown pages of another site, of the same host without TLS, and of the same host at
another port, while it proves with every request that it is the administrator's. Each line says what
was tried and what came of it; one that is not as it should be makes it exit 1.
"""

from __future__ import annotations

import asyncio
import base64
import sys
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.browser.chromium import INSTALL, browser, missing
from tests.browser.servers import PASSWORD, Node, key_digest, node, proxy, site, tls_of
from tests.certificates import Folder

from angarium.app.settings import HttpSettings
from angarium.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.browser.chromium import Browser

TOPIC: Final = "orders"
RECORDS: Final = f"/v1/topics/{TOPIC}/records"
HOSTS: Final = ("secure.test", "plain.test", "proxy.test", "evil.test")

FETCH: Final = """
const [url, options, done] = arguments;
fetch(url, options).then(async (it) => done(`${it.type} ${it.status} ${await it.text()}`),
                         (error) => done(String(error)));
"""
SOCKET: Final = """
const [url, protocol, first, done] = arguments;
const socket = new WebSocket(url, protocol);
socket.onopen = () => socket.send(first);
socket.onmessage = (event) => done(event.data);
socket.onclose = () => done("closed");
"""
IMAGE: Final = """
const [url, done] = arguments;
const image = new Image();
image.onload = image.onerror = (event) => done(event.type);
image.src = url;
"""
LINK: Final = """
const [url, policy, done] = arguments;
const link = document.createElement("a");
link.href = url; link.referrerPolicy = policy; document.body.append(link); link.click();
done("");
"""
FORM: Final = """
const [url, done] = arguments;
const form = document.createElement("form");
form.method = "post"; form.action = url; form.enctype = "text/plain";
form.innerHTML = "<input name=a value=b>"; document.body.append(form); form.submit();
done("");
"""
FRAME: Final = """
const [url, done] = arguments;
const frame = document.createElement("iframe");
frame.onload = () => done("loaded"); frame.src = url; document.body.append(frame);
"""
EVENTS: Final = """
const [url, done] = arguments;
const events = new EventSource(url);
events.onmessage = (event) => { events.close(); done(event.data); };
events.onerror = () => { events.close(); done("refused"); };
"""
ASK: Final = """
const [query, expected, done] = arguments;
document.getElementById("query").value = query;
document.getElementById("run").click();
const look = () => {
  const text = document.getElementById("answer").textContent;
  if (text.includes(expected) || text.includes("rror")) done(text); else setTimeout(look, 50);
};
look();
"""


class Found(NamedTuple):
    """What came of one try."""

    what: str
    is_right: bool
    said: str


class Scenes:
    """All that is tried, with one browser."""

    def __init__(self, secure: Node, plain: Node, shown: Browser) -> None:
        self._secure = secure
        self._plain = plain
        self._browser = shown
        self.found: list[Found] = []

    async def run(self) -> None:
        """Try everything."""
        # As a client certificate would be: with every request, whichever page sends it.
        proof = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        await self._do(self._browser.add_headers, {"Authorization": f"Basic {proof}"})
        await self._own_pages()
        for page in ("http://secure.test/", "https://secure.test:8443/", "http://evil.test/"):
            await self._at_secure(page)
        for page in ("http://evil.test/", "https://secure.test:8443/"):
            await self._at_plain(page)
        await self._pages_of_plain()
        await self._hsts()

    # --- what should work -----------------------------------------------------------------------

    async def _own_pages(self) -> None:
        for page, what in (
            ("https://secure.test", "a page of the node, over TLS"),
            ("https://proxy.test", "a page of the node, behind a proxy that ends TLS"),
            ("http://plain.test", "a page of the node, without TLS"),
        ):
            await self._do(self._browser.open, f"{page}/graphql")
            said = await self._do(self._browser.run, ASK, "{ topics { name } }", TOPIC)
            self._note(f"{what}: asks", TOPIC in said and "errors" not in said, said)
            said = await self._do(
                self._browser.run,
                ASK,
                f'subscription {{ subscribe(topic: "{TOPIC}") {{ id }} }}',
                "listening",
            )
            self._note(f"{what}: opens a WebSocket", "listening" in said, said)
            options = {"method": "POST", "body": "own", "headers": {"content-type": "text/plain"}}
            said = await self._do(self._browser.run, FETCH, RECORDS, options)
            self._note(f"{what}: publishes", said.startswith("basic 200"), said)

    async def _pages_of_plain(self) -> None:
        await self._do(self._browser.open, "http://plain.test/graphql")
        url = f"/v1/topics/{TOPIC}/stream?group=own"
        asking = asyncio.create_task(self._do(self._browser.run, EVENTS, url))
        await asyncio.sleep(1)
        await self._plain.client.publish(TOPIC, "a job")
        said = await asking
        self._note(
            "a page of the node, without TLS: takes part in a group", '"value"' in said, said
        )

    # --- what should not ------------------------------------------------------------------------

    async def _at_secure(self, page: str) -> None:
        target, node = "https://secure.test", self._secure
        include = {"mode": "no-cors", "credentials": "include"}
        publish = {**include, "method": "POST", "body": "stolen"}
        await self._nothing(
            node, page, "publishes", partial(self._browser.run, FETCH, target + RECORDS, publish)
        )
        await self._nothing(
            node, page, "sends a form", partial(self._browser.run, FORM, target + RECORDS)
        )
        await self._do(self._browser.open, page)
        query = {**include, "mode": "cors"}
        said = await self._do(self._browser.run, FETCH, f"{target}/v1/users", query)
        self._note(f"{page} reads the users at {target}", "admin" not in said, said)
        init = '{"type": "connection_init"}'
        said = await self._do(
            self._browser.run, SOCKET, "wss://secure.test/graphql", "graphql-transport-ws", init
        )
        self._note(f"{page} opens a WebSocket at {target}", said == "closed", said)
        await self._do(self._browser.open, page)
        await self._do(self._browser.run, FRAME, f"{target}/graphql")
        await self._do(self._browser.enter_frame)
        shown = await self._do(lambda: self._browser.source)
        self._note(f"{page} shows {target}/graphql in a frame", "Operation" not in shown, shown)
        await self._groups(node, page, target)

    async def _at_plain(self, page: str) -> None:
        target, node = "http://plain.test", self._plain
        if page.startswith("http:"):
            publish = {"mode": "no-cors", "method": "POST", "body": "stolen"}
            await self._nothing(
                node,
                page,
                "publishes",
                partial(self._browser.run, FETCH, target + RECORDS, publish),
            )
        await self._groups(node, page, target)

    async def _groups(self, node: Node, page: str, target: str) -> None:
        """Try to have the browser take part in a group."""
        for name in ("group", "%67roup", "%67%72%6F%75%70"):
            url = f"{target}/v1/topics/{TOPIC}/stream?{name}=stolen"
            events = {"mode": "no-cors", "headers": {"accept": "text/event-stream"}}
            for what, work in (
                (f"links to ?{name}=", partial(self._browser.run, LINK, url, "no-referrer")),
                (f"links to ?{name}=, with its address", partial(self._browser.run, LINK, url, "")),
                (f"shows an image ?{name}=", partial(self._browser.run, IMAGE, url)),
                (f"fetches ?{name}=", partial(self._browser.run, FETCH, url, events)),
            ):
                if page.startswith("https:") and target.startswith("http:") and "links" not in what:
                    continue  # browsers upgrade or block these by themselves
                await self._nothing(node, page, what, work)

    async def _nothing(self, node: Node, page: str, what: str, work: Callable[[], object]) -> None:
        """Do something on a page that must change nothing at a node."""
        await self._do(self._browser.open, page)
        before = await _state(node)
        try:
            said = str(await self._do(work))
            await asyncio.sleep(0.3)
        except RuntimeError as error:
            said = str(error)
        after = await _state(node)
        where = "secure.test" if node is self._secure else "plain.test"
        self._note(f"{page} {what} at {where}", before == after, f"{after} {said}")
        if "stolen" in after[1]:
            await self._do(self._browser.open, "about:blank")
            await _forget(node)

    async def _hsts(self) -> None:
        await self._do(self._browser.open, "http://secure.test/")
        url = await self._do(lambda: self._browser.url)
        self._note("without HSTS http://secure.test stays what it is", url.startswith("http:"), url)
        await self._do(self._browser.open, "https://bound.test/healthz")
        await self._do(self._browser.open, "http://bound.test/")
        url = await self._do(lambda: self._browser.url)
        self._note("with HSTS http://bound.test becomes https", url.startswith("https:"), url)

    # --- the rest -------------------------------------------------------------------------------

    async def _do(self, work: Callable[..., Any], *arguments: object) -> Any:
        return await asyncio.to_thread(work, *arguments)

    def _note(self, what: str, is_right: bool, said: object) -> None:
        self.found.append(Found(what, is_right, str(said)))
        shown = "" if is_right else f": {str(said)[:300]}"
        print(f"{'as it should' if is_right else 'WRONG       '}  {what}{shown}", flush=True)


async def _state(node: Node) -> tuple[int, str]:
    """Return how many records a node has, and which groups."""
    records = await node.client.find_offset(TOPIC, 0, "latest")
    groups = await node.client.list_groups()
    return int(records), " ".join(sorted(one.name for one in groups))


async def _forget(node: Node) -> None:
    """Have the group go that a page has made, so that the next try shows by itself."""
    for _ in range(100):
        try:
            await node.client.delete_group("stolen")
        except NotFound:
            return
        except Exception:
            await asyncio.sleep(0.1)


async def main() -> int:
    """Open all there is, and try; return how many tries did not end as they should."""
    lacking = missing()
    if lacking:
        print(f"{lacking} is missing: {INSTALL}")
        return 2
    async with AsyncExitStack() as running:
        path = Path(running.enter_context(tempfile.TemporaryDirectory()))
        folder = Folder(path)
        names = ("localhost", "127.0.0.1", "secure.test", "bound.test", "proxy.test")
        shown = folder.pair("shown", uri="angarium://testing/node/one", hosts=names)
        context = tls_of(shown)
        hosts = HttpSettings(hosts=("secure.test",))
        bound = HttpSettings(hosts=("bound.test",), hsts_s=600)
        open_ = HttpSettings(hosts=("plain.test", "proxy.test"), origins=("https://proxy.test",))
        with_tls = partial(node, folder=folder, shown=shown)
        secure = await running.enter_async_context(with_tls(path / "secure", hosts))
        binding = await running.enter_async_context(with_tls(path / "bound", bound))
        plain = await running.enter_async_context(node(path / "plain", open_))
        ended = await running.enter_async_context(proxy(plain.http_port, tls=context))
        evil = await running.enter_async_context(site())
        evil_tls = await running.enter_async_context(site(tls=context))
        for one in (secure, plain):
            await one.client.create_topic(TOPIC, partitions=1)
        addresses = {
            "secure.test:443": secure.http_port,
            "secure.test:80": evil,
            "secure.test:8443": evil_tls,
            "bound.test:443": binding.http_port,
            "bound.test:80": evil,
            "plain.test:80": plain.http_port,
            "proxy.test:443": ended,
            "evil.test:80": evil,
        }
        starting = browser(
            path / "profile",
            addresses=addresses,
            trusted=key_digest(shown),
            logs=path / "chromedriver.log",
        )
        window = await asyncio.to_thread(starting.__enter__)
        try:
            scenes = Scenes(secure, plain, window)
            await scenes.run()
        finally:
            await asyncio.to_thread(starting.__exit__, None, None, None)
    wrong = [one for one in scenes.found if not one.is_right]
    print(f"{len(scenes.found)} tries, {len(wrong)} not as they should be")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(1 if asyncio.run(main()) else 0)
