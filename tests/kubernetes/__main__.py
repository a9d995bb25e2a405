"""Discovery by Kubernetes with a real API server: nodes of ours watch EndpointSlices there.

    make kubernetes

Each line says what was tried and what came of it; one that is not as it should be makes it exit 1.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.judges.verdicts import MissingTool
from tests.kubernetes.nodes import Nodes, eventually
from tests.kubernetes.programs import KUBERNETES
from tests.kubernetes.server import NAMESPACE, SERVICE, api_server, own_address, write_credentials

from angarium.addresses import Address
from angarium.discovery import kubernetes
from angarium.discovery.kubernetes import KubernetesDiscovery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.kubernetes.server import ApiServer

    from angarium.discovery.endpoint_slices import EndpointSliceList
    from angarium.discovery.https import Answer

GUIDE: Final = Path(__file__).resolve().parents[2] / "docs" / "guides" / "discovery.md"
ACCOUNT: Final = "angarium"
STRANGER: Final = "stranger"
"""A service account that has no Role."""

SHORT_WATCH_S: Final = 6
"""How long a watch is asked for where its end is waited for: the server's shortest."""


class Findings:
    """What was tried, as it goes."""

    def __init__(self) -> None:
        self.wrong = 0
        self._began = time.monotonic()

    def tell(self, what: str, *, is_right: bool, found: object = "") -> None:
        """Print one line."""
        self.wrong += not is_right
        took = time.monotonic() - self._began
        self._began = time.monotonic()
        said = f": {found}" if found != "" else ""
        print(f"{'ok' if is_right else 'WRONG':6}{what}{said} ({took:.1f} s)", flush=True)


class ObservedDiscovery(KubernetesDiscovery):
    """What nodes have, with what it asks for written down, and a gate before each request."""

    def __init__(self, server: ApiServer, credentials: Path) -> None:
        where = {"api": server.address, "credentials": credentials}
        super().__init__(SERVICE, **where, port_name="wire", port=1)  # type: ignore[arg-type]
        self.lists = 0
        self.watches: list[int] = []
        """From which version each watch was asked for."""
        self.gate = asyncio.Event()
        self.gate.set()
        self.seen: set[Address] = set()

    async def _list(self) -> EndpointSliceList:
        self.lists += 1
        return await super()._list()

    @asynccontextmanager
    async def _asked(self, query: str) -> AsyncIterator[Answer]:
        if found := re.search(r"resourceVersion=(\d+)", query):
            self.watches.append(int(found[1]))
        await self.gate.wait()
        async with super()._asked(query) as answer:
            yield answer

    async def run(self) -> None:
        """Keep `seen` up to date, until it cannot."""
        async with aclosing(self.follow()) as following:
            async for one in following:
                self.seen = set(one.addresses)


async def watched(server: ApiServer, credentials: Path, findings: Findings) -> None:
    """Try what a watch says and how it ends."""
    loop = asyncio.get_running_loop()

    async def do(work: Any, *given: object) -> Any:
        return await loop.run_in_executor(None, lambda: work(*given))

    one, other = Address("10.1.0.1", 7400), Address("10.1.0.2", 7401)
    await do(server.set_slice, "a", one)
    observed = ObservedDiscovery(server, credentials)
    task = asyncio.create_task(observed.run())
    found = await eventually(lambda: observed.seen == {one}, until=task)
    findings.tell("what is listed is found", is_right=found, found=sorted(map(str, observed.seen)))
    await do(server.set_slice, "b", other)
    found = await eventually(lambda: observed.seen == {one, other}, until=task)
    findings.tell("what a watch tells is added", is_right=found)
    await do(server.delete, "EndpointSlice", "b")
    found = await eventually(lambda: observed.seen == {one}, until=task)
    findings.tell("what it tells is gone is gone", is_right=found)

    # Something else is written, so that the versions go on, and slices do not change.
    await do(server.make, "Secret", "noise")
    newest = int(await do(server.version))
    found = await eventually(lambda: observed.watches[-1] >= newest, until=task)
    findings.tell(
        "a watch that ends goes on from its last bookmark, and nothing is listed again",
        is_right=found and observed.lists == 1,
        found=f"from versions {observed.watches}, {observed.lists} list",
    )

    # The next watch is held back until nobody knows any more what was before.
    observed.gate.clear()
    asked = len(observed.watches)
    await eventually(lambda: len(observed.watches) > asked, until=task)
    for number in range(3):
        await do(server.set_slice, "b", Address("10.1.0.9", 7_000 + number))
    await do(server.set_slice, "b", other)
    compacted = await do(server.compact)
    await do(server.stop)
    await do(server.start)
    observed.gate.set()
    found = await eventually(lambda: observed.seen == {one, other}, until=task)
    findings.tell(
        "410 Gone: what was compacted is listed again",
        is_right=found and observed.lists == 2 and observed.watches[asked] < compacted,
        found=f"from {observed.watches[asked]}, kept from {compacted}, {observed.lists} lists",
    )
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for name in ("a", "b"):
        await do(server.delete, "EndpointSlice", name)


