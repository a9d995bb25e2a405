"""The options of a read, checked: what is unknown, contradictory or malformed is refused by name.

Names and meanings are those that people know from Kafka's connector, so that a query moves over by
changing its format and its servers. Spark hands option names over in lower case; messages spell
them as they are documented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

from angarium.client.addresses import bootstrap_addresses
from angarium.client.local_access import local_access
from angarium.client.login import NO_LOGIN, LoginOptions
from angarium.client.region import region_in
from angarium.errors import InvalidArgument
from angarium.security import Secret
from angarium.security.tls import TlsOptions
from angarium.spark.boundaries import (
    Boundary,
    Edge,
    ending_offsets,
    since,
    since_each,
    starting_offsets,
)
from angarium.spark.values.options import READ_NAMES, ValueOptions, value_options
from angarium.spark.words import decoded, duration_s, number, size_bytes, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Mapping

TLS_NAMES: Final = ("tls.ca", "tls.cert", "tls.key", "tls.server_name")

LOGIN_NAMES: Final = ("user", "password", "token")
"""Spark itself leaves what is called `password` or `token` out of plans and pages."""

BOTH: Final = (
    "servers",
    "region",
    *TLS_NAMES,
    *LOGIN_NAMES,
    "path",
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "readFrom",
    "groupId",
    "rows",
    "archive",
    *READ_NAMES,
)
BATCH_ONLY: Final = (
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "pushFilters",
)
STREAM_ONLY: Final = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "maxBytesPerTrigger",
)

OTHERWISE_CALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka.bootstrap.servers": ("servers",),
    "bootstrap.servers": ("servers",),
    "kafka.group.id": ("groupId",),
    "kafka.compression.type": ("compression",),
    "topic": ("subscribe",),
    "topics": ("subscribe", "topic"),
    "subscribe": ("topic",),
}
"""Names, in lower case, that options have elsewhere: in Kafka's connector, or on the other side."""

KAFKAS_OWN: Final = ("kafka.", "kafkaconsumer.", "fetchoffset.", "groupidprefix")

RECORDS_PER_TASK_MAX: Final = 1_000_000
"""`maxRecordsPerPartition` unless given: a longer range is read by several tasks."""

TRIGGER_DELAY_S: Final = 15 * 60.0
"""`maxTriggerDelay` unless given."""

_ASSIGN: Final = '{"orders":[0,1]}'


@dataclass(frozen=True, slots=True)
class Named:
    """Topics by their names."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """All topics whose whole name matches a regular expression, those to come included.

    Topics of the broker itself (`angarium.…`, `angarium-…`) are left out unless the expression
    names them.
    """

    pattern: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """Some partitions of some topics."""

    partitions: Mapping[str, tuple[int, ...]]


Choice: TypeAlias = Named | Matching | Assigned


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a read was asked for."""

    servers: tuple[str, ...]
    tls: TlsOptions
    login: LoginOptions = NO_LOGIN
    region: str = ""
    """Where the executors are; see `ClientSettings.region`."""
    choice: Choice
    start: Boundary
    end: Boundary = Edge.LATEST
    must_match_time: bool = True
    """Whether a start by time is refused where no record is that young; or it starts at the end."""
    min_partitions: int | None = None
    records_per_task_max: int = RECORDS_PER_TASK_MAX
    fail_on_data_loss: bool = True
    include_headers: bool = False
    from_nearest: bool = False
    """Read from whichever node answers first, from its own replica where it has one."""
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_s_max: float = TRIGGER_DELAY_S
    bytes_per_trigger_max: int | None = None
    archive: str | None = None
    """A folder with an archive of the topics: what it holds is read from there."""
    push_filters: bool = False
    """Whether a query's conditions narrow what is read."""
    as_ranges: bool = False
    """Whether a row is a range of offsets instead of a record: for jobs that fetch themselves."""
    values: ValueOptions | None = None
    """How values are decoded into columns; None: they stay bytes."""
    group: str | None = None
    """The group whose position is a start, and under which a stream tells how far it has come."""


