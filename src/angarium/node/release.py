"""What one release of the software understands: wire versions, and feature levels.

A wire version is agreed on per connection, a feature level by the whole cluster, in the catalog.
docs/reference/versions.md says what each of them covers and how to raise it.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

import angarium
from angarium.machine.catalog import BALANCE_LEVEL, RECOVERY_LEVEL
from angarium.machine.catalog import BOUND_NAMES_LEVEL as CATALOG_BOUND_NAMES_LEVEL
from angarium.machine.catalog import DECOY_KEY_LEVEL as KEPT_DECOY_KEY_LEVEL
from angarium.machine.catalog.regions import REGIONS_LEVEL as PLACED_BY_REGIONS_LEVEL
from angarium.machine.catalog.regions import WITNESS_LEVEL as PLACED_WITNESS_LEVEL
from angarium.machine.catalog.topics import EARLIER_LAYOUTS_LEVEL as TIMED_LAYOUTS_LEVEL
from angarium.machine.changes import RETRY_DELAY_LEVEL as LOGGED_RETRY_DELAY_LEVEL
from angarium.wire.handshake import LEVEL_FEATURE, WIRE_VERSION_MAX, WIRE_VERSION_MIN

if TYPE_CHECKING:
    from angarium.wire import Hello

LEVEL_MIN: Final = 1
LEVEL_MAX: Final = 8
"""The feature levels this software can work at."""

STAGES_BESIDE_LEVEL: Final = 2
"""From here on open stages are copied as files beside snapshots: more may be staged than fits one.
"""

ACCESS_LEVEL: Final = 3
"""From here on the catalog keeps users, roles, grants and tokens."""

QUOTA_LEVEL: Final = 4
"""From here on the catalog keeps quotas, and ids of producers say to whom they were issued."""
JOIN_TOKENS_LEVEL: Final = 4
"""From here on the catalog keeps join tokens, and new nodes need one where clients prove who they
are."""

RESTORE_LEVEL: Final = 5
"""From here on partitions take records back from a backup, at the offsets that they had."""
REBALANCE_LEVEL: Final = BALANCE_LEVEL
"""From here on the catalog knows whether what nodes hold is being evened out."""

REGIONS_LEVEL: Final = PLACED_BY_REGIONS_LEVEL
"""From here on topics may say how they live in the regions of a cluster."""
OWN_KEYS_LEVEL: Final = 6
"""From here on an idempotency key counts for who brought it alone, where it is known who asks."""
RECOVER_LEVEL: Final = RECOVERY_LEVEL
"""From here on the catalog knows of partitions that went on with one replica."""

COMPARED_NUMBERS_LEVEL: Final = 8
"""From here on replicas stop where a leader numbers records otherwise than they would: at lower
levels releases wrote to the log that refused such batches and passed over them."""

WITNESS_LEVEL: Final = PLACED_WITNESS_LEVEL
"""From here on partitions may have a witness: a vote, and the end of the log, without records."""

CREATION_QUOTA_LEVEL: Final = 8
"""From here on the catalog knows the principals that create topics and partitions, and enforces
quotas on them; join tokens name the user that issued them, and go with it."""
HELD_ROLES_LEVEL: Final = 8
"""From here on the catalog refuses to delete a role that users hold, or takes it from them."""

BOUND_NAMES_LEVEL: Final = CATALOG_BOUND_NAMES_LEVEL
"""From here on a node's number is bound to the NAME in its certificate, and while it answers its
addresses change only with its consent."""

DECOY_KEY_LEVEL: Final = KEPT_DECOY_KEY_LEVEL
"""From here on the catalog keeps a key, so that all nodes give the same salt for a name that has
no account."""

RETRY_DELAY_LEVEL: Final = LOGGED_RETRY_DELAY_LEVEL
"""From here on the retry of a group's record carries its delay beside the time it is due."""

EARLIER_LAYOUTS_LEVEL: Final = TIMED_LAYOUTS_LEVEL
"""From here on a topic's layouts have times, and numbers are looked for under earlier ones."""

DECOY_KEY_BYTES: Final = 32


def new_decoy_key(level: int) -> bytes:
    """Return a key for a catalog that works at `level`; none below the level that keeps one."""
    return secrets.token_bytes(DECOY_KEY_BYTES) if level >= DECOY_KEY_LEVEL else b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """This release, unless a test says otherwise."""

    software: str = angarium.__version__
    wire_min: int = WIRE_VERSION_MIN
    wire_max: int = WIRE_VERSION_MAX
    level_min: int = LEVEL_MIN
    level_max: int = LEVEL_MAX

    def __post_init__(self) -> None:
        if not 1 <= self.wire_min <= self.wire_max or not 1 <= self.level_min <= self.level_max:
            raise ValueError("versions and levels begin at 1 and go upward")

    def introduced(self, hello: Hello) -> Hello:
        """Return `hello` with what this release understands."""
        return msgspec.structs.replace(
            hello,
            software=self.software,
            version_min=self.wire_min,
            version_max=self.wire_max,
            features={**hello.features, LEVEL_FEATURE: self.level_max},
        )
