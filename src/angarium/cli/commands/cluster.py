"""`angarium cluster status | add | drain | remove | transfer | raise-level`"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from angarium.addresses import Address
from angarium.cli.complaints import Refusal
from angarium.cli.dashboard import Dashboard
from angarium.cli.draining import stuck as why_stuck
from angarium.cli.grammar.quantities import NO_LIMIT
from angarium.cli.output import print_json, print_table
from angarium.cli.overview import Overview, Seen, overview
from angarium.cli.own_name import own_name
from angarium.cli.probe import Probe
from angarium.cli.session import talk
from angarium.doors.status import Exit
from angarium.ids import NodeId

if TYPE_CHECKING:
    from argparse import Namespace

    from angarium.api import ClusterStatus, NodeInfo
    from angarium.cli.profiles import Choices
    from angarium.client import Client

WATCH_SECONDS = 1.0
"""How often the nodes are asked."""


def status(options: Namespace) -> int:
    """Print the cluster as the answering node sees it, or watch it."""

    async def work(client: Client, chosen: Choices) -> int:
        seen = await client.cluster_status()
        if options.watch:
            await _watch(seen)
        if chosen.is_json:
            print_json(msgspec.to_builtins(seen))
        else:
            _print_status(seen)
        return 0

    return talk(options, work)


def add(options: Namespace) -> int:
    """Say how a new node comes in."""

    async def work(client: Client, chosen: Choices) -> int:
        seen = await client.cluster_status()
        members = ",".join(one.addresses["wire"] for one in seen.nodes if one.alive)
        command = f"{own_name()} serve --data DIR --join {members}"
        if chosen.is_json:
            print_json({"cluster_id": seen.cluster_id, "join": members, "command": command})
            return 0
        print(
            "Start the new node with an empty data folder and the addresses of some nodes:\n"
            f"\n    {command}\n\n"
            "On another machine add --listen HOST, with TLS and authentication as the other nodes"
            " have (docs/guides/security.md), on this one other ports: --wire-port, --grpc-port,"
            " --http-port.\n"
            f"Where authentication is required it needs a join token: `{own_name()} cluster invite`"
            " makes one, --join-token-file FILE takes it.\n"
            "New topics use it at once. Its share of the others comes by itself after a minute,"
            f" unless that was switched off; `{own_name()} cluster rebalance` begins now."
        )
        return 0

    return talk(options, work)


def drain(options: Namespace) -> int:
    """Move everything away from a node, or let it have replicas again."""

    if options.undo and options.throttle is not None:
        raise Refusal("--undo moves nothing: --throttle does not go with it")

    async def work(client: Client, chosen: Choices) -> int:
        node = NodeId(options.node)
        if options.throttle is not None:
            # First, so that the first copy has it: the pace is that of the run.
            throttle = 0 if options.throttle == NO_LIMIT else options.throttle
            await client.rebalance(bytes_per_s=throttle)
        await client.drain_node(node, draining=not options.undo)
        left = await _replicas_of(client, node)
        stuck = "" if options.undo or not left else await _stuck(client, node)
        while left and options.wait and not options.undo and not stuck:
            await asyncio.sleep(WATCH_SECONDS / 4)
            left = await _replicas_of(client, node)
            stuck = await _stuck(client, node)
        if chosen.is_json:
            print_json(
                {"node": node, "draining": not options.undo, "replicas": left, "stuck": stuck}
            )
        elif options.undo:
            print(f"node {node} may have replicas again")
        elif stuck:
            print(
                f"node {node} is being drained, but {stuck}: `{own_name()} cluster add` says how"
                f" one comes in, `{own_name()} cluster drain {node} --undo` takes this back"
            )
        elif left:
            print(f"node {node} is being drained; {left} replicas still have to move")
        else:
            print(f"node {node} holds no replicas; `cluster remove {node}` removes it")
        return int(Exit.CONFLICT if stuck else Exit.OK)

    return talk(options, work)


def remove(options: Namespace) -> int:
    """Forget a node."""

    async def work(client: Client, chosen: Choices) -> int:
        await client.remove_node(NodeId(options.node))
        if chosen.is_json:
            print_json({"node": options.node, "removed": True})
        else:
            print(f"node {options.node} was removed; its process ends when it hears of it")
        return 0

    return talk(options, work)


def transfer(options: Namespace) -> int:
    """Ask a partition's leader to hand over."""

    async def work(client: Client, chosen: Choices) -> int:
        await client.transfer_leader(options.topic, options.partition, NodeId(options.node))
        if chosen.is_json:
            print_json(
                {
                    "topic": options.topic,
                    "partition": options.partition,
                    "asked_to_lead": options.node,
                }
            )
        else:
            print(f"node {options.node} was asked to lead {options.topic}/{options.partition}")
            if note := await _for_how_long(client, options):
                print(note)
        return 0

    return talk(options, work)


