"""The options of a write, checked as those of a read are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from angarium.batch import Codec
from angarium.client.login import NO_LOGIN, LoginOptions
from angarium.errors import InvalidArgument
from angarium.spark.options import (
    LOGIN_NAMES,
    TLS_NAMES,
    Given,
    login_in,
    region_option,
    servers_in,
    tls_in,
)
from angarium.spark.values.options import WRITE_NAMES, ValueOptions, value_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from angarium.security.tls import TlsOptions

BOTH: Final = (
    "servers",
    "region",
    *TLS_NAMES,
    *LOGIN_NAMES,
    "path",
    "topic",
    "createTopic",
    "compression",
    "checkRepeats",
    *WRITE_NAMES,
)
BATCH_ONLY: Final = ("writeId", "writeVersion", "writeOf")
SPARKS_OWN: Final = ("checkpointLocation", "queryName", "outputMode")
"""What Spark hands on to the sink of a stream although it is meant for itself."""

_CODECS: Final = {"none": Codec.NONE, "lz4": Codec.LZ4, "zstd": Codec.ZSTD}
VERSION_MAX: Final = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a write was asked for."""

    servers: tuple[str, ...]
    tls: TlsOptions
    login: LoginOptions = NO_LOGIN
    region: str = ""
    """Where the executors are; see `ClientSettings.region`."""
    topic: str | None
    """Goes before a column of that name; None: the column says it."""
    codec: Codec
    write_id: str | None = None
    write_version: int = 0
    write_of: str | None = None
    """What the rows were made from: with it a repetition may come out as other rows."""
    check_repeats: bool = True
    """Whether what comes again under its number has to be the same."""
    creates_topic: bool = False
    """Whether a topic that is not there is made."""
    checkpoint: str | None = None
    """A stream's, as far as Spark says where that is."""
    values: ValueOptions | None = None
    """How a column of structs becomes values; None: they are bytes or text already."""


def write_options(given: Mapping[str, str], *, is_stream: bool) -> WriteOptions:
    """Return the options of a batch write or of a stream's sink; names what is wrong."""
    options = Given(
        given,
        known=BOTH + (SPARKS_OWN if is_stream else BATCH_ONLY),
        elsewhere=BATCH_ONLY if is_stream else (),
        kind="stream's sink" if is_stream else "batch write",
    )
    which = options.alone("topic", "path")
    topic = None if which is None else options[which].strip()
    if which is not None and topic is not None and (not topic or "," in topic):
        raise InvalidArgument(f"option {which}: {options[which]!r} is not one topic")
    for name in ("writeVersion", "writeOf"):
        if name in options and "writeId" not in options:
            raise InvalidArgument(f"option {name} means nothing without writeId")
    write_id = options["writeId"].strip() if "writeId" in options else None
    if write_id == "":
        raise InvalidArgument("option writeId is empty")
    return WriteOptions(
        servers=servers_in(options),
        tls=tls_in(options),
        login=login_in(options),
        region=region_option(options),
        topic=topic,
        codec=_CODECS[options.word("compression", tuple(_CODECS))],
        write_id=write_id,
        write_version=_version(options),
        write_of=options.text("writeOf"),
        check_repeats=options.flag("checkRepeats", default=True),
        creates_topic=options.flag("createTopic", default=False),
        checkpoint=options.text("checkpointLocation"),
        values=value_options(options),
    )


def _version(options: Given) -> int:
    if "writeVersion" not in options:
        return 0
    text = options["writeVersion"].strip()
    if not text.isascii() or not text.isdigit() or int(text) > VERSION_MAX:
        raise InvalidArgument(f"option writeVersion: {text!r} is no number from 0 on")
    return int(text)
