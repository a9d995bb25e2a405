"""JWTs of one issuer: signed by its keys, meant for us, of now.

What decides about a JWT comes from the settings alone: which algorithms, whose keys, which
audience. Nothing that the JWT says of itself (`alg`, `kid`, `jku`, `jwk`) can widen that; it may
only choose among what is allowed.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

    from joserfc.jwk import Key

    from angarium.security.jwt_keys import IssuerKeys

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""All that may be allowed at all: signatures that only the issuer can make."""

JWT_CHARACTERS_MAX: Final = 16_000
"""A longer one is refused unread. It fits in a greeting of the wire."""

HEADER_CHARACTERS_MAX: Final = 2_048
NAME_CHARACTERS_MAX: Final = 256
ROLES_MAX: Final = 256
"""A JWT that claims more is refused."""

_FOREIGN_KEYS: Final = ("jku", "jwk", "x5u", "x5c")
"""Header fields that bring keys along, or say where to fetch some."""


class JwtRefused(Exception):
    """The JWT proves nothing here; the text says why, and quotes nothing of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings:
    """What makes a JWT a proof."""

    issuer: str
    """What `iss` has to be, letter by letter."""
    audience: str
    """What `aud` has to be or contain: other services' JWTs are not for us."""
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    """Which signatures count."""
    leeway_s: int = 60
    """How far the issuer's clock may be from ours."""
    name_claim: str = "sub"
    """Who somebody is; a path with dots for a claim inside another."""
    name_prefix: str = "jwt:"
    """Stands before the name, so that nobody becomes an account of this cluster by its name."""
    role_claim: str = "roles"
    """Which roles somebody has: a list of texts, or one text with spaces. A path with dots."""

    def __post_init__(self) -> None:
        if not self.issuer or not self.audience:
            raise ValueError("issuer and audience have to be given: any JWT would do otherwise")
        if not self.algorithms or not set(self.algorithms) <= set(ALGORITHMS):
            raise ValueError(f"algorithms: some of {', '.join(ALGORITHMS)}")
        if not 0 <= self.leeway_s <= 600:
            raise ValueError("leeway_s: from 0 to 600")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """What a JWT has proven."""

    name: str
    roles: frozenset[str]
    until_s: float
    """When it expires, by the wall clock, the leeway included."""
    key: str
    """The print of the key that has signed it."""


class JwtIssuer:
    """Checks the JWTs of one issuer."""

    def __init__(
        self,
        settings: IssuerSettings,
        keys: IssuerKeys,
        *,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.keys = keys
        self._wall_clock = wall_clock

    async def claims(self, text: str) -> Claimed:
        """Return what the JWT proves; raises `JwtRefused`."""
        kid = self._kid(text)
        key = await self.keys.find_fresh(kid)
        if key is None:
            raise JwtRefused("it is signed with a key that the issuer does not publish")
        return self._claimed(self._verified(text, key), key)

    def _kid(self, text: str) -> str | None:
        """Look at the header before any key is touched."""
        if len(text) > JWT_CHARACTERS_MAX or not text.isascii() or text.count(".") != 2:
            raise JwtRefused(f"it is no JWT of at most {JWT_CHARACTERS_MAX} characters")
        header = _json(text.partition(".")[0])
        if header.get("alg") not in self.settings.algorithms:
            raise JwtRefused("its algorithm is not allowed")
        if "crit" in header or "b64" in header:
            raise JwtRefused("it asks for extensions that are not known here")
        if any(name in header for name in _FOREIGN_KEYS):
            raise JwtRefused("it brings its own keys along")
        kid = header.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise JwtRefused("the name of its key is no text")
        return kid

    def _verified(self, text: str, key: Key) -> dict[str, Any]:
        from joserfc import jws  # noqa: PLC0415  (an extra, loaded where JWTs are used)
        from joserfc.errors import JoseError  # noqa: PLC0415

        try:
            signed = jws.deserialize_compact(text, key, algorithms=list(self.settings.algorithms))
        except (JoseError, ValueError, TypeError, RecursionError):
            raise JwtRefused("its signature is wrong") from None
        return _object(signed.payload, "its claims cannot be read")

    def _claimed(self, claims: dict[str, Any], key: Key) -> Claimed:
        settings, now = self.settings, self._wall_clock()
        if claims.get("iss") != settings.issuer:
            raise JwtRefused("it is of another issuer")
        audience = claims.get("aud")
        if settings.audience not in (audience if isinstance(audience, list) else [audience]):
            raise JwtRefused("it is meant for another audience")
        until = _seconds(claims.get("exp"))
        if until is None:
            raise JwtRefused("it never expires")
        if now >= until + settings.leeway_s:
            raise JwtRefused("it has expired")
        for name in ("nbf", "iat"):
            if name in claims:
                begins = _seconds(claims[name])
                if begins is None or begins > now + settings.leeway_s:
                    raise JwtRefused("it is not valid yet")
        return Claimed(
            name=settings.name_prefix + _name(_at(claims, settings.name_claim)),
            roles=_roles(_at(claims, settings.role_claim)),
            until_s=until + settings.leeway_s,
            key=key.thumbprint(),
        )


def _json(part: str) -> dict[str, Any]:
    if len(part) > HEADER_CHARACTERS_MAX:
        raise JwtRefused(f"its header is longer than {HEADER_CHARACTERS_MAX} characters")
    refusal = "its header cannot be read"
    try:
        octets = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise JwtRefused(refusal) from None
    return _object(octets, refusal)


def _object(octets: bytes, refusal: str) -> dict[str, Any]:
    """Return a JSON object that has one meaning alone; raises `JwtRefused`.

    Refused are names that come twice (another reader may take the other value), numbers that JSON
    does not have (`NaN`, `Infinity`), integers with more digits than Python reads, and what is
    nested too deeply to be read.
    """
    try:
        found = json.loads(octets.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise JwtRefused(refusal) from None
    if not isinstance(found, dict):
        raise JwtRefused(refusal)
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _at(claims: dict[str, Any], path: str) -> object:
    """Return the claim of that name, or inside others; a name with dots in it wins."""
    if path in claims:
        return claims[path]
    found: object = claims
    for name in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def _seconds(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # NaN compares with nothing, and neither it nor infinity is a time.
    return float(value) if 0 <= value < 1e11 else None


def _name(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= NAME_CHARACTERS_MAX:
        raise JwtRefused("it does not say who it stands for")
    if not value.isprintable():
        raise JwtRefused("the name that it stands for cannot be printed")
    return value


def _roles(value: object) -> frozenset[str]:
    # Only at spaces, as scopes are: other blanks of Unicode would make two roles of one name.
    listed = list(filter(None, value.split(" "))) if isinstance(value, str) else value
    if not isinstance(listed, list):
        return frozenset()
    # Not the first ones of them: one that is left out may forbid what another one allows.
    if len(listed) > ROLES_MAX:
        raise JwtRefused(f"it claims more than {ROLES_MAX} roles")
    return frozenset(
        one
        for one in listed
        if isinstance(one, str) and len(one) <= NAME_CHARACTERS_MAX and one.isprintable()
    )
