"""JSON as the profile's broker read it, in Go: more is taken than our own doors take.

Names match in any case, and unknown names are passed over; null leaves a field as it would
be without it; of a name that comes twice the later one counts; what comes after the first value is
not read; bytes that are no UTF-8 become U+FFFD. What is written as it should be costs nothing.
"""

from __future__ import annotations

import json
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgspec

from angarium.errors import InvalidArgument

S = TypeVar("S", bound=msgspec.Struct)


class LenientDecoder(Generic[S]):
    """Reads one kind of body, whose fields all have defaults and whose names are lower case."""

    def __init__(self, kind: type[S]) -> None:
        """Prepare; the struct forbids unknown fields, so that another case is noticed."""
        assert kind.__struct_config__.forbid_unknown_fields
        self._kind = kind
        self._strict = msgspec.json.Decoder(kind)

    def decode(self, body: bytes) -> S:
        """Return what `body` says; raises `InvalidArgument`."""
        try:
            return self._strict.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self._decode_leniently(body)

    def _decode_leniently(self, body: bytes) -> S:
        try:
            text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
            value, _ = _reader.raw_decode(text)
            fields = self._kind.__struct_fields__
            folded = {
                name: _legible(one)
                for name, one in (_folded(value, fields) if isinstance(value, dict) else ())
            }
            if value is not None and not isinstance(value, dict):
                raise InvalidArgument("the JSON is no object")
            return msgspec.convert(folded, self._kind)
        except (ValueError, RecursionError) as error:
            raise InvalidArgument(f"the JSON is not what this takes: {error}") from None


def _folded(value: dict[str, Any], fields: tuple[str, ...]) -> list[tuple[str, Any]]:
    pairs = ((name.lower(), one) for name, one in value.items() if one is not None)
    return [(name, one) for name, one in pairs if name in fields]


def _legible(value: Any) -> Any:
    """Return a value without halves of surrogate pairs, which no UTF-8 can say."""
    if isinstance(value, list):
        return [_legible("" if one is None else one) for one in value]
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


_reader: Final = json.JSONDecoder(parse_constant=_no_number)
