"""From one layout of a topic to the next: what was not stored by the old one is dealt by the new.

A partition that is fenced refuses what was dealt by an older layout, and says that it is not
stored. Then all lanes of the topic stop sending, and once nothing is on its way any more, all that
is left in them is dealt anew, lane by lane and in order: the records of one key were all in one
lane, so they stay in their order. What is published meanwhile joins the lanes by the old layout,
behind the rest, and moves along with it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from angarium.batch import Batch
from angarium.client.publishing.packs import NOBODY
from angarium.errors import AngariumError

if TYPE_CHECKING:
    from collections.abc import Callable

    from angarium.api import Ack
    from angarium.batch.decoding import Record
    from angarium.client.publishing.lane import Lane
    from angarium.client.publishing.packs import Pack
    from angarium.client.publishing.sending import Sending

LOOK_S: Final = 0.02
"""How often it is looked whether lanes have come to rest, and whether a layout is in force."""


async def come_to_rest(lanes: Callable[[], list[Lane]]) -> None:
    """Wait until nothing is on its way in any lane; they were told to stop before."""
    while not all(lane.is_at_rest for lane in lanes()):  # noqa: ASYNC110 - each tells by itself
        await asyncio.sleep(LOOK_S)


def deal_anew(
    sending: Sending, lanes: list[Lane], lane_of: Callable[[bytes, Pack], Lane], layout: int
) -> None:
    """Move what keys have sent into lanes to where `lane_of` says that they go by now."""
    taken = [(lane, pack) for lane in lanes for pack in lane.take_back(layout)]
    for lane, pack in taken:
        try:
            _deal(sending, lane, pack, lane_of, layout)
        except AngariumError as error:
            pack.fail(error)
            sending.note_failure(error, pack.unattended)
            sending.settle(pack)


def _deal(
    sending: Sending, old: Lane, pack: Pack, lane_of: Callable[[bytes, Pack], Lane], layout: int
) -> None:
    if pack.batch is None:
        pack.number(NOBODY, 0)
    assert pack.batch is not None
    records = list(Batch.parse(pack.batch))
    waiting = {position: future for future, position in pack.waiting}
    share, rest = divmod(pack.size, len(records))
    parts: dict[Pack, None] = {}
    for position, record in enumerate(records):
        # Those without a key stay where they are: nobody minds.
        lane = old if record.key is None else lane_of(record.key, pack)
        part, row = lane.add(
            record.value,
            mode=pack.mode,
            key=record.key,
            headers=record.headers or None,
            times=_times(record),
            layout=None if record.key is None else layout,
            is_pinned=pack.is_pinned,
        )
        parts[part] = None
        part.deadline = min(part.deadline, pack.deadline)
        part.size += share + (rest if not position else 0)
        if position in waiting:
            part.waiting.append((waiting[position], row))
        elif pack.whole is None:
            part.unattended += 1
    pack.size = 0
    _answer_with(sending, pack, list(parts))


def _times(record: Record) -> tuple[int, int, int]:
    return record.timestamp, record.expires_at, record.deliver_at


def _answer_with(sending: Sending, pack: Pack, parts: list[Pack]) -> None:
    """Answer a batch when all parts of it are answered."""
    answers = [sending.loop.create_future() for _ in parts]
    for part, answer in zip(parts, answers, strict=True):
        part.shares.append(answer)

    def done(gathered: asyncio.Future[list[tuple[Ack, ...]]]) -> None:
        error = None if gathered.cancelled() else gathered.exception()
        for one in () if gathered.cancelled() else pack.unanswered():
            if error is not None:
                one.set_exception(error)
            else:
                one.set_result(tuple(ack for acks in gathered.result() for ack in acks))
        sending.settle(pack)

    asyncio.gather(*answers).add_done_callback(done)
