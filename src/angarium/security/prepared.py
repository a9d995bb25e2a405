"""Names and passwords as SCRAM compares them: SASLprep (RFC 4013) over the standard tables.

Two people who type the same characters, on two keyboards that encode them differently, mean the
same password. Both sides of an exchange prepare before they compute.
"""

from __future__ import annotations

import stringprep
import unicodedata
from typing import Final

_PROHIBITED: Final = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def prepared(text: str) -> str:
    """Return `text` as it is compared; `ValueError` if it has characters that cannot be.

    The error does not quote the text: it may be a password.
    """
    if text.isascii() and text.isprintable():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(one) else one
        for one in text
        if not stringprep.in_table_b1(one)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    if any(is_prohibited(one) for one in normal for is_prohibited in _PROHIBITED):
        raise ValueError("has a character that no password or name may have")
    _check_direction(normal)
    return normal


def _check_direction(text: str) -> None:
    """Raise `ValueError` for text that runs both ways (RFC 3454, section 6)."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    if any(map(stringprep.in_table_d2, text)):
        raise ValueError("mixes letters that are written from the left and from the right")
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ValueError("is written from the right, and so has to begin and end that way")
