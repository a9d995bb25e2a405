"""A cluster of three that is evened out, taken down and recovered in memory."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from angarium.api.balance import BalanceInfo, MoveInfo
from angarium.api.recovery import GroupLeft, LeftReplica, LostReplica, RecoveryInfo
from angarium.api.upgrades import NodeState, UpgradeInfo
from angarium.errors import InvalidArgument, PreconditionFailed
from angarium.ids import Index, Micros, NodeId, Offset, Term

LARGE: Final = 5 << 32
"""A number that is too large for 32 bits: every door has to bring it through."""

BEGUN_AT: Final = Micros(1_700_000_000_000_000)

MOVE: Final = MoveInfo(
    topic="orders",
    partition=2,
    replicas=(NodeId(1), NodeId(2)),
    target=(NodeId(1), NodeId(3)),
    is_under_way=True,
    stored_bytes=LARGE,
    copied_bytes=LARGE - 1,
)

UPGRADE: Final = UpgradeInfo(
    hindrances=("node 3 is away",),
    remarks=("node 1 leads the catalog",),
    nodes=(
        NodeState(
            node=NodeId(1),
            alive=True,
            version="1.2.3",
            level_max=6,
            started_at=BEGUN_AT,
            certificate_days=12.5,
            disk_free_bytes=LARGE,
            leads_catalog=True,
        ),
        NodeState(node=NodeId(3), alive=False),
    ),
    level=5,
    level_possible=6,
)

RECOVERY: Final = RecoveryInfo(
    topic="orders",
    partition=2,
    source=NodeId(1),
    last_term=Term(7),
    last_index=Index(LARGE),
    commit=Index(LARGE - 2),
    end_offset=Offset(LARGE - 10),
    behind=3,
    lost=(
        LostReplica(node=NodeId(2), address="10.0.0.2:7400", silent_ms=LARGE),
        LostReplica(node=NodeId(3)),
    ),
    left=(LeftReplica(node=NodeId(1), last_term=Term(7), last_index=Index(LARGE)),),
    groups=(GroupLeft(name="billing", position=Offset(LARGE - 20)),),
    may_lose=("At least 3 entries are lost.",),
    code="1f0a93c7",
)
"""What would be done to the one partition that has lost its majority."""


class MemoryOperating:
    """Implements `api.balance`, `api.upgrades` and `api.recovery`."""

    def __init__(self) -> None:
        self.balance = BalanceInfo(is_running=False, moves=(MOVE,), moves_left=1, bytes_left=LARGE)
        self.recovered: list[tuple[str, int]] = []

    async def describe_balance(self) -> BalanceInfo:
        return self.balance

    async def rebalance(self, *, bytes_per_s: int | None = None) -> BalanceInfo:
        pace = self.balance.bytes_per_s if bytes_per_s is None else bytes_per_s
        if pace < 0:
            raise InvalidArgument(f"{pace} bytes a second are too few")
        self.balance = replace(
            self.balance, is_running=True, begun_at=BEGUN_AT, bytes_per_s=pace, time_left_ms=LARGE
        )
        return self.balance

    async def cancel_rebalance(self) -> BalanceInfo:
        if not self.balance.is_running:
            raise PreconditionFailed("nothing is being rebalanced")
        self.balance = replace(self.balance, is_running=False, begun_at=Micros(0), bytes_per_s=0)
        return self.balance

    async def set_auto_balance(self, *, automatic: bool) -> BalanceInfo:
        self.balance = replace(self.balance, is_automatic=automatic)
        return self.balance

    async def describe_upgrade(self) -> UpgradeInfo:
        return UPGRADE

    async def describe_recovery(self, topic: str, partition: int) -> RecoveryInfo:
        if (topic, partition) == (RECOVERY.topic, RECOVERY.partition):
            return RECOVERY
        return RecoveryInfo(topic=topic, partition=partition, objection="a majority is there")

    async def recover_partition(self, topic: str, partition: int, code: str) -> RecoveryInfo:
        info = await self.describe_recovery(topic, partition)
        if info.objection:
            raise PreconditionFailed(info.objection)
        if code != info.code:
            raise InvalidArgument("the code confirms something else")
        self.recovered.append((topic, partition))
        return replace(info, is_done=True)
