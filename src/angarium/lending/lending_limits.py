"""Bounds and times of what a leader does for consumer groups, each with what happens there."""

from __future__ import annotations

from typing import Final

PARCEL_BYTES: Final = 256 << 10
"""Bytes of batches in one delivery; a larger batch comes alone."""

WINDOW_BYTES: Final = 512 << 10
"""Bytes on the way from a leader to a consumer that has not taken them yet, for each partition. At
the bound the leader reads no more for it; one parcel may overdraw it."""

LENT_BYTES_MAX: Final = 16 << 20
"""Bytes on loan to one consumer, for each partition, by the size of the records that were read
there last. A consumer whose credit is worth more is lent fewer records; one at the least."""

STAYS_PER_LEASE: Final = 3
"""Records may wait a third of their lease for a consumer that takes nothing: at its own node, and
at the leader. Then they go back untried, for another one."""

CHANGES_MAX: Final = 4_096
"""Changes of groups in one entry of a partition's log. The rest goes into the next."""

CHANGES_WAITING_MAX: Final = 65_536
"""Changes of one partition's groups that wait to be committed. A settlement that comes when there
are so many is refused with RESOURCE_EXHAUSTED, and nothing has changed."""

SESSION_S: Final = 5.0
"""How long the members of a node that cannot be reached stay in their groups, and how long a new
leader waits for the members it finds in the log. Then their records go to others."""

LEAP_MICROS: Final = 1_000_000
"""The time has leapt if it has moved by more than this against a steady clock since the last look.
A node corrects smaller errors of its clock step by step, and leases may be that much longer."""
