"""Write what is made from the declarations of settings (`angarium.api.settings`), or check it.

    python scripts/settings.py [--check]

That is the page docs/reference/settings.md, and in proto/ a field for every setting and a value for
every kind of group that has none yet. Those that are there stay as they are: a number, once given
away, means one thing for ever.
"""

from __future__ import annotations

import re
import sys
import textwrap
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.api import GroupConfig, TopicConfig
from angarium.api.settings import settings_of
from angarium.cli.grammar.settings import flag_of, shown_setting
from angarium.kinds import ABOUT_KINDS

if TYPE_CHECKING:
    import msgspec

    from angarium.api.settings import Setting

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "settings.md"
PROTO: Final = ROOT / "proto" / "angarium" / "v1" / "broker.proto"

CONFIGS: Final[tuple[tuple[str, type[msgspec.Struct]], ...]] = (
    ("Topics", TopicConfig),
    ("Consumer groups", GroupConfig),
)
OTHER_NAMES: Final = {"cleanup": "compact"}
"""The one setting that has another type, and so another name, in protobuf: a boolean."""

ENDLESS: Final = 1 << 53
"""A bound that nobody will reach is not told."""

INTRODUCTION: Final = """\
# Settings of topics and groups

Every setting, its default and its bounds. REST, gRPC, `TopicConfig` and `GroupConfig` use these
names; GraphQL writes `retentionMs` for `retention_ms`. One setting has another type in gRPC:
`cleanup` is the boolean `compact` there. The exact rules: [time](time.md) and [groups](groups.md).
`make proto` writes this page.
"""


def main(arguments: list[str]) -> int:
    """Write the files, or with --check only compare; return the exit status."""
    wanted = made()
    stale = [path for path, text in wanted.items() if _text(path) != text]
    for path in stale:
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} lacks a setting: run `make proto`")
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if stale and "--check" in arguments else 0


def made() -> dict[Path, str]:
    """Return the files as they should be."""
    proto = _text(PROTO)
    for _, config in CONFIGS:
        proto = _with_fields(proto, config)
    proto = _with_kinds(proto)
    return {PAGE: page(), PROTO: proto}


def page() -> str:
    """Return the page about settings."""
    parts = [INTRODUCTION]
    for heading, config in CONFIGS:
        rows = [
            f"| `{one.name}` | `{flag_of(one.name)}` | {shown_setting(one, one.default)} |"
            f" {_range(one)} | {one.about.sentence} |"
            for one in settings_of(config)
        ]
        head = "| setting | flag | default | may be | what it does |\n|---|---|---|---|---|"
        parts.append("\n".join((f"## {heading}", head, *rows, "")))
    return "\n".join(parts)


def _range(one: Setting) -> str:
    if one.words:
        return ", ".join(one.words)
    if one.is_list:
        return "names"
    if one.bounds is None:
        return "yes, no" if one.kind is bool else "a name"
    least, largest = (shown_setting(one, bound) for bound in one.bounds)
    return f"from {least}" if one.bounds[1] >= ENDLESS else f"{least} to {largest}"


def _with_fields(proto: str, config: type[msgspec.Struct]) -> str:
    """Return the source with a field for every setting of a config."""
    found = re.search(
        rf"^message {config.__name__} {{\n(.*?)^}}\n", proto, re.DOTALL | re.MULTILINE
    )
    assert found is not None
    numbers = dict(re.findall(r"(\w+) = (\d+);", found[1]))
    fields = found[1]
    for one in settings_of(config):
        if OTHER_NAMES.get(one.name, one.name) not in numbers:
            numbers[one.name] = str(len(numbers) + 1)
            fields += _field(one, numbers[one.name])
    return proto[: found.start(1)] + fields + proto[found.end(1) :]


def _with_kinds(proto: str) -> str:
    """Return the source with a value for every kind of group; 0 there means that none was named."""
    for kind, sentence in ABOUT_KINDS.items():
        value = f"  GROUP_KIND_{kind.name} = {kind + 1};\n"
        if value not in proto:
            start = proto.index("enum GroupKind {")
            end = proto.index("}\n", start)
            proto = f"{proto[:end]}  // {sentence}\n{value}{proto[end:]}"
    return proto


def _field(one: Setting, number: str) -> str:
    if one.words:
        kind = one.kind.__name__ if issubclass(one.kind, IntEnum) else "a choice"
        raise SystemExit(f"{one.name}: write the enum {kind}, and the field, into {PROTO.name}")
    kind = {int: "int64", bool: "bool", str: "string"}[one.kind]
    comment = f"{one.about.sentence} Absent: {shown_setting(one, one.default)}."
    lines = textwrap.wrap(comment, 95)
    optional = "repeated " if one.is_list else "" if one.kind is bool else "optional "
    return (
        "".join(f"  // {line}\n" for line in lines) + f"  {optional}{kind} {one.name} = {number};\n"
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
