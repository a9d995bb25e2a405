"""`angarium profile list`"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from angarium.cli.grammar.words import Words

_MORE = """\
Profiles are kept in ~/.config/angarium/profiles.toml (or where ANGARIUM_PROFILES says):

    default = "local"

    [profiles.local]
    servers = ["127.0.0.1:7400", "127.0.0.1:7410", "127.0.0.1:7420"]

    [profiles.production]
    servers = ["node-1.example.org:7400", "node-2.example.org:7400"]
    format = "json"
    timeout = 30
    region = "eu"            # or "auto"
    credentials = "production.credentials"    # user and password, or token; chmod 600

    [profiles.production.tls]
    ca = "ca.crt"            # relative to profiles.toml; "system" for the system's authorities
    cert = "alice.crt"       # where nodes ask for a certificate
    key = "alice.key"
"""


def add(words: Words) -> None:
    """Add the words."""
    family = words.add_family("profile", "show the clusters known by name", more=_MORE)
    family.add("list", "list the profiles", run="profile:list_all", more=_MORE)
