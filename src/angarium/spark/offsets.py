"""How far a streaming query has come, in the form in which Spark keeps it in its checkpoint.

    {"orders": {"0": 1200, "1": 1180}, "@topics": {"orders": 7}}

A number per partition, the first offset that has not been read, just as Kafka's connector has it.
Besides:

- `@topics` has the ids of the topics: one that was deleted and made anew is noticed.
- `@initial` marks where a query began. The end of its first batch carries that as `@start`, because
  Spark does not write down where its first batch began, and asks again after a crash: by then
  "latest" is somewhere else.

Spark compares offsets as text, so the form is canonical: keys are sorted, and nothing new is the
very same text again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.spark.boundaries import ByPartition

OffsetJson: TypeAlias = dict[str, Any]

_TOPICS: Final = "@topics"
_INITIAL: Final = "@initial"
_START: Final = "@start"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """The first offset that has not been read, for each partition, and the topics' ids."""

    offsets: ByPartition
    topics: Mapping[str, int]
    is_initial: bool = False
    start: StreamOffset | None = None
    """Where the first batch began, in its end."""

    def to_json(self) -> OffsetJson:
        """Return the canonical form."""
        json: OffsetJson = {}
        if self.is_initial:
            json[_INITIAL] = True
        if self.start is not None:
            json[_START] = self.start.to_json()
        json[_TOPICS] = dict(sorted(self.topics.items()))
        for topic, partitions in sorted(self.offsets.items()):
            json[topic] = {str(number): offset for number, offset in sorted(partitions.items())}
        return json


NOWHERE: Final = StreamOffset(offsets={}, topics={})
"""The position of a query about which nothing is known."""


def stream_offset(json: Mapping[str, Any]) -> StreamOffset:
    """Return the offset in `json`; `InvalidArgument` if the checkpoint is not one of ours."""
    try:
        start = json.get(_START)
        return StreamOffset(
            offsets={
                topic: {int(number): int(offset) for number, offset in partitions.items()}
                for topic, partitions in json.items()
                if not topic.startswith("@")
            },
            topics={topic: int(id_) for topic, id_ in json[_TOPICS].items()},
            is_initial=bool(json.get(_INITIAL)),
            start=None if start is None else stream_offset(start),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InvalidArgument(f"{json!r} is no offset of this source") from None
