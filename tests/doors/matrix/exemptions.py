"""What a door does not have, and why: each method is tried there or named here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

BACKUPS: Final = "backups are made and brought back by the command and our own client"
INSIDE: Final = "the doors of a node ask it of the service; nobody can from outside"
OWN_CLIENT: Final = "only our own client speaks transactions and numbers of its own"
LETTERS: Final = "our client deals with letters by calls that are tried: fetch, stage, commit"
NO_LETTERS: Final = "dead letters are dealt with over REST and by our own client"
HTTP_ONLY: Final = "metrics are read over HTTP"
STREAMED: Final = "a stream: see the doors that have streams"
READING_ONLY: Final = "a stream of records, and nothing else"
NOT_OFFERED: Final = "not part of the schema"

_TRANSACTIONS: Final = (
    *("open_series", "stage", "commit", "abort", "forget_series", "settled_by"),
    *("open_sequenced", "forget_sequenced", "publish_sequenced", "last_sequence", "reserve"),
)
_LETTERS: Final = ("dead_letters.list", "dead_letters.redrive", "dead_letters.purge")
_BACKUPS: Final = (
    *("read_positions", "read_accounts", "restore_topic", "restore_records"),
    *("restore_positions", "restore_accounts"),
)
_STREAMS: Final = ("subscribe", "consume")


def _because(reason: str, *methods: str) -> dict[str, str]:
    return dict.fromkeys(methods, reason)


EXEMPT: Final[Mapping[str, Mapping[str, str]]] = {
    "wire": {
        **_because(INSIDE, "subscribe_passing"),
        **_because(LETTERS, *_LETTERS),
        **_because(HTTP_ONLY, "metrics"),
    },
    "gRPC": {
        **_because(INSIDE, "subscribe_passing"),
        **_because(BACKUPS, *_BACKUPS),
        **_because(OWN_CLIENT, *_TRANSACTIONS),
        **_because(NO_LETTERS, *_LETTERS),
        **_because(HTTP_ONLY, "metrics"),
    },
    "REST": {
        **_because(INSIDE, "subscribe_passing"),
        **_because(BACKUPS, *_BACKUPS),
        **_because(OWN_CLIENT, *(one for one in _TRANSACTIONS if one != "publish_sequenced")),
        **_because(STREAMED, *_STREAMS),
    },
    "gateway": {
        **_because(INSIDE, "subscribe_passing"),
        **_because(BACKUPS, *_BACKUPS),
        **_because(OWN_CLIENT, *(one for one in _TRANSACTIONS if one != "publish_sequenced")),
        **_because(STREAMED, *_STREAMS),
        **_because(LETTERS, *_LETTERS),
    },
    "GraphQL": {
        **_because(INSIDE, "subscribe_passing"),
        **_because(BACKUPS, *_BACKUPS),
        **_because(OWN_CLIENT, *_TRANSACTIONS),
        **_because(NO_LETTERS, *_LETTERS),
        **_because(HTTP_ONLY, "metrics"),
        **_because(STREAMED, *_STREAMS),
        **_because(
            NOT_OFFERED,
            *("find_offset", "open_producer", "settle", "report_checkpoints"),
            *("drain_node", "remove_node", "transfer_leader", "raise_level"),
        ),
    },
}
"""By door and method. The streaming doors have only what `STREAMING` says."""

STREAMING: Final[Mapping[str, frozenset[str]]] = {
    "events": frozenset(_STREAMS),
    "WebSocket": frozenset({*_STREAMS, "publish"}),
    "GraphQL subscriptions": frozenset(_STREAMS),
}
"""What these doors have; whatever else there is, they do not."""
