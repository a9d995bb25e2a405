"""The same without asyncio: each call is carried out in the client's own thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from angarium.client.bridge import Bridged, blocking, leading_to
from angarium.client.transactions.staged import Stage, StagedWrite
from angarium.client.transactions.transaction import Transaction

if TYPE_CHECKING:
    from angarium.api.transactions import Committed
    from angarium.client.transactions.staged import Ticket
    from angarium.client.transactions.transaction import OnLoan


class SyncTransaction(Bridged[Transaction]):
    """Publishes and acknowledges together; see `Transaction`."""

    @property
    def committed(self) -> Committed | None:
        """Where its records are, once it is committed."""
        return self._there.committed

    def __enter__(self) -> Self:
        self._elsewhere.call(self._there.__aenter__())
        return self

    __exit__ = blocking(Transaction.__aexit__)
    publish = blocking(Transaction.publish)
    publish_batch = blocking(Transaction.publish_batch)
    commit = blocking(Transaction.commit)
    abort = blocking(Transaction.abort)

    def ack(self, *records: OnLoan) -> None:
        """Acknowledge records of a consumer group if the transaction commits."""
        self._there.ack(*records)


class SyncStage(Bridged[Stage]):
    """One attempt's share; see `Stage`."""

    @property
    def ticket(self) -> Ticket:
        """What to commit; there once the stage is closed."""
        return self._there.ticket

    def __enter__(self) -> Self:
        return self

    __exit__ = blocking(Stage.__aexit__)
    close = blocking(Stage.close)
    publish = blocking(Stage.publish)
    publish_batch = blocking(Stage.publish_batch)
    put_batch = blocking(Stage.put_batch)


class SyncStagedWrite(Bridged[StagedWrite]):
    """One transaction of a series; see `StagedWrite`."""

    stage = leading_to(SyncStage, StagedWrite.stage)
    commit = blocking(StagedWrite.commit)
    abort = blocking(StagedWrite.abort)
    forget = blocking(StagedWrite.forget)
