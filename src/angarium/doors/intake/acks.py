"""What became of batches, read by every door in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from angarium.wire.error_codec import Failure, error_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from angarium.api import Ack
    from angarium.errors import AngariumError


def error_of_ack(ack: Ack) -> AngariumError:
    """Return the error with which a batch was refused while its neighbours were not."""
    return error_of(Failure(ack.code, ack.message))


def first_refusal(acks: Iterable[Ack]) -> AngariumError | None:
    """Return the error of the first batch that was refused, if one was."""
    return next((error_of_ack(ack) for ack in acks if ack.code), None)
