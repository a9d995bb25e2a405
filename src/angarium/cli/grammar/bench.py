"""`angarium bench`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from angarium.cli.grammar.quantities import seconds
from angarium.cli.grammar.topic import MODES
from angarium.cli.grammar.words import natural, positive

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

PROTOCOLS = ("wire", "grpc", "grpc-stream", "rest", "graphql")
SCENARIOS = ("live", "publish", "catch-up", "slow", "late", "crash", "isolation", "disk")

_MORE = """\
Without --servers or --profile it starts three nodes of its own and removes them afterwards. Every
record is checked: delivered once, in order, none invented. The exit status is 1 if that is not so.

    angarium bench --workers 60                      a record a call, each waits for its answer
    angarium bench --workers 8 --batch 500           many records a call
    angarium bench --rate 1000 --topics 20           latency at a given load
    angarium bench --scenario catch-up --batch 500   reading what is stored
    angarium bench --scenario crash --rate 5000      consumers die at half time, others continue
    angarium bench --protocol all --workers 60       every protocol, side by side
    angarium bench --protocol rest --through all --sub-target follower
                                                     publish to every node, read from a follower"""


def addresses(text: str) -> tuple[str, ...]:
    """Return the addresses that were named, for argparse."""
    found = tuple(one.strip() for one in text.split(","))
    for one in found:
        host, _, port = one.rpartition(":")
        if not host or not port.isdigit():
            raise argparse.ArgumentTypeError(f"{one!r} is not HOST:PORT")
    return found


def add(words: Words) -> None:
    """Add the word."""
    parser = words.add("bench", "measure a cluster, and check it", run="bench:run", more=_MORE)
    parser.add_argument(
        "--scenario",
        choices=SCENARIOS,
        default="live",
        help="publish and receive, publish alone, read what is stored, or with a consumer group:"
        " slow or late members, a crash, one topic never settled, a backlog"
        " (default: live)",
    )
    parser.add_argument(
        "--consumers",
        type=positive,
        default=4,
        metavar="N",
        help="of the group, in the scenarios that have one (default: 4)",
    )
    parser.add_argument(
        "--protocol",
        choices=(*PROTOCOLS, "all"),
        default="wire",
        help="how records travel, or all protocols one after the other, side by side"
        " (default: wire)",
    )
    parser.add_argument(
        "--grpc-targets",
        type=addresses,
        metavar="HOST:PORT,...",
        help="gRPC doors to publish to in turn, leader or not",
    )
    parser.add_argument(
        "--http-targets",
        type=addresses,
        metavar="HOST:PORT,...",
        help="HTTP doors to publish to in turn, leader or not",
    )
    parser.add_argument(
        "--sub-target",
        metavar="NODE",
        help="the node that deliveries come from: leader, follower, or HOST:PORT of any of its"
        " doors",
    )
    parser.add_argument("--mode", choices=MODES, default="consistent", help="(default: consistent)")
    parser.add_argument(
        "--workers",
        type=positive,
        default=8,
        metavar="N",
        help="concurrent publishers (default: 8)",
    )
    parser.add_argument(
        "--connections",
        type=positive,
        default=1,
        metavar="N",
        help="clients that the workers share (default: 1)",
    )
    parser.add_argument(
        "--batch", type=positive, default=1, metavar="N", help="records in a call (default: 1)"
    )
    parser.add_argument(
        "--size", type=positive, default=100, metavar="BYTES", help="of a record (default: 100)"
    )
    parser.add_argument(
        "--rate",
        type=positive,
        metavar="N",
        help="records per second in all; latency then counts from when each was due",
    )
    parser.add_argument(
        "--duration", type=seconds, default=10.0, metavar="SECONDS", help="timed (default: 10)"
    )
    parser.add_argument(
        "--warmup", type=seconds, default=1.0, metavar="SECONDS", help="not timed (default: 1)"
    )
    parser.add_argument("--topics", type=positive, default=1, metavar="N", help="(default: 1)")
    parser.add_argument(
        "--partitions", type=positive, default=1, metavar="N", help="of each topic (default: 1)"
    )
    parser.add_argument(
        "--replication", type=positive, metavar="N", help="(default: 3, or all nodes)"
    )
    parser.add_argument(
        "--through",
        choices=("leader", "follower", "all"),
        default="leader",
        help="which node publishes over gRPC and HTTP are sent to (default: leader)",
    )
    parser.add_argument(
        "--nodes", type=natural, default=3, metavar="N", help="of a cluster of its own (default: 3)"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="where a cluster of its own keeps its data while it runs; a disk, not tmpfs, or"
        " fsync costs nothing (default: the system's temporary folder)",
    )
    # For developers: the program to run the nodes with, such as a profiler.
    parser.add_argument("--interpreter", help=argparse.SUPPRESS)
