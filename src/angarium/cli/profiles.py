"""Where to connect and how to print: a flag wins over the environment, that over the profile.

Where none of them says anything, the cluster that `angarium up` runs in this folder is meant.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from angarium.app.addresses import Address, parse_addresses
from angarium.cli.complaints import Refusal
from angarium.cli.local.folder import Folder
from angarium.errors import InvalidArgument
from angarium.security.tls import TlsOptions
from angarium.security.tls.client import SYSTEM, VARIABLES

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

LOCAL_SERVERS: Final = tuple(Address("127.0.0.1", port) for port in (7400, 7410, 7420))
"""Where `angarium up` puts its nodes unless told otherwise; any one that is alive will do."""

LOCAL_FOLDER: Final = Path(".angarium")
"""Where `angarium up` keeps a cluster unless told otherwise."""

TIMEOUT_SECONDS: Final = 10.0

FORMATS: Final = ("table", "json", "raw")

NO_TLS: Final = TlsOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a command that talks to a cluster needs to know."""

    servers: tuple[Address, ...] = LOCAL_SERVERS
    are_guessed: bool = False
    """Whether nobody said where to connect, and no cluster runs in this folder."""
    format: str = "table"
    timeout_s: float = TIMEOUT_SECONDS
    tls: TlsOptions = NO_TLS

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
    name = given.get("profile") or environment.get("ANGARIUM_PROFILE") or known.default
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
    tls = TlsOptions.from_environment(environment)
    if not tls.is_on and profile.tls.is_on:
        tls = profile.tls
        if environment is os.environ:
            os.environ.update(tls.as_environment())
    return Choices(
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
    tls = fields.pop("tls", None)
    if fields:
        raise Refusal(f"{where}: {', '.join(fields)}: only servers, format, timeout and tls exist")
    if not isinstance(timeout, int | float | None) or (timeout is not None and timeout <= 0):
        raise Refusal(f"{where}: timeout: {timeout!r} is not a number of seconds")
    if isinstance(servers, list) and all(isinstance(one, str) for one in servers):
        servers = ",".join(servers)
    return Profile(
        servers=_servers(servers, f"{where}: servers"),
        format=_format(style, f"{where}: format"),
        timeout_s=timeout,
        tls=_tls(tls, f"{where}: tls", folder),
    )


def _tls(written: object, where: str, folder: Path) -> TlsOptions:
    """Return the table of a profile; relative paths start from the folder of the profiles."""
    if written is None:
        return NO_TLS
    given = written if isinstance(written, dict) else {"": written}
    fields = {name: one for name, one in given.items() if isinstance(one, str)}
    if fields != given or any(name not in VARIABLES for name in fields):
        raise Refusal(f"{where}: only {', '.join(VARIABLES)} exist, and each is a text")
    for name in ("ca", "cert", "key"):
        if fields.get(name) and fields[name] != SYSTEM:
            fields[name] = str(folder / Path(fields[name]).expanduser())
    try:
        return TlsOptions(**fields)
    except InvalidArgument as error:
        raise Refusal(f"{where}: {error}") from None


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
