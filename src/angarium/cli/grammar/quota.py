"""`angarium quota set | list | show | delete`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from angarium.cli.grammar.quantities import size_bytes

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

UNLIMITED: Final = -1
CLEARED: Final = -2
"""How "default" is kept: the quota says nothing about it any more."""

_SUBJECT: Final = "user:NAME|role:NAME|default|topic:PREFIX"

_SET: Final = """\
    angarium quota set default --requests 1000 --connections 50
    angarium quota set role:publisher --bytes-in 20MB --publishes 50000
    angarium quota set user:alice --bytes-in unlimited --requests default
    angarium quota set topic:team-a* --stored-bytes 500GB
    angarium quota set role:pipeline --topics 50 --partitions 400

A limit is of the whole cluster, and of each principal: what is set for a role is what each who has
it may use. A user's own quota counts before its roles', those before the default, limit by limit.
`unlimited` lifts a limit, `default` says nothing about it any more. What is not given stays as it
is. Over a limit of use, requests are slowed down first and refused then. Over a limit of topics or
partitions, creating is refused; without a quota it is 1,000 topics and 10,000 partitions, and none
for administrators. docs/reference/quotas.md says how."""

_LIMITS: Final = (
    ("bytes-in", "BYTES", "bytes published in a second"),
    ("bytes-out", "BYTES", "bytes read in a second"),
    ("requests", "N", "requests in a second, through any door"),
    ("publishes", "N", "records published in a second"),
    ("connections", "N", "connections and streams at a time"),
    ("stored-bytes", "BYTES", "bytes that the topics under a prefix hold"),
    ("topics", "N", "topics created that still exist"),
    ("partitions", "N", "partitions created that still exist"),
)


def amount(text: str) -> int:
    """Read a limit: a number, a size, "unlimited" or "default"; "/s" behind it changes nothing."""
    if text == "unlimited":
        return UNLIMITED
    if text == "default":
        return CLEARED
    try:
        found = size_bytes(text.removesuffix("/s"))
    except argparse.ArgumentTypeError:
        found = 0
    if found < 1:
        raise argparse.ArgumentTypeError(
            f'{text!r} is no limit; write 5000, 64KiB or 10MB, or "unlimited" or "default"'
        )
    return found


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("quota", "say how much somebody may use")

    setting = family.add("set", "set limits", run="quota:set_limits", more=_SET)
    setting.add_argument("subject", metavar=_SUBJECT)
    for name, metavar, about in _LIMITS:
        setting.add_argument(f"--{name}", type=amount, metavar=metavar, help=about)

    family.add("list", "list quotas", run="quota:list_all")

    show = family.add(
        "show", "show what counts for somebody, and how much of it is used", run="quota:show"
    )
    show.add_argument("subject", metavar=_SUBJECT)

    delete = family.add("delete", "say nothing any more", run="quota:delete")
    delete.add_argument("subject", metavar=_SUBJECT)
