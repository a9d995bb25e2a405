"""How to come into the cluster that `angarium up --secure` runs in this folder.

While it runs, it keeps a file of profiles in its folder, `.angarium/profiles.toml`, with one
profile: its nodes, the authority to believe, and who to be. A client that was told nothing about
TLS, by arguments, settings or environment, looks there. The file counts

- while the cluster runs, so that what is left of one that was killed misleads nobody,
- if it belongs to the user of this process, and nobody else can read it,
- for the addresses that it names, each of which is this machine's own, and for no other.

Nothing is said to a server that does not show a certificate of that very authority.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from angarium.client.addresses import parsed_address
from angarium.client.credential_files import login_named, tls_in
from angarium.errors import InvalidArgument
from angarium.security.tls import TlsOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from angarium.client.addresses import Address
    from angarium.client.login import LoginOptions

LOCAL_FOLDER: Final = Path(".angarium")
"""Where `angarium up` keeps a cluster unless told otherwise."""

LOCK_FILE: Final = "up.lock"
"""Locked by the `angarium up` that runs; the lock goes with that process, always."""

PROFILES_FILE: Final = "profiles.toml"
PROFILE: Final = "local"
"""What the one profile in it is called."""


class LocalAccess(NamedTuple):
    """Whom to believe, and who to be."""

    tls: TlsOptions
    login: LoginOptions


def local_access(
    servers: Iterable[tuple[str, int]], environment: Mapping[str, str] | None = None
) -> LocalAccess | None:
    """Return how to come into the cluster of this folder, if all of `servers` are its nodes.

    None if there is none, and wherever the environment says something about TLS itself. Raises
    `InvalidArgument` if the file is ours, and wrong.
    """
    path = LOCAL_FOLDER / PROFILES_FILE
    if not _is_private(path) or TlsOptions.from_environment(environment).is_on:
        return None
    if not is_locked(LOCAL_FOLDER):
        return None
    try:
        profile = tomllib.loads(path.read_text(encoding="utf-8"))["profiles"][PROFILE]
        named: set[Address] = {parsed_address(one) for one in profile["servers"]}
    except (OSError, ValueError, LookupError, TypeError, InvalidArgument):
        raise InvalidArgument(
            f"{path} has no profile {PROFILE!r}; `angarium up --stop`, and start it again"
        ) from None
    wanted = set(servers)
    if not wanted or not wanted <= {tuple(one) for one in named if _is_here(one.host)}:
        return None
    folder = LOCAL_FOLDER.absolute()  # the folder that a process works in may change
    return LocalAccess(
        tls_in(profile.get("tls"), f"{path}: tls", folder),
        login_named(profile.get("credentials"), f"{path}: credentials", folder),
    )


def is_locked(folder: Path) -> bool:
    """Tell whether an `angarium up` runs in a folder."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, so that those who only look are never in each other's way.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_private(path: Path) -> bool:
    """Tell whether a file is there, ours, and nobody else's to read or write."""
    try:
        told = path.stat()
    except OSError:
        return False
    return told.st_uid == os.geteuid() and not told.st_mode & 0o077


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
