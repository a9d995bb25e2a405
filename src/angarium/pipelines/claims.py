"""Whose a checkpoint is: a pipeline does not go on where another one stopped.

A checkpoint knows how far a query has read, and nothing about what for: an archive that is given a
mirror's goes on behind what the mirror has copied, and nobody misses the records before. What a
query keeps for windows that are not over follows from its version, too: another one would fail on
it deep inside, or take it for its own. So a file in the checkpoint says what began it, and anything
else is refused before anything runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from angarium.errors import PreconditionFailed
from angarium.pipelines.checkpoints import CheckpointFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE: Final = "angarium-pipeline.json"


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a checkpoint was begun by."""

    kind: str
    """What the pipeline does: archive, mirror, a query of its own, …"""
    state: int = 1
    """The version of what it keeps. Checkpoints of the first say nothing of themselves."""
    of: str = ""
    """What else must stay the same: the archive written to, the length of windows."""


def claim(spark: SparkSession, checkpoint: str, own: Claim, *, advice: str = "") -> None:
    """Take a new checkpoint, or make sure that it is ours; `PreconditionFailed` if it is not.

    `advice` is what else to do beside giving another one. Spark Connect does not let us look.
    """
    from angarium.spark.session import is_connect  # noqa: PLC0415 (an extra)

    if is_connect(spark):
        return
    folder = CheckpointFolder(spark, checkpoint)
    told = folder.read(FILE)
    if told is None:
        if own.state > 1 and folder.is_begun():
            raise _refusal(checkpoint, f"was made by an earlier version of {own.kind}", advice)
        folder.write(FILE, msgspec.json.encode(own))
    elif (why := difference(told, own)) is not None:
        raise _refusal(checkpoint, why, advice)


def difference(told: bytes, own: Claim) -> str | None:
    """Return how what a checkpoint says of itself differs from us; None if it does not."""
    try:
        found = msgspec.json.decode(told, type=Claim)
    except msgspec.MsgspecError:
        return f"has a damaged {FILE}"
    if found.kind != own.kind:
        return f"is one of {found.kind}, not of {own.kind}"
    if found.state != own.state:
        return (
            f"was made by another version of {own.kind} (its state is {found.state}, not "
            f"{own.state})"
        )
    if found.of != own.of:
        return f"is for {found.of}, not for {own.of}"
    return None


def _refusal(checkpoint: str, why: str, advice: str) -> PreconditionFailed:
    also = f", {advice}" if advice else ""
    return PreconditionFailed(f"the checkpoint {checkpoint} {why}: give a new one{also}")
