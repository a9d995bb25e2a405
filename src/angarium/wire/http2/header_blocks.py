"""Header blocks (HPACK, RFC 7541): read here, written without a table.

Clients of gRPC send the same block again and again. As long as the table that its numbers refer to
is the same, so is its meaning: such a block is recognised, not decoded. Blocks that differ in one
value alone, as those of calls with a deadline do, are recognised by what stands around it, if the
client does without the table (`Connection` asks it to).

What we write refers to the static table alone and never changes the other side's table. So the
blocks of answers are constants.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from angarium.wire.http2.frames import ConnectionFailed, ErrorCode
from angarium.wire.http2.huffman import InvalidHuffman, huffman_decoded
from angarium.wire.http2.request_heads import VARYING_BYTES_MAX, is_short_word, without

Field: TypeAlias = tuple[bytes, bytes]
"""A header's name and value."""

_Found: TypeAlias = tuple[tuple[Field, ...], tuple[tuple[Field, ...], bytes | None]]
"""The fields of a block; the same without the varying one, and the value of that."""

TABLE_BYTES_MAX: Final = 4_096
"""The table that a client may have us keep: the protocol's default, so nobody has to be told."""

FIELD_OVERHEAD_BYTES: Final = 32
"""What a field counts besides its bytes (RFC 7541, section 4.1)."""

RESIZES_MAX: Final = 2
"""Changes of the table's size in one block: to the smallest since the last one, and to what it is
now (RFC 7541, section 4.2)."""

RECOGNISED_MAX: Final = 64
"""Blocks remembered for one connection. With more, remembering begins anew."""

PATTERNS_MAX: Final = 8
"""The same of blocks with one value that varies."""

RECOGNISED_BYTES_MAX: Final = 1_536
"""Larger blocks are not remembered: a token fits in, and thousands of connections may be open."""

