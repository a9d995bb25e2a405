"""One write-ahead log per node: the Raft log of every group, under one datasync.

Start with `wal.py`, which says what is guaranteed, and `format.py`, which says what the bytes are.

    wal        the whole, as its owner uses it
    writer     entries become frames and wait in a buffer
    pipeline   sync rounds go to disk, in order
    files      the sequence of files, and those in waiting
    group_log  one group's log, as Raft reads it; index: where its entries lie
    cache      which entries are in memory; pins: which files are still needed
    recovery   opening after a crash; scan: torn or damaged?; replay: what it means for each group
    clean      opening after a clean stop
"""

from angarium.log.wal.config import WalConfig
from angarium.log.wal.group_log import GroupLog
from angarium.log.wal.pipeline import SyncRound
from angarium.log.wal.report import Damage, Recovered, RecoveredGroup
from angarium.log.wal.wal import Wal

__all__ = ["Damage", "GroupLog", "Recovered", "RecoveredGroup", "SyncRound", "Wal", "WalConfig"]
