"""`angarium pipeline replay | mirror | analytics | dead-letters | quality`"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from angarium.cli.commands.pipeline import attend, print_progress
from angarium.cli.complaints import Refusal
from angarium.cli.grammar.quantities import From, shown_time
from angarium.cli.output import print_json, print_json_line, print_table, readable
from angarium.cli.profiles import choices
from angarium.cli.spark import starting_spark
from angarium.client import SyncClient
from angarium.pipelines.board import Board
from angarium.pipelines.definition import ONCE, Definition, read_definition
from angarium.pipelines.expectations import Quality
from angarium.pipelines.intervals import interval_s
from angarium.pipelines.jobs import Analytics, Mirror, Replay

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from angarium.pipelines.board import Status

SAMPLE_CHARACTERS = 60
"""How much of a sample's value a line shows."""


def replay_range(options: Namespace) -> int:
    """Replay a range, with a line per portion."""
    chosen = choices(options)
    servers = ",".join(map(str, chosen.servers))
    given = {"servers": servers, "subscribe": options.topic}
    if options.lake is not None:
        if options.archive is not None:
            raise Refusal("--lake reads from the archive alone, --archive also from the topic")
        partitions = None
    else:
        partitions = _partitions(servers, [options.topic])
    wanted = Replay(
        options={**given, **_range(options, partitions, [options.topic])},
        into=options.into,
        to=options.to,
        lake=options.lake,
        id=options.id,
        rate=options.rate,
        keep_partitions=options.keep_partitions,
    )
    return run_replay(options, wanted, servers)


def run_replay(options: Namespace, wanted: Replay, servers: str) -> int:
    """Do a replay, seen by `pipeline list` and stopped by `pipeline stop`."""
    chosen = choices(options)
    with SyncClient(servers) as client, starting_spark(options) as spark:
        from angarium.pipelines.replay import replay  # noqa: PLC0415 (an extra)

        board = Board(client)
        print(f"the replay is called {wanted.name}", file=sys.stderr, flush=True)

        def tell(now: Status) -> None:
            board.post(now)
            print_progress(now, chosen)

        done = replay(
            spark,
            wanted,
            on_progress=tell,
            is_told_to_stop=lambda: board.is_told_to_stop(wanted.name),
        )
    if not done.is_done:
        print("stopped; the same command continues it", file=sys.stderr)
    elif not done.written:
        print(
            f"it was done before: {done.plan.records:,} records of {done.plan.topic} into "
            f"{done.plan.into}; another --id is another replay",
            file=sys.stderr,
        )
    else:
        print(f"{done.plan.into} has everything", file=sys.stderr)
    return 0


def mirror_topics(options: Namespace) -> int:
    """Mirror topics until told to stop."""
    name = options.name or "mirror"
    wanted = Definition(
        name=name,
        checkpoint=options.checkpoint,
        trigger=ONCE if options.once else "1 second",
        job=Mirror(
            to=options.to,
            prefix=options.prefix,
            options={"subscribe": ",".join(options.topics)},
        ),
    )
    return attend(options, wanted)


def analyse_topics(options: Namespace) -> int:
    """Print, write and draw figures."""
    chosen = choices(options)
    servers = ",".join(map(str, chosen.servers))
    for name in ("window", "late_after"):
        interval_s(f"--{name.replace('_', '-')}", getattr(options, name))
    partitions = _partitions(servers, options.topics)
    wanted = Analytics(
        options={
            "servers": servers,
            "subscribe": ",".join(options.topics),
            **_range(options, partitions, options.topics),
        },
        window=options.window,
        late_after=options.late_after,
        topic=options.to_topic,
        table=options.table,
    )
    with starting_spark(options) as spark:
        from angarium.pipelines.analytics import analyse  # noqa: PLC0415 (an extra)

        rows = analyse(spark, wanted).to_pylist()
    if chosen.is_json:
        for row in rows:
            print_json_line({name: _plain(value) for name, value in row.items()})
    elif options.plot != "-":
        _print_figures(rows)
    if options.plot is not None:
        _plot(rows, options.plot)
    return 0


def triage(options: Namespace) -> int:
    """Print causes with samples, and write the set of letters."""
    chosen = choices(options)
    servers = ",".join(map(str, chosen.servers))
    with SyncClient(servers) as client:
        if options.topic not in {info.name for info in client.list_topics()}:
            print("There are no dead letters: nothing was ever given up.")
            return 0
    with starting_spark(options) as spark:
        from angarium.pipelines import dead_letters as bulk  # noqa: PLC0415 (an extra)

        read = bulk.letters if options.all else bulk.open_letters
        found = read(spark, options={"servers": servers}, topic=options.topic)
        for column, value in (("from_topic", options.from_topic), ("group", options.group)):
            if value is not None:
                found = found.where(found[column] == value)
        if options.cause is not None:
            found = found.where(found["cause"].contains(options.cause))
        rows = [
            row.asDict(recursive=True)
            for row in bulk.causes(found, samples=options.samples).collect()
        ]
        if options.set is not None:
            letters = bulk.redrive_set(found)
            Path(options.set).write_text("".join(f"{one}\n" for one in letters), encoding="utf-8")
            print(f"{len(letters)} letters are in {options.set}", file=sys.stderr)
    if chosen.is_json:
        print_json([{name: _plain(value) for name, value in row.items()} for row in rows])
    else:
        _print_causes(rows)
    return 0


