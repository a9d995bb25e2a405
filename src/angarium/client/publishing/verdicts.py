"""What an error means for a batch: is it final, may it be stored, is it worth another try?"""

from __future__ import annotations

from enum import Enum

from angarium.errors import (
    AngariumError,
    InvalidBatch,
    NotFound,
    OutcomeUnknown,
    ProducerFenced,
    SequenceGap,
    UnknownProducer,
)
from angarium.wire.error_codec import Failure, error_of


class Verdict(Enum):
    """What to do about a failed attempt."""

    FINAL = "final"
    """It is not stored and never will be."""
    AGAIN = "again"
    """It is not stored; the next attempt may succeed."""
    UNKNOWN = "unknown"
    """It may be stored; only the same batch with the same sequence may be sent again."""


def verdict_of(error: AngariumError) -> Verdict:
    """Return what `error` means for the batch it was the answer to."""
    if isinstance(error, OutcomeUnknown):
        return Verdict.UNKNOWN
    if isinstance(error, SequenceGap | UnknownProducer | NotFound):
        # Not to be repeated blindly, but each of them can be helped: wait for the batch before,
        # take a new identity, or let a node that lags behind learn of the topic.
        return Verdict.AGAIN
    if isinstance(error, ProducerFenced):
        return Verdict.FINAL
    return Verdict.AGAIN if error.retriable else Verdict.FINAL


def refusal(code: str, message: str) -> AngariumError:
    """Return the error with which one batch was refused among others that were not."""
    known = error_of(Failure(code, message))
    # A code from a newer node: whatever it is, the batch itself was refused.
    return known if type(known) is not AngariumError else InvalidBatch(message)


def unknown_after(error: AngariumError | None, timeout_s: float) -> OutcomeUnknown:
    """Return what to say when the time is up and a batch may or may not be stored."""
    return OutcomeUnknown(
        f"no acknowledgement came within {timeout_s:g} s; the record may or may not be stored"
        f" (the last attempt ended with: {error})"
    )
