"""The cluster that is asked, with authentication on, and the things that calls are done to."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict
from contextlib import AsyncExitStack
from itertools import count
from typing import TYPE_CHECKING, Final

from tests.contract.wire_transactions import WireTransactions
from tests.doors.matrix.answers import ANSWER_S_MAX
from tests.doors.matrix.callers import CALLERS, PASSWORD
from tests.doors.matrix.rows import PREFIXES, Names
from tests.doors.matrix.wire_door import dialled

from angarium.api import Checkpoint, ClusterStatus, TopicConfig
from angarium.api.access import Grant, ResourceKind, SubjectKind
from angarium.api.quotas import QuotaKind, QuotaSubject
from angarium.bench.cluster import BenchCluster, BenchNode, free_ports
from angarium.client import Client, ClientSettings
from angarium.client.contract import RemoteBroker
from angarium.client.login import Login
from angarium.errors import AngariumError
from angarium.ids import Offset
from angarium.wire import Unreachable
from angarium.wire.operations import Operation

if TYPE_CHECKING:
    from pathlib import Path

    from tests.doors.matrix.callers import Caller
    from tests.doors.matrix.rows import Row

    from angarium.wire import Connection

ADMIN_PASSWORD: Final = "the first administrator's"
START_S_MAX: Final = 120.0
PATIENT: Final = ClientSettings(request_timeout_s=400.0, attempt_timeout_s=60.0)
"""The machine of the tests may have ten others on it."""

DEAD_LETTERS: Final = "angarium.dlq"
REDRIVE: Final = "angarium.redrive"


class SecuredCluster(BenchCluster):
    """Nodes in processes of their own that let nobody in without a proof.

    Without TLS: what calls are allowed does not depend on it.
    """

    def __init__(self, folder: Path, *, nodes: int = 1, bug: str = "") -> None:
        """`bug` is one to plant (`planted`)."""
        required = {
            "ANGARIUM_SECURITY_AUTHENTICATION": "required",
            "ANGARIUM_SECURITY_TRUST_PEERS": "true" if nodes > 1 else "false",
            "ANGARIUM_ADMIN_PASSWORD": ADMIN_PASSWORD,
            "ANGARIUM_AUDIT_RECORD": "off",
        }
        self._own = [dict(required) for _ in range(nodes)]
        planted = ("-m", "tests.doors.matrix.planted", bug) if bug else ()
        super().__init__(
            folder,
            nodes=nodes,
            interpreter=(sys.executable, *planted),
            environments=self._own,
        )

    def admin(self, *addresses: str) -> Client:
        """Return a client of the first administrator."""
        servers = addresses or tuple(one.wire for one in self.nodes)
        return Client(*servers, user="admin", password=ADMIN_PASSWORD, settings=PATIENT)

    async def have_heard(self) -> None:
        """Return when every node knows of what the catalog was told through one of them."""
        async with AsyncExitStack() as opened, asyncio.timeout(START_S_MAX):
            admins = [await opened.enter_async_context(self.admin(one.wire)) for one in self.nodes]
            known = max([(await one.cluster_status()).catalog_index for one in admins])
            for one in admins:
                while (await one.cluster_status()).catalog_index < known:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    async def start(self) -> None:
        """Start the nodes: the first one forms the cluster, each other needs a join token."""
        ports = free_ports(3 * self._count)
        for number in range(self._count):
            if number:
                async with self.admin(self.nodes[0].wire) as admin:
                    issued = await admin.create_join_token()
                self._own[number]["ANGARIUM_JOIN_TOKEN"] = issued.secret
            self._start_node(number + 1, *ports[3 * number : 3 * number + 3])
            if number == 0:
                await self._until_members(1)
        await self._until_members(self._count)

    async def _until_members(self, count: int) -> None:
        deadline = asyncio.get_running_loop().time() + START_S_MAX
        for node in self.nodes:
            while not await self._sees(node, count):
                if asyncio.get_running_loop().time() > deadline or self._has_ended():
                    raise Unreachable(f"the cluster did not come up:\n{self.last_words()}")
                # Not often: who fails to log in too often has to wait.
                await asyncio.sleep(0.3)

    async def _sees(self, node: BenchNode, count: int) -> bool:
        quick = ClientSettings(request_timeout_s=2.0)
        client = Client(node.wire, user="admin", password=ADMIN_PASSWORD, settings=quick)
        try:
            async with client:
                status = await client.cluster_status()
        except AngariumError:
            return False
        alive = sum(one.alive for one in status.nodes)
        return status.catalog_leader is not None and alive == len(status.nodes) == count


class World:
    """Everybody and everything, as the first administrator has made it."""

    def __init__(self, cluster: SecuredCluster) -> None:
        self.cluster = cluster
        self.client = cluster.admin()
        self.token = ""
        """The secret of the caller that comes with one."""
        self._broker = RemoteBroker(self.client)
        self._numbers = count(1)
        self._epochs: dict[str, int] = {}
        self._victims: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        self.there: dict[str, frozenset[str]] = {}
        """By list: what it has from beginning to end."""
        self._nodes: list[Connection] = []
        """One to each node, if there are several."""

    async def prepare(self) -> None:
        """Make the callers, and of each kind of thing one for each case."""
        client = self.client
        async with asyncio.TaskGroup() as tasks:
            for one in CALLERS:
                tasks.create_task(self._make(one))
        for case in ("plain", "team"):
            prefix = PREFIXES[case]
            await client.create_topic(f"{prefix}.orders")
            await client.publish(f"{prefix}.orders", b"first")
            await client.create_user(f"{prefix}.user")
            await client.create_token(f"{prefix}.user", "kept")
            limits = {QuotaKind.REQUESTS: 1_000_000}
            await client.set_quota(QuotaSubject.USER, f"{prefix}.user", limits)
            await client.create_role(f"{prefix}.role")
            transactions = WireTransactions(client)
            series = await transactions.open_series(f"{prefix}.series")
            self._epochs[case] = series.epoch
            await transactions.open_sequenced(f"{prefix}.producer")
            async with client.group(f"{prefix}.group").consume(f"{prefix}.orders") as records:
                await anext(aiter(records))
        await self._make_a_dead_letter(f"{PREFIXES['plain']}.orders")
        if len(self.cluster.nodes) > 1:
            self._nodes = [await self._dialled(one) for one in self.cluster.nodes]
        await self._until_heard()
        self.there = {
            "list_topics": frozenset(one.name for one in await client.list_topics()),
            "list_groups": frozenset(one.name for one in await client.list_groups()),
            "list_users": frozenset(one.name for one in await client.list_users()),
            "list_roles": frozenset(one.name for one in await client.list_roles()),
            "list_tokens": frozenset(one.owner for one in await client.list_tokens()),
        }

    async def _make(self, caller: Caller) -> None:
        client = self.client
        if caller.user:
            await client.create_user(caller.user, password=PASSWORD, roles=caller.roles)
        for grant in caller.grants:
            await client.create_grant(SubjectKind.USER, caller.user, grant)
        if caller.narrowing is not None:
            issued = await client.create_token(caller.user, "narrow", grants=caller.narrowing)
            self.token = issued.secret

    async def _make_a_dead_letter(self, topic: str) -> None:
        """Let a group give a record up, and somebody deal with it: that makes the cluster's own."""
        client = self.client
        async with client.group("giving-up").consume(topic) as records:
            async for record in records:
                await record.reject("on purpose")
                break
        async with asyncio.timeout(START_S_MAX):
            names: set[str] = set()
            while DEAD_LETTERS not in names:
                names = {one.name for one in await client.list_topics()}
                await asyncio.sleep(0.05)
        checkpoint = Checkpoint(DEAD_LETTERS, 0, Offset(0))
        await self._broker.report_checkpoints(REDRIVE, [checkpoint])

    async def _dialled(self, node: BenchNode) -> Connection:
        made = await dialled(node)
        await Login(user="admin", password=ADMIN_PASSWORD).prove(made, timeout_s=ANSWER_S_MAX)
        return made

    async def _until_heard(self) -> None:
        """Return when every node knows what was made through one of them."""

        async def index_at(node: Connection) -> int:
            frame = await node.request(int(Operation.CLUSTER_STATUS), timeout_s=ANSWER_S_MAX)
            return int(frame.read(ClusterStatus).catalog_index)

        indexes = [await index_at(one) for one in self._nodes]
        for node in self._nodes:
            async with asyncio.timeout(START_S_MAX):
                while True:
                    if await index_at(node) >= max(indexes):
                        break
                    await asyncio.sleep(0.02)

    # --- names ----------------------------------------------------------------------------------

    async def names(self, row: Row, case: str, caller: Caller, door: str) -> Names:
        """Return what a call is done to: all of it is there."""
        prefix = PREFIXES[case]
        number = next(self._numbers)
        found = {
            "topic": DEAD_LETTERS if case == "own" else f"{prefix}.orders",
            "group": REDRIVE if case == "own" else f"{prefix}.group",
            "user": (caller.user or "anonymous") if row.is_own else f"{prefix}.user",
            "role": f"{prefix}.role",
            "token": "",
            "grant": "0",
            "quota": "",
            "join_token": "0",
        }
        if row.takes:
            found[row.takes] = await self._victim(row.takes, case, door)
        return Names(
            topic=found["topic"],
            group=found["group"],
            series=f"{prefix}.series",
            producer=f"{prefix}.producer",
            user=found["user"],
            role=found["role"],
            token=found["token"],
            grant=int(found["grant"]),
            quota=found["quota"],
            join_token=int(found["join_token"]),
            fresh=f"{prefix}.fresh-{number}",
            number=number,
            epoch=self._epochs.get(case, 0),
            roles=caller.roles if row.is_own else (),
        )

    def spent(self, row: Row, case: str, door: str) -> None:
        """Note that a call has used up what it was done to."""
        if row.takes:
            self._victims[row.takes, case, door].pop()

    async def _victim(self, kind: str, case: str, door: str) -> str:
        """Return something that is there, and may be gone after the call."""
        there = self._victims[kind, case, door]
        if not there:
            there.append(await self._made(kind, PREFIXES[case]))
            await self._until_heard()
        return there[-1]

    async def _made(self, kind: str, prefix: str) -> str:
        client, name = self.client, f"{prefix}.victim-{next(self._numbers)}"
        match kind:
            case "topic":
                await self._broker.create_topic(name, partitions=1, config=TopicConfig())
            case "group":
                checkpoint = Checkpoint(f"{prefix}.orders", 0, Offset(0))
                await self._broker.report_checkpoints(name, [checkpoint])
            case "user":
                await client.create_user(name)
            case "quota":
                await client.create_user(name)
                await client.set_quota(QuotaSubject.USER, name, {QuotaKind.REQUESTS: 1_000_000})
            case "join_token":
                return str((await client.create_join_token()).info.id)
            case "role":
                await client.create_role(name)
            case "token":
                await client.create_token(f"{prefix}.user", name)
            case "grant":
                grant = Grant(actions=("topic.read",), kind=ResourceKind.TOPIC, name=name)
                made = await client.create_grant(SubjectKind.USER, f"{prefix}.user", grant)
                return str(made.id)
        return name

    async def close(self) -> None:
        for one in self._nodes:
            await one.close(timeout_s=1.0)
        await self.client.close()