_STATIC: Final[tuple[Field, ...]] = (
    (b":authority", b""), (b":method", b"GET"), (b":method", b"POST"), (b":path", b"/"),
    (b":path", b"/index.html"), (b":scheme", b"http"), (b":scheme", b"https"),
    (b":status", b"200"), (b":status", b"204"), (b":status", b"206"), (b":status", b"304"),
    (b":status", b"400"), (b":status", b"404"), (b":status", b"500"), (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"), (b"accept-language", b""), (b"accept-ranges", b""),
    (b"accept", b""), (b"access-control-allow-origin", b""), (b"age", b""), (b"allow", b""),
    (b"authorization", b""), (b"cache-control", b""), (b"content-disposition", b""),
    (b"content-encoding", b""), (b"content-language", b""), (b"content-length", b""),
    (b"content-location", b""), (b"content-range", b""), (b"content-type", b""), (b"cookie", b""),
    (b"date", b""), (b"etag", b""), (b"expect", b""), (b"expires", b""), (b"from", b""),
    (b"host", b""), (b"if-match", b""), (b"if-modified-since", b""), (b"if-none-match", b""),
    (b"if-range", b""), (b"if-unmodified-since", b""), (b"last-modified", b""), (b"link", b""),
    (b"location", b""), (b"max-forwards", b""), (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""), (b"range", b""), (b"referer", b""), (b"refresh", b""),
    (b"retry-after", b""), (b"server", b""), (b"set-cookie", b""),
    (b"strict-transport-security", b""), (b"transfer-encoding", b""), (b"user-agent", b""),
    (b"vary", b""), (b"via", b""), (b"www-authenticate", b""),
)  # fmt: skip
_STATIC_COUNT: Final = len(_STATIC)

FIELDS_MAX: Final = 512
"""Fields of one header block; one with more ends the connection. With 32 bytes for each, as RFC
9113 counts them, that is what the headers of one request may have."""

FIELDS_PER_WEIGHT: Final = 8
BYTES_PER_WEIGHT: Final = 256
"""So much of a block takes about as long to decode as a frame takes."""

_INTEGER_BITS_MAX: Final = 28
"""No number in a header block needs more; a longer one is meant to cost us something."""


class _Pattern(NamedTuple):
    """Blocks that differ in one value alone: what they have before and behind it, and their other
    fields."""

    before: bytes
    behind: bytes
    fields: tuple[Field, ...]

    def value_in(self, block: bytes) -> bytes | None:
        """Return the value; None if it is no short word, or the block no such block after all."""
        begin = len(self.before)
        if len(block) - begin - len(self.behind) > 2 * VARYING_BYTES_MAX:
            return None  # decoding it would be work that is done for nothing
        try:
            value, end = _string(block, begin)
        except (IndexError, InvalidHuffman, ConnectionFailed):
            return None
        return value if block[end:] == self.behind and is_short_word(value) else None


class HeaderDecoder:
    """Reads the header blocks of one connection, in their order."""

    def __init__(self, *, block_bytes_max: int, varying: bytes = b"") -> None:
        """Prepare; `varying` is the name of the header that is another one for every request."""
        self._bytes_max = block_bytes_max
        self._varying = varying
        self._dynamic: list[Field] = []
        """The newest last."""
        self._dynamic_bytes = 0
        self.table_bytes_max = TABLE_BYTES_MAX
        """What the client may have us keep, as far as it has heard."""
        self.kept_in_vain = 0
        """How often the table was given the varying field, which is another one the next time."""
        self.weight = 0
        """What was decoded, as frames that take as long; whoever counts it begins anew."""
        self._capacity = TABLE_BYTES_MAX
        self._recognised: dict[bytes, _Found] = {}
        self._patterns: list[_Pattern] = []
        self._varying_at: tuple[int, int] | None = None
        """Where the value of the varying field begins and ends in the block that was read last."""

    def decoded(self, block: bytes) -> tuple[Field, ...]:
        """Return the fields of a block; the same object if the same block has come before.

        Raises `ConnectionFailed`: what follows a block that was not understood means nothing.
        """
        return self._found(block)[0]

    def parted(self, block: bytes) -> tuple[tuple[Field, ...], bytes | None]:
        """Return the fields of a block without the varying one, and the value of that, if any.

        The fields are mostly the same object for blocks that differ in nothing else. Raises as
        `decoded` does.
        """
        for pattern in self._patterns:
            if block.startswith(pattern.before):
                value = pattern.value_in(block)
                if value is not None:
                    return pattern.fields, value
        return self._found(block)[1]

    def _found(self, block: bytes) -> _Found:
        found = self._recognised.get(block)
        if found is not None:
            return found
        try:
            fields = self._read(block)
            self.weight += len(fields) // FIELDS_PER_WEIGHT + len(block) // BYTES_PER_WEIGHT
        except (IndexError, InvalidHuffman):
            raise _damaged("a header block that nobody can decode") from None
        rest, value = without(self._varying, fields)
        found = fields, (rest, value)
        # Reading this block may have changed the table, and have everything forgotten. What stands
        # in it then means something else the next time.
        if self._has_changed or len(block) > RECOGNISED_BYTES_MAX:
            return found
        if value is None or self._varying_at is None:
            if len(self._recognised) >= RECOGNISED_MAX:
                self._recognised.clear()
            self._recognised[block] = found
        else:
            begin, end = self._varying_at
            if len(self._patterns) >= PATTERNS_MAX:
                self._patterns.clear()
            self._patterns.append(_Pattern(block[:begin], block[end:], rest))
        return found

    def _read(self, block: bytes) -> tuple[Field, ...]:
        self._has_changed = False
        self._varying_at = None
        fields: list[Field] = []
        position, end, room = 0, len(block), self._bytes_max
        resizes = 0
        while position < end:
            byte = block[position]
            position += 1
            if byte & 0x80:
                index = byte & 0x7F
                if index == 0x7F:
                    index, position = _long_integer(block, position, 0x7F)
                field = self._entry(index)
            elif byte & 0xE0 == 0x20:
                if fields:
                    raise _damaged("a table's size changes only where a header block begins")
                size, position = _integer(block, position - 1, 0x1F)
                resizes += 1
                if resizes > RESIZES_MAX:
                    raise _damaged("a table's size changes twice in a header block at the most")
                self._resize(size)
                continue
            else:
                mask = 0x3F if byte & 0x40 else 0x0F
                field, position = self._literal(block, position - 1, mask)
                if byte & 0x40:
                    self._add(field)
            fields.append(field)
            if len(fields) > FIELDS_MAX:
                raise ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, "too many headers")
            room -= len(field[0]) + len(field[1]) + FIELD_OVERHEAD_BYTES
            if room < 0:
                raise ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, "too many bytes of headers")
        return tuple(fields)

    def _literal(self, block: bytes, position: int, mask: int) -> tuple[Field, int]:
        index, position = _integer(block, position, mask)
        if index:
            name = self._entry(index)[0]
        else:
            name, position = _string(block, position)
        value, past = _string(block, position)
        if name == self._varying and self._varying_at is None:
            self._varying_at = position, past
        return (name, value), past

    # --- the table --------------------------------------------------------------------------------

    def _entry(self, index: int) -> Field:
        if 0 < index <= _STATIC_COUNT:
            return _STATIC[index - 1]
        behind = index - _STATIC_COUNT
        if not 0 < behind <= len(self._dynamic):
            raise _damaged("a header block refers to what is not in the table")
        return self._dynamic[-behind]

    def _add(self, field: Field) -> None:
        size = len(field[0]) + len(field[1]) + FIELD_OVERHEAD_BYTES
        if size > self._capacity and not self._dynamic:
            return  # a client without a table may ask all the same
        self._changes()
        self.kept_in_vain += field[0] == self._varying
        self._dynamic.append(field)
        self._dynamic_bytes += size
        self._evict()

    def _resize(self, size: int) -> None:
        if size > self.table_bytes_max:
            raise _damaged("a table larger than allowed")
        self._changes()
        self._capacity = size
        self._evict()

    def _evict(self) -> None:
        gone = 0
        while self._dynamic_bytes > self._capacity:
            name, value = self._dynamic[gone]
            self._dynamic_bytes -= len(name) + len(value) + FIELD_OVERHEAD_BYTES
            gone += 1
        del self._dynamic[:gone]

    def _changes(self) -> None:
        self._has_changed = True
        self._recognised.clear()
        self._patterns.clear()


