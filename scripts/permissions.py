"""Write docs/reference/permissions.md from the rules and the built-in roles, or check it.

python scripts/permissions.py [--check]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.api.access import ABOUT_ACTIONS, Action, ResourceKind
from angarium.security.permissions import covers
from angarium.security.roles import ABOUT, BUILT_IN
from angarium.service.access.rules import ALWAYS_NOTED, LETTER_RULES, RULES, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from angarium.service.access.rules import Asks, Rule, Shows

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference" / "permissions.md"

INTRODUCTION: Final = """\
# Permissions

With `[security] authentication = "required"` ([node.toml](node-toml.md#security)) every call is
asked for by a principal, and the node that it talks to looks into one table before anything is
done. `make proto` writes this page from that table (`service/access/rules.py`) and from the
built-in roles (`security/roles.py`).

A **grant** allows or denies actions on resources of one kind, by their exact name or a prefix, to
a user or a role.

- **Deny wins**, whatever allows the same and wherever it comes from. What nothing allows is
  denied.
- **A prefix ends at a name's boundary.** `team-a` is `team-a` and `team-a.orders`, because dots
  join the words of a name; it is neither `team-ab` nor `team-a-b`. A prefix that ends with
  something else than a letter or a digit brings its boundary along: `team-a-` is `team-a-b`. The
  empty prefix is every name.
- **The cluster's own names** (`angarium.dlq`, `angarium.transactions`, the group and series
  `angarium.redrive`, all `angarium.*`) are not among "every name": a grant has to name them,
  `topic:angarium.dlq` or `topic:angarium*`. A ban on every name reaches them, too.
- **Who may do anything to a thing may know of it**: every allowing grant on a topic, group, user
  or role brings its `describe`. Who may not is told that there is no such thing, in the same
  words as if there were none. A group shows of its topics only those that one may know of; its
  lag counts all.
- **A token narrows its owner**: what it was issued for and what its owner has must both allow.
  Roles from the claims of a JWT are roles by name; such a principal has nothing of a user of the
  same name. So a role that is deleted and created again counts for every JWT that claims its name.
- **A role that users hold is not deleted**, unless it is taken from them in the same step
  (`angarium role delete NAME --force`). The refusal names up to ten of them, also to a principal
  that may not describe users.
- **About oneself** everybody may ask, set the own password, and issue, see and revoke own tokens,
  with a password or a certificate as proof. With a token one may not, or it would get out of its
  bounds.
- **A change counts** from the next call on, on the node that it was made on at once, on all
  others within a second. What is open and not allowed any more (subscriptions, consumers,
  connections) ends within two seconds, with `PERMISSION_DENIED` or `UNAUTHENTICATED` and the
  reason.

- **The audit records** (`angarium.audit`) are written, kept and trimmed by the nodes alone. No
  grant, not even `*` of an administrator, lets anybody publish to that topic, alter or delete it.
  To read it asks for `audit.read`, and for nothing on topics.

`angarium can USER ACTION RESOURCE` tells whether, and by which grant.
"""

ASKED_ELSEWHERE: Final = {
    Action.METRICS_READ: "the doors themselves",
    Action.AUDIT_READ: "what reads a topic, of `angarium.audit`",
}
"""Actions that no rule names."""

RECORDED: Final = {"action": "always", "access": "as data", "": "if denied"}
"""When a method leaves an audit record."""


def main(arguments: list[str]) -> int:
    """Write the page, or with --check only compare; return the exit status."""
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    if "--check" in arguments:
        print("docs/reference/permissions.md is not what the rules say: run `make proto`")
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


def page() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *_actions(), "", *_roles(), "", *_methods(), ""])


def _asked() -> dict[Action, tuple[ResourceKind, list[str]]]:
    """Return for each action what it is done to, and which methods ask for it."""
    found: dict[Action, tuple[ResourceKind, list[str]]] = {}
    for name, rule in _all_rules():
        asked: list[Asks | Shows] = [*rule.asks, *([rule.shows] if rule.shows else [])]
        for one in asked:
            kind, methods = found.setdefault(one.action, (one.kind, []))
            assert kind is one.kind, "an action is about one kind of thing"
            if name not in methods:
                methods.append(name)
    return found


def _all_rules() -> Iterator[tuple[str, Rule]]:
    yield from RULES.items()
    for name, rule in LETTER_RULES.items():
        yield f"dead_letters.{name}", rule


def _actions() -> Iterator[str]:
    asked = _asked()
    yield "## Actions"
    yield ""
    yield "| action | on | lets somebody | asked by |"
    yield "|---|---|---|---|"
    for action in Action:
        kind, methods = asked.get(action, (None, []))
        named = ", ".join(f"`{one}`" for one in methods) or ASKED_ELSEWHERE[action]
        yield f"| `{action}` | {kind or 'cluster'} | {ABOUT_ACTIONS[action]} | {named} |"


def _roles() -> Iterator[str]:
    asked = _asked()
    yield "## Built-in roles"
    yield ""
    yield "They stay as they are; make roles of your own beside them."
    yield "✓: on every name; ★: on the cluster's own names, too."
    yield ""
    yield f"| action | {' | '.join(BUILT_IN)} |"
    yield "|---" * (len(BUILT_IN) + 1) + "|"
    for action in Action:
        kind = asked[action][0] if action in asked else None
        cells = []
        for grants in BUILT_IN.values():
            kinds = [kind] if kind else sorted({one.kind for one in grants})
            reach = [
                any(covers(one, action, on, name) for one in grants for on in kinds)
                for name in ("orders", "angarium.dlq")
            ]
            cells.append("★" if all(reach) else "✓" if reach[0] else "")
        yield f"| `{action}` | {' | '.join(cells)} |"
    yield ""
    for name, sentence in ABOUT.items():
        yield f"- `{name}`: {sentence}"


def _methods() -> Iterator[str]:
    yield "## What each method asks"
    yield ""
    yield "*Recorded* is when a call leaves an [audit record](audit.md): always, where `[audit]"
    yield "record` is `data`, or only if it is denied, as every call does."
    yield ""
    yield "| method | asks | recorded |"
    yield "|---|---|---|"
    for name, rule in sorted(_all_rules()):
        asks = [
            f"`{one.action}`"
            + ("" if one.kind is ResourceKind.CLUSTER else f" on the {one.kind}")
            + (f" ({one.when})" if one.when else "")
            for one in rule.asks
        ]
        if rule.shows is not None:
            asks.append(f"shows what `{rule.shows.action}` allows")
        if rule.topics_shown is not None:
            asks.append("of its topics it shows those that `topic.describe` allows")
        if rule.own:
            asks.append("about oneself: nothing")
        if rule.instead:
            asks.append(f"without it: {rule.instead}")
        when = "always" if name in ALWAYS_NOTED else RECORDED[recorded(name) or ""]
        yield f"| `{name}` | {'; '.join(asks) or 'nothing'} | {when} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
