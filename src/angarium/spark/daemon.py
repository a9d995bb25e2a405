"""The process from which Spark forks its Python workers, sparing each task a search for garbage.

Spark's own daemon lets every worker collect garbage after every task, over all objects that its
imports left behind: tens of milliseconds of processor time that compete with the next task. What
survived one collection is frozen here, so that later ones look only at what a task made.

    spark.python.daemon.module = angarium.spark.daemon
"""

from __future__ import annotations

import gc
from typing import Any

from pyspark import daemon


class FreezingCollector:
    """Stands for the module `gc` in Spark's daemon."""

    def __init__(self) -> None:
        self._is_frozen = False

    def collect(self) -> int:
        """Collect garbage; the first time, exempt what is left from later searches."""
        found = gc.collect()
        if not self._is_frozen:
            gc.freeze()
            self._is_frozen = True
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(gc, name)


if __name__ == "__main__":
    daemon.gc = FreezingCollector()  # type: ignore[attr-defined, assignment]
    daemon.manager()
