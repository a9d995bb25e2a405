"""Which user a client's certificate stands for: the one that a named field of it names.

The field is one kind of subject alternative name, chosen in the settings; what stands behind a
fixed prefix is the user's name, letter by letter. There are no patterns, no other spelling of the
same name, and the common name does not count. A certificate that leaves any doubt names nobody:
two names that would do, a character that is not plain ASCII, the name of a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from angarium.security.tls import Certificate

Field: TypeAlias = Literal["uri", "dns", "email"]

NAME_CHARACTERS_MAX: Final = 128
"""No user has a longer name."""

_BOUNDARIES: Final = ("/", ":")
"""Where a prefix of a URI may end: `//shop` is also how `//shop.example.org` begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateUsers:
    """Finds the user in a certificate that was verified."""

    field: Field
    prefix: str = ""
    """What stands before the user's name; empty: the name is all there is."""

    def __post_init__(self) -> None:
        if not self.prefix.isascii() or not self.prefix.isprintable() or " " in self.prefix:
            raise ValueError("prefix: plain characters without blanks")
        if self.field == "uri" and self.prefix and not self.prefix.endswith(_BOUNDARIES):
            raise ValueError("prefix: that of a URI ends with / or :, where a name can begin")
        if self.prefix[-1:].isalnum():
            # With `team-a` the name `team-ab` would be that of a user `b`.
            raise ValueError("prefix: it ends where a name can begin, with no letter or digit")

    def user_in(self, shown: Certificate) -> str | None:
        """Return the name of the user; None if the certificate names nobody, or more than one."""
        if shown.is_of_nodes:
            return None
        found = [one for one in self._names(shown) if one.startswith(self.prefix)]
        if len(found) != 1:
            return None
        name = found[0].removeprefix(self.prefix)
        is_plain = name.isascii() and name.isprintable() and " " not in name
        return name if is_plain and 0 < len(name) <= NAME_CHARACTERS_MAX else None

    def _names(self, shown: Certificate) -> tuple[str, ...]:
        match self.field:
            case "uri":
                return shown.uris
            case "dns":
                return shown.dns_names
            case "email":
                return shown.emails