def _damaged(reason: str) -> ConnectionFailed:
    return ConnectionFailed(ErrorCode.COMPRESSION_ERROR, reason)


def _integer(block: bytes, position: int, mask: int) -> tuple[int, int]:
    """Return the number whose first bits are at `position`, and where it ends."""
    number = block[position] & mask
    if number < mask:
        return number, position + 1
    return _long_integer(block, position + 1, mask)


def _long_integer(block: bytes, position: int, number: int) -> tuple[int, int]:
    shift = 0
    while True:
        byte = block[position]
        position += 1
        number += (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, position
        shift += 7
        if shift > _INTEGER_BITS_MAX:
            raise _damaged("a number with too many digits")


def _string(block: bytes, position: int) -> tuple[bytes, int]:
    is_huffman = block[position] & 0x80
    length, begin = _integer(block, position, 0x7F)
    end = begin + length
    if end > len(block):
        raise _damaged("a header block ends within a string")
    data = block[begin:end]
    return huffman_decoded(data) if is_huffman else data, end


# --- writing --------------------------------------------------------------------------------------

_STATIC_NAMES: Final = {
    name: number + 1 for number, (name, _) in reversed(list(enumerate(_STATIC)))
}
NO_TABLE: Final = b"\x20"
"""What a block begins with that says: from here on we use no table."""
STATUS_200: Final = b"\x88"
"""The one field that every answer of gRPC begins with."""


def literal(name: bytes, value: bytes) -> bytes:
    """Return a field as a literal that no table remembers."""
    index = _STATIC_NAMES.get(name)
    if index is None:
        return b"\0" + _sized(name) + _sized(value)
    return _number(index, 0x0F) + _sized(value)


def _sized(data: bytes) -> bytes:
    return _number(len(data), 0x7F) + data


def _number(number: int, mask: int) -> bytes:
    if number < mask:
        return bytes((number,))
    digits = bytearray((mask,))
    number -= mask
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
