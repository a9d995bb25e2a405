"""Backups in an object store that speaks S3's API: AWS, MinIO, Ceph, R2, SeaweedFS and others.

An object is there whole or not at all, so a name is a name. Large ones go up in parts. Every
request has a time limit and is tried again a few times; what fails then raises `StorageError`.
Needs the extra `angarium[object-store]`.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    PreconditionError,
)
from obstore.store import S3Store

from angarium.backup.lease import leased
from angarium.backup.s3_settings import s3_settings
from angarium.errors import (
    AlreadyExists,
    AngariumError,
    InvalidArgument,
    NotFound,
    StorageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from obstore import UpdateVersion
    from obstore.store import ClientConfig, S3Config

    from angarium.backup.s3_settings import S3Settings

PART_BYTES: Final = 8 << 20
"""What is larger goes up in parts of this size. S3 asks for 5 MiB at least."""

PARTS_AT_ONCE: Final = 4

REQUEST_S: Final = 120
"""How long one request may take."""

RETRIES: Final = 8
RETRY_S: Final = 60
"""How often, and for how long, a request is tried again that the store was too busy for."""

TRIES: Final = 4
"""How often all of that is done: an answer may break off in the middle."""

PAUSE_S: Final = 1.0
"""Before the second time; four times as long before each next one. A store that is gone for 20
seconds is waited for."""

LISTED_AT_ONCE: Final = 1_000
DELETED_AT_ONCE: Final = 1_000
"""Names in one request; the store allows no more."""

SAID_CHARACTERS_MAX: Final = 300
"""Of what a store says about a failure."""

T = TypeVar("T")


class ObjectStore:
    """Implements `BackupStore` in a bucket, below a prefix."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        config: S3Config = {}
        if settings.endpoint is not None:
            # The variable of S3 alone would go before it otherwise.
            config["aws_endpoint_url_s3"] = settings.endpoint
        if settings.region is not None:
            config["region"] = settings.region
        if settings.access_key is not None and settings.secret_key is not None:
            config["access_key_id"] = settings.access_key
            config["secret_access_key"] = settings.secret_key
            if settings.session_token is not None:
                config["session_token"] = settings.session_token
        options: ClientConfig = {
            "allow_http": (settings.endpoint or "").startswith("http://"),
            "timeout": timedelta(seconds=REQUEST_S),
            "connect_timeout": timedelta(seconds=10),
        }
        if settings.authorities is not None:
            options["root_certificate"] = settings.authorities
        try:
            self._store = S3Store(
                settings.bucket,
                prefix=settings.prefix or None,
                config=config,
                client_options=options,
                retry_config={
                    "max_retries": RETRIES,
                    "retry_timeout": timedelta(seconds=RETRY_S),
                },
            )
        except (BaseError, ValueError) as error:
            raise InvalidArgument(f"{settings}: {self._said(error)}") from None

    @classmethod
    def at(cls, where: str) -> ObjectStore:
        """Return what `s3://BUCKET/PREFIX` names, as the environment says how to reach it."""
        return cls(s3_settings(where, os.environ, home=Path.home()))

    def __str__(self) -> str:
        return str(self._settings)

    def names(self, folder: str) -> list[str]:
        """Return the names below a folder, sorted; the store tells them page by page.

        Nothing of a backup is empty. SeaweedFS has an empty object where a request broke off before
        the first byte of its body: that one is not there, as half a file of a folder is not.
        """

        def listed() -> list[str]:
            pages = obstore.list(self._store, f"{folder}/", chunk_size=LISTED_AT_ONCE)
            return sorted(one["path"] for page in pages for one in page if one["size"])

        return self._done(listed, folder)

    def read(self, name: str) -> bytes:
        """Return the bytes of an object."""
        return self._done(lambda: self._found(name), name)[0]

    def write(self, name: str, data: bytes) -> None:
        """Put an object; one that is large in parts, of which nothing is seen before the last."""

        def put() -> None:
            obstore.put(
                self._store, name, data, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )

        self._done(put, name)

    def create(self, name: str, data: bytes) -> None:
        """Put an object on the condition that there is none of its name."""

        def put() -> None:
            try:
                obstore.put(self._store, name, data, mode="create", use_multipart=False)
            except NotImplementedError:
                # AWS_CONDITIONAL_PUT=disabled: the store has no conditions. Whoever comes second
                # still notices, unless both come at once.
                if not self._has(name):
                    obstore.put(self._store, name, data, mode="overwrite", use_multipart=False)

        with suppress(AlreadyExists):  # looked at below
            self._done(put, name)
        # An attempt whose answer was lost finds what it has made itself.
        found, tag = self._done(lambda: self._found(name), name)
        if not found:
            self._done(lambda: self._replace(name, data, tag), name)
        elif found != data:
            raise AlreadyExists(f"{self}/{name} is there already")

    def delete(self, *names: str) -> None:
        """Delete objects, many with one request."""
        for at in range(0, len(names), DELETED_AT_ONCE):
            some = list(names[at : at + DELETED_AT_ONCE])
            self._done(lambda some=some: obstore.delete(self._store, some), some[0])  # type: ignore[misc]

    def locked(self) -> AbstractContextManager[None]:
        """Keep other writers out by an object that is changed as long as somebody writes."""
        return leased(self)

    def _found(self, name: str) -> tuple[bytes, str | None]:
        """Return an object and what tells this version of it from others."""
        answer = obstore.get(self._store, name)
        return bytes(answer.bytes()), answer.meta["e_tag"]

    def _replace(self, name: str, data: bytes, tag: str | None) -> None:
        """Put an object in the place of this version."""
        try:
            version: UpdateVersion = {"e_tag": tag}
            obstore.put(self._store, name, data, mode=version, use_multipart=False)
        except NotImplementedError:
            obstore.put(self._store, name, data, mode="overwrite", use_multipart=False)

    def _has(self, name: str) -> bool:
        try:
            obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        return True

    def _done(self, work: Callable[[], T], name: str) -> T:
        """Do what may be done twice, a few times if need be."""
        for attempt in range(TRIES):
            try:
                return work()
            except FileNotFoundError as error:
                raise self._missing(error, name) from None
            except (AlreadyExistsError, PreconditionError):
                raise AlreadyExists(f"{self}/{name} is there already") from None
            except GenericError as error:
                if "<Code>NoSuchBucket<" in str(error):  # as a list says it
                    raise self._missing(error, name) from None
                if attempt + 1 == TRIES:
                    raise self._failed(error, name) from None
            except (BaseError, OSError) as error:
                raise self._failed(error, name) from None
            time.sleep(PAUSE_S * 4**attempt)
        raise AssertionError("the last attempt has raised")

    def _missing(self, error: Exception, name: str) -> AngariumError:
        if "NoSuchBucket" in str(error):
            return NotFound(f"there is no bucket {self._settings.bucket!r}: make it first")
        return NotFound(f"{self}/{name} is not there")

    def _failed(self, error: Exception, name: str) -> StorageError:
        said = self._said(error)
        if "169.254.169.254" in said:  # where a machine of AWS is told who it is
            said = (
                "nobody says who you are there: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or"
                " AWS_PROFILE"
            )
        return StorageError(f"{self}/{name}: {said}")

    def _said(self, error: Exception) -> str:
        """Return what went wrong in a line, without anything that was to be kept secret."""
        text, _, _ = str(error).partition("\n\nDebug source")
        head, xml, _ = text.partition("<?xml")
        found = [re.search(f"<{one}>([^<]*)</{one}>", text) for one in ("Code", "Message")]
        told = ": ".join(one[1] for one in found if one)
        text = " ".join(f"{head if xml else text} {told if xml else ''}".split())
        for hidden in (
            self._settings.secret_key,
            self._settings.session_token,
            self._settings.access_key,
        ):
            text = text.replace(hidden, "…") if hidden else text
        return text[:SAID_CHARACTERS_MAX]
