"""Whose producers are: a batch names one, and only who it belongs to may.

Who could name another's would make its batches repetitions, which are acknowledged and not stored,
or fence it by a newer epoch. A producer without a name says itself whose it is
(`service.producer_ids`); one with a name belongs to whoever may write as it. An idempotency key,
which stands in a producer's place and may be guessed, is made one of the principal's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from angarium.api.access import Action, ResourceKind
from angarium.batch.peeking import producer_in
from angarium.batch.renaming import of_producer
from angarium.errors import PermissionDenied
from angarium.ids import ProducerId
from angarium.machine.keys import KEYED_FROM, key_of_owner
from angarium.machine.producers import NAMED_FROM
from angarium.node.release import OWN_KEYS_LEVEL
from angarium.service.broker import RESERVED_PRODUCERS
from angarium.service.producer_ids import tag_for, tag_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from angarium.api import PublishRequest
    from angarium.ids import Buffer
    from angarium.service.access.permitted import PermittedBroker

OWN_MAX: Final = 1_024
"""Producers that one broker remembers as its principal's. At the bound all are looked at again."""


class OwnProducers:
    """Tells which producers are those of one principal."""

    def __init__(self, broker: PermittedBroker) -> None:
        self._broker = broker
        self._own: set[int] = set()
        self._owner: str | None = None
        self._tag: int | None = None

    @property
    def owner(self) -> str:
        """Whose they are: who the principal is among all there ever were."""
        if self._owner is None:
            self._owner = self._broker.owner
        return self._owner

    @property
    def tag(self) -> int:
        """What ids that are issued to the principal say."""
        if self._tag is None:
            self._tag = tag_for(self.owner)
        return self._tag

    def forget(self) -> None:
        """Look again from here on: the policy has changed."""
        self._own.clear()
        self._owner = self._tag = None

    def are_known(self, batches: Sequence[Buffer]) -> bool:
        """Tell whether every producer that the batches name is the principal's; raises
        `PermissionDenied` if one is somebody else's.

        False: one has a name that this node has not heard of.
        """
        own = self._own
        for batch in batches:
            producer = producer_in(batch)
            if producer in own or not 0 < producer < KEYED_FROM:
                continue  # not numbered, or known by a key
            if not self._is_known(ProducerId(producer)):
                return False
            if len(own) >= OWN_MAX:
                own.clear()
            own.add(producer)
        return True

    def with_own_keys(self, request: PublishRequest) -> PublishRequest:
        """Return a request whose idempotency keys are the principal's, and nobody else's.

        Only for what is published, and not for what other nodes pass on: those have done it.
        """
        for one in request.batches:
            if producer_in(one) >= KEYED_FROM:
                break
        else:
            return request
        if self._broker.level < OWN_KEYS_LEVEL:
            return request  # nodes of an older release would not do it: the same key has one id
        return replace(request, batches=tuple(map(self._with_own_key, request.batches)))

    def _with_own_key(self, batch: Buffer) -> Buffer:
        key = producer_in(batch)
        return batch if key < KEYED_FROM else of_producer(batch, key_of_owner(key, self.owner))

    def _is_known(self, producer: ProducerId) -> bool:
        if producer >= NAMED_FROM:
            name = self._broker.producer_name(producer)
            if name is None:
                return False
            if name.startswith(RESERVED_PRODUCERS):
                raise PermissionDenied(f"the producer {producer} is none for batches")
            self._broker.check(Action.PRODUCER_WRITE, ResourceKind.PRODUCER, name)
        elif tag_in(producer) not in {0, self.tag}:
            raise PermissionDenied(f"the producer {producer} was opened by somebody else")
        return True
