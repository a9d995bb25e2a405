"""Evening out, rolling upgrades and lost majorities over REST: each request is one call of the
contract.

The annotations of a call are its declaration (`routing.call`), so they are not put off here.
"""

from functools import partial
from typing import Final

import msgspec

from angarium.api.administration import AdministrationBroker
from angarium.api.balance import BalanceInfo
from angarium.api.recovery import RecoveryInfo
from angarium.api.upgrades import UpgradeInfo
from angarium.doors.http.record_json import Count, Partition
from angarium.doors.http.routing import call

_cluster: Final = partial(call, tag="cluster")

BALANCE: Final = "/v1/cluster/balance"
RECOVERY: Final = "/v1/topics/{topic}/partitions/{partition}/recovery"


class Pace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How fast to even out."""

    bytes_per_s: Count | None = None
    """What all copies together may take; null: what a run has that goes on already, else no limit;
    0: no limit."""


class Automatic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether evening out begins by itself when a node has come, come back or been drained."""

    automatic: bool


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What confirms exactly what was shown."""

    code: str


class OperatingRoutes:
    """What operators do with nodes and partitions as a whole."""

    def __init__(self, broker: AdministrationBroker) -> None:
        self._broker = broker

    @_cluster(f"GET {BALANCE}", "How evening out stands, and what it would move now.")
    async def describe_balance(self) -> BalanceInfo:
        return await self._broker.describe_balance()

    @_cluster(
        f"POST {BALANCE}",
        "Begin to even out replicas, bytes and leaders; while that is done: at another pace.",
    )
    async def rebalance(self, body: Pace) -> BalanceInfo:
        return await self._broker.rebalance(bytes_per_s=body.bytes_per_s)

    @_cluster(f"DELETE {BALANCE}", "Begin nothing more, and let what is on its way go back.")
    async def cancel_rebalance(self) -> BalanceInfo:
        return await self._broker.cancel_rebalance()

    @_cluster(f"PATCH {BALANCE}", "Say whether evening out begins by itself.")
    async def set_auto_balance(self, body: Automatic) -> BalanceInfo:
        return await self._broker.set_auto_balance(automatic=body.automatic)

    @_cluster("GET /v1/cluster/upgrade", "Whether a node may be taken down now, and which one.")
    async def describe_upgrade(self) -> UpgradeInfo:
        return await self._broker.describe_upgrade()

    @_cluster(
        f"GET {RECOVERY}",
        "What recovering a partition would do now, what it may lose, and the code to confirm it.",
    )
    async def describe_recovery(self, topic: str, partition: Partition) -> RecoveryInfo:
        return await self._broker.describe_recovery(topic, partition)

    @_cluster(
        f"POST {RECOVERY}",
        "Go on with the best replica that is left, and without all others for ever.",
    )
    async def recover_partition(
        self, topic: str, partition: Partition, body: Confirmation
    ) -> RecoveryInfo:
        return await self._broker.recover_partition(topic, partition, body.code)
