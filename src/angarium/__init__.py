"""Angarium: a replicated message broker whose topics are Spark tables.

The client's names can be imported from here. They are loaded when they are first used, so that
`import angarium` alone costs nothing; their types are in `__init__.pyi`.
"""

import importlib

__version__ = "0.1.0.dev0"

_HOMES = {
    "Ack": "angarium.api",
    "App": "angarium.client.handlers.app",
    "Behind": "angarium.kinds",
    "Client": "angarium.client",
    "ClientSettings": "angarium.client",
    "Consumer": "angarium.client",
    "DeadLetter": "angarium.client",
    "DeliveryMode": "angarium.modes",
    "Group": "angarium.client",
    "GroupBatch": "angarium.client",
    "GroupConfig": "angarium.api",
    "GroupKind": "angarium.kinds",
    "GroupRecord": "angarium.client",
    "LetterFilter": "angarium.client",
    "Loss": "angarium.client",
    "Poison": "angarium.kinds",
    "Receipt": "angarium.client",
    "ReceivedBatch": "angarium.client",
    "Record": "angarium.client",
    "RecordHeaders": "angarium.client",
    "Reject": "angarium.client.handlers.handler",
    "Retry": "angarium.client.handlers.handler",
    "Subscription": "angarium.client",
    "SyncClient": "angarium.client",
    "TopicConfig": "angarium.api",
}

__all__ = ["__version__", "errors", *_HOMES]  # noqa: PLE0604 (names, all of them)


def __getattr__(name: str) -> object:
    if name == "errors":
        return importlib.import_module("angarium.errors")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'angarium' has no attribute {name!r}")
    # Not an import statement: rooms below the client import this module for its version, and
    # must not be seen to import the client through it.
    found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
