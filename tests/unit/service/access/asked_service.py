"""A service that only notes what it was asked, and a catalog in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from angarium.api import GroupConfig, GroupInfo
from angarium.api.balance import BalanceInfo
from angarium.errors import NotFound
from angarium.ids import Index, Micros, RaftGroupId, Term
from angarium.kinds import GroupKind
from angarium.machine.catalog import CatalogMachine, Form, encode
from angarium.machine.outcomes import Refused
from angarium.node.catalog_view import CatalogView
from angarium.node.release import LEVEL_MAX
from angarium.service.access import Access
from angarium.wire.error_codec import Failure, error_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api.access import Principal
    from angarium.machine.catalog import CatalogCommand, CatalogOutcome
    from angarium.service.access import PermittedBroker
    from angarium.service.metering import MeteredService


GROUP = GroupInfo(name="g", kind=GroupKind.QUEUE, config=GroupConfig())

BALANCED = ("describe_balance", "rebalance", "cancel_rebalance", "set_auto_balance")


class MemoryCatalog(CatalogView):
    """The catalog of one node, without Raft."""

    def __init__(self, *, level: int = LEVEL_MAX) -> None:
        self.machine = CatalogMachine()
        self._index = 0
        self.watchers: list[Callable[[], None]] = []
        self._apply(Form(cluster="one", level=level))

    @property
    def _known(self) -> CatalogMachine:
        return self.machine

    @property
    def is_here(self) -> bool:
        return True

    @property
    def applied(self) -> Index:
        return Index(self._index)

    def name_of(self, group: RaftGroupId) -> str:
        return str(group)

    async def catch_up(self) -> None:
        pass

    def watch_policy(self, watcher: Callable[[], None]) -> None:
        self.watchers.append(watcher)

    async def submit(self, command: CatalogCommand) -> CatalogOutcome:
        outcome = self._apply(command)
        if isinstance(outcome, Refused):
            raise error_of(Failure(outcome.code, outcome.message))
        return outcome

    def _apply(self, command: CatalogCommand) -> CatalogOutcome:
        self._index += 1
        return self.machine.apply(Index(self._index), Term(1), encode(command)).outcomes[0]


class AskedService:
    """Notes the name of every call; returns nothing, or what it was told to."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self.calls: list[str] = []
        self.returns: dict[str, Any] = {
            "describe_group": GROUP,
            "alter_group": GROUP,
            "list_groups": (GROUP,),
            "seek_group": (),
            **dict.fromkeys(BALANCED, BalanceInfo(is_running=False)),
        }
        self.topics_there: set[str] = {"orders"}
        self.clock = Micros(1_000)
        self.node = SimpleNamespace(catalog=catalog, now=lambda: self.clock, background=[])
        self.transactions = self.backups = self.balancing = self.recovering = self
        self.upgrading = self
        self.groups = self
        self.topics = SimpleNamespace(find=self._find, partitions=None)

    def partition_count(self, topic: str) -> int:
        return int(topic in self.topics_there)

    def begin_publish(self, *_: object) -> bool:
        self.calls.append("begin_publish")
        return True

    async def _find(self, topic: str) -> None:
        if topic not in self.topics_there:
            raise NotFound(f"there is no topic {topic!r}")

    def __getattr__(self, name: str) -> Any:
        async def asked(*_: object, **__: object) -> Any:
            self.calls.append(name)
            return self.returns.get(name)

        return asked


def secured(
    principal: Principal, *, is_required: bool = True
) -> tuple[PermittedBroker, AskedService, Access]:
    """Return the broker of a principal, what is behind it, and who made it."""
    service = AskedService(MemoryCatalog())
    access = Access(cast("MeteredService", service), is_required=is_required)
    return access.broker_for(principal), service, access
