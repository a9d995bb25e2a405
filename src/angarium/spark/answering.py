"""Asking for offsets where a partition may have nobody who can answer for it at the moment.

A streaming query goes on with the partitions that answer. One that was asked in vain is asked
again each time, but with little patience: others do not wait for it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from angarium.errors import AngariumError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from angarium.api import Start
    from angarium.spark.cluster import Cluster

_log = logging.getLogger(__name__)

PATIENCE_S: Final = 10.0
"""How long a micro-batch waits for a partition that answered last time: most elections are over."""

PATIENCE_AGAIN_S: Final = 1.0
"""How long it waits for one that did not."""


class NobodyAnswers(Unreachable):
    """Nobody can say where a partition begins or ends, at the moment."""

    def __init__(self, topic: str, partition: int, error: AngariumError) -> None:
        super().__init__(f"nobody answers for {topic} partition {partition}: {error}")


class Answering:
    """Which partitions of a query somebody answers for."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.silent: dict[tuple[str, int], AngariumError] = {}
        """Partitions that were last asked in vain, and what came instead of an answer."""

    def offsets(
        self,
        pairs: Sequence[tuple[str, int]],
        start: Start,
        *,
        patience_s: float = PATIENCE_S,
    ) -> Mapping[tuple[str, int], int]:
        """Return where `start` lies in those of the partitions that somebody answers for."""
        patience = [PATIENCE_AGAIN_S if pair in self.silent else patience_s for pair in pairs]
        answers = self._cluster.offsets_within([(*pair, start) for pair in pairs], patience)
        found: dict[tuple[str, int], int] = {}
        for pair, answer in zip(pairs, answers, strict=True):
            if isinstance(answer, AngariumError):
                self._note_silence(pair, answer)
            else:
                self._note_answer(pair)
                found[pair] = answer
        return found

    def forget_all_but(self, pairs: Sequence[tuple[str, int]]) -> None:
        """Forget partitions that are not there any more: nobody will ever answer for them."""
        for gone in self.silent.keys() - set(pairs):
            del self.silent[gone]

    def _note_silence(self, pair: tuple[str, int], error: AngariumError) -> None:
        if pair not in self.silent:
            _log.warning(
                "nobody answers for %s partition %d; the query goes on without it until somebody "
                "does, and misses nothing: %s",
                *pair,
                error,
            )
        self.silent[pair] = error

    def _note_answer(self, pair: tuple[str, int]) -> None:
        if self.silent.pop(pair, None) is not None:
            _log.warning("somebody answers for %s partition %d again", *pair)
