"""`angarium group list | describe | alter | seek | pause | resume | delete`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from angarium.api.settings import word_of
from angarium.cli.complaints import Refusal
from angarium.cli.consuming import start_like
from angarium.cli.grammar.quantities import shown_age, shown_duration, shown_time
from angarium.cli.output import print_json, print_table
from angarium.cli.session import talk
from angarium.cli.settings import changed

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api import GroupInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client


def list_all(options: Namespace) -> int:
    """Print all groups."""

    async def work(client: Client, chosen: Choices) -> int:
        groups = await client.list_groups()
        if chosen.is_json:
            print_json([group_json(group) for group in groups])
            return 0
        print_table(
            ("group", "kind", "state", "members", "lag", "attempts", "ack timeout", "dead letters"),
            [
                (
                    group.name,
                    group.kind.name.lower(),
                    "paused" if group.paused else "active" if group.members else "idle",
                    len(group.members),
                    group.lag,
                    None if _keeps_itself(group) else group.config.max_attempts,
                    None if _keeps_itself(group) else shown_duration(group.config.ack_timeout_ms),
                    None if _keeps_itself(group) else group.config.dead_letter_topic,
                )
                for group in groups
            ],
            none="There are no groups. `angarium sub TOPIC --group NAME` makes one.",
        )
        return 0

    return talk(options, work)


def describe(options: Namespace) -> int:
    """Print one group."""

    async def work(client: Client, chosen: Choices) -> int:
        _print_group(await client.describe_group(options.name), chosen)
        return 0

    return talk(options, work)


def alter(options: Namespace) -> int:
    """Change a group's settings."""

    async def work(client: Client, chosen: Choices) -> int:
        before = await client.describe_group(options.name)
        config = changed(before.config, options)
        if config == before.config:
            raise Refusal("nothing to change: give a setting, for example --max-attempts 10")
        _print_group(await client.alter_group(options.name, config), chosen)
        return 0

    return talk(options, work)


def seek(options: Namespace) -> int:
    """Move a group, or show what would move."""
    if options.start.at == "live":
        raise Refusal("a group is moved to a position: earliest, latest, an offset or a time")

    async def work(client: Client, chosen: Choices) -> int:
        moved = await client.seek_group(
            options.name,
            start_like(options.start),
            topic=options.topic,
            partition=options.partition,
            dry_run=options.dry_run,
        )
        if chosen.is_json:
            print_json({"dry_run": options.dry_run, "moved": msgspec.to_builtins(moved)})
            return 0
        print_table(
            ("topic", "partition", "from", "to", "difference"),
            [
                (
                    one.topic,
                    one.partition,
                    one.old_floor,
                    one.new_floor,
                    f"{one.new_floor - one.old_floor:+d}",
                )
                for one in moved
            ],
            none="The group has no partitions there.",
        )
        if options.dry_run and moved:
            print("Nothing was moved; leave --dry-run out to do it.")
        return 0

    return talk(options, work)


def pause(options: Namespace) -> int:
    """Hand nothing more out."""
    return _pause(options, paused=True)


def resume(options: Namespace) -> int:
    """Go on."""
    return _pause(options, paused=False)


def delete(options: Namespace) -> int:
    """Forget a group, if the caller means it."""
    what = options.name if options.topic is None else f"{options.name} in {options.topic}"
    if not options.yes:
        _ask_whether_to_delete(what)

    async def work(client: Client, chosen: Choices) -> int:
        await client.delete_group(options.name, topic=options.topic)
        if chosen.is_json:
            print_json({"group": options.name, "topic": options.topic, "deleted": True})
        else:
            print(f"forgot {what}")
        return 0

    return talk(options, work)


def group_json(group: GroupInfo) -> dict[str, Any]:
    """Return a group for JSON; kinds and choices by name, times in ms."""
    found: dict[str, Any] = msgspec.to_builtins(group)
    found["kind"] = group.kind.name.lower()
    found["config"]["poison"] = word_of(group.config.poison)
    found["config"]["behind"] = word_of(group.config.behind)
    found["lag"] = group.lag
    del found["listed_lag"]
    if group.positions:
        found["lag_ms"] = group.lag_ms
    else:
        del found["positions"]
    return found


def _pause(options: Namespace, *, paused: bool) -> int:
    async def work(client: Client, chosen: Choices) -> int:
        await client.pause_group(options.name, paused=paused)
        if chosen.is_json:
            print_json({"group": options.name, "paused": paused})
        elif paused:
            print(f"{options.name} gets no more records; its consumers keep what they hold")
        else:
            print(f"{options.name} continues")
        return 0

    return talk(options, work)


def _print_group(group: GroupInfo, chosen: Choices) -> None:
    if chosen.is_json:
        print_json(group_json(group))
        return
    config = group.config
    oldest_ms = group.lag_ms or 0
    facts: dict[str, object] = {
        "group": group.name,
        "kind": group.kind.name.lower() + (", paused" if group.paused else ""),
        "lag": f"{group.lag} records, {shown_age(oldest_ms)}",
    }
    if not _keeps_itself(group):
        facts |= {
            "attempts": config.max_attempts,
            "ack timeout": shown_duration(config.ack_timeout_ms),
            "backoff": f"{shown_duration(config.backoff_min_ms)} to"
            f" {shown_duration(config.backoff_max_ms)}",
            "dead letters": config.dead_letter_topic,
            "when behind": config.behind.name.lower(),
        }
    if group.kind.is_ordered:
        facts["poison"] = word_of(config.poison)
    for name, value in facts.items():
        print(f"{name:<13} {value}")
    print()
    print_table(
        ("topic", "partition", "floor", "start", "end", "lag", "age", *_KEPT, "owner"),
        [
            (
                one.topic,
                one.partition,
                one.floor,
                one.start_offset,
                one.end_offset,
                f"{one.lag}{' (behind the start)' if one.is_behind else ''}",
                shown_age(one.lag_ms),
                one.acked_above,
                one.pending,
                one.retrying,
                one.owner or None,
            )
            for one in group.positions
        ],
        none="It has no partitions yet.",
    )
    _print_waiting(group)
    print()
    print_table(
        ("member", "node", "on loan", "partitions"),
        [
            (
                one.name,
                one.node,
                one.pending,
                " ".join(f"{topic}/{partition}" for topic, partition in one.partitions) or None,
            )
            for one in group.members
        ],
        none="Nobody takes part in it at the moment.",
    )


def _print_waiting(group: GroupInfo) -> None:
    waiting = [one for one in group.positions if one.waits_for]
    if waiting:
        print()
        rows = [
            (
                one.topic,
                one.partition,
                one.waits_for,
                None if one.waits_until is None else shown_time(one.waits_until),
            )
            for one in waiting
        ]
        print_table(("topic", "partition", "waits for", "until (UTC)"), rows, none="")


_KEPT = ("acked above", "on loan", "retrying")


def _keeps_itself(group: GroupInfo) -> bool:
    return group.kind.keeps_own_offsets


def _ask_whether_to_delete(what: str) -> None:
    if not sys.stdin.isatty():
        raise Refusal(f"{what} would lose its position; use --yes to delete it without being asked")
    print(f"Delete {what} and its position? Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise Refusal("nothing was deleted")
