"""A consumer: one program's part in a group, as the user sees it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from angarium.client.groups.group_records import GroupBatch
from angarium.client.groups.handover import Handover

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from angarium.api import ConsumeRequest, GroupConfig
    from angarium.client.groups.attachment import Attachment
    from angarium.client.groups.group_records import GroupRecord, LoanedBatch, LoanedRecord
    from angarium.client.groups.keeper import Keeper
    from angarium.kinds import GroupKind

AckMode: TypeAlias = Literal["manual", "auto"]
"""Who acknowledges: the user's code, or the loop itself once its body is done with a record."""


class Consumer:
    """Records of some topics, shared with the group's other consumers. Made by `Group.consume`.

        async with client.group("workers").consume("orders") as records:
            async for record in records:
                ...
                await record.ack()

    One task reads it, record by record or in `batches()`; any task or thread may settle. It begins
    with `async with`, or when the first record is asked for. With `ack="auto"` a record is done
    with when the next one is asked for, or when the `async with` block is left; an exception that
    leaves the block gives it back as failed.

    What is in hand is renewed by another thread for as long as this one works on it. After a
    failure the consumer goes on by itself, at another node, with what it holds.
    """

    def __init__(
        self,
        keeper: Keeper,
        request: ConsumeRequest,
        *,
        ack: AckMode,
        keep_s: float,
        on_closed: Callable[[Consumer], None] | None = None,
    ) -> None:
        self.keeper, self.handover = keeper, Handover()
        """For the client itself."""
        self.is_auto = ack == "auto"
        """Whether the loop acknowledges."""
        self._request = request
        self._keep_s = keep_s
        self._on_closed = on_closed
        self._attachment: Attachment | None = None
        self._records: Iterator[GroupRecord] = iter(())
        self._in_hand: GroupRecord | GroupBatch | None = None
        self._is_closed = False

    # --- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> Consumer:
        await self.begin()
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        in_hand, self._in_hand = self._in_hand, None
        settle_by(error, in_hand)
        await self.close()

    async def begin(self) -> None:
        """Join the group, unless that has happened; raises why it cannot be joined."""
        if self._attachment is None and not self._is_closed:
            try:
                self._attachment = await self.keeper.run(
                    self.keeper.attach(self._request, self.handover, keep_s=self._keep_s)
                )
            except asyncio.CancelledError:
                # It may have joined in this very moment, which nobody would ever hear of.
                self.keeper.let_go(self.handover)
                raise

    async def close(self) -> None:
        """Leave the group: what was said is sent, the rest goes back untried to the others."""
        if self._is_closed:
            return
        self._is_closed = True
        self.handover.end()
        if self._attachment is not None and not self.keeper.is_closed:
            settle_s = self.keeper.settings.close_timeout_s
            await self.keeper.run_to_its_end(
                self.keeper.detach(self._attachment, settle_s=settle_s)
            )
        if self._on_closed is not None:
            self._on_closed(self)

    async def vanish(self) -> int:
        """End without a word, as a crash would: for tests and benchmarks.

        Returns how many records were in hand; they come again when the cluster has noticed. Other
        consumers of the same client have to find their way again, too.
        """
        self._is_closed = True
        self.handover.end()
        if self._attachment is None or self.keeper.is_closed:
            return 0
        return await self.keeper.run(self.keeper.cut_off(self._attachment))

    def stop_reading(self) -> None:
        """End the iteration; what is in hand can still be settled until it is closed."""
        self.handover.end()

    # --- reading --------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[GroupRecord]:
        return self._each_record()

    async def next_batch(self) -> GroupBatch | None:
        """Return the next delivery, or None once the consumer is closed."""
        await self.begin()
        parcel = await self.handover.take()
        return None if parcel is None else GroupBatch(parcel)

    async def batches(self) -> AsyncIterator[GroupBatch]:
        """Yield deliveries as they come, each of which can be settled as one: the fast way."""
        while (batch := await self.next_batch()) is not None:
            if not self.is_auto:
                yield batch
                continue
            self._in_hand = batch
            yield batch
            self._in_hand = None
            batch.ack_nowait()

    async def arrow(self) -> AsyncIterator[tuple[GroupBatch, Any]]:
        """Yield the same, each with its records as a `pyarrow.Table` (`angarium[arrow]`)."""
        async for batch in self.batches():
            yield batch, batch.to_arrow()

    async def flush(self) -> None:
        """Wait until everything said so far has its answer.

        Raises the first refusal of what nobody waited for, with a note of how many there were: the
        lease had ended, and others may have been given those records.
        """
        attachment = self._attachment
        if attachment is None:
            return
        await self.keeper.run(attachment.flush())
        attachment.raise_failure()

    # --- what it is -----------------------------------------------------------------------------

    @property
    def member(self) -> str:
        """Under which name it takes part."""
        return self._begun.group.member

    @property
    def kind(self) -> GroupKind:
        """How the group consumes."""
        return self._begun.group.kind

    @property
    def config(self) -> GroupConfig:
        """The group's settings, as they were when it was joined."""
        return self._begun.group.config

    @property
    def _begun(self) -> Attachment:
        if self._attachment is None:
            raise RuntimeError("a consumer has not joined its group before it has begun")
        return self._attachment

    async def _each_record(self) -> AsyncIterator[GroupRecord]:
        await self.begin()
        is_auto = self.is_auto
        if self._in_hand is not None:
            # Of a loop that was left: asking for the next one says that it is done. What waits for
            # it, behind a fence or in its key's chain, would never come otherwise.
            in_hand, self._in_hand = self._in_hand, None
            in_hand.ack_nowait()
        while True:
            # Kept outside of this generator, so that a loop that is left and begun again goes on
            # with the next record.
            for record in self._records:
                if is_auto:
                    self._in_hand = record
                yield record
                if is_auto:
                    self._in_hand = None
                    record.ack_nowait()
            batch = await self.next_batch()
            if batch is None:
                return
            self._records = iter(batch)


def settle_by(error: BaseException | None, in_hand: LoanedRecord | LoanedBatch | None) -> None:
    """Say what became of what was in hand when its block was left, with an error or without."""
    if in_hand is None:
        return
    if error is None:
        in_hand.ack_nowait()
    elif isinstance(error, Exception):
        in_hand.nack_nowait(reason=f"{type(error).__name__}: {error}")
