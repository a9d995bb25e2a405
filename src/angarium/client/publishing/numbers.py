"""The numbers of a lane: under which identity its batches travel, and with which sequences.

A batch is given another number only under a new identity, and only if it is certain that it is not
stored under the old one. If that is not certain, the batch must not be renewed here; its lane
gives it up as unknown before. The one exception: where nothing of it can be on its way any more,
numbers that were given are free again (`rewind`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.client.publishing.losses import Acknowledged
from angarium.client.publishing.packs import NOBODY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import Ack
    from angarium.client.publishing.packs import Pack, ProducerIdentity
    from angarium.client.publishing.sending import Sending


class Numbers:
    """Numbers batches in their order; those of a lane that is not numbered all get none."""

    def __init__(
        self,
        sending: Sending,
        topic: str,
        partition: int,
        *,
        is_numbered: bool,
        may_share: bool,
    ) -> None:
        """Begin without an identity; `may_share` the client's first one: nobody used it here."""
        self.is_numbered = is_numbered
        self._sending = sending
        self._topic = topic
        self._partition = partition
        self._may_share = may_share
        self._identity: ProducerIdentity | None = None if is_numbered else NOBODY
        self._next = 0
        self._acknowledged = Acknowledged()

    @property
    def are_known(self) -> bool:
        """Tell whether a batch can be numbered now."""
        return self._identity is not None

    def number(self, pack: Pack) -> None:
        """Give a batch the next number; raises what is wrong with its records."""
        assert self._identity is not None
        pack.number(self._identity, self._next if self.is_numbered else 0)
        self._next += pack.count

    def note(self, pack: Pack, ack: Ack) -> None:
        """Remember an acknowledgement, in case it turns out not to hold."""
        if self.is_numbered:
            self._acknowledged.note(pack, ack)

    def rewind(self, pack: Pack) -> None:
        """Let the next batch have the number of one that was sent.

        Neither that one nor any behind it is stored, for certain, and none is under way: each
        attempt has been answered, or whatever is left of it will be refused.
        """
        if self.is_numbered:
            self._next = pack.sequence

    def spoil(self) -> None:
        """Number nothing more under this identity: what follows would leave a gap."""
        if self.is_numbered:
            self._identity = None

    async def renew(self) -> None:
        """Take an identity under which nothing was sent to this partition yet."""
        producer_identities = self._sending.producer_identities
        identity = await (
            producer_identities.first() if self._may_share else producer_identities.fresh()
        )
        self._may_share = False
        self._next = 0
        self._acknowledged.clear()
        self._identity = identity

    async def look_for_loss(self, sent: Sequence[Pack]) -> None:
        """Find out why the first batch in line is refused as too early, again and again."""
        assert self._identity is not None
        loss = await self._acknowledged.missing(
            self._sending.calls, self._topic, self._partition, self._identity
        )
        if loss is None and any(pack.may_be_stored for pack in sent):
            return  # the refusal is wrong, or nobody can tell: its deadline decides
        if loss is not None:
            # What was acknowledged before is gone, so what came behind it was never stored.
            for pack in sent:
                pack.may_be_stored = False
            if loss.records:
                self._sending.note_loss(loss)
        self._identity = None
