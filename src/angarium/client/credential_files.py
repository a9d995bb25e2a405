"""What profiles name besides addresses: a file with credentials, and a table about TLS.

Secrets lie in a file of their own that only its owner can read, and no complaint about such a file
quotes any of it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from angarium.client.login import NO_LOGIN, LoginOptions
from angarium.errors import InvalidArgument
from angarium.security.secret import Secret
from angarium.security.tls import TlsOptions
from angarium.security.tls.client import SYSTEM, VARIABLES

EXAMPLE: Final = "production.credentials"
"""A name for such a file, for complaints; it lies beside the profiles."""

NO_TLS: Final = TlsOptions()

_NAMES: Final = frozenset({"user", "password", "token"})
_PATHS: Final = ("ca", "cert", "key")


def login_named(written: object, where: str, folder: Path) -> LoginOptions:
    """Return the login in the file that a profile names; raises `InvalidArgument`.

    A relative path starts from `folder`. Nobody else may be able to read the file.
    """
    if written is None:
        return NO_LOGIN
    if not isinstance(written, str) or not written:
        raise InvalidArgument(f"{where}: {written!r} is no file; write {EXAMPLE!r}")
    path = folder / Path(written).expanduser()
    try:
        if path.stat().st_mode & 0o077:
            raise InvalidArgument(f"{path} can be read by others than its owner: chmod 600 {path}")
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidArgument(f"{where}: {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        # Not what is wrong with it: the line may be the secret.
        raise InvalidArgument(f"{path} is no TOML with user and password, or token") from None
    fields = {name: one for name, one in content.items() if isinstance(one, str)}
    if fields != content or fields.keys() - _NAMES:
        raise InvalidArgument(f"{path}: only user, password and token exist, and each is a text")
    found = LoginOptions(
        user=fields.get("user", ""),
        password=Secret(fields.get("password", "")),
        token=Secret(fields.get("token", "")),
    )
    try:
        found.login()
    except InvalidArgument as error:
        raise InvalidArgument(f"{path}: {error}") from None
    return found


def tls_in(written: object, where: str, folder: Path) -> TlsOptions:
    """Return what a profile says about TLS; raises `InvalidArgument`.

    Relative paths start from `folder`.
    """
    if written is None:
        return NO_TLS
    given = written if isinstance(written, dict) else {"": written}
    fields = {name: one for name, one in given.items() if isinstance(one, str)}
    if fields != given or any(name not in VARIABLES for name in fields):
        raise InvalidArgument(f"{where}: only {', '.join(VARIABLES)} exist, and each is a text")
    for name in _PATHS:
        if fields.get(name) and fields[name] != SYSTEM:
            fields[name] = str(folder / Path(fields[name]).expanduser())
    try:
        return TlsOptions(**fields)
    except InvalidArgument as error:
        raise InvalidArgument(f"{where}: {error}") from None