def read_options(given: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
    """Return the options of a batch read or of a stream; `InvalidArgument` names what is wrong."""
    kind = "stream" if is_stream else "batch read"
    known = BOTH + (STREAM_ONLY if is_stream else BATCH_ONLY)
    elsewhere = BATCH_ONLY if is_stream else STREAM_ONLY
    options = Given(given, known=known, elsewhere=elsewhere, kind=kind)
    start = options.alone("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
    end = options.alone("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")
    offsets_max = options.number("maxOffsetsPerTrigger")
    offsets_min = options.number("minOffsetsPerTrigger")
    if offsets_max is not None and offsets_min is not None and offsets_min > offsets_max:
        raise InvalidArgument(
            f"options minOffsetsPerTrigger ({offsets_min}) and maxOffsetsPerTrigger "
            f"({offsets_max}) contradict each other"
        )
    if "maxTriggerDelay" in options and offsets_min is None:
        raise InvalidArgument("option maxTriggerDelay means nothing without minOffsetsPerTrigger")
    if "archive" in options and options.word("rows", ("records", "ranges")) == "ranges":
        raise InvalidArgument("options archive and rows=ranges contradict each other")
    values = value_options(options)
    if values is not None and options.word("rows", ("records", "ranges")) == "ranges":
        raise InvalidArgument("options valueFormat and rows=ranges contradict each other")
    if not is_stream and "groupId" in options and not is_committed(options):
        raise InvalidArgument("option groupId means nothing here without startingOffsets=committed")
    return ReadOptions(
        servers=servers_in(options),
        tls=tls_in(options),
        login=login_in(options),
        region=region_option(options),
        choice=_choice(options),
        start=_start(options, start, is_stream=is_stream),
        end=_end(options, end),
        must_match_time=_must_match_time(options, start),
        min_partitions=options.number("minPartitions"),
        records_per_task_max=options.number("maxRecordsPerPartition") or RECORDS_PER_TASK_MAX,
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        include_headers=options.flag("includeHeaders", default=False),
        from_nearest=options.word("readFrom", ("leader", "nearest")) == "nearest",
        offsets_per_trigger_max=offsets_max,
        offsets_per_trigger_min=offsets_min,
        trigger_delay_s_max=(
            duration_s("maxTriggerDelay", options["maxTriggerDelay"])
            if "maxTriggerDelay" in options
            else TRIGGER_DELAY_S
        ),
        bytes_per_trigger_max=(
            size_bytes("maxBytesPerTrigger", options["maxBytesPerTrigger"])
            if "maxBytesPerTrigger" in options
            else None
        ),
        values=values,
        push_filters=options.flag("pushFilters", default=False),
        group=options.text("groupId"),
        archive=options.text("archive"),
        as_ranges=options.word("rows", ("records", "ranges")) == "ranges",
    )


class Given:
    """Options as they were written, by their documented names."""

    def __init__(
        self,
        given: Mapping[str, str],
        *,
        known: tuple[str, ...],
        elsewhere: tuple[str, ...] = (),
        kind: str,
    ) -> None:
        """Take over what was `given`; what is not `known` here is refused.

        `elsewhere` are options of another kind of use, which deserve another refusal.
        """
        spelled = {name.lower(): name for name in known}
        foreign = {name.lower(): name for name in elsewhere}
        self._values: dict[str, str] = {}
        for name, value in given.items():
            if name.lower() in spelled:
                self._values[spelled[name.lower()]] = value
            elif name.lower() in foreign:
                raise InvalidArgument(f"option {foreign[name.lower()]} is not for a {kind}")
            else:
                hint = _hint(name.lower(), spelled)
                raise InvalidArgument(f"there is no option {name} for a {kind}{hint}")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def alone(self, *names: str) -> str | None:
        """Return which one of `names` was given; two of them contradict each other."""
        there = [name for name in names if name in self._values]
        if len(there) > 1:
            raise InvalidArgument(f"options {' and '.join(there)} contradict each other; give one")
        return there[0] if there else None

    def number(self, name: str) -> int | None:
        """Return a whole number above 0, if it was given."""
        return number(name, self._values[name]) if name in self._values else None

    def text(self, name: str) -> str | None:
        """Return a text that is not empty, if it was given."""
        if name not in self._values:
            return None
        if not self._values[name].strip():
            raise InvalidArgument(f"option {name} is empty")
        return self._values[name].strip()

    def flag(self, name: str, *, default: bool) -> bool:
        """Return yes or no."""
        return yes_or_no(name, self._values[name]) if name in self._values else default

    def word(self, name: str, words: tuple[str, ...]) -> str:
        """Return one of `words`; the first one if nothing was given."""
        text = self._values.get(name, words[0]).strip().lower()
        if text not in words:
            raise InvalidArgument(f"option {name}: {text!r} is none of {', '.join(words)}")
        return text


def _hint(name: str, spelled: Mapping[str, str]) -> str:
    """Return what somebody may have meant by an option that there is not."""
    meant = [one for one in OTHERWISE_CALLED.get(name, ()) if one.lower() in spelled]
    if meant:
        return f"; it is called {meant[0]} here"
    if name == "paths":  # what Spark makes of load(["a", "b"])
        return "; write several topics with commas between them: load('orders,returns')"
    if name.startswith(KAFKAS_OWN):
        return ", which is a setting of Kafka's own clients; leave it out"
    near = get_close_matches(name, spelled, n=1)
    return f"; did you mean {spelled[near[0]]}?" if near else ""


def servers_in(options: Given) -> tuple[str, ...]:
    """Return the addresses given, or those of the environment, as they were on the driver."""
    given = (options["servers"],) if "servers" in options else ()
    return tuple(str(address) for address in bootstrap_addresses(given))


def tls_in(options: Given) -> TlsOptions:
    """Return how to speak TLS, or what the environment says, as it was on the driver.

    Paths travel as they are: executors need the files at the same places.
    """
    given = {name.partition(".")[2]: options.text(name) for name in TLS_NAMES if name in options}
    if not given:
        local = local_access(bootstrap_addresses(servers_in(options)))
        return TlsOptions.from_environment() if local is None else local.tls
    return TlsOptions(**{name: text or "" for name, text in given.items()})


def login_in(options: Given) -> LoginOptions:
    """Return who reads or writes, or what the environment says, as it was on the driver."""
    if not any(name in options for name in LOGIN_NAMES):
        found = LoginOptions.from_environment()
        if found == NO_LOGIN and not any(name in options for name in TLS_NAMES):
            local = local_access(bootstrap_addresses(servers_in(options)))
            found = found if local is None else local.login
        return found
    found = LoginOptions(
        user=options.text("user") or "",
        password=Secret(options.text("password") or ""),
        token=Secret(options.text("token") or ""),
    )
    found.login()  # half a login is refused here, and not by every task
    return found


def region_option(options: Given) -> str:
    """Return the region given, or that of the environment, as it was on the driver."""
    return options.text("region") or region_in()


def is_committed(options: Given) -> bool:
    """Tell whether the start is a group's position."""
    return "startingOffsets" in options and (
        options["startingOffsets"].strip().lower() == "committed"
    )


def _choice(options: Given) -> Choice:
    which = options.alone("subscribe", "subscribePattern", "assign", "path")
    if which is None:
        raise InvalidArgument("give one of the options subscribe, subscribePattern and assign")
    text = options[which]
    if which == "subscribePattern":
        if not text:
            raise InvalidArgument(f"option {which} is empty, which no topic's name is")
        try:
            re.compile(text)
        except re.error as error:
            raise InvalidArgument(f"option {which}: {text!r} is no pattern: {error}") from None
        return Matching(text)
    if which == "assign":
        partitions = decoded(which, text, dict[str, list[int]], _ASSIGN)
        if not partitions or not all(partitions.values()):
            raise InvalidArgument(f"option {which}: {text!r} names no partition")
        return Assigned(
            {topic: tuple(sorted(set(numbers))) for topic, numbers in sorted(partitions.items())}
        )
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InvalidArgument(f"option {which}: {text!r} names no topic")
    return Named(names)


def _start(options: Given, which: str | None, *, is_stream: bool) -> Boundary:
    match which:
        case "startingOffsets":
            return starting_offsets(
                which, options[which], is_stream=is_stream, group=options.text("groupId")
            )
        case "startingTimestamp":
            return since(which, options[which])
        case "startingOffsetsByTimestamp":
            return since_each(which, options[which])
    return Edge.LATEST if is_stream else Edge.EARLIEST


def _end(options: Given, which: str | None) -> Boundary:
    match which:
        case "endingOffsets":
            return ending_offsets(which, options[which])
        case "endingTimestamp":
            return since(which, options[which])
        case "endingOffsetsByTimestamp":
            return since_each(which, options[which])
    return Edge.LATEST


def _must_match_time(options: Given, start: str | None) -> bool:
    name = "startingOffsetsByTimestampStrategy"
    if name in options and start not in ("startingTimestamp", "startingOffsetsByTimestamp"):
        raise InvalidArgument(f"option {name} means nothing without a start by time")
    return options.word(name, ("error", "latest")) == "error"
