"""What became of single records, written without a message for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from angarium.doors.grpc.to_messages import ack_message
from angarium.doors.grpc.wire_format import bytes_tag, number_tag, varint
from angarium.proto.v1 import broker_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Ack
    from angarium.doors.intake import Placed

_ACK: Final = bytes_tag(pb.PublishResponse.ACK_FIELD_NUMBER)
_OFFSET: Final = number_tag(pb.Ack.OFFSET_FIELD_NUMBER)
_NEXT_OFFSET: Final = number_tag(pb.Ack.NEXT_OFFSET_FIELD_NUMBER)
_RESULTS: Final = bytes_tag(pb.PublishStreamResponse.RESULTS_FIELD_NUMBER)
_NUMBER: Final = number_tag(pb.PublishStreamResult.NUMBER_FIELD_NUMBER)
_ACKS: Final = bytes_tag(pb.PublishStreamResult.ACKS_FIELD_NUMBER)


def stream_response(results: Iterable[bytes]) -> bytes:
    """Return a `PublishStreamResponse` of these results."""
    parts = [part for one in results for part in (_RESULTS, varint(len(one)), one)]
    return b"".join(parts)


class AckWriter:
    """Writes acknowledgements of single records.

    Those that travelled together are acknowledged together: what they are told differs by an
    offset, so that the rest is written once.
    """

    def __init__(self) -> None:
        self._ack: Ack | None = None
        self._rest = b""

    def response(self, placed: Placed) -> bytes:
        """Return a `PublishResponse`."""
        ack = self._written(placed)
        return b"".join((_ACK, varint(len(ack)), ack))

    def result(self, number: int, placed: Placed) -> bytes:
        """Return the `PublishStreamResult` of a request with this number."""
        ack = self._written(placed)
        return b"".join((_NUMBER, varint(number), _ACKS, varint(len(ack)), ack))

    def _written(self, placed: Placed) -> bytes:
        ack = placed.ack
        if ack is not self._ack:
            self._ack, self._rest = ack, _without_offsets(ack)
        if ack.base_offset is None:
            return self._rest
        offset = ack.base_offset + placed.row
        return b"".join((self._rest, _OFFSET, varint(offset), _NEXT_OFFSET, varint(offset + 1)))


def _without_offsets(ack: Ack) -> bytes:
    message = ack_message(ack)
    message.ClearField("offset")
    message.ClearField("next_offset")
    return message.SerializeToString()
