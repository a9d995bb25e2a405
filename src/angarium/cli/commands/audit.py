"""`angarium audit list | verify`"""

from __future__ import annotations

import base64
import fnmatch
import json
import sys
import time
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from angarium.api.audit import AUDIT_TOPIC, HASH_HEADER, AuditOutcome, Seen, decoded
from angarium.cli.audit_lines import audit_line, print_report
from angarium.cli.complaints import Refusal
from angarium.cli.consuming import start_like
from angarium.cli.output import print_json, print_json_line
from angarium.cli.session import talk
from angarium.doors.status import Exit
from angarium.ids import Micros
from angarium.security.audit import Report, Verifier, hash_of
from angarium.security.audit.times import time_text

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import AsyncGenerator, Iterator

    from angarium.api.audit import AuditRecord
    from angarium.cli.profiles import Choices
    from angarium.client import Client, ReceivedBatch


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept elsewhere: the newest record of a topic, and the digest up to it."""

    cluster: str
    topic: str
    seen: Seen
    time: str = ""
    """When it was written, for people."""


# --- list ----------------------------------------------------------------------------------------


def list_some(options: Namespace) -> int:
    """Print audit records, as they were written."""

    async def work(client: Client, chosen: Choices) -> int:
        printed = 0
        async with aclosing(_batches(client, options)) as batches:
            async for batch in batches:
                for record in batch:
                    found = decoded(record.value or b"")
                    if found is not None and _is_wanted(found, options):
                        _print(record.offset, record.value or b"", found, chosen.format)
                        printed += 1
                        if printed == options.max:
                            return 0
                sys.stdout.flush()
        if not printed and chosen.format != "json":
            print("There are no such audit records.")
        return 0

    return talk(options, work)


async def _batches(client: Client, options: Namespace) -> AsyncGenerator[ReceivedBatch, None]:
    start = start_like(options.since)
    if not options.follow:
        async for batch in client.read_batches(AUDIT_TOPIC, start=start):
            yield batch
        return
    async with client.subscribe(AUDIT_TOPIC, start=start) as subscription:
        async for batch in subscription.batches():
            yield batch


def _is_wanted(record: AuditRecord, options: Namespace) -> bool:
    if options.who is not None and record.who != options.who:
        return False
    if options.denied and record.outcome is not AuditOutcome.DENIED:
        return False
    if options.resource is not None and not fnmatch.fnmatchcase(record.resource, options.resource):
        return False
    said = (record.what, record.action, record.event)
    return options.what is None or any(fnmatch.fnmatchcase(one, options.what) for one in said)


def _print(offset: int | None, value: bytes, record: AuditRecord, style: str) -> None:
    if style == "json":
        told = {"offset": offset, "hash": hash_of(value).hex(), **json.loads(value)}
        print_json_line(told)
    else:
        print(audit_line(record))


# --- verify --------------------------------------------------------------------------------------


def verify(options: Namespace) -> int:
    """Check the records; the exit status says whether all is sound."""
    if options.file is not None and (options.topic or options.write_anchor):
        raise Refusal("--file cannot be combined with --topic or --write-anchor")
    anchor = None if options.anchor is None else _read_anchor(Path(options.anchor))
    if options.file is not None:
        report = _checked_file(Path(options.file), anchor)
        return _tell(report, getattr(options, "format", "table"))

    async def work(client: Client, chosen: Choices) -> int:
        topic = options.topic or AUDIT_TOPIC
        cluster = (await client.cluster_status()).cluster_id
        if anchor is not None and anchor.cluster != cluster:
            raise Refusal(f"{options.anchor} is of another cluster, {anchor.cluster}")
        report = await _checked_topic(client, topic, anchor)
        if options.write_anchor is not None and report.is_sound and report.head is not None:
            _write_anchor(
                Path(options.write_anchor),
                Anchor(cluster=cluster, topic=topic, seen=report.head, time=_now()),
            )
        return _tell(report, chosen.format)

    return talk(options, work)


def _tell(report: Report, style: str) -> int:
    if style == "json":
        print_json({"sound": report.is_sound, **msgspec.to_builtins(report)})
    else:
        print_report(report)
    return Exit.OK if report.is_sound else Exit.DATA


async def _checked_topic(client: Client, topic: str, anchor: Anchor | None) -> Report:
    partitions = (await client.describe_topic(topic)).partitions
    if len(partitions) != 1:
        raise Refusal(f"{topic} has {len(partitions)} partitions: it holds no audit records")
    verifier = Verifier(
        start_offset=partitions[0].start_offset or 0,
        anchors=() if anchor is None else (anchor.seen,),
    )
    async for batch in client.read_batches(topic, start="earliest"):
        for record in batch:
            assert record.offset is not None, "what is read is stored"
            told = dict(record.headers).get(HASH_HEADER)
            said = None if told is None else told.decode("latin-1")
            verifier.take(record.offset, record.value, told_hash=said)
    return verifier.report()


def _checked_file(path: Path, anchor: Anchor | None) -> Report:
    verifier: Verifier | None = None
    for offset, value, told in _lines(path):
        if verifier is None:
            anchors = () if anchor is None else (anchor.seen,)
            verifier = Verifier(start_offset=offset, anchors=anchors)
        verifier.take(offset, value, told_hash=told)
    return (verifier or Verifier()).report()


def _lines(path: Path) -> Iterator[tuple[int, bytes, str | None]]:
    """Yield the records in a file: an object in each line, as `angarium sub` prints them."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                read: dict[str, Any] = json.loads(line)
                told = {one["name"]: one.get("value") for one in read.get("headers", ())}
                yield int(read["offset"]), _value(read), told.get(HASH_HEADER)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise Refusal(
                    f"{path}:{number} is no record; `angarium sub {AUDIT_TOPIC} --from earliest"
                    " --no-follow --format json` writes such a file"
                ) from None


def _value(read: dict[str, Any]) -> bytes:
    if "value_base64" in read:
        return base64.b64decode(read["value_base64"])
    return str(read["value"]).encode()


def _now() -> str:
    return time_text(Micros(time.time_ns() // 1_000))


def _read_anchor(path: Path) -> Anchor:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Anchor)
    except msgspec.MsgspecError as error:
        raise Refusal(f"{path} is no anchor: {error}") from None


def _write_anchor(path: Path, anchor: Anchor) -> None:
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(anchor)) + b"\n")
    partial.replace(path)
