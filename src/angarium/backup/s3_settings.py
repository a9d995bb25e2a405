"""How an object store is reached: what the usual environment variables and profile files say.

Nothing of it is ever an argument of a command, and no secret is in what anything here prints.
"""

from __future__ import annotations

from configparser import ConfigParser
from configparser import Error as ConfigError
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGIONS: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_KEY: Final = "AWS_ACCESS_KEY_ID"
_SECRET: Final = "AWS_SECRET_ACCESS_KEY"  # noqa: S105 - a name


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """Where a bucket is, and who one is there."""

    bucket: str
    prefix: str
    """Without a `/` at either end; may be empty."""
    endpoint: str | None = None
    """None: AWS, in `region`."""
    region: str | None = None
    access_key: str | None = field(default=None, repr=False)
    """None, as the two below: whatever else the environment offers, a role of the machine's."""
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    authorities: bytes | None = field(default=None, repr=False)
    """Certificates to trust besides the usual ones, as PEM."""

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def s3_settings(where: str, environment: Mapping[str, str], *, home: Path) -> S3Settings:
    """Return how to reach what `s3://BUCKET/PREFIX` names; raises `InvalidArgument`."""
    parts = urlsplit(where)
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Not repeated: somebody may have put a secret into it.
        raise InvalidArgument(
            "an object store is named s3://BUCKET/PREFIX; who you are there is said by"
            f" {_KEY} and {_SECRET}, or by a profile"
        )
    prefix = parts.path.strip("/")
    if not parts.netloc or "//" in prefix or {".", ".."} & set(prefix.split("/")):
        raise InvalidArgument(f"{where!r}: an object store is named s3://BUCKET/PREFIX")
    profile = _profile(environment, home)
    endpoint = _first(environment, _ENDPOINTS) or profile.get("endpoint_url")
    if endpoint is not None:
        _check_endpoint(endpoint)
    keys = _keys(environment, profile)
    bundle = environment.get("AWS_CA_BUNDLE")
    return S3Settings(
        bucket=parts.netloc,
        prefix=prefix,
        endpoint=endpoint,
        region=_first(environment, _REGIONS) or profile.get("region"),
        access_key=keys[0],
        secret_key=keys[1],
        session_token=keys[2],
        authorities=Path(bundle).read_bytes() if bundle else None,
    )


def _keys(
    environment: Mapping[str, str], profile: Mapping[str, str]
) -> tuple[str | None, str | None, str | None]:
    """Return key, secret and session token, all from one place: the environment goes first."""
    found = environment.get(_KEY), environment.get(_SECRET)
    if any(found):
        if not all(found):
            raise InvalidArgument(f"of {_KEY} and {_SECRET} only one is set")
        return *found, environment.get("AWS_SESSION_TOKEN")
    return (
        profile.get("aws_access_key_id"),
        profile.get("aws_secret_access_key"),
        profile.get("aws_session_token"),
    )


def _profile(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return what the two files say of the profile that is chosen, credentials last."""
    name = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE")
    config = Path(environment.get("AWS_CONFIG_FILE") or home / ".aws" / "config")
    secrets = Path(environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws" / "credentials")
    wanted = name or "default"
    sections = [
        _section(config, wanted if wanted == "default" else f"profile {wanted}"),
        _section(secrets, wanted),
    ]
    if name is not None and not any(sections):
        raise InvalidArgument(f"neither {config} nor {secrets} has the profile {name!r}")
    return {key: value for section in sections for key, value in section.items()}


def _section(file: Path, name: str) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, default_section="")
    try:
        # Names in lower case, as they are asked for.
        parser.read(file, encoding="utf-8")
    except (ConfigError, UnicodeDecodeError) as error:
        # Its message repeats the line, which may be a secret.
        raise InvalidArgument(f"{file} cannot be read: {type(error).__name__}") from None
    return dict(parser[name]) if parser.has_section(name) else {}


def _check_endpoint(endpoint: str) -> None:
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise InvalidArgument(
            f"{_ENDPOINTS[1]} says where an object store is: https://HOST or https://HOST:PORT"
        )


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environment[one] for one in names if environment.get(one)), None)