def serving(server: ApiServer, nodes: Nodes, findings: Findings) -> None:
    """Try what real nodes do with it, while addresses, tokens and the API server change."""
    for node in nodes.all:
        node.start(form=node is nodes.all[0])
        server.set_slice(node.name, node.address)
    findings.tell(
        "three nodes find each other", is_right=nodes.wait_until_ready(), found=nodes.told
    )

    nodes.move(server)
    is_right = nodes.wait_until_ready()
    what = "all addresses have changed, and nodes find each other again"
    findings.tell(what, is_right=is_right, found=nodes.told)
    for how, by_force in (("stopped and started", False), ("killed and started", True)):
        server.stop(by_force=by_force)
        server.start()
        is_right = notices(server, nodes)
        findings.tell(f"the API server was {how}: running nodes watch on", is_right=is_right)

    server.stop()
    nodes.move()
    is_told = nodes.wait_for("cannot be reached")
    findings.tell("without an API server nodes say so", is_right=is_told, found=nodes.said)
    server.start()
    for node in nodes.all:
        server.set_slice(node.name, node.address)
    findings.tell("and find each other once it is back", is_right=nodes.wait_until_ready())


def notices(server: ApiServer, nodes: Nodes) -> bool:
    """Tell whether nodes that run hear that a pod comes, and that it goes."""
    server.set_slice("newcomer", Address("10.1.0.1", 7400))
    has_come = nodes.wait_until_found(4)
    server.delete("EndpointSlice", "newcomer")
    return has_come and nodes.wait_until_found(3)


def proving(server: ApiServer, nodes: Nodes, findings: Findings) -> None:
    """Try tokens that end, are replaced, and may not, while nodes run.

    A watch that has begun goes on without its token: the API server is started anew to end it.
    """

    def begun_anew() -> None:
        nodes.hear_from_now_on()
        server.stop()
        server.start()

    server.delete("Secret", "first")
    begun_anew()
    is_told = nodes.wait_for("answers 401")
    findings.tell("a token that is good no more is told", is_right=is_told, found=nodes.said)
    write_credentials(nodes.credentials, server, server.token(ACCOUNT, bound_to="second"))
    what = "a token that is replaced is taken up"
    findings.tell(what, is_right=notices(server, nodes))
    write_credentials(nodes.credentials, server, server.token(STRANGER, bound_to="third"))
    begun_anew()
    is_told = nodes.wait_for("answers 403", "give the pod's service account a Role", NAMESPACE)
    what = "a token without rights is told what it needs"
    findings.tell(what, is_right=is_told, found=nodes.said)


def prepare(server: ApiServer, findings: Findings) -> None:
    """Make what the guide says, as printed, and two service accounts."""
    server.make("Namespace", NAMESPACE)
    for account in (ACCOUNT, STRANGER):
        server.make("ServiceAccount", account)
    manifests = re.findall(
        r"^```yaml\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    made = [kind for one in manifests for kind in server.apply(one)]
    wanted = ["Service", "Role", "RoleBinding"]
    findings.tell("the guide's manifests are taken", is_right=made == wanted, found=made)


def main() -> int:
    """Tell the story; return the exit status."""
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="angarium-kubernetes-") as name:
        folder = Path(name)
        try:
            with api_server(folder) as server:
                findings.tell(f"Kubernetes {KUBERNETES} runs", is_right=True)
                prepare(server, findings)
                credentials = folder / "serviceaccount"
                write_credentials(credentials, server, server.token(ACCOUNT, bound_to="first"))
                whole_s, kubernetes.WATCH_S = kubernetes.WATCH_S, SHORT_WATCH_S  # type: ignore[misc]
                asyncio.run(watched(server, credentials, findings))
                kubernetes.WATCH_S = whole_s  # type: ignore[misc]
                with Nodes(folder, server.address, credentials, own_address()) as nodes:
                    serving(server, nodes, findings)
                    proving(server, nodes, findings)
        except MissingTool as missing:
            print(missing)
            return 1
    return int(findings.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
