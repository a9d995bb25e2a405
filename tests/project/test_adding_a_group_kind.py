"""The walk for a new kind of consumer group, as CONTRIBUTING.md tells it.

A copy of the tree is given a kind that lends one record at a time; what is made from declarations
is made; and a Python that sees only the copy lends by the new order and asks every door for it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.project.test_adding_a_setting import run

from angarium.kinds import ABOUT_KINDS, GroupKind

ROOT = Path(__file__).resolve().parents[2]

EDITS = {
    "src/angarium/kinds.py": (
        ("    CHECKPOINT = 3\n", "    CHECKPOINT = 3\n    SINGLE = 4\n"),
        (
            "    GroupKind.CHECKPOINT: ",
            '    GroupKind.SINGLE: "As a queue, one record after the other.",\n'
            "    GroupKind.CHECKPOINT: ",
        ),
    ),
    "src/angarium/delivery/ledger.py": (
        (
            "    GroupKind.KEY: KeyOrder,\n",
            "    GroupKind.KEY: KeyOrder,\n    GroupKind.SINGLE: SingleOrder,\n",
        ),
        (
            "from angarium.delivery.stream_order",
            "from angarium.delivery.single_order import SingleOrder\n"
            "from angarium.delivery.stream_order",
        ),
    ),
    "src/angarium/delivery/single_order.py": (
        (
            "",
            '''\
"""Single groups: a queue of which one record at a time is out."""

from angarium.delivery.queue_order import QueueOrder


class SingleOrder(QueueOrder):
    def pick(self, now, hand):
        for borrower in list(self._loans.hungry.values())[:1]:
            piece = None if borrower.on_loan else self._next(1, now)
            if piece is not None:
                hand(borrower, *piece)
''',
        ),
    ),
}
"""By file: what is replaced by what. The fourth file is the page, docs/reference/groups.md."""

PROBE = """
import re

from model import Leader

from angarium.cli.grammar import grammar
from angarium.client.groups.group import kind_of
from angarium.doors.http.forms import words_pattern
from angarium.doors.http.graphql.schema import schema
from angarium.kinds import GroupKind
from angarium.proto.v1 import broker_pb2 as pb

kind = GroupKind.SINGLE
# every door, the client and the command know it
assert pb.GROUP_KIND_SINGLE == kind + 1
assert re.fullmatch(words_pattern(GroupKind), "single")
assert "SINGLE" in schema().type_map["GroupKind"].values
assert kind_of("single") is kind
assert grammar().parse_args(["sub", "t", "--group", "g", "--kind", "single"]).kind == "single"
# and a leader lends by its order
leader = Leader(kind, records=3)
leader.attach("m")
leader.step()
assert leader.seen == [("m", 0, 1)], leader.seen
print("everywhere")
"""


@pytest.mark.timeout(240)
def test_a_new_kind_of_group_is_three_edits_and_its_page(tmp_path: Path) -> None:
    for name in ("src", "proto", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "unit" / "delivery" / "model.py", tmp_path)
    for name, replacements in EDITS.items():
        path = tmp_path / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for old, new in replacements:
            assert text.count(old) == 1, (name, old)
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    for script in ("scripts/settings.py", "scripts/proto.py"):
        run(tmp_path, script)
    assert run(tmp_path, "-c", PROBE) == "everywhere\n"


def test_every_kind_has_a_row_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "groups.md").read_text(encoding="utf-8")
    assert [kind for kind in GroupKind if f"| {kind.name.lower()} |" not in page] == []
    assert list(ABOUT_KINDS) == list(GroupKind)
