"""Where to connect and how to print: a flag wins over the environment, that over the profile.

Where none of them says anything, the cluster that `angarium up` runs in this folder is meant.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.addresses import Address, parse_addresses
from angarium.cli.complaints import Refusal
from angarium.cli.local.folder import Folder
from angarium.client.credential_files import EXAMPLE, NO_TLS, login_named, tls_in
from angarium.client.local_access import LOCAL_FOLDER, LocalAccess, local_access
from angarium.client.login import NO_LOGIN, LoginOptions, has_login
from angarium.client.region import REGION_VARIABLE, region_in
from angarium.errors import InvalidArgument
from angarium.security.tls import TlsOptions

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

LOCAL_SERVERS: Final = tuple(Address("127.0.0.1", port) for port in (7400, 7410, 7420))
"""Where `angarium up` puts its nodes unless told otherwise; any one that is alive will do."""

TIMEOUT_SECONDS: Final = 10.0

FORMATS: Final = ("table", "json", "raw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a command that talks to a cluster needs to know."""

    servers: tuple[Address, ...] = LOCAL_SERVERS
    are_guessed: bool = False
    """Whether nobody said where to connect, and no cluster runs in this folder."""
    format: str = "table"
    timeout_s: float = TIMEOUT_SECONDS
    tls: TlsOptions = NO_TLS
    region: str = ""
    """Where this command is run; see `ClientSettings.region`."""

    @property
    def is_json(self) -> bool:
        """Tell whether a program reads what is printed."""
        return self.format == "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A cluster by name; None where the profile leaves something open."""

    servers: tuple[Address, ...] | None = None
    format: str | None = None
    timeout_s: float | None = None
    tls: TlsOptions = NO_TLS
    login: LoginOptions = NO_LOGIN
    region: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The content of profiles.toml."""

    path: Path
    default: str | None
    by_name: Mapping[str, Profile]


def choices(options: Namespace, environment: Mapping[str, str] = os.environ) -> Choices:
    """Return what flags, environment and profile together say.

    What a profile says of TLS goes into the environment as well: clients, Spark's processes and
    whatever else a command starts look for it there.
    """
    known = read_profiles(environment)
    given = vars(options)
    chosen = given.get("profile") or environment.get("ANGARIUM_PROFILE")
    name = chosen or known.default
    profile = Profile()
    if name is not None:
        if name not in known.by_name:
            there = ", ".join(known.by_name) or "none"
            raise Refusal(f"there is no profile {name!r} in {known.path}; there are: {there}")
        profile = known.by_name[name]
    servers = (
        _servers(given.get("servers"), "--servers")
        or _servers(environment.get("ANGARIUM_SERVERS"), "ANGARIUM_SERVERS")
        or profile.servers
        or _running_here()
    )
    access = LocalAccess(profile.tls, profile.login)
    if chosen is None and not set(servers or ()) <= set(profile.servers or servers or ()):
        # Nobody asked for this profile, and it names other servers: they get no secret of it.
        access = access._replace(login=NO_LOGIN)
    if access == (NO_TLS, NO_LOGIN):
        access = local_access(servers or LOCAL_SERVERS, environment) or access
    tls = TlsOptions.from_environment(environment)
    if not tls.is_on and access.tls.is_on:
        tls = access.tls
        if environment is os.environ:
            os.environ.update(tls.as_environment())
    if access.login != NO_LOGIN and environment is os.environ and not has_login(environment):
        # For every client of this process, pipelines' and Spark's as well; nobody else sees it.
        os.environ.update(access.login.as_environment())
    region = given.get("region") or region_in(environment) or profile.region or ""
    if region and environment is os.environ:
        os.environ[REGION_VARIABLE] = region
    return Choices(
        region=region,
        servers=servers or LOCAL_SERVERS,
        are_guessed=servers is None,
        format=given.get("format")
        or _format(environment.get("ANGARIUM_FORMAT"), "ANGARIUM_FORMAT")
        or profile.format
        or "table",
        timeout_s=given.get("timeout") or profile.timeout_s or TIMEOUT_SECONDS,
        tls=tls,
    )


def profiles_path(environment: Mapping[str, str]) -> Path:
    """Return where the profiles are kept."""
    if named := environment.get("ANGARIUM_PROFILES"):
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home) / "angarium" / "profiles.toml"


def read_profiles(environment: Mapping[str, str]) -> Profiles:
    """Return the profiles; none where there is no such file. Raises `Refusal` for a wrong one."""
    path = profiles_path(environment)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Profiles(path=path, default=None, by_name={})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refusal(f"{path}: {error}") from error
    written = document.pop("profiles", {})
    default = document.pop("default", None)
    if document or not isinstance(written, dict) or not isinstance(default, str | None):
        strange = ", ".join(document) or "profiles or default"
        raise Refusal(f'{path}: {strange}: only default = "NAME" and [profiles.NAME] are allowed')
    return Profiles(
        path=path,
        default=default,
        by_name={
            name: _profile(content, f"{path}: {name}", path.parent)
            for name, content in written.items()
        },
    )


def _running_here() -> tuple[Address, ...] | None:
    """Return where the cluster listens that `angarium up` runs in this folder, if one does."""
    folder = Folder(LOCAL_FOLDER)
    state = folder.read_state()
    if state is None or not folder.is_locked():
        return None
    return tuple(node.wire for node in state.nodes)


def _profile(content: object, where: str, folder: Path) -> Profile:
    fields = dict(content) if isinstance(content, dict) else {"": content}
    servers, style, timeout = (fields.pop(name, None) for name in ("servers", "format", "timeout"))
    tls, credentials = fields.pop("tls", None), fields.pop("credentials", None)
    region = fields.pop("region", None)
    if any(name in fields for name in ("user", "password", "token")):
        raise Refusal(f"{where}: secrets lie in a file of their own: credentials = {EXAMPLE!r}")
    if fields:
        known = "servers, format, timeout, region, tls and credentials"
        raise Refusal(f"{where}: {', '.join(fields)}: only {known} exist")
    if not isinstance(timeout, int | float | None) or (timeout is not None and timeout <= 0):
        raise Refusal(f"{where}: timeout: {timeout!r} is not a number of seconds")
    if not isinstance(region, str | None):
        raise Refusal(f"{where}: region: {region!r} is not the name of a region")
    if isinstance(servers, list) and all(isinstance(one, str) for one in servers):
        servers = ",".join(servers)
    return Profile(
        servers=_servers(servers, f"{where}: servers"),
        format=_format(style, f"{where}: format"),
        timeout_s=timeout,
        region=region,
        tls=_tls(tls, f"{where}: tls", folder),
        login=_login(credentials, f"{where}: credentials", folder),
    )


def _login(written: object, where: str, folder: Path) -> LoginOptions:
    try:
        return login_named(written, where, folder)
    except InvalidArgument as error:
        raise Refusal(str(error)) from None


def _tls(written: object, where: str, folder: Path) -> TlsOptions:
    try:
        return tls_in(written, where, folder)
    except InvalidArgument as error:
        raise Refusal(str(error)) from None


def _servers(written: object, where: str) -> tuple[Address, ...] | None:
    if written is None:
        return None
    try:
        if isinstance(written, str):
            return parse_addresses(written)
    except ValueError as error:
        raise Refusal(f"{where}: {error}") from None
    raise Refusal(f'{where}: {written!r} is not a list of addresses; write ["127.0.0.1:7400"]')


def _format(written: object, where: str) -> str | None:
    if isinstance(written, str | None) and (written is None or written in FORMATS):
        return written
    raise Refusal(f"{where}: {written!r} is not one of {', '.join(FORMATS)}")
