"""What a caller brings as proof, as doors read it: `Authorization: Basic …` or `Bearer …`."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final, TypeAlias

from angarium.errors import Unauthenticated
from angarium.security.secret import Secret

AUTHORIZATION_CHARACTERS_MAX: Final = 16_100
"""A longer header is refused unread; the longest JWT fits."""

MISSING: Final = (
    "this cluster wants to know who asks: give a token, or a name and a password"
    " (ANGARIUM_TOKEN, or ANGARIUM_USER and ANGARIUM_PASSWORD)"
)
"""What everybody is told who brings nothing."""


@dataclass(frozen=True, slots=True)
class Password:
    """A name and a password."""

    name: str
    password: Secret


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token of this cluster, or a JWT."""

    text: Secret


Credentials: TypeAlias = Password | Bearer


def credentials_in(header: str) -> Credentials:
    """Return what an `Authorization` header brings; `Unauthenticated` if it makes no sense.

    The error quotes nothing of it.
    """
    if len(header) > AUTHORIZATION_CHARACTERS_MAX:
        raise Unauthenticated(
            f"the credentials are longer than {AUTHORIZATION_CHARACTERS_MAX} characters"
        )
    scheme, _, rest = header.strip().partition(" ")
    rest = rest.strip()
    match scheme.lower():
        case "bearer" if rest and rest.isascii() and rest.isprintable() and " " not in rest:
            return Bearer(Secret(rest))
        case "basic":
            return _basic(rest)
        case _:
            raise Unauthenticated(_WAYS)


def authorization_of(
    *, token: str | None = None, user: str | None = None, password: str | None = None
) -> str:
    """Return the header that says the same; `Unauthenticated` if that is nobody."""
    if token is not None and user is None and password is None:
        return f"Bearer {token}"
    if token is None and user is not None and password is not None:
        octets = f"{user}:{password}".encode(errors="replace")
        return f"Basic {base64.b64encode(octets).decode()}"
    raise Unauthenticated("say who you are with `token`, or with `user` and `password`")


def _basic(rest: str) -> Password:
    try:
        name, colon, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise Unauthenticated("the Basic credentials are no base64 of NAME:PASSWORD") from None
    if not colon or not name:
        raise Unauthenticated("the Basic credentials are no base64 of NAME:PASSWORD")
    return Password(name, Secret(password))


_WAYS: Final = "send `Authorization: Bearer TOKEN`, or `Basic` with a name and a password"
