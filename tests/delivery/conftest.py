"""What the tests of this folder share with those of clusters."""

from __future__ import annotations

from tests.cluster.conftest import forked_nodes

__all__ = ["forked_nodes"]
