"""The walk for a new setting, as CONTRIBUTING.md tells it: two files are edited, and it is there.

A copy of the tree is given a setting that nothing has; what is made from declarations is made; and
a Python that sees only the copy is asked for the setting at every door.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts import settings

ROOT = Path(__file__).resolve().parents[2]

EDITS = {
    "src/angarium/api/topics.py": (
        "    def __post_init__(self) -> None:\n",
        "    pace_percent: Annotated[int, About('Go so fast at the most.', 1, 90)] = 80\n\n",
    ),
    "src/angarium/machine/catalog/values.py": (
        "\n\nclass Partition(",
        "    pace_percent: int = 80\n",
    ),
    "src/angarium/api/groups.py": (
        "    def __post_init__(self) -> None:\n",
        "    grace_ms: Annotated[int, About('Wait so long.', 1, 9_000)] = 70\n\n",
    ),
    "src/angarium/machine/changes.py": (
        "\n\nclass Member(",
        "    grace_micros: int = 70_000\n",
    ),
}
"""By file: before which text a line is added: two for a topic's setting, two for a group's.
CONTRIBUTING.md promises that these are all."""

PROBE = """
import asyncio, dataclasses, json
import msgspec
from types import SimpleNamespace as Any

from angarium.api import TopicConfig
from angarium.cli.grammar import grammar
from angarium.cli.settings import changed, shown
from angarium.doors.grpc.from_messages import config_of
from angarium.doors.grpc.to_messages import message_of
from angarium.doors.http.forms import chosen, in_json
from angarium.doors.http.graphql.schema import schema
from angarium.doors.http.topic_routes import NewTopic
from angarium.errors import InvalidArgument
from angarium.proto.v1 import broker_pb2 as pb
from angarium.service.topics import Topics, _config

# the command line
options = grammar().parse_args(["topic", "create", "t", "--pace-percent", "33"])
config = changed(TopicConfig(), options)
assert config.pace_percent == 33 and shown(config)["pace percent"] == "33"
# REST, and with it the OpenAPI document
wish = msgspec.json.decode(b'{"name": "t", "config": {"pace_percent": 33}}', type=NewTopic)
assert chosen(TopicConfig, wish.config) == config and in_json(config)["pace_percent"] == 33
for wrong in (0, 91):
    try:
        msgspec.json.decode(b'{"name": "t", "config": {"pace_percent": %d}}' % wrong, type=NewTopic)
        raise SystemExit("a bound is not kept")
    except msgspec.ValidationError:
        pass
properties = msgspec.json.schema(NewTopic)["$defs"]["TopicSettings"]["properties"]
assert properties["pace_percent"]["maximum"] == 90
# GraphQL
types = schema().type_map
assert str(types["TopicConfig"].fields["pacePercent"].type) == "Int!"
assert types["TopicConfigInput"].fields["pacePercent"].type.name == "Int"
# gRPC
message = message_of(pb.TopicConfig, config)
assert message.pace_percent == 33 and config_of(TopicConfig, message) == config
assert config_of(TopicConfig, pb.TopicConfig()).pace_percent == 80
# behind the contract: checked, kept and shown again
desk = object.__new__(Topics)
kept = desk.settings(msgspec.structs.replace(config, replication=1))
assert kept.pace_percent == 33 and _config(kept).pace_percent == 33
try:
    desk.settings(TopicConfig(pace_percent=91))
    raise SystemExit("a bound is not kept")
except InvalidArgument as error:
    assert "pace_percent" in str(error)
# a group's, likewise
from angarium.api import GroupConfig
from angarium.lending.configs import config_of as told, settings_of as kept_of
options = grammar().parse_args(["group", "alter", "g", "--grace", "2s"])
group = changed(GroupConfig(), options)
assert group.grace_ms == 2_000 and kept_of(group).grace_micros == 2_000_000
assert told(kept_of(group)) == group
assert config_of(GroupConfig, message_of(pb.GroupConfig, group)) == group
assert str(types["GroupConfig"].fields["graceMs"].type) == "Long!"
print("everywhere")
"""


def test_a_new_setting_is_two_edits(tmp_path: Path) -> None:
    for name in ("src", "proto", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    for name, (before, line) in EDITS.items():
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        edited = text.replace(before, line + before)
        (tmp_path / name).write_text(edited, encoding="utf-8")
    for script in ("scripts/settings.py", "scripts/proto.py"):
        run(tmp_path, script)
    assert run(tmp_path, "-c", PROBE) == "everywhere\n"
    page = (tmp_path / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert "| `pace_percent` | `--pace-percent` | 80 | 1 to 90 | Go so fast at the most. |" in page


def test_the_page_and_the_proto_have_every_setting() -> None:
    made = settings.made()
    assert {path.name: path.read_text(encoding="utf-8") == text for path, text in made.items()} == {
        "settings.md": True,
        "broker.proto": True,
    }


def run(folder: Path, *arguments: str) -> str:
    """Run a Python that finds `angarium` in the copy."""
    done = subprocess.run(
        (sys.executable, *arguments),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
