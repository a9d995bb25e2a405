"""`angarium topic create | list | describe | alter | delete`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import msgspec

from angarium.api import TopicConfig
from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import shown_duration, shown_size, shown_time
from angarium.cli.in_sync import as_leaders_see
from angarium.cli.output import print_json, print_table
from angarium.cli.session import talk
from angarium.cli.settings import changed, shown
from angarium.errors import AlreadyExists

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from angarium.api import PartitionInfo, TopicInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client
    from angarium.ids import NodeId


TROUBLES_SHOWN_MAX: Final = 3
"""So many partitions without a leader are told of in a sentence each: most lack the same nodes."""


def create(options: Namespace) -> int:
    """Create a topic."""

    async def work(client: Client, chosen: Choices) -> int:
        config = changed(TopicConfig(), options)
        try:
            topic = await client.create_topic(
                options.name, partitions=options.partitions, config=config
            )
        except AlreadyExists:
            if not options.if_not_exists:
                raise
            topic = await client.describe_topic(options.name)
        _print_topic(await as_leaders_see(client, topic), chosen)
        return 0

    return talk(options, work)


def list_all(options: Namespace) -> int:
    """Print all topics."""

    async def work(client: Client, chosen: Choices) -> int:
        topics = await client.list_topics()
        if chosen.is_json:
            print_json([topic_json(topic) for topic in topics])
            return 0
        print_table(
            ("topic", "partitions", "replication", "mode", "retention", "retention size"),
            [
                (
                    topic.name,
                    len(topic.partitions),
                    max((len(one.replicas) for one in topic.partitions), default=0),
                    topic.config.mode.name.lower(),
                    shown_duration(topic.config.retention_ms),
                    shown_size(topic.config.retention_bytes),
                )
                for topic in topics
            ],
            none="There are no topics. `angarium topic create NAME` makes one.",
        )
        return 0

    return talk(options, work)


def describe(options: Namespace) -> int:
    """Print one topic."""

    async def work(client: Client, chosen: Choices) -> int:
        topic = await client.describe_topic(options.name)
        _print_topic(await as_leaders_see(client, topic), chosen)
        return 0

    return talk(options, work)


def alter(options: Namespace) -> int:
    """Change a topic's settings."""

    async def work(client: Client, chosen: Choices) -> int:
        before = await client.describe_topic(options.name)
        config = changed(before.config, options)
        if config == before.config and options.partitions is None:
            raise Refusal("nothing to change: give a setting, for example --retention 7d")
        topic = await client.alter_topic(
            options.name,
            partitions=options.partitions,
            config=None if config == before.config else config,
        )
        _print_topic(await as_leaders_see(client, topic), chosen)
        return 0

    return talk(options, work)


def delete(options: Namespace) -> int:
    """Delete topics, if the caller means it."""
    if not options.yes:
        _ask_whether_to_delete(options.names)

    async def work(client: Client, chosen: Choices) -> int:
        for name in options.names:
            await client.delete_topic(name)
            if not chosen.is_json:
                print(f"deleted {name}")
        if chosen.is_json:
            print_json({"deleted": options.names})
        return 0

    return talk(options, work)


def topic_json(topic: TopicInfo) -> dict[str, Any]:
    """Return a topic for JSON; modes by name, times in µs since 1970."""
    found: dict[str, Any] = msgspec.to_builtins(topic)
    found["config"]["mode"] = topic.config.mode.name.lower()
    return found


def _print_topic(topic: TopicInfo, chosen: Choices) -> None:
    if chosen.is_json:
        print_json(topic_json(topic))
        return
    facts = {
        "topic": topic.name,
        "id": topic.id,
        "created": shown_time(topic.created_at),
        **shown(topic.config),
    }
    if topic.layouts:
        facts["layouts"] = _shown_layouts(topic)
    for name, value in facts.items():
        print(f"{name:<17} {value}")
    print()
    columns: dict[str, Callable[[PartitionInfo], object]] = {
        "partition": lambda one: one.number,
        "home": lambda one: one.home or None,
        "leader": lambda one: one.leader,
        "replicas": lambda one: _shown_nodes(one.replicas),
        "in sync": lambda one: _shown_in_sync(one.in_sync),
        "readers": lambda one: _shown_nodes(one.readers) or None,
        "witness": lambda one: one.witness,
        "start": lambda one: one.start_offset,
        "end": lambda one: one.end_offset,
    }
    for name in ("home", "readers", "witness"):
        if not any(map(columns[name], topic.partitions)):
            del columns[name]
    print_table(
        tuple(columns),
        [[shows(one) for shows in columns.values()] for one in topic.partitions],
        none="It has no partitions.",
    )
    if topic.caution:
        print(f"\n{topic.caution}")
    troubles = [one.trouble for one in topic.partitions if one.trouble]
    for trouble in troubles[:TROUBLES_SHOWN_MAX]:
        print(f"\n{trouble}")
    if len(troubles) > TROUBLES_SHOWN_MAX:
        more = len(troubles) - TROUBLES_SHOWN_MAX
        print(f"\n{more} more partitions have no leader either; --format json says why of each.")
    if any(one.in_sync is None and not one.trouble for one in topic.partitions):
        print("\nOnly a partition's leader knows who is in sync; where there is -, none answered.")


def _shown_layouts(topic: TopicInfo) -> str:
    """Return to how many partitions keys were dealt, one layout after the other."""
    counts = ", then ".join(map(str, topic.layouts))
    carried_out = topic.layout == len(topic.layouts) - 1
    return f"{counts} partitions" + ("" if carried_out else "; the last is being carried out")


def _shown_nodes(nodes: tuple[NodeId, ...]) -> str:
    return " ".join(map(str, nodes))


def _shown_in_sync(nodes: tuple[NodeId, ...] | None) -> str | None:
    if nodes is None:
        return None
    # Nobody counts until everybody has heard of a change of the replicas, a topic's first included.
    return _shown_nodes(nodes) or "changing"


def _ask_whether_to_delete(names: list[str]) -> None:
    what = ", ".join(names)
    if not sys.stdin.isatty():
        raise Refusal(
            f"{what} would be deleted for good; use --yes to delete it without being asked"
        )
    print(f"Delete {what} with everything in it? Type yes: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != "yes":
        raise Refusal("nothing was deleted")
