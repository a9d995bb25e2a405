"""Commands as bytes: a kind, a version, and the command's fields as a msgpack array.

Fields are only ever added at the end, with a default. A kind or version that is not known here is
refused rather than guessed at: the cluster's feature level keeps leaders from writing what some
replica does not understand yet. Should one be met in a log all the same, a newer release wrote it
and gives it a meaning, so a replica stops before applying it (`knows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from angarium.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.ids import Buffer

VERSION: Final = 1

C = TypeVar("C")
_encode = msgspec.msgpack.Encoder().encode


class Forms(Generic[C]):
    """The commands one kind of machine understands."""

    __slots__ = ("_decoders", "_prefixes")

    def __init__(self, kinds: Mapping[type[Any], int]) -> None:
        self._prefixes = {form: bytes((kind, VERSION)) for form, kind in kinds.items()}
        self._decoders: dict[int, msgspec.msgpack.Decoder[Any]] = {
            int(kind): msgspec.msgpack.Decoder(form) for form, kind in kinds.items()
        }

    def encode(self, command: C) -> bytes:
        """Return the entry's data for `command`."""
        return self._prefixes[type(command)] + _encode(command)

    def knows(self, data: Buffer) -> bool:
        """Tell whether `data` has a kind and version that mean something here.

        What is malformed beyond these is refused by every release alike, and so counts as known.
        """
        return len(data) < 2 or (data[1] == VERSION and data[0] in self._decoders)

    def decode(self, data: Buffer) -> C:
        """Return the command in `data`; raises `InvalidCommand`."""
        if len(data) < 2:
            raise InvalidCommand(f"{len(data)} bytes are too few for a command")
        decoder = self._decoders.get(data[0])
        if decoder is None:
            raise InvalidCommand(f"no command has the kind {data[0]}")
        if data[1] != VERSION:
            raise InvalidCommand(f"version {data[1]} of command {data[0]} is not known here")
        try:
            command: C = decoder.decode(memoryview(data)[2:])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise InvalidCommand(f"command {data[0]} is malformed: {error}") from None
        return command
