"""The jobs that are built in, beside the archive: what each is told, by a program or by a file.

These are plain values; what they say is checked here, before Spark is started.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from angarium.errors import InvalidArgument
from angarium.pipelines.expectations import Quality, quality_in
from angarium.pipelines.intervals import interval_s
from angarium.spark.options import Named, read_options
from angarium.spark.words import number, yes_or_no

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from angarium.spark.options import ReadOptions

_ARCHIVES_OWN: Final = frozenset(
    {
        "rows",
        "archive",
        "startingoffsets",
        "startingtimestamp",
        "startingoffsetsbytimestamp",
        "startingoffsetsbytimestampstrategy",
    }
)
"""Options of the source, in lower case, that an archive does not take: everything is archived,
from the beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What to replay, and into what."""

    kind: ClassVar[str] = "replay"

    options: Mapping[str, str]
    """Those of a batch read of one topic: `subscribe`, where to start and end, `archive`, …"""
    into: str
    """A topic. One that is not there is made, with as many partitions as the source has."""
    to: str | None = None
    """Servers of the cluster that has it, if it is another one."""
    lake: str | None = None
    """Read from this archive alone: the topic itself may be gone."""
    id: str | None = None
    """What it is called. A replay of this name that is done is not done again."""
    rate: int | None = None
    """Records per second, at the most."""
    keep_partitions: bool = False
    """Whether records go into the partition they came from, instead of that of their key."""

    @property
    def topic(self) -> str:
        """The topic that is replayed."""
        choice = read_options(self.options, is_stream=False).choice
        if not isinstance(choice, Named) or len(choice.names) != 1:
            raise InvalidArgument("a replay is of one topic: subscribe = its name")
        return choice.names[0]

    @property
    def name(self) -> str:
        """Its id, or one made of what it is to do: the same wish is the same replay."""
        if self.id is not None:
            return self.id
        # Through which of a cluster's servers makes no difference; the plan knows the cluster.
        what = sorted((key, text) for key, text in self.options.items() if key != "servers")
        wish = json.dumps([what, self.into, self.lake])
        digest = hashlib.blake2s(wish.encode(), digest_size=5).hexdigest()
        return f"{self.topic}-into-{self.into}-{digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """What to mirror, and where to."""

    kind: ClassVar[str] = "mirror"

    to: str
    """Servers of the other cluster."""
    options: Mapping[str, str]
    """Those of the source: `subscribe`, `servers`, …"""
    prefix: str = ""
    """What the names of topics begin with in the other cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analytics:
    """What to count, and where figures go."""

    kind: ClassVar[str] = "analytics"

    options: Mapping[str, str]
    """Those of the source: `subscribe`, where to start, …"""
    window: str = "1 minute"
    late_after: str = "10 seconds"
    """How long after its own time a record may arrive before it counts as late."""
    watermark: str = "10 seconds"
    """For a stream: how far partitions may be apart. A window comes out when it is over for so
    long."""
    topic: str | None = None
    table: str | None = None


def archive_source(options: Mapping[str, str]) -> ReadOptions:
    """Return what an archive reads; `InvalidArgument` for what it decides about itself."""
    for name in options:
        if name.lower() in _ARCHIVES_OWN:
            raise InvalidArgument(f"the archive decides about the option {name} itself")
    return _whole_records("archive", options)


def _whole_records(kind: str, options: Mapping[str, str], *, is_stream: bool = True) -> ReadOptions:
    """Return the options of a job that takes records as they are."""
    read = read_options(options, is_stream=is_stream)
    if read.values is not None:
        raise InvalidArgument(f"{kind}: values are taken as they are; leave out valueFormat")
    if read.as_ranges:
        raise InvalidArgument(f"{kind} is about records; leave out rows")
    return read


def replay_in(table: Mapping[str, str]) -> Replay:
    """Return the replay that a pipeline's file describes."""
    rest = dict(table)
    into = rest.pop("into", "")
    if not into:
        raise InvalidArgument('replay needs a topic: into = "orders-again"')
    lake, rate = rest.pop("lake", None), rest.pop("rate", None)
    if lake is not None and "archive" in rest:
        raise InvalidArgument("replay: lake and archive contradict each other")
    wanted = Replay(
        into=into,
        to=rest.pop("to", None),
        lake=lake,
        id=rest.pop("id", None),
        rate=None if rate is None else number("rate", rate),
        keep_partitions=yes_or_no("keep_partitions", rest.pop("keep_partitions", "false")),
        options=rest,
    )
    assert wanted.topic
    _whole_records("replay", rest, is_stream=False)
    return wanted


def mirror_in(table: Mapping[str, str]) -> Mirror:
    """Return the mirror that a pipeline's file describes."""
    rest = dict(table)
    to, prefix = rest.pop("to", ""), rest.pop("prefix", "")
    if not to:
        raise InvalidArgument('mirror needs the other cluster: to = "host:7400"')
    _whole_records("mirror", rest)
    return Mirror(to=to, prefix=prefix, options=rest)


def analytics_in(table: Mapping[str, str]) -> Analytics:
    """Return the analytics that a pipeline's file describes."""
    rest = dict(table)
    own = {
        name: rest.pop(name)
        for name in ("window", "late_after", "watermark", "topic", "table")
        if name in rest
    }
    for name in ("window", "late_after", "watermark"):
        if name in own:
            interval_s(f"analytics: {name}", own[name])
    if "topic" not in own and "table" not in own:
        raise InvalidArgument("analytics has nowhere to write: give a topic, a table or both")
    _whole_records("analytics", rest)
    return Analytics(options=rest, **own)


Job: TypeAlias = Analytics | Mirror | Quality | Replay

JOBS: Final[Mapping[str, Callable[[Any], Job]]] = {
    Replay.kind: replay_in,
    Mirror.kind: mirror_in,
    Analytics.kind: analytics_in,
    Quality.kind: quality_in,
}
"""By the name of their table in a file."""
