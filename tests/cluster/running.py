"""The types of what `conftest` hands to the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from contextlib import AbstractAsyncContextManager

    from angarium.testing.cluster import ProcessCluster


class Run(Protocol):
    """Runs a coroutine to its end."""

    def __call__(self, work: Coroutine[Any, Any, None]) -> None: ...


class ClusterOf(Protocol):
    """Starts a cluster that ends with the block."""

    def __call__(
        self, nodes: int = 3, **settings: Any
    ) -> AbstractAsyncContextManager[ProcessCluster]: ...
