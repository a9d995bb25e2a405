"""How an object store is reached, as the environment and profiles say it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from angarium.backup import s3_settings as module
from angarium.backup.s3_settings import S3Settings, s3_settings
from angarium.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = Path("/home/alice")
KEYS = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "secret-1"}
PROFILES = {
    (HOME / ".aws/config", "default"): {"region": "eu-west-1"},
    (HOME / ".aws/credentials", "default"): {
        "aws_access_key_id": "AKIA2",
        "aws_secret_access_key": "secret-2",
    },
    (HOME / ".aws/config", "profile minio"): {"endpoint_url": "http://minio:9000"},
    (HOME / ".aws/credentials", "minio"): {
        "aws_access_key_id": "AKIA3",
        "aws_secret_access_key": "secret-3",
        "aws_session_token": "token-3",
    },
    (Path("/etc/keys"), "default"): {
        "aws_access_key_id": "AKIA4",
        "aws_secret_access_key": "secret-4",
    },
}


@pytest.fixture(autouse=True)
def profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def section(file: Path, name: str) -> dict[str, str]:
        return PROFILES.get((file, name), {})

    monkeypatch.setattr(module, "_section", section)


def _settings(environment: Mapping[str, str], where: str = "s3://b/p") -> S3Settings:
    return s3_settings(where, environment, home=HOME)


@pytest.mark.parametrize(
    ("environment", "keys"),
    [
        ({}, ("AKIA2", "secret-2", None)),
        (KEYS, ("AKIA1", "secret-1", None)),
        ({**KEYS, "AWS_SESSION_TOKEN": "token-1"}, ("AKIA1", "secret-1", "token-1")),
        ({"AWS_PROFILE": "minio"}, ("AKIA3", "secret-3", "token-3")),
        ({**KEYS, "AWS_PROFILE": "minio"}, ("AKIA1", "secret-1", None)),
        ({"AWS_SHARED_CREDENTIALS_FILE": "/etc/keys"}, ("AKIA4", "secret-4", None)),
        ({"AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}, (None, None, None)),
    ],
)
def test_who_one_is_comes_from_one_place(
    environment: dict[str, str], keys: tuple[str | None, ...]
) -> None:
    found = _settings(environment)
    assert (found.access_key, found.secret_key, found.session_token) == keys
    assert not any(key in f"{found!r} {found}" for key in keys if key)


@pytest.mark.parametrize(
    ("environment", "endpoint", "region"),
    [
        ({}, None, "eu-west-1"),
        ({"AWS_REGION": "auto", "AWS_DEFAULT_REGION": "x"}, None, "auto"),
        ({"AWS_DEFAULT_REGION": "x"}, None, "x"),
        ({"AWS_PROFILE": "minio"}, "http://minio:9000", None),
        ({"AWS_ENDPOINT_URL": "https://r2.example"}, "https://r2.example", "eu-west-1"),
        (
            {"AWS_ENDPOINT_URL": "https://all", "AWS_ENDPOINT_URL_S3": "https://s3"},
            "https://s3",
            "eu-west-1",
        ),
    ],
)
def test_where_the_store_is(
    environment: dict[str, str], endpoint: str | None, region: str | None
) -> None:
    found = _settings(environment)
    assert (found.endpoint, found.region) == (endpoint, region)


@pytest.mark.parametrize(
    ("where", "bucket", "prefix"),
    [("s3://b", "b", ""), ("s3://b/", "b", ""), ("s3://b/p/q/", "b", "p/q")],
)
def test_a_bucket_and_what_lies_before_every_name(where: str, bucket: str, prefix: str) -> None:
    found = _settings(KEYS, where)
    assert (found.bucket, found.prefix, str(found)) == (bucket, prefix, where.rstrip("/"))


@pytest.mark.parametrize(
    "where",
    [
        *("s3://", "s3:///p", "s3://b/p//q", "s3://b/../q", "s3://AKIA:hush@b/p"),
        *("s3://b/p?secret=hush", "s3://b/p#hush"),
    ],
)
def test_a_place_that_is_none_is_refused_and_no_secret_repeated(where: str) -> None:
    with pytest.raises(InvalidArgument, match="s3://BUCKET/PREFIX") as raised:
        _settings(KEYS, where)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"AWS_ACCESS_KEY_ID": "AKIA1"}, "only one is set"),
        ({"AWS_PROFILE": "nobody"}, "'nobody'"),
        ({"AWS_ENDPOINT_URL": "minio:9000"}, "https://HOST"),
        ({"AWS_ENDPOINT_URL": "https://a:hush@minio"}, "https://HOST"),
    ],
)
def test_what_cannot_be_meant_is_said(environment: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said) as raised:
        _settings(environment)
    assert "hush" not in str(raised.value)
