"""Messages written by hand, as protobuf writes them, where many of a kind differ in little.

Fields of a message may come in any order, and a message may be put together from parts.
"""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Return a number that is not negative: seven bits a byte."""
    if number < 0x80:
        return _DIGITS[number]
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def number_tag(field: int) -> bytes:
    """Return what stands before the number of a field."""
    return varint(field << 3)


def bytes_tag(field: int) -> bytes:
    """Return what stands before the length of a field that has one: text, bytes, a message."""
    return varint(field << 3 | 2)


_DIGITS = [bytes((one,)) for one in range(0x80)]
