"""A catalog whose log is repaired while the node runs is asked for again how far it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from angarium.ids import CATALOG_GROUP, RaftGroupId
from angarium.node.healing import Healing
from angarium.replica.damage import Fate


def healing(*, is_current: bool) -> tuple[Healing, Any]:
    catalog = SimpleNamespace(is_current=is_current, name_of="group {}".format, introduced=0)

    def introduce_again() -> None:
        catalog.introduced += 1

    catalog.introduce_again = introduce_again
    node: Any = SimpleNamespace(catalog=catalog)
    return Healing(node), catalog


def test_it_is_not_current_until_the_node_has_introduced_itself_again() -> None:
    found, catalog = healing(is_current=True)
    found.hear(Fate.FOUND, CATALOG_GROUP, "entries 3 to 3 of its log")
    assert not catalog.is_current
    found.hear(Fate.MENDED, CATALOG_GROUP, "1 entries of its log")
    assert catalog.introduced == 1
    # Found a second time before the first introduction is through.
    found.hear(Fate.FOUND, CATALOG_GROUP, "entries 5 to 5 of its log")
    found.hear(Fate.MENDED, CATALOG_GROUP, "1 entries of its log")
    assert catalog.introduced == 1


def test_at_a_start_and_for_a_partition_nothing_more_is_done() -> None:
    for is_current, group in ((False, CATALOG_GROUP), (True, RaftGroupId(4))):
        found, catalog = healing(is_current=is_current)
        found.hear(Fate.FOUND, group, "entries 3 to 3 of its log")
        found.hear(Fate.MENDED, group, "1 entries of its log")
        assert catalog.introduced == 0
        assert catalog.is_current is is_current
