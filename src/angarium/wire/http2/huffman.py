"""The Huffman code of HPACK (RFC 7541, appendix B), read a byte at a time.

The code is canonical: the lengths of its words say everything. A reader is in a state, a node of
the code's tree, and each byte leads from one state to the next and says some characters on the way.
Which ones is worked out the first time that a byte comes in a state, and remembered.
"""

from __future__ import annotations

from typing import Final

END_OF_STRING: Final = 256
"""Never sent whole; its first bits fill the last byte."""

PADDING_BITS_MAX: Final = 7

_SYMBOLS_OF_LENGTH: Final[dict[int, tuple[int, ...]]] = {
    5: (*b"012aceiost",),
    6: (*b" %-./3456789=A_bdfghlmnpru",),
    7: (*b":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz",),
    8: (*b"&*,;XZ",),
    10: (*b"!\"()?",),
    11: (*b"'+|",),
    12: (*b"#>",),
    13: (*b"\0$@[]~",),
    14: (*b"^}",),
    15: (*b"<`{",),
    19: (92, 195, 208),
    20: (128, 130, 131, 162, 184, 194, 224, 226),
    21: (153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230),
    22: (129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181, 185, 186,
         187, 189, 190, 196, 198, 228, 232, 233),
    23: (1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166,
         168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239),
    24: (9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237),
    25: (199, 207, 234, 235),
    26: (192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255),
    27: (203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250,
         251, 252, 253, 254),
    28: (2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28, 29,
         30, 31, 127, 220, 249),
    30: (10, 13, 22, END_OF_STRING),
}  # fmt: skip


class InvalidHuffman(ValueError):
    """Not what any encoder writes."""


def _tree() -> tuple[list[list[int]], list[bool]]:
    """Return where each bit leads from each node, and in which nodes a string may end.

    A number below zero is a leaf: the symbol, counted from -1 downwards.
    """
    children = [[0, 0]]
    may_end = [True]
    code = length_before = 0
    for length, symbols in _SYMBOLS_OF_LENGTH.items():
        code <<= length - length_before
        length_before = length
        for symbol in symbols:
            node = 0
            for shift in range(length - 1, 0, -1):
                bit = code >> shift & 1
                if children[node][bit] == 0:
                    children.append([0, 0])
                    # Only the first bits of END_OF_STRING, all ones, may be left over.
                    depth = length - shift
                    may_end.append(depth <= PADDING_BITS_MAX and code >> shift == (1 << depth) - 1)
                    children[node][bit] = len(children) - 1
                node = children[node][bit]
            children[node][code & 1] = -1 - symbol
            code += 1
    return children, may_end


_CHILDREN, _MAY_END = _tree()
_steps: dict[int, tuple[bytes, int]] = {}
"""What was worked out, by state and byte: what is said, and the next state. 65,536 at the most."""


def huffman_decoded(data: bytes) -> bytes:
    """Return the string that `data` stands for; raises `InvalidHuffman`."""
    state = 0
    said = []
    for byte in data:
        step = _steps.get(state << 8 | byte)
        if step is None:
            step = _steps[state << 8 | byte] = _worked_out(state, byte)
        some, state = step
        said.append(some)
    if not _MAY_END[state]:
        raise InvalidHuffman("the padding is not the beginning of the end of a string")
    return b"".join(said)


def _worked_out(state: int, byte: int) -> tuple[bytes, int]:
    said = bytearray()
    for shift in range(7, -1, -1):
        state = _CHILDREN[state][byte >> shift & 1]
        if state < 0:
            symbol = -1 - state
            if symbol == END_OF_STRING:
                raise InvalidHuffman("the end of a string is never sent")
            said.append(symbol)
            state = 0
    return bytes(said), state
