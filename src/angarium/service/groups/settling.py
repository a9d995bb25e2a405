"""Settlements of one consumer on their way to its partitions, and one answer for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from angarium.api import Settled
from angarium.errors import InvalidArgument
from angarium.lending.flat import tightened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from angarium.api import Settlement
    from angarium.service.groups.attachment import Attachment

Told: TypeAlias = "Callable[[tuple[Settled, ...]], None]"


def ask_attachments(
    attachments: Mapping[tuple[str, int], Attachment],
    settlements: Sequence[Settlement],
    told: Told,
    *,
    deadline: float,
) -> None:
    """Settle records wherever they are; `told` is called once, with an answer for each."""
    answers: list[Settled | None] = [None] * len(settlements)
    by_attachment: dict[Attachment, list[int]] = {}
    said = [_tight(one) for one in settlements]
    for at, one in enumerate(said):
        attachment = attachments.get((one.topic, one.partition))
        if attachment is None:
            unknown = f"{one.topic} {one.partition} is not consumed here"
            answers[at] = Settled(0, InvalidArgument.code, unknown)
        else:
            by_attachment.setdefault(attachment, []).append(at)
    left = len(by_attachment)
    if not left:
        told(tuple(one for one in answers if one is not None))
        return

    def answer(rows: list[int], settled: Sequence[Settled]) -> None:
        nonlocal left
        for at, one in zip(rows, settled, strict=True):
            answers[at] = one
        left -= 1
        if not left:
            told(tuple(one for one in answers if one is not None))

    for attachment, rows in by_attachment.items():
        asked = tuple(said[at] for at in rows)
        attachment.ask(asked, lambda settled, rows=rows: answer(rows, settled), deadline)  # type: ignore[misc]


def _tight(settlement: Settlement) -> Settlement:
    """Return the same with ranges that touch each other as one: each costs the leader its time."""
    ranges = tightened(settlement.ranges)
    return settlement if ranges is settlement.ranges else replace(settlement, ranges=ranges)