def check_quality(options: Namespace) -> int:
    """Print how expectations are met; status 1 if one is not."""
    job = read_definition(Path(options.file)).job
    if not isinstance(job, Quality):
        raise Refusal(f"{options.file} has no [quality]")
    chosen = choices(options)
    servers = job.options.get("servers", ",".join(map(str, chosen.servers)))
    topics = [one.topic for one in job.topics]
    given = _range(options, _partitions(servers, topics), topics)
    if options.begin is not None and options.begin.at == "offset":
        raise Refusal("give times for --from and --until: an offset belongs to one topic")
    with starting_spark(options) as spark:
        from angarium.pipelines.quality import check  # noqa: PLC0415 (an extra)

        met = check(spark, job, servers=servers, **given)
    if chosen.is_json:
        print_json(
            [
                {
                    "topic": one.topic,
                    "expectation": one.expectation,
                    "records": one.records,
                    "failed": one.failed,
                }
                for one in met
            ]
        )
    else:
        rows = [(one.topic, one.expectation, one.records, one.failed) for one in met]
        print_table(
            ("topic", "expectation", "records", "failed"), rows, none="Nothing is expected."
        )
    return 1 if any(one.failed for one in met) else 0


def _partitions(servers: str, topics: Sequence[str]) -> dict[str, list[int]]:
    """Return the partitions of topics; raises `NotFound` before Spark is started."""
    with SyncClient(servers) as client:
        return {
            topic: [one.number for one in client.describe_topic(topic).partitions]
            for topic in topics
        }


def _range(
    options: Namespace, partitions: dict[str, list[int]] | None, topics: Sequence[str]
) -> dict[str, str]:
    """Return the options of a read for --from, --until and --archive."""
    found = {} if options.archive is None else {"archive": options.archive}
    for side, bound in (("starting", options.begin), ("ending", options.end)):
        if bound is not None:
            found |= _boundary(side, bound, partitions, topics)
    return found


def _boundary(
    side: str, bound: From, partitions: dict[str, list[int]] | None, topics: Sequence[str]
) -> dict[str, str]:
    match bound.at:
        case "timestamp":
            # Where nothing is so young there is nothing to read, which is no mistake here.
            strategy = (
                {"startingOffsetsByTimestampStrategy": "latest"} if side == "starting" else {}
            )
            return {f"{side}Timestamp": str(bound.value // 1000), **strategy}
        case "offset":
            if partitions is None or len(topics) != 1:
                raise Refusal("an offset belongs to one topic of the cluster; give a time instead")
            offsets = {str(number): bound.value for number in partitions[topics[0]]}
            return {f"{side}Offsets": json.dumps({topics[0]: offsets})}
        case "earliest" if side == "starting":
            return {}
        case "latest" if side == "ending":
            return {}
    raise Refusal(f"--{'from' if side == 'starting' else 'until'} {bound.at} is not possible")


def _print_figures(rows: list[dict[str, Any]]) -> None:
    columns = (
        "topic",
        "from",
        "records",
        "bytes",
        "rec/s",
        "keys",
        "gap p99",
        "lat p50",
        "lat p99",
        "late",
    )
    print_table(
        columns,
        [
            (
                row["topic"],
                f"{row['starts_at']:%m-%d %H:%M:%S}",
                row["records"],
                row["bytes"],
                row["records_per_s"],
                row["keys"],
                _ms(row["gap_ms_p99"]),
                _ms(row["latency_ms_p50"]),
                _ms(row["latency_ms_p99"]),
                row["late"],
            )
            for row in rows
        ],
        none="Nothing was published in that range.",
    )


def _ms(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f} ms"


def _plot(rows: list[dict[str, Any]], where: str) -> None:
    from angarium.pipelines.analytics.drawing import drawn  # noqa: PLC0415 (an extra)
    from angarium.pipelines.analytics.picture import picture  # noqa: PLC0415
    from angarium.pipelines.analytics.series import topic_curves  # noqa: PLC0415

    curves = topic_curves(rows)
    if where != "-":
        Path(where).write_text(picture(curves), encoding="utf-8")
        print(f"the picture is in {where}", file=sys.stderr)
        return
    for line in drawn(curves, width=shutil.get_terminal_size((80, 24)).columns):
        print(line)


def _print_causes(rows: list[dict[str, Any]]) -> None:
    print_table(
        ("letters", "cause", "from", "group", "first seen", "last seen"),
        [
            (
                row["letters"],
                row["cause"],
                row["from_topic"],
                row["group"],
                _moment(row["first_seen"]),
                _moment(row["last_seen"]),
            )
            for row in rows
        ],
        none="There are no dead letters to deal with.",
    )
    for row in rows:
        if row["samples"]:
            print(f"\n{readable(row['cause'].encode())} ({row['from_topic']}, {row['group']})")
        for one in row["samples"]:
            value = readable(None if one["value"] is None else bytes(one["value"]))
            print(f"  {one['letter']:>10}  {readable(one['reason'].encode())}")
            print(f"  {'':>10}  {value[:SAMPLE_CHARACTERS]}")


def _moment(value: Any) -> str | None:
    return None if value is None else shown_time(int(value.timestamp() * 1_000_000))


def _plain(value: Any) -> Any:
    match value:
        case bytes() | bytearray():
            return bytes(value).decode("utf-8", "backslashreplace")
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case None | bool() | int() | float() | str():
            return value
    return value.isoformat()
