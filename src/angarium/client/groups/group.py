"""A consumer group, from the client's side: take part in it, or look after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.api import ConsumeRequest
from angarium.api.settings import word_of
from angarium.client.groups.consumer import Consumer
from angarium.client.reading.starts import start_in
from angarium.errors import InvalidArgument
from angarium.kinds import LENT_KINDS, GroupKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from angarium.api import GroupConfig, GroupInfo, Moved
    from angarium.client.groups.administration import GroupAdministration
    from angarium.client.groups.consumer import AckMode
    from angarium.client.groups.group_records import GroupBatch
    from angarium.client.groups.keeper import Keeper
    from angarium.client.reading.starts import StartLike

KindLike: TypeAlias = GroupKind | str
"""A kind, or its name: "stream", "queue", "key"."""

KEEP_S: Final = 3_600.0
"""How long records in hand are renewed. Then their leases end: a handler that takes longer
says `extend`, and a handler that hangs does not hold its records for ever."""

_KINDS: Final = {word_of(one): one for one in LENT_KINDS}


class GroupChoices:
    """What was chosen about a group when it was named."""

    def __init__(
        self, name: str, *, kind: KindLike | None, start: StartLike, config: GroupConfig | None
    ) -> None:
        self.name = name
        self._kind = None if kind is None else kind_of(kind)
        self._start = start_in(start, 0)
        self._config = config

    def request(
        self, topics: Sequence[str | Sequence[str]], *, ack: AckMode, credit: int, member: str
    ) -> ConsumeRequest:
        """Return the request to take part; `InvalidArgument` says what makes no sense."""
        names = tuple(
            name for topic in topics for name in ([topic] if isinstance(topic, str) else topic)
        )
        if not names:
            raise InvalidArgument("a consumer needs at least one topic")
        if credit < 1:
            raise InvalidArgument(f"with a credit of {credit} nothing is ever delivered")
        if ack not in ("manual", "auto"):
            raise InvalidArgument(f'{ack!r} is not a way to acknowledge; use "manual" or "auto"')
        return ConsumeRequest(
            group=self.name,
            topics=names,
            kind=self._kind,
            start=self._start,
            config=self._config,
            member=member,
            credit=credit,
        )


class Group:
    """A group by name. Made by `Client.group`; the cluster is asked nothing before it is used."""

    def __init__(
        self, client: GroupAdministration, keeper: Callable[[], Keeper], choices: GroupChoices
    ) -> None:
        self._client = client
        self._keeper = keeper
        self._choices = choices

    @property
    def name(self) -> str:
        """What it is called."""
        return self._choices.name

    def consume(
        self,
        *topics: str | Sequence[str],
        ack: AckMode = "manual",
        credit: int = 1_000,
        member: str = "",
        keep_s: float = KEEP_S,
    ) -> Consumer:
        """Return a consumer of these topics, which shares their records with the group's others.

        `credit` is how many records may be in hand and on their way to it. Without a `member` name
        the cluster makes one up. Records in hand are renewed for up to `keep_s` seconds.
        """
        request = self._choices.request(topics, ack=ack, credit=credit, member=member)
        return Consumer(self._keeper(), request, ack=ack, keep_s=keep_s)

    async def consume_batches(
        self,
        *topics: str | Sequence[str],
        ack: AckMode = "manual",
        credit: int = 10_000,
        member: str = "",
        keep_s: float = KEEP_S,
    ) -> AsyncIterator[GroupBatch]:
        """Yield deliveries of these topics, each of which can be settled as one."""
        async with self.consume(
            *topics, ack=ack, credit=credit, member=member, keep_s=keep_s
        ) as consumer:
            async for batch in consumer.batches():
                yield batch

    # --- looking after it -----------------------------------------------------------------------

    async def describe(self) -> GroupInfo:
        """Return its members, and where it stands in each partition; `NotFound`."""
        return await self._client.describe_group(self.name)

    async def alter(self, config: GroupConfig) -> GroupInfo:
        """Give it other settings."""
        return await self._client.alter_group(self.name, config)

    async def seek(
        self,
        start: StartLike,
        *,
        topic: str | None = None,
        partition: int | None = None,
        dry_run: bool = False,
    ) -> tuple[Moved, ...]:
        """Move it; see `Client.seek_group`."""
        return await self._client.seek_group(
            self.name, start, topic=topic, partition=partition, dry_run=dry_run
        )

    async def pause(self) -> None:
        """Hand nothing more out."""
        await self._client.pause_group(self.name)

    async def resume(self) -> None:
        """Go on."""
        await self._client.resume_group(self.name)

    async def delete(self, *, topic: str | None = None) -> None:
        """Forget it; `PreconditionFailed` while somebody takes part in it."""
        await self._client.delete_group(self.name, topic=topic)


def kind_of(kind: KindLike) -> GroupKind:
    """Return the kind of that name."""
    if isinstance(kind, GroupKind):
        return kind
    if kind not in _KINDS:
        raise InvalidArgument(f"{kind!r} is not a kind of group; the kinds are {', '.join(_KINDS)}")
    return _KINDS[kind]
