"""The peers there are. A module is imported when its peer is asked for, for it needs its client."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from benchmarks.peers.port import NotInstalled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.peers.port import Peer

CLIENTS: Final = "pip install -c constraints.txt -e '.[peers]'"

KNOWN: Final = {
    "nats": ("nats_jetstream", "NatsJetStream"),
    "redis": ("redis_streams", "RedisStreams"),
    "rabbitmq": ("rabbitmq_quorum", "RabbitQuorumQueues"),
    "kafka": ("kafka_kraft", "KafkaKraft"),
}


def peer_named(name: str, folder: Path) -> Peer:
    """Return a peer that keeps its data in `folder`; raises `NotInstalled` without its client."""
    module, kind = KNOWN[name]
    try:
        found = import_module(f"benchmarks.peers.{module}")
    except ModuleNotFoundError:
        raise NotInstalled(CLIENTS) from None
    return cast("Callable[[Path], Peer]", getattr(found, kind))(folder)