async def _for_how_long(client: Client, options: Namespace) -> str:
    """Say how long a leader stays that is not the preferred one; empty if it is."""
    topic = await client.describe_topic(options.topic)
    preferred = topic.partitions[options.partition].replicas[0]
    if topic.config.leaders_follow or preferred == options.node:
        return ""
    return (
        f"for the moment: node {preferred} is its preferred leader, and takes it back when it has"
        " been able to for two seconds"
    )


def raise_level(options: Namespace) -> int:
    """Let the cluster work at a higher feature level."""

    async def work(client: Client, chosen: Choices) -> int:
        before = (await client.cluster_status()).feature_level
        level = await client.raise_level(options.level)
        if chosen.is_json:
            print_json({"feature_level": level, "before": before})
        elif level == before:
            print(f"the cluster works at feature level {level}, the highest that every node knows")
        else:
            print(f"the cluster works at feature level {level} from now on; it was {before}")
        return 0

    return talk(options, work)


async def _stuck(client: Client, node: NodeId) -> str:
    """Return why some of a draining node's replicas have nowhere to go; empty if all have."""
    return why_stuck(node, (await client.cluster_status()).nodes, await client.list_topics())


async def _replicas_of(client: Client, node: NodeId) -> int:
    seen = await client.cluster_status()
    return next((one.replicas for one in seen.nodes if one.id == node), 0)


def _print_status(seen: ClusterStatus) -> None:
    alive = sum(one.alive for one in seen.nodes)
    print(f"cluster         {seen.cluster_id}")
    print(f"nodes           {alive} of {len(seen.nodes)} alive, as node {seen.node} sees it")
    print(f"catalog leader  {'nobody' if seen.catalog_leader is None else seen.catalog_leader}")
    print(f"topics          {seen.topics}, with {seen.partitions} partitions")
    print(f"version         {seen.version}, feature level {seen.feature_level}")
    print()
    print_table(
        ("node", "state", "wire", "grpc", "location", "leads", "replicas", "level"),
        [
            (
                one.id,
                _state(one),
                one.addresses.get("wire"),
                one.addresses.get("grpc"),
                "/".join(filter(None, (one.region, one.zone, one.host))) or None,
                one.leads,
                one.replicas,
                one.level_max,
            )
            for one in seen.nodes
        ],
        none="There are no nodes.",
    )
    reasons = [(one.id, reason) for one in seen.nodes for reason in one.unready]
    if reasons:
        print("\nNot ready:")
        for node, reason in reasons:
            print(f"  node {node}: {reason}")


def _state(node: NodeInfo) -> str:
    words = ["alive" if node.alive else "silent"]
    words += ["not ready"] if node.unready else []
    words += ["draining"] if node.draining else []
    words += [] if node.clock_agrees else ["clock wrong"]
    return ", ".join(words)


async def _watch(seen: ClusterStatus) -> None:
    """Show the live table until Ctrl-C. Nodes that come later are shown as well."""
    dashboard = Dashboard(footer=["Ctrl-C leaves; the cluster keeps running."])
    probes = {one.id: Probe(Address.parse(one.addresses["wire"])) for one in seen.nodes}
    last: Overview | None = None
    while True:
        views = await asyncio.gather(*(probe.view() for probe in probes.values()))
        told = [
            Seen(address=str(probe.address), view=view, node=node)
            for (node, probe), view in zip(probes.items(), views, strict=True)
        ]
        last = overview(told, at=time.monotonic(), before=last)
        dashboard.show(last)
        for view in filter(None, views):
            for one in view.status.nodes:
                if one.id not in probes:
                    probes[one.id] = Probe(Address.parse(one.addresses["wire"]))
        await asyncio.sleep(WATCH_SECONDS)
